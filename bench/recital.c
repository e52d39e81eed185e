/*
 * The words of long answers.  Changing a line changes the suites that use
 * them: the digests in tests/unit/test_bench_suite.c say so.
 */
#include <config.h>

#include "bench/recital.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/check.h"
#include "bench/rng.h"

#define SENTENCES 6 /* besides the one with the fact */

static const char *const qualities[] = { "bronze", "brass", "crumpled", "dusty",
	"freckled", "faded", "gilded", "hollow", "patched", "jagged", "knotted",
	"lacquered", "mottled", "narrow", "mended", "polished", "quilted",
	"rusted", "spotless", "tattered", "silvered", "varnished", "woven",
	"yellowed" };

static const char *const things[] = { "anchor", "barometer", "compass",
	"drawer", "envelope", "flagon", "gramophone", "hourglass", "inkwell",
	"jigsaw", "kettle", "lantern", "mortar", "notebook", "oilcan",
	"pendulum", "quiver", "ratchet", "sextant", "thimble", "urn",
	"violin case", "weathervane", "xylophone" };

static const char *const places[] = { "Ålesund", "Besançon", "Český Krumlov",
	"Dún Laoghaire", "Évora", "Faro", "Győr", "Huesca", "İzmir",
	"Jönköping", "Køge", "Łódź", "Málaga", "Nîmes", "Óbidos", "Põlva",
	"Quimper", "Řevnice", "Šiauliai", "Tromsø", "Ústí", "Växjö", "Wrocław",
	"Žilina" };

static const char *const marks[] = { "東京都千代田区", "مرحبا", "🚲", "Ελλάδα",
	"naïveté", "¾", "日本語", "Привет" };

/* $q: a quality, $t: a thing, $p: a place. */
static const char *const frames[] = {
	"The $q $t came from $p in a crate.",
	"Somebody in $p still wants a $q $t back.",
	"We keep one $q $t for the people of $p, signed and sealed.",
	"On rainy days that $q $t goes to $p by post.",
	"Nobody near $p has seen another $q $t since.",
	"Its list names two things: a $q $t, and the road to $p.",
	"They say every $q $t was made before $p had trams.",
	"Half of $p would swap its bridge for this $q $t.",
	"You may find any $q $t, at least according to $p.",
};

static void
put_frame(struct hf_buf *b, const char *frame, const char *quality,
    const char *thing, const char *place)
{
	for (; *frame != '\0'; frame++) {
		if (*frame != '$') {
			hf_buf_putc(b, *frame);
			continue;
		}
		frame++;
		hf_buf_puts(b,
		    *frame == 'q'     ? quality :
			*frame == 't' ? thing :
					place);
	}
}

/* Numbers below n in an order that r decides. */
static void
shuffled(struct hf_rng *r, unsigned *v, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		v[i] = i;
	hf_rng_shuffle(r, v, n);
}

static void
seed(struct hf_rng *r, struct hf_str fact, unsigned salt)
{
	uint64_t h = salt;

	for (size_t i = 0; i < fact.size; i++)
		h = hf_rng_mix(h * 31 + (unsigned char)fact.p[i]);
	hf_rng_init(r, h);
}

char *
hf_recital(struct hf_str fact, unsigned salt)
{
	unsigned q[hf_countof(qualities)], t[hf_countof(things)];
	unsigned p[hf_countof(places)], f[hf_countof(frames)];
	unsigned m[hf_countof(marks)], at, paragraph;
	struct hf_rng r;
	struct hf_buf b;

	seed(&r, fact, salt);
	shuffled(&r, q, hf_countof(q));
	shuffled(&r, t, hf_countof(t));
	shuffled(&r, p, hf_countof(p));
	shuffled(&r, f, hf_countof(f));
	shuffled(&r, m, hf_countof(m));
	at = hf_rng_below(&r, SENTENCES + 1);
	paragraph = 1 + hf_rng_below(&r, SENTENCES - 1);
	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_buf_puts(&b, HF_RECITAL_OPENING);
	for (unsigned i = 0; i <= SENTENCES; i++) {
		if (i == at) {
			hf_buf_puts(&b, "You told me: ");
			hf_buf_putstr(&b, fact);
			hf_buf_puts(&b, ". ");
		}
		if (i == SENTENCES)
			break;
		put_frame(&b, frames[f[i]], qualities[q[i]], things[t[i]],
		    places[p[i]]);
		if (i % 2 == 0)
			hf_buf_printf(&b, " (%s)", marks[m[i]]);
		hf_buf_puts(&b, i == paragraph ? "\n\n" : " ");
	}
	hf_buf_puts(&b, "That is all.");
	HF_CHECK(hf_buf_ok(&b));
	return hf_buf_take(&b, NULL);
}

char *
hf_recital_note(struct hf_str fact)
{
	struct hf_rng r;
	struct hf_buf b;

	seed(&r, fact, 77);
	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_buf_printf(&b, "ask in %s for the %s %s",
	    places[hf_rng_below(&r, hf_countof(places))],
	    qualities[hf_rng_below(&r, hf_countof(qualities))],
	    things[hf_rng_below(&r, hf_countof(things))]);
	HF_CHECK(hf_buf_ok(&b));
	return hf_buf_take(&b, NULL);
}
