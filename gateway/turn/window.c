/*
 * Context windows: what of a history a target is told, and what is learned
 * from those that refuse a payload as too long.  Of a turn whose route knows no
 * window nothing is counted.  Loop thread.
 */
#include <config.h>

#include "gateway/turn/turn_internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "gateway/turn/fit.h"
#include "gateway/turn/tokens.h"

#define AROUND 4 /* tokens of a request beside its messages */
/* What is left of a payload that was refused, in hundredths: where the window
 * is known, so that the estimate was wrong; and where it is not. */
#define AGAIN_KNOWN 75
#define AGAIN_UNKNOWN 50
/* Of the room, and of what a provider's own numbers allow, likewise. */
#define MARGIN 97

static struct hf_target_row *
row_of(const struct hf_turn *t, unsigned i)
{
	return hf_target_row(t->env->shm, t->in.route->target[i]->name);
}

static int64_t
window_of(const struct hf_turn *t, unsigned i)
{
	return hf_target_window(
	    row_of(t, i), &t->in.route->target[i]->call, hf_now_us());
}

static unsigned
n_targets(const struct hf_turn *t)
{
	return t->plan.n_target;
}

bool
window_matters(const struct hf_turn *t)
{
	for (unsigned i = 0; i < n_targets(t); i++)
		if (t->limit[i] > 0 || window_of(t, i) > 0)
			return true;
	return false;
}

/* --- counting ------------------------------------------------------------- */

/* Tokens of what goes with the history. */
static int64_t
beside(const struct hf_payload_input *in)
{
	return AROUND + hf_tokens(in->instruction) +
	    hf_tokens(hf_json_get(in->params, "tools").raw) +
	    hf_tokens(hf_json_get(in->params, "response_format").raw);
}

static bool
was_pinned_now(const struct hf_turn *t, const struct hf_item *item)
{
	const struct hf_draft *d = &t->in.draft;

	for (unsigned i = 0; i < d->n; i++)
		if (hf_item_is_pinned(d->item[i].body) &&
		    memcmp(d->item[i].digest, item->digest,
			sizeof(item->digest)) == 0)
			return true;
	return false;
}

/* Items that were stored as pinned, or that the client's list pins now. */
static void
mark_pinned(struct hf_turn *t, const struct payload *p, struct hf_fit_item *fit)
{
	bool now = t->durable && t->in.draft.n_pinned > 0;

	if (now) /* of a turn that was taken over they are not made yet */
		hf_draft_digest(&t->in.draft, &t->head.key);
	for (unsigned i = 0; i < p->in.n_item; i++)
		fit[i].pinned = hf_item_is_pinned(p->in.item[i].body) ||
		    (now && was_pinned_now(t, &p->in.item[i]));
}

/* The history as hf_fit() knows it, with its tokens; NULL: no memory. */
static struct hf_fit_item *
measure(struct payload *p, int64_t *total)
{
	struct hf_fit_item *fit =
	    hf_arena_alloc(&p->arena, (p->in.n_item + 1) * sizeof(*fit));

	for (unsigned i = 0; fit != NULL && i < p->in.n_item; i++) {
		const struct hf_item *item = &p->in.item[i];

		fit[i] = (struct hf_fit_item){ .tokens = hf_tokens_item(item),
			.turn = item->turn_row,
			.kind = item->kind,
			.role = item->role,
			.call = HF_FIT_NONE };
		*total += fit[i].tokens;
	}
	return fit;
}

static int
link_results(struct payload *p, struct hf_fit_item *fit, struct hf_error *e)
{
	uint32_t *call =
	    hf_arena_alloc(&p->arena, (p->in.n_item + 1) * sizeof(*call));
	int rc;

	if (call == NULL)
		return hf_fail(e, HF_ENOMEM, "no memory to fit a history");
	rc = hf_history_links(p->in.item, p->in.n_item, call, e);
	for (unsigned i = 0; rc == 0 && i < p->in.n_item; i++)
		fit[i].call = call[i];
	return rc;
}

/* --- fitting -------------------------------------------------------------- */

