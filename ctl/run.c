/*
 * From a command to its result: find the socket, ask (or look for oneself),
 * and print the document that the answer makes.
 */
#include <config.h>

#include "ctl/ctl.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/conf.h"
#include "ctl/client.h"
#include "ctl/escape.h"
#include "ctl/gather.h"
#include "ctl/local.h"
#include "ctl/render.h"

#define DEFAULT_SOCKET HF_RUNSTATEDIR "/holdfast/control.sock"
#define TIMEOUT_MS 10000 /* of silence */
#define RELOAD_MS 120000 /* new workers start, which takes a while */
#define TEST_MS 90000	 /* longer than any test of a target */

/* The socket's path into 'out': as given, as the configuration says, or
 * where it is when nothing says so. */
static int
find_socket(const struct hf_ctl *ctl, char *out, size_t size,
    struct hf_ctl_fault *fault)
{
	const char *config = ctl->config;
	struct hf_conf *conf = NULL;
	struct hf_error e = { 0 };

	if (ctl->socket != NULL) {
		snprintf(out, size, "%s", ctl->socket);
		return 0;
	}
	if (config == NULL) {
		config = HF_CTL_CONFIG;
		if (access(config, F_OK) != 0) {
			snprintf(out, size, "%s", DEFAULT_SOCKET);
			return 0;
		}
	}
	if (hf_conf_load_gateway(config, &conf, &e) != 0)
		return hf_ctl_fault(fault, HF_EXIT_CONFIG,
		    "%s (-s SOCKET "
		    "does without the configuration)",
		    e.text);
	snprintf(out, size, "%s", conf->gateway.control);
	hf_conf_free(conf);
	return 0;
}

static int
set_string(json_t *args, const char *name, const char *value)
{
	return value == NULL ?
	    0 :
	    json_object_set_new(args, name, json_string(value));
}

static json_t *
make_args(const struct hf_ctl *ctl)
{
	json_t *args = json_object();
	int rc = set_string(args, "tenant", ctl->tenant);

	rc |= set_string(args, "label", ctl->label);
	rc |= set_string(args, "before", ctl->before);
	if (ctl->command->operand != NULL)
		rc |= set_string(args, ctl->command->operand, ctl->operand);
	if (ctl->command->second != NULL)
		rc |= set_string(args, ctl->command->second, ctl->second);
	if ((ctl->given & HF_CTL_LIMIT) != 0)
		rc |= json_object_set_new(
		    args, "limit", json_integer(ctl->limit));
	if ((ctl->given & HF_CTL_SINCE) != 0)
		rc |= json_object_set_new(
		    args, "since_s", json_integer(ctl->since_s));
	if ((ctl->given & HF_CTL_FOR) != 0)
		rc |= json_object_set_new(
		    args, "for_s", json_integer(ctl->for_s));
	if ((ctl->given & HF_CTL_CONTENTS) != 0)
		rc |= json_object_set_new(args, "contents", json_true());
	if ((ctl->given & HF_CTL_ATTEMPTS) != 0)
		rc |= json_object_set_new(args, "attempts", json_true());
	if ((ctl->given & HF_CTL_ALL) != 0)
		rc |= json_object_set_new(args, "all", json_true());
	if ((ctl->given & HF_CTL_WAIT) != 0)
		rc |= json_object_set_new(args, "wait", json_true());
	if (rc != 0) {
		json_decref(args);
		return NULL;
	}
	return args;
}

/* --- the whole ----------------------------------------------------------- */

static int
report(const struct hf_ctl_fault *fault)
{
	struct hf_buf b;

	hf_buf_init(&b, 4096);
	hf_ctl_escape(&b, hf_str(fault->text));
	fprintf(stderr, "holdfastctl: %s\n",
	    hf_buf_ok(&b) && b.size > 0 ? b.data : "error");
	hf_buf_free(&b);
	return fault->exit;
}

static int
print(const struct hf_ctl *ctl, const struct hf_gather *g)
{
	if (hf_ctl_render(ctl, g->kind, g->doc, stdout) != 0 ||
	    fflush(stdout) != 0 || ferror(stdout)) {
		fprintf(stderr, "holdfastctl: cannot write the result\n");
		return HF_EXIT_FAILED;
	}
	if (json_is_array(g->doc) && json_array_size(g->doc) == 0 &&
	    !ctl->quiet && !ctl->json)
		fprintf(stderr, "holdfastctl: none\n");
	return hf_gather_verdict(g);
}

static int
timeout_of(const struct hf_ctl *ctl)
{
	if (ctl->timeout_ms != 0)
		return ctl->timeout_ms;
	if (ctl->wait_s != 0)
		return (int)ctl->wait_s * 1000;
	if (ctl->command->doc == HF_CTL_DOC_TESTS)
		return TEST_MS;
	return ctl->command->doc == HF_CTL_DOC_RELOAD ? RELOAD_MS : TIMEOUT_MS;
}

