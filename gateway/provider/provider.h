/*
 * Outbound dialects.  A dialect turns items into one request and the bytes
 * that come back into events; it does no I/O and holds no history.  Adding a
 * provider protocol is one file that fills struct hf_dialect.
 * Loop thread only.  Wire rules: see docs/design/wire.md.
 */
#ifndef HF_GATEWAY_PROVIDER_PROVIDER_H
#define HF_GATEWAY_PROVIDER_PROVIDER_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/class.h"
#include "base/conf.h"
#include "base/err.h"
#include "base/quota.h"
#include "gateway/json/scan.h"
#include "store/store.h"

/*
 * Bodies of items (UTF-8 JSON text, made by gateway/turn/items.c):
 *   message      {"content":C[,"name":S][,"refusal":S]}
 *                C: a string, or an array of {"type":"text","text":S}
 *   tool call    {"id":S,"name":S,"arguments":S}   arguments: JSON in a string
 *   tool result  {"id":S,"content":C}
 * S: a JSON string exactly as it came in (escapes kept).  Each may end with
 * "pinned":true, which no provider is told: it is never left out of a request.
 * Other members of a message mean nothing, nor does a refusal that is not an
 * assistant's.
 *
 * Parameters of a turn (params): one JSON object with the known members of
 * the client's request as they came, in the words of chat completions:
 *   max_tokens, max_completion_tokens, temperature, top_p, stop, tools,
 *   tool_choice, parallel_tool_calls, response_format, reasoning_effort,
 *   seed, frequency_penalty, presence_penalty, user, safety_identifier ...
 */
struct hf_payload_input {
	const struct hf_item *item; /* the whole history, lead first */
	unsigned n_item;
	/* Their bodies where they have been checked and mapped already, of type
	 * NONE where not.  NULL: nowhere. */
	const struct hf_json *body;
	struct hf_json params;
	const struct hf_conf_target *target;
	int64_t window; /* the target's, in tokens; 0: not known */
	bool stream;
	int max_tokens; /* instead of what the parameters say; 0: that */
	/* The last item is a part of an assistant's answer, and the target is
	 * to go on with it, in the way of its call.prefill.  White space at
	 * the end of that text may not reach the model (anthropic refuses
	 * it, templates drop it), so what comes back may begin with it. */
	bool prefill;
	/* If not empty: these words (UTF-8) as a user message behind the
	 * history; in this request only. */
	struct hf_str instruction;
};

/* Why build() would refuse 'prefill' for this target with these parameters,
 * whatever the history is; NULL: it would not.  A static string. */
const char *hf_prefill_refusal(
    const struct hf_conf_target *target, struct hf_json params);

/*
 * Tokens of a window that are the answer's: as many as the client limits it
 * to, else as the configuration says, and then at most a quarter.  Pure.
 */
int64_t hf_output_room(
    const struct hf_conf_target *target, struct hf_json params, int64_t window);
/*
 * What a provider says when a request is too long for it: its window, and
 * how many tokens it counted, each 0 if it does not say so in words that are
 * known.  Pure.
 */
void hf_window_refusal(struct hf_str message, int64_t *window, int64_t *sent);
/* For each of 'n' items: the index of the call that it is the result of, or
 * UINT32_MAX.  HF_EINVAL when a body is not what is said above. */
int hf_history_links(const struct hf_item *item, unsigned n, uint32_t *call,
    struct hf_error *e) HF_MUST_CHECK;

struct hf_http_request {
	struct hf_buf url;
	struct hf_buf headers; /* "Name: value" lines, LF-separated;
				* holds the secret: never logged */
	struct hf_buf body;
};

void hf_http_request_init(struct hf_http_request *r);
void hf_http_request_free(struct hf_http_request *r);

/* --- events: a stream in flight --------------------------------------- */

enum hf_event_type {
	HF_EV_BEGIN,	 /* the provider began to answer; no content */
	HF_EV_TEXT,	 /* .text: decoded UTF-8, never empty */
	HF_EV_REFUSAL,	 /* .text */
	HF_EV_PROGRESS,	 /* part of a tool call arrived (held back) */
	HF_EV_TOOL_CALL, /* a whole call: .tool */
	HF_EV_FINISH,	 /* .finish; terminal unless an error follows */
	HF_EV_USAGE,	 /* .usage (may come before or after FINISH) */
	HF_EV_DONE,	 /* terminal marker seen: answer complete */
	HF_EV_ERROR	 /* .error; terminal */
};

