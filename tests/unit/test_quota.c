/*
 * Quotas that nobody configured: what is learned of them from headers and
 * 429s, and a storm in simulated time against targets that count in different
 * ways; tokens; the share of failures; and what outlives the daemon.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/target.h"
#include "base/target_save.h"

#define SEC ((int64_t)1000000)
#define MS ((int64_t)1000)
#define SESSIONS 400
#define CALLS 4000

static struct hf_shm shm;
static struct hf_conf_call call;

static int
setup(void **state)
{
	struct hf_error e;

	(void)state;
	if (hf_shm_create(&shm, NULL, &e) < 0)
		return -1;
	shm.self = 1;
	call = (struct hf_conf_call){
		.connect_ms = 1000,
		.first_token_ms = 3000,
		.total_ms = 60000,
		.breaker_failures = 5,
		.breaker_open_ms = 10000,
		.breaker_ramp = 4,
		.rpm_window_ms = 60000,
		.slow_start = 8,
		.slow_start_ms = 2000,
	};
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	hf_shm_unmap(&shm);
	return 0;
}

static struct hf_target_row *
row(void)
{
	return hf_target_row(&shm, "p/m");
}

/* --- a provider that counts ------------------------------------------------
 */

enum counts { SLIDING, FIXED, BUCKET };

struct provider {
	enum counts counts;
	int n;
	int64_t window_us;
	bool hints;
	int64_t way_us; /* to it, and back */
	/* what it saw */
	int64_t at[CALLS];
	int n_at, refused;
	double level; /* of the bucket */
	int64_t level_us;
	/* the first call of all */
	int64_t zero_us;
};

/* True: admitted; else how long to wait. */
static bool
sliding(struct provider *p, int64_t t, int64_t *hint)
{
	if (p->n_at >= p->n && p->at[p->n_at - p->n] > t - p->window_us) {
		*hint = p->at[p->n_at - p->n] + p->window_us - t;
		return false;
	}
	return true;
}

static bool
fixed(struct provider *p, int64_t t, int64_t *hint)
{
	/* The first call comes in the middle of a window. */
	int64_t begins = t - (t - p->zero_us + p->window_us / 2) % p->window_us;
	int n = 0;

	for (int i = p->n_at - 1; i >= 0 && p->at[i] >= begins; i--)
		n++;
	*hint = begins + p->window_us - t;
	return n < p->n;
}

static bool
bucket(struct provider *p, int64_t t, int64_t *hint)
{
	double rate = (double)p->n / (double)p->window_us;

	p->level += (double)(t - p->level_us) * rate;
	p->level_us = t;
	if (p->level > p->n)
		p->level = p->n;
	if (p->level < 1) {
		*hint = (int64_t)((1 - p->level) / rate) + 1;
		return false;
	}
	p->level -= 1;
	return true;
}

static bool
admits(struct provider *p, int64_t t, int64_t *hint_ms)
{
	int64_t hint = 0;
	bool yes;

	if (p->zero_us == 0) {
		p->zero_us = p->level_us = t;
		p->level = p->n;
	}
	yes = p->counts == SLIDING ? sliding(p, t, &hint) :
	    p->counts == FIXED	   ? fixed(p, t, &hint) :
				     bucket(p, t, &hint);
	if (yes)
		p->at[p->n_at++] = t;
	else
		p->refused++;
	*hint_ms = p->hints && !yes ? hint / 1000 + 1 : -1;
	return yes;
}

/* --- sessions that want an answer ------------------------------------------
 */

enum does { WAITS, CALLS_UP, HEARS, ANSWERED };

struct session {
	enum does does;
	int64_t until;	 /* the next thing happens then */
	int64_t answers; /* the way back of what it is told */
	bool admitted;
	int64_t hint_ms;
	struct hf_claim claim;
	struct hf_ticket ticket;
};

struct storm {
	struct provider p;
	struct session s[SESSIONS];
	int n, answered, calls;
	int64_t began, ended;
};

static void
go_on(struct storm *w, struct session *s, int64_t now)
{
	int64_t due = now;
	enum hf_admit how;

	how = hf_target_reserve(
	    row(), &call, &s->claim, -1, now, INT64_MAX, &due);
	assert_int_not_equal(how, HF_ADMIT_REFUSE);
	if (how == HF_ADMIT_CALL)
		how = hf_target_take(
		    &shm, row(), &call, true, now, &s->claim, &s->ticket);
	if (how == HF_ADMIT_CALL) {
		w->calls++;
		s->does = CALLS_UP;
		s->until = now + w->p.way_us;
	} else {
		/* In order of arrival: the first looks first. */
		s->until = due > now ? due : now + 1 * MS;
	}
}

