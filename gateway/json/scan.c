/*
 * Walking checked JSON text: members, elements, look-up, numbers.  Nothing
 * here checks grammar again; bounds are kept all the same.
 */
#include <config.h>

#include "gateway/json/scan.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#include "gateway/json/bytes.h"

static const struct hf_json absent;

/* Past the container whose opening bracket is at 'p'. */
static const char *
skip_container(const char *p, const char *end)
{
	unsigned depth = 0;

	while (p < end) {
		switch (*p) {
		case '"':
			p = hf_json_skip_string(p, end);
			continue;
		case '{':
		case '[':
			depth++;
			break;
		case '}':
		case ']':
			if (--depth == 0)
				return p + 1;
			break;
		default:
			break;
		}
		p++;
	}
	return end;
}

static const char *
skip_scalar(const char *p, const char *end)
{
	while (p < end && *p != ',' && *p != '}' && *p != ']' &&
	    !hf_json_is_space(*p))
		p++;
	return p;
}

static inline const char *
skip_value(const char *p, const char *end)
{
	switch (*p) {
	case '"':
		return hf_json_skip_string(p, end);
	case '{':
	case '[':
		return skip_container(p, end);
	default:
		return skip_scalar(p, end);
	}
}

static inline enum hf_json_type
type_at(const char *p)
{
	switch (*p) {
	case '"':
		return HF_JSON_STRING;
	case '{':
		return HF_JSON_OBJECT;
	case '[':
		return HF_JSON_ARRAY;
	case 't':
		return HF_JSON_TRUE;
	case 'f':
		return HF_JSON_FALSE;
	case 'n':
		return HF_JSON_NULL;
	default:
		return HF_JSON_NUMBER;
	}
}

/* The value at 'p'; returns the byte after it. */
static inline const char *
take_value(const char *p, const char *end, struct hf_json *v)
{
	const char *to = skip_value(p, end);

	v->type = type_at(p);
	v->raw = (struct hf_str){ p, (size_t)(to - p) };
	v->node = NULL;
	return to;
}

/* Where the next member or element starts, or NULL at the end. */
static const char *
next_start(struct hf_json c, size_t pos)
{
	const char *end = c.raw.p + c.raw.size;
	const char *p = c.raw.p + (pos == 0 ? 1 : pos);

	if (c.raw.size < 2 || p >= end)
		return NULL;
	p = hf_json_skip_space(p, end);
	if (p < end && *p == ',' && pos != 0)
		p = hf_json_skip_space(p + 1, end);
	return p >= end || *p == '}' || *p == ']' ? NULL : p;
}

/* The value of a node in the same text as 'in'. */
static inline struct hf_json
at_node(struct hf_json in, const struct hf_json_node *n)
{
	return (struct hf_json){
		.type = n->type,
		.raw = { in.raw.p + (n->at - in.node->at), n->size },
		.node = n,
	};
}

/* With a map, a position counts nodes: the next child of 'c', or NULL. */
static inline const struct hf_json_node *
next_node(struct hf_json c, size_t *pos)
{
	const struct hf_json_node *n;

	if (*pos == 0)
		*pos = 1;
	if (*pos >= c.node->skip)
		return NULL;
	n = c.node + *pos;
	*pos += n->skip;
	return n;
}

bool
hf_json_next_element(struct hf_json arr, size_t *pos, struct hf_json *value)
{
	const struct hf_json_node *n;
	const char *p;

	*value = absent;
	if (arr.node != NULL) {
		if (arr.type != HF_JSON_ARRAY ||
		    (n = next_node(arr, pos)) == NULL)
			return false;
		*value = at_node(arr, n);
		return true;
	}
	if (arr.type != HF_JSON_ARRAY || (p = next_start(arr, *pos)) == NULL)
		return false;
	p = take_value(p, arr.raw.p + arr.raw.size, value);
	*pos = (size_t)(p - arr.raw.p);
	return true;
}

unsigned
hf_json_count(struct hf_json arr, unsigned most)
{
	unsigned n = 0;
	size_t pos = 0;

	if (arr.node != NULL && arr.type == HF_JSON_ARRAY)
		while (n < most && next_node(arr, &pos) != NULL)
			n++;
	return n;
}

bool
hf_json_next_member(
    struct hf_json obj, size_t *pos, struct hf_json *key, struct hf_json *value)
{
	const struct hf_json_node *n;
	const char *p, *end;

	*key = *value = absent;
	if (obj.node != NULL) {
		if (obj.type != HF_JSON_OBJECT ||
		    (n = next_node(obj, pos)) == NULL)
			return false;
		*key = at_node(obj, n);
		n = next_node(obj, pos);
		*value = at_node(obj, n);
		return true;
	}
	if (obj.type != HF_JSON_OBJECT || (p = next_start(obj, *pos)) == NULL)
		return false;
	end = obj.raw.p + obj.raw.size;
	p = take_value(p, end, key);
	p = hf_json_skip_space(p, end);
	if (p >= end)
		return false;
	p = hf_json_skip_space(p + 1, end); /* the colon */
	if (p >= end)
		return false;
	p = take_value(p, end, value);
	*pos = (size_t)(p - obj.raw.p);
	return true;
}

