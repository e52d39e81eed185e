/*
 * Parts of a text, read and joined.
 */
#include <config.h>

#include "store/parts.h"

/* Parts *from to 'to', until there are 'most' bytes. */
static int
read_parts(struct hf_db *db, const struct hf_seal_key *key, int64_t turn,
    int64_t seq, int64_t *from, int64_t to, size_t most, struct hf_buf *text,
    struct hf_error *e)
{
	struct hf_seal_at at = { HF_SEAL_PART, seq, 0 };
	struct hf_arena a;
	struct hf_str part;
	sqlite3_stmt *st =
	    hf_db_bind(db, HF_SQL_PART_READ, e, "ii", hf_row_child(turn, *from),
		to < HF_ROW_MAX ? hf_row_child(turn, to) :
				  hf_row_child(turn + 1, 0));
	int rc;

	if (st == NULL)
		return e->code;
	while ((rc = hf_db_step(db, st, e)) > 0) {
		at.idx = sqlite3_column_int64(st, 0) - hf_row_child(turn, 0);
		hf_arena_init(&a, 0);
		rc = hf_seal_open(key, at, hf_db_str(st, 1), &a, &part);
		if (rc == 0)
			hf_buf_putstr(text, part);
		hf_arena_free(&a);
		if (rc < 0)
			hf_fail(e, rc, "turn %lld: part %lld does not open",
			    (long long)seq, (long long)at.idx);
		*from = at.idx + 1;
		if (rc < 0 || text->size >= most) {
			hf_db_reset(st);
			break;
		}
	}
	if (rc >= 0 && !hf_buf_ok(text))
		rc = hf_fail(
		    e, HF_ENOMEM, "turn %lld: its parts", (long long)seq);
	return rc < 0 ? rc : 0;
}

int
hf_parts_read(struct hf_db *db, const struct hf_seal_key *key, int64_t turn,
    int64_t seq, int64_t n, struct hf_buf *text, struct hf_error *e)
{
	int64_t from = 0;

	return read_parts(db, key, turn, seq, &from, n, SIZE_MAX, text, e);
}

int
hf_parts_read_on(struct hf_db *db, const struct hf_seal_key *key, int64_t turn,
    int64_t seq, int64_t *from, size_t most, struct hf_buf *text,
    struct hf_error *e)
{
	return read_parts(
	    db, key, turn, seq, from, HF_PARTS_ALL, most, text, e);
}

/* Body and digest of a message; each step may need the memory of megabytes
 * again, so they are made one after the other. */
static int
make_message(struct hf_writer *w, const struct hf_seal_key *key,
    struct hf_str text, struct hf_str refusal, struct hf_buf *body,
    uint8_t digest[HF_DIGEST_SIZE])
{
	struct hf_buf norm;
	int rc;

	if (w->make_body == NULL)
		return HF_EINVAL;
	hf_buf_init(&norm, HF_BUF_NOCAP);
	rc = w->make_body(w->make_body_arg, text, refusal, NULL, &norm);
	if (rc == 0 && !hf_buf_ok(&norm))
		rc = HF_ENOMEM;
	if (rc == 0)
		hf_store_digest(&key->digest, hf_buf_str(&norm), digest);
	hf_buf_free(&norm);
	if (rc == 0)
		rc = w->make_body(w->make_body_arg, text, refusal, body, NULL);
	return rc == 0 && !hf_buf_ok(body) ? HF_ENOMEM : rc;
}

/* The part of it that was heard, if that is not all. */
static int
make_heard(struct hf_writer *w, const struct hf_seal_key *key,
    struct hf_str text, struct hf_str refusal, int64_t heard,
    struct hf_buf *body, struct hf_item *it)
{
	size_t n = (size_t)heard;
	int rc;

	it->has_heard = heard >= 0 && n < text.size + refusal.size;
	if (!it->has_heard || n == 0)
		return 0;
	refusal.size = n > text.size ? n - text.size : 0;
	text.size = n < text.size ? n : text.size;
	rc = make_message(w, key, text, refusal, body, it->heard_digest);
	it->heard = hf_buf_str(body);
	return rc;
}

static int
add_item(struct hf_writer *w, const struct hf_seal_key *key,
    struct hf_turn_row *t, const struct hf_item *it, struct hf_error *e)
{
	int rc = hf_row_add_items(w, key, t, it, 1, true, e);

	if (rc == 0)
		hf_row_extend_view(key, t, it);
	return rc;
}

int
hf_parts_to_item(struct hf_writer *w, const struct hf_seal_key *key,
    struct hf_turn_row *t, const struct hf_parts_text *p, size_t *size,
    struct hf_error *e)
{
	struct hf_item it = { .kind = HF_ITEM_MESSAGE,
		.role = HF_ROLE_ASSISTANT,
		.origin = HF_ORIGIN_MODEL };
	struct hf_buf text, body, heard;
	int rc;

	hf_buf_init(&text, HF_BUF_NOCAP);
	hf_buf_init(&body, HF_BUF_NOCAP);
	hf_buf_init(&heard, HF_BUF_NOCAP);
	rc = hf_parts_read(&w->db, key, t->id, t->seq, p->n, &text, e);
	hf_buf_putstr(&text, p->rest);
	*size = text.size;
	if (rc < 0 || (text.size == 0 && p->refusal.size == 0))
		goto out;
	rc = hf_buf_ok(&text) ? make_heard(w, key, hf_buf_str(&text),
				    p->refusal, p->heard, &heard, &it) :
				HF_ENOMEM;
	if (rc == 0)
		rc = make_message(
		    w, key, hf_buf_str(&text), p->refusal, &body, it.digest);
	hf_buf_free(&text);
	if (rc < 0) {
		hf_fail(e, rc, "turn %lld: no body could be made of its text",
		    (long long)t->seq);
		goto out;
	}
	it.body = hf_buf_str(&body);
	rc = add_item(w, key, t, &it, e);
out:
	hf_buf_free(&text);
	hf_buf_free(&body);
	hf_buf_free(&heard);
	return rc;
}
