#include <config.h>

#include "tests/unit/store_fixture.h"

#include <dirent.h>
#include <poll.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"

static uint64_t next_inc;

static void
set_inc(struct fx *f, unsigned slot, uint64_t inc)
{
	atomic_store(&f->shm[0].h->slot[slot].inc, inc);
}

void
fx_open(struct fx *f)
{
	const char *tmp = getenv("TMPDIR");

	memset(f, 0, sizeof(*f));
	snprintf(f->dir, sizeof(f->dir), "%s/hfstoreXXXXXX",
	    tmp == NULL ? "/tmp" : tmp);
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->db, sizeof(f->db), "%s/db", f->dir);
	snprintf(f->key, sizeof(f->key), "%s/db.key", f->dir);
	fx_reopen(f);
}

void
fx_reopen(struct fx *f)
{
	struct hf_recovered r;
	uint64_t boot;

	assert_int_equal(hf_shm_create(&f->shm[0], NULL, &f->e), 0);
	for (unsigned i = 0; i < FX_SLOTS; i++) {
		f->shm[i] = f->shm[0];
		f->shm[i].self = i;
		f->conf[i] = (struct hf_store_conf){ .path = f->db,
			.key_file = f->key,
			.sync_full = true,
			.shm = &f->shm[i],
			.hold = &f->hold };
		set_inc(f, i, (uint64_t)1 << 32 | ++next_inc);
	}
	assert_int_equal(hf_keep_open(&f->keep, &f->conf[0], &f->e), 0);
	assert_int_equal(
	    hf_keep_recover(f->keep, fx_make_body, NULL, &boot, &r, &f->e), 0);
}

static void
remove_folder(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *ent;
	char path[600];

	assert_non_null(d);
	while ((ent = readdir(d)) != NULL) {
		snprintf(path, sizeof(path), "%s/%s", dir, ent->d_name);
		if (ent->d_name[0] != '.')
			assert_int_equal(unlink(path), 0);
	}
	closedir(d);
	assert_int_equal(rmdir(dir), 0);
}

void
fx_close(struct fx *f)
{
	for (unsigned i = 0; i < FX_SLOTS; i++)
		hf_store_close(f->st[i]);
	hf_keep_close(f->keep);
	hf_hold_unmap(&f->hold);
	hf_shm_unmap(&f->shm[0]);
	remove_folder(f->dir);
}

struct hf_store *
fx_store(struct fx *f, unsigned slot)
{
	if (f->st[slot] == NULL) {
		assert_int_equal(
		    hf_store_open(&f->st[slot], &f->conf[slot], &f->e), 0);
		hf_store_set_make_body(f->st[slot], fx_make_body, NULL);
	}
	return f->st[slot];
}

void
fx_kill(struct fx *f, unsigned slot)
{
	set_inc(f, slot, 0);
}

void
fx_respawn(struct fx *f, unsigned slot)
{
	hf_store_close(f->st[slot]);
	f->st[slot] = NULL;
	set_inc(f, slot, (uint64_t)1 << 32 | ++next_inc);
	fx_store(f, slot);
}

static void
wait_event(struct hf_store *st)
{
	struct pollfd p = { .fd = hf_store_event_fd(st), .events = POLLIN };

	assert_int_equal(poll(&p, 1, 20000), 1);
	hf_store_dispatch(st);
}

void
fx_wait(struct fx *f, unsigned slot)
{
	wait_event(f->st[slot]);
}

void
fx_drain(struct fx *f, unsigned slot)
{
	while (hf_store_pending(f->st[slot]) > 0)
		wait_event(f->st[slot]);
}

struct result {
	bool done;
	int rc;
	struct hf_error e;
	struct hf_begun b;
};

static void
on_begun(void *arg, int rc, const struct hf_error *e, const struct hf_begun *b)
{
	struct result *r = arg;

	assert_false(r->done);
	r->done = true;
	r->rc = rc;
	if (rc < 0)
		r->e = *e;
	r->b = *b;
}

static void
on_done(void *arg, int rc, const struct hf_error *e)
{
	struct result *r = arg;

	assert_false(r->done);
	r->done = true;
	r->rc = rc;
	if (rc < 0)
		r->e = *e;
}

static int
finish_wait(struct fx *f, struct hf_store *st, struct result *r, int rc)
{
	if (rc < 0)
		return rc;
	while (!r->done)
		wait_event(st);
	if (r->rc < 0) {
		f->e = r->e;
		assert_int_equal(r->e.code, r->rc);
	}
	return r->rc;
}

int
fx_begin(
    struct fx *f, unsigned slot, const struct hf_begin *b, struct hf_begun *out)
{
	struct hf_store *st = fx_store(f, slot);
	struct result r = { 0 };
	int rc =
	    finish_wait(f, st, &r, hf_store_begin(st, b, on_begun, &r, &f->e));

	*out = r.b;
	return rc;
}

