/*
 * What the dialects' decoders share: the front that sorts a response into an
 * error body, a stream or a whole answer, the checks on tool calls, and the
 * emission of events.  Private to the room.  Loop thread only.
 */
#ifndef HF_GATEWAY_PROVIDER_DECODER_H
#define HF_GATEWAY_PROVIDER_DECODER_H

#include "gateway/provider/api_error.h"
#include "gateway/provider/provider.h"
#include "gateway/upstream/sse.h"

/* Caps.  Over one of them the attempt fails as class provider. */
#define HF_DECODE_ERROR_BODY ((size_t)64 * 1024) /* cut, not failed */
#define HF_DECODE_WHOLE ((size_t)32 * 1024 * 1024)
#define HF_DECODE_EVENT ((size_t)8 * 1024 * 1024)
#define HF_DECODE_STREAM ((uint64_t)256 * 1024 * 1024)
#define HF_DECODE_ARGUMENTS ((size_t)16 * 1024 * 1024)
#define HF_DECODE_TOOLS 128

struct hf_tool {
	struct hf_buf id, name, args; /* decoded */
	int64_t index;		      /* as the provider counts; -1: none */
	bool tried;		      /* looked at for early emission */
	bool emitted;
};

struct hf_decoder_ops {
	const struct hf_error_rule *errors;
	/* One event of a stream: an object without an error in it. */
	void (*event)(struct hf_decoder *d, const struct hf_sse_event *ev,
	    struct hf_json v);
	/* True if an event's data is a marker ([DONE]), which was handled. */
	bool (*marker)(struct hf_decoder *d, struct hf_str data);
	/* A whole answer (2xx, JSON, no error in it). */
	void (*whole)(struct hf_decoder *d, struct hf_json v);
	/* The stream ended without a terminal event: true if the answer was
	 * complete all the same (then a terminal event was emitted). */
	bool (*ended)(struct hf_decoder *d);
};

struct hf_decoder {
	const struct hf_decoder_ops *ops;
	hf_event_fn fn;
	void *arg;
	enum {
		HF_DECODE_NEW,	     /* no headers yet */
		HF_DECODE_ERROR,     /* collects the body of an error */
		HF_DECODE_UNDECIDED, /* 2xx, no byte that tells the kind */
		HF_DECODE_SSE,
		HF_DECODE_JSON
	} mode;
	int status;
	int64_t retry_after_ms;
	bool event_stream; /* says the content type */
	bool begun;	   /* HF_EV_BEGIN was emitted */
	bool finished;	   /* HF_EV_FINISH was emitted */
	bool terminal;	   /* HF_EV_DONE or HF_EV_ERROR was */
	uint64_t bytes;
	struct hf_buf body;	/* error, whole answer, undecided */
	struct hf_buf scratch;	/* one decoded text */
	struct hf_json_map map; /* of what is being read */
	struct hf_sse sse;
	struct hf_tool *tool;
	unsigned n_tool, n_tool_emitted;
	size_t args_bytes;
	/* Input, output, cached, reasoning; -1 until known. */
	int64_t usage[4];
	/* The dialect's own. */
	bool usage_new;	  /* openai: not told yet */
	bool have_finish; /* anthropic: stop_reason seen */
	enum hf_finish_reason finish;
	bool in_tool;	    /* anthropic: the open block is one */
	int64_t counted[4]; /* anthropic: parts of the input */
};

struct hf_decoder *hf_decode_new(
    const struct hf_decoder_ops *ops, hf_event_fn fn, void *arg) HF_MUST_CHECK;

/* --- emission; each does nothing after a terminal event ---------------- */

/* HF_EV_BEGIN, once; implied by whatever has content. */
void hf_decode_begin(struct hf_decoder *d);
/* HF_EV_TEXT or HF_EV_REFUSAL of a JSON string; nothing if it is empty. */
void hf_decode_text(
    struct hf_decoder *d, enum hf_event_type type, struct hf_json string);
void hf_decode_usage(struct hf_decoder *d);
/* Held tool calls, HF_EV_FINISH.  False if a held call cannot be said. */
bool hf_decode_finish(struct hf_decoder *d, enum hf_finish_reason f);
void hf_decode_done(struct hf_decoder *d);
void hf_decode_fail(
    struct hf_decoder *d, enum hf_class cls, const char *reason);
/* An error object inside a 2xx. */
void hf_decode_error_in(struct hf_decoder *d, struct hf_json v);

/* --- tool calls (tools.c) ------------------------------------------------ */

/* A new call; NULL (and failed) over the cap. */
struct hf_tool *hf_tool_add(struct hf_decoder *d, int64_t index);
/* The newest call with this index, or NULL. */
struct hf_tool *hf_tool_find(struct hf_decoder *d, int64_t index);
/* More of a call's arguments: a JSON string that is part of the text, or an
 * object from servers that send one.  Emits HF_EV_PROGRESS. */
void hf_tool_arguments(
    struct hf_decoder *d, struct hf_tool *t, struct hf_json part);
/* Emit calls, in order, whose arguments are a whole object; stops at the
 * first that is not.  Calls of which an argument is under way are not to be
 * offered. */
void hf_tools_emit_whole(struct hf_decoder *d);
/* Emit the rest at the end of the answer. */
bool hf_tools_emit_rest(struct hf_decoder *d, enum hf_finish_reason f);
void hf_tools_free(struct hf_decoder *d);

extern const struct hf_dialect hf_dialect_openai;
extern const struct hf_dialect hf_dialect_anthropic;

#endif
