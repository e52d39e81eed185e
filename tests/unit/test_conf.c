/*
 * The configuration: what is accepted and what it becomes, and for what is
 * refused the message with its line.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/conf.h"
#include "base/conf_show.h"
#include "base/log.h"
#include "base/params.h"

static char dir[] = "/tmp/hf-test-conf-XXXXXX";

/* A private path; valid until the next call. */
static const char *
path_of(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void
write_file(const char *name, const void *data, size_t size, mode_t mode)
{
	FILE *f = fopen(path_of(name), "w");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, size, f), size);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path_of(name), mode), 0);
}

static struct hf_conf *
good(const char *text)
{
	struct hf_conf *c = NULL;
	struct hf_error e = { 0 };

	if (hf_conf_parse("t.conf", text, &c, &e) != 0)
		fail_msg("refused: %s", e.text);
	assert_non_null(c);
	return c;
}

static void
bad(const char *text, const char *expected)
{
	struct hf_conf *c = NULL;
	struct hf_error e = { 0 };

	if (hf_conf_parse("t.conf", text, &c, &e) == 0)
		fail_msg("accepted: %s", text);
	assert_null(c);
	assert_int_equal(e.code, HF_ECONFIG);
	if (strcmp(e.text, expected) != 0)
		fail_msg(
		    "text: %s\nsays: %s\nnot:  %s", text, e.text, expected);
}

#define PROVIDER "provider p { dialect = openai base_url = http://h }\n"

static void
test_defaults(void **state)
{
	struct hf_conf *c = good("");
	const struct hf_conf_gateway *g = &c->gateway;

	(void)state;
	assert_int_equal(g->n_listen, 1);
	assert_string_equal(g->listen[0], "127.0.0.1:8080");
	assert_string_equal(
	    g->database, HF_LOCALSTATEDIR "/lib/holdfast/holdfast.db");
	assert_string_equal(g->master_key_file,
	    HF_LOCALSTATEDIR "/lib/holdfast/holdfast.db.key");
	assert_null(g->master_key_credential);
	assert_string_equal(
	    g->control, HF_RUNSTATEDIR "/holdfast/control.sock");
	assert_int_equal(g->workers, 0);
	assert_int_equal(g->synchronous, HF_SYNC_FULL);
	assert_int_equal(g->stateless, HF_STATELESS_MEMORY);
	assert_int_equal(g->handover, HF_HANDOVER_AUTO);
	assert_int_equal(g->flush_ms, 100);
	assert_int_equal(g->body_soft, 16 * 1024 * 1024);
	assert_int_equal(g->body_hard, 64 * 1024 * 1024);
	assert_int_equal(g->header_timeout_ms, 10000);
	assert_int_equal(g->body_timeout_ms, 30000);
	assert_int_equal(g->keepalive_timeout_ms, 75000);
	assert_int_equal(g->drain_ms, 30000);
	assert_int_equal(g->log_level, HF_LOG_INFO);
	assert_int_equal(
	    c->n_provider + c->n_route + c->n_target + c->n_tenant, 0);
	hf_conf_free(c);
}

static void
test_whole(void **state)
{
	struct hf_conf *c;
	const struct hf_conf_route *r;

	(void)state;
	c = good("# comment { \" '\n"
		 "gateway { // another }\n"
		 "  listen = {127.0.0.1:8080, \"[::1]:0\"}\n"
		 "  listen += {10.0.0.1:80}\r\n"
		 "  database = /a/b.db  control = /a/c.sock workers = 3\n"
		 "  synchronous = normal stateless = keep body_soft = 1K\n"
		 "  body_hard = 2M log_level = debug /* not\n the end */\n"
		 "}\n"
		 "provider openai { dialect = openai\n"
		 "  base_url = \"https://api.openai.com/v1//\" }\n"
		 "provider claude { dialect = anthropic total_ms = 5000\n"
		 "  base_url = https://api.anthropic.com/v1\n"
		 "  max_output_tokens = 99 }\n"
		 "target \"openai/a/b\" { first_token_ms = 0\n"
		 "  upstream_stream = client }\n"
		 "route \"gpt 4\" { targets = {openai/a/b, \"claude/c\"}\n"
		 "  deadline_ms = 7 max_retries = 0\n"
		 "  failover_payload = last_user_message }\n"
		 "route other { targets = claude/c }\n"
		 "tenant acme { description = \"Äcme ${HF_T:-x}\" }\n");
	assert_int_equal(c->gateway.n_listen, 3);
	assert_string_equal(c->gateway.listen[2], "10.0.0.1:80");
	assert_int_equal(c->gateway.workers, 3);
	assert_int_equal(c->gateway.synchronous, HF_SYNC_NORMAL);
	assert_int_equal(c->gateway.stateless, HF_STATELESS_KEEP);
	assert_int_equal(c->gateway.body_soft, 1024);
	assert_int_equal(c->gateway.body_hard, 2 << 20);
	assert_int_equal(c->gateway.log_level, HF_LOG_DEBUG);
	assert_string_equal(c->gateway.master_key_file, "/a/b.db.key");

	assert_int_equal(c->n_provider, 2);
	assert_string_equal(
	    c->provider[0].base_url, "https://api.openai.com/v1");
	assert_null(c->provider[0].api_key);
	assert_null(c->provider[0].api_version);
	assert_int_equal(c->provider[1].dialect, HF_DIALECT_ANTHROPIC);
	assert_string_equal(c->provider[1].api_version, "2023-06-01");

	assert_int_equal(c->n_target, 2);
	assert_string_equal(c->target[0].name, "openai/a/b");
	assert_string_equal(c->target[0].model, "a/b");
	assert_ptr_equal(c->target[0].provider, &c->provider[0]);
	assert_int_equal(c->target[0].call.first_token_ms, 0);
	assert_int_equal(c->target[0].call.upstream_stream, HF_STREAM_CLIENT);
	assert_int_equal(c->target[0].call.connect_ms, 2000);
	assert_int_equal(c->target[0].call.total_ms, 110000);
	assert_int_equal(c->target[1].call.total_ms, 5000);
	assert_int_equal(c->target[1].call.max_output_tokens, 99);
	assert_int_equal(c->target[1].call.upstream_stream, HF_STREAM_ALWAYS);

	r = hf_conf_route(c, HF_STR("gpt 4"));
	assert_non_null(r);
	assert_int_equal(r->n_target, 2);
	assert_ptr_equal(r->target[1], &c->target[1]);
	assert_int_equal(r->deadline_ms, 7);
	assert_int_equal(r->max_retries, 0);
	assert_int_equal(r->failover_payload, HF_PAYLOAD_LAST_USER);
	r = hf_conf_route(c, HF_STR("other"));
	assert_non_null(r);
	assert_ptr_equal(r->target[0], &c->target[1]);
	assert_int_equal(r->backoff_unit_ms, 1000);
	assert_int_equal(r->backoff_cap_ms, 30000);
	assert_int_equal(r->failover_payload, HF_PAYLOAD_FULL);
	assert_null(hf_conf_route(c, HF_STR("gpt")));

	assert_string_equal(c->tenant[0].name, "acme");
	assert_string_equal(c->tenant[0].description, "Äcme x");
	hf_conf_free(c);
}

