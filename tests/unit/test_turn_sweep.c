/*
 * Answers cut at every byte of their wire and gone on with by a target of the
 * other dialect, through the whole turn machine (turn_rig.h): whatever the
 * dialects, the line ends, the way to go on and the pieces in which bytes
 * come, the client has the text once, with one end, and what is stored is
 * what the client has.
 *
 * The model is given what a model is given: it goes on with what its request
 * says, in one of several styles.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include <cmocka.h>

#include "gateway/json/scan.h"
#include "gateway/turn/chars.h"
#include "tests/unit/say.h"
#include "tests/unit/turn_rig.h"

#define ELLIPSIS "\xe2\x80\xa6"

/* --- what is said --------------------------------------------------------- */

struct text {
	const char *name;
	const char *p;
	bool wide; /* no spaces between words */
	bool even; /* no two spaces side by side in a line */
	bool escaped;
};

static const struct text texts[] = {
	{ "english",
	    "Hello Zelmira, order 42 (3.14 kg) isn't late: it leaves today, "
	    "at 12:30.",
	    false, true, false },
	{ "umlauts",
	    "Gr\xc3\xbc\xc3\x9f"
	    "e! Die \xc3\x84nderung ist \xe2\x80\x9esp\xc3\xa4testens\xe2\x80"
	    "\x9c am 3. M\xc3\xa4rz \xe2\x80\x93 bitte \xc3\xb6"
	    "ffnen.",
	    false, true, false },
	/* The package arrives at 3 pm tomorrow.  Is GPT-4 fine? */
	{ "japanese",
	    "\xe8\x8d\xb7\xe7\x89\xa9\xe3\x81\xaf\xe6\x98\x8e\xe6\x97\xa5\xe3"
	    "\x81\xae\xe5\x8d\x88\xe5\xbe\x8c"
	    "3\xe6\x99\x82\xe3\x81\xab\xe5"
	    "\xb1\x8a\xe3\x81\x8d\xe3\x81\xbe\xe3\x81\x99\xe3\x80\x82"
	    "GPT-4"
	    "\xe3\x81\xa7\xe3\x82\x88\xe3\x82\x8d\xe3\x81\x97\xe3\x81\x84\xe3"
	    "\x81\xa7\xe3\x81\x99\xe3\x81\x8b\xef\xbc\x9f",
	    true, true, false },
	{ "emoji",
	    "All done \xf0\x9f\x8e\x89\xf0\x9f\x8e\x89 see you \xf0\x9f\x91"
	    "\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb and bring \xf0\x9f\x8e\x82 "
	    "with \xe2\x9d\xa4\xef\xb8\x8f bye",
	    false, true, true },
	{ "code",
	    "if (a[i] == key) {\n\treturn i;\n}\n\nsum += \"all\";\n  "
	    "log(\"%d\\n\", n);\n",
	    false, true, false },
	{ "spaces",
	    " \n Hello there,  dear friend of  mine;\n\n how are you? \n ",
	    false, false, false },
	{ "repeats",
	    "No, no, no, no! Ha ha ha ha, that is very, very good, bye bye.",
	    false, true, false },
	{ "short", "Yes.", false, true, false },
	{ "url", "See https://example.org/a/long/path/that/never/ends?x=1 now.",
	    false, true, false },
};

/* --- how it is gone on with ----------------------------------------------- */

enum way { PREFILL, REPEATED, INSTRUCTION, HIDDEN };

static const struct mode {
	const char *name; /* of the routes */
	enum way way;
	const char *keys; /* of the route */
	bool words;	  /* what is delivered ends at words' ends */
	bool openai;	  /* for a second target of that dialect only */
	const char *target;
} modes[] = {
	{ "prefill", PREFILL, "", true, false, "plain" },
	{ "prefill-token", PREFILL, "release = token", false, false, "plain" },
	{ "prefill-repeated", REPEATED, "", true, true, "mistral" },
	{ "instruction", INSTRUCTION, "", true, false, "y" },
	{ "instruction-clause", INSTRUCTION, "release = clause", true, false,
	    "y" },
	{ "hidden", HIDDEN, "continuation = hidden", true, false, "y" },
	{ "hidden-token", HIDDEN, "continuation = hidden release = token",
	    false, false, "y" },
};

