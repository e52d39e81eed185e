/*
 * Reconciling: what the client's list means against the session on disk, and
 * T1, the commit that makes the turn's input durable and takes the lease.
 * Loop thread.
 */
#include <config.h>

#include "gateway/turn/turn_internal.h"

#include "base/check.h"
#include "base/fault.h"
#include "base/log.h"

#define MOVED_MAX 16 /* tries while the head keeps moving */

/* What this pass works out; lives in the turn's arena. */
struct pass {
	struct hf_turn *t;
	const struct hf_item *client; /* without lead items */
	uint32_t n_client;
	const struct hf_item *stored; /* effective view of the base path */
	uint32_t n_stored;
	struct hf_align align;
	int64_t parent_row, retry_of_row;
	struct hf_item *item; /* to be stored: lead, inserted, tail */
	unsigned n_item;
	struct hf_heard *heard;
	uint8_t lead_digest[HF_DIGEST_SIZE];
	uint8_t input_digest[HF_DIGEST_SIZE];
};

static void begun(
    void *arg, int rc, const struct hf_error *e, const struct hf_begun *b);

static void
fold(const struct hf_session_key *k, uint8_t chain[HF_DIGEST_SIZE],
    const uint8_t *digest)
{
	uint8_t next[HF_DIGEST_SIZE];

	hf_store_chain(k, chain, digest, next);
	memcpy(chain, next, sizeof(next));
}

static void
fold_items(const struct hf_session_key *k, uint8_t chain[HF_DIGEST_SIZE],
    const struct hf_item *item, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		fold(k, chain, item[i].digest);
}

static bool
ended_badly(enum hf_turn_state s)
{
	return s == HF_TURN_FAILED || s == HF_TURN_INTERRUPTED ||
	    s == HF_TURN_INCOMPLETE || s == HF_TURN_CANCELED;
}

/* Load the effective view of a path (what was not heard is not in it). */
static int
load_view(struct pass *p, int64_t turn_row, struct hf_error *e)
{
	struct hf_turn *t = p->t;
	struct hf_history h = { 0 };
	uint32_t n = 0;
	int rc;

	p->stored = NULL;
	p->n_stored = 0;
	if (turn_row == 0)
		return 0;
	rc = hf_store_view(
	    t->env->store, t->head.session_row, turn_row, t->arena, &h, e);
	if (rc < 0)
		return rc;
	for (unsigned i = 0; i < h.n; i++)
		if (!hf_item_unheard(&h.item[i]))
			h.item[n++] = h.item[i];
	p->stored = h.item;
	p->n_stored = n;
	return 0;
}

/* The stored view is a prefix of the list: one comparison of chains. */
static bool
is_prefix(const struct pass *p)
{
	const struct hf_head *h = &p->t->head;
	uint8_t chain[HF_DIGEST_SIZE] = { 0 };

	if (h->head_turn_row == 0 || h->view_items == 0 ||
	    h->view_items > p->n_client)
		return false;
	fold_items(&h->key, chain, p->client, (uint32_t)h->view_items);
	return memcmp(chain, h->view, sizeof(chain)) == 0;
}

/*
 * Is this request the head turn once more?  Only a turn that ended badly is
 * repeated by saying the same again; "yes" may be said twice.  A thin client
 * repeats the turn's own input, a client with the whole history a list that
 * ends with it.
 */
static bool
is_retry(struct pass *p, bool prefix)
{
	const struct hf_head *h = &p->t->head;
	uint8_t chain[HF_DIGEST_SIZE] = { 0 };

	if (h->head_turn_row == 0 || !ended_badly(h->head_state))
		return false;
	if (p->n_client == 0 || hf_item_is_answer(&p->client[p->n_client - 1]))
		return false;
	if (prefix && (int64_t)p->n_client == h->view_items)
		return true;
	fold_items(&h->key, chain, p->client, p->n_client);
	return memcmp(chain, h->head_input_digest, sizeof(chain)) == 0;
}

static bool
is_user_text(const struct hf_item *i)
{
	return i->kind == HF_ITEM_MESSAGE && i->role == HF_ROLE_USER;
}

/* What the head turn was asked, if that is one message of a user and nothing
 * of an answer was heard; else NULL. */
static const struct hf_item *
unanswered_input(const struct pass *p, const struct hf_history *h)
{
	int64_t head = p->t->head.head_turn_row;
	const struct hf_item *last = h->n > 0 ? &h->item[h->n - 1] : NULL;
	unsigned n = 0;

	for (unsigned i = 0; i < h->n; i++)
		n += h->item[i].turn_row == head && !h->item[i].lead;
	return n == 1 && last->turn_row == head && is_user_text(last) ? last :
									NULL;
}

