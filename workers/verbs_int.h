/*
 * The verbs, one function each; shared by verbs.c and verbs_admin.c.
 */
#ifndef HF_WORKERS_VERBS_INT_H
#define HF_WORKERS_VERBS_INT_H

#include "workers/verbs.h"

typedef int hf_verb_fn(struct hf_verbs *v, const json_t *args,
    struct hf_reply *reply, struct hf_error *e);

hf_verb_fn hf_verb_check, hf_verb_config_show, hf_verb_providers,
    hf_verb_reload, hf_verb_drain;

/* {kind: row}; takes the reference of 'row' (NULL: no memory). */
int hf_verb_send(struct hf_reply *reply, const char *kind, json_t *row,
    struct hf_error *e) HF_MUST_CHECK;

#endif
