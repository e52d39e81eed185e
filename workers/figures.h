/*
 * What is known of a target, as JSON: its figures in the scoreboard and the
 * settings of its calls.
 */
#ifndef HF_WORKERS_FIGURES_H
#define HF_WORKERS_FIGURES_H

#include <jansson.h>

#include "base/conf.h"
#include "base/shm.h"

/* Add the members to 'o'. */
void hf_figures_json(
    json_t *o, const struct hf_shm *shm, const struct hf_conf_target *t);
/* Each key of a target {} block as it is in force.  NULL: no memory. */
json_t *hf_settings_json(const struct hf_conf_target *t);

#endif