int
fx_finish(struct fx *f, unsigned slot, const struct hf_finish *fin)
{
	struct hf_store *st = fx_store(f, slot);
	struct result r = { 0 };

	return finish_wait(
	    f, st, &r, hf_store_finish(st, fin, on_done, &r, &f->e));
}

int
fx_part(struct fx *f, unsigned slot, const struct hf_begun *b, int64_t seq,
    const char *text)
{
	struct hf_store *st = fx_store(f, slot);
	struct result r = { 0 };

	return finish_wait(f, st, &r,
	    hf_store_part(st, b->session_row, b->turn_row, b->fence, seq,
		hf_str(text), on_done, &r, &f->e));
}

int
fx_attempts(struct fx *f, unsigned slot, const struct hf_begun *b,
    const struct hf_attempt_end *close, const struct hf_attempt_begin *open)
{
	struct hf_store *st = fx_store(f, slot);
	struct result r = { 0 };

	return finish_wait(f, st, &r,
	    hf_store_attempts(st, b->session_row, b->turn_row, b->fence, close,
		open, on_done, &r, &f->e));
}

int
fx_cancel(struct fx *f, unsigned slot, int64_t turn_row)
{
	struct hf_store *st = fx_store(f, slot);
	struct result r = { 0 };

	return finish_wait(f, st, &r,
	    hf_store_cancel_queued(st, turn_row, on_done, &r, &f->e));
}

struct hf_item
fx_item(const struct hf_session_key *k, enum hf_role role, const char *text)
{
	struct hf_item it = { .kind = HF_ITEM_MESSAGE,
		.role = role,
		.origin = role == HF_ROLE_ASSISTANT ? HF_ORIGIN_MODEL :
						      HF_ORIGIN_CLIENT,
		.body = hf_str(text) };

	hf_store_digest(k, it.body, it.digest);
	return it;
}

struct hf_begin
fx_turn(const char *name, const struct hf_head *h, struct hf_item *item,
    const char *text)
{
	static const uint8_t zero[HF_DIGEST_SIZE];
	struct hf_begin b = { .tenant = "acme",
		.name = hf_str(name),
		.session_found = h->found,
		.session_row = h->session_row,
		.rev = h->rev,
		.key = h->key,
		.parent_row = h->head_turn_row,
		.item = item,
		.n_item = 1,
		.view_items = h->view_items + 1,
		.request = HF_STR("{\"request\":1}"),
		.params = HF_STR("{}"),
		.route = HF_STR("route"),
		.target = HF_STR("a/model") };

	if (!h->found)
		hf_id_make(&b.session, "ses_");
	hf_id_make(&b.turn, "turn_");
	*item = fx_item(&h->key, HF_ROLE_USER, text);
	hf_store_chain(&h->key, h->view, item->digest, b.view);
	hf_store_chain(&h->key, zero, item->digest, b.input_digest);
	memcpy(b.lead_digest, h->lead_digest, sizeof(b.lead_digest));
	return b;
}

struct hf_finish
fx_answer(const struct hf_begin *b, const struct hf_begun *begun,
    const struct hf_session_key *k, struct hf_item *item, const char *text)
{
	struct hf_finish f = { .session_row = begun->session_row,
		.turn_row = begun->turn_row,
		.fence = begun->fence,
		.state = HF_TURN_COMPLETE,
		.item = item,
		.n_item = 1,
		.view_items = b->view_items + 1,
		.attempt = { .n = 1,
		    .cls = "ok",
		    .reason = "",
		    .http_status = 200,
		    .called_us = hf_wall_us(),
		    .first_token_us = 1,
		    .total_us = 2,
		    .tokens_in = 3,
		    .tokens_out = 4 },
		.heard = -1,
		.finish_reason = "stop",
		.status = 200 };

	*item = fx_item(k, HF_ROLE_ASSISTANT, text);
	hf_store_chain(k, b->view, item->digest, f.view);
	return f;
}

struct hf_head
fx_head(struct fx *f, unsigned slot, const char *name)
{
	struct hf_head h;

	assert_int_equal(
	    hf_store_head(fx_store(f, slot), "acme", hf_str(name), &h, &f->e),
	    0);
	return h;
}

int64_t
fx_say(struct fx *f, unsigned slot, const char *name, const char *user,
    const char *answer)
{
	struct hf_head h = fx_head(f, slot, name);
	struct hf_item in, out;
	struct hf_begin b = fx_turn(name, &h, &in, user);
	struct hf_begun begun;
	struct hf_finish fin;

	assert_int_equal(fx_begin(f, slot, &b, &begun), 0);
	assert_int_equal(begun.result, HF_BEGIN_OPEN);
	fin = fx_answer(&b, &begun, &h.key, &out, answer);
	assert_int_equal(fx_finish(f, slot, &fin), 0);
	return begun.turn_row;
}

int
fx_one_begin(struct fx *f, unsigned slot, struct fx_one *t, const char *name,
    const char *text)
{
	t->h = fx_head(f, slot, name);
	t->b = fx_turn(name, &t->h, &t->in, text);
	return fx_begin(f, slot, &t->b, &t->begun);
}

