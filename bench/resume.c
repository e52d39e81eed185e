/*
 * Going on with an answer that broke off.  Pure.
 */
#include <config.h>

#include "bench/resume.h"

#include <stdlib.h>

#include "base/check.h"
#include "bench/rng.h"

#define SPACES " \t\r\n"

static bool
ends_in(struct hf_str s, const char *end)
{
	size_t n = strlen(end);

	return s.size >= n && memcmp(s.p + s.size - n, end, n) == 0;
}

bool
hf_model_prefills(struct hf_str model)
{
	return ends_in(model, HF_MODEL_PREFILLS);
}

bool
hf_model_refuses(struct hf_str model)
{
	return ends_in(model, HF_MODEL_REFUSES);
}

const char *
hf_asked_name(enum hf_asked how)
{
	static const char *const name[] = { "afresh", "prefill",
		"instruction" };

	return name[how];
}

struct hf_asked_view
hf_view_asked(json_t *view)
{
	static const char mark[] = HF_CONTINUE;
	size_t n = json_array_size(view);
	struct hf_asked_view v = { HF_ASKED_AFRESH, n, HF_STR_NONE };
	json_t *last = json_array_get(view, n == 0 ? 0 : n - 1);
	json_t *before = json_array_get(view, n < 2 ? 0 : n - 2);
	struct hf_str text = hf_view_text(last);

	if (n > 0 && hf_view_has_role(last, "assistant") &&
	    json_object_get(last, "calls") == NULL) {
		v.how = HF_ASKED_PREFILL;
		v.n = n - 1;
		v.partial = text;
	} else if (n > 1 && hf_view_has_role(last, "user") &&
	    hf_view_has_role(before, "assistant") &&
	    text.size >= sizeof(mark) - 1 &&
	    memcmp(text.p, mark, sizeof(mark) - 1) == 0) {
		v.how = HF_ASKED_INSTRUCTION;
		v.n = n - 2;
		v.partial = hf_view_text(before);
	}
	return v;
}

/* Without the white space at its end. */
static struct hf_str
trimmed(struct hf_str s)
{
	while (s.size > 0 && memchr(SPACES, s.p[s.size - 1], 4) != NULL)
		s.size--;
	return s;
}

/* Bytes of 'full' that 'partial' has; SIZE_MAX: it is no beginning of it. */
static size_t
beginning(struct hf_str full, struct hf_str partial)
{
	if (partial.size > full.size)
		partial = trimmed(partial);
	if (partial.size <= full.size && partial.size > 0 &&
	    memcmp(full.p, partial.p, partial.size) == 0)
		return partial.size;
	return SIZE_MAX;
}

/* Where the last n words of the first 'size' bytes begin; 0: there are not
 * more. */
static size_t
last_words(const char *text, size_t size, unsigned n)
{
	size_t at = trimmed((struct hf_str){ text, size }).size;

	for (; n > 0 && at > 0; n--) {
		while (at > 0 && strchr(SPACES, text[at - 1]) != NULL)
			at--;
		while (at > 0 && strchr(SPACES, text[at - 1]) == NULL)
			at--;
	}
	return at;
}

static unsigned
repeats(struct hf_str partial)
{
	static const unsigned words[] = { 0, 4, 6 };
	uint64_t h = 7;

	for (size_t i = 0; i < partial.size; i++)
		h = hf_rng_mix(h * 31 + (unsigned char)partial.p[i]);
	return words[h % hf_countof(words)];
}

/* Cuts what was said off the text. */
static void
leave_out(struct hf_resumed *r, struct hf_str partial)
{
	char *full = r->answer.text == NULL ? hf_xstrdup("") : r->answer.text;
	size_t from = beginning(hf_str(full), partial), again;

	if (from == SIZE_MAX) {
		r->answer.text = hf_xstrdup(HF_ANSWER_LOST);
		json_decref(r->answer.calls);
		r->answer.calls = NULL;
	} else if (r->asked == HF_ASKED_PREFILL) {
		r->answer.text = hf_xstrdup(full + from);
	} else {
		r->repeated = repeats(trimmed(partial));
		again = last_words(full, from, r->repeated);
		if (r->repeated == 0 || again == 0) {
			r->repeated = 0;
			again = from + strspn(full + from, SPACES);
		}
		r->answer.text = hf_xstrdup(full + again);
	}
	free(full);
	if (r->answer.text[0] == '\0' && r->answer.calls != NULL) {
		free(r->answer.text);
		r->answer.text = NULL;
	}
}

void
hf_answer_resume(struct hf_resumed *r, json_t *view, json_t *tools,
    const struct hf_lore *lore, struct hf_str model)
{
	struct hf_asked_view v = hf_view_asked(view);
	json_t *base = json_array();

	memset(r, 0, sizeof(*r));
	r->asked = v.how;
	if (v.how == HF_ASKED_PREFILL && !hf_model_prefills(model))
		r->asked = HF_ASKED_AFRESH;
	for (size_t i = 0; i < v.n; i++)
		json_array_append(base, json_array_get(view, i));
	hf_answer_make(&r->answer, base, tools, lore);
	json_decref(base);
	if (r->asked != HF_ASKED_AFRESH)
		leave_out(r, v.partial);
}
