/*
 * Documents as people read them.
 */
#include <config.h>

#include "ctl/render_int.h"

#include <inttypes.h>
#include <stdlib.h>

#include "ctl/escape.h"

#define TEXT HF_CTL_TEXT_CELL
#define INT HF_CTL_INT_CELL
#define SOME HF_CTL_SOME_CELL
#define KNOWN HF_CTL_KNOWN_CELL
#define TIME HF_CTL_TIME_CELL
#define DURATION HF_CTL_DURATION_CELL
#define BYTES HF_CTL_BYTES_CELL
#define BOOL HF_CTL_BOOL_CELL
#define INC HF_CTL_INC_CELL

static const struct hf_ctl_column session_columns[] = {
	{ "ID", "id", TEXT },
	{ "TENANT", "tenant", TEXT },
	{ "NAME", "name", TEXT },
	{ "TURNS", "turns", INT },
	{ "STATE", "last_state", TEXT },
	{ "TARGET", "last_target", TEXT },
	{ "LOCKED", "locked", BOOL },
	{ "QUEUED", "queued", INT },
	{ "UPDATED", "updated_us", TIME },
};

static const struct hf_ctl_column turn_columns[] = {
	{ "TURN", "seq", INT },
	{ "AFTER", "parent_seq", SOME },
	{ "STATE", "state", TEXT },
	{ "IN_HISTORY", "on_path", BOOL },
	{ "ROUTE", "route", TEXT },
	{ "TARGET", "target", TEXT },
	{ "ATTEMPTS", "attempts", INT },
	{ "STATUS", "status", SOME },
	{ "FINISH", "finish_reason", TEXT },
	{ "ERROR", "error_class", TEXT },
	{ "FIRST_TOKEN", "first_token_us", DURATION },
	{ "TOTAL", "total_us", DURATION },
	{ "SAID", "said", KNOWN },
	{ "HEARD", "heard", KNOWN },
	{ "STARTED", "started_us", TIME },
};

static const struct hf_ctl_column attempt_columns[] = {
	{ "TURN", "turn_seq", INT },
	{ "ATTEMPT", "n", INT },
	{ "TARGET", "target", TEXT },
	{ "CLASS", "cls", TEXT },
	{ "REASON", "reason", TEXT },
	{ "HTTP", "http_status", SOME },
	{ "FIRST_TOKEN", "first_token_us", DURATION },
	{ "TOTAL", "total_us", DURATION },
	{ "FROM", "from_bytes", SOME },
	{ "OMITTED", "omitted_items", SOME },
	{ "ITEMS", "items", SOME },
	{ "SENT", "bytes_out", BYTES },
	{ "RECEIVED", "bytes_in", BYTES },
	{ "STARTED", "started_us", TIME },
};

static const struct hf_ctl_column key_columns[] = {
	{ "ID", "id", TEXT },
	{ "TENANT", "tenant", TEXT },
	{ "LABEL", "label", TEXT },
	{ "CREATED", "created_us", TIME },
	{ "REVOKED", "revoked_us", TIME },
};

static const struct hf_ctl_column process_columns[] = {
	{ "SLOT", "slot", INT },
	{ "ROLE", "role", TEXT },
	{ "PID", "pid", INT },
	{ "INCARNATION", "inc", INC },
	{ "STATE", "state", TEXT },
	{ "WORKED", "worked", INT },
	{ "IN_FLIGHT", "in_flight", INT },
};