/* What becomes of it at the provider, and what is heard of that. */
static void
step(struct storm *w, struct session *s, int64_t now)
{
	switch (s->does) {
	case WAITS:
		go_on(w, s, now);
		break;
	case CALLS_UP:
		s->admitted = admits(&w->p, now, &s->hint_ms);
		s->does = HEARS;
		s->until = now + w->p.way_us;
		break;
	case HEARS:
		if (s->admitted) {
			hf_target_admitted(&s->ticket, &call);
			hf_target_end(
			    &shm, &s->ticket, &call, HF_HEALTH_ANSWERED, now);
			s->does = ANSWERED;
			s->until = INT64_MAX;
			w->answered++;
			w->ended = now;
			break;
		}
		hf_target_limited(&s->ticket, &call, s->hint_ms, false, now);
		hf_target_end(&shm, &s->ticket, &call, HF_HEALTH_NEUTRAL, now);
		s->does = WAITS;
		s->until = now +
		    (s->hint_ms > 0 ? s->hint_ms * 1000 : 1 * SEC) +
		    (int64_t)(s - w->s) * 5 * MS; /* the jitter */
		break;
	case ANSWERED:
		break;
	}
}

/* All of them come at once. */
static void
play(struct storm *w, int n, int64_t now)
{
	w->n = n;
	w->began = now;
	for (int i = 0; i < n; i++)
		w->s[i] = (struct session){ .until = now };
	w->answered = 0;
	while (w->answered < n) {
		struct session *next = &w->s[0];

		for (int i = 1; i < n; i++)
			if (w->s[i].until < next->until)
				next = &w->s[i];
		assert_true(next->until < INT64_MAX);
		now = next->until;
		step(w, next, now);
		assert_in_range(w->calls, 0, CALLS - 1);
	}
}

static double
took(const struct storm *w)
{
	return (double)(w->ended - w->began) / (double)w->p.window_us;
}

static void
storm_of(enum counts counts, bool hints, int64_t way_us, int64_t window_us,
    double most_calls, double most_windows)
{
	struct storm *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->p = (struct provider){ .counts = counts,
		.n = 15,
		.window_us = window_us,
		.hints = hints,
		.way_us = way_us };
	play(w, 100, 1000 * SEC);
	print_message("counts %d hints %d way %lld ms window %lld s: %d calls "
		      "for 100 answers, %.2f windows (quota's own %s)\n",
	    (int)counts, hints, (long long)way_us / 1000,
	    (long long)(window_us / SEC), w->calls, took(w),
	    counts == SLIDING ? "6.00" : "less");
	assert_int_equal(w->answered, 100);
	assert_true((double)w->calls <= most_calls * 100);
	assert_true(took(w) <= most_windows);
	assert_int_equal(hf_target_in_flight(row()), 0);
	free(w);
}

/* The figures that were promised, in the window that is not configured and in
 * the minute that is assumed. */
static void
storm_sliding(void **state)
{
	(void)state;
	storm_of(SLIDING, true, 5 * MS, 3 * SEC, 1.3, 6 * 1.15);
}

static void
storm_far_away(void **state)
{
	(void)state;
	storm_of(SLIDING, true, 100 * MS, 3 * SEC, 1.3, 6 * 1.15 + 0.3);
}

static void
storm_of_a_minute(void **state)
{
	(void)state;
	storm_of(SLIDING, true, 500 * MS, 60 * SEC, 1.3, 6 * 1.15);
}

static void
storm_fixed_windows(void **state)
{
	(void)state;
	storm_of(FIXED, true, 5 * MS, 3 * SEC, 1.5, 7.5);
}

static void
storm_bucket(void **state)
{
	(void)state;
	storm_of(BUCKET, true, 5 * MS, 3 * SEC, 1.5, 9);
}

/* --- what is learned -------------------------------------------------------
 */

static struct hf_ticket
call_at(int64_t now)
{
	struct hf_claim none = { 0 };
	struct hf_ticket k;

	assert_int_equal(
	    hf_target_take(&shm, row(), &call, false, now, &none, &k),
	    HF_ADMIT_CALL);
	return k;
}