static void
test_variables(void **state)
{
	struct hf_conf *c;

	(void)state;
	assert_int_equal(setenv("HF_TEST_DB", "/v/x.db", 1), 0);
	unsetenv("HF_TEST_NO");
	c = good("gateway { database = ${HF_TEST_DB}\n"
		 "control = \"${HF_TEST_NO:-/run}/c\"\n"
		 "master_key_file = '/${HF_TEST_NO}' }\n");
	assert_string_equal(c->gateway.database, "/v/x.db");
	assert_string_equal(c->gateway.control, "/run/c");
	assert_string_equal(c->gateway.master_key_file, "/${HF_TEST_NO}");
	hf_conf_free(c);
	bad("gateway {\n database = \"${HF_TEST_NO}\"\n}",
	    "t.conf:2: environment variable HF_TEST_NO is not set; set it or "
	    "write ${HF_TEST_NO:-default}");
	bad("gateway { database = \"\\\\${HF_TEST_NO}\"\n}",
	    "t.conf:1: environment variable HF_TEST_NO is not set; set it or "
	    "write ${HF_TEST_NO:-default}");
	bad("gateway { control = /a${HF_TEST_DB} }",
	    "t.conf:1: ${} within a word; expected the whole value in double "
	    "quotes");
	bad("gateway { control = \"${HF_TEST_DB\" }",
	    "t.conf:1: ${ does not end; expected }");
}

static void
test_syntax(void **state)
{
	(void)state;
	bad("# one\n// two\n/* three\nfour */ gateway {\n  workers 3\n}\n",
	    "t.conf:5: gateway: missing equal sign after option 'workers'");
	bad("gateway {\n", "t.conf:1: block is not closed; expected }");
	bad("\ngateway { listen = { a, b\n\n",
	    "t.conf:2: block is not closed; expected }");
	bad("gateway { }\n}\n", "t.conf:2: '}' without '{'");
	bad("\ngateway { database = \"/a\n\n",
	    "t.conf:2: string does not end; expected the closing quote");
	bad("\n\n/* x\n\n", "t.conf:3: comment does not end; expected */");
	bad("gateway { workers = }\n",
	    "t.conf:1: gateway: unexpected token '}'");
	bad("gateway { workers = \"\\999\" }\n",
	    "t.conf:1: gateway: bad escape sequence '\\999'");
	bad("provider { }\n", "t.conf:1: missing title for section 'provider'");
	bad("gateway \"x\" { }\n",
	    "t.conf:1: missing opening brace for section 'gateway'");
	bad("gateway { workers += 3 }\n",
	    "t.conf:1: gateway: attempt to "
	    "append to non-list option 'workers'");
	bad("gateway { a = \"\x01\" }\n",
	    "t.conf:1: control character in the text");
	bad("gateway { workers = 3*4 }\n", "t.conf:1: stray '*'");
	bad("gateway {}\n\"gateway=0|workers\" = 3\n",
	    "t.conf:2: a key outside of its block");
}

static void
test_unknown(void **state)
{
	(void)state;
	bad("gateway {\n # c\n wokers = 3\n}\n",
	    "t.conf:3: gateway.wokers: "
	    "unknown key; did you mean workers?");
	bad("gateway { flsuh_ms = 3 }\n",
	    "t.conf:1: gateway.flsuh_ms: "
	    "unknown key; did you mean flush_ms?");
	bad("gateway { colour = 3 }\n",
	    "t.conf:1: gateway.colour: unknown key");
	bad("\nroutes x { }\n",
	    "t.conf:2: routes: unknown block; did you mean route?");
	bad("server { }\n", "t.conf:1: server: unknown block");
	bad("tenant x { workers = 3 }\n",
	    "t.conf:1: tenant.workers: unknown key");
}

