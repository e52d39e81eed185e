/*
 * The members of the views of inspect.h, for whoever shows them: the control
 * verbs and holdfastctl without a daemon say the same.
 */
#include <config.h>

#include "store/inspect.h"

#define ID HF_FIELD_ID
#define TEXT HF_FIELD_TEXT
#define STR HF_FIELD_STR
#define INT HF_FIELD_INT
#define UINT HF_FIELD_UINT
#define I64 HF_FIELD_I64
#define U64 HF_FIELD_U64
#define BOOL HF_FIELD_BOOL

#define VIEW(name, kind)                                  \
	const struct hf_view name = { kind, name##_field, \
		hf_countof(name##_field) }

#define F(member, type)                                                 \
	{                                                               \
#member, type, offsetof(struct hf_session_info, member) \
	}
static const struct hf_field hf_view_session_field[] = {
	F(id, ID),
	F(tenant, TEXT),
	F(name, TEXT),
	F(created_us, I64),
	F(updated_us, I64),
	F(turns, I64),
	F(last_state, TEXT),
	F(last_target, TEXT),
	F(locked, BOOL),
	F(owner_slot, UINT),
	F(owner_inc, U64),
	F(fence, U64),
	F(lock_since_us, I64),
	F(queued, I64),
};
VIEW(hf_view_session, "session");
#undef F

#define F(member, type)                                              \
	{                                                            \
#member, type, offsetof(struct hf_turn_info, member) \
	}
static const struct hf_field hf_view_turn_field[] = {
	F(id, ID),
	F(seq, I64),
	F(parent_seq, I64),
	F(retry_of_seq, I64),
	F(state, TEXT),
	F(on_path, BOOL),
	F(route, TEXT),
	F(stream, BOOL),
	F(started_us, I64),
	F(ended_us, I64),
	F(finish_reason, TEXT),
	F(error_class, TEXT),
	F(status, INT),
	F(attempts, I64),
	F(target, TEXT),
	F(first_token_us, I64),
	F(total_us, I64),
	F(said, I64),
	F(heard, I64),
	F(gone_us, I64),
	F(delivered_us, I64),
};
VIEW(hf_view_turn, "turn");
#undef F

#define F(member, type)                                              \
	{                                                            \
#member, type, offsetof(struct hf_item_info, member) \
	}
static const struct hf_field hf_view_item_field[] = {
	F(turn_seq, I64),
	F(idx, I64),
	F(kind, TEXT),
	F(role, TEXT),
	F(origin, TEXT),
	F(output, BOOL),
	F(lead, BOOL),
	F(has_heard, BOOL),
};
static const struct hf_field hf_view_contents_field[] = {
	F(turn_seq, I64),
	F(idx, I64),
	F(kind, TEXT),
	F(role, TEXT),
	F(origin, TEXT),
	F(output, BOOL),
	F(lead, BOOL),
	F(has_heard, BOOL),
	F(body, STR),
	F(heard, STR),
};
VIEW(hf_view_item, "item");
VIEW(hf_view_contents, "item");
#undef F

#define F(member, type)                                                 \
	{                                                               \
#member, type, offsetof(struct hf_attempt_info, member) \
	}
static const struct hf_field hf_view_attempt_field[] = {
	F(turn_seq, I64),
	F(n, INT),
	F(target, TEXT),
	F(cls, TEXT),
	F(reason, TEXT),
	F(http_status, INT),
	F(started_us, I64),
	F(called_us, I64),
	F(first_token_us, I64),
	F(total_us, I64),
	F(from_bytes, I64),
	F(bytes_out, I64),
	F(bytes_in, I64),
	F(tokens_in, I64),
	F(tokens_out, I64),
	F(tokens_estimated, I64),
	F(omitted_turns, I64),
	F(omitted_items, I64),
	F(items, I64),
	F(items_of, I64),
};
VIEW(hf_view_attempt, "attempt");
#undef F

#define F(member, type)                                               \
	{                                                             \
#member, type, offsetof(struct hf_event_info, member) \
	}
static const struct hf_field hf_view_event_field[] = {
	F(turn_seq, I64),
	F(at_us, I64),
	F(after_us, I64),
	F(event, TEXT),
	F(attempt, INT),
	F(target, TEXT),
	F(state, TEXT),
	F(cls, TEXT),
	F(reason, TEXT),
	F(status, INT),
	F(bytes, I64),
	F(of, I64),
	F(omitted_turns, I64),
	F(omitted_items, I64),
};
VIEW(hf_view_event, "event");
#undef F

#define F(member, type)                                                  \
	{                                                                \
#member, type, offsetof(struct hf_failover_info, member) \
	}
static const struct hf_field hf_view_failover_field[] = {
	F(row, I64),
	F(at_us, I64),
	F(session, ID),
	F(tenant, TEXT),
	F(name, TEXT),
	F(turn, ID),
	F(turn_seq, I64),
	F(route, TEXT),
	F(n, INT),
	F(from, TEXT),
	F(to, TEXT),
	F(cls, TEXT),
	F(reason, TEXT),
	F(status, INT),
	F(gap_us, I64),
	F(from_bytes, I64),
	F(items, I64),
	F(items_of, I64),
	F(outcome, TEXT),
};
VIEW(hf_view_failover, "failover");
#undef F

#define F(member, type)                                                   \
	{                                                                 \
#member, type, offsetof(struct hf_failover_group, member) \
	}
static const struct hf_field hf_view_failover_group_field[] = {
	F(target, TEXT),
	F(cls, TEXT),
	F(failovers, I64),
	F(answered, I64),
	F(in_stream, I64),
	F(shortened, I64),
	F(gap_p50_us, I64),
	F(gap_p99_us, I64),
	F(last_us, I64),
};
VIEW(hf_view_failover_group, "failovers");
#undef F

#define F(member, type)                                             \
	{                                                           \
#member, type, offsetof(struct hf_key_info, member) \
	}
static const struct hf_field hf_view_key_field[] = {
	F(id, ID),
	F(tenant, TEXT),
	F(label, TEXT),
	F(created_us, I64),
	F(revoked_us, I64),
};
VIEW(hf_view_key, "key");
#undef F

#define F(member, type)                                              \
	{                                                            \
#member, type, offsetof(struct hf_lock_info, member) \
	}
static const struct hf_field hf_view_lock_field[] = {
	F(session, ID),
	F(tenant, TEXT),
	F(name, TEXT),
	F(owner_slot, UINT),
	F(owner_inc, U64),
	F(owner, TEXT),
	F(fence, U64),
	F(lock_since_us, I64),
	F(turn, ID),
	F(turn_seq, I64),
	F(turn_state, TEXT),
	F(queued, I64),
};
VIEW(hf_view_lock, "lock");
#undef F

#define F(member, type)                                                \
	{                                                              \
#member, type, offsetof(struct hf_store_stats, member) \
	}
static const struct hf_field hf_view_stats_field[] = {
	F(sessions, I64),
	F(turns, I64),
	F(items, I64),
	F(open_turns, I64),
	F(queued_turns, I64),
	F(db_bytes, I64),
	F(wal_bytes, I64),
	F(schema_version, INT),
};
VIEW(hf_view_stats, "store");
#undef F

#define F(member, type)                                            \
	{                                                          \
#member, type, offsetof(struct hf_finding, member) \
	}
static const struct hf_field hf_view_finding_field[] = {
	F(session, TEXT),
	F(severity, TEXT),
	F(what, TEXT),
	F(turn_seq, I64),
	F(idx, I64),
	F(text, TEXT),
};
VIEW(hf_view_finding, "finding");
#undef F

#define F(member, type)                                             \
	{                                                           \
#member, type, offsetof(struct hf_verified, member) \
	}
static const struct hf_field hf_view_verified_field[] = {
	F(sessions, I64),
	F(turns, I64),
	F(items, I64),
	F(corrupt, I64),
	F(odd, I64),
};
VIEW(hf_view_verified, "verified");
#undef F
