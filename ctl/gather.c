/*
 * Data frames put together as one document.
 */
#include <config.h>

#include "ctl/gather.h"

static json_t *
empty_document(enum hf_ctl_doc kind)
{
	switch (kind) {
	case HF_CTL_DOC_SESSIONS:
	case HF_CTL_DOC_KEYS:
	case HF_CTL_DOC_LOCKS:
	case HF_CTL_DOC_TIMELINE:
	case HF_CTL_DOC_PROVIDERS:
	case HF_CTL_DOC_TESTS:
	case HF_CTL_DOC_FAILOVERS:
	case HF_CTL_DOC_FAILOVER_SUMMARY:
	case HF_CTL_DOC_EXPLAIN:
	case HF_CTL_DOC_ERRORS:
		return json_array();
	case HF_CTL_DOC_SESSION:
		return json_pack("{s:n, s:[], s:[], s:[]}", "session", "turns",
		    "items", "attempts");
	case HF_CTL_DOC_CHECK:
		return json_pack(
		    "{s:b, s:n, s:[]}", "ok", 1, "daemon", "checks");
	case HF_CTL_DOC_VERIFY:
		return json_pack("{s:[], s:n}", "findings", "verified");
	case HF_CTL_DOC_CONFIG:
		return json_pack("{s:n, s:[]}", "config", "settings");
	case HF_CTL_DOC_WARNINGS:
		return json_pack("{s:n, s:[]}", "file", "warnings");
	case HF_CTL_DOC_STATUS:
	case HF_CTL_DOC_KEY:
	case HF_CTL_DOC_PROVIDER:
	case HF_CTL_DOC_RELOAD:
	case HF_CTL_DOC_DRAIN:
		break;
	}
	return json_object();
}

void
hf_gather_init(struct hf_gather *g, const struct hf_ctl *ctl)
{
	g->kind = ctl->command->doc;
	g->contents = (ctl->given & HF_CTL_CONTENTS) != 0;
	g->doc = empty_document(g->kind);
}

/* Which members of data frames go where: into a list of the document
 * ("turns"), or in place of a member ("session"). */
struct place {
	const char *member, *to;
};

static const struct place session_places[] = {
	{ "turn", "turns" },
	{ "item", "items" },
	{ "attempt", "attempts" },
	{ "session", "session" },
	{ NULL, NULL },
};
static const struct place check_places[] = {
	{ "check", "checks" },
	{ "daemon", "daemon" },
	{ NULL, NULL },
};
static const struct place verify_places[] = {
	{ "finding", "findings" },
	{ "verified", "verified" },
	{ NULL, NULL },
};
static const struct place config_places[] = {
	{ "setting", "settings" },
	{ "config", "config" },
	{ NULL, NULL },
};
static const struct place warning_places[] = {
	{ "warning", "warnings" },
	{ "file", "file" },
	{ NULL, NULL },
};

/* A member that is not known is of a later daemon, and not for us. */
static int
put_places(json_t *doc, const struct place *places, json_t *data)
{
	for (const struct place *p = places; p->member != NULL; p++) {
		json_t *v = json_object_get(data, p->member);
		json_t *at = json_object_get(doc, p->to);

		if (v == NULL)
			continue;
		if (json_is_array(at))
			return json_is_object(v) ? json_array_append(at, v) :
						   -1;
		return json_is_object(v) || json_is_string(v) ?
		    json_object_set(doc, p->to, v) :
		    -1;
	}
	return 0;
}

/* Whatever the daemon thinks. */
static void
hide_contents(json_t *data)
{
	json_t *item = json_object_get(data, "item");

	json_object_del(item, "body");
	json_object_del(item, "heard");
}

static int
put_element(json_t *list, json_t *data, const char *member)
{
	json_t *v = json_object_get(data, member);

	return json_is_object(v) ? json_array_append(list, v) : -1;
}

static int
put_object(json_t *doc, json_t *data, const char *member)
{
	json_t *v = json_object_get(data, member);

	return json_is_object(v) ? json_object_update(doc, v) : -1;
}

static int
put_check(json_t *doc, json_t *data)
{
	json_t *v = json_object_get(data, "check");

	if (v != NULL && !json_is_true(json_object_get(v, "ok")) &&
	    json_object_set_new(doc, "ok", json_false()) != 0)
		return -1;
	return put_places(doc, check_places, data);
}