/* A turn to be played. */
struct scene {
	const struct text *text;
	const struct mode *mode;
	enum hf_conf_dialect first;
	const char *eol;
	size_t cut;    /* bytes of the first answer */
	size_t second; /* the same of the second, if not 0: rolling */
	size_t step[2];
	unsigned style;
	/* How it went. */
	struct hf_sink client;
	char body[256], session[32];
	unsigned asked;
	bool exact; /* the text must be there to the byte */
};

#define AT_ONCE 64 /* turns under way */

struct sweep {
	struct rig rig;
	struct scene *scene; /* AT_ONCE; those in play */
	unsigned n_scene;
	/* The whole first answer of the scenes. */
	struct hf_buf wire;
	unsigned long runs, fresh, continued, whole;
};

static bool
is_space(char c)
{
	return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static struct hf_str
all_of(const struct scene *s)
{
	return hf_str(s->text->p);
}

static struct hf_str
strip_left(struct hf_str s)
{
	while (s.size > 0 && is_space(s.p[0])) {
		s.p++;
		s.size--;
	}
	return s;
}

static struct hf_str
strip_right(struct hf_str s)
{
	while (s.size > 0 && is_space(s.p[s.size - 1]))
		s.size--;
	return s;
}

/* --- the model ------------------------------------------------------------ */

/* Where the last 'k' words of P begin. */
static size_t
last_words(struct hf_str p, unsigned k)
{
	size_t at = p.size;

	while (k-- > 0 && at > 0) {
		while (at > 0 && is_space(p.p[at - 1]))
			at--;
		while (at > 0 && !is_space(p.p[at - 1]))
			at--;
	}
	return at;
}

/* Words that are told apart by their letters, at most 16. */
static unsigned
distinct_words(struct hf_str s)
{
	struct hf_str word[16], w;
	unsigned n = 0, i;
	size_t end;

	for (size_t at = 0; at < s.size && n < hf_countof(word); at = end + 1) {
		for (end = at; end < s.size && !is_space(s.p[end]); end++)
			;
		w = (struct hf_str){ s.p + at, end - at };
		while (w.size > 0 && strchr(".,;:!?", w.p[w.size - 1]) != NULL)
			w.size--;
		for (i = 0; i < n; i++)
			if (word[i].size == w.size &&
			    strncasecmp(word[i].p, w.p, w.size) == 0)
				break;
		if (w.size > 1 && i == n)
			word[n++] = w;
	}
	return n;
}

/* Long enough to be recognised when it is said again, with much to spare. */
static bool
is_telling(const struct scene *s, struct hf_str said)
{
	return !s->text->wide && said.size >= 16 && distinct_words(said) >= 4;
}

/* Asked in words to go on after P. */
static void
say_rest(struct scene *s, struct hf_str p, struct hf_str rest, struct hf_buf *q)
{
	size_t from = last_words(p, 5 + s->style / 6 % 3);
	struct hf_str last = { p.p + from, p.size - from };

	switch (s->style % 6) {
	case 1:
		hf_buf_puts(q, strip_left(rest).size > 0 ? " " : "");
		hf_buf_putstr(q, strip_left(rest));
		s->exact = false;
		return;
	case 2:
		hf_buf_putstr(q, strip_left(rest));
		s->exact = false;
		return;
	case 3:
		if (is_telling(s, last))
			hf_buf_putstr(q, last);
		break;
	case 4:
		if (is_telling(s, p))
			hf_buf_putstr(q, p);
		break;
	case 5:
		if (strip_left(rest).size == 0 || strip_left(rest).p[0] == '.')
			break;
		hf_buf_puts(q, s->style % 4 < 2 ? ELLIPSIS : "... ");
		s->exact = false;
		break;
	default:
		break;
	}
	hf_buf_putstr(q, rest);
}

/* Given P as the beginning of its own answer, perhaps without the white space
 * at its end, which it may then say again. */
static void
say_after(struct scene *s, struct hf_str p, struct hf_str rest, bool stripped,
    struct hf_buf *q)
{
	struct hf_str space = strip_right(p);

	space = (struct hf_str){ p.p + space.size, p.size - space.size };
	if (s->mode->way == REPEATED)
		hf_buf_putstr(q, p);
	else if (stripped || s->style % 2 == 1)
		hf_buf_putstr(q, space);
	else if (rest.size > 0 && is_space(rest.p[0]))
		s->exact = false; /* looks as if it was said again */
	hf_buf_putstr(q, rest);
}

/* Not told of P. */
static void
say_all(struct scene *s, struct hf_buf *q)
{
	if (s->style % 3 == 1) {
		hf_buf_puts(q, " ");
		s->exact = false;
	}
	hf_buf_putstr(q, all_of(s));
}

static struct hf_json
message_text(struct hf_json m)
{
	struct hf_json c = hf_json_get(m, "content");

	return c.type == HF_JSON_ARRAY ? hf_json_path(c, "0", "text", NULL) : c;
}

/* What the request holds of the answer, and how it ends. */
struct asked {
	struct hf_buf partial;
	bool has_partial;
	bool in_words;
};

static void
read_request(struct hf_str body, struct asked *a)
{
	struct hf_json v, list, m;
	struct hf_json text;
	size_t pos = 0;

	*a = (struct asked){ 0 };
	hf_buf_init(&a->partial, HF_BUF_NOCAP);
	assert_int_equal(hf_json_check(body, &v, NULL, NULL), 0);
	list = hf_json_get(v, "messages");
	while (hf_json_next_element(list, &pos, &m)) {
		text = message_text(m);
		a->in_words = a->has_partial;
		if (hf_json_string_is(hf_json_get(m, "role"), "assistant")) {
			assert_false(a->has_partial);
			a->has_partial = true;
			hf_json_decode(text, &a->partial);
		}
	}
}

/* The end of P in the whole text; white space may differ, if a model put some
 * of its own. */
static size_t
place(const struct scene *s, struct hf_str p)
{
	struct hf_str all = all_of(s);
	size_t at = 0;

	if (p.size == 0)
		return 0;
	if (p.size <= all.size && memcmp(p.p, all.p, p.size) == 0)
		return p.size;
	for (size_t i = 0; i < p.size; i++) {
		if (is_space(p.p[i]))
			continue;
		while (at < all.size && is_space(all.p[at]))
			at++;
		if (s->exact || at == all.size || p.p[i] != all.p[at++])
			fail_msg("cut %zu: '%.*s'", s->cut, HF_STR_ARG(p));
	}
	if (is_space(p.p[p.size - 1]) && at < all.size && is_space(all.p[at]))
		at++;
	return at;
}

/* Is the form right for what the client has (P)? */
static void
check_form(const struct scene *s, struct hf_str p, const struct asked *a)
{
	struct hf_str had = hf_buf_str(&a->partial);
	bool prefill = s->mode->way == PREFILL || s->mode->way == REPEATED;

	if (strip_right(p).size == 0 || s->mode->way == HIDDEN)
		prefill = false;
	if (a->has_partial && !hf_str_eq(had, p))
		assert_true(hf_str_eq(had, strip_right(p)));
	if (prefill)
		assert_true(a->has_partial && !a->in_words);
	else if (s->mode->way == HIDDEN || p.size < 20)
		assert_false(a->has_partial);
	else
		assert_true(a->has_partial && a->in_words);
}

static void
go_on(struct sweep *w, struct scene *s, struct hf_str body, struct hf_buf *q)
{
	struct hf_str all = all_of(s), p, rest;
	struct asked a;
	struct rig_heard h;

	rig_hear(hf_buf_str(&s->client.got), &h);
	p = hf_buf_str(&h.text);
	rest = all;
	rest.p += place(s, p);
	rest.size -= (size_t)(rest.p - all.p);
	read_request(body, &a);
	check_form(s, p, &a);
	w->fresh += p.size == 0;
	w->continued += p.size > 0;
	if (p.size == 0)
		hf_buf_putstr(q, all);
	else if (!a.has_partial)
		say_all(s, q);
	else if (a.in_words)
		say_rest(s, p, rest, q);
	else
		say_after(s, p, rest, a.partial.size < p.size, q);
	hf_buf_free(&a.partial);
	rig_unhear(&h);
}

/* --- the provider --------------------------------------------------------- */

static enum hf_conf_dialect
other(enum hf_conf_dialect d)
{
	return d == HF_DIALECT_OPENAI ? HF_DIALECT_ANTHROPIC :
					HF_DIALECT_OPENAI;
}

static void
answer_rest(struct sweep *w, struct scene *s, enum hf_conf_dialect d,
    struct hf_str body, struct rig_answer *out)
{
	struct say say = { d, s->eol, s->text->escaped };
	struct hf_buf q;

	hf_buf_init(&q, HF_BUF_NOCAP);
	go_on(w, s, body, &q);
	say_stream(&say, hf_buf_str(&q), &out->bytes);
	hf_buf_free(&q);
	out->step = s->step[1];
	if (s->asked == 2 && s->second > 0) {
		out->cut = true;
		if (out->bytes.size > s->second)
			out->bytes.size = s->second;
	}
}

/* Which scene a request belongs to is in the user's words. */
static void
provide(
    void *arg, struct hf_str url, struct hf_str body, struct rig_answer *out)
{
	struct sweep *w = arg;
	const char *tag = memchr(body.p, '#', body.size);
	enum hf_conf_dialect d =
	    memmem(url.p, url.size, "//anthropic", 11) == NULL ?
	    HF_DIALECT_OPENAI :
	    HF_DIALECT_ANTHROPIC;
	struct scene *s;

	assert_non_null(tag);
	s = &w->scene[strtoul(tag + 1, NULL, 10)];
	s->asked++;
	assert_int_equal(d, s->asked % 2 == 1 ? s->first : other(s->first));
	if (s->asked > 1) {
		answer_rest(w, s, d, body, out);
		return;
	}
	hf_buf_put(&out->bytes, w->wire.data, s->cut);
	out->cut = true;
	out->step = s->step[0];
}

/* --- the check ------------------------------------------------------------ */

/* White space folded, none at the ends; none at all if 'wide'. */
static void
normal(struct hf_buf *to, struct hf_str s, bool wide)
{
	bool space = false;

	for (size_t i = 0; i < s.size; i++) {
		if (is_space(s.p[i])) {
			space = true;
			continue;
		}
		if (space && to->size > 0 && !wide)
			hf_buf_putc(to, ' ');
		space = false;
		hf_buf_putc(to, s.p[i]);
	}
}

static bool
same_words(struct hf_str a, struct hf_str b, bool wide)
{
	struct hf_buf x, y;
	bool same;

	hf_buf_init(&x, HF_BUF_NOCAP);
	hf_buf_init(&y, HF_BUF_NOCAP);
	normal(&x, a, wide);
	normal(&y, b, wide);
	same = hf_str_eq(hf_buf_str(&x), hf_buf_str(&y));
	hf_buf_free(&x);
	hf_buf_free(&y);
	return same;
}

static void
bad(const struct scene *s, const char *what, struct hf_str text)
{
	fail_msg("%s: %s, %s first, cut at %zu (and %zu), eol %zu, pieces %zu "
		 "%zu, style %u, asked %u: '%.*s'",
	    what, s->mode->name,
	    s->first == HF_DIALECT_OPENAI ? "openai" : "anthropic", s->cut,
	    s->second, strlen(s->eol) + (s->eol[0] == '\r'), s->step[0],
	    s->step[1], s->style, s->asked, HF_STR_ARG(text));
}

static void
check(struct sweep *w, const struct scene *s)
{
	struct hf_str text, all = all_of(s);
	struct hf_buf stored;
	struct rig_heard h;

	rig_hear(hf_buf_str(&s->client.got), &h);
	text = hf_buf_str(&h.text);
	if (s->client.status != 200 || h.n_error > 0)
		bad(s, "failed", hf_buf_str(&s->client.got));
	if (h.done != 1 || h.finish != 1 || h.role != 1)
		bad(s, "not one end", hf_buf_str(&s->client.got));
	if (s->exact ? !hf_str_eq(text, all) :
		       !same_words(text, all, s->text->wide))
		bad(s, s->exact ? "not to the byte" : "other words", text);
	if (w->rig.stored) {
		hf_buf_init(&stored, HF_BUF_NOCAP);
		rig_stored(&w->rig, s->session, &stored);
		if (!hf_str_eq(text, hf_buf_str(&stored)))
			bad(s, "stored otherwise", hf_buf_str(&stored));
		hf_buf_free(&stored);
	}
	rig_unhear(&h);
	w->runs++;
	w->whole += s->asked == 1;
}

/* --- playing -------------------------------------------------------------- */

static void
begin(struct sweep *w, struct scene *s)
{
	unsigned i = (unsigned)(s - w->scene);

	s->asked = 0;
	s->exact = s->text->even;
	snprintf(s->body, sizeof(s->body),
	    "{\"model\":\"%s-%s%s\",\"stream\":true,\"messages\":"
	    "[{\"role\":\"user\",\"content\":\"tell me #%u \"}]}",
	    s->mode->name, s->first == HF_DIALECT_OPENAI ? "o" : "a",
	    s->second > 0 ? "-rolling" : "", i);
	snprintf(s->session, sizeof(s->session), "s-%lu", w->runs + i);
	rig_ask(&w->rig, &s->client, w->rig.stored ? s->session : NULL,
	    hf_str(s->body));
}

/* All that are in play, at once. */
static void
play(struct sweep *w)
{
	for (unsigned i = 0; i < w->n_scene; i++)
		begin(w, &w->scene[i]);
	rig_run(&w->rig);
	for (unsigned i = 0; i < w->n_scene; i++) {
		check(w, &w->scene[i]);
		rig_forget(&w->scene[i].client);
	}
	w->n_scene = 0;
}

static void
open_sweep(struct sweep *w, bool stored)
{
	struct hf_buf conf;

	*w = (struct sweep){ 0 };
	w->scene = calloc(AT_ONCE, sizeof(*w->scene));
	assert_non_null(w->scene);
	hf_buf_init(&w->wire, HF_BUF_NOCAP);
	hf_buf_init(&conf, HF_BUF_NOCAP);
	hf_buf_puts(&conf,
	    "gateway { flush_ms = 5 }\n"
	    "provider o { dialect = openai base_url = http://openai "
	    "breaker_failures = 0 }\n"
	    "provider a { dialect = anthropic base_url = http://anthropic "
	    "breaker_failures = 0 }\n"
	    "target o/plain { prefill = plain }\n"
	    "target a/plain { prefill = plain }\n"
	    "target o/mistral { prefill = mistral }\n");
	for (size_t i = 0; i < hf_countof(modes); i++) {
		const struct mode *m = &modes[i];

		hf_buf_printf(&conf,
		    "route %s-a { targets = {a/x, o/%s} max_retries = 0 %s }\n",
		    m->name, m->target, m->keys);
		if (m->openai)
			continue;
		hf_buf_printf(&conf,
		    "route %s-o { targets = {o/x, a/%s} max_retries = 0 %s }\n"
		    "route %s-a-rolling { targets = {a/x, o/%s, a/%s} "
		    "max_retries = 0 %s }\n"
		    "route %s-o-rolling { targets = {o/x, a/%s, o/%s} "
		    "max_retries = 0 %s }\n",
		    m->name, m->target, m->keys, m->name, m->target, m->target,
		    m->keys, m->name, m->target, m->target, m->keys);
	}
	rig_open(&w->rig, conf.data, stored, provide, w);
	hf_buf_free(&conf);
}

static void
close_sweep(struct sweep *w, const char *what)
{
	print_message("# %s: %lu runs, %lu asked anew, %lu continued, %lu "
		      "whole\n",
	    what, w->runs, w->fresh, w->continued, w->whole);
	assert_true(w->fresh > 0 && w->continued > 0 && w->whole > 0);
	hf_buf_free(&w->wire);
	free(w->scene);
	rig_close(&w->rig);
}

/* --- the sweeps ----------------------------------------------------------- */

/* Line ends and pieces: all of these are swept with every mode and order, for
 * some texts each; in the long form with every text. */
static const struct manner {
	const char *eol;
	size_t step[2]; /* of the first answer, of the others */
} manners[] = {
	{ "\n", { 0, 0 } },
	{ "\r\n", { 1, 1 } },
	{ "\r", { 0, 0 } },
	{ "\n", { 1, 1 } },
	{ "\r\n", { 0, 0 } },
	{ "\r", { 1, 1 } },
	{ "\n", { 0, 1 } },
	{ "\r\n", { 1, 0 } },
	{ "\r", { 0, 1 } },
	{ "\n", { 1, 0 } },
	{ "\r\n", { 0, 1 } },
	{ "\r", { 1, 0 } },
};
#define MANNERS_EACH 2 /* of a text in the short form */

static bool
is_long(void)
{
	return getenv("HF_TEST_LONG") != NULL;
}

/* Under valgrind only some cuts are made. */
static size_t
stride(void)
{
	return getenv("HF_VALGRIND") != NULL ? 97 : 1;
}

static void
set_manner(struct scene *s, unsigned i)
{
	const struct manner *m = &manners[i % hf_countof(manners)];

	s->eol = m->eol;
	memcpy(s->step, m->step, sizeof(s->step));
}

static void
set_wire(struct sweep *w, const struct scene *s)
{
	struct say say = { s->first, s->eol, s->text->escaped };

	hf_buf_reset(&w->wire);
	say_stream(&say, all_of(s), &w->wire);
}

static void
add(struct sweep *w, const struct scene *like, size_t cut, size_t second)
{
	struct scene *s;

	if (w->n_scene == AT_ONCE)
		play(w);
	s = &w->scene[w->n_scene++];
	*s = *like;
	s->cut = cut;
	s->second = second;
	s->style += (unsigned)(cut + second / 7);
}

/* For every mode and order. */
static void
each_mode(struct sweep *w, const struct text *text,
    void (*fn)(struct sweep *w, struct scene *s))
{
	struct scene s = { .text = text };

	for (unsigned i = 0; i < 2 * hf_countof(modes); i++) {
		s.first = i % 2 == 0 ? HF_DIALECT_OPENAI : HF_DIALECT_ANTHROPIC;
		s.mode = &modes[i / 2];
		s.style = i;
		if (!s.mode->openai || s.first != HF_DIALECT_OPENAI)
			fn(w, &s);
	}
}

static void
cut_everywhere(struct sweep *w, struct scene *s)
{
	set_wire(w, s);
	for (size_t cut = 0; cut < w->wire.size; cut += stride())
		add(w, s, cut, 0);
	add(w, s, w->wire.size, 0);
	play(w);
}

static void
every_manner(struct sweep *w, struct scene *s)
{
	unsigned n = is_long() ? hf_countof(manners) : MANNERS_EACH;
	unsigned from = (unsigned)(s->text - texts) * MANNERS_EACH;

	for (unsigned i = 0; i < n; i++) {
		set_manner(s, from + i);
		cut_everywhere(w, s);
	}
}

static void
test_every_byte(void **state)
{
	const struct text *text = *state;
	struct sweep w;

	open_sweep(&w, false);
	each_mode(&w, text, every_manner);
	close_sweep(&w, text->name);
}

/* With a session: the parts are on disk before they are gone on with. */
static void
stored(struct sweep *w, struct scene *s)
{
	set_manner(s, s->style);
	cut_everywhere(w, s);
}

static void
test_stored(void **state)
{
	struct sweep w;

	open_sweep(&w, true);
	each_mode(&w, *state, stored);
	close_sweep(&w, "stored");
}

/* The one that goes on breaks off too. */
static void
rolling(struct sweep *w, struct scene *s)
{
	if (s->mode->openai)
		return; /* its third target would have to be one, too */
	set_manner(s, s->style);
	set_wire(w, s);
	for (size_t cut = 0; cut < w->wire.size; cut += 46 + stride())
		for (size_t again = 1; again < w->wire.size + 200; again += 41)
			add(w, s, cut, again);
	add(w, s, w->wire.size, 0);
	play(w);
}

static void
test_rolling(void **state)
{
	struct sweep w;

	open_sweep(&w, false);
	each_mode(&w, *state, rolling);
	close_sweep(&w, "rolling");
}

static struct CMUnitTest
sweep_of(const char *name, CMUnitTestFunction fn, const struct text *text)
{
	return (struct CMUnitTest){ .name = name,
		.test_func = fn,
		.initial_state = (void *)(uintptr_t)text };
}

int
main(void)
{
	struct CMUnitTest t[2 * hf_countof(texts) + 2];
	size_t n = 0;

	if (stride() > 1)
		print_message(
		    "# under valgrind: every %zuth cut only\n", stride());
	for (size_t i = 0; i < hf_countof(texts); i++)
		t[n++] = sweep_of(texts[i].name, test_every_byte, &texts[i]);
	for (size_t i = 0; i < hf_countof(texts); i++)
		if (is_long() || strcmp(texts[i].name, "emoji") == 0)
			t[n++] = sweep_of("stored", test_stored, &texts[i]);
	t[n++] = sweep_of("rolling", test_rolling, &texts[0]);
	t[n++] = sweep_of("rolling, wide", test_rolling, &texts[2]);
	return _cmocka_run_group_tests("turn_sweep", t, n, NULL, NULL);
}
