/*
 * Which printer, and the two short ones.
 */
#include <config.h>

#include "ctl/render.h"

#include <unistd.h>

#include "base/clock.h"
#include "ctl/escape.h"

/* Times of the day; every other *_us is a duration. */
static const char *const times[] = { "created", "updated", "started", "ended",
	"revoked", "lock_since", "called", "gone", "delivered", "at", "last",
	"last_error_at", "breaker_since", "breaker_until", "limited_until" };

static int
add_times(json_t *o)
{
	char name[32], text[32];
	json_t *v;

	for (size_t i = 0; i < hf_countof(times); i++) {
		snprintf(name, sizeof(name), "%s_us", times[i]);
		v = json_object_get(o, name);
		if (!json_is_integer(v))
			continue;
		hf_wall_format(json_integer_value(v), text);
		if (json_object_set_new(o, times[i],
			json_integer_value(v) == 0 ? json_null() :
						     json_string(text)) != 0)
			return -1;
	}
	return 0;
}

#define DEPTH_MOST 8 /* of lists and members; there are fewer */

static int
add_all_times(json_t *doc, int depth)
{
	const char *name;
	size_t i;
	json_t *v;
	int rc = 0;

	if (depth == DEPTH_MOST)
		return 0;
	if (json_is_array(doc)) {
		json_array_foreach(doc, i, v) rc |= add_all_times(v, depth + 1);
		return rc;
	}
	if (!json_is_object(doc))
		return 0;
	json_object_foreach(doc, name, v) rc |= add_all_times(v, depth + 1);
	return rc | add_times(doc);
}

int
hf_ctl_render_json(
    const struct hf_ctl *ctl, enum hf_ctl_doc kind, json_t *doc, FILE *out)
{
	/* Nothing that steers a terminal may reach one unescaped. */
	size_t flags =
	    JSON_INDENT(2) | (isatty(fileno(out)) ? JSON_ENSURE_ASCII : 0);

	(void)ctl;
	(void)kind;
	if (add_all_times(doc, 0) != 0 || json_dumpf(doc, out, flags) != 0)
		return -1;
	return fputc('\n', out) == EOF ? -1 : 0;
}

static void
print_id(json_t *o, const char *member, FILE *out)
{
	json_t *v = json_object_get(o, member);
	struct hf_buf b;

	if (!json_is_string(v))
		return;
	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_ctl_escape(
	    &b, (struct hf_str){ json_string_value(v), json_string_length(v) });
	if (hf_buf_ok(&b) && b.size > 0)
		fprintf(out, "%s\n", b.data);
	hf_buf_free(&b);
}

/* Each session that something was found in, once. */
static void
print_suspects(json_t *findings, FILE *out)
{
	const char *last = "", *id;
	size_t i;
	json_t *v;

	json_array_foreach(findings, i, v)
	{
		id = json_string_value(json_object_get(v, "session"));
		if (id == NULL || strcmp(id, last) == 0)
			continue;
		print_id(v, "session", out);
		last = id;
	}
}

int
hf_ctl_render_ids(
    const struct hf_ctl *ctl, enum hf_ctl_doc kind, json_t *doc, FILE *out)
{
	size_t i;
	json_t *v;

	(void)ctl;
	switch (kind) {
	case HF_CTL_DOC_STATUS:
	case HF_CTL_DOC_CHECK:
	case HF_CTL_DOC_TIMELINE:
	case HF_CTL_DOC_WARNINGS:
	case HF_CTL_DOC_CONFIG:
	case HF_CTL_DOC_EXPLAIN:
	case HF_CTL_DOC_ERRORS:
	case HF_CTL_DOC_RELOAD:
	case HF_CTL_DOC_DRAIN:
	case HF_CTL_DOC_FAILOVER_SUMMARY:
		break;
	case HF_CTL_DOC_VERIFY:
		print_suspects(json_object_get(doc, "findings"), out);
		break;
	case HF_CTL_DOC_LOCKS:
		json_array_foreach(doc, i, v) print_id(v, "session", out);
		break;
	case HF_CTL_DOC_PROVIDERS:
		json_array_foreach(doc, i, v) print_id(v, "name", out);
		break;
	case HF_CTL_DOC_SESSIONS:
	case HF_CTL_DOC_KEYS:
		json_array_foreach(doc, i, v) print_id(v, "id", out);
		break;
	case HF_CTL_DOC_PROVIDER:
		print_id(doc, "name", out);
		break;
	case HF_CTL_DOC_TESTS:
		json_array_foreach(doc, i, v) print_id(v, "target", out);
		break;
	case HF_CTL_DOC_FAILOVERS:
		json_array_foreach(doc, i, v) print_id(v, "turn", out);
		break;
	case HF_CTL_DOC_SESSION:
		print_id(json_object_get(doc, "session"), "id", out);
		break;
	case HF_CTL_DOC_KEY:
		print_id(doc,
		    json_object_get(doc, "secret") != NULL ? "secret" : "id",
		    out);
		break;
	}
	return 0;
}

int
hf_ctl_render(
    const struct hf_ctl *ctl, enum hf_ctl_doc kind, json_t *doc, FILE *out)
{
	hf_ctl_printer_fn print = ctl->json ? hf_ctl_render_json :
	    ctl->quiet			    ? hf_ctl_render_ids :
					      hf_ctl_render_text;

	return print(ctl, kind, doc, out);
}
