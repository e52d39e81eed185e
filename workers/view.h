/*
 * Rows and arguments of control verbs as JSON.
 */
#ifndef HF_WORKERS_VIEW_H
#define HF_WORKERS_VIEW_H

#include <jansson.h>

#include "base/err.h"
#include "store/inspect.h"

/* Text from outside as a JSON string; bytes that are no UTF-8 become question
 * marks.  NULL is null. */
json_t *hf_json_text(struct hf_str s);
/* A row's members.  NULL: no memory. */
json_t *hf_json_view(const struct hf_view *view, const void *row);
/* An optional string member of 'args'; HF_EINVAL if it is something else. */
int hf_json_arg(const json_t *args, const char *key, const char **out,
    struct hf_error *e) HF_MUST_CHECK;

#endif
