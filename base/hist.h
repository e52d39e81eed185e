/*
 * Histograms of durations: eight cells to each doubling, so that what is read
 * from one is right to a sixteenth.  Pure, but for the two of a window.
 */
#ifndef HF_BASE_HIST_H
#define HF_BASE_HIST_H

#include <stdatomic.h>

#include "base/hf.h"

#define HF_HIST_CELLS 152 /* up to half an hour, in milliseconds */

/* The cell of a value; larger ones than it knows are in the last. */
unsigned hf_hist_cell(int64_t v);
/* The value below which 'permille' of all that was counted lies; -1: nothing
 * was counted. */
int64_t hf_hist_quantile(const uint64_t n[HF_HIST_CELLS], unsigned permille);

/* What was counted in the last five to ten minutes.  In shared memory, by any
 * thread of any process; when an epoch begins a few counts may be lost. */
struct hf_hist_window {
	_Atomic uint32_t epoch[2];
	_Atomic uint32_t n[2][HF_HIST_CELLS];
};

void hf_hist_add(struct hf_hist_window *w, int64_t v, int64_t now_us);
void hf_hist_read(
    const struct hf_hist_window *w, int64_t now_us, uint64_t n[HF_HIST_CELLS]);

#endif
