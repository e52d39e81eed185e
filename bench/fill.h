/*
 * Templates: headers, model names, command lines and configuration files for
 * gateways of others.  Pure.
 *
 *   {name}                 a string or number of the scope
 *   {#name}...{/name}      once for each object of an array, whose members are
 *                          then in scope; or once, if it is true, a number
 *                          other than 0, or a text that is not empty
 *   {^name}...{/name}      once, if it is none of that
 *   {comma}                "," in all but the first of the innermost array
 *
 * Whatever else stands in braces stays as it is.
 */
#ifndef HF_BENCH_FILL_H
#define HF_BENCH_FILL_H

#include <jansson.h>

#include "base/buf.h"
#include "base/hf.h"

void hf_fill(struct hf_buf *out, struct hf_str text, json_t *scope);
/* The same as a string; caller frees. */
char *hf_fill_text(const char *text, json_t *scope) HF_MUST_CHECK;

#endif
