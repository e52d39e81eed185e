/*
 * What holdfastctl knows by itself: config check, config explain, explain
 * errors.
 */
#include <config.h>

#include "ctl/local.h"

#include <stdlib.h>

#include "base/class.h"
#include "base/conf_show.h"
#include "base/log.h"

struct sink {
	hf_ctl_data_fn fn;
	void *arg;
	int rc;
};

/* Takes the reference of 'data'. */
static void
put(struct sink *s, json_t *data)
{
	if (s->rc == 0)
		s->rc = data == NULL ? -1 : s->fn(s->arg, data);
	json_decref(data);
}

static int
no_memory(struct hf_ctl_fault *fault)
{
	return hf_ctl_fault(fault, HF_EXIT_FAILED, "out of memory");
}

/* --- config check -------------------------------------------------------- */

static void
on_warning(void *arg, int line, const char *what)
{
	put(arg,
	    json_pack("{s:{s:i, s:s}}", "warning", "line", line, "text", what));
}

int
hf_ctl_config_check(const struct hf_ctl *ctl, hf_ctl_data_fn fn, void *arg,
    struct hf_ctl_fault *fault)
{
	const char *path = ctl->operand != NULL ? ctl->operand :
	    ctl->config != NULL			? ctl->config :
						  HF_CTL_CONFIG;
	struct sink s = { .fn = fn, .arg = arg };
	struct hf_error e = { 0 };
	struct hf_conf *c = NULL;
	char *text = NULL;
	int rc;

	/* What it would log about secrets is among the warnings. */
	hf_log_init("ctl", HF_LOG_ERROR);
	rc = hf_conf_read(path, &text, &e);
	if (rc == 0)
		rc = hf_conf_parse(path, text, &c, &e);
	put(&s, json_pack("{s:s}", "file", path));
	if (rc == 0)
		rc = hf_conf_warnings(path, text, on_warning, &s, &e);
	hf_conf_free(c);
	free(text);
	if (rc != 0)
		return hf_ctl_fault(fault, hf_exit_code(rc), "%s", e.text);
	return s.rc == 0 ? 0 : no_memory(fault);
}

/* --- config explain ------------------------------------------------------ */

static json_t *
explain(const struct hf_param *p)
{
	char expected[160];

	hf_param_expected(p, expected, sizeof(expected));
	return json_pack("{s:{s:s, s:s, s:b, s:s, s:s?, s:b, s:b, s:s}}", "key",
	    "block", p->block, "key", p->key, "list", hf_param_is_list(p),
	    "expected", expected, "default", p->def, "required",
	    (p->flags & HF_P_REQUIRED) != 0, "reloadable",
	    (p->flags & HF_P_RESTART) == 0, "prose", p->prose);
}

/* "key", "block.key", or "block" for all of its keys. */
static bool
is_meant(const struct hf_param *p, const char *word)
{
	const char *dot = strchr(word, '.');

	if (dot == NULL)
		return strcmp(word, p->key) == 0 || strcmp(word, p->block) == 0;
	return strlen(p->block) == (size_t)(dot - word) &&
	    strncmp(word, p->block, (size_t)(dot - word)) == 0 &&
	    strcmp(dot + 1, p->key) == 0;
}

int
hf_ctl_config_explain(const struct hf_ctl *ctl, hf_ctl_data_fn fn, void *arg,
    struct hf_ctl_fault *fault)
{
	struct sink s = { .fn = fn, .arg = arg };
	const char *near = NULL;
	unsigned n = 0;

	for (unsigned i = 0; i < hf_n_params; i++) {
		if (hf_conf_near(hf_params[i].key, ctl->operand))
			near = hf_params[i].key;
		if (!is_meant(&hf_params[i], ctl->operand))
			continue;
		put(&s, explain(&hf_params[i]));
		n++;
	}
	if (s.rc != 0)
		return no_memory(fault);
	if (n > 0)
		return 0;
	if (near != NULL)
		return hf_ctl_fault(fault, HF_EXIT_NOTFOUND,
		    "there is no key "
		    "%s; did you mean %s?",
		    ctl->operand, near);
	return hf_ctl_fault(
	    fault, HF_EXIT_NOTFOUND, "there is no key %s", ctl->operand);
}

/* --- explain errors ------------------------------------------------------- */

static json_t *
explain_answer(enum hf_answer_id id)
{
	const struct hf_answer_error *a = hf_answer_error(id);

	return json_pack("{s:i, s:s, s:s}", "status", a->status, "type",
	    a->type, "code", a->code);
}

static json_t *
explain_class(const struct hf_class_row *r)
{
	static const char *const next[] = {
		[HF_ACTION_END] = "no",
		[HF_ACTION_NEXT] = "yes",
		[HF_ACTION_RETRY] = "yes",
		[HF_ACTION_FIRST] = "not after the first",
	};

	return json_pack("{s:{s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:s}}",
	    "class", "class", r->name, "action", hf_action_name(r->action),
	    "same_target", r->action == HF_ACTION_RETRY ? "after a wait" : "no",
	    "next_target", next[r->action], "breaker",
	    hf_breaker_count_name(r->breaker), "metric", r->name, "answer",
	    explain_answer(r->answer), "answer_special",
	    r->all == r->answer ? json_null() : explain_answer(r->all),
	    "meaning", r->meaning);
}

int
hf_ctl_explain_errors(hf_ctl_data_fn fn, void *arg, struct hf_ctl_fault *fault)
{
	struct sink s = { .fn = fn, .arg = arg };

	for (unsigned c = HF_CLASS_NONE + 1; c < HF_N_CLASS; c++)
		put(&s, explain_class(hf_class_row((enum hf_class)c)));
	return s.rc == 0 ? 0 : no_memory(fault);
}
