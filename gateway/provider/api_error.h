/*
 * What a provider says went wrong, read from any of the shapes in use, and
 * the table that turns it into an error class.  Private to the room.
 */
#ifndef HF_GATEWAY_PROVIDER_API_ERROR_H
#define HF_GATEWAY_PROVIDER_API_ERROR_H

#include "gateway/provider/provider.h"

struct hf_api_error {
	bool found;		/* the body was an error in a known shape */
	int status;		/* of the exchange; an error inside a 200 whose
				 * code is a number takes that instead */
	int64_t retry_after_ms; /* that its details ask for; -1: none */
	struct hf_buf message, code, type, param; /* decoded */
};

enum hf_error_match {
	HF_MATCH_ANY,	 /* the status alone decides */
	HF_MATCH_CODE,	 /* error.code is 'word' */
	HF_MATCH_TYPE,	 /* error.type is 'word' */
	HF_MATCH_TEXT,	 /* error.message contains 'word', any case */
	HF_MATCH_FOREIGN /* the body is not the API's: HTML, empty */
};

/* One row; the first that matches decides. */
struct hf_error_rule {
	int from, to; /* status, inclusive */
	enum hf_error_match match;
	const char *word;
	enum hf_class cls;
	const char *reason; /* NULL: "http_NNN" */
};

void hf_api_error_init(struct hf_api_error *a, int status);
void hf_api_error_free(struct hf_api_error *a);
/* True if 'v', the content of a 2xx answer, is an error all the same. */
bool hf_api_error_is(struct hf_json v);
/* Read the error out of 'v'; leaves 'a' as it is if there is none. */
void hf_api_error_read(struct hf_api_error *a, struct hf_json v);
/* 'rule' ends with a row for every status.  *reason gets a static string. */
enum hf_class hf_api_error_class(const struct hf_api_error *a,
    const struct hf_error_rule *rule, const char **reason);
/* "http_503"; static. */
const char *hf_http_reason(int status);

#endif
