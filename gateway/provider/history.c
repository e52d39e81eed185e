/*
 * Putting a stored history into an order that every provider accepts.
 * Linear: calls and results meet in a hash table, keyed so that nobody can
 * choose ids that collide.
 */
#include <config.h>

#include "gateway/provider/history.h"

#include <sodium.h>

#define NONE UINT32_MAX

/* An item with its checked body. */
struct entry {
	const struct hf_item *item;
	struct hf_json body;
	uint32_t first;	    /* node of the body, if it is of our map */
	uint32_t result;    /* calls: of its result */
	uint32_t next_open; /* calls: older one, same id */
	struct hf_str id;   /* calls: on the wire */
};

/* A distinct tool call id. */
struct name {
	uint64_t hash;
	struct hf_str id; /* decoded */
	uint32_t uses;	  /* calls that had it */
	uint32_t open;	  /* newest unanswered call */
	uint32_t next;	  /* in the same bucket */
};

struct maker {
	struct hf_said_list *out;
	struct hf_arena *a;
	struct entry *entry;
	uint32_t n;
	struct name *name;
	uint32_t n_name;
	uint32_t *bucket;
	uint32_t mask;
	size_t id_max;
	struct hf_buf scratch;
};

static uint64_t
hash_id(struct hf_str id)
{
	static unsigned char key[crypto_shorthash_KEYBYTES];
	static bool made;
	uint64_t h;

	if (!made) {
		randombytes_buf(key, sizeof(key));
		made = true;
	}
	crypto_shorthash(
	    (unsigned char *)&h, (const unsigned char *)id.p, id.size, key);
	return h;
}

/* The entry of an id, made if it is new; NULL when memory is gone. */
static struct name *
intern(struct maker *m, struct hf_json body)
{
	struct hf_str id;
	struct name *n;
	uint32_t *at;
	uint64_t h;

	hf_buf_reset(&m->scratch);
	hf_json_decode(hf_json_get(body, "id"), &m->scratch);
	if (!hf_buf_ok(&m->scratch))
		return NULL;
	id = hf_buf_str(&m->scratch);
	if (id.p == NULL)
		id = HF_STR("");
	h = hash_id(id);
	for (at = &m->bucket[h & m->mask]; *at != NONE; at = &n->next) {
		n = &m->name[*at];
		if (n->hash == h && hf_str_eq(n->id, id))
			return n;
	}
	id = hf_arena_dup(m->a, id);
	if (id.p == NULL)
		return NULL;
	*at = m->n_name;
	n = &m->name[m->n_name++];
	*n = (struct name){ .hash = h, .id = id, .open = NONE, .next = NONE };
	return n;
}

static bool
is_legal(struct hf_str id, size_t max)
{
	size_t i;
	char c;

	if (id.size == 0 || id.size > max)
		return false;
	for (i = 0; i < id.size; i++) {
		c = id.p[i];
		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			(c >= '0' && c <= '9') || c == '_' || c == '-'))
			return false;
	}
	return true;
}

#define REPLACED "call_r"
#define REPLACED_SIZE 30

/* Has it the form of a replacement?  Then it is replaced too, or it could be
 * the same as one.  Neither we nor providers mint ids of this form. */
static bool
looks_replaced(struct hf_str id)
{
	return id.size == REPLACED_SIZE &&
	    memcmp(id.p, REPLACED, sizeof(REPLACED) - 1) == 0;
}

/* The id itself, or "call_r" and 24 characters that depend on nothing but the
 * id and on how many calls had it before. */