static void
answered_at(struct hf_ticket *k, int64_t now)
{
	hf_target_admitted(k, &call);
	hf_target_end(&shm, k, &call, HF_HEALTH_ANSWERED, now);
}

static void
answers_at(int n, int64_t now)
{
	for (int i = 0; i < n; i++) {
		struct hf_ticket k = call_at(now);

		answered_at(&k, now);
	}
}

static void
refused_at(int64_t now, int64_t hint_ms)
{
	struct hf_ticket k = call_at(now);

	hf_target_limited(&k, &call, hint_ms, false, now);
	hf_target_end(&shm, &k, &call, HF_HEALTH_NEUTRAL, now);
}

static struct hf_pace_limits
limits_at(int64_t now)
{
	struct hf_pace_limits l;

	(void)hf_target_limits(row(), &call, now, &l);
	return l;
}

static struct hf_quota_said
said(int64_t limit, int64_t left, int64_t reset_ms, int64_t tokens)
{
	return (struct hf_quota_said){ .calls = { limit, left, reset_ms },
		.tokens = { tokens, -1, -1 } };
}

static void
said_at(struct hf_quota_said s, int64_t now)
{
	struct hf_ticket k = call_at(now);

	hf_target_said(&k, &call, &s, now);
	answered_at(&k, now);
}

static void
nothing_is_no_limit(void **state)
{
	(void)state;
	assert_int_equal(limits_at(SEC).n, 0);
	answers_at(500, SEC);
	assert_int_equal(limits_at(2 * SEC).n, 0);
	assert_int_equal(hf_target_paced_us(row(), &call, 2 * SEC), 0);
}

/* So many on their way as were admitted, and those of the start. */
static void
slow_start(void **state)
{
	struct hf_claim none = { 0 };
	struct hf_ticket k[9], more;

	(void)state;
	for (int i = 0; i < 8; i++)
		k[i] = call_at(SEC);
	assert_int_equal(
	    hf_target_take(&shm, row(), &call, false, SEC, &none, &more),
	    HF_ADMIT_WAIT);
	assert_false(hf_target_has_room(row(), &call, SEC));
	/* Admitted is when it begins to respond; that it goes on is no matter.
	 */
	hf_target_admitted(&k[0], &call);
	k[8] = call_at(SEC);
	more = call_at(SEC);
	assert_int_equal(
	    hf_target_take(&shm, row(), &call, false, SEC, &none, &more),
	    HF_ADMIT_WAIT);
	/* One that ended without a word makes room for one. */
	hf_target_end(&shm, &k[1], &call, HF_HEALTH_FAILED, SEC);
	(void)call_at(SEC);
	assert_false(hf_target_has_room(row(), &call, SEC));
	hf_shm_retire(&shm, 1);
	assert_int_equal(hf_target_in_flight(row()), 0);
	/* Those that say nothing are admitted after a while, whoever died. */
	assert_false(hf_target_has_room(row(), &call, 2 * SEC + 700 * MS));
	assert_true(hf_target_has_room(row(), &call, 3 * SEC));
}

/* A target that thinks for long: a hundred calls are made in a few looks, and
 * what is heard after that changes nothing. */
static void
silence_is_no_refusal(void **state)
{
	struct hf_ticket k[120];
	int64_t now = SEC;
	int n = 0, looks = 0;

	(void)state;
	for (; n < 100; now += 2 * SEC, looks++)
		while (n < 120 && hf_target_has_room(row(), &call, now))
			k[n++] = call_at(now);
	assert_in_range(looks, 3, 5);
	for (int i = 0; i < n; i++) {
		hf_target_admitted(&k[i], &call);
		hf_target_end(&shm, &k[i], &call, HF_HEALTH_ANSWERED, now);
	}
	assert_int_equal(hf_target_in_flight(row()), 0);
	assert_int_equal(
	    hf_rate_sum(&row()->asking, call.slow_start_ms, 0, now).calls, 0);
}

static void
hint_tells_the_window(void **state)
{
	(void)state;
	/* Five at 100, then one at 102 that is told to come at 110. */
	answers_at(5, 100 * SEC);
	refused_at(102 * SEC, 8000);
	assert_int_equal(limits_at(103 * SEC).n, 5);
	assert_int_equal(limits_at(103 * SEC).window_ms, 10000);
	/* It may have been the moment: for one window. */
	assert_int_equal(limits_at(111 * SEC).n, 5);
	assert_int_equal(limits_at(113 * SEC).n, 0);
}

