/*
 * Printing a document: as tables for people, as JSON for programs, or as
 * bare ids.
 */
#ifndef HF_CTL_RENDER_H
#define HF_CTL_RENDER_H

#include <stdio.h>

#include <jansson.h>

#include "ctl/ctl.h"

/* A way to print; -1 when memory is gone (what stdio thinks of 'out' is
 * asked by the caller). */
typedef int (*hf_ctl_printer_fn)(
    const struct hf_ctl *ctl, enum hf_ctl_doc kind, json_t *doc, FILE *out);

int hf_ctl_render_text(const struct hf_ctl *ctl, enum hf_ctl_doc kind,
    json_t *doc, FILE *out) HF_MUST_CHECK;
/* Adds to each time in microseconds ("created_us") its RFC 3339 form
 * ("created"; null for 0, which means: not yet). */
int hf_ctl_render_json(const struct hf_ctl *ctl, enum hf_ctl_doc kind,
    json_t *doc, FILE *out) HF_MUST_CHECK;
int hf_ctl_render_ids(const struct hf_ctl *ctl, enum hf_ctl_doc kind,
    json_t *doc, FILE *out) HF_MUST_CHECK;
/* The one that the options ask for. */
int hf_ctl_render(const struct hf_ctl *ctl, enum hf_ctl_doc kind, json_t *doc,
    FILE *out) HF_MUST_CHECK;

#endif
