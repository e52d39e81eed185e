/*
 * A log of JSON values in a file, a line each, that is only added to and read
 * back at the start.  What was put outlives the process, but, since it is not
 * synced, not the machine.  One thread.
 */
#ifndef HF_BENCH_JOURNAL_H
#define HF_BENCH_JOURNAL_H

#include <jansson.h>

#include "base/err.h"
#include "base/hf.h"

struct hf_journal;

/*
 * Opens the file, made if need be, and tells 'fn' each value of it, borrowed. A
 * last line without its end was being written when its process died: it is cut
 * off.  Any other that is no JSON: HF_ECORRUPT.
 */
int hf_journal_open(struct hf_journal **out, const char *path,
    void (*fn)(void *arg, json_t *o), void *arg,
    struct hf_error *e) HF_MUST_CHECK;
void hf_journal_close(struct hf_journal *j);
/* Adds 'o', which is taken.  It is in the file when this returns; ends the
 * process if it cannot be. */
void hf_journal_put(struct hf_journal *j, json_t *o);

#endif