static void
test_values(void **state)
{
	(void)state;
	bad("gateway { flush_ms = 10s }",
	    "t.conf:1: gateway.flush_ms: "
	    "unusable value '10s'; expected an integer number of "
	    "milliseconds, 1 to 10000");
	bad("gateway { flush_ms = 0 }",
	    "t.conf:1: gateway.flush_ms: "
	    "unusable value '0'; expected an integer number of milliseconds, "
	    "1 to 10000");
	bad("gateway { flush_ms = 10001 }",
	    "t.conf:1: gateway.flush_ms: "
	    "unusable value '10001'; expected an integer number of "
	    "milliseconds, 1 to 10000");
	bad("gateway { workers = -1 }",
	    "t.conf:1: gateway.workers: unusable "
	    "value '-1'; expected an integer, 0 to 32");
	bad("gateway { workers = 99999999999999999999 }",
	    "t.conf:1: "
	    "gateway.workers: unusable value '99999999999999999999'; "
	    "expected an integer, 0 to 32");
	bad("gateway { workers = \"\" }",
	    "t.conf:1: gateway.workers: "
	    "unusable value; expected an integer, 0 to 32");
	bad("gateway { body_soft = 16MB }",
	    "t.conf:1: gateway.body_soft: "
	    "unusable value '16MB'; expected a number of bytes, 1024 to "
	    "1073741824, or one with K, M or G");
	bad("gateway { body_soft = 999999999999G }",
	    "t.conf:1: "
	    "gateway.body_soft: unusable value '999999999999G'; expected a "
	    "number of bytes, 1024 to 1073741824, or one with K, M or G");
	bad("gateway { synchronous = off }",
	    "t.conf:1: gateway.synchronous: "
	    "unusable value 'off'; expected full or normal");
	bad("gateway { log_level = full }",
	    "t.conf:1: gateway.log_level: "
	    "unusable value 'full'; expected error, warn, info or debug");
	bad("gateway { database = x.db }",
	    "t.conf:1: gateway.database: "
	    "unusable value 'x.db'; expected an absolute path of at most "
	    "4000 bytes");
	bad("gateway { control = "
	    "/0123456789012345678901234567890123456789012345678901234567890"
	    "123456789012345678901234567890123456789012345678 }",
	    "t.conf:1: gateway.control: unusable value; expected an absolute "
	    "path of at most 107 bytes");
	bad("gateway { workers = 1\n\n workers = 2 }",
	    "t.conf:3: gateway.workers: given twice; first in line 1");
	bad("gateway { listen = {127.0.0.1:1}\n listen = {127.0.0.1:2} }",
	    "t.conf:2: gateway.listen: given twice; first in line 1");
	bad("gateway { body_soft = 65M }",
	    "t.conf:1: gateway.body_hard: "
	    "less than body_soft; expected at least that");
	bad("gateway { master_key_file = /a\n master_key_credential = b }",
	    "t.conf:2: gateway.master_key_credential: there is a "
	    "master_key_file too; expected one of them");
	bad("gateway {}\n\ngateway {}",
	    "t.conf:3: gateway: block given twice; first in line 1");
}

static void
test_listen(void **state)
{
	static const char *const wrong[] = { "8080", "localhost:80", "::1:80",
		"[::1]", "[::1]80", "1.2.3:4", "1.2.3.4:", "1.2.3.4:65536",
		"1.2.3.4:8o", "[1.2.3.4]:80", "1.2.3.4:-1", ":80", "*:80" };
	char text[200], expected[300];

	(void)state;
	for (size_t i = 0; i < hf_countof(wrong); i++) {
		snprintf(text, sizeof(text),
		    "gateway { listen = "
		    "{1.2.3.4:65535,\n\"%s\"} }",
		    wrong[i]);
		snprintf(expected, sizeof(expected),
		    "t.conf:2: "
		    "gateway.listen: unusable address '%s'; expected a "
		    "numeric address and a port, such as 127.0.0.1:8080 or "
		    "[::1]:8080",
		    wrong[i]);
		bad(text, expected);
	}
	bad("gateway { listen = {1.2.3.4:1,\n1.2.3.4:1} }",
	    "t.conf:2: gateway.listen: the same address twice");
	hf_conf_free(good("gateway { listen = {1.2.3.4:0, 1.2.3.4:0} }"));
}

static void
test_url(void **state)
{
	static const char *const wrong[] = { "ftp://h/", "http:/h/xyz",
		"http://", "https:///v1", "http://h:/v1", "http://h:0",
		"http://h:65536/", "http://h:x", "http://h/v1?a=b",
		"http://h/v1#a", "http://u:p@h/", "http://h/a b", "http://[]/",
		"http://[::1/", "http://[::1]8", "api.openai.com/v1" };
	static const char *const right[] = { "http://h", "http://h:1/",
		"https://[::1]:8443/v1", "http://[::1]", "https://h/v1beta/x" };
	char text[200], expected[300];
	struct hf_conf *c;

	(void)state;
	for (size_t i = 0; i < hf_countof(wrong); i++) {
		snprintf(text, sizeof(text),
		    "provider p {\ndialect = openai\n"
		    "base_url = \"%s\" }",
		    wrong[i]);
		snprintf(expected, sizeof(expected),
		    "t.conf:3: "
		    "provider.base_url: unusable value%s%s%s; expected "
		    "http:// or https://, a host, and perhaps a port and a "
		    "path, no query",
		    " '", wrong[i], "'");
		bad(text, expected);
	}
	for (size_t i = 0; i < hf_countof(right); i++) {
		snprintf(text, sizeof(text),
		    "provider p { dialect = openai "
		    "base_url = \"%s\" }",
		    right[i]);
		c = good(text);
		hf_conf_free(c);
	}
}

