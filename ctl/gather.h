/*
 * Data frames put together as one document.
 */
#ifndef HF_CTL_GATHER_H
#define HF_CTL_GATHER_H

#include <jansson.h>

#include "ctl/ctl.h"

struct hf_gather {
	enum hf_ctl_doc kind;
	bool contents; /* were asked for */
	json_t *doc;
};

/* .doc is NULL when there is no memory. */
void hf_gather_init(struct hf_gather *g, const struct hf_ctl *ctl);
/* One data frame (borrowed); nonzero: it makes no sense.  A hf_ctl_data_fn. */
int hf_gather_data(void *gather, json_t *data);
/* Does the document hold what was asked for? */
bool hf_gather_whole(const struct hf_gather *g);
/* What the document means for the exit code. */
int hf_gather_verdict(const struct hf_gather *g);

#endif
