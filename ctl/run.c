/*
 * From a command to its result: find the socket, ask, put the data frames
 * together as one document, print it.
 */
#include <config.h>

#include "ctl/ctl.h"

#include <stdio.h>
#include <unistd.h>

#include "base/conf.h"
#include "ctl/client.h"
#include "ctl/escape.h"
#include "ctl/render.h"

#define DEFAULT_CONFIG	HF_SYSCONFDIR "/holdfast/holdfast.conf"
#define DEFAULT_SOCKET	HF_RUNSTATEDIR "/holdfast/control.sock"

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
		config = DEFAULT_CONFIG;
		if (access(config, F_OK) != 0) {
			snprintf(out, size, "%s", DEFAULT_SOCKET);
			return 0;
		}
	}
	if (hf_conf_load_gateway(config, &conf, &e) != 0)
		return hf_ctl_fault(fault, HF_CTL_CONFIG, "%s (-s SOCKET "
		    "does without the configuration)", e.text);
	snprintf(out, size, "%s", conf->gateway.control);
	hf_conf_free(conf);
	return 0;
}

static int
set_string(json_t *args, const char *name, const char *value)
{
	return value == NULL ? 0 :
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
	if ((ctl->given & HF_CTL_LIMIT) != 0)
		rc |= json_object_set_new(args, "limit",
		    json_integer(ctl->limit));
	if ((ctl->given & HF_CTL_CONTENTS) != 0)
		rc |= json_object_set_new(args, "contents", json_true());
	if ((ctl->given & HF_CTL_ATTEMPTS) != 0)
		rc |= json_object_set_new(args, "attempts", json_true());
	if (rc != 0) {
		json_decref(args);
		return NULL;
	}
	return args;
}

/* --- data frames into one document -------------------------------------- */

struct gather {
	enum hf_ctl_doc	 kind;
	bool		 contents;	/* were asked for */
	json_t		*doc;
};

static json_t *
empty_document(enum hf_ctl_doc kind)
{
	switch (kind) {
	case HF_CTL_DOC_SESSIONS:
	case HF_CTL_DOC_KEYS:
		return json_array();
	case HF_CTL_DOC_SESSION:
		return json_pack("{s:n, s:[], s:[], s:[]}", "session",
		    "turns", "items", "attempts");
	case HF_CTL_DOC_STATUS:
	case HF_CTL_DOC_KEY:
		break;
	}
	return json_object();
}

static int
add_to_session(json_t *doc, json_t *data, bool contents)
{
	static const struct { const char *member, *list; } lists[] = {
		{ "turn", "turns" }, { "item", "items" },
		{ "attempt", "attempts" },
	};
	json_t *v = json_object_get(data, "session");

	if (json_is_object(v))
		return json_object_set(doc, "session", v);
	for (size_t i = 0; i < hf_countof(lists); i++) {
		v = json_object_get(data, lists[i].member);
		if (!json_is_object(v))
			continue;
		if (!contents) {
			/* Whatever the daemon thinks. */
			json_object_del(v, "body");
			json_object_del(v, "heard");
		}
		return json_array_append(json_object_get(doc, lists[i].list),
		    v);
	}
	return 0;	/* a later daemon may tell more: not for us */
}

static int
on_data(void *arg, json_t *data)
{
	struct gather *g = arg;
	json_t *v;

	switch (g->kind) {
	case HF_CTL_DOC_STATUS:
		v = json_object_get(data, "status");
		return json_object_update(g->doc,
		    json_is_object(v) ? v : data);
	case HF_CTL_DOC_SESSIONS:
		v = json_object_get(data, "session");
		return json_is_object(v) ? json_array_append(g->doc, v) : -1;
	case HF_CTL_DOC_KEYS:
		v = json_object_get(data, "key");
		return json_is_object(v) ? json_array_append(g->doc, v) : -1;
	case HF_CTL_DOC_KEY:
		v = json_object_get(data, "key");
		return json_is_object(v) ? json_object_update(g->doc, v) : -1;
	case HF_CTL_DOC_SESSION:
		return add_to_session(g->doc, data, g->contents);
	}
	return -1;
}

/* Did the reply hold what was asked for? */
static bool
is_whole(const struct gather *g)
{
	switch (g->kind) {
	case HF_CTL_DOC_STATUS:
	case HF_CTL_DOC_KEY:
		return json_object_size(g->doc) > 0;
	case HF_CTL_DOC_SESSION:
		return json_is_object(json_object_get(g->doc, "session"));
	case HF_CTL_DOC_SESSIONS:
	case HF_CTL_DOC_KEYS:
		break;
	}
	return true;
}

/* --- the whole ----------------------------------------------------------- */

static int
report(const struct hf_ctl_fault *fault)
{
	struct hf_buf b;

	hf_buf_init(&b, 4096);
	hf_ctl_escape(&b, hf_str(fault->text));
	fprintf(stderr, "holdfastctl: %s\n", hf_buf_ok(&b) && b.size > 0 ?
	    b.data : "error");
	hf_buf_free(&b);
	return fault->exit;
}

static int
print(const struct hf_ctl *ctl, const struct gather *g)
{
	if (hf_ctl_render(ctl, g->kind, g->doc, stdout) != 0 ||
	    fflush(stdout) != 0 || ferror(stdout)) {
		fprintf(stderr, "holdfastctl: cannot write the result\n");
		return HF_CTL_NOTHING;
	}
	if (!json_is_array(g->doc) || json_array_size(g->doc) > 0)
		return HF_CTL_OK;
	if (!ctl->quiet && !ctl->json)
		fprintf(stderr, "holdfastctl: none\n");
	return HF_CTL_NOTHING;
}

int
hf_ctl_run(const struct hf_ctl *ctl)
{
	struct gather g = { .kind = ctl->command->doc,
	    .contents = (ctl->given & HF_CTL_CONTENTS) != 0 };
	struct hf_ctl_fault fault = { .exit = HF_CTL_NOTHING };
	json_t *args = NULL;
	char path[4096];
	int rc = find_socket(ctl, path, sizeof(path), &fault);

	if (rc != 0)
		return report(&fault);
	g.doc = empty_document(g.kind);
	args = make_args(ctl);
	if (args == NULL)
		rc = hf_ctl_fault(&fault, HF_CTL_USAGE,
		    "an argument is not UTF-8");
	if (rc == 0)
		rc = hf_ctl_call(path, ctl->timeout_ms, ctl->command->verb,
		    args, on_data, &g, &fault);
	if (rc == 0 && !is_whole(&g))
		rc = hf_ctl_fault(&fault, HF_CTL_UNREACHABLE,
		    "the daemon's answer lacks what was asked for");
	rc = rc == 0 ? print(ctl, &g) : report(&fault);
	json_decref(args);
	json_decref(g.doc);
	return rc;
}
