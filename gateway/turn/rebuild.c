/*
 * Rebuilding: the payload of one attempt, made from what is on disk, in that
 * target's dialect.  Nothing of it outlives the call.  Loop thread.
 */
#include <config.h>

#include "gateway/turn/turn_internal.h"

#include "base/check.h"

#define HISTORY_MAX ((size_t)256 * 1024 * 1024)

bool
turn_upstream_stream(
    const struct hf_turn *t, const struct hf_conf_target *target)
{
	return t->in.stream || target->call.upstream_stream == HF_STREAM_ALWAYS;
}

/* For measuring the stateless baseline only: what a gateway without memory
 * hands to its fallback. */
static void
last_user_message(struct hf_history *h)
{
	for (unsigned i = h->n; i > 0; i--) {
		if (h->item[i - 1].role == HF_ROLE_USER) {
			h->item = &h->item[i - 1];
			h->n = 1;
			return;
		}
	}
}

/* The history that this attempt's target must hear: from disk, or, for a
 * turn without a session, from the request. */
static int
load_history(struct hf_turn *t, struct payload *p, struct hf_history *h,
    struct hf_error *e)
{
	int rc = 0;

	if (t->durable) {
		if (t->read != NULL)
			*h = *t->read;
		else
			rc = hf_store_history(t->env->store, t->session_row,
			    t->turn_row, &p->arena, h, e);
		if (rc < 0)
			return rc;
		hf_count(t->env->shm, HF_C_history_items_rebuilt, h->n);
	} else {
		h->item = t->in.draft.item;
		h->n = t->in.draft.n;
	}
	p->items_of = h->n;
	if (p->in.target != t->in.route->target[t->plan.first] &&
	    t->in.route->failover_payload == HF_PAYLOAD_LAST_USER)
		last_user_message(h);
	return 0;
}

/* The last words of a text, for the instruction. */
static struct hf_str
last_words(struct hf_str text, unsigned n)
{
	size_t i = text.size;

	while (i > 0 && n > 0) {
		while (i > 0 && text.p[i - 1] == ' ')
			i--;
		while (i > 0 && text.p[i - 1] != ' ' && text.size - i < 200)
			i--;
		n--;
		if (text.size - i >= 200)
			break;
	}
	/* Not into the middle of a character. */
	while (i < text.size && ((unsigned char)text.p[i] & 0xc0) == 0x80)
		i++;
	return (struct hf_str){ text.p + i, text.size - i };
}

/* Is 'text', as it was read from disk, what the client was given?  Of a long
 * one only the end is known here; each part is sealed in its place. */
static bool
is_delivered(const struct hf_turn *t, struct hf_str text)
{
	if (text.size != turn_text_size(t))
		return false;
	text.p += t->text_base;
	text.size -= t->text_base;
	return hf_str_eq(text, hf_buf_str(&t->answer.text));
}

/* What the client has of the answer, from disk where there is one. */
static int
load_delivered(struct hf_turn *t, struct hf_buf *out, struct hf_error *e)
{
	int rc;

	hf_buf_init(out, HF_BUF_NOCAP);
	if (!t->durable) {
		hf_buf_putstr(out, hf_buf_str(&t->answer.text));
		return 0;
	}
	rc = hf_store_text(
	    t->env->store, t->session_row, t->turn_row, t->seq, out, e);
	if (rc == 0 && !is_delivered(t, hf_buf_str(out)))
		return hf_fail(e, HF_ECORRUPT,
		    "the stored text is not what "
		    "was delivered");
	return rc;
}

/* An answer that broke off: the partial text as the assistant's last message
 * and, unless the target simply goes on with that, words that ask for the
 * rest.  Neither is stored. */
static int
add_partial(struct hf_turn *t, struct hf_arena *a, struct hf_history *h,
    struct hf_payload_input *in, struct hf_error *e)
{
	struct hf_item *item = hf_arena_alloc(a, (h->n + 1) * sizeof(*item));
	struct hf_buf body, norm;
	enum hf_splice_mode mode;
	struct hf_str text;
	int rc;