/* "name       value" lines. */
static const struct hf_ctl_column session_lines[] = {
	{ "session", "id", TEXT },
	{ "tenant", "tenant", TEXT },
	{ "name", "name", TEXT },
	{ "created", "created_us", TIME },
	{ "updated", "updated_us", TIME },
	{ "turns", "turns", INT },
	{ "queued", "queued", INT },
	{ "locked", "locked", BOOL },
};
static const struct hf_ctl_column lock_lines[] = {
	{ "owner slot", "owner_slot", INT },
	{ "owner", "owner_inc", INC },
	{ "fence", "fence", INT },
	{ "since", "lock_since_us", TIME },
};
static const struct hf_ctl_column key_lines[] = {
	{ "key", "id", TEXT },
	{ "tenant", "tenant", TEXT },
	{ "label", "label", TEXT },
	{ "created", "created_us", TIME },
	{ "revoked", "revoked_us", TIME },
	{ "secret", "secret", TEXT },
};
static const struct hf_ctl_column status_lines[] = {
	{ "version", "version", TEXT },
	{ "pid", "pid", INT },
	{ "started", "started_us", TIME },
	{ "boot", "boot", INT },
	{ "configuration", "config_generation", INT },
	{ "database", "database", TEXT },
};
static const struct hf_ctl_column store_lines[] = {
	{ "database size", "db_bytes", BYTES },
	{ "WAL size", "wal_bytes", BYTES },
	{ "schema", "schema_version", INT },
	{ "sessions", "sessions", INT },
	{ "turns", "turns", INT },
	{ "items", "items", INT },
	{ "open turns", "open_turns", INT },
	{ "queued turns", "queued_turns", INT },
};

int
hf_ctl_line(const char *name, struct hf_buf *value, FILE *out)
{
	bool ok = hf_buf_ok(value);

	if (ok)
		fprintf(out, "%-14s %s\n", name,
		    value->size == 0 ? "-" : value->data);
	hf_buf_free(value);
	return ok ? 0 : -1;
}

int
hf_ctl_lines(const struct hf_ctl_column *column, size_t n, json_t *o, FILE *out)
{
	struct hf_buf b;
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++) {
		json_t *v = json_object_get(o, column[i].member);

		if (v == NULL)
			continue;
		hf_buf_init(&b, HF_BUF_NOCAP);
		hf_ctl_put_cell(&b, v, column[i].format);
		rc = hf_ctl_line(column[i].head, &b, out);
	}
	return rc;
}

/* A table under an empty line; nothing if there are no rows. */
static int
part(const struct hf_ctl *ctl, const struct hf_ctl_column *column, size_t n,
    json_t *rows, FILE *out)
{
	if (json_array_size(rows) == 0)
		return 0;
	fputc('\n', out);
	return hf_ctl_table(column, (unsigned)n, rows, !ctl->no_headers, out);
}

/* --- status --------------------------------------------------------------- */

static int
listeners(json_t *list, FILE *out)
{
	struct hf_buf b;
	size_t i;
	json_t *v;

	hf_buf_init(&b, HF_BUF_NOCAP);
	json_array_foreach(list, i, v)
	{
		if (i > 0)
			hf_buf_puts(&b, ", ");
		hf_ctl_put_cell(&b, v, TEXT);
	}
	return hf_ctl_line("listen", &b, out);
}

/* Those that have counted something. */
static int
counters(json_t *o, FILE *out)
{
	const char *name;
	json_t *v;
	struct hf_buf b;

	if (json_object_size(o) > 0)
		fputc('\n', out);
	json_object_foreach(o, name, v)
	{
		if (!json_is_integer(v) || json_integer_value(v) == 0)
			continue;
		hf_buf_init(&b, HF_BUF_NOCAP);
		hf_ctl_escape(&b, hf_str(name));
		if (!hf_buf_ok(&b))
			return -1;
		fprintf(out, "%-24s %" PRId64 "\n", b.size > 0 ? b.data : "-",
		    (int64_t)json_integer_value(v));
		hf_buf_free(&b);
	}
	return 0;
}

