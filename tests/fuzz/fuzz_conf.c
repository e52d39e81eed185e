/*
 * The configuration from any text: accepted, or refused with a message that
 * names the place; every number of an accepted one is in its range.
 */
#include <config.h>

#include "base/conf.h"
#include "base/log.h"
#include "tests/fuzz/fuzz.h"

const char fuzz_name[] = "conf";

static void
check(const struct hf_conf *c)
{
	const struct hf_conf_gateway *g = &c->gateway;

	FUZZ_CHECK(g->n_listen >= 1 && g->n_listen <= 16);
	FUZZ_CHECK(g->database[0] == '/' && g->control[0] == '/');
	FUZZ_CHECK(g->master_key_file[0] == '/');
	FUZZ_CHECK(g->body_soft >= 1024 && g->body_hard >= g->body_soft);
	FUZZ_CHECK(g->workers >= 0 && g->workers <= 32);
	FUZZ_CHECK(g->queue_limit >= 1 && g->flush_ms >= 1);
	for (unsigned i = 0; i < c->n_provider; i++)
		FUZZ_CHECK(strncmp(c->provider[i].base_url, "http", 4) == 0);
	for (unsigned i = 0; i < c->n_route; i++) {
		const struct hf_conf_route *r = &c->route[i];

		FUZZ_CHECK(r->n_target >= 1 && r->n_target <= 16);
		FUZZ_CHECK(r->max_retries >= 0 && r->max_retries <= 5);
		FUZZ_CHECK(hf_conf_route(c, hf_str(r->name)) == r);
		for (unsigned k = 0; k < r->n_target; k++)
			FUZZ_CHECK(r->target[k]->provider != NULL &&
			    r->target[k]->model[0] != '\0' &&
			    r->target[k]->call.total_ms >= 1);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t size)
{
	struct hf_conf *c = NULL;
	struct hf_error e = { 0 };
	char *text = malloc(size + 1);

	FUZZ_CHECK(text != NULL);
	hf_log_set_level(HF_LOG_ERROR);
	memcpy(text, p, size);
	text[size] = '\0';
	if (hf_conf_parse("fuzz", text, &c, &e) == 0) {
		check(c);
		hf_conf_free(c);
	} else {
		FUZZ_CHECK(c == NULL && e.code == HF_ECONFIG);
		FUZZ_CHECK(strncmp(e.text, "fuzz:", 5) == 0 &&
		    e.text[5] >= '1' && e.text[5] <= '9');
	}
	free(text);
	return 0;
}