static struct hf_str
wire_id(struct maker *m, const struct name *n)
{
	static const char digit[] = "0123456789abcdefghjkmnpqrstvwxyz";
	unsigned char use[4], h[24];
	crypto_generichash_state st;
	char text[REPLACED_SIZE + 1] = REPLACED;
	unsigned i;

	if (n->uses == 0 && is_legal(n->id, m->id_max) &&
	    !looks_replaced(n->id))
		return n->id;
	for (i = 0; i < sizeof(use); i++)
		use[i] = (unsigned char)(n->uses >> 8 * i);
	crypto_generichash_init(&st, NULL, 0, sizeof(h));
	crypto_generichash_update(&st, use, sizeof(use));
	crypto_generichash_update(
	    &st, (const unsigned char *)n->id.p, n->id.size);
	crypto_generichash_final(&st, h, sizeof(h));
	for (i = 0; i < sizeof(h); i++)
		text[sizeof(REPLACED) - 1 + i] = digit[h[i] & 31];
	return hf_arena_dup(m->a, (struct hf_str){ text, REPLACED_SIZE });
}

static int
read_body(
    struct maker *m, struct entry *en, struct hf_str body, struct hf_error *e)
{
	en->first = m->out->map.n;
	if (hf_json_check_map(body, &en->body, NULL, &m->out->map, e) != 0)
		return HF_EINVAL;
	if (en->body.type != HF_JSON_OBJECT)
		return hf_fail(e, HF_EINVAL, "not an object");
	return 0;
}

static int
read_bodies(
    struct maker *m, const struct hf_payload_input *in, struct hf_error *e)
{
	const struct hf_item *item = in->item;
	struct hf_error why = { 0 };
	struct entry *en;
	struct hf_str body;
	unsigned i;

	for (i = 0; i < in->n_item; i++) {
		body = item[i].has_heard ? item[i].heard : item[i].body;
		if (item[i].has_heard && body.size == 0)
			continue; /* nobody heard it */
		en = &m->entry[m->n++];
		*en = (struct entry){ .item = &item[i],
			.first = NONE,
			.result = NONE,
			.next_open = NONE };
		if (in->body != NULL && in->body[i].type != HF_JSON_NONE)
			en->body = in->body[i];
		else if (read_body(m, en, body, &why) < 0)
			return hf_fail(
			    e, HF_EINVAL, "item %u: %s", i, why.text);
	}
	for (i = 0; i < m->n; i++) /* the map moved while it grew */
		if (m->entry[i].first != NONE)
			hf_json_remap(
			    &m->entry[i].body, &m->out->map, m->entry[i].first);
	return 0;
}

/* Find each result's call: the newest one of that id without a result. */
static int
pair(struct maker *m, struct hf_error *e)
{
	struct entry *en;
	struct name *n;
	uint32_t i;

	for (i = 0; i < m->n; i++) {
		en = &m->entry[i];
		if (en->item->kind == HF_ITEM_MESSAGE)
			continue;
		n = intern(m, en->body);
		if (n == NULL)
			return hf_fail(e, HF_ENOMEM, "tool call ids");
		if (en->item->kind == HF_ITEM_TOOL_CALL) {
			en->id = wire_id(m, n);
			if (en->id.p == NULL)
				return hf_fail(e, HF_ENOMEM, "tool call ids");
			n->uses++;
			en->next_open = n->open;
			n->open = i;
		} else if (n->open != NONE) {
			m->entry[n->open].result = i;
			n->open = m->entry[n->open].next_open;
		}
	}
	return 0;
}

static struct hf_said *
add(struct maker *m, enum hf_said_kind kind, const struct entry *en)
{
	static const struct hf_str key[] = { HF_STR("content"),
		HF_STR("refusal"), HF_STR("name"), HF_STR("arguments") };
	struct hf_said *s = &m->out->line[m->out->n++];
	struct hf_json v[hf_countof(key)] HF_UNINIT;

	hf_json_get_all(en->body, key, hf_countof(key), v);
	*s = (struct hf_said){ .kind = kind,
		.body = en->body,
		.content = v[0],
		.refusal = v[1],
		.name = v[2],
		.arguments = v[3] };
	s->role = kind == HF_SAID_RESULT ? HF_ROLE_TOOL :
	    kind == HF_SAID_CALL	 ? HF_ROLE_ASSISTANT :
					   en->item->role;
	return s;
}

static bool
same_answer(const struct entry *a, const struct entry *b)
{
	return a->item->turn_row == b->item->turn_row;
}

