/*
 * Inbound protocols.  A surface reads a request into a turn input and writes
 * events as bytes of its protocol to the sink; it sees neither the HTTP
 * library nor providers.  Loop thread only.
 */
#ifndef HF_GATEWAY_SURFACE_SURFACE_H
#define HF_GATEWAY_SURFACE_SURFACE_H

#include "gateway/front/front.h"
#include "gateway/turn/turn.h"

/* Largest session name, in bytes. */
#define HF_SESSION_NAME_MAX 256

/* A refusal of a request, in the words of chat completions. */
struct hf_refusal {
	int status;
	const char *type, *code; /* static */
	char param[64];		 /* empty: null */
	char message[320];
};

int hf_refuse(struct hf_refusal *r, int status, const char *code,
    const char *param, const char *fmt, ...) HF_PRINTF(5, 6);

/* Append {"error":{"message","type","param","code"}}. */
void hf_surface_error_body(struct hf_buf *out, const char *type,
    const char *code, struct hf_str param, struct hf_str message);
/* Answer with that body. */
void hf_surface_refuse(struct hf_sink *sink, const struct hf_refusal *r,
    int64_t retry_after_ms, bool final);

/* The session a request belongs to, from headers and body (docs/design/
 * sessions.md has the list); *out has size 0 when none is named.  Decoded
 * into 'a'.  Nonzero: *r is filled in. */
int hf_session_name(const struct hf_req *rq, struct hf_json body,
    struct hf_arena *a, struct hf_str *out, struct hf_refusal *r) HF_MUST_CHECK;

/* Read a chat completions request.  On success in->arena is the caller's to
 * hand on; on failure everything is freed and *r filled in. */
struct hf_chat_options {
	bool include_usage;
};
int hf_chat_parse(const struct hf_conf *conf, const struct hf_req *rq,
    struct hf_turn_input *in, struct hf_chat_options *o,
    struct hf_refusal *r) HF_MUST_CHECK;

/* POST /v1/chat/completions: read it, start its turn, write what comes. */
void hf_chat_serve(
    struct hf_turn_env *env, struct hf_req *rq, struct hf_sink *sink);
/* GET /v1/sessions/... (rq->rest): take the stream of a turn up again. */
void hf_follow_serve(
    struct hf_turn_env *env, struct hf_req *rq, struct hf_sink *sink);
/* GET /v1/models, GET /v1/models/{id} (rq->rest). */
void hf_models_serve(
    const struct hf_conf *conf, struct hf_req *rq, struct hf_sink *sink);

#endif
