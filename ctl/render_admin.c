/*
 * Documents about the daemon itself as people read them.
 */
#include <config.h>

#include "ctl/render_int.h"

#include <inttypes.h>

#include "ctl/escape.h"

/* A string member, escaped, into 'out'; "-" if it is none. */
static void
put(struct hf_buf *out, json_t *o, const char *member)
{
	hf_ctl_put_cell(out, json_object_get(o, member), HF_CTL_TEXT_CELL);
}

static int64_t
integer(json_t *o, const char *member)
{
	return json_integer_value(json_object_get(o, member));
}

/* Print and free. */
static int
print(struct hf_buf *b, FILE *out)
{
	bool ok = hf_buf_ok(b);

	if (ok && b->size > 0)
		fwrite(b->data, 1, b->size, out);
	hf_buf_free(b);
	return ok ? 0 : -1;
}

/* --- check ---------------------------------------------------------------- */

int
hf_ctl_text_check(json_t *doc, FILE *out)
{
	json_t *v;
	struct hf_buf b;
	size_t i;

	hf_buf_init(&b, HF_BUF_NOCAP);
	json_array_foreach(json_object_get(doc, "checks"), i, v)
	{
		hf_buf_puts(&b,
		    json_is_true(json_object_get(v, "ok")) ? "ok    " :
							     "FAIL  ");
		put(&b, v, "name");
		hf_buf_puts(&b, ": ");
		put(&b, v, "text");
		hf_buf_putc(&b, '\n');
	}
	return print(&b, out);
}

/* --- verify --------------------------------------------------------------- */

static void
put_finding(struct hf_buf *b, json_t *v)
{
	put(b, v, "severity");
	if (json_is_string(json_object_get(v, "session"))) {
		hf_buf_putc(b, ' ');
		put(b, v, "session");
	}
	if (integer(v, "turn_seq") != 0)
		hf_buf_printf(b, " turn %" PRId64, integer(v, "turn_seq"));
	if (integer(v, "idx") >= 0)
		hf_buf_printf(b, " item %" PRId64, integer(v, "idx"));
	hf_buf_puts(b, ": ");
	put(b, v, "what");
	hf_buf_puts(b, ": ");
	put(b, v, "text");
	hf_buf_putc(b, '\n');
}

int
hf_ctl_text_verify(const struct hf_ctl *ctl, json_t *doc, FILE *out)
{
	json_t *sum = json_object_get(doc, "verified"), *v;
	struct hf_buf b;
	size_t i;

	hf_buf_init(&b, HF_BUF_NOCAP);
	json_array_foreach(json_object_get(doc, "findings"), i, v)
	    put_finding(&b, v);
	if (!ctl->no_headers)
		hf_buf_printf(&b,
		    "%s: %" PRId64 " sessions, %" PRId64 " turns, %" PRId64
		    " items; %" PRId64 " corrupt, %" PRId64 " odd\n",
		    integer(sum, "corrupt") != 0 ? "CORRUPT" :
			integer(sum, "odd") != 0 ? "odd" :
						   "clean",
		    integer(sum, "sessions"), integer(sum, "turns"),
		    integer(sum, "items"), integer(sum, "corrupt"),
		    integer(sum, "odd"));
	return print(&b, out);
}

/* --- locks ------------------------------------------------------------------
 */

static const struct hf_ctl_column lock_columns[] = {
	{ "SESSION", "session", HF_CTL_TEXT_CELL },
	{ "TENANT", "tenant", HF_CTL_TEXT_CELL },
	{ "NAME", "name", HF_CTL_TEXT_CELL },
	{ "SLOT", "owner_slot", HF_CTL_INT_CELL },
	{ "INCARNATION", "owner_inc", HF_CTL_INC_CELL },
	{ "OWNER", "owner", HF_CTL_TEXT_CELL },
	{ "TURN", "turn_seq", HF_CTL_SOME_CELL },
	{ "STATE", "turn_state", HF_CTL_TEXT_CELL },
	{ "QUEUED", "queued", HF_CTL_INT_CELL },
	{ "SINCE", "lock_since_us", HF_CTL_TIME_CELL },
};

int
hf_ctl_text_locks(const struct hf_ctl *ctl, json_t *doc, FILE *out)
{
	return json_array_size(doc) == 0 ?
	    0 :
	    hf_ctl_table(lock_columns, hf_countof(lock_columns), doc,
		!ctl->no_headers, out);
}

/* --- configuration -------------------------------------------------------- */

int
hf_ctl_text_warnings(json_t *doc, FILE *out)
{
	json_t *list = json_object_get(doc, "warnings"), *v;
	struct hf_buf b;
	size_t i;

	hf_buf_init(&b, HF_BUF_NOCAP);
	json_array_foreach(list, i, v)
	{
		put(&b, doc, "file");
		if (integer(v, "line") > 0)
			hf_buf_printf(&b, ":%" PRId64, integer(v, "line"));
		hf_buf_puts(&b, ": warning: ");
		put(&b, v, "text");
		hf_buf_putc(&b, '\n');
	}
	put(&b, doc, "file");
	hf_buf_printf(&b, ": configuration is valid, %zu warning%s\n",
	    json_array_size(list), json_array_size(list) == 1 ? "" : "s");
	return print(&b, out);
}

/* As it is: the table escapes it. */
static void
put_raw(struct hf_buf *out, json_t *o, const char *member)
{
	json_t *v = json_object_get(o, member);

	if (json_is_string(v))
		hf_buf_put(out, json_string_value(v), json_string_length(v));
}

