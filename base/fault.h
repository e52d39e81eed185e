/*
 * Named fault points for crash and error tests, compiled in only with
 * --enable-faults.  HF_FAULT="point=kill", "point=fail" or "point=kill@3"
 * (the third time) in the environment; several are separated by commas.
 * "kill" raises SIGKILL in the process that gets there; "fail" makes
 * hf_fault() return true, and the caller takes its error path.  Each process
 * counts for itself; with HF_FAULT_ONCE=FILE only the first of all does it that
 * can remove that file, then or any later time.
 */
#ifndef HF_BASE_FAULT_H
#define HF_BASE_FAULT_H

#include <config.h>

#include "base/hf.h"

#ifdef HF_FAULTS
bool hf_fault(const char *point);
#else
static inline bool
hf_fault(const char *point)
{
	(void)point;
	return false;
}
#endif

#endif
