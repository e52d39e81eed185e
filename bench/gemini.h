/*
 * What the checks and the rest of the gemini dialect share.
 */
#ifndef HF_BENCH_GEMINI_H
#define HF_BENCH_GEMINI_H

#include "bench/dialect.h"

#define HF_GEMINI_PATH "/v1beta/models/"

/* Stands for a signature of a call that was made elsewhere; also in base64. */
#define HF_GEMINI_FOREIGN "skip_thought_signature_validator"
#define HF_GEMINI_FOREIGN64 "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="

/* "MODEL:ACTION" of a path; false: it is none. */
bool hf_gemini_path(
    struct hf_str path, struct hf_str *model, struct hf_str *action);
/* The member under its name or, as protobuf's JSON also takes it,
 * its_name. */
json_t *hf_gemini_get(json_t *o, const char *name);
/* Do calls of this model carry signatures? */
bool hf_gemini_signs(struct hf_str model);
/* The signature of a call: a function of its name and arguments. */
void hf_gemini_sign(json_t *call, char out[25]);

/* Each: 0, or -1 with 'r' filled. */
int hf_gemini_bad(struct hf_refusal *r, const char *fmt, ...) HF_PRINTF(2, 3);
/* Any member of 'o' that is not in the list, under either of its names. */
int hf_gemini_only(struct hf_refusal *r, json_t *o, const char *where,
    const char *const *known);
/* Contents and systemInstruction. */
int hf_gemini_check_contents(
    struct hf_refusal *r, json_t *body, struct hf_str model);
/* Tools and settings. */
int hf_gemini_check_tools(struct hf_refusal *r, json_t *body);
int hf_gemini_check_settings(struct hf_refusal *r, json_t *body);

#endif