static int
status(const struct hf_ctl *ctl, json_t *doc, FILE *out)
{
	json_t *up = json_object_get(doc, "uptime_ms");
	struct hf_buf b;
	int rc = hf_ctl_lines(status_lines, hf_countof(status_lines), doc, out);

	if (rc == 0 && json_is_integer(up) && json_integer_value(up) >= 0 &&
	    json_integer_value(up) < INT64_MAX / 1000) {
		hf_buf_init(&b, HF_BUF_NOCAP);
		hf_ctl_put_duration(&b, json_integer_value(up) * 1000);
		rc = hf_ctl_line("up", &b, out);
	}
	if (rc == 0 && json_object_get(doc, "listen") != NULL)
		rc = listeners(json_object_get(doc, "listen"), out);
	if (rc == 0)
		rc = hf_ctl_lines(store_lines, hf_countof(store_lines),
		    json_object_get(doc, "store"), out);
	if (rc == 0)
		rc = part(ctl, process_columns, hf_countof(process_columns),
		    json_object_get(doc, "processes"), out);
	if (rc == 0)
		rc = counters(json_object_get(doc, "counters"), out);
	return rc;
}

/* --- one session ---------------------------------------------------------- */

/* "content" of a message if that is a string, or the texts of its parts;
 * anything else as JSON. */
static void
put_message(struct hf_buf *out, json_t *body)
{
	json_t *content = json_object_get(body, "content"), *v;
	const char *type;
	char *dump;
	size_t i;

	if (json_is_string(content) &&
	    json_object_size(body) ==
		(json_object_get(body, "role") == NULL ? 1u : 2u)) {
		hf_ctl_escape(out,
		    (struct hf_str){ json_string_value(content),
			json_string_length(content) });
		return;
	}
	json_array_foreach(content, i, v)
	{
		type = json_string_value(json_object_get(v, "type"));
		if (type == NULL || strcmp(type, "text") != 0)
			break;
	}
	if (json_array_size(content) > 0 && i == json_array_size(content)) {
		json_array_foreach(content, i, v) hf_ctl_put_cell(
		    out, json_object_get(v, "text"), HF_CTL_TEXT_CELL);
		return;
	}
	dump = json_dumps(body, JSON_COMPACT | JSON_ENCODE_ANY);
	hf_ctl_escape(out, hf_str(dump == NULL ? "-" : dump));
	free(dump);
}

/* A body comes as a string that holds JSON, so that not a byte of it is
 * changed on the way here. */
static void
put_body(struct hf_buf *out, json_t *body)
{
	struct hf_str s = { json_string_value(body), json_string_length(body) };
	json_t *root = json_is_string(body) && s.size > 0 ?
	    json_loadb(s.p, s.size, JSON_ALLOW_NUL, NULL) :
	    NULL;

	if (root != NULL)
		put_message(out, root);
	else if (json_is_string(body))
		hf_ctl_escape(out, s);
	else
		put_message(out, body);
	json_decref(root);
}

static int
item(json_t *o, FILE *out)
{
	json_t *body = json_object_get(o, "body");
	json_t *heard = json_object_get(o, "heard");
	struct hf_buf b;
	bool ok;

	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_ctl_put_cell(&b, json_object_get(o, "turn_seq"), INT);
	hf_buf_putc(&b, '.');
	hf_ctl_put_cell(&b, json_object_get(o, "idx"), INT);
	hf_buf_putc(&b, ' ');
	hf_ctl_put_cell(&b, json_object_get(o, "role"), TEXT);
	hf_buf_putc(&b, ' ');
	hf_ctl_put_cell(&b, json_object_get(o, "kind"), TEXT);
	hf_buf_puts(&b, " from ");
	hf_ctl_put_cell(&b, json_object_get(o, "origin"), TEXT);
	if (body != NULL) {
		hf_buf_puts(&b, "\n    ");
		put_body(&b, body);
	}
	if (json_is_true(json_object_get(o, "has_heard"))) {
		hf_buf_puts(&b, "\n    heard: ");
		if (json_is_string(heard) && json_string_length(heard) == 0)
			hf_buf_puts(&b, "nothing");
		else if (heard != NULL)
			put_body(&b, heard);
	}
	ok = hf_buf_ok(&b);
	if (ok)
		fprintf(out, "%s\n", b.data);
	hf_buf_free(&b);
	return ok ? 0 : -1;
}