int
hf_gather_data(void *gather, json_t *data)
{
	struct hf_gather *g = gather;

	switch (g->kind) {
	case HF_CTL_DOC_STATUS:
		return json_object_get(data, "status") == NULL ?
		    json_object_update(g->doc, data) :
		    put_object(g->doc, data, "status");
	case HF_CTL_DOC_CHECK:
		return put_check(g->doc, data);
	case HF_CTL_DOC_SESSIONS:
		return put_element(g->doc, data, "session");
	case HF_CTL_DOC_LOCKS:
		return put_element(g->doc, data, "lock");
	case HF_CTL_DOC_TIMELINE:
		return put_element(g->doc, data, "event");
	case HF_CTL_DOC_KEYS:
		return put_element(g->doc, data, "key");
	case HF_CTL_DOC_PROVIDERS:
		return put_element(g->doc, data, "provider");
	case HF_CTL_DOC_PROVIDER:
		return put_object(g->doc, data, "provider");
	case HF_CTL_DOC_TESTS:
		return put_element(g->doc, data, "test");
	case HF_CTL_DOC_FAILOVERS:
		return put_element(g->doc, data, "failover");
	case HF_CTL_DOC_FAILOVER_SUMMARY:
		return json_object_get(data, "progress") != NULL ?
		    0 :
		    put_element(g->doc, data, "failovers");
	case HF_CTL_DOC_EXPLAIN:
		return put_element(g->doc, data, "key");
	case HF_CTL_DOC_ERRORS:
		return put_element(g->doc, data, "class");
	case HF_CTL_DOC_KEY:
		return put_object(g->doc, data, "key");
	case HF_CTL_DOC_RELOAD:
		return put_object(g->doc, data, "reload");
	case HF_CTL_DOC_DRAIN:
		return put_object(g->doc, data, "drain");
	case HF_CTL_DOC_SESSION:
		if (!g->contents)
			hide_contents(data);
		return put_places(g->doc, session_places, data);
	case HF_CTL_DOC_VERIFY:
		return put_places(g->doc, verify_places, data);
	case HF_CTL_DOC_CONFIG:
		return put_places(g->doc, config_places, data);
	case HF_CTL_DOC_WARNINGS:
		return put_places(g->doc, warning_places, data);
	}
	return -1;
}

bool
hf_gather_whole(const struct hf_gather *g)
{
	switch (g->kind) {
	case HF_CTL_DOC_STATUS:
	case HF_CTL_DOC_KEY:
	case HF_CTL_DOC_PROVIDER:
	case HF_CTL_DOC_RELOAD:
	case HF_CTL_DOC_DRAIN:
		return json_object_size(g->doc) > 0;
	case HF_CTL_DOC_SESSION:
		return json_is_object(json_object_get(g->doc, "session"));
	case HF_CTL_DOC_CHECK:
		return json_array_size(json_object_get(g->doc, "checks")) > 0;
	case HF_CTL_DOC_VERIFY:
		return json_is_object(json_object_get(g->doc, "verified"));
	case HF_CTL_DOC_CONFIG:
		return json_is_object(json_object_get(g->doc, "config"));
	case HF_CTL_DOC_SESSIONS:
	case HF_CTL_DOC_LOCKS:
	case HF_CTL_DOC_TIMELINE:
	case HF_CTL_DOC_KEYS:
	case HF_CTL_DOC_PROVIDERS:
	case HF_CTL_DOC_TESTS:
	case HF_CTL_DOC_FAILOVERS:
	case HF_CTL_DOC_FAILOVER_SUMMARY:
	case HF_CTL_DOC_WARNINGS:
	case HF_CTL_DOC_EXPLAIN:
	case HF_CTL_DOC_ERRORS:
		break;
	}
	return true;
}

/* What a test of several targets comes to: a plain failure before one that may
 * pass. */
static int
test_verdict(const json_t *tests)
{
	bool failed = false, late = false, full = false;
	size_t i;
	json_t *v;

	json_array_foreach(tests, i, v)
	{
		const char *r = json_string_value(json_object_get(v, "result"));

		if (json_is_true(json_object_get(v, "ok")))
			continue;
		if (json_is_true(json_object_get(v, "timed_out")))
			late = true;
		else if (r != NULL && strcmp(r, "capacity") == 0)
			full = true;
		else
			failed = true;
	}
	return failed || json_array_size(tests) == 0 ? HF_EXIT_FAILED :
	    late				     ? HF_EXIT_TIMEOUT :
	    full				     ? HF_EXIT_TRYLATER :
						       HF_EXIT_OK;
}

int
hf_gather_verdict(const struct hf_gather *g)
{
	json_t *v = json_object_get(g->doc, "verified");

	if (g->kind == HF_CTL_DOC_TESTS)
		return test_verdict(g->doc);
	if (json_is_array(g->doc))
		return json_array_size(g->doc) > 0 ? HF_EXIT_OK :
						     HF_EXIT_FAILED;
	if (g->kind == HF_CTL_DOC_CHECK)
		return json_is_true(json_object_get(g->doc, "ok")) ?
		    HF_EXIT_OK :
		    HF_EXIT_FAILED;
	if (g->kind != HF_CTL_DOC_VERIFY)
		return HF_EXIT_OK;
	if (json_integer_value(json_object_get(v, "corrupt")) != 0)
		return HF_EXIT_CORRUPT;
	return json_integer_value(json_object_get(v, "odd")) != 0 ?
	    HF_EXIT_FAILED :
	    HF_EXIT_OK;
}
