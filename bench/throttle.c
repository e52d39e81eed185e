/*
 * Keeping to a quota.
 */
#include <config.h>

#include "bench/throttle.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/clock.h"

struct hf_throttle {
	unsigned n;
	int64_t window_us;
	int64_t *free_us; /* of each slot, when it is; INT64_MAX: it is taken */
	struct hf_pass *first, **last; /* who waits */
	struct event *timer;
};

/* The slot that is free first. */
static unsigned
next_slot(const struct hf_throttle *p)
{
	unsigned best = 0;

	for (unsigned i = 1; i < p->n; i++)
		if (p->free_us[i] < p->free_us[best])
			best = i;
	return best;
}

/* Has the timer run when the next can go. */
static void
arm(struct hf_throttle *p)
{
	int64_t at = p->free_us[next_slot(p)], left = at - hf_now_us();
	struct timeval tv = { 0, 0 };

	if (p->first == NULL || at == INT64_MAX)
		return;
	if (left > 0) {
		tv.tv_sec = left / 1000000;
		tv.tv_usec = left % 1000000;
	}
	event_add(p->timer, &tv);
}

/* Lets go who can. */
static void
run(struct hf_throttle *p)
{
	struct hf_pass *pass;
	unsigned slot;

	while ((pass = p->first) != NULL) {
		slot = next_slot(p);
		if (p->free_us[slot] > hf_now_us())
			break;
		p->first = pass->next;
		if (p->first == NULL)
			p->last = &p->first;
		p->free_us[slot] = INT64_MAX;
		pass->slot = slot;
		pass->goes = true;
		pass->go(pass->arg);
	}
	arm(p);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	run(arg);
}

void
hf_throttle_ask(struct hf_throttle *p, struct hf_pass *pass)
{
	pass->throttle = p;
	pass->goes = false;
	pass->next = NULL;
	*p->last = pass;
	p->last = &pass->next;
	run(p);
}

void
hf_throttle_settle(struct hf_pass *pass)
{
	struct hf_throttle *p = pass->throttle;
	struct hf_pass **at;

	if (p == NULL)
		return;
	pass->throttle = NULL;
	if (pass->goes) {
		p->free_us[pass->slot] = hf_now_us() + p->window_us;
		arm(p);
		return;
	}
	for (at = &p->first; *at != pass; at = &(*at)->next)
		;
	*at = pass->next;
	if (*at == NULL)
		p->last = at;
}

struct hf_throttle *
hf_throttle_new(struct event_base *base, unsigned n, unsigned window_ms)
{
	struct hf_throttle *p = hf_xcalloc(1, sizeof(*p));

	p->n = n;
	p->window_us = window_ms * INT64_C(1000);
	p->free_us = hf_xcalloc(n, sizeof(*p->free_us));
	p->last = &p->first;
	p->timer = evtimer_new(base, on_timer, p);
	HF_CHECK(p->timer != NULL);
	return p;
}

void
hf_throttle_free(struct hf_throttle *p)
{
	if (p == NULL)
		return;
	HF_CHECK(p->first == NULL);
	event_free(p->timer);
	free(p->free_us);
	free(p);
}