static int
session(const struct hf_ctl *ctl, json_t *doc, FILE *out)
{
	json_t *s = json_object_get(doc, "session");
	json_t *items = json_object_get(doc, "items"), *v;
	size_t i;
	int rc = hf_ctl_lines(session_lines, hf_countof(session_lines), s, out);

	if (rc == 0 && json_is_true(json_object_get(s, "locked")))
		rc = hf_ctl_lines(lock_lines, hf_countof(lock_lines), s, out);
	if (rc == 0)
		rc = part(ctl, turn_columns, hf_countof(turn_columns),
		    json_object_get(doc, "turns"), out);
	if (rc == 0)
		rc = part(ctl, attempt_columns, hf_countof(attempt_columns),
		    json_object_get(doc, "attempts"), out);
	if (rc != 0 || (ctl->given & HF_CTL_CONTENTS) == 0 ||
	    json_array_size(items) == 0)
		return rc;
	fputc('\n', out);
	json_array_foreach(items, i, v) rc |= item(v, out);
	return rc;
}

int
hf_ctl_render_text(
    const struct hf_ctl *ctl, enum hf_ctl_doc kind, json_t *doc, FILE *out)
{
	switch (kind) {
	case HF_CTL_DOC_STATUS:
		return status(ctl, doc, out);
	case HF_CTL_DOC_SESSION:
		return session(ctl, doc, out);
	case HF_CTL_DOC_SESSIONS:
		return json_array_size(doc) == 0 ?
		    0 :
		    hf_ctl_table(session_columns, hf_countof(session_columns),
			doc, !ctl->no_headers, out);
	case HF_CTL_DOC_KEYS:
		return json_array_size(doc) == 0 ?
		    0 :
		    hf_ctl_table(key_columns, hf_countof(key_columns), doc,
			!ctl->no_headers, out);
	case HF_CTL_DOC_KEY:
		return hf_ctl_lines(key_lines, hf_countof(key_lines), doc, out);
	case HF_CTL_DOC_CHECK:
		return hf_ctl_text_check(doc, out);
	case HF_CTL_DOC_TIMELINE:
		return hf_ctl_text_timeline(ctl, doc, out);
	case HF_CTL_DOC_VERIFY:
		return hf_ctl_text_verify(ctl, doc, out);
	case HF_CTL_DOC_LOCKS:
		return hf_ctl_text_locks(ctl, doc, out);
	case HF_CTL_DOC_PROVIDERS:
		return hf_ctl_text_providers(ctl, doc, out);
	case HF_CTL_DOC_PROVIDER:
		return hf_ctl_text_provider(ctl, doc, out);
	case HF_CTL_DOC_TESTS:
		return hf_ctl_text_tests(ctl, doc, out);
	case HF_CTL_DOC_FAILOVERS:
		return hf_ctl_text_failovers(ctl, doc, out);
	case HF_CTL_DOC_FAILOVER_SUMMARY:
		return hf_ctl_text_failover_summary(ctl, doc, out);
	case HF_CTL_DOC_WARNINGS:
		return hf_ctl_text_warnings(doc, out);
	case HF_CTL_DOC_CONFIG:
		return hf_ctl_text_config(ctl, doc, out);
	case HF_CTL_DOC_EXPLAIN:
		return hf_ctl_text_explain(doc, out);
	case HF_CTL_DOC_ERRORS:
		return hf_ctl_text_errors(ctl, doc, out);
	case HF_CTL_DOC_RELOAD:
		return hf_ctl_text_reload(doc, out);
	case HF_CTL_DOC_DRAIN:
		return hf_ctl_text_drain(doc, out);
	}
	return -1;
}