/*
 * Is this the head turn's request, which was dropped before anybody heard an
 * answer, and has grown since?  So does a voice client that sends what it has
 * understood so far, and then more of it.  If it is a first request, a client
 * with the whole history and one that sends only what is new look alike; but
 * nothing is lost either way, because all that was said is said again.  1: yes.
 */
static int
has_grown(const struct pass *p, struct hf_error *e)
{
	struct hf_turn *t = p->t;
	const struct hf_head *h = &t->head;
	const struct hf_item *was;
	struct hf_history hist;
	struct hf_str norm;
	int rc;

	if (t->in.mode != HF_HISTORY_AUTO || h->head_turn_row == 0 ||
	    !ended_badly(h->head_state) || p->n_client != 1 ||
	    !is_user_text(&p->client[0]))
		return 0;
	rc = hf_store_history(t->env->store, h->session_row, h->head_turn_row,
	    t->arena, &hist, e);
	if (rc < 0)
		return rc;
	was = unanswered_input(p, &hist);
	if (was == NULL)
		return 0;
	rc = hf_item_norm(was, t->arena, &norm, e);
	if (rc < 0)
		return rc;
	return hf_align_grew(hf_item_norm_text(norm),
	    hf_item_norm_text(t->in.draft.norm[t->in.draft.n_lead]));
}

static int
align_with(struct pass *p, int64_t turn_row, struct hf_error *e)
{
	struct hf_turn *t = p->t;
	int rc;

	p->parent_row = turn_row;
	rc = load_view(p, turn_row, e);
	if (rc < 0)
		return rc;
	if (hf_align(t->in.mode, p->stored, p->n_stored, p->client, p->n_client,
		t->arena, &p->align) < 0)
		return hf_fail(e, HF_ENOMEM, "no memory to align");
	if (p->align.how == HF_ALIGN_BRANCH)
		p->parent_row = p->align.keep == 0 ?
		    0 :
		    p->stored[p->align.keep - 1].turn_row;
	return 0;
}

static int
align(struct pass *p, struct hf_error *e)
{
	struct hf_turn *t = p->t;
	bool prefix = t->in.mode != HF_HISTORY_DELTA && is_prefix(p);
	int rc = is_retry(p, prefix) ? 1 : has_grown(p, e);

	p->parent_row = t->head.head_turn_row;
	if (rc < 0)
		return rc;
	if (rc > 0) {
		rc = align_with(p, t->head.head_parent_row, e);
		if (rc == 0 && p->align.how != HF_ALIGN_BRANCH) {
			p->retry_of_row = t->head.head_turn_row;
			p->align.how = HF_ALIGN_RETRY;
		}
		return rc;
	}
	if (prefix) {
		p->align = (struct hf_align){ .how = HF_ALIGN_PREFIX,
			.keep = (uint32_t)t->head.view_items,
			.first_new = (uint32_t)t->head.view_items };
		return 0;
	}
	if (t->in.mode == HF_HISTORY_DELTA) {
		/* All is new; the stored view need not be read. */
		p->align.how = t->head.head_turn_row != 0 ? HF_ALIGN_DELTA :
							    HF_ALIGN_FRESH;
		return 0;
	}
	return align_with(p, t->head.head_turn_row, e);
}

/* Marks of what was heard, for T1. */
static int
collect_heard(struct pass *p, struct hf_error *e)
{
	const struct hf_align *al = &p->align;

	p->heard =
	    hf_arena_alloc(p->t->arena, (al->n_heard + 1) * sizeof(*p->heard));
	if (p->heard == NULL)
		return hf_fail(e, HF_ENOMEM, "no memory to align");
	for (uint32_t i = 0; i < al->n_heard; i++) {
		const struct hf_item *s = &p->stored[al->heard[i].s], *c;

		p->heard[i].item_row = s->row;
		if (al->heard[i].c == HF_ALIGN_NONE)
			continue;
		c = &p->client[al->heard[i].c];
		p->heard[i].whole =
		    memcmp(c->digest, s->digest, HF_DIGEST_SIZE) == 0;
		p->heard[i].body = c->body;
		memcpy(p->heard[i].digest, c->digest, HF_DIGEST_SIZE);
	}
	return 0;
}

/* The items that T1 stores: a lead group that differs from the one in force,
 * what was inserted, the tail. */
