/*
 * The strict check: the grammar of RFC 8259, well-formed UTF-8, a bound on
 * nesting.  One pass, no recursion; nothing is allocated but the map.
 */
#include <config.h>

#include "gateway/json/scan.h"

#include <stdlib.h>

#include "gateway/json/bytes.h"

/* What the grammar allows next. */
enum want {
	WANT_VALUE,	    /* a value must come */
	WANT_FIRST_ELEMENT, /* a value, or ']' */
	WANT_FIRST_KEY,	    /* a key, or '}' */
	WANT_KEY,	    /* a key must come */
	WANT_MORE	    /* ',' or the container's end */
};

struct check {
	const char *start, *p, *end;
	const char *what; /* set on failure */
	int rc;
	unsigned depth;
	unsigned repairs;
	uint32_t first;			  /* the map's 'n' at the start */
	bool object[HF_JSON_MAX_DEPTH];	  /* else an array */
	struct hf_json_map *map;	  /* or NULL */
	uint32_t node[HF_JSON_MAX_DEPTH]; /* of the open containers */
};

/* Give up mapping this text. */
static void
drop_map(struct check *c)
{
	c->map->n = c->first;
	c->map = NULL;
}

static bool
grow_map(struct hf_json_map *m, size_t text)
{
	/* A node for 64 bytes of text is usual. */
	uint32_t cap = m->cap == 0 ? 32 + (uint32_t)(text / 64) : m->cap * 2;
	struct hf_json_node *node;

	if (cap > HF_JSON_MAP_MAX)
		cap = HF_JSON_MAP_MAX;
	if (cap == m->n)
		return false;
	node = realloc(m->node, cap * sizeof(*node));
	if (node == NULL)
		return false;
	m->node = node;
	m->cap = cap;
	return true;
}

/* The value from 'from' to c->p; its size is known later if it is a
 * container. */
static void
note(struct check *c, const char *from, enum hf_json_type type, bool plain)
{
	struct hf_json_map *m = c->map;

	if (m == NULL)
		return;
	if (m->n == m->cap && !grow_map(m, (size_t)(c->end - c->start))) {
		drop_map(c);
		return;
	}
	m->node[m->n++] = (struct hf_json_node){
		.at = (uint32_t)(from - c->start),
		.size = (uint32_t)(c->p - from),
		.skip = 1,
		.type = (uint8_t)type,
		.plain = plain,
	};
}

/* The container on top ends behind c->p. */
static void
close_container(struct check *c)
{
	struct hf_json_node *n;

	c->depth--;
	c->p++;
	if (c->map == NULL)
		return;
	n = &c->map->node[c->node[c->depth]];
	n->size = (uint32_t)(c->p - c->start) - n->at;
	n->skip = c->map->n - c->node[c->depth];
}

static bool
fail(struct check *c, const char *at, const char *what)
{
	c->p = at;
	c->what = what;
	c->rc = HF_EINVAL;
	return false;
}

static bool
check_escape(struct check *c)
{
	uint32_t cp;
	bool lone;
	size_t n;

	/* The usual ones without a call. */
	if (c->end - c->p >= 2 &&
	    (c->p[1] == 'n' || c->p[1] == '"' || c->p[1] == '\\' ||
		c->p[1] == 't')) {
		c->p += 2;
		return true;
	}
	n = hf_json_escape(c->p, c->end, &cp, &lone);
	if (n == 0)
		return fail(c, c->p, "bad escape in a string");
	c->repairs += lone;
	c->p += n;
	return true;
}

/* A string whose opening quote is at c->p. */
static bool
check_string(struct check *c)
{
	const char *open = c->p++;
	bool plain = true;
	size_t n;

	for (;;) {
		c->p = hf_json_skip_plain(c->p, c->end);
		if (c->p == c->end)
			return fail(c, open, "string without end");
		if (*c->p == '"') {
			c->p++;
			note(c, open, HF_JSON_STRING, plain);
			return true;
		}
		if (*c->p == '\\') {
			plain = false;
			if (!check_escape(c))
				return false;
			continue;
		}
		if ((unsigned char)*c->p < 0x20)
			return fail(c, c->p, "control character in a string");
		/* Text that is not ASCII comes in runs. */
		while (c->p < c->end && (unsigned char)*c->p >= 0x80) {
			n = hf_utf8_size(c->p, c->end);
			if (n == 0)
				return fail(c, c->p, "ill-formed UTF-8");
			c->p += n;
		}
	}
}

static bool
check_digits(struct check *c)
{
	const char *from = c->p;

	while (c->p < c->end && *c->p >= '0' && *c->p <= '9')
		c->p++;
	return c->p > from;
}

static bool
check_number(struct check *c)
{
	const char *from = c->p;

	if (*c->p == '-')
		c->p++;
	if (c->p < c->end && *c->p == '0')
		c->p++;
	else if (!check_digits(c))
		return fail(c, from, "bad number");
	if (c->p < c->end && *c->p == '.') {
		c->p++;
		if (!check_digits(c))
			return fail(c, from, "bad number");
	}
	if (c->p < c->end && (*c->p == 'e' || *c->p == 'E')) {
		c->p++;
		if (c->p < c->end && (*c->p == '+' || *c->p == '-'))
			c->p++;
		if (!check_digits(c))
			return fail(c, from, "bad number");
	}
	/* 01, 1x, 1.5.5: whatever follows is not part of a number. */
	note(c, from, HF_JSON_NUMBER, false);
	return true;
}

static bool
check_word(
    struct check *c, const char *word, size_t size, enum hf_json_type type)
{
	const char *from = c->p;

	if ((size_t)(c->end - c->p) < size || memcmp(c->p, word, size) != 0)
		return fail(c, c->p, "unknown word");
	c->p += size;
	note(c, from, type, false);
	return true;
}