static void
three_are_believed(void **state)
{
	(void)state;
	answers_at(5, 100 * SEC);
	for (int i = 0; i < 3; i++)
		refused_at(102 * SEC, 8000);
	/* It holds for ten windows, grows for ten, and is forgotten. */
	assert_int_equal(limits_at(201 * SEC).n, 5);
	assert_int_equal(limits_at(203 * SEC).n, 6);
	assert_in_range(limits_at(300 * SEC).n, 10, 25);
	assert_int_equal(limits_at(303 * SEC).n, 0);
}

static void
minute_if_it_fits(void **state)
{
	(void)state;
	answers_at(1, 100 * SEC);
	answers_at(4, 130 * SEC);
	refused_at(140 * SEC, 20000);
	assert_int_equal(limits_at(141 * SEC).n, 5);
	assert_int_equal(limits_at(141 * SEC).window_ms, 60000);
}

static void
few_are_no_quota(void **state)
{
	(void)state;
	refused_at(100 * SEC, -1);
	assert_int_equal(limits_at(101 * SEC).n, 0);
	answers_at(2, 110 * SEC);
	refused_at(111 * SEC, 5000);
	assert_int_equal(limits_at(112 * SEC).n, 0);
	assert_int_equal(hf_target_opens_us(row(), 112 * SEC), 116 * SEC);
	/* Nor are many, when it says no time. */
	answers_at(50, 116 * SEC + 1);
	refused_at(116 * SEC + 1, -1);
	assert_int_equal(limits_at(116 * SEC + 1).n, 0);
	/* But one after the other is asked for a while, after the hint. */
	(void)call_at(117 * SEC);
	assert_false(hf_target_has_room(row(), &call, 117 * SEC));
}

static void
refused_again_is_halved(void **state)
{
	(void)state;
	answers_at(8, 100 * SEC);
	for (int i = 0; i < 3; i++)
		refused_at(101 * SEC, 9000);
	assert_int_equal(limits_at(102 * SEC).n, 8);
	answers_at(8, 111 * SEC);
	/* Made by what was known: it is too much. */
	refused_at(112 * SEC, 9000);
	assert_int_equal(limits_at(113 * SEC).n, 4);
	/* How much is a guess, which holds for a window. */
	assert_int_equal(limits_at(121 * SEC).n, 4);
	assert_int_equal(limits_at(123 * SEC).n, 0);
}

static void
forgotten_by_hand(void **state)
{
	(void)state;
	answers_at(5, 100 * SEC);
	refused_at(102 * SEC, 8000);
	hf_target_reset(row(), 103 * SEC);
	assert_int_equal(limits_at(103 * SEC).n, 0);
	assert_int_equal(hf_target_opens_us(row(), 103 * SEC), 0);
	/* And the slow start begins with as many as it did. */
	for (int i = 0; i < 8; i++) {
		assert_true(hf_target_has_room(row(), &call, 103 * SEC));
		(void)call_at(103 * SEC);
	}
	assert_false(hf_target_has_room(row(), &call, 103 * SEC));
}

static void
day_is_not_believed(void **state)
{
	(void)state;
	answers_at(5, 100 * SEC);
	said_at(said(4, 0, 8 * 3600000, -1), 100 * SEC);
	assert_int_equal(limits_at(100 * SEC).n, 0);
	refused_at(100 * SEC, 3600000);
	assert_int_equal(hf_target_opens_us(row(), 100 * SEC + 1), 0);
}

static void
said_by_a_response(void **state)
{
	(void)state;
	said_at(said(50, 49, 1200, 80000), 100 * SEC);
	assert_int_equal(limits_at(101 * SEC).n, 50);
	assert_int_equal(limits_at(101 * SEC).tokens, 80000);
	assert_int_equal(limits_at(101 * SEC).window_ms, 60000);
	/* There is no slow start then. */
	for (int i = 0; i < 49; i++)
		(void)call_at(101 * SEC);
	assert_true(hf_target_paced_us(row(), &call, 101 * SEC) > 150 * SEC);
	/* For an hour. */
	assert_int_equal(limits_at(3699 * SEC).n, 50);
	assert_int_equal(limits_at(3701 * SEC).n, 0);
}

