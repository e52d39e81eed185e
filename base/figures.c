/*
 * Figures of a target.
 */
#include <config.h>

#include "base/figures.h"

#define TIME_SHIFT 20
#define STATUS_SHIFT 8
#define STATUS_MASK 0xfff
#define CLASS_MASK 0xff

_Static_assert(HF_N_CLASS <= CLASS_MASK, "a class is a byte");

void
hf_figures_ended(
    struct hf_figures *f, enum hf_class c, int http_status, int64_t wall_us)
{
	uint64_t ms = wall_us < 0 ? 0 : (uint64_t)wall_us / 1000;
	uint64_t status =
	    http_status < 0 || http_status > STATUS_MASK ? 0 : http_status;

	atomic_fetch_add_explicit(&f->ended[c], 1, memory_order_relaxed);
	if (c != HF_CLASS_NONE)
		atomic_store_explicit(&f->last,
		    ms << TIME_SHIFT | status << STATUS_SHIFT | (uint64_t)c,
		    memory_order_relaxed);
}

void
hf_figures_cut(struct hf_figures *f)
{
	atomic_fetch_add_explicit(&f->cut, 1, memory_order_relaxed);
}

void
hf_figures_first_token(struct hf_figures *f, int64_t after_us, int64_t now_us)
{
	hf_hist_add(&f->first_token, (after_us + 500) / 1000, now_us);
}

struct hf_last_error
hf_figures_last(const struct hf_figures *f)
{
	uint64_t w = atomic_load_explicit(&f->last, memory_order_relaxed);
	struct hf_last_error l = { .cls = (enum hf_class)(w & CLASS_MASK),
		.status = (int)(w >> STATUS_SHIFT & STATUS_MASK),
		.at_us = (int64_t)(w >> TIME_SHIFT) * 1000 };

	if ((w & CLASS_MASK) >= HF_N_CLASS)
		l.cls = HF_CLASS_NONE;
	return l;
}