/* The calls of one answer from 'i' on, then their results; returns how many
 * entries that took. */
static uint32_t
add_calls(struct maker *m, uint32_t i)
{
	const struct entry *en = m->entry, *res;
	struct hf_said *s;
	uint32_t k, end = i;
	bool joined;

	joined = i > 0 && en[i - 1].item->kind == HF_ITEM_MESSAGE &&
	    en[i - 1].item->role == HF_ROLE_ASSISTANT &&
	    same_answer(&en[i - 1], &en[i]);
	for (; end < m->n && en[end].item->kind == HF_ITEM_TOOL_CALL &&
	     same_answer(&en[end], &en[i]);
	     end++) {
		s = add(m, HF_SAID_CALL, &en[end]);
		s->id = en[end].id;
		s->joined = joined;
		joined = true;
	}
	for (k = i; k < end; k++) {
		res = en[k].result == NONE ? NULL : &en[en[k].result];
		s = add(m, HF_SAID_RESULT, res != NULL ? res : &en[k]);
		s->id = en[k].id;
		if (res == NULL)
			s->body = s->content = (struct hf_json){ 0 };
	}
	return end - i;
}

static bool
is_system(enum hf_role r)
{
	return r == HF_ROLE_SYSTEM || r == HF_ROLE_DEVELOPER;
}

static void
order(struct maker *m)
{
	const struct entry *en;
	struct hf_said *s;
	bool lead = true;
	uint32_t i = 0;

	while (i < m->n) {
		en = &m->entry[i];
		switch (en->item->kind) {
		case HF_ITEM_MESSAGE:
			s = add(m, HF_SAID_MESSAGE, en);
			lead = lead && is_system(s->role);
			s->lead = lead;
			i++;
			break;
		case HF_ITEM_TOOL_CALL:
			lead = false;
			i += add_calls(m, i);
			break;
		case HF_ITEM_TOOL_RESULT:
			i++; /* stands behind its call, or nowhere */
			break;
		}
	}
}

static int
allocate(struct maker *m, const struct hf_payload_input *in, struct hf_error *e)
{
	unsigned n_item = in->n_item, n_other = 0;
	uint32_t size = 16;

	for (unsigned i = 0; i < n_item; i++)
		n_other += in->item[i].kind != HF_ITEM_MESSAGE;
	while (size < n_other && size < (UINT32_C(1) << 30))
		size *= 2;
	m->mask = size - 1;
	m->bucket = hf_arena_bytes(m->a, size * sizeof(*m->bucket));
	m->entry = hf_arena_bytes(m->a, n_item * sizeof(*m->entry) + 1);
	m->name = hf_arena_bytes(m->a, n_other * sizeof(*m->name) + 1);
	/* Each call brings a result, and every item is at most one line.  All
	 * of them are written whole before they are read. */
	m->out->line = hf_arena_bytes(
	    m->a, ((size_t)n_item + n_other) * sizeof(*m->out->line) + 1);
	if (m->bucket == NULL || m->entry == NULL || m->name == NULL ||
	    m->out->line == NULL)
		return hf_fail(e, HF_ENOMEM, "history of %u items", n_item);
	memset(m->bucket, 0xff, size * sizeof(*m->bucket));
	return 0;
}

int
hf_said_make(struct hf_said_list *out, const struct hf_payload_input *in,
    size_t id_max, struct hf_error *e)
{
	struct maker m = { .out = out, .a = &out->arena, .id_max = id_max };
	int rc;

	*out = (struct hf_said_list){ 0 };
	hf_arena_init(&out->arena, 0);
	hf_buf_init(&m.scratch, HF_BUF_NOCAP);
	rc = allocate(&m, in, e);
	if (rc == 0)
		rc = read_bodies(&m, in, e);
	if (rc == 0)
		rc = pair(&m, e);
	if (rc == 0)
		order(&m);
	hf_buf_free(&m.scratch);
	if (rc != 0)
		hf_said_free(out);
	return rc;
}