static void
test_blocks(void **state)
{
	(void)state;
	bad("# c\nprovider p {\n base_url = http://h\n}\n",
	    "t.conf:2: provider.dialect: missing; it is required");
	bad("provider p { dialect = openai }\nroute r {\ntargets = {p/m} }\n",
	    "t.conf:1: provider.base_url: missing; it is required");
	bad(PROVIDER "\n" PROVIDER, "t.conf:3: found duplicate title 'p'");
	bad("provider \"a/b\" { }",
	    "t.conf:1: provider: unusable name; "
	    "expected at most 64 letters, digits and . _ -");
	bad("tenant \"a b\" { }",
	    "t.conf:1: tenant: unusable name; "
	    "expected at most 64 letters, digits and . _ -");
	bad(PROVIDER "route \"\" { targets = {p/m} }",
	    "t.conf:2: route: "
	    "unusable name; expected 1 to 200 printable bytes");
	bad(PROVIDER "\nroute r { }\n",
	    "t.conf:3: route.targets: missing; it is required");
	bad(PROVIDER "\nroute r { targets = {} }\n",
	    "t.conf:3: route.targets: missing; it is required");
	bad(PROVIDER "route r { targets = {p/m,\np/m} }\n",
	    "t.conf:3: route.targets: the same target twice");
	bad(PROVIDER "route r {\ntargets = {p/m, p} }\n",
	    "t.conf:3: "
	    "route.targets: unusable target; expected provider/model");
	bad(PROVIDER "route r { targets = {\"p/\"} }\n",
	    "t.conf:2: "
	    "route.targets: unusable target; expected provider/model");
	bad(PROVIDER "route r { targets = {nobody/m} }\n",
	    "t.conf:2: "
	    "route.targets: there is no provider 'nobody'; expected the name "
	    "of a provider block");
	bad(PROVIDER "route r { targets = {px/m} }\n",
	    "t.conf:2: "
	    "route.targets: there is no provider 'px'; did you mean p?");
	bad(PROVIDER "\ntarget \"p/m\" { total_ms = 5 }\n",
	    "t.conf:3: "
	    "target: no route has this target; expected one that a route "
	    "names");
	bad(PROVIDER "route r { targets = {p/m} max_retries = 6 }\n",
	    "t.conf:2: route.max_retries: unusable value '6'; expected an "
	    "integer, 0 to 5");
	bad("provider p { dialect = openai base_url = http://h\n"
	    "api_version = 1 }",
	    "t.conf:2: provider.api_version: only "
	    "dialect anthropic has one");
}

/* Deadlines of streams, and what becomes of one that breaks off. */
static void
test_streams(void **state)
{
	const struct hf_conf_call *call;
	const struct hf_conf_route *r;
	struct hf_conf *c;

	(void)state;
	c = good(PROVIDER "route r { targets = {p/m} }\n");
	call = &c->target[0].call;
	r = &c->route[0];
	assert_int_equal(call->idle_ms, 15000);
	assert_int_equal(call->min_chars_per_s, 0);
	assert_int_equal(call->rate_window_ms, 10000);
	assert_int_equal(call->prefill, HF_PREFILL_NONE);
	assert_int_equal(call->hedge_after_ms, 0);
	assert_int_equal(r->hedge_budget_percent, 10);
	assert_int_equal(r->continuation, HF_CONTINUE_INSTRUCTION);
	assert_string_equal(r->continuation_text,
	    "The previous assistant "
	    "message was cut off by a connection failure. Continue it from "
	    "exactly the point where it stops. Do not repeat, greet, "
	    "apologise or comment. Output only the remaining words.");
	assert_int_equal(r->release, HF_CONF_RELEASE_WORD);
	assert_int_equal(r->on_disconnect, HF_DISCONNECT_CANCEL);
	assert_int_equal(r->heartbeat_ms, 0);
	assert_int_equal(r->reported_model, HF_REPORT_ROUTE);
	hf_conf_free(c);

	c = good(
	    "provider p { dialect = openai base_url = http://h\n"
	    "  idle_ms = 1 min_chars_per_s = 2 rate_window_ms = 300\n"
	    "  prefill = deepseek hedge_after_ms = 400 }\n"
	    "target p/m { idle_ms = 0 prefill = partial hedge_after_ms = 7 }\n"
	    "route r { targets = {p/m, p/n} continuation = hidden\n"
	    "  continuation_text = \"Weiter, bitte: \\\"genau\\\" hier.\"\n"
	    "  release = clause on_disconnect = finish heartbeat_ms = 9\n"
	    "  reported_model = target }\n"
	    "route s { targets = {p/m} continuation = off release = token\n"
	    "  hedge_budget_percent = 100 }");
	assert_int_equal(c->target[0].call.hedge_after_ms, 7);
	assert_int_equal(c->target[1].call.hedge_after_ms, 400);
	assert_int_equal(c->route[1].hedge_budget_percent, 100);
	assert_int_equal(c->target[0].call.idle_ms, 0);
	assert_int_equal(c->target[0].call.min_chars_per_s, 2);
	assert_int_equal(c->target[0].call.rate_window_ms, 300);
	assert_int_equal(c->target[0].call.prefill, HF_PREFILL_PARTIAL);
	assert_int_equal(c->target[1].call.idle_ms, 1);
	assert_int_equal(c->target[1].call.prefill, HF_PREFILL_DEEPSEEK);
	r = &c->route[0];
	assert_int_equal(r->continuation, HF_CONTINUE_HIDDEN);
	assert_string_equal(
	    r->continuation_text, "Weiter, bitte: \"genau\" hier.");
	assert_int_equal(r->release, HF_CONF_RELEASE_CLAUSE);
	assert_int_equal(r->on_disconnect, HF_DISCONNECT_FINISH);
	assert_int_equal(r->heartbeat_ms, 9);
	assert_int_equal(r->reported_model, HF_REPORT_TARGET);
	assert_int_equal(c->route[1].continuation, HF_CONTINUE_OFF);
	assert_int_equal(c->route[1].release, HF_CONF_RELEASE_TOKEN);
	hf_conf_free(c);
}