static int
ask(const struct hf_ctl *ctl, struct hf_gather *g, struct hf_ctl_fault *fault)
{
	json_t *args = make_args(ctl);
	char path[4096];
	int rc = find_socket(ctl, path, sizeof(path), fault);

	if (rc == 0 && args == NULL)
		rc = hf_ctl_fault(
		    fault, HF_EXIT_USAGE, "an argument is not UTF-8");
	if (rc == 0)
		rc = hf_ctl_call(path, timeout_of(ctl), ctl->command->verb,
		    args, hf_gather_data, g, fault);
	if (rc != 0 && fault->exit == HF_EXIT_TIMEOUT && ctl->wait_s != 0)
		hf_ctl_fault(fault, HF_EXIT_TIMEOUT,
		    "turns are still under "
		    "way after %d s",
		    (int)ctl->wait_s);
	json_decref(args);
	return rc;
}

static int
add_check(struct hf_gather *g, const char *name, bool ok, const char *text)
{
	json_t *data = json_pack("{s:{s:s, s:b, s:s}}", "check", "name", name,
	    "ok", ok, "text", text);
	int rc = data == NULL ? -1 : hf_gather_data(g, data);

	json_decref(data);
	return rc;
}

/* What this side of the socket can tell: is somebody there at all, and is it
 * of the same version?  A daemon that cannot be asked is a failed check. */
static int
check(const struct hf_ctl *ctl, struct hf_gather *g, struct hf_ctl_fault *fault)
{
	const char *version;
	char text[HF_CTL_TEXT];
	json_t *d;
	int rc = ask(ctl, g, fault);

	if (rc != 0 &&
	    (fault->exit == HF_EXIT_USAGE || fault->exit == HF_EXIT_CONFIG))
		return rc;
	if (rc != 0)
		return add_check(g, "daemon", false, fault->text);
	d = json_object_get(g->doc, "daemon");
	version = json_string_value(json_object_get(d, "version"));
	if (version == NULL)
		return add_check(g, "daemon", false,
		    "it does not say which "
		    "version it is");
	snprintf(text, sizeof(text),
	    "daemon %s (pid %d), holdfastctl " PACKAGE_VERSION, version,
	    (int)json_integer_value(json_object_get(d, "pid")));
	return add_check(
	    g, "version", strcmp(version, PACKAGE_VERSION) == 0, text);
}

static int
run(const struct hf_ctl *ctl, struct hf_gather *g, struct hf_ctl_fault *fault)
{
	if (ctl->offline)
		return hf_ctl_offline(ctl, hf_gather_data, g, fault);
	switch ((int)ctl->command->doc) {
	case HF_CTL_DOC_CHECK:
		return check(ctl, g, fault);
	case HF_CTL_DOC_WARNINGS:
		return hf_ctl_config_check(ctl, hf_gather_data, g, fault);
	case HF_CTL_DOC_EXPLAIN:
		return hf_ctl_config_explain(ctl, hf_gather_data, g, fault);
	case HF_CTL_DOC_ERRORS:
		return hf_ctl_explain_errors(hf_gather_data, g, fault);
	default:
		return ask(ctl, g, fault);
	}
}

static int
run_once(const struct hf_ctl *ctl)
{
	struct hf_ctl_fault fault = { .exit = HF_EXIT_FAILED };
	struct hf_gather g;
	int rc;

	hf_gather_init(&g, ctl);
	rc = g.doc == NULL ?
	    hf_ctl_fault(&fault, HF_EXIT_FAILED, "out of memory") :
	    run(ctl, &g, &fault);
	if (rc == 0 && !hf_gather_whole(&g))
		rc = hf_ctl_fault(&fault, HF_EXIT_UNREACHABLE,
		    "the daemon's answer lacks what was asked for");
	rc = rc == 0 ? print(ctl, &g) : report(&fault);
	json_decref(g.doc);
	return rc;
}

int
hf_ctl_run(const struct hf_ctl *ctl)
{
	const struct timespec pause = { .tv_sec = ctl->watch_s };
	bool clear = isatty(STDOUT_FILENO) != 0 && !ctl->json;
	int rc;

	if (ctl->watch_s == 0)
		return run_once(ctl);
	do {
		if (clear)
			fputs("\033[H\033[2J", stdout);
		rc = run_once(ctl);
		/* An empty list may fill; the rest does not mend itself. */
	} while (rc <= HF_EXIT_FAILED && !ferror(stdout) &&
	    nanosleep(&pause, NULL) == 0);
	return rc;
}
