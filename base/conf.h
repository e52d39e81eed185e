/*
 * The configuration as plain structs.  Every key is a row of params.def, from
 * which the parser, -t, the manual's table and the sample file come.  A
 * struct hf_conf is immutable after hf_conf_load() and owned by the caller.
 */
#ifndef HF_BASE_CONF_H
#define HF_BASE_CONF_H

#include "base/class.h"
#include "base/err.h"
#include "base/hf.h"

enum hf_conf_dialect { HF_DIALECT_OPENAI, HF_DIALECT_ANTHROPIC };
enum hf_conf_sync { HF_SYNC_FULL, HF_SYNC_NORMAL };
enum hf_conf_stateless { HF_STATELESS_MEMORY, HF_STATELESS_KEEP };
enum hf_conf_payload { HF_PAYLOAD_FULL, HF_PAYLOAD_LAST_USER };
enum hf_conf_upstream_stream { HF_STREAM_ALWAYS, HF_STREAM_CLIENT };
/* How a target is asked to go on with an assistant message that stands last;
 * see docs/design/wire.md. */
enum hf_conf_prefill {
	HF_PREFILL_NONE,
	HF_PREFILL_PLAIN,
	HF_PREFILL_VLLM,
	HF_PREFILL_MISTRAL,
	HF_PREFILL_DEEPSEEK,
	HF_PREFILL_PARTIAL
};
enum hf_conf_continuation {
	HF_CONTINUE_INSTRUCTION,
	HF_CONTINUE_HIDDEN,
	HF_CONTINUE_OFF
};
enum hf_conf_release {
	HF_CONF_RELEASE_WORD,
	HF_CONF_RELEASE_TOKEN,
	HF_CONF_RELEASE_CLAUSE
};
enum hf_conf_handover { HF_HANDOVER_AUTO, HF_HANDOVER_ON, HF_HANDOVER_OFF };
enum hf_conf_disconnect { HF_DISCONNECT_CANCEL, HF_DISCONNECT_FINISH };
enum hf_conf_full { HF_FULL_WAIT, HF_FULL_NEXT };
enum hf_conf_warm { HF_WARM_NONE, HF_WARM_CONNECT, HF_WARM_PREFILL };
/* When a session goes back to a target that it had left. */
enum hf_conf_failback {
	HF_FAILBACK_TURN,
	HF_FAILBACK_SESSION,
	HF_FAILBACK_HEALTH
};
enum hf_conf_reported_model { HF_REPORT_ROUTE, HF_REPORT_TARGET };

struct hf_conf_gateway {
	char **listen; /* "127.0.0.1:8080", "[::1]:8080" */
	unsigned n_listen;
	char *database;		     /* path of the SQLite file */
	char *master_key_file;	     /* default: database + ".key" */
	char *master_key_credential; /* systemd credential name, or NULL */
	char *control;		     /* path of the control socket */
	int workers;		     /* 0: one per core */
	int synchronous;	     /* enum hf_conf_sync */
	int stateless;		     /* enum hf_conf_stateless */
	int flush_ms;
	int64_t body_soft; /* bytes; answered in the protocol's JSON */
	int64_t body_hard; /* bytes; answered by the HTTP library */
	int header_timeout_ms, body_timeout_ms, keepalive_timeout_ms;
	int write_timeout_ms; /* a client that takes nothing this long */
	int drain_ms;	      /* TERM, HUP: how long turns may take to end */
	int queue_limit;      /* turns waiting per session */
	int log_level;	      /* enum hf_log_level */
	int handover;	      /* enum hf_conf_handover */
	int heartbeat_ms;     /* stale after this: abort, then kill */
};

