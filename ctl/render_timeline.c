/*
 * What happened in turns, a line for each event, as people read it.
 */
#include <config.h>

#include "ctl/render_int.h"

#include <inttypes.h>

#include "ctl/escape.h"

static const struct hf_ctl_column columns[] = {
	{ "TURN", "turn_seq", HF_CTL_INT_CELL },
	{ "MS", "after_us", HF_CTL_MS_CELL },
	{ "EVENT", "event", HF_CTL_TEXT_CELL },
	{ "ATTEMPT", "attempt", HF_CTL_SOME_CELL },
	{ "TARGET", "target", HF_CTL_TEXT_CELL },
	{ "DETAIL", "detail", HF_CTL_TEXT_CELL },
};

static int64_t
integer(json_t *o, const char *member)
{
	return json_integer_value(json_object_get(o, member));
}

static void
put_word(struct hf_buf *b, json_t *o, const char *member)
{
	json_t *v = json_object_get(o, member);

	if (!json_is_string(v) || json_string_length(v) == 0)
		return;
	hf_buf_puts(b, b->size > 0 ? " " : "");
	hf_buf_put(b, json_string_value(v), json_string_length(v));
}

/* All that an event has beside its target, in words. */
static void
put_detail(struct hf_buf *b, json_t *o)
{
	const char *event = json_string_value(json_object_get(o, "event"));
	int64_t bytes = integer(o, "bytes"), of = integer(o, "of");

	put_word(b, o, "state");
	if (event != NULL &&
	    (strcmp(event, "failed") == 0 || strcmp(event, "finished") == 0))
		put_word(b, o, "cls");
	if (event == NULL || strcmp(event, "answered") != 0)
		put_word(b, o, "reason");
	if (integer(o, "status") > 0)
		hf_buf_printf(b, "%sHTTP %" PRId64, b->size > 0 ? " " : "",
		    integer(o, "status"));
	if (integer(o, "omitted_items") > 0)
		hf_buf_printf(b,
		    "%swithout %" PRId64 " turns, %" PRId64 " items",
		    b->size > 0 ? ", " : "", integer(o, "omitted_turns"),
		    integer(o, "omitted_items"));
	if (bytes < 0)
		return;
	hf_buf_puts(b, b->size > 0 ? ", " : "");
	if (event != NULL && strcmp(event, "continued") == 0)
		hf_buf_printf(b, "at byte %" PRId64, bytes);
	else if (of >= 0)
		hf_buf_printf(b, "%" PRId64 " of %" PRId64 " bytes", bytes, of);
	else
		hf_buf_printf(b, "%" PRId64 " bytes", bytes);
}

int
hf_ctl_text_timeline(const struct hf_ctl *ctl, json_t *doc, FILE *out)
{
	struct hf_buf b;
	json_t *v;
	size_t i;
	int rc = 0;

	hf_buf_init(&b, HF_BUF_NOCAP);
	json_array_foreach(doc, i, v)
	{
		hf_buf_reset(&b);
		put_detail(&b, v);
		if (!hf_buf_ok(&b))
			rc = -1;
		else if (b.size > 0)
			rc |= json_object_set_new(
			    v, "detail", json_stringn(b.data, b.size));
	}
	hf_buf_free(&b);
	if (rc != 0 || json_array_size(doc) == 0)
		return rc;
	return hf_ctl_table(
	    columns, hf_countof(columns), doc, !ctl->no_headers, out);
}
