/*
 * The control verbs for failovers: from the store, a piece at a time, so that
 * others are served in between.
 */
#include <config.h>

#include "workers/verbs_int.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "workers/view.h"

#define LIST_MOST 10000
#define LIST_DEFAULT 50
#define SINCE_MOST ((int64_t)100 * 366 * 86400)
#define STEP_US 20000
#define PROGRESS_US 1000000 /* a client hears that it goes on */

struct walk {
	struct hf_verbs *v;
	struct hf_reply *reply;
	struct hf_error *e;
	int rc;
	struct hf_failover_filter filter;
	struct hf_cursor at;
	int64_t left; /* that may still be told */
	struct hf_failover_sum *sum;
	int64_t said_us; /* when the client heard of it last */
};

static void
drop(void *state)
{
	struct walk *w = state;

	if (w->sum != NULL)
		hf_failover_sum_free(w->sum);
	free(w);
}

/* args.since_s: seconds ago, as wall time; 0: since ever. */
static int
arg_since(const json_t *args, int64_t *since_us, struct hf_error *e)
{
	const json_t *j = json_object_get(args, "since_s");
	int64_t s = json_integer_value(j);

	*since_us = 0;
	if (j == NULL || json_is_null(j))
		return 0;
	if (!json_is_integer(j) || s < 1 || s > SINCE_MOST)
		return hf_fail(
		    e, HF_EINVAL, "args.since_s must be a number of seconds");
	*since_us = hf_wall_us() - s * 1000000;
	return 0;
}

/* args.before: the row of the last one seen. */
static int
arg_before(const json_t *args, int64_t *before, struct hf_error *e)
{
	const char *text;
	char *rest;
	int rc = hf_json_arg(args, "before", &text, e);

	*before = 0;
	if (rc < 0 || text == NULL)
		return rc;
	errno = 0;
	*before = strtoll(text, &rest, 10);
	if (errno == 0 && *text >= '1' && *text <= '9' && *rest == '\0')
		return 0;
	return hf_fail(
	    e, HF_EINVAL, "args.before must be the row of a failover");
}

static int
arg_limit(const json_t *args, int64_t *limit, struct hf_error *e)
{
	const json_t *j = json_object_get(args, "limit");

	*limit = LIST_DEFAULT;
	if (j == NULL || json_is_null(j))
		return 0;
	*limit = json_integer_value(j);
	if (json_is_integer(j) && *limit >= 1 && *limit <= LIST_MOST)
		return 0;
	return hf_fail(e, HF_EINVAL, "args.limit must be 1 to %d", LIST_MOST);
}

/* Nonzero: enough for now. */
static int
send_one(void *arg, const struct hf_failover_info *f)
{
	struct walk *w = arg;

	w->rc = hf_verb_send(w->reply, hf_view_failover.kind,
	    hf_json_view(&hf_view_failover, f), w->e);
	w->left--;
	return w->rc < 0 || w->left == 0 || hf_reply_full(w->reply);
}

static int
step_list(struct hf_reply *r, void *state, struct hf_error *e)
{
	struct walk *w = state;
	int rc;

	w->reply = r;
	w->e = e;
	rc = hf_inspect_failovers(
	    w->v->inspect, &w->filter, &w->at, send_one, w, e);
	if (w->rc < 0)
		return w->rc;
	return w->left == 0 ? 0 : rc;
}

static struct walk *
begin(struct hf_verbs *v, const json_t *args, struct hf_error *e)
{
	struct walk *w = calloc(1, sizeof(*w));

	if (w == NULL) {
		hf_fail(e, HF_ENOMEM, "out of memory");
		return NULL;
	}
	w->v = v;
	if (arg_since(args, &w->filter.since_us, e) < 0 ||
	    arg_before(args, &w->filter.before, e) < 0 ||
	    arg_limit(args, &w->left, e) < 0) {
		free(w);
		return NULL;
	}
	return w;
}

int
hf_verb_failovers(struct hf_verbs *v, const json_t *args,
    struct hf_reply *reply, struct hf_error *e)
{
	struct walk *w = begin(v, args, e);

	if (w == NULL)
		return e->code;
	hf_reply_go_on(reply, step_list, drop, w);
	return 0;
}

static int
send_group(void *arg, const struct hf_failover_group *g)
{
	struct walk *w = arg;

	w->rc = hf_verb_send(w->reply, hf_view_failover_group.kind,
	    hf_json_view(&hf_view_failover_group, g), w->e);
	return w->rc < 0;
}

static int
step_summary(struct hf_reply *r, void *state, struct hf_error *e)
{
	struct walk *w = state;
	int64_t until = hf_now_us() + STEP_US;
	int rc = 1;

	w->reply = r;
	w->e = e;
	while (rc > 0 && hf_now_us() < until)
		rc = hf_failover_sum_more(w->v->inspect, w->sum, e);
	if (rc > 0 && until - w->said_us > PROGRESS_US) {
		w->said_us = until;
		w->rc = hf_verb_send(r, "progress", json_object(), e);
		return w->rc < 0 ? w->rc : 1;
	}
	if (rc != 0)
		return rc;
	hf_failover_sum_tell(w->sum, send_group, w);
	return w->rc;
}

int
hf_verb_failover_summary(struct hf_verbs *v, const json_t *args,
    struct hf_reply *reply, struct hf_error *e)
{
	struct walk *w = begin(v, args, e);

	if (w == NULL)
		return e->code;
	w->sum = hf_failover_sum_new(w->filter.since_us);
	hf_reply_go_on(reply, step_summary, drop, w);
	return 0;
}