void
hf_said_free(struct hf_said_list *l)
{
	hf_arena_free(&l->arena);
	hf_json_map_free(&l->map);
	l->line = NULL;
	l->n = 0;
}

int
hf_history_links(
    const struct hf_item *item, unsigned n, uint32_t *call, struct hf_error *e)
{
	const struct hf_payload_input in = { .item = item, .n_item = n };
	struct hf_said_list l = { 0 };
	struct maker m = { .out = &l, .a = &l.arena, .id_max = SIZE_MAX };
	int rc;

	hf_arena_init(&l.arena, 0);
	hf_buf_init(&m.scratch, HF_BUF_NOCAP);
	for (unsigned i = 0; i < n; i++)
		call[i] = NONE;
	rc = allocate(&m, &in, e);
	if (rc == 0)
		rc = read_bodies(&m, &in, e);
	if (rc == 0)
		rc = pair(&m, e);
	for (uint32_t i = 0; rc == 0 && i < m.n; i++) {
		const struct entry *en = &m.entry[i];

		if (en->result != NONE)
			call[m.entry[en->result].item - item] =
			    (uint32_t)(en->item - item);
	}
	hf_buf_free(&m.scratch);
	hf_said_free(&l);
	return rc;
}

/* --- contents ------------------------------------------------------------ */

bool
hf_content_next(struct hf_json content, size_t *pos, struct hf_json *text)
{
	struct hf_json part;

	if (content.type == HF_JSON_STRING) {
		*text = content;
		return (*pos)++ == 0;
	}
	while (hf_json_next_element(content, pos, &part)) {
		*text = hf_json_get(part, "text");
		if (text->type == HF_JSON_STRING)
			return true;
	}
	return false;
}

/* Size of the white space character at 'p', or 0. */
static size_t
space_size(const unsigned char *p, size_t left)
{
	if (*p == ' ' || (*p >= 0x09 && *p <= 0x0d))
		return 1;
	if (left >= 2 && p[0] == 0xc2 && (p[1] == 0xa0 || p[1] == 0x85))
		return 2;
	if (left >= 3 && p[0] == 0xe2 && p[1] == 0x80 &&
	    ((p[2] >= 0x80 && p[2] <= 0x8a) || p[2] == 0xa8 || p[2] == 0xa9 ||
		p[2] == 0xaf))
		return 3;
	if (left >= 3 && memcmp(p, "\xe3\x80\x80", 3) == 0)
		return 3;
	return 0;
}

bool
hf_text_blank(struct hf_json string)
{
	struct hf_buf b;
	size_t i = 0, n;

	if (string.type != HF_JSON_STRING || string.raw.size <= 2)
		return true;
	/* Cheap for nearly all: the first character is visible. */
	if (string.raw.p[1] > ' ' && string.raw.p[1] != '\\')
		return false;
	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_json_decode(string, &b);
	while (i < b.size &&
	    (n = space_size((unsigned char *)b.data + i, b.size - i)) > 0)
		i += n;
	n = b.size;
	hf_buf_free(&b);
	return i == n;
}

void
hf_text_put_stripped(struct hf_buf *b, struct hf_json string)
{
	size_t i = 0, n, end = 0;
	struct hf_buf text;

	hf_buf_init(&text, HF_BUF_NOCAP);
	hf_json_decode(string, &text);
	while (i < text.size) {
		n = space_size((unsigned char *)text.data + i, text.size - i);
		i += n > 0 ? n : 1;
		if (n == 0)
			end = i;
	}
	if (end == text.size)
		hf_buf_putstr(b, string.raw);
	else
		hf_json_put_string(b, (struct hf_str){ text.data, end });
	hf_buf_free(&text);
}

bool
hf_content_empty(struct hf_json content, bool blank)
{
	struct hf_json text;
	size_t pos = 0;

	while (hf_content_next(content, &pos, &text))
		if (blank ? !hf_text_blank(text) : text.raw.size > 2)
			return false;
	return true;
}
