/*
 * Histograms of durations.  Below eight each value has its own cell; above,
 * the three bits behind the leading one choose among the cells of a doubling.
 */
#include <config.h>

#include "base/hist.h"

#define SUB_BITS 3
#define SUB (1 << SUB_BITS)
#define EPOCH_US ((int64_t)300 * 1000000)

unsigned
hf_hist_cell(int64_t v)
{
	unsigned e = 0, cell;

	if (v < SUB)
		return v < 0 ? 0 : (unsigned)v;
	for (int64_t rest = v; rest > 1; rest >>= 1)
		e++;
	cell = (e - SUB_BITS + 1) * SUB +
	    ((unsigned)(v >> (e - SUB_BITS)) & (SUB - 1));
	return cell < HF_HIST_CELLS ? cell : HF_HIST_CELLS - 1;
}

/* The middle of a cell. */
static int64_t
value_of(unsigned cell)
{
	unsigned e = cell / SUB;
	int64_t width, low;

	if (e < 2)
		return cell;
	width = INT64_C(1) << (e - 1);
	low = (SUB + (int64_t)(cell % SUB)) * width;
	return low + width / 2;
}

int64_t
hf_hist_quantile(const uint64_t n[HF_HIST_CELLS], unsigned permille)
{
	uint64_t all = 0, seen = 0, rank;

	for (unsigned i = 0; i < HF_HIST_CELLS; i++)
		all += n[i];
	if (all == 0)
		return -1;
	rank = (all * permille + 999) / 1000;
	for (unsigned i = 0; i < HF_HIST_CELLS; i++) {
		seen += n[i];
		if (seen > 0 && seen >= rank)
			return value_of(i);
	}
	return value_of(HF_HIST_CELLS - 1);
}

static uint32_t
epoch_of(int64_t now_us)
{
	return (uint32_t)(now_us / EPOCH_US) + 1;
}

void
hf_hist_add(struct hf_hist_window *w, int64_t v, int64_t now_us)
{
	uint32_t epoch = epoch_of(now_us), h = epoch & 1, seen;

	seen = atomic_load_explicit(&w->epoch[h], memory_order_relaxed);
	if (seen != epoch &&
	    atomic_compare_exchange_strong_explicit(&w->epoch[h], &seen, epoch,
		memory_order_relaxed, memory_order_relaxed))
		for (unsigned i = 0; i < HF_HIST_CELLS; i++)
			atomic_store_explicit(
			    &w->n[h][i], 0, memory_order_relaxed);
	atomic_fetch_add_explicit(
	    &w->n[h][hf_hist_cell(v)], 1, memory_order_relaxed);
}

void
hf_hist_read(
    const struct hf_hist_window *w, int64_t now_us, uint64_t n[HF_HIST_CELLS])
{
	uint32_t now = epoch_of(now_us);

	for (unsigned i = 0; i < HF_HIST_CELLS; i++)
		n[i] = 0;
	for (unsigned h = 0; h < 2; h++) {
		uint32_t epoch =
		    atomic_load_explicit(&w->epoch[h], memory_order_relaxed);

		if (epoch != now && epoch + 1 != now)
			continue;
		for (unsigned i = 0; i < HF_HIST_CELLS; i++)
			n[i] += atomic_load_explicit(
			    &w->n[h][i], memory_order_relaxed);
	}
}