#define CLAUDE "provider c { dialect = anthropic base_url = http://h\n"

static void
test_streams_refused(void **state)
{
	static const char *const ways[] = { "none", "plain", "vllm", "mistral",
		"deepseek", "partial" };
	char text[300], expected[200], *route;
	struct hf_conf *c;

	(void)state;
	/* Each way for each dialect, in the provider and in a target. */
	for (int i = 0; i < (int)hf_countof(ways); i++) {
		snprintf(text, sizeof(text),
		    PROVIDER "target p/m { prefill "
			     "= %s }\nroute r { targets = {p/m} }",
		    ways[i]);
		c = good(text);
		assert_int_equal(c->target[0].call.prefill, i);
		hf_conf_free(c);
		for (int in_target = 0; in_target < 2; in_target++) {
			snprintf(text, sizeof(text),
			    CLAUDE "%sprefill = %s }\n"
				   "route r { targets = {c/m} }",
			    in_target ? "}\ntarget c/m { " : "\n", ways[i]);
			snprintf(expected, sizeof(expected),
			    "t.conf:3: "
			    "%s.prefill: not for dialect anthropic; expected "
			    "none or plain",
			    in_target ? "target" : "provider");
			if (i > HF_PREFILL_PLAIN) {
				bad(text, expected);
				continue;
			}
			c = good(text);
			assert_int_equal(c->target[0].call.prefill, i);
			hf_conf_free(c);
		}
	}
	bad(PROVIDER "target p/m { prefill = yes }\n"
		     "route r { targets = {p/m} }",
	    "t.conf:2: target.prefill: "
	    "unusable value 'yes'; expected none, plain, vllm, mistral, "
	    "deepseek or partial");
	bad(PROVIDER
	    "route r { targets = {p/m}\non_error = {\"capacity=next\",\n"
	    "\"capacty=end\"} }",
	    "t.conf:4: route.on_error: no error class; expected caller, "
	    "policy, "
	    "context, auth, capacity, provider, network or gateway, and =");
	bad(PROVIDER "route r { targets = {p/m}\non_error = {capacity} }",
	    "t.conf:3: route.on_error: no error class; expected caller, "
	    "policy, "
	    "context, auth, capacity, provider, network or gateway, and =");
	bad(PROVIDER
	    "route r { targets = {p/m}\non_error = {\"policy=first\"} }",
	    "t.conf:3: route.on_error: unusable action; expected end, next or "
	    "retry after the =");
	bad(PROVIDER "route r { targets = {p/m}\n"
		     "on_error = {\"auth=end\", \"auth=end\"} }",
	    "t.conf:3: route.on_error: the same error class twice");
	bad(PROVIDER "route r { targets = {p/m}\nrelease = words }",
	    "t.conf:3: route.release: unusable value 'words'; expected word, "
	    "token or clause");
	bad(PROVIDER "route r { targets = {p/m}\nhedge_budget_percent = 101 }",
	    "t.conf:3: route.hedge_budget_percent: unusable value '101'; "
	    "expected an integer, 0 to 100");
	bad(PROVIDER "route r { targets = {p/m}\ncontinuation_text = \"\" }",
	    "t.conf:3: route.continuation_text: unusable value; expected "
	    "printable text of 1 to 2000 bytes");
	route = malloc(4000);
	assert_non_null(route);
	for (int n = 2000; n <= 2001; n++) {
		snprintf(route, 4000,
		    PROVIDER "route r { targets = {p/m}\n"
			     "continuation_text = \"%0*d\" }",
		    n, 0);
		if (n == 2000)
			hf_conf_free(good(route));
		else
			bad(route,
			    "t.conf:3: route.continuation_text: "
			    "unusable value; expected printable text of 1 to "
			    "2000 bytes");
	}
	free(route);
	bad(PROVIDER "route r { targets = {p/m}\nrate_window_ms = 9 }",
	    "t.conf:3: route.rate_window_ms: unknown key");
	bad("provider p { dialect = openai base_url = http://h\n"
	    "rate_window_ms = 99 }",
	    "t.conf:2: provider.rate_window_ms: "
	    "unusable value '99'; expected an integer number of "
	    "milliseconds, 100 to 600000");
}

