/*
 * Bodies and normal forms of items.
 */
#include <config.h>

#include "gateway/turn/items.h"

#include "base/check.h"

void
hf_draft_init(struct hf_draft *d, struct hf_arena *a)
{
	*d = (struct hf_draft){ .arena = a };
}

void
hf_draft_free(struct hf_draft *d)
{
	hf_json_map_free(&d->map);
}

static bool
grow(struct hf_draft *d, unsigned cap)
{
	struct hf_item *item = hf_arena_bytes(d->arena, cap * sizeof(*item));
	struct hf_str *norm = hf_arena_bytes(d->arena, cap * sizeof(*norm));
	struct hf_json *body = hf_arena_bytes(d->arena, cap * sizeof(*body));

	if (item == NULL || norm == NULL || body == NULL)
		return false;
	if (d->n > 0) {
		memcpy(item, d->item, d->n * sizeof(*item));
		memcpy(norm, d->norm, d->n * sizeof(*norm));
		memcpy(body, d->body, d->n * sizeof(*body));
	}
	d->item = item;
	d->norm = norm;
	d->body = body;
	d->cap = cap;
	return true;
}

void
hf_draft_room(struct hf_draft *d, unsigned n)
{
	/* What fails here is tried again when an item is added. */
	if (n > d->cap)
		(void)grow(d, n);
}

static struct hf_item *
add(struct hf_draft *d, enum hf_item_kind kind, enum hf_role role,
    enum hf_origin origin)
{
	struct hf_item *item;

	if (d->n == d->cap && !grow(d, d->cap == 0 ? 8 : d->cap * 2))
		return NULL;
	d->body[d->n] = (struct hf_json){ 0 };
	item = &d->item[d->n];
	*item =
	    (struct hf_item){ .kind = kind, .role = role, .origin = origin };
	if ((role == HF_ROLE_SYSTEM || role == HF_ROLE_DEVELOPER) &&
	    d->n == d->n_lead) {
		item->lead = true;
		d->n_lead++;
	}
	return item;
}

/* Close the item that add() began: move body and norm into the arena. */
static int
commit(struct hf_draft *d, struct hf_item *item, struct hf_buf *body,
    struct hf_buf *norm, struct hf_error *e)
{
	int rc = 0;

	if (item != NULL && hf_buf_ok(body) && hf_buf_ok(norm)) {
		item->body = hf_arena_dup(d->arena, hf_buf_str(body));
		d->norm[d->n] = hf_arena_dup(d->arena, hf_buf_str(norm));
		if (item->body.p == NULL || d->norm[d->n].p == NULL)
			rc = HF_ENOMEM;
		else
			d->n++;
	} else {
		rc = HF_ENOMEM;
	}
	hf_buf_free(body);
	hf_buf_free(norm);
	return rc == 0 ? 0 : hf_fail(e, rc, "no memory for an item");
}

/* --- normal form ------------------------------------------------------- */

static void
norm_open(struct hf_buf *norm, enum hf_item_kind kind, enum hf_role role)
{
	hf_buf_putc(norm, (char)kind);
	hf_buf_putc(norm, (char)role);
}

/* Fields are written behind a length that is patched in afterwards. */
static size_t
norm_begin(struct hf_buf *norm)
{
	hf_buf_put(norm, "\0\0\0\0\0\0\0", 8);
	return norm->size;
}

static void
norm_end(struct hf_buf *norm, size_t from)
{
	uint64_t size;

	if (!hf_buf_ok(norm))
		return;
	size = norm->size - from;
	for (int i = 0; i < 8; i++)
		norm->data[from - 8 + (size_t)i] =
		    (char)(size >> (56 - 8 * i) & 0xff);
}

static void
norm_text(struct hf_buf *norm, struct hf_str text)
{
	size_t at = norm_begin(norm);

	hf_buf_putstr(norm, text);
	norm_end(norm, at);
}

static void
norm_string(struct hf_buf *norm, struct hf_json string)
{
	size_t at = norm_begin(norm);

	if (string.type == HF_JSON_STRING)
		hf_json_decode(string, norm);
	norm_end(norm, at);
}

static void
norm_arguments(struct hf_buf *norm, struct hf_str text)
{
	size_t at = norm_begin(norm);
	struct hf_json v;

	if (hf_json_check(text, &v, NULL, NULL) == 0)
		hf_json_put_compact(norm, v);
	else
		hf_buf_putstr(norm, text);
	norm_end(norm, at);
}

struct hf_str
hf_item_norm_text(struct hf_str norm)
{
	uint64_t size = 0;

	HF_CHECK(norm.size >= 10);
	for (int i = 0; i < 8; i++)
		size = size << 8 | (unsigned char)norm.p[2 + i];
	HF_CHECK(size <= norm.size - 10);
	return (struct hf_str){ norm.p + 10, size };
}