	hf_buf_init(&body, HF_BUF_NOCAP);
	hf_buf_init(&norm, HF_BUF_NOCAP);
	hf_buf_free(&t->before);
	rc = load_delivered(t, &t->before, e);
	if (rc == 0 && !hf_buf_ok(&t->before))
		rc = hf_fail(e, HF_ENOMEM, "no memory to continue");
	if (rc < 0)
		goto out;
	text = hf_buf_str(&t->before);
	if (!turn_continue_mode(t, in->target, &mode, &in->prefill)) {
		rc = hf_fail(e, HF_EINVAL,
		    "this target cannot go on with an "
		    "answer that broke off");
		goto out;
	}
	if (mode == HF_SPLICE_HIDDEN && !in->prefill)
		goto out;
	hf_item_text_body(text, HF_STR_NONE, &body, &norm);
	if (item != NULL) {
		memcpy(item, h->item, h->n * sizeof(*item));
		item[h->n].kind = HF_ITEM_MESSAGE;
		item[h->n].role = HF_ROLE_ASSISTANT;
		item[h->n].body = hf_arena_dup(a, hf_buf_str(&body));
		h->item = item;
		h->n++;
	}
	if (!in->prefill) {
		hf_buf_reset(&body);
		hf_buf_puts(&body, t->in.route->continuation_text);
		hf_buf_puts(&body, " It ended with: \xc2\xab");
		hf_buf_putstr(&body, last_words(text, 12));
		hf_buf_puts(&body, "\xc2\xbb");
		in->instruction = hf_arena_dup(a, hf_buf_str(&body));
	}
	if (item == NULL || !hf_buf_ok(&body) ||
	    h->item[h->n - 1].body.p == NULL ||
	    (!in->prefill && in->instruction.p == NULL))
		rc = hf_fail(e, HF_ENOMEM, "no memory to continue");
out:
	hf_buf_free(&body);
	hf_buf_free(&norm);
	return rc;
}

static int
load(struct hf_turn *t, unsigned i, bool measured, struct payload *p,
    struct hf_error *e)
{
	struct hf_history h = { 0 };
	int rc = load_history(t, p, &h, e);

	p->items = h.n;
	if (rc == 0 && t->started)
		rc = add_partial(t, &p->arena, &h, &p->in, e);
	if (rc < 0)
		return rc;
	p->in.item = h.item;
	p->in.n_item = h.n;
	if (h.item == t->in.draft.item)
		p->in.body = t->in.draft.body;
	p->in.stream = turn_upstream_stream(t, p->in.target);
	rc = hf_json_check(t->in.params, &p->in.params, NULL, e);
	HF_CHECK(rc == 0);
	rc = window_fit(t, i, measured, p, e);
	p->items -= p->fit.items;
	return rc;
}

int
payload_load(struct hf_turn *t, unsigned i, bool measured, struct payload *p,
    struct hf_error *e)
{
	int rc;

	*p = (struct payload){ .in = { .target = t->in.route->target[i] } };
	hf_arena_init(&p->arena, HISTORY_MAX);
	rc = load(t, i, measured, p, e);
	p->unsayable = rc == HF_EINVAL;
	if (p->unsayable)
		p->why = *e;
	return p->unsayable ? 0 : rc;
}

void
payload_free(struct payload *p)
{
	hf_arena_free(&p->arena);
}

int
payload_build(struct payload *p, struct hf_http_request *rq, struct hf_error *e)
{
	const struct hf_dialect *d =
	    hf_dialect(p->in.target->provider->dialect);

	if (p->unsayable) {
		*e = p->why;
		return HF_EINVAL;
	}
	return d->build(&p->in, rq, e) < 0 ? HF_EINVAL : 0;
}