/* Whether the raw key (with quotes) is 'z'. */
static inline bool
raw_key_is(struct hf_str raw, bool plain, struct hf_str z)
{
	if (plain)
		return raw.size == z.size + 2 &&
		    memcmp(raw.p + 1, z.p, z.size) == 0;
	return hf_json_string_is(
	    (struct hf_json){ .type = HF_JSON_STRING, .raw = raw }, z.p);
}

static inline void
get_mapped(struct hf_json obj, const struct hf_str *key, unsigned n,
    struct hf_json *out)
{
	const struct hf_json_node *end = obj.node + obj.node->skip;
	const char *base = obj.raw.p - obj.node->at;

	for (const struct hf_json_node *k = obj.node + 1; k < end;
	     k += 1 + k[1].skip)
		for (unsigned i = 0; i < n; i++) {
			/* Most are told apart by their size. */
			if (k->plain && k->size != key[i].size + 2)
				continue;
			if (!raw_key_is(
				(struct hf_str){ base + k->at, k->size },
				k->plain, key[i]))
				continue;
			out[i] = at_node(obj, k + 1);
			break;
		}
}

/* The same walk as hf_json_next_member()'s, for those who go over a whole
 * object: the next member at or after 'p', or NULL. */
static inline const char *
next_raw(const char *p, const char *end, struct hf_str *key, bool *plain,
    struct hf_str *value)
{
	p = hf_json_skip_space(p, end);
	if (p < end && *p == ',')
		p = hf_json_skip_space(p + 1, end);
	if (p >= end || *p != '"')
		return NULL;
	key->p = p;
	p = hf_json_skip_short(p, end, plain);
	key->size = (size_t)(p - key->p);
	p = hf_json_skip_space(p, end);
	p = hf_json_skip_space(p < end ? p + 1 : p, end);
	if (p >= end)
		return NULL;
	value->p = p;
	p = skip_value(p, end);
	value->size = (size_t)(p - value->p);
	return p;
}

static inline void
get_all(struct hf_json obj, const struct hf_str *key, unsigned n,
    struct hf_json *out)
{
	const char *p = obj.raw.p, *end;
	struct hf_str k, v;
	bool plain;

	for (unsigned i = 0; i < n; i++)
		out[i] = absent;
	if (obj.type != HF_JSON_OBJECT || obj.raw.size < 2)
		return;
	if (obj.node != NULL) {
		get_mapped(obj, key, n, out);
		return;
	}
	end = p + obj.raw.size;
	p++;
	while ((p = next_raw(p, end, &k, &plain, &v)) != NULL)
		for (unsigned i = 0; i < n; i++)
			if (raw_key_is(k, plain, key[i]))
				out[i] = (struct hf_json){ .type = type_at(v.p),
					.raw = v };
}

struct hf_json
hf_json_get(struct hf_json obj, const char *key)
{
	const struct hf_str k = hf_str(key);
	struct hf_json found;

	get_all(obj, &k, 1, &found);
	return found;
}

void
hf_json_get_all(struct hf_json obj, const struct hf_str *key, unsigned n,
    struct hf_json *out)
{
	get_all(obj, key, n, out);
}

static struct hf_json
get_element(struct hf_json arr, const char *digits)
{
	struct hf_json v = absent;
	size_t pos = 0;
	unsigned long i = 0;

	if (*digits == '\0')
		return absent;
	for (; *digits != '\0'; digits++) {
		if (*digits < '0' || *digits > '9' || i > 100000000)
			return absent;
		i = i * 10 + (unsigned long)(*digits - '0');
	}
	do {
		if (!hf_json_next_element(arr, &pos, &v))
			return absent;
	} while (i-- > 0);
	return v;
}

struct hf_json
hf_json_path(struct hf_json v, ...)
{
	const char *key;
	va_list ap;

	va_start(ap, v);
	while ((key = va_arg(ap, const char *)) != NULL)
		v = v.type == HF_JSON_ARRAY ? get_element(v, key) :
					      hf_json_get(v, key);
	va_end(ap);
	return v;
}

bool
hf_json_int(struct hf_json number, int64_t *out)
{
	const char *p = number.raw.p;
	size_t i;
	bool minus;
	int64_t v = 0;

	if (number.type != HF_JSON_NUMBER)
		return false;
	minus = *p == '-';
	for (i = minus, p += minus; i < number.raw.size; i++, p++) {
		if (*p < '0' || *p > '9')
			return false;
		/* Counted downwards: INT64_MIN has no positive twin. */
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_sub_overflow(v, *p - '0', &v))
			return false;
	}
	if (!minus && v == INT64_MIN)
		return false;
	*out = minus ? v : -v;
	return true;
}

bool
hf_json_double(struct hf_json number, double *out)
{
	char small[64], *copy = small;
	size_t n = number.raw.size;
	double v;

	if (number.type != HF_JSON_NUMBER)
		return false;
	if (n >= sizeof(small) && (copy = malloc(n + 1)) == NULL)
		return false;
	memcpy(copy, number.raw.p, n);
	copy[n] = '\0';
	v = strtod(copy, NULL);
	if (copy != small)
		free(copy);
	if (!isfinite(v))
		return false;
	*out = v;
	return true;
}
