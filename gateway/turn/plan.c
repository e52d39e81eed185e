/*
 * Failover policy of one turn.
 */
#include <config.h>

#include "gateway/turn/plan.h"

#include "base/check.h"

void
hf_plan_init(
    struct hf_plan *p, const struct hf_conf_route *r, int64_t deadline_us)
{
	HF_CHECK(r->n_target > 0);
	*p = (struct hf_plan){
		.n_target = r->n_target < HF_PLAN_TARGETS ? r->n_target :
							    HF_PLAN_TARGETS,
		.max_waits = (unsigned)r->max_retries,
		.unit_ms = r->backoff_unit_ms,
		.cap_ms = r->backoff_cap_ms,
		.deadline_us = deadline_us,
		.rnd = hf_backoff_random,
	};
	for (unsigned i = 0; i < p->n_target; i++)
		p->order[i] = i;
	for (unsigned c = 0; c < HF_N_CLASS; c++)
		p->action[c] = r->on_error[c] != HF_ACTION_DEFAULT ?
		    (enum hf_action)r->on_error[c] :
		    hf_class_row((enum hf_class)c)->action;
}

void
hf_plan_stay(struct hf_plan *p, unsigned home, unsigned lead)
{
	unsigned n = 0;

	HF_CHECK(home < p->n_target && lead < p->n_target);
	p->order[n++] = lead;
	if (home != lead)
		p->order[n++] = home;
	for (unsigned i = 0; i < p->n_target; i++)
		if (i != home && i != lead)
			p->order[n++] = i;
}

static int64_t
opens_us(const struct hf_plan *p, unsigned t, int64_t now_us)
{
	return p->opens == NULL ? 0 : p->opens(p->opens_arg, t, now_us);
}

static bool
is_disabled(const struct hf_plan *p, unsigned t)
{
	return p->is_disabled != NULL && p->is_disabled(p->opens_arg, t);
}

static int64_t
paced_us(const struct hf_plan *p, unsigned t, int64_t now_us)
{
	return p->paced == NULL ? 0 : p->paced(p->opens_arg, t, now_us);
}

/* Who comes first, of those that may be asked: after one that could not hold
 * the conversation those that are larger, or not known to be smaller; and one
 * that lost a race that it led after the others. */
static unsigned
rank(const struct hf_plan *p, const struct hf_plan_target *t)
{
	bool smaller = t->window > 0 && t->window <= p->holds;

	return 2u * smaller + t->slow;
}

/* 'any': also one that is too small, for the record. */
static int
next_target(const struct hf_plan *p, bool any, int64_t now_us)
{
	int next = -1;

	for (unsigned k = 0; k < p->n_target; k++) {
		unsigned i = p->order[k];
		const struct hf_plan_target *t = &p->target[i];

		if (t->tried || t->not_before_us > now_us ||
		    (t->small && !any) || opens_us(p, i, now_us) > now_us ||
		    paced_us(p, i, now_us) > now_us)
			continue;
		if (next < 0 || rank(p, t) < rank(p, &p->target[next]))
			next = (int)i;
	}
	return next;
}

/* All that are left are closed or full.  To wait in the line of one that is
 * not closed is better than to ask one that is; of several the first in time.
 */
static int
first_to_open(const struct hf_plan *p, int64_t now_us)
{
	int64_t least = INT64_MAX;
	bool closed = true;
	int first = -1;

	for (unsigned k = 0; k < p->n_target; k++) {
		unsigned i = p->order[k];
		const struct hf_plan_target *t = &p->target[i];
		int64_t at = opens_us(p, i, now_us);
		bool is_closed = at > now_us;

		if (!is_closed)
			at = paced_us(p, i, now_us);
		if (!t->tried && t->not_before_us <= now_us &&
		    (is_closed < closed ||
			(is_closed == closed && at < least))) {
			least = at;
			closed = is_closed;
			first = (int)i;
		}
	}
	return first;
}

static int
next_or_first_to_open(const struct hf_plan *p, int64_t now_us)
{
	int next = next_target(p, true, now_us);

	return next >= 0 ? next : first_to_open(p, now_us);
}

bool
hf_plan_has_next(const struct hf_plan *p, int64_t now_us)
{
	return next_target(p, false, now_us) >= 0;
}

unsigned
hf_plan_left(const struct hf_plan *p, int64_t now_us)
{
	unsigned n = 0;

	for (unsigned i = 0; i < p->n_target; i++)
		n += !p->target[i].tried && !p->target[i].small &&
		    p->target[i].not_before_us <= now_us && !is_disabled(p, i);
	return n;
}