/* When all is used it tells the window, too. */
static void
said_with_nothing_left(void **state)
{
	(void)state;
	said_at(said(3, 2, 3000, -1), 100 * SEC);
	assert_int_equal(limits_at(100 * SEC).window_ms, 60000);
	said_at(said(3, 1, 3000, -1), 100 * SEC);
	said_at(said(3, 0, 3000, -1), 101 * SEC);
	assert_int_equal(limits_at(101 * SEC).window_ms, 4000);
}

/* A 429 for something else than the number of calls. */
static void
calls_are_left(void **state)
{
	struct hf_ticket k;

	(void)state;
	answers_at(6, 100 * SEC);
	k = call_at(100 * SEC);
	hf_target_limited(&k, &call, 2000, true, 100 * SEC);
	assert_int_equal(limits_at(100 * SEC).n, 0);
	assert_int_equal(hf_target_opens_us(row(), 101 * SEC), 102 * SEC);
}

static void
what_is_configured_is_not_learned(void **state)
{
	(void)state;
	call.rpm = 100;
	answers_at(5, 100 * SEC);
	refused_at(102 * SEC, 8000);
	said_at(said(3, 0, 3000, -1), 103 * SEC);
	assert_int_equal(limits_at(103 * SEC).n, 100);
	call.rpm = call.slow_start = 0;
	assert_int_equal(limits_at(103 * SEC).n, 0);
}

/* --- tokens -----------------------------------------------------------------
 */

static enum hf_admit
reserve(struct hf_claim *c, int64_t tokens, int64_t now, int64_t *due)
{
	*c = (struct hf_claim){ 0 };
	return hf_target_reserve(row(), &call, c, tokens, now, INT64_MAX, due);
}

static void
tokens_in_a_window(void **state)
{
	struct hf_claim c, none = { 0 };
	struct hf_ticket k;
	int64_t due;

	(void)state;
	call.tpm = 1000;
	assert_int_equal(reserve(&c, 480, 100 * SEC, &due), HF_ADMIT_CALL);
	assert_int_equal(
	    hf_target_take(&shm, row(), &call, false, 100 * SEC, &c, &k),
	    HF_ADMIT_CALL);
	/* It took more than was thought. */
	hf_target_used(&k, 800);
	answered_at(&k, 100 * SEC);
	assert_int_equal(reserve(&c, 480, 101 * SEC, &due), HF_ADMIT_WAIT);
	assert_in_range(due, 160 * SEC, 163 * SEC);
	hf_target_unclaim(&c);
	assert_int_equal(reserve(&c, 160, 101 * SEC, &due), HF_ADMIT_CALL);
	(void)hf_target_take(&shm, row(), &call, false, 101 * SEC, &c, &k);
	/* Larger than all of it: alone. */
	assert_int_equal(reserve(&c, 5000, 102 * SEC, &due), HF_ADMIT_WAIT);
	assert_in_range(due, 161 * SEC, 164 * SEC);
	hf_target_unclaim(&c);
	assert_int_equal(reserve(&none, 5000, 170 * SEC, &due), HF_ADMIT_CALL);
}

/* --- places ------------------------------------------------------------------
 */

/* A place is looked at again when its time comes: others went late, or the
 * quota is smaller than it was thought. */
static void
places_are_looked_at_again(void **state)
{
	struct hf_pace *p = &row()->pace;
	struct hf_pace_limits l = { .n = 2, .window_ms = 10000 };
	uint64_t i[4];
	int64_t due;

	(void)state;
	for (int k = 0; k < 4; k++)
		assert_true(
		    hf_pace_take(p, &l, 0, 100 * SEC, INT64_MAX, &i[k], &due));
	assert_in_range(due, 110 * SEC, 111 * SEC);
	hf_pace_go(p, i[0], 100 * SEC);
	hf_pace_go(p, i[1], 105 * SEC); /* was held up */
	assert_int_equal(hf_pace_due_us(p, &l, i[2], 111 * SEC), 111 * SEC);
	hf_pace_go(p, i[2], 111 * SEC);
	assert_in_range(
	    hf_pace_due_us(p, &l, i[3], 111 * SEC), 115 * SEC, 116 * SEC);
	l.n = 1;
	assert_in_range(
	    hf_pace_due_us(p, &l, i[3], 111 * SEC), 121 * SEC, 122 * SEC);
	/* One that did not count makes room. */
	hf_pace_drop(p, i[2]);
	assert_in_range(
	    hf_pace_due_us(p, &l, i[3], 111 * SEC), 115 * SEC, 116 * SEC);
}