/* --- contents ---------------------------------------------------------- */

static int
put_part(struct hf_json part, unsigned n, struct hf_buf *body,
    struct hf_buf *text, struct hf_buf *refusal, struct hf_error *e)
{
	struct hf_json type = hf_json_get(part, "type"), v;
	bool is_refusal = hf_json_string_is(type, "refusal");

	if (part.type != HF_JSON_OBJECT || type.type != HF_JSON_STRING)
		return hf_fail(e, HF_EINVAL,
		    "content[%u].type: expected a "
		    "string that names the kind of part",
		    n);
	if (!is_refusal && !hf_json_string_is(type, "text"))
		return hf_fail(e, HF_EINVAL,
		    "content[%u].type: %.*s parts "
		    "are not supported here; expected \"text\"",
		    n, type.raw.size > 40 ? 40 : (int)type.raw.size,
		    type.raw.p);
	v = hf_json_get(part, is_refusal ? "refusal" : "text");
	if (v.type != HF_JSON_STRING)
		return hf_fail(e, HF_EINVAL,
		    "content[%u].%s: expected a "
		    "string",
		    n, is_refusal ? "refusal" : "text");
	if (body->data[body->size - 1] != '[')
		hf_buf_putc(body, ',');
	hf_buf_puts(body,
	    is_refusal ? "{\"type\":\"refusal\",\"refusal\":" :
			 "{\"type\":\"text\",\"text\":");
	hf_json_put_repaired(body, v);
	hf_buf_putc(body, '}');
	hf_json_decode(v, is_refusal && refusal != NULL ? refusal : text);
	return 0;
}

/* Append the content's JSON to 'body' and its decoded text to 'text'. */
static int
put_content(struct hf_json content, struct hf_buf *body, struct hf_buf *text,
    struct hf_buf *refusal, struct hf_error *e)
{
	struct hf_json part;
	size_t pos = 0;
	unsigned n = 0;
	int rc;

	if (content.type == HF_JSON_NONE || content.type == HF_JSON_NULL) {
		hf_buf_puts(body, "\"\"");
		return 0;
	}
	if (content.type == HF_JSON_STRING) {
		hf_json_put_repaired(body, content);
		hf_json_decode(content, text);
		return 0;
	}
	if (content.type != HF_JSON_ARRAY)
		return hf_fail(e, HF_EINVAL,
		    "content: expected a string or an array of parts");
	hf_buf_putc(body, '[');
	while (hf_json_next_element(content, &pos, &part)) {
		if (!hf_buf_ok(body))
			return hf_fail(e, HF_ENOMEM, "content: no memory");
		rc = put_part(part, n++, body, text, refusal, e);
		if (rc < 0)
			return rc;
	}
	hf_buf_putc(body, ']');
	return 0;
}

/* --- items ------------------------------------------------------------- */

/* A buffer over 'size' bytes of the arena, which is never freed or grown. */
static bool
over_arena(struct hf_buf *b, struct hf_arena *a, size_t size)
{
	b->data = hf_arena_bytes(a, size + 1);
	b->size = 0;
	b->cap = size + 1;
	b->max = size;
	b->failed = b->data == NULL;
	return !b->failed;
}

/* A message whose content is one string, as nearly all are: its sizes are
 * known from the raw text, since decoding never makes it longer. */
static int
add_simple(struct hf_draft *d, enum hf_role role, enum hf_origin origin,
    struct hf_json content, struct hf_json name, struct hf_json refusal,
    struct hf_error *e)
{
	size_t raw = content.raw.size + refusal.raw.size;
	struct hf_item *item = add(d, HF_ITEM_MESSAGE, role, origin);
	struct hf_buf body, norm;

	if (item == NULL ||
	    !over_arena(&body, d->arena, raw + name.raw.size + 64))
		return hf_fail(e, HF_ENOMEM, "no memory for an item");
	hf_buf_puts(&body, "{\"content\":");
	hf_json_put_repaired(&body, content);
	if (name.type == HF_JSON_STRING) {
		hf_buf_puts(&body, ",\"name\":");
		hf_json_put_repaired(&body, name);
	}
	if (refusal.type == HF_JSON_STRING) {
		hf_buf_puts(&body, ",\"refusal\":");
		hf_json_put_repaired(&body, refusal);
	}
	hf_buf_putc(&body, '}');
	/* The sizes are bounds, so that nothing can fail. */
	HF_CHECK(hf_buf_ok(&body));
	item->body = hf_buf_str(&body);
	d->norm[d->n] = HF_STR_NONE;
	if (!d->no_norm) {
		if (!over_arena(&norm, d->arena, raw + 18))
			return hf_fail(e, HF_ENOMEM, "no memory for an item");
		norm_open(&norm, HF_ITEM_MESSAGE, role);
		norm_string(&norm, content);
		norm_string(&norm, refusal);
		HF_CHECK(hf_buf_ok(&norm));
		d->norm[d->n] = hf_buf_str(&norm);
	}
	d->n++;
	return 0;
}

