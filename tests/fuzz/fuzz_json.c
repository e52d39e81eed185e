/*
 * The JSON scanner: agrees with another parser on what JSON is; spans, decoded
 * text and rewritten text of whatever it accepts hold together.
 */
#include <config.h>

#include <jansson.h>

#include "gateway/json/bytes.h"
#include "tests/fuzz/fuzz.h"

const char fuzz_name[] = "json";

static bool
is_utf8(struct hf_str s)
{
	const char *p = s.p, *end = s.size == 0 ? p : p + s.size;
	size_t n;

	for (; p < end; p += n) {
		n = hf_utf8_size(p, end);
		if (n == 0)
			return false;
	}
	return true;
}

/* Any bytes can be written as a string; well-formed ones come back. */
static void
check_put(struct hf_str text, bool same)
{
	struct hf_buf a, b;
	struct hf_json v;

	hf_buf_init(&a, HF_BUF_NOCAP);
	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_json_put_string(&a, text);
	FUZZ_CHECK(hf_json_check(hf_buf_str(&a), &v, NULL, NULL) == 0);
	FUZZ_CHECK(v.type == HF_JSON_STRING && v.raw.size == a.size);
	hf_json_decode(v, &b);
	FUZZ_CHECK(is_utf8(hf_buf_str(&b)));
	if (same || is_utf8(text))
		FUZZ_CHECK(hf_str_eq(hf_buf_str(&b), text));
	hf_buf_free(&a);
	hf_buf_free(&b);
}

static void
check_string(struct hf_json v)
{
	struct hf_buf b;

	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_json_decode(v, &b);
	FUZZ_CHECK(is_utf8(hf_buf_str(&b)));
	if (hf_json_is_plain(v))
		FUZZ_CHECK(b.size == v.raw.size - 2);
	if (b.data != NULL && memchr(b.data, '\0', b.size) == NULL)
		FUZZ_CHECK(hf_json_string_is(v, b.data));
	check_put(hf_buf_str(&b), true);
	hf_buf_free(&b);
}

/* Looking a key up finds the last member of that name. */
static void
check_get(struct hf_json obj)
{
	struct hf_json k, v, k2, v2, last = { 0 };
	size_t pos = 0, pos2, n = 0;
	struct hf_buf key;

	hf_buf_init(&key, HF_BUF_NOCAP);
	while (hf_json_next_member(obj, &pos, &k, &v) && n++ < 8) {
		hf_buf_reset(&key);
		hf_json_decode(k, &key);
		if (key.data == NULL ||
		    memchr(key.data, '\0', key.size) != NULL)
			continue;
		pos2 = 0;
		while (hf_json_next_member(obj, &pos2, &k2, &v2))
			if (hf_json_key_is(k2, key.data))
				last = v2;
		FUZZ_CHECK(hf_json_get(obj, key.data).raw.p == last.raw.p);
	}
	hf_buf_free(&key);
}

/* Each span inside a value is a value of its own. */
static void
check_value(struct hf_json v, unsigned depth)
{
	struct hf_json again, k, x;
	size_t pos = 0;
	int64_t i;
	double d;

	FUZZ_CHECK(depth <= HF_JSON_MAX_DEPTH);
	FUZZ_CHECK(hf_json_check(v.raw, &again, NULL, NULL) == 0);
	FUZZ_CHECK(again.type == v.type && again.raw.size == v.raw.size);
	switch (v.type) {
	case HF_JSON_NONE:
		FUZZ_CHECK(false);
		break;
	case HF_JSON_STRING:
		check_string(v);
		break;
	case HF_JSON_NUMBER:
		if (hf_json_int(v, &i))
			FUZZ_CHECK(hf_json_double(v, &d));
		break;
	case HF_JSON_ARRAY:
		while (hf_json_next_element(v, &pos, &x))
			check_value(x, depth + 1);
		break;
	case HF_JSON_OBJECT:
		while (hf_json_next_member(v, &pos, &k, &x)) {
			check_string(k);
			check_value(x, depth + 1);
		}
		check_get(v);
		break;
	case HF_JSON_NULL:
	case HF_JSON_TRUE:
	case HF_JSON_FALSE:
		break;
	}
}

static void
check_same(struct hf_json a, struct hf_json b)
{
	FUZZ_CHECK(
	    a.type == b.type && a.raw.p == b.raw.p && a.raw.size == b.raw.size);
}