/* Tokens that target 'i' has for the history and what goes with it. */
static int64_t
room_of(const struct hf_turn *t, unsigned i, struct hf_json params)
{
	int64_t window = window_of(t, i), room = INT64_MAX;

	if (window > 0)
		room = (window -
			   hf_output_room(
			       t->in.route->target[i], params, window)) *
		    MARGIN / 100;
	if (t->limit[i] > 0 && t->limit[i] < room)
		room = t->limit[i];
	return room;
}

static int64_t
corrected(const struct hf_turn *t, unsigned i, int64_t estimated)
{
	return hf_target_tokens(row_of(t, i), estimated);
}

/* So many tokens of our estimate are 'room' of the target's. */
static int64_t
estimated_room(const struct hf_turn *t, unsigned i, int64_t room)
{
	int64_t thousand = corrected(t, i, 1000);

	return room >= INT64_MAX / 1000 ? room : room * 1000 / thousand;
}

/* Is there a target that cannot hold all? */
static bool
is_tight(const struct hf_turn *t, const struct hf_payload_input *in,
    int64_t estimated)
{
	for (unsigned i = 0; i < n_targets(t); i++)
		if (corrected(t, i, estimated) > room_of(t, i, in->params))
			return true;
	return false;
}

/* What is known of the targets' sizes, for the choice of the next one. */
static void
tell_plan(struct hf_turn *t, const struct hf_payload_input *in, int64_t least)
{
	for (unsigned i = 0; i < n_targets(t); i++) {
		t->plan.target[i].window = window_of(t, i);
		t->plan.target[i].small =
		    corrected(t, i, least) > room_of(t, i, in->params);
	}
}

/* Only what is kept. */
static int
leave_out(struct payload *p, const struct hf_fit_item *fit, struct hf_error *e)
{
	struct hf_item *item =
	    hf_arena_alloc(&p->arena, (p->in.n_item + 1) * sizeof(*item));
	unsigned n = 0;

	if (item == NULL)
		return hf_fail(e, HF_ENOMEM, "no memory to fit a history");
	for (unsigned i = 0; i < p->in.n_item; i++)
		if (fit[i].keep)
			item[n++] = p->in.item[i];
	p->in.item = item;
	p->in.n_item = n;
	p->in.body = NULL; /* that is by index */
	return 0;
}

static int
choose(struct hf_turn *t, unsigned i, bool measured, struct payload *p,
    struct hf_fit_item *fit, int64_t extra, struct hf_error *e)
{
	struct fitted *f = &p->fit;
	int64_t room = estimated_room(t, i, f->room) - extra;
	struct hf_fit r;
	int rc = link_results(p, fit, e);

	if (rc < 0)
		return rc;
	mark_pinned(t, p, fit);
	hf_fit(fit, p->in.n_item, measured ? INT64_MAX : room, &r);
	f->least = corrected(t, i, r.minimum + extra);
	tell_plan(t, &p->in, r.minimum + extra);
	f->too_small = !r.fits;
	if (f->too_small || r.items == 0)
		return 0;
	f->estimated = r.tokens + extra;
	f->tokens = corrected(t, i, f->estimated);
	f->turns = r.turns;
	f->items = r.items;
	return leave_out(p, fit, e);
}

int
window_fit(struct hf_turn *t, unsigned i, bool measured, struct payload *p,
    struct hf_error *e)
{
	struct fitted *f = &p->fit;
	struct hf_fit_item *fit;
	int64_t extra;

	f->window = p->in.window = window_of(t, i);
	f->room = INT64_MAX;
	if (!measured && !window_matters(t))
		return 0;
	extra = f->estimated = beside(&p->in);
	fit = measure(p, &f->estimated);
	if (fit == NULL)
		return hf_fail(e, HF_ENOMEM, "no memory to fit a history");
	f->known = true;
	f->tokens = corrected(t, i, f->estimated);
	f->room = room_of(t, i, p->in.params);
	if (!measured && !is_tight(t, &p->in, f->estimated)) {
		tell_plan(t, &p->in, 0);
		return 0;
	}
	return choose(t, i, measured, p, fit, extra, e);
}