/* Settings of a call; a target {} block overrides its provider's. */
struct hf_conf_call {
	int connect_ms;
	int first_token_ms;  /* to the first useful delta; 0: none */
	int hedge_after_ms;  /* without one: call the next beside; 0: never */
	int idle_ms;	     /* between useful deltas; 0: none */
	int min_chars_per_s; /* over rate_window_ms; 0: none */
	int rate_window_ms;
	int total_ms;	      /* of one attempt */
	int breaker_failures; /* in a row; 0: no breaker */
	int breaker_open_ms;
	int breaker_ramp; /* answers until it is closed; 0: one */
	/* The share of failures that opens it too; 0: none. */
	int breaker_rate_percent;
	int breaker_rate_calls; /* not of fewer calls than this */
	int breaker_rate_window_ms;
	int rpm; /* calls in any window; 0: not said */
	int tpm; /* tokens in any window; 0: not said */
	int rpm_window_ms;
	int slow_start;	       /* calls on their way at first; 0: any */
	int slow_start_ms;     /* so long they are */
	int max_in_flight;     /* 0: no limit */
	int when_full;	       /* enum hf_conf_full */
	int max_output_tokens; /* when the client names none */
	int context_window;    /* tokens; 0: not known */
	int upstream_stream;   /* enum hf_conf_upstream_stream */
	int prefill;	       /* enum hf_conf_prefill */
	int warm;	       /* enum hf_conf_warm */
	int warm_every_ms;     /* of a provider: it is asked so often */
	int warm_in_flight;    /* shadows at a time, over all workers */
};

struct hf_conf_provider {
	char *name;
	int dialect;	   /* enum hf_conf_dialect */
	char *base_url;	   /* e.g. https://api.openai.com/v1 */
	char *api_key;	   /* resolved secret, or NULL; never logged */
	char *api_version; /* anthropic-version */
	struct hf_conf_call call;
};

struct hf_conf_target {
	char *name;  /* "provider/model" as written */
	char *model; /* the provider's model name */
	const struct hf_conf_provider *provider; /* borrowed from the conf */
	struct hf_conf_call call;		 /* provider's with overrides */
};

struct hf_conf_route {
	char *name;			/* model name that clients ask for */
	struct hf_conf_target **target; /* in order; borrowed from conf */
	unsigned n_target;
	int deadline_ms;	  /* one per turn, shared by all attempts */
	int failback;		  /* enum hf_conf_failback */
	int failback_after_ms;	  /* HEALTH: of a preferred target */
	int max_retries;	  /* waits when no target is left; <= 5 */
	int backoff_unit_ms;	  /* the "1" of 2^a + U(0,1); 1000 */
	int backoff_cap_ms;	  /* 30000 */
	int failover_payload;	  /* enum hf_conf_payload */
	int continuation;	  /* enum hf_conf_continuation */
	char *continuation_text;  /* never empty */
	int release;		  /* enum hf_conf_release */
	int on_disconnect;	  /* enum hf_conf_disconnect */
	int heartbeat_ms;	  /* of stream clients; 0: none */
	int reported_model;	  /* enum hf_conf_reported_model */
	int hedge_budget_percent; /* of recent turns; 0: no hedges */
	char *last_resort_text;	  /* NULL: none */
	char *last_resort_tool;	  /* a function's name, NULL: none */
	/* enum hf_action; DEFAULT: as the table of classes says */
	unsigned char on_error[HF_N_CLASS];
};

struct hf_conf_tenant {
	char *name;
	char *description;
};

struct hf_conf {
	struct hf_conf_gateway gateway;
	struct hf_conf_provider *provider;
	unsigned n_provider;
	struct hf_conf_target *target; /* every target of any route */
	unsigned n_target;
	struct hf_conf_route *route;
	unsigned n_route;
	struct hf_conf_tenant *tenant;
	unsigned n_tenant;
};

/* Parse and check a file.  On failure *out is NULL and the error text reads
 * "FILE:LINE: KEY: what was expected" (HF_ECONFIG). */
int hf_conf_load(
    const char *path, struct hf_conf **out, struct hf_error *e) HF_MUST_CHECK;
/* The same from memory; 'name' stands for the file in messages. */
int hf_conf_parse(const char *name, const char *text, struct hf_conf **out,
    struct hf_error *e) HF_MUST_CHECK;
/* Only the gateway block is checked and filled, and no secret is read: for
 * programs that want to find the daemon, not be it. */
int hf_conf_load_gateway(
    const char *path, struct hf_conf **out, struct hf_error *e) HF_MUST_CHECK;
void hf_conf_free(struct hf_conf *c);
const struct hf_conf_route *hf_conf_route(
    const struct hf_conf *c, struct hf_str model);

#endif