static bool
open_container(struct check *c, bool object)
{
	if (c->depth == HF_JSON_MAX_DEPTH) {
		fail(c, c->p, "nested too deep");
		c->rc = HF_ELIMIT;
		return false;
	}
	if (c->map != NULL)
		c->node[c->depth] = c->map->n;
	note(c, c->p, object ? HF_JSON_OBJECT : HF_JSON_ARRAY, false);
	c->object[c->depth++] = object;
	c->p++;
	return true;
}

/* One value or the opening of a container; *want says what follows. */
static bool
check_value(struct check *c, enum want *want)
{
	*want = WANT_MORE;
	switch (*c->p) {
	case '"':
		return check_string(c);
	case '{':
		*want = WANT_FIRST_KEY;
		return open_container(c, true);
	case '[':
		*want = WANT_FIRST_ELEMENT;
		return open_container(c, false);
	case 't':
		return check_word(c, "true", 4, HF_JSON_TRUE);
	case 'f':
		return check_word(c, "false", 5, HF_JSON_FALSE);
	case 'n':
		return check_word(c, "null", 4, HF_JSON_NULL);
	case '-':
	case '0':
	case '1':
	case '2':
	case '3':
	case '4':
	case '5':
	case '6':
	case '7':
	case '8':
	case '9':
		return check_number(c);
	default:
		return fail(c, c->p, "a value was expected");
	}
}

static bool
check_key(struct check *c)
{
	if (*c->p != '"')
		return fail(c, c->p, "a key in quotes was expected");
	if (!check_string(c))
		return false;
	c->p = hf_json_skip_space(c->p, c->end);
	if (c->p == c->end || *c->p != ':')
		return fail(c, c->p, "':' was expected");
	c->p++;
	return true;
}

/* ',' or the end of the container on top. */
static bool
check_more(struct check *c, enum want *want)
{
	bool object = c->object[c->depth - 1];

	if (*c->p == ',') {
		*want = object ? WANT_KEY : WANT_VALUE;
		c->p++;
	} else if (*c->p == (object ? '}' : ']')) {
		close_container(c);
		*want = WANT_MORE;
	} else {
		return fail(c, c->p,
		    object ? "',' or '}' was expected" :
			     "',' or ']' was expected");
	}
	return true;
}

static bool
step(struct check *c, enum want *want)
{
	if ((*want == WANT_FIRST_KEY && *c->p == '}') ||
	    (*want == WANT_FIRST_ELEMENT && *c->p == ']')) {
		close_container(c);
		*want = WANT_MORE;
		return true;
	}
	switch (*want) {
	case WANT_FIRST_KEY:
	case WANT_KEY:
		*want = WANT_VALUE;
		return check_key(c);
	case WANT_FIRST_ELEMENT:
	case WANT_VALUE:
		return check_value(c, want);
	case WANT_MORE:
		break;
	}
	return check_more(c, want);
}

static bool
check_text(struct check *c)
{
	enum want want = WANT_VALUE;

	do {
		c->p = hf_json_skip_space(c->p, c->end);
		if (c->p == c->end)
			return fail(c, c->p, "text ends too early");
		if (!step(c, &want))
			return false;
	} while (c->depth > 0 || want != WANT_MORE);
	return true;
}

static enum hf_json_type
type_of(char c)
{
	switch (c) {
	case '{':
		return HF_JSON_OBJECT;
	case '[':
		return HF_JSON_ARRAY;
	case '"':
		return HF_JSON_STRING;
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

static int
report(const struct check *c, struct hf_error *e)
{
	unsigned long line = 1, column = 1;
	const char *p;

	for (p = c->start; p < c->p; p++) {
		column++;
		if (*p == '\n') {
			line++;
			column = 1;
		}
	}
	return hf_fail(
	    e, c->rc, "line %lu, column %lu: %s", line, column, c->what);
}

int
hf_json_check_map(struct hf_str text, struct hf_json *out, unsigned *repairs,
    struct hf_json_map *map, struct hf_error *e)
{
	struct check c HF_UNINIT;
	const char *first, *last;

	c.what = NULL;
	c.rc = 0;
	c.depth = c.repairs = 0;
	c.first = map == NULL ? 0 : map->n;
	c.map = text.size > UINT32_MAX ? NULL : map;
	*out = (struct hf_json){ 0 };
	if (text.p == NULL)
		text = HF_STR("");
	c.start = c.p = text.p;
	c.end = text.p + text.size;
	first = hf_json_skip_space(c.p, c.end);
	if (!check_text(&c))
		goto bad;
	last = c.p;
	c.p = hf_json_skip_space(c.p, c.end);
	if (c.p != c.end) {
		fail(&c, c.p, "something follows the value");
		goto bad;
	}
	if (c.map != NULL)
		out->node = &map->node[c.first];
	out->type = type_of(*first);
	out->raw = (struct hf_str){ first, (size_t)(last - first) };
	if (repairs != NULL)
		*repairs = c.repairs;
	return 0;
bad:
	if (c.map != NULL)
		drop_map(&c);
	return report(&c, e);
}

int
hf_json_check(struct hf_str text, struct hf_json *out, unsigned *repairs,
    struct hf_error *e)
{
	return hf_json_check_map(text, out, repairs, NULL, e);
}

void
hf_json_remap(struct hf_json *v, const struct hf_json_map *map, uint32_t first)
{
	if (v->node != NULL)
		v->node = &map->node[first];
}

void
hf_json_map_reset(struct hf_json_map *map)
{
	map->n = 0;
}

void
hf_json_map_free(struct hf_json_map *map)
{
	free(map->node);
	*map = (struct hf_json_map){ 0 };
}