static struct hf_plan_step
call(struct hf_plan *p, unsigned t)
{
	p->target[t].tried = true;
	return (struct hf_plan_step){ .kind = HF_PLAN_CALL, .target = t };
}

static void
forget_tried(struct hf_plan *p)
{
	for (unsigned i = 0; i < p->n_target; i++)
		p->target[i].tried = p->target[i].put_off = false;
}

struct hf_plan_step
hf_plan_first(struct hf_plan *p, int64_t now_us)
{
	int next;

	forget_tried(p);
	next = next_or_first_to_open(p, now_us);
	p->first = next < 0 ? p->order[0] : (unsigned)next;
	return call(p, p->first);
}

struct hf_plan_step
hf_plan_begin(struct hf_plan *p, unsigned t, bool late, int64_t now_us)
{
	int next;

	forget_tried(p);
	p->target[t].tried = true;
	next = late ? next_target(p, false, now_us) : -1;
	return call(p, next >= 0 ? (unsigned)next : t);
}

/* May a target that failed last with this class be asked again? */
static bool
is_retried(const struct hf_plan *p, enum hf_class c)
{
	return p->action[c] == HF_ACTION_RETRY;
}

static enum hf_answer_id
answer_of(enum hf_class c, bool limited_or_late)
{
	const struct hf_class_row *row = hf_class_row(c);

	return limited_or_late ? row->all : row->answer;
}

/* The error that says what happened to every target. */
static struct hf_plan_step
give_up(const struct hf_plan *p, int64_t now_us, bool no_time)
{
	struct hf_plan_step s = { .kind = HF_PLAN_GIVE_UP,
		.retry_after_ms = -1 };
	unsigned limited = 0, late = 0, same = 0, n = 0;
	enum hf_class last = HF_CLASS_NONE;

	for (unsigned i = 0; i < p->n_target; i++) {
		const struct hf_plan_target *t = &p->target[i];
		int64_t at = opens_us(p, i, now_us);
		int64_t paced = paced_us(p, i, now_us), left;

		if (is_disabled(p, i))
			continue;
		if (n++ == 0)
			last = t->last;
		if (at == INT64_MAX || at < t->not_before_us)
			at = t->not_before_us;
		at = paced > at ? paced : at;
		left = (at - now_us) / 1000;
		limited += t->limited;
		late += t->timed_out;
		same += t->last == last;
		if (at > now_us &&
		    (s.retry_after_ms < 0 || left < s.retry_after_ms))
			s.retry_after_ms = left;
	}
	s.answer = same < n || last == HF_CLASS_NONE ?
	    HF_ANSWER_NOBODY :
	    answer_of(last, limited == n || late == n);
	if (no_time && s.answer == HF_ANSWER_NOBODY)
		s.answer = HF_ANSWER_LATE;
	return s;
}

/* One that was never called may be asked again, too. */
static bool
is_left(const struct hf_plan *p, unsigned t)
{
	enum hf_class last = p->target[t].last;

	return !is_disabled(p, t) &&
	    (last == HF_CLASS_NONE || is_retried(p, last));
}

/* Of the targets that are left. */
struct left {
	bool any;
	int64_t opens_us; /* the first can be asked then, as far as is known */
	int64_t hint_us;  /* the first that said when; 0: none did */
};

static struct left
left_of(const struct hf_plan *p, int64_t now_us)
{
	struct left l = { .opens_us = INT64_MAX };

	for (unsigned i = 0; i < p->n_target; i++) {
		int64_t said = p->target[i].not_before_us;
		int64_t at = opens_us(p, i, now_us);

		if (!is_left(p, i))
			continue;
		l.any = true;
		at = at < said ? said : at;
		l.opens_us = at < l.opens_us ? at : l.opens_us;
		if (said > now_us && (l.hint_us == 0 || said < l.hint_us))
			l.hint_us = said;
	}
	if (l.opens_us == INT64_MAX)
		l.opens_us = l.hint_us;
	return l;
}

/* No target is left in this round: wait for the next one, or give up.  As long
 * as nobody has said when to come back, one whose breaker is open is asked
 * before its time; else there is somebody to wait for: one more wait for that,
 * if all were spent on those that open before. */
