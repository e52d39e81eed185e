/*
 * Providers, their targets, tests of them and failovers, as people read them.
 */
#include <config.h>

#include "ctl/render_int.h"

#include <inttypes.h>

#include "ctl/escape.h"

#define TEXT HF_CTL_TEXT_CELL
#define INT HF_CTL_INT_CELL
#define SOME HF_CTL_SOME_CELL
#define MS HF_CTL_MS_CELL
#define TIME HF_CTL_TIME_CELL
#define BOOL HF_CTL_BOOL_CELL

static int64_t
integer(json_t *o, const char *member)
{
	return json_integer_value(json_object_get(o, member));
}

/* The content of 'b', if any, as a member; frees it. */
static int
set_text(json_t *row, const char *member, struct hf_buf *b)
{
	int rc = !hf_buf_ok(b) ?
	    -1 :
	    b->size == 0 ?
	    0 :
	    json_object_set_new(row, member, json_stringn(b->data, b->size));

	hf_buf_free(b);
	return rc;
}

static void
put_string(struct hf_buf *b, json_t *v)
{
	if (json_is_string(v))
		hf_buf_put(b, json_string_value(v), json_string_length(v));
}

/* --- what the members of a target are in words ---------------------------- */

static int
join_routes(json_t *row)
{
	json_t *v;
	struct hf_buf b;
	size_t i;

	hf_buf_init(&b, HF_BUF_NOCAP);
	json_array_foreach(json_object_get(row, "routes"), i, v)
	{
		if (!json_is_string(v))
			continue;
		if (b.size > 0)
			hf_buf_puts(&b, ", ");
		put_string(&b, v);
	}
	return set_text(row, "routes_text", &b);
}

/* "3 of 15" in the window of the quota. */
static int
add_admitted(json_t *row)
{
	struct hf_buf b;

	hf_buf_init(&b, HF_BUF_NOCAP);
	if (integer(row, "quota_calls") > 0)
		hf_buf_printf(&b, "%" PRId64 " of %" PRId64,
		    integer(row, "admitted"), integer(row, "quota_calls"));
	return set_text(row, "admitted_text", &b);
}

/* "15 calls, 90000 tokens in 60 s, found" */
static int
add_quota(json_t *row)
{
	int64_t calls = integer(row, "quota_calls");
	int64_t tokens = integer(row, "quota_tokens");
	struct hf_buf b;

	hf_buf_init(&b, HF_BUF_NOCAP);
	if (calls > 0)
		hf_buf_printf(&b, "%" PRId64 " calls", calls);
	if (tokens > 0)
		hf_buf_printf(
		    &b, "%s%" PRId64 " tokens", calls > 0 ? ", " : "", tokens);
	if (b.size > 0) {
		hf_buf_printf(&b, " in %g s, ",
		    (double)integer(row, "quota_window_ms") / 1000);
		put_string(&b, json_object_get(row, "quota_from"));
	}
	return set_text(row, "quota_text", &b);
}

/* "provider 2, network 1": the classes that failed at all. */
static int
add_failed(json_t *row)
{
	const char *name;
	struct hf_buf b;
	json_t *v;

	hf_buf_init(&b, HF_BUF_NOCAP);
	json_object_foreach(json_object_get(row, "failed_by_class"), name, v)
	{
		if (json_integer_value(v) > 0)
			hf_buf_printf(&b, "%s%s %" PRId64,
			    b.size > 0 ? ", " : "", name,
			    (int64_t)json_integer_value(v));
	}
	return set_text(row, "failed_text", &b);
}

/* When its state changes by itself, as far as that is known. */
static int
add_until(json_t *row)
{
	json_t *until = json_object_get(row, "breaker_until_us");

	if (json_is_true(json_object_get(row, "disabled")))
		return 0;
	if (json_integer_value(until) == 0)
		until = json_object_get(row, "limited_until_us");
	return json_integer_value(until) == 0 ?
	    0 :
	    json_object_set(row, "until_us", until);
}

static int
add_last_error(json_t *row)
{
	struct hf_buf b;

	hf_buf_init(&b, HF_BUF_NOCAP);
	put_string(&b, json_object_get(row, "last_error"));
	if (b.size > 0 && integer(row, "last_error_status") > 0)
		hf_buf_printf(
		    &b, " HTTP %" PRId64, integer(row, "last_error_status"));
	return set_text(row, "last_error_text", &b);
}

static int
add_words(json_t *row)
{
	int rc = join_routes(row);

	rc |= add_admitted(row);
	rc |= add_quota(row);
	rc |= add_failed(row);
	rc |= add_until(row);
	return rc | add_last_error(row);
}