int
hf_draft_refer(struct hf_draft *d, enum hf_role role, struct hf_json message,
    struct hf_error *e)
{
	struct hf_item *item = add(d, HF_ITEM_MESSAGE, role, HF_ORIGIN_CLIENT);

	HF_CHECK(d->no_norm && message.node != NULL);
	if (item == NULL)
		return hf_fail(e, HF_ENOMEM, "no memory for an item");
	item->body = message.raw;
	d->norm[d->n] = HF_STR_NONE;
	d->body[d->n++] = message;
	return 0;
}

int
hf_draft_message(struct hf_draft *d, enum hf_role role, enum hf_origin origin,
    struct hf_json content, struct hf_json name, struct hf_json refusal,
    struct hf_error *e)
{
	struct hf_buf body, norm, text, no;
	int rc;

	if (content.type == HF_JSON_STRING)
		return add_simple(d, role, origin, content, name, refusal, e);
	hf_buf_init(&body, HF_BUF_NOCAP);
	hf_buf_init(&norm, HF_BUF_NOCAP);
	hf_buf_init(&text, HF_BUF_NOCAP);
	hf_buf_init(&no, HF_BUF_NOCAP);
	hf_buf_puts(&body, "{\"content\":");
	rc = put_content(content, &body, &text, &no, e);
	if (rc < 0)
		goto out;
	if (name.type == HF_JSON_STRING) {
		hf_buf_puts(&body, ",\"name\":");
		hf_json_put_repaired(&body, name);
	}
	if (refusal.type == HF_JSON_STRING) {
		hf_buf_puts(&body, ",\"refusal\":");
		hf_json_put_repaired(&body, refusal);
		hf_json_decode(refusal, &no);
	}
	hf_buf_putc(&body, '}');
	norm_open(&norm, HF_ITEM_MESSAGE, role);
	norm_text(&norm, hf_buf_str(&text));
	norm_text(&norm, hf_buf_str(&no));
	if (!hf_buf_ok(&text) || !hf_buf_ok(&no))
		norm.failed = true;
	rc = commit(d, add(d, HF_ITEM_MESSAGE, role, origin), &body, &norm, e);
out:
	hf_buf_free(&body);
	hf_buf_free(&norm);
	hf_buf_free(&text);
	hf_buf_free(&no);
	return rc;
}

int
hf_draft_tool_call(struct hf_draft *d, enum hf_origin origin, struct hf_json id,
    struct hf_json name, struct hf_json arguments, struct hf_error *e)
{
	struct hf_buf body, norm, args;
	int rc;

	hf_buf_init(&body, HF_BUF_NOCAP);
	hf_buf_init(&norm, HF_BUF_NOCAP);
	hf_buf_init(&args, HF_BUF_NOCAP);
	hf_buf_puts(&body, "{\"id\":");
	hf_json_put_repaired(&body, id);
	hf_buf_puts(&body, ",\"name\":");
	hf_json_put_repaired(&body, name);
	hf_buf_puts(&body, ",\"arguments\":");
	hf_json_put_repaired(&body, arguments);
	hf_buf_putc(&body, '}');
	hf_json_decode(arguments, &args);
	norm_open(&norm, HF_ITEM_TOOL_CALL, HF_ROLE_ASSISTANT);
	norm_string(&norm, id);
	norm_string(&norm, name);
	norm_arguments(&norm, hf_buf_str(&args));
	if (!hf_buf_ok(&args))
		norm.failed = true;
	hf_buf_free(&args);
	rc = commit(d, add(d, HF_ITEM_TOOL_CALL, HF_ROLE_ASSISTANT, origin),
	    &body, &norm, e);
	return rc;
}

int
hf_draft_tool_result(struct hf_draft *d, struct hf_json id,
    struct hf_json content, struct hf_error *e)
{
	struct hf_buf body, norm, text;
	int rc;