/* --- the share of failures -------------------------------------------------
 */

static bool
one(enum hf_health v, int64_t now)
{
	struct hf_claim none = { 0 };
	struct hf_ticket k;

	if (hf_target_take(&shm, row(), &call, false, now, &none, &k) !=
	    HF_ADMIT_CALL)
		return false;
	hf_target_end(&shm, &k, &call, v, now);
	return true;
}

static enum hf_breaker_state
breaker(void)
{
	return hf_breaker_view(&row()->breaker).state;
}

static void
share_of_failures(void **state)
{
	(void)state;
	call.breaker_rate_percent = 50;
	call.breaker_rate_calls = 10;
	call.breaker_rate_window_ms = 10000;
	/* One in three, however many; neutral ones do not count. */
	for (int i = 0; i < 300; i++) {
		assert_true(
		    one(i % 3 == 0 ? HF_HEALTH_FAILED : HF_HEALTH_ANSWERED,
			100 * SEC + i * 20 * MS));
		assert_true(one(HF_HEALTH_NEUTRAL, 100 * SEC + i * 20 * MS));
	}
	assert_int_equal(breaker(), HF_BREAKER_CLOSED);
	/* Of too few it says nothing, also when all failed. */
	for (int i = 0; i < 9; i++)
		assert_true(
		    one(i % 2 == 0 ? HF_HEALTH_FAILED : HF_HEALTH_ANSWERED,
			200 * SEC));
	assert_int_equal(breaker(), HF_BREAKER_CLOSED);
	assert_true(one(HF_HEALTH_FAILED, 201 * SEC));
	assert_int_equal(breaker(), HF_BREAKER_OPEN);
	assert_false(one(HF_HEALTH_FAILED, 202 * SEC));
	/* After its return what was before is forgotten. */
	for (int i = 0; i < 5; i++)
		assert_true(one(HF_HEALTH_ANSWERED, 211 * SEC + i * 100 * MS));
	assert_int_equal(breaker(), HF_BREAKER_CLOSED);
	for (int i = 0; i < 4; i++)
		assert_true(one(HF_HEALTH_FAILED, 212 * SEC));
	assert_int_equal(breaker(), HF_BREAKER_CLOSED);
	/* Without a breaker there is none of this. */
	call.breaker_failures = 0;
	for (int i = 0; i < 100; i++)
		assert_true(one(HF_HEALTH_FAILED, 213 * SEC));
}

/* --- what outlives the daemon ----------------------------------------------
 */

static void
saved(struct hf_buf *b, int64_t now, int64_t wall)
{
	hf_buf_init(b, HF_BUF_NOCAP);
	hf_targets_save(&shm, now, wall, b);
	assert_true(hf_buf_ok(b));
}

static void
restart(void)
{
	struct hf_error e;

	hf_shm_unmap(&shm);
	assert_int_equal(hf_shm_create(&shm, NULL, &e), 0);
	shm.self = 1;
}