/* --- list ----------------------------------------------------------------- */

static const struct hf_ctl_column target_columns[] = {
	{ "TARGET", "name", TEXT },
	{ "STATE", "state", TEXT },
	{ "UNTIL", "until_us", TIME },
	{ "IN_FLIGHT", "in_flight", INT },
	{ "WAITING", "waiting", INT },
	{ "ADMITTED", "admitted_text", TEXT },
	{ "CALLS", "calls", INT },
	{ "ANSWERED", "answered", INT },
	{ "FAILED", "failed", INT },
	{ "CUT", "cut", INT },
	{ "P50_MS", "first_token_p50_us", MS },
	{ "P99_MS", "first_token_p99_us", MS },
	{ "LAST_ERROR", "last_error_text", TEXT },
	{ "AT", "last_error_at_us", TIME },
	{ "ROUTES", "routes_text", TEXT },
};

/* A provider that no route names, as a line of its own. */
static int
add_bare(json_t *rows, json_t *provider)
{
	json_t *name = json_object_get(provider, "name");
	json_t *row = json_object();
	bool off = json_is_true(json_object_get(provider, "disabled"));
	int rc = row == NULL ? -1 : 0;

	if (rc == 0 && json_is_string(name))
		rc = json_object_set(row, "name", name);
	if (rc == 0 && off)
		rc = json_object_set_new(row, "state", json_string("disabled"));
	if (rc != 0) {
		json_decref(row);
		return -1;
	}
	return json_array_append_new(rows, row);
}

int
hf_ctl_text_providers(const struct hf_ctl *ctl, json_t *doc, FILE *out)
{
	json_t *rows = json_array(), *p, *t;
	size_t i, k;
	int rc = rows == NULL ? -1 : 0;

	json_array_foreach(doc, i, p)
	{
		json_t *targets = json_object_get(p, "targets");

		if (json_array_size(targets) == 0)
			rc |= add_bare(rows, p);
		json_array_foreach(targets, k, t)
		{
			if (!json_is_object(t))
				continue;
			rc |= add_words(t);
			rc |= json_array_append(rows, t);
		}
	}
	if (rc == 0 && json_array_size(rows) > 0)
		rc = hf_ctl_table(target_columns, hf_countof(target_columns),
		    rows, !ctl->no_headers, out);
	json_decref(rows);
	return rc;
}

/* --- show ----------------------------------------------------------------- */

static const struct hf_ctl_column provider_lines[] = {
	{ "provider", "name", TEXT },
	{ "dialect", "dialect", TEXT },
	{ "base URL", "base_url", TEXT },
	{ "API version", "api_version", TEXT },
	{ "API key", "api_key_key", TEXT },
	{ "kept in", "api_key_from", TEXT },
	{ "disabled", "disabled", BOOL },
};
static const struct hf_ctl_column target_lines[] = {
	{ "target", "name", TEXT },
	{ "model", "model", TEXT },
	{ "routes", "routes_text", TEXT },
	{ "state", "state", TEXT },
	{ "disabled as", "disabled_as", TEXT },
	{ "breaker", "breaker", TEXT },
	{ "since", "breaker_since_us", TIME },
	{ "until", "breaker_until_us", TIME },
	{ "failed in row", "failures_in_row", INT },
	{ "ramp answers", "ramp_answers", INT },
	{ "limited until", "limited_until_us", TIME },
	{ "in flight", "in_flight", INT },
	{ "waiting", "waiting", INT },
	{ "quota", "quota_text", TEXT },
	{ "admitted", "admitted_text", TEXT },
	{ "calls", "calls", INT },
	{ "answered", "answered", INT },
	{ "failed", "failed", INT },
	{ "by class", "failed_text", TEXT },
	{ "HTTP 429", "limited", INT },
	{ "cut", "cut", INT },
	{ "last error", "last_error_text", TEXT },
	{ "at", "last_error_at_us", TIME },
	{ "first tokens", "first_tokens", INT },
	{ "p50 ms", "first_token_p50_us", MS },
	{ "p99 ms", "first_token_p99_us", MS },
};

static int
show_settings(json_t *settings, FILE *out)
{
	const char *name;
	struct hf_buf b, v;
	json_t *value;
	int rc = 0;

	json_object_foreach(settings, name, value)
	{
		hf_buf_init(&b, HF_BUF_NOCAP);
		hf_buf_init(&v, HF_BUF_NOCAP);
		hf_ctl_escape(&b, hf_str(name));
		hf_ctl_put_cell(&v, value, json_is_string(value) ? TEXT : INT);
		if (hf_buf_ok(&b) && b.size > 0)
			rc |= hf_ctl_line(b.data, &v, out);
		else
			hf_buf_free(&v);
		hf_buf_free(&b);
	}
	return rc;
}