/* "gateway.listen", "provider openai.base_url". */
static int
add_name(json_t *v)
{
	struct hf_buf b;
	int rc;

	hf_buf_init(&b, HF_BUF_NOCAP);
	put_raw(&b, v, "block");
	if (json_string_length(json_object_get(v, "title")) > 0) {
		hf_buf_putc(&b, ' ');
		put_raw(&b, v, "title");
	}
	hf_buf_putc(&b, '.');
	put_raw(&b, v, "key");
	rc = hf_buf_ok(&b) ?
	    json_object_set_new(v, "setting", json_stringn(b.data, b.size)) :
	    -1;
	hf_buf_reset(&b);
	if (integer(v, "line") > 0)
		hf_buf_printf(&b, "line %" PRId64, integer(v, "line"));
	else
		put_raw(&b, v, "source");
	if (rc == 0)
		rc = hf_buf_ok(&b) ? json_object_set_new(v, "from",
					 json_stringn(b.data, b.size)) :
				     -1;
	hf_buf_free(&b);
	return rc;
}

static const struct hf_ctl_column setting_columns[] = {
	{ "SETTING", "setting", HF_CTL_TEXT_CELL },
	{ "FROM", "from", HF_CTL_TEXT_CELL },
	{ "VALUE", "value", HF_CTL_TEXT_CELL },
};

int
hf_ctl_text_config(const struct hf_ctl *ctl, json_t *doc, FILE *out)
{
	json_t *config = json_object_get(doc, "config"), *v;
	json_t *list = json_object_get(doc, "settings");
	struct hf_buf b;
	size_t i;
	int rc;

	hf_buf_init(&b, HF_BUF_NOCAP);
	put(&b, config, "file");
	rc = hf_ctl_line("file", &b, out);
	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_buf_printf(&b, "%" PRId64, integer(config, "generation"));
	rc |= hf_ctl_line("generation", &b, out);
	fputc('\n', out);
	json_array_foreach(list, i, v) rc |= add_name(v);
	return rc != 0 ?
	    -1 :
	    hf_ctl_table(setting_columns, hf_countof(setting_columns), list,
		!ctl->no_headers, out);
}

static void
put_key(struct hf_buf *b, json_t *v)
{
	put(b, v, "block");
	hf_buf_putc(b, '.');
	put(b, v, "key");
	hf_buf_puts(b,
	    json_is_true(json_object_get(v, "list")) ? "\n    a list, each " :
						       "\n    ");
	put(b, v, "expected");
	if (json_is_string(json_object_get(v, "default"))) {
		hf_buf_puts(b, "\n    default: ");
		put(b, v, "default");
	}
	if (json_is_true(json_object_get(v, "required")))
		hf_buf_puts(b, "\n    required");
	hf_buf_puts(b,
	    json_is_true(json_object_get(v, "reloadable")) ?
		"\n    a reload changes it\n    " :
		"\n    a change needs a restart\n    ");
	put(b, v, "prose");
	hf_buf_putc(b, '\n');
}

int
hf_ctl_text_explain(json_t *doc, FILE *out)
{
	json_t *v;
	struct hf_buf b;
	size_t i;

	hf_buf_init(&b, HF_BUF_NOCAP);
	json_array_foreach(doc, i, v)
	{
		if (i > 0)
			hf_buf_putc(&b, '\n');
		put_key(&b, v);
	}
	return print(&b, out);
}

static const struct hf_ctl_column error_columns[] = {
	{ "CLASS", "class", HF_CTL_TEXT_CELL },
	{ "SAME TARGET", "same_target", HF_CTL_TEXT_CELL },
	{ "NEXT TARGET", "next_target", HF_CTL_TEXT_CELL },
	{ "BREAKER", "breaker", HF_CTL_TEXT_CELL },
	{ "CLIENT", "client", HF_CTL_TEXT_CELL },
	{ "IF ALL LIMITED/LATE", "client_special", HF_CTL_TEXT_CELL },
	{ "WHAT", "meaning", HF_CTL_TEXT_CELL },
};

/* "503 no_target" */
static int
put_answer(json_t *row, const char *from, const char *to)
{
	json_t *a = json_object_get(row, from);
	int64_t status = json_integer_value(json_object_get(a, "status"));
	const char *code = json_string_value(json_object_get(a, "code"));

	if (!json_is_object(a))
		return 0;
	return json_object_set_new(row, to,
	    status == 0 ? json_string("the provider's") :
			  json_sprintf("%d %s", (int)status, code));
}

int
hf_ctl_text_errors(const struct hf_ctl *ctl, json_t *doc, FILE *out)
{
	json_t *v;
	size_t i;

	json_array_foreach(doc, i, v)
	{
		if (put_answer(v, "answer", "client") != 0 ||
		    put_answer(v, "answer_special", "client_special") != 0)
			return -1;
	}
	return hf_ctl_table(error_columns, hf_countof(error_columns), doc,
	    !ctl->no_headers, out);
}

/* --- reload and drain ----------------------------------------------------- */

int
hf_ctl_text_reload(json_t *doc, FILE *out)
{
	struct hf_buf b;

	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_buf_printf(&b, "reloaded: generation %" PRId64 " serves\n",
	    integer(doc, "generation"));
	if (json_is_string(json_object_get(doc, "restart_needed"))) {
		hf_buf_puts(&b,
		    "changed, but only a restart puts it in "
		    "force: ");
		put(&b, doc, "restart_needed");
		hf_buf_putc(&b, '\n');
	}
	return print(&b, out);
}

int
hf_ctl_text_drain(json_t *doc, FILE *out)
{
	struct hf_buf b;

	hf_buf_init(&b, HF_BUF_NOCAP);
	put(&b, doc, "state");
	if (integer(doc, "turns_in_flight") > 0)
		hf_buf_printf(&b, ": %" PRId64 " turns under way",
		    integer(doc, "turns_in_flight"));
	hf_buf_putc(&b, '\n');
	return print(&b, out);
}