/* Walking by a map finds what walking over the text finds. */
static void
check_mapped(struct hf_json v, struct hf_json m)
{
	struct hf_json k, x, k2, x2;
	size_t pos = 0, pos2 = 0;

	check_same(v, m);
	FUZZ_CHECK(v.node == NULL && m.node != NULL);
	if (v.type == HF_JSON_STRING && m.node->plain)
		FUZZ_CHECK(hf_json_is_plain(v));
	while (hf_json_next_element(v, &pos, &x)) {
		FUZZ_CHECK(hf_json_next_element(m, &pos2, &x2));
		check_mapped(x, x2);
	}
	while (hf_json_next_member(v, &pos, &k, &x)) {
		FUZZ_CHECK(hf_json_next_member(m, &pos2, &k2, &x2));
		check_mapped(k, k2);
		check_mapped(x, x2);
	}
	FUZZ_CHECK(!hf_json_next_element(m, &pos2, &x2));
	FUZZ_CHECK(!hf_json_next_member(m, &pos2, &k2, &x2));
	if (v.type == HF_JSON_OBJECT)
		check_get(m);
}

static void
check_rewritten(struct hf_json v, unsigned repairs)
{
	struct hf_buf a, b;
	struct hf_json x;
	unsigned n;

	hf_buf_init(&a, HF_BUF_NOCAP);
	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_json_put_compact(&a, v);
	FUZZ_CHECK(a.size <= v.raw.size);
	FUZZ_CHECK(hf_json_check(hf_buf_str(&a), &x, &n, NULL) == 0);
	FUZZ_CHECK(x.type == v.type && n == repairs);
	hf_json_put_compact(&b, x);
	FUZZ_CHECK(hf_str_eq(hf_buf_str(&a), hf_buf_str(&b)));
	hf_buf_reset(&b);
	hf_json_put_repaired(&b, v);
	FUZZ_CHECK(b.size == v.raw.size);
	FUZZ_CHECK(hf_json_check(hf_buf_str(&b), &x, &n, NULL) == 0);
	FUZZ_CHECK(n == 0);
	if (repairs == 0)
		FUZZ_CHECK(hf_str_eq(hf_buf_str(&b), v.raw));
	hf_buf_free(&a);
	hf_buf_free(&b);
}

/* Another parser's opinion; where it is known to be narrower it may say no. */
static void
check_other(struct hf_str text, int rc, unsigned repairs)
{
	json_error_t why;
	json_t *j = json_loadb(
	    text.p, text.size, JSON_DECODE_ANY | JSON_ALLOW_NUL, &why);

	/* It takes a NUL byte behind the value for the end of the text. */
	if (j != NULL && memchr(text.p, '\0', text.size) == NULL)
		FUZZ_CHECK(rc == 0 || rc == HF_ELIMIT);
	else if (rc == 0 && repairs == 0)
		FUZZ_CHECK(
		    json_error_code(&why) == json_error_numeric_overflow ||
		    json_error_code(&why) == json_error_null_byte_in_key);
	json_decref(j);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t size)
{
	struct hf_str text = { (const char *)p, size };
	const char *end = text.p + size;
	struct hf_json_map map = { 0 };
	struct hf_error e = { 0 };
	unsigned repairs = 0;
	struct hf_json v, m;
	int rc;

	if (p == NULL)
		return 0;
	rc = hf_json_check(text, &v, &repairs, &e);
	check_other(text, rc, repairs);
	FUZZ_CHECK(hf_json_check_map(text, &m, NULL, &map, NULL) == rc);
	if (rc == 0) {
		check_mapped(v, m);
		check_value(m, 0);
		FUZZ_CHECK(v.raw.p >= text.p && v.raw.p + v.raw.size <= end);
		check_value(v, 0);
		check_rewritten(v, repairs);
	} else {
		FUZZ_CHECK(rc == HF_EINVAL || rc == HF_ELIMIT);
		FUZZ_CHECK(strncmp(e.text, "line ", 5) == 0);
	}
	hf_json_map_free(&map);
	check_put(text, false);
	FUZZ_CHECK(hf_json_skip_plain(text.p, end) ==
	    hf_json_skip_plain_swar(text.p, end));
	return 0;
}
