/*
 * The form of API keys: "hfk_" + the 26 characters of the key's id + "_" + 32
 * random ones (160 bits).  Only a keyed hash of the whole is stored.
 */
#ifndef HF_STORE_AUTH_H
#define HF_STORE_AUTH_H

#include "base/hf.h"
#include "base/id.h"

#define HF_KEY_PREFIX "key_"
#define HF_SECRET_RANDOM 32

/* The id of the key that 'secret' claims to be; HF_EPERM if it has not the
 * form of one. */
int hf_auth_parse(struct hf_str secret, struct hf_id *public) HF_MUST_CHECK;

#endif
