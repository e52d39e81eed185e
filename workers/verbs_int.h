/*
 * The verbs, one function each; shared by the files verbs*.c.
 */
#ifndef HF_WORKERS_VERBS_INT_H
#define HF_WORKERS_VERBS_INT_H

#include "workers/verbs.h"

typedef int hf_verb_fn(struct hf_verbs *v, const json_t *args,
    struct hf_reply *reply, struct hf_error *e);

hf_verb_fn hf_verb_check, hf_verb_config_show, hf_verb_reload, hf_verb_drain;
/* verbs_providers.c, verbs_test.c */
hf_verb_fn hf_verb_providers, hf_verb_provider, hf_verb_provider_test,
    hf_verb_disable, hf_verb_enable, hf_verb_trip, hf_verb_reset;
/* verbs_failovers.c */
hf_verb_fn hf_verb_failovers, hf_verb_failover_summary;

/* {kind: row}; takes the reference of 'row' (NULL: no memory). */
int hf_verb_send(struct hf_reply *reply, const char *kind, json_t *row,
    struct hf_error *e) HF_MUST_CHECK;
/* If the verb changes something: who did so, and what came of it, or came of
 * it so far. */
void hf_verb_audit(
    const char *verb, const json_t *args, const struct hf_reply *reply, int rc);
/* The running configuration, without secrets; the caller's. */
int hf_verb_conf(
    struct hf_verbs *v, struct hf_conf **out, struct hf_error *e) HF_MUST_CHECK;

/* What args.name means in a configuration: a target, or a provider with all
 * its targets. */
struct hf_named {
	const char *name;
	const struct hf_conf_provider *provider;
	const struct hf_conf_target *target; /* NULL: all of the provider */
};
int hf_verb_named(const struct hf_conf *c, const json_t *args,
    struct hf_named *n, struct hf_error *e) HF_MUST_CHECK;
bool hf_verb_is_named(const struct hf_named *n, const struct hf_conf_target *t);

#endif