/* --- what is in force, and what is hardly meant --------------------------- */

struct seen {
	const char *block, *title, *key, *value;
	int line;
	unsigned n; /* that were like this */
	unsigned all;
};

static int
see_setting(void *arg, const struct hf_conf_setting *s)
{
	struct seen *w = arg;

	w->all++;
	if (strcmp(s->param->block, w->block) == 0 &&
	    strcmp(s->title, w->title) == 0 &&
	    strcmp(s->param->key, w->key) == 0 &&
	    strcmp(s->value, w->value) == 0 && s->line == w->line)
		w->n++;
	return 0;
}

static void
in_force(const char *text, const char *block, const char *title,
    const char *key, const char *value, int line)
{
	struct seen w = { block, title, key, value, line, 0, 0 };
	struct hf_error e = { 0 };

	assert_int_equal(
	    hf_conf_settings("t.conf", text, see_setting, &w, &e), 0);
	if (w.n != 1)
		fail_msg("%s %s.%s = %s (line %d): %u times", block, title, key,
		    value, line, w.n);
}

static void
test_settings(void **state)
{
	static const char text[] =
	    "gateway {\n database = /d\n}\n"
	    "provider a {\n dialect = anthropic\n base_url = http://h\n"
	    " api_key_env = NOT_SET_ANYWHERE\n total_ms = 7 }\n"
	    "route r { targets = {\n\"a/x\",\n\"a/y\" } }\n"
	    "target a/x { total_ms = 9 }\n";
	struct seen w = { "", "", "", "", 0, 0, 0 };
	struct hf_error e = { 0 };

	(void)state;
	in_force(text, "gateway", "", "database", "/d", 2);
	in_force(text, "gateway", "", "master_key_file", "/d.key", 0);
	in_force(text, "gateway", "", "workers", "0", 0);
	in_force(text, "provider", "a", "api_version", "2023-06-01", 0);
	in_force(text, "provider", "a", "api_key_env", "NOT_SET_ANYWHERE", 7);
	in_force(text, "provider", "a", "total_ms", "7", 8);
	in_force(text, "route", "r", "targets", "a/x", 10);
	in_force(text, "route", "r", "targets", "a/y", 11);
	in_force(text, "target", "a/x", "total_ms", "9", 12);
	in_force("", "gateway", "", "drain_ms", "30000", 0);
	assert_int_equal(
	    hf_conf_settings("t.conf", "gateway {", see_setting, &w, &e),
	    HF_ECONFIG);
	assert_int_equal(w.all, 0);
}

static void
collect(void *arg, int line, const char *what)
{
	hf_buf_printf(arg, "%d %s\n", line, what);
}

/* All warnings of a text, one a line. */
static void
warned(const char *text, const char *want)
{
	struct hf_error e = { 0 };
	struct hf_buf b;

	hf_buf_init(&b, 10000);
	assert_int_equal(hf_conf_warnings("t.conf", text, collect, &b, &e), 0);
	hf_buf_putc(&b, '\0');
	assert_string_equal(b.data, want);
	hf_buf_free(&b);
}

static void
test_warnings(void **state)
{
	static const char two[] = "provider p { dialect = openai\n"
				  "base_url = http://127.0.0.1:1 }\n"
				  "route r {\n targets = {p/m, p/n}\n }\n";

	(void)state;
	warned(two, "");
	warned("", "0 there is no route: every request will be refused\n");
	warned("gateway {\nlisten = {\"127.0.0.1:1\", \"[::1]:1\"}\n}\n"
	       "provider p { dialect = openai\nbase_url = http://localhost }\n"
	       "route r {\n targets = {p/m, p/n}\n }\n",
	    "");
	warned(
	    "provider p { dialect = openai\nbase_url = http://localhost.x "
	    "}\nprovider q { dialect = openai base_url = https://h }\n"
	    "route r { targets = {p/m}\nfailover_payload = last_user_message\n"
	    "deadline_ms = 50 }\ntarget p/m {\nfirst_token_ms = 60\n"
	    "total_ms = 60 }\n",
	    "2 provider p: conversations go to another machine without TLS\n"
	    "3 provider q: no route has a target of it\n"
	    "3 provider q: there is no api_key_file, api_key_env or "
	    "api_key_credential\n"
	    "8 target p/m: first_token_ms (60) is not below total_ms (60), "
	    "which ends the attempt before\n"
	    "4 route r: there is one target, so nothing to fail over to\n"
	    "6 route r: an attempt of p/m may take 60 ms, the whole turn only "
	    "50 ms\n"
	    "5 route r: later targets are not told the conversation; this is "
	    "for measurements\n");
	warned("provider p { dialect = openai\nbase_url = http://localhost\n"
	       "first_token_ms = 400\nhedge_after_ms = 399 }\n"
	       "route r { targets = {p/m, p/n} }\n"
	       "target p/m {\nhedge_after_ms = 400 }\n",
	    "7 target p/m: hedge_after_ms (400) is not below first_token_ms "
	    "(400), which ends the attempt before\n");
}