int
hf_ctl_text_provider(const struct hf_ctl *ctl, json_t *doc, FILE *out)
{
	json_t *t;
	size_t i;
	int rc =
	    hf_ctl_lines(provider_lines, hf_countof(provider_lines), doc, out);

	(void)ctl;
	json_array_foreach(json_object_get(doc, "targets"), i, t)
	{
		if (rc != 0 || !json_is_object(t))
			break;
		rc = add_words(t);
		fputc('\n', out);
		if (rc == 0)
			rc = hf_ctl_lines(
			    target_lines, hf_countof(target_lines), t, out);
		if (rc == 0)
			rc = show_settings(json_object_get(t, "settings"), out);
	}
	return rc;
}

/* --- test ----------------------------------------------------------------- */

static const struct hf_ctl_column test_columns[] = {
	{ "TARGET", "target", TEXT },
	{ "RESULT", "result", TEXT },
	{ "REASON", "reason", TEXT },
	{ "HTTP", "status", SOME },
	{ "ADDRESS", "address", TEXT },
	{ "RESOLVED_MS", "resolved_us", MS },
	{ "CONNECTED_MS", "connected_us", MS },
	{ "TLS_MS", "secured_us", MS },
	{ "FIRST_TOKEN_MS", "first_token_us", MS },
	{ "TOTAL_MS", "total_us", MS },
	{ "TEXT", "text", TEXT },
};

int
hf_ctl_text_tests(const struct hf_ctl *ctl, json_t *doc, FILE *out)
{
	return json_array_size(doc) == 0 ?
	    0 :
	    hf_ctl_table(test_columns, hf_countof(test_columns), doc,
		!ctl->no_headers, out);
}

/* --- failovers ------------------------------------------------------------ */

static const struct hf_ctl_column failover_columns[] = {
	{ "AT", "at_us", TIME },
	{ "SESSION", "session", TEXT },
	{ "TURN", "turn_seq", INT },
	{ "FROM", "from", TEXT },
	{ "TO", "to", TEXT },
	{ "CLASS", "cls", TEXT },
	{ "REASON", "reason", TEXT },
	{ "HTTP", "status", SOME },
	{ "GAP_MS", "gap_us", MS },
	{ "SEAM", "seam", TEXT },
	{ "HISTORY", "history", TEXT },
	{ "OUTCOME", "outcome", TEXT },
	{ "ROW", "row", INT },
};
static const struct hf_ctl_column summary_columns[] = {
	{ "TARGET", "target", TEXT },
	{ "CLASS", "cls", TEXT },
	{ "FAILOVERS", "failovers", INT },
	{ "ANSWERED", "answered", INT },
	{ "IN_STREAM", "in_stream", INT },
	{ "SHORTENED", "shortened", INT },
	{ "P50_MS", "gap_p50_us", MS },
	{ "P99_MS", "gap_p99_us", MS },
	{ "LAST", "last_us", TIME },
};

/* Where the answer was taken up, and how much of the history was sent. */
static int
add_seam(json_t *row)
{
	struct hf_buf b;
	int rc;

	hf_buf_init(&b, HF_BUF_NOCAP);
	if (integer(row, "from_bytes") > 0)
		hf_buf_printf(
		    &b, "at byte %" PRId64, integer(row, "from_bytes"));
	else
		hf_buf_puts(&b, "before");
	rc = set_text(row, "seam", &b);
	hf_buf_init(&b, HF_BUF_NOCAP);
	if (integer(row, "items") > 0)
		hf_buf_printf(&b, "%" PRId64 " of %" PRId64,
		    integer(row, "items"), integer(row, "items_of"));
	return rc | set_text(row, "history", &b);
}

int
hf_ctl_text_failovers(const struct hf_ctl *ctl, json_t *doc, FILE *out)
{
	json_t *v;
	size_t i;

	json_array_foreach(doc, i, v) if (add_seam(v) != 0) return -1;
	return json_array_size(doc) == 0 ?
	    0 :
	    hf_ctl_table(failover_columns, hf_countof(failover_columns), doc,
		!ctl->no_headers, out);
}

int
hf_ctl_text_failover_summary(const struct hf_ctl *ctl, json_t *doc, FILE *out)
{
	return json_array_size(doc) == 0 ?
	    0 :
	    hf_ctl_table(summary_columns, hf_countof(summary_columns), doc,
		!ctl->no_headers, out);
}
