/*
 * What the printers of tables share: render_text.c (sessions, keys, status),
 * render_timeline.c, render_providers.c and render_admin.c (the rest).
 */
#ifndef HF_CTL_RENDER_INT_H
#define HF_CTL_RENDER_INT_H

#include "ctl/render.h"
#include "ctl/table.h"

/* "name           value"; frees 'value'. */
int hf_ctl_line(const char *name, struct hf_buf *value, FILE *out);
/* The same for members of 'o'; those that it does not have are left out. */
int hf_ctl_lines(
    const struct hf_ctl_column *column, size_t n, json_t *o, FILE *out);

int hf_ctl_text_timeline(const struct hf_ctl *ctl, json_t *doc, FILE *out);
int hf_ctl_text_check(json_t *doc, FILE *out);
int hf_ctl_text_verify(const struct hf_ctl *ctl, json_t *doc, FILE *out);
int hf_ctl_text_locks(const struct hf_ctl *ctl, json_t *doc, FILE *out);
int hf_ctl_text_providers(const struct hf_ctl *ctl, json_t *doc, FILE *out);
int hf_ctl_text_provider(const struct hf_ctl *ctl, json_t *doc, FILE *out);
int hf_ctl_text_tests(const struct hf_ctl *ctl, json_t *doc, FILE *out);
int hf_ctl_text_failovers(const struct hf_ctl *ctl, json_t *doc, FILE *out);
int hf_ctl_text_failover_summary(
    const struct hf_ctl *ctl, json_t *doc, FILE *out);
int hf_ctl_text_warnings(json_t *doc, FILE *out);
int hf_ctl_text_config(const struct hf_ctl *ctl, json_t *doc, FILE *out);
int hf_ctl_text_explain(json_t *doc, FILE *out);
int hf_ctl_text_errors(const struct hf_ctl *ctl, json_t *doc, FILE *out);
int hf_ctl_text_reload(json_t *doc, FILE *out);
int hf_ctl_text_drain(json_t *doc, FILE *out);

#endif