/* A route may stand before the provider that it names. */
static void
test_order(void **state)
{
	struct hf_conf *c = good("target p/m { total_ms = 5 }\n"
				 "route r { targets = {p/m} }\n" PROVIDER);

	(void)state;
	assert_int_equal(c->route[0].target[0]->call.total_ms, 5);
	assert_ptr_equal(c->route[0].target[0]->provider, &c->provider[0]);
	hf_conf_free(c);
}

static struct hf_conf *
with_key(const char *key, const char *value, struct hf_error *e)
{
	struct hf_conf *c = NULL;
	char text[600];

	snprintf(text, sizeof(text),
	    "provider p { dialect = openai\n"
	    "base_url = http://h\n %s = \"%s\" }",
	    key, value);
	if (hf_conf_parse("t.conf", text, &c, e) != 0)
		assert_null(c);
	return c;
}

static void
key_is(const char *key, const char *value, const char *secret)
{
	struct hf_error e = { 0 };
	struct hf_conf *c = with_key(key, value, &e);

	if (c == NULL)
		fail_msg("refused: %s", e.text);
	assert_string_equal(c->provider[0].api_key, secret);
	hf_conf_free(c);
}

static void
key_fails(const char *key, const char *value, const char *says)
{
	struct hf_error e = { 0 };
	struct hf_conf *c = with_key(key, value, &e);

	assert_null(c);
	if (strncmp(e.text, "t.conf:3: provider.api_key_", 27) != 0 ||
	    strstr(e.text, says) == NULL)
		fail_msg("%s\nnot: %s", e.text, says);
}

static void
test_secrets(void **state)
{
	char big[9000];

	(void)state;
	write_file("good", "sk-1\r\n", 6, 0600);
	write_file("wide", "sk-2", 4, 0644);
	write_file("empty", "\n", 1, 0600);
	write_file("nul", "a\0b", 3, 0600);
	write_file("two", "a\nb\n", 4, 0600);
	memset(big, 'x', sizeof(big));
	write_file("big", big, sizeof(big), 0600);
	key_is("api_key_file", path_of("good"), "sk-1");
	key_is("api_key_file", path_of("wide"), "sk-2");
	key_fails("api_key_file", path_of("empty"), "the secret is empty");
	key_fails("api_key_file", path_of("nul"), "another byte");
	key_fails("api_key_file", path_of("two"), "a line break");
	key_fails("api_key_file", path_of("big"), "longer than 8191 bytes");
	key_fails("api_key_file", path_of("none"), "No such file");
	key_fails("api_key_file", dir, "not a plain file");
	assert_int_equal(mkfifo(path_of("fifo"), 0600), 0);
	key_fails("api_key_file", path_of("fifo"), "not a plain file");
	key_fails("api_key_file", "sk-mine",
	    "unusable value; expected the "
	    "absolute path of a file");

	assert_int_equal(setenv("HF_TEST_KEY", "sk-3", 1), 0);
	unsetenv("HF_TEST_NO");
	key_is("api_key_env", "HF_TEST_KEY", "sk-3");
	key_fails("api_key_env", "HF_TEST_NO", "variable is not set");
	key_fails("api_key_env", "sk-mine", "unusable value; expected");

	unsetenv("CREDENTIALS_DIRECTORY");
	key_fails("api_key_credential", "good", "CREDENTIALS_DIRECTORY");
	assert_int_equal(setenv("CREDENTIALS_DIRECTORY", dir, 1), 0);
	key_is("api_key_credential", "good", "sk-1");
	key_fails("api_key_credential", "none", "No such file");
	key_fails("api_key_credential", "../good", "unusable value");
	key_fails("api_key_credential", "..", "unusable value");
	unsetenv("CREDENTIALS_DIRECTORY");

	bad("provider p { dialect = openai base_url = http://h\n"
	    "api_key_env = HF_TEST_KEY\n\napi_key_file = /none }",
	    "t.conf:4: provider.api_key_file: there is api_key_env in line 2 "
	    "too; expected one source of the secret");
}

/* What was pasted in the wrong place must not end in a log. */
static void
test_secret_not_shown(void **state)
{
	static const char *const keys[] = { "api_key_file", "api_key_env",
		"api_key_credential" };
	struct hf_error e;

	(void)state;
	for (size_t i = 0; i < hf_countof(keys); i++) {
		memset(&e, 0, sizeof(e));
		assert_null(with_key(keys[i], "sk_5Ecret", &e));
		assert_null(strstr(e.text, "5Ecret"));
		assert_non_null(strstr(e.text, keys[i]));
	}
}

/* What holdfastctl reads: no provider, route or secret. */
static void
test_gateway_only(void **state)
{
	struct hf_conf *c = NULL;
	struct hf_error e = { 0 };
	static const char text[] = "gateway { control = /c.sock }\n"
				   "provider p { api_key_file = /none }\n";

	(void)state;
	write_file("a.conf", text, sizeof(text) - 1, 0644);
	assert_int_equal(hf_conf_load(path_of("a.conf"), &c, &e), HF_ECONFIG);
	assert_int_equal(hf_conf_load_gateway(path_of("a.conf"), &c, &e), 0);
	assert_string_equal(c->gateway.control, "/c.sock");
	assert_int_equal(c->n_provider, 0);
	hf_conf_free(c);
}