	hf_buf_init(&body, HF_BUF_NOCAP);
	hf_buf_init(&norm, HF_BUF_NOCAP);
	hf_buf_init(&text, HF_BUF_NOCAP);
	hf_buf_puts(&body, "{\"id\":");
	hf_json_put_repaired(&body, id);
	hf_buf_puts(&body, ",\"content\":");
	rc = put_content(content, &body, &text, NULL, e);
	if (rc < 0)
		goto out;
	hf_buf_putc(&body, '}');
	norm_open(&norm, HF_ITEM_TOOL_RESULT, HF_ROLE_TOOL);
	norm_string(&norm, id);
	norm_text(&norm, hf_buf_str(&text));
	if (!hf_buf_ok(&text))
		norm.failed = true;
	rc = commit(d,
	    add(d, HF_ITEM_TOOL_RESULT, HF_ROLE_TOOL, HF_ORIGIN_CLIENT), &body,
	    &norm, e);
out:
	hf_buf_free(&body);
	hf_buf_free(&norm);
	hf_buf_free(&text);
	return rc;
}

void
hf_item_text_body(struct hf_str text, struct hf_str refusal,
    struct hf_buf *body, struct hf_buf *norm)
{
	if (body != NULL) {
		hf_buf_puts(body, "{\"content\":");
		hf_json_put_string(body, text);
		if (refusal.size > 0) {
			hf_buf_puts(body, ",\"refusal\":");
			hf_json_put_string(body, refusal);
		}
		hf_buf_putc(body, '}');
	}
	if (norm == NULL)
		return;
	norm_open(norm, HF_ITEM_MESSAGE, HF_ROLE_ASSISTANT);
	norm_text(norm, text);
	norm_text(norm, refusal);
}

int
hf_draft_answer_text(struct hf_draft *d, struct hf_str text,
    struct hf_str refusal, struct hf_error *e)
{
	struct hf_buf body, norm;

	hf_buf_init(&body, HF_BUF_NOCAP);
	hf_buf_init(&norm, HF_BUF_NOCAP);
	hf_item_text_body(text, refusal, &body, &norm);
	return commit(d,
	    add(d, HF_ITEM_MESSAGE, HF_ROLE_ASSISTANT, HF_ORIGIN_MODEL), &body,
	    &norm, e);
}

int
hf_draft_answer_call(struct hf_draft *d, struct hf_str id, struct hf_str name,
    struct hf_str arguments, struct hf_error *e)
{
	struct hf_buf body, norm;

	hf_buf_init(&body, HF_BUF_NOCAP);
	hf_buf_init(&norm, HF_BUF_NOCAP);
	hf_buf_puts(&body, "{\"id\":");
	hf_json_put_string(&body, id);
	hf_buf_puts(&body, ",\"name\":");
	hf_json_put_string(&body, name);
	hf_buf_puts(&body, ",\"arguments\":");
	hf_json_put_string(&body, arguments);
	hf_buf_putc(&body, '}');
	norm_open(&norm, HF_ITEM_TOOL_CALL, HF_ROLE_ASSISTANT);
	norm_text(&norm, id);
	norm_text(&norm, name);
	norm_arguments(&norm, arguments);
	return commit(d,
	    add(d, HF_ITEM_TOOL_CALL, HF_ROLE_ASSISTANT, HF_ORIGIN_MODEL),
	    &body, &norm, e);
}

#define PINNED ",\"pinned\":true}"

int
hf_draft_pin(struct hf_draft *d, unsigned from, struct hf_error *e)
{
	for (unsigned i = from; i < d->n; i++) {
		struct hf_str body = d->item[i].body;
		char *p = hf_arena_bytes(d->arena, body.size + sizeof(PINNED));

		if (p == NULL)
			return hf_fail(e, HF_ENOMEM, "no memory for an item");
		memcpy(p, body.p, body.size);
		/* In the place of the brace that ends it. */
		memcpy(p + body.size - 1, PINNED, sizeof(PINNED));
		d->item[i].body =
		    (struct hf_str){ p, body.size + sizeof(PINNED) - 2 };
		d->body[i] = (struct hf_json){ 0 };
		d->n_pinned++;
	}
	return 0;
}

bool
hf_item_is_pinned(struct hf_str body)
{
	static const size_t n = sizeof(PINNED) - 1;

	return body.size > n && memcmp(body.p + body.size - n, PINNED, n) == 0;
}

void
hf_draft_digest(struct hf_draft *d, const struct hf_session_key *k)
{
	HF_CHECK(!d->no_norm);
	for (unsigned i = 0; i < d->n; i++)
		hf_store_digest(k, d->norm[i], d->item[i].digest);
}

int
hf_item_norm(const struct hf_item *item, struct hf_arena *a,
    struct hf_str *norm, struct hf_error *e)
{
	struct hf_draft d;
	struct hf_json body;
	int rc = hf_json_check(item->body, &body, NULL, e);

	hf_draft_init(&d, a);
	if (rc == 0)
		rc = hf_draft_message(&d, item->role, item->origin,
		    hf_json_get(body, "content"), hf_json_get(body, "name"),
		    hf_json_get(body, "refusal"), e);
	if (rc == 0)
		*norm = d.norm[0];
	return rc;
}