enum hf_finish_reason {
	HF_FINISH_STOP,
	HF_FINISH_LENGTH,
	HF_FINISH_TOOL_CALLS,
	HF_FINISH_CONTENT_FILTER
};
const char *hf_finish_name(enum hf_finish_reason f); /* chat's words */

struct hf_event {
	enum hf_event_type type;
	struct hf_str text; /* valid during the call only */
	struct {
		struct hf_str native_id; /* as the provider named it */
		struct hf_str name;	 /* decoded */
		struct hf_str arguments; /* JSON text, decoded; "{}" if none */
	} tool;
	enum hf_finish_reason finish;
	struct {
		int64_t input, output, cached, reasoning; /* -1: unknown */
	} usage;
	struct {
		enum hf_class cls;
		int http_status;
		const char *reason;		 /* static: "http_503" ... */
		struct hf_str message;		 /* provider's text, decoded */
		struct hf_str code, type, param; /* decoded or empty */
		int64_t retry_after_ms;		 /* -1: no hint */
	} error;
};

typedef void (*hf_event_fn)(void *arg, const struct hf_event *ev);

/* --- decoding one response --------------------------------------------- */

struct hf_decoder; /* opaque; one per attempt */

struct hf_dialect {
	const char *name;
	/* HF_EINVAL: this history or these parameters cannot be said to this
	 * target ('e' says what); the attempt fails as class gateway. */
	int (*build)(const struct hf_payload_input *in,
	    struct hf_http_request *out, struct hf_error *e);
	/* Asks for the provider's list of models, which costs nothing: for
	 * connections that are to be kept warm. */
	int (*models)(const struct hf_conf_provider *p,
	    struct hf_http_request *out, struct hf_error *e);
	/* 'stream' is what was asked for; a plain JSON answer to a stream
	 * request is understood too. */
	struct hf_decoder *(*decoder_new)(const struct hf_conf_target *t,
	    bool stream, hf_event_fn fn, void *arg);
};

const struct hf_dialect *hf_dialect(enum hf_conf_dialect d);

/*
 * Feed a response: headers once ('headers' as received, CRLF lines, names in
 * any case), then bytes in any split, then the end.  Events are emitted from
 * inside these calls.  hf_decoder_end(clean) emits HF_EV_ERROR unless
 * HF_EV_DONE or HF_EV_ERROR came before: an answer without its protocol's
 * terminal marker is never complete.  After a terminal event input is
 * ignored.  A decoder may not be freed from inside its callback.
 */
void hf_decoder_headers(
    struct hf_decoder *d, int status, struct hf_str headers);
void hf_decoder_data(struct hf_decoder *d, struct hf_str bytes);
void hf_decoder_end(struct hf_decoder *d, bool clean);
bool hf_decoder_finished(const struct hf_decoder *d);
void hf_decoder_free(struct hf_decoder *d);

/* Milliseconds a provider asks to wait, from its response headers:
 * retry-after-ms, x-ms-retry-after-ms, Retry-After in seconds or as an HTTP
 * date (RFC 9110 10.2.3) against 'wall_us'.  -1: none.  Clamped to
 * [0, 3600000]; pure. */
int64_t hf_retry_hint(struct hf_str headers, int64_t wall_us);
/* The same from the headers that say when a quota is there again, for a 429
 * without the above: OpenAI's x-ratelimit-reset-* (durations) and Anthropic's
 * anthropic-ratelimit-*-reset (RFC 3339).  The longest of those that have
 * nothing remaining; if none says so, the shortest.  An hour or more is a
 * day's quota, and not believed.  Pure. */
int64_t hf_reset_hint(struct hf_str headers, int64_t wall_us);
/* What a response says of its target's limits: OpenAI's x-ratelimit-* and
 * Anthropic's anthropic-ratelimit-* headers.  Pure. */
void hf_quota_headers(
    struct hf_str headers, int64_t wall_us, struct hf_quota_said *said);
/* The same as hf_retry_hint() from an error object with google.rpc.RetryInfo
 * among its details; not when a quota of a day was exceeded.  Pure. */
int64_t hf_retry_info(struct hf_json error);

#endif