static void
outlives_a_restart(void **state)
{
	const int64_t wall = 1700000000 * SEC;
	struct hf_buf b;
	uint64_t before = hf_targets_digest(&shm);

	(void)state;
	answers_at(5, 100 * SEC);
	refused_at(102 * SEC, 8000);
	assert_true(hf_targets_digest(&shm) != before);
	for (int i = 0; i < 5; i++)
		hf_breaker_trip(
		    &hf_target_row(&shm, "q/dead")->breaker, 160 * SEC);
	hf_breaker_put(&hf_target_row(&shm, "q/ramp")->breaker,
	    &(struct hf_breaker_view){ .state = HF_BREAKER_RAMP, .n = 3 });
	hf_quota_admitted(
	    &hf_target_row(&shm, "q/ramp")->quota, 8, 30, 100 * SEC);
	saved(&b, 103 * SEC, wall);
	restart();
	/* Four seconds later, on a clock that began anew. */
	assert_int_equal(
	    hf_targets_load(&shm, hf_buf_str(&b), 20 * SEC, wall + 4 * SEC), 3);
	/* 107 was 20: the hint of 110, the breaker of 160, the window of the
	 * five at 100. */
	assert_int_equal(hf_target_opens_us(row(), 20 * SEC), 23 * SEC);
	assert_int_equal(
	    hf_target_opens_us(hf_target_row(&shm, "q/dead"), 20 * SEC),
	    73 * SEC);
	assert_int_equal(
	    hf_breaker_view(&hf_target_row(&shm, "q/ramp")->breaker).state,
	    HF_BREAKER_RAMP);
	/* No slow start again. */
	assert_true(hf_quota_has_room(
	    &hf_target_row(&shm, "q/ramp")->quota, 8, 38, 20 * SEC));
	assert_false(hf_quota_has_room(
	    &hf_target_row(&shm, "q/ramp")->quota, 8, 39, 20 * SEC));
	assert_int_equal(limits_at(20 * SEC).n, 5);
	assert_int_equal(limits_at(20 * SEC).window_ms, 10000);
	assert_in_range(
	    hf_target_paced_us(row(), &call, 20 * SEC), 23 * SEC, 24 * SEC);
	assert_int_equal(hf_target_in_flight(row()), 0);
	/* What is in use is left alone. */
	assert_int_equal(
	    hf_targets_load(&shm, hf_buf_str(&b), 20 * SEC, wall + 4 * SEC), 0);
	hf_buf_free(&b);
}

/* A probe that was under way is over. */
static void
probe_is_over(void **state)
{
	struct hf_buf b;

	(void)state;
	hf_breaker_trip(&row()->breaker, 99 * SEC);
	(void)call_at(100 * SEC);
	assert_int_equal(breaker(), HF_BREAKER_PROBED);
	saved(&b, 101 * SEC, SEC);
	restart();
	assert_int_equal(
	    hf_targets_load(&shm, hf_buf_str(&b), 102 * SEC, 2 * SEC), 1);
	assert_int_equal(breaker(), HF_BREAKER_OPEN);
	assert_int_equal(hf_target_opens_us(row(), 102 * SEC), 0);
	hf_buf_free(&b);
}

/* Cut or changed anywhere, too old, or from the future: nothing is taken. */
static void
only_what_is_whole(void **state)
{
	struct hf_buf b;
	struct hf_str s;

	(void)state;
	answers_at(3, 100 * SEC);
	saved(&b, 101 * SEC, 1000 * SEC);
	restart();
	for (size_t n = 0; n < b.size; n++) {
		s = (struct hf_str){ b.data, n };
		assert_int_equal(
		    hf_targets_load(&shm, s, 101 * SEC, 1000 * SEC), -1);
		b.data[n] ^= 1;
		assert_int_equal(hf_targets_load(&shm, hf_buf_str(&b),
				     101 * SEC, 1000 * SEC),
		    -1);
		b.data[n] ^= 1;
	}
	assert_int_equal(hf_targets_load(&shm, hf_buf_str(&b), 101 * SEC,
			     (1000 + HF_TARGETS_STALE_S + 1) * SEC),
	    -1);
	assert_int_equal(
	    hf_targets_load(&shm, hf_buf_str(&b), 101 * SEC, 999 * SEC), -1);
	assert_null(hf_target_find(&shm, "p/m"));
	assert_int_equal(
	    hf_targets_load(&shm, hf_buf_str(&b), 101 * SEC, 1000 * SEC), 1);
	hf_buf_free(&b);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(storm_sliding),
		TEST(storm_far_away),
		TEST(storm_of_a_minute),
		TEST(storm_fixed_windows),
		TEST(storm_bucket),
		TEST(nothing_is_no_limit),
		TEST(slow_start),
		TEST(silence_is_no_refusal),
		TEST(hint_tells_the_window),
		TEST(three_are_believed),
		TEST(minute_if_it_fits),
		TEST(few_are_no_quota),
		TEST(refused_again_is_halved),
		TEST(forgotten_by_hand),
		TEST(day_is_not_believed),
		TEST(said_by_a_response),
		TEST(said_with_nothing_left),
		TEST(calls_are_left),
		TEST(what_is_configured_is_not_learned),
		TEST(tokens_in_a_window),
		TEST(places_are_looked_at_again),
		TEST(share_of_failures),
		TEST(outlives_a_restart),
		TEST(probe_is_over),
		TEST(only_what_is_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