int
fx_one_begin_granted(struct fx *f, unsigned slot, struct fx_one *t,
    const char *name, const char *text, uint64_t fence)
{
	int64_t row = t->begun.turn_row;

	t->h = fx_head(f, slot, name);
	t->b = fx_turn(name, &t->h, &t->in, text);
	t->b.turn_row = row;
	t->b.fence = fence;
	return fx_begin(f, slot, &t->b, &t->begun);
}

int
fx_one_finish(struct fx *f, unsigned slot, struct fx_one *t, const char *text)
{
	t->fin = fx_answer(&t->b, &t->begun, &t->h.key, &t->out, text);
	return fx_finish(f, slot, &t->fin);
}

static void
on_grant(void *arg, int64_t turn, uint64_t fence)
{
	struct fx_grants *g = arg;

	assert_true(g->n < 8);
	g->turn[g->n] = turn;
	g->fence[g->n++] = fence;
}

struct fx_grants
fx_granted(struct fx *f, unsigned slot)
{
	struct fx_grants g = { 0 };

	assert_int_equal(
	    hf_store_granted(fx_store(f, slot), on_grant, &g, &f->e), 0);
	return g;
}

bool
fx_woken(struct fx *f, unsigned slot)
{
	uint64_t n;

	return read(f->shm[0].wake_fd[slot], &n, sizeof(n)) == sizeof(n);
}

uint32_t
fx_hold(struct fx *f, unsigned slot, const struct hf_id *turn)
{
	struct hf_hold_mark *m;
	struct hf_hold h;
	uint32_t at;
	int fd;

	if (f->hold.map == NULL) {
		assert_int_equal(hf_hold_create(&f->hold, &fd, &f->e), 0);
		close(fd);
	}
	h = f->hold;
	h.inc = hf_shm_self_inc(&f->shm[slot]);
	at = hf_hold_take(&h);
	assert_int_not_equal(at, HF_HOLD_NONE);
	m = hf_hold_change(&h, at);
	m->flags = HF_HOLD_SERVING;
	snprintf(m->turn, sizeof(m->turn), "%s", turn->s);
	hf_hold_commit(&h, at);
	return at;
}

const char *
fx_history(struct fx *f, unsigned slot, const char *name)
{
	static const char *const role[] = { "?", "system", "developer", "user",
		"assistant", "tool" };
	static char text[8192];
	struct hf_head h = fx_head(f, slot, name);
	struct hf_history hist;
	struct hf_arena a;
	size_t n = 0;
	int rc;

	hf_arena_init(&a, 0);
	text[0] = '\0';
	rc = hf_store_history(fx_store(f, slot), h.session_row, h.head_turn_row,
	    &a, &hist, &f->e);
	if (rc < 0)
		snprintf(text, sizeof(text), "%s", hf_err_name(rc));
	for (unsigned i = 0; rc == 0 && i < hist.n; i++) {
		struct hf_str s = hist.item[i].has_heard ? hist.item[i].heard :
							   hist.item[i].body;

		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s:%.*s",
		    i == 0 ? "" : "|", role[hist.item[i].role], HF_STR_ARG(s));
		assert_true(n < sizeof(text));
	}
	hf_arena_free(&a);
	return text;
}

int
fx_make_body(void *arg, struct hf_str text, struct hf_str refusal,
    struct hf_buf *body, struct hf_buf *norm)
{
	(void)arg;
	for (int i = 0; i < 2; i++) {
		struct hf_buf *b = i == 0 ? body : norm;

		if (b == NULL)
			continue;
		hf_buf_putstr(b, text);
		hf_buf_putstr(b, refusal);
	}
	return 0;
}

int64_t
fx_sql(struct fx *f, const char *sql)
{
	sqlite3 *h;
	sqlite3_stmt *st;
	int64_t n = 0;
	int rc;

	assert_int_equal(sqlite3_open(f->db, &h), SQLITE_OK);
	sqlite3_busy_timeout(h, 5000);
	/* As every connection of the product: no checkpoint from here. */
	sqlite3_db_config(h, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	sqlite3_wal_autocheckpoint(h, 0);
	if (sqlite3_prepare_v2(h, sql, -1, &st, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(h));
	rc = sqlite3_step(st);
	if (rc == SQLITE_ROW)
		n = sqlite3_column_int64(st, 0);
	else if (rc != SQLITE_DONE)
		fail_msg("%s: %s", sql, sqlite3_errmsg(h));
	sqlite3_finalize(st);
	sqlite3_close(h);
	return n;
}

void
fx_fault(const char *what)
{
	static unsigned used;
	char text[128];
	unsigned i;

	if (what == NULL) {
		unsetenv("HF_FAULT");
		return;
	}
	assert_true(used < 16);
	for (i = 0; i < used; i++)
		text[i] = ',';
	snprintf(text + i, sizeof(text) - i, "%s", what);
	used++;
	setenv("HF_FAULT", text, 1);
}