static void
test_load(void **state)
{
	struct hf_conf *c = NULL;
	struct hf_error e = { 0 };
	char expected[400];
	char *big;

	(void)state;
	write_file("a.conf", "gateway {\n workers = 2\n}\n", 25, 0644);
	assert_int_equal(hf_conf_load(path_of("a.conf"), &c, &e), 0);
	assert_int_equal(c->gateway.workers, 2);
	hf_conf_free(c);

	write_file("b.conf", "gateway {\n workers = x\n}\n", 25, 0644);
	assert_int_equal(hf_conf_load(path_of("b.conf"), &c, &e), HF_ECONFIG);
	assert_null(c);
	snprintf(expected, sizeof(expected),
	    "%s:2: gateway.workers: unusable "
	    "value 'x'; expected an integer, 0 to 32",
	    path_of("b.conf"));
	assert_string_equal(e.text, expected);

	write_file("c.conf", "gateway {\0}", 11, 0644);
	assert_int_equal(hf_conf_load(path_of("c.conf"), &c, &e), HF_ECONFIG);
	assert_non_null(strstr(e.text, "NUL"));
	assert_int_equal(hf_conf_load(path_of("d.conf"), &c, &e), HF_ECONFIG);
	assert_non_null(strstr(e.text, "No such file"));
	assert_int_equal(hf_conf_load(dir, &c, &e), HF_ECONFIG);

	big = malloc(300 * 1024);
	assert_non_null(big);
	memset(big, '\n', 300 * 1024);
	write_file("e.conf", big, 300 * 1024, 0644);
	assert_int_equal(hf_conf_load(path_of("e.conf"), &c, &e), HF_ECONFIG);
	free(big);
	hf_conf_free(NULL);
}

/* Every default stands the check of its own row, and every enum of conf.h
 * has as many choices as the table. */
static void
test_table(void **state)
{
	static const struct {
		const char *block, *key;
		int last;
	} enums[] = {
		{ "gateway", "synchronous", HF_SYNC_NORMAL },
		{ "gateway", "handover", HF_HANDOVER_OFF },
		{ "gateway", "stateless", HF_STATELESS_KEEP },
		{ "gateway", "log_level", HF_LOG_DEBUG },
		{ "provider", "dialect", HF_DIALECT_ANTHROPIC },
		{ "provider", "upstream_stream", HF_STREAM_CLIENT },
		{ "provider", "when_full", HF_FULL_NEXT },
		{ "provider", "prefill", HF_PREFILL_PARTIAL },
		{ "provider", "warm", HF_WARM_PREFILL },
		{ "target", "upstream_stream", HF_STREAM_CLIENT },
		{ "target", "when_full", HF_FULL_NEXT },
		{ "target", "prefill", HF_PREFILL_PARTIAL },
		{ "target", "warm", HF_WARM_PREFILL },
		{ "route", "failback", HF_FAILBACK_HEALTH },
		{ "route", "failover_payload", HF_PAYLOAD_LAST_USER },
		{ "route", "continuation", HF_CONTINUE_OFF },
		{ "route", "release", HF_CONF_RELEASE_CLAUSE },
		{ "route", "on_disconnect", HF_DISCONNECT_FINISH },
		{ "route", "reported_model", HF_REPORT_TARGET },
	};
	unsigned n_enum = 0;

	(void)state;
	for (unsigned i = 0; i < hf_n_params; i++) {
		const struct hf_param *p = &hf_params[i];

		assert_ptr_equal(hf_param_find(p->block, p->key), p);
		assert_true(strlen(p->prose) > 10);
		if (p->type == HF_PARAM_ENUM)
			n_enum++;
	}
	assert_int_equal(n_enum, hf_countof(enums));
	for (size_t i = 0; i < hf_countof(enums); i++) {
		const struct hf_param *p =
		    hf_param_find(enums[i].block, enums[i].key);
		int bars = 0;

		for (const char *z = p->choices; *z != '\0'; z++)
			bars += *z == '|';
		assert_int_equal(bars, enums[i].last);
	}
	assert_int_equal(
	    hf_param_choice(hf_param_find("gateway", "synchronous"), "normal"),
	    HF_SYNC_NORMAL);
	assert_int_equal(
	    hf_param_choice(hf_param_find("gateway", "synchronous"), "norm"),
	    -1);
}

static int
setup(void **state)
{
	(void)state;
	hf_log_init("test", HF_LOG_ERROR);
	return mkdtemp(dir) == NULL ? -1 : 0;
}

static int
teardown(void **state)
{
	static const char *const names[] = { "good", "wide", "empty", "nul",
		"two", "big", "fifo", "a.conf", "b.conf", "c.conf", "e.conf" };

	(void)state;
	for (size_t i = 0; i < hf_countof(names); i++)
		unlink(path_of(names[i]));
	return rmdir(dir);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_variables),
		cmocka_unit_test(test_syntax),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_listen),
		cmocka_unit_test(test_url),
		cmocka_unit_test(test_blocks),
		cmocka_unit_test(test_streams),
		cmocka_unit_test(test_streams_refused),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_secrets),
		cmocka_unit_test(test_secret_not_shown),
		cmocka_unit_test(test_gateway_only),
		cmocka_unit_test(test_settings),
		cmocka_unit_test(test_warnings),
		cmocka_unit_test(test_load),
		cmocka_unit_test(test_table),
	};

	return cmocka_run_group_tests_name("conf", tests, setup, teardown);
}
