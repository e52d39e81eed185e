/*
 * Rows and arguments of control verbs as JSON.
 */
#include <config.h>

#include "workers/view.h"

#include "base/buf.h"

json_t *
hf_json_text(struct hf_str s)
{
	struct hf_buf b;
	json_t *j;

	if (s.p == NULL)
		return json_null();
	j = json_stringn(s.p, s.size);
	if (j != NULL)
		return j;
	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_buf_putstr(&b, s);
	for (size_t i = 0; hf_buf_ok(&b) && i < b.size; i++)
		if ((unsigned char)b.data[i] >= 0x80)
			b.data[i] = '?';
	j = hf_buf_ok(&b) ? json_stringn(b.data, b.size) : NULL;
	hf_buf_free(&b);
	return j;
}

static json_t *
member(enum hf_field_type type, const void *at)
{
	switch (type) {
	case HF_FIELD_ID:
		return json_string(((const struct hf_id *)at)->s);
	case HF_FIELD_TEXT:
		return hf_json_text(hf_str(*(const char *const *)at));
	case HF_FIELD_STR:
		return hf_json_text(*(const struct hf_str *)at);
	case HF_FIELD_INT:
		return json_integer(*(const int *)at);
	case HF_FIELD_UINT:
		return json_integer((json_int_t) * (const unsigned *)at);
	case HF_FIELD_I64:
		return json_integer((json_int_t) * (const int64_t *)at);
	case HF_FIELD_U64:
		return json_integer((json_int_t) * (const uint64_t *)at);
	case HF_FIELD_BOOL:
		return json_boolean(*(const bool *)at);
	}
	return NULL;
}

json_t *
hf_json_view(const struct hf_view *view, const void *row)
{
	json_t *o = json_object();

	for (size_t i = 0; i < view->n && o != NULL; i++) {
		const struct hf_field *f = &view->field[i];

		if (json_object_set_new(o, f->name,
			member(f->type, (const char *)row + f->offset)) < 0) {
			json_decref(o);
			return NULL;
		}
	}
	return o;
}

int
hf_json_arg(
    const json_t *args, const char *key, const char **out, struct hf_error *e)
{
	const json_t *j = json_object_get(args, key);

	/* The parser lets no string with a NUL in it through. */
	*out = json_string_value(j);
	if (j == NULL || json_is_null(j) || *out != NULL)
		return 0;
	return hf_fail(e, HF_EINVAL, "args.%s must be a string", key);
}