static int
collect_items(struct pass *p, struct hf_error *e)
{
	struct hf_turn *t = p->t;
	const struct hf_align *al = &p->align;
	const struct hf_draft *d = &t->in.draft;
	uint8_t chain[HF_DIGEST_SIZE] = { 0 };

	p->item = hf_arena_alloc(t->arena, (d->n + 1) * sizeof(*p->item));
	if (p->item == NULL)
		return hf_fail(e, HF_ENOMEM, "no memory to align");
	memcpy(p->lead_digest, t->head.lead_digest, HF_DIGEST_SIZE);
	if (d->n_lead > 0) {
		fold_items(&t->head.key, chain, d->item, d->n_lead);
		if (al->how == HF_ALIGN_BRANCH || al->how == HF_ALIGN_RETRY ||
		    memcmp(chain, p->lead_digest, sizeof(chain)) != 0) {
			memcpy(p->item, d->item, d->n_lead * sizeof(*p->item));
			p->n_item = d->n_lead;
		}
		memcpy(p->lead_digest, chain, HF_DIGEST_SIZE);
	}
	for (uint32_t i = 0; i < al->n_insert; i++) {
		p->item[p->n_item] = p->client[al->insert[i].c];
		p->item[p->n_item++].anchor_row =
		    p->stored[al->insert[i].s].row;
	}
	for (uint32_t i = al->first_new; i < p->n_client; i++) {
		p->item[p->n_item++] = p->client[i];
		fold(&t->head.key, p->input_digest, p->client[i].digest);
	}
	return collect_heard(p, e);
}

/* The chain over the effective view once the new items are in it. */
static void
chain_view(struct pass *p)
{
	struct hf_turn *t = p->t;
	const struct hf_align *al = &p->align;
	const struct hf_session_key *k = &t->head.key;
	uint32_t h = 0, n = 0;
	bool whole = al->how == HF_ALIGN_BRANCH || al->how == HF_ALIGN_RETRY ||
	    al->how == HF_ALIGN_MERGED || al->n_heard > 0;

	memset(t->view, 0, sizeof(t->view));
	t->view_items = 0;
	if (!whole) {
		memcpy(t->view, t->head.view, sizeof(t->view));
		t->view_items = t->head.view_items;
	}
	for (uint32_t s = 0; whole && s < al->keep; s++) {
		while (n < al->n_insert && al->insert[n].s == s) {
			fold(k, t->view, p->client[al->insert[n++].c].digest);
			t->view_items++;
		}
		if (h < al->n_heard && al->heard[h].s == s) {
			uint32_t c = al->heard[h++].c;

			if (c == HF_ALIGN_NONE)
				continue;
			fold(k, t->view, p->client[c].digest);
		} else {
			fold(k, t->view, hf_item_view_digest(&p->stored[s]));
		}
		t->view_items++;
	}
	for (uint32_t i = al->first_new; i < p->n_client; i++)
		fold(k, t->view, p->client[i].digest);
	t->view_items += p->n_client - al->first_new;
}

static int
submit(struct pass *p, struct hf_error *e)
{
	struct hf_turn *t = p->t;
	struct hf_begin b = {
		.tenant = t->in.tenant,
		.name = t->in.session,
		.session_found = t->head.found,
		.session_row = t->head.session_row,
		.rev = t->head.rev,
		.session = t->session,
		.key = t->head.key,
		.turn = t->id,
		.turn_row = t->turn_row,
		.fence = t->fence,
		.parent_row = p->parent_row,
		.retry_of_row = p->retry_of_row,
		.item = p->item,
		.n_item = p->n_item,
		.heard = p->heard,
		.n_heard = p->align.n_heard,
		.view_items = t->view_items,
		.params = t->in.params,
		.request = t->in.request,
		.route = hf_str(t->in.route->name),
		.stream = t->in.stream,
		.target = hf_str(t->in.route->target[t->target]->name),
		.created_us = t->created_us,
		.read_history = true,
		.has_idem = t->has_idem,
		.has_request = t->in.request.size > 0,
	};
	int rc;

	memcpy(b.view, t->view, sizeof(b.view));
	memcpy(b.idem, t->idem, sizeof(b.idem));
	memcpy(b.request_digest, t->request_digest, HF_DIGEST_SIZE);
	memcpy(b.lead_digest, p->lead_digest, sizeof(b.lead_digest));
	memcpy(b.input_digest, p->input_digest, sizeof(b.input_digest));
	rc = hf_store_begin(t->env->store, &b, begun, t, e);
	if (rc == 0)
		t->pending++;
	return rc;
}

/* One pass: read the head, align, submit T1.  Everything it allocates stays
 * in the turn's arena; passes are few. */
