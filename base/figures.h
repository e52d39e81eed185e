/*
 * What operators are shown of a target beside its breaker and its pace: how
 * its calls ended since the daemon began, how soon they spoke, how many turns
 * wait for it.  Part of its row in the scoreboard; nothing is decided by it.
 * Lock-free; any thread of any process.
 */
#ifndef HF_BASE_FIGURES_H
#define HF_BASE_FIGURES_H

#include "base/class.h"
#include "base/hist.h"

struct hf_figures {
	_Atomic int64_t ended[HF_N_CLASS]; /* [HF_CLASS_NONE]: answered */
	_Atomic int64_t cut;   /* by us: races lost, clients that left */
	_Atomic uint64_t last; /* error: wall ms << 20, status << 8, class */
	struct hf_hist_window first_token; /* milliseconds */
};

struct hf_last_error {
	enum hf_class cls; /* HF_CLASS_NONE: there was none */
	int status;	   /* HTTP; 0: none */
	int64_t at_us;	   /* wall time, to the millisecond */
};

/* A call ended so. */
void hf_figures_ended(
    struct hf_figures *f, enum hf_class c, int http_status, int64_t wall_us);
/* A call was not wanted any more. */
void hf_figures_cut(struct hf_figures *f);
/* It said something useful after so long. */
void hf_figures_first_token(
    struct hf_figures *f, int64_t after_us, int64_t now_us);
struct hf_last_error hf_figures_last(const struct hf_figures *f);

#endif