static struct hf_plan_step
wait_or_give_up(struct hf_plan *p, int64_t now_us)
{
	struct hf_plan_step s = { .kind = HF_PLAN_WAIT };
	struct left l = left_of(p, now_us);
	int64_t floor_us = l.hint_us == 0 ? 0 : l.opens_us, floor_ms;
	bool more = p->waits < p->max_waits;

	if (p->early && p->waits == p->max_waits && l.hint_us != 0) {
		floor_us = l.hint_us;
		more = true;
	}
	if (!l.any || !more)
		return give_up(p, now_us, false);
	floor_ms = floor_us > now_us ? (floor_us - now_us + 999) / 1000 : 0;
	s.wait_ms = hf_backoff_ms(
	    p->waits, p->unit_ms, p->cap_ms, floor_ms, p->rnd, p->rnd_arg);
	if (now_us + s.wait_ms * 1000 >= p->deadline_us)
		return give_up(p, now_us, floor_ms == 0);
	p->early = p->early || floor_us < l.hint_us;
	p->waits++;
	return s;
}

/* Is nobody left who might hold more? */
static bool
none_is_larger(const struct hf_plan *p, int64_t now_us)
{
	int next = next_target(p, false, now_us);

	return next < 0 || rank(p, &p->target[next]) >= 2;
}

static struct hf_plan_step
next_or_wait(struct hf_plan *p, int64_t now_us)
{
	int next = next_or_first_to_open(p, now_us);

	return next >= 0 ? call(p, (unsigned)next) : wait_or_give_up(p, now_us);
}

static bool
is_unheard_first(const struct hf_plan *p, unsigned t)
{
	return t == p->first && p->target[t].last == HF_CLASS_NONE;
}

/* 'instead' of the first, which was not called: then this one is the first. */
static struct hf_plan_step
next_instead(struct hf_plan *p, bool instead, int64_t now_us)
{
	struct hf_plan_step s = next_or_wait(p, now_us);

	if (instead && s.kind == HF_PLAN_CALL)
		p->first = s.target;
	return s;
}

/* The caller's own fault is told by the first provider that was asked; a later
 * target's 400 is our translation's fault. */
bool
hf_plan_is_final(
    const struct hf_plan *p, unsigned t, const struct hf_plan_failure *f)
{
	return p->action[f->cls] == HF_ACTION_END ||
	    (p->action[f->cls] == HF_ACTION_FIRST && is_unheard_first(p, t));
}

int
hf_plan_beside(struct hf_plan *p, int64_t now_us)
{
	int next = next_target(p, false, now_us);

	if (next >= 0)
		p->target[next].tried = true;
	return next;
}

void
hf_plan_lost(struct hf_plan *p, unsigned t, bool slow)
{
	p->target[t].tried = false;
	p->target[t].slow = slow;
}

void
hf_plan_failed_beside(struct hf_plan *p, unsigned t,
    const struct hf_plan_failure *f, int64_t now_us)
{
	HF_CHECK(t < p->n_target && f->cls != HF_CLASS_NONE);
	p->attempts++;
	p->target[t].last = f->cls;
	p->target[t].timed_out = f->timed_out;
	p->target[t].limited = f->limited;
	if (f->holds > p->holds)
		p->holds = f->holds;
	p->target[t].not_before_us =
	    f->hint_ms > 0 ? now_us + f->hint_ms * 1000 : 0;
}

struct hf_plan_step
hf_plan_failed(struct hf_plan *p, unsigned t, const struct hf_plan_failure *f,
    int64_t now_us)
{
	bool final = hf_plan_is_final(p, t, f);
	bool instead = f->uncalled && is_unheard_first(p, t);

	hf_plan_failed_beside(p, t, f, now_us);
	if (now_us >= p->deadline_us)
		return give_up(p, now_us, true);
	if (final)
		return (struct hf_plan_step){ .kind = HF_PLAN_GIVE_UP,
			.answer = answer_of(f->cls, f->limited || f->timed_out),
			.retry_after_ms = f->hint_ms };
	if (f->shrinks && !p->target[t].shrunk && none_is_larger(p, now_us)) {
		p->target[t].shrunk = true;
		return call(p, t);
	}
	return next_instead(p, instead, now_us);
}

void
hf_plan_put_off(struct hf_plan *p, unsigned t, int64_t now_us)
{
	if (p->target[t].put_off || paced_us(p, t, now_us) <= now_us)
		return;
	p->target[t].put_off = true;
	p->target[t].tried = false;
}

struct hf_plan_step
hf_plan_skipped(struct hf_plan *p, unsigned t, int64_t now_us)
{
	return next_instead(p, is_unheard_first(p, t), now_us);
}

struct hf_plan_step
hf_plan_resume(struct hf_plan *p, int64_t now_us)
{
	for (unsigned i = 0; i < p->n_target; i++) {
		p->target[i].tried = !is_left(p, i);
		p->target[i].put_off = false;
	}
	return next_or_wait(p, now_us);
}