static int
reconcile(struct hf_turn *t, struct hf_error *e)
{
	struct pass p = { .t = t };
	struct hf_draft *d = &t->in.draft;
	int rc;

	rc = turn_check_earlier(t, e);
	if (rc != 0)
		return rc;
	rc = hf_store_head(
	    t->env->store, t->in.tenant, t->in.session, &t->head, e);
	if (rc < 0)
		return rc;
	if (t->head.found)
		t->session = t->head.session;
	else if (hf_id_valid(t->in.session, "ses_"))
		return hf_fail(e, HF_ENOTFOUND, "no such session");
	else if (t->in.session.size == 0)
		hf_nameless_session(&t->id, &t->session);
	else if (t->session.s[0] == '\0')
		hf_id_make(&t->session, "ses_");
	rc = turn_check_head(t, e);
	if (rc != 0)
		return rc;
	if (t->head.found) {
		turn_shadows_end(t->env, t->head.session_row);
		turn_stay(t, t->head.session_row);
	}
	hf_draft_digest(d, &t->head.key);
	p.client = d->item + d->n_lead;
	p.n_client = d->n - d->n_lead;
	rc = align(&p, e);
	if (rc == 0)
		rc = collect_items(&p, e);
	if (rc < 0)
		return rc;
	t->how = p.align.how;
	chain_view(&p);
	return submit(&p, e);
}

void
turn_reconcile(struct hf_turn *t)
{
	struct hf_error e = { 0 };
	int rc;

	rc = reconcile(t, &e);
	if (rc < 0)
		turn_fail_store(t, rc, &e);
	else if (rc == 0)
		turn_move(t, TURN_BEGINNING);
}

void
turn_enqueue(struct hf_turn *t)
{
	struct hf_turn_env *env = t->env;

	t->next = env->queued;
	t->prevp = &env->queued;
	if (t->next != NULL)
		t->next->prevp = &t->next;
	env->queued = t;
	t->on_queue = true;
	/* The grant may have come before this. */
	hf_turn_grants(env);
}

void
turn_leave_queue(struct hf_turn *t)
{
	if (!t->on_queue)
		return;
	*t->prevp = t->next;
	if (t->next != NULL)
		t->next->prevp = t->prevp;
	t->on_queue = false;
}

static void
begun(void *arg, int rc, const struct hf_error *e, const struct hf_begun *b)
{
	struct hf_turn *t = arg;

	if (rc == 0 && b->result != HF_BEGIN_MOVED) {
		t->session_row = b->session_row;
		t->turn_row = b->turn_row;
		t->seq = b->seq;
		t->session = b->session;
		t->joins_row = b->joins_row;
		if (b->result == HF_BEGIN_OPEN) {
			t->opened = true;
			t->fence = b->fence;
			t->n_attempt = 1;
			t->open_n = 1;
		}
	}
	if (turn_settled(t))
		return;
	if (rc < 0) {
		turn_fail_store(t, rc, e);
	} else if (b->result == HF_BEGIN_OPEN) {
		(void)hf_fault("turn.t1.done");
		turn_move(t, TURN_REBUILDING);
		t->read = b->history;
		turn_rebuild(t);
		t->read = NULL;
	} else if (b->result == HF_BEGIN_QUEUED) {
		hf_count(t->env->shm, HF_C_turns_queued, 1);
		turn_move(t, TURN_QUEUED);
		turn_enqueue(t);
	} else if (++t->moved > MOVED_MAX) {
		turn_fail_store(t, HF_ECONFLICT, NULL);
	} else {
		turn_move(t, TURN_RECONCILING);
		turn_reconcile(t);
	}
}

static void
granted(void *arg, int64_t turn_row, uint64_t fence)
{
	struct hf_turn_env *env = arg;
	struct hf_turn *t;

	/* One that is not here yet looks again on its own completion. */
	for (t = env->queued; t != NULL; t = t->next)
		if (t->turn_row == turn_row)
			t->fence = fence;
}

void
hf_turn_grants(struct hf_turn_env *env)
{
	static struct hf_log_limit limit;
	struct hf_error e = { 0 };
	struct hf_turn *t, *next;

	if (env->queued == NULL)
		return;
	if (hf_store_granted(env->store, granted, env, &e) < 0)
		hf_log_limited(&limit, 1000, HF_LOG_ERROR,
		    "turn: grants_unread detail=\"%s\"", e.text);
	for (t = env->queued; t != NULL; t = next) {
		next = t->next;
		if (t->fence == 0)
			continue;
		turn_leave_queue(t);
		turn_move(t, TURN_RECONCILING);
		turn_reconcile(t);
	}
}
