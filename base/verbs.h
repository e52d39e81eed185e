/*
 * Flags of the rows of verbs.def.
 */
#ifndef HF_BASE_VERBS_H
#define HF_BASE_VERBS_H

enum hf_verb_flags {
	HF_VERB_CHANGE = 1,
	HF_VERB_LOCAL = 2,
	HF_VERB_OFFLINE = 4
};

#endif