bool
window_holds(const struct hf_turn_env *env, const struct hf_payload_input *in)
{
	const struct hf_conf_target *target = in->target;
	struct hf_target_row *row = hf_target_row(env->shm, target->name);
	int64_t window = hf_target_window(row, &target->call, hf_now_us());
	int64_t tokens = beside(in);

	if (window == 0)
		return true;
	for (unsigned i = 0; i < in->n_item; i++)
		tokens += hf_tokens_item(&in->item[i]);
	return hf_target_tokens(row, tokens) <=
	    (window - hf_output_room(target, in->params, window)) * MARGIN /
	    100;
}

/* --- learning ------------------------------------------------------------- */

/* How many tokens, as we count them, the target is told at most after it has
 * refused 'f'. */
static int64_t
next_limit(const struct fitted *f, int64_t room, int64_t sent)
{
	if (room > 0 && sent > room)
		return f->tokens * room / sent * MARGIN / 100;
	if (room > 0 && room < f->tokens)
		return room * MARGIN / 100;
	return f->tokens * (f->window > 0 ? AGAIN_KNOWN : AGAIN_UNKNOWN) / 100;
}

/* A payload of which nothing is known, or not the least, was a whole one: that
 * is looked at once more. */
static bool
look_again(struct hf_turn *t, struct hf_attempt *a)
{
	struct fitted *f = &a->fit;
	struct hf_error e = { 0 };
	struct payload p;

	if (f->known && f->least > 0)
		return true;
	if (payload_load(t, a->target, true, &p, &e) == 0 && p.fit.known) {
		f->known = true;
		f->estimated = p.fit.estimated;
		f->tokens = p.fit.tokens;
		f->least = p.fit.least;
	}
	payload_free(&p);
	return f->known;
}

/* It counted the room that was asked for the answer as well, of which it will
 * be asked less now that its window is known. */
static bool
is_room_for_answer(const struct hf_conf_target *target, struct hf_json params,
    int64_t before, int64_t window, int64_t sent)
{
	int64_t room = hf_output_room(target, params, window);

	return target->provider->dialect == HF_DIALECT_ANTHROPIC &&
	    room < hf_output_room(target, params, before) && sent > 0 &&
	    sent + room <= window;
}

void
window_refused(struct hf_attempt *a)
{
	struct hf_turn *t = a->t;
	const struct hf_conf_target *target = t->in.route->target[a->target];
	struct outcome *o = &a->outcome;
	struct fitted *f = &a->fit;
	int64_t window, sent, limit, room = 0;
	struct hf_json params;
	bool same = false;

	if (!look_again(t, a) ||
	    hf_json_check(t->in.params, &params, NULL, NULL) < 0)
		return;
	hf_window_refusal(hf_buf_str(&o->message), &window, &sent);
	if (window > 0) {
		hf_target_set_window(row_of(t, a->target), window, hf_now_us());
		room = window - hf_output_room(target, params, window);
		same =
		    is_room_for_answer(target, params, f->window, window, sent);
	}
	limit = same ? f->tokens : next_limit(f, room, sent);
	o->holds = f->tokens > f->window ? f->tokens : f->window;
	o->shrinks = same || (limit >= f->least && f->least < f->tokens);
	if (o->shrinks) /* else, if ever, it is asked with the same again */
		t->limit[a->target] = limit;
	t->holds &= ~(1u << a->target);
	t->plan.target[a->target].window = window_of(t, a->target);
	hf_log(HF_LOG_INFO,
	    "turn: too_long turn=%s n=%u target=%s tokens=%lld window=%lld "
	    "counted=%lld next=%lld",
	    t->id.s, a->n, target->name, (long long)f->tokens,
	    (long long)window, (long long)sent,
	    o->shrinks ? (long long)limit : 0LL);
}

void
window_answered(struct hf_attempt *a)
{
	if (a->fit.known && a->t != NULL)
		hf_target_learn_tokens(row_of(a->t, a->target),
		    a->fit.estimated, a->tokens_in, a->tokens_cached >= 0);
}
