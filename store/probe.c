/*
 * A write for the sake of writing.
 */
#include <config.h>

#include "store/keep.h"

#include "base/clock.h"
#include "store/writer.h"

#define LOCK_TIMEOUT_MS 2000

static int
run(struct hf_writer *w, void *arg, struct hf_error *e)
{
	int rc = hf_db_run(&w->db, HF_SQL_META_PROBE, e, "i", hf_wall_us());

	(void)arg;
	return rc < 0 ? rc : 0;
}

int
hf_keep_probe(const struct hf_store_conf *c, struct hf_error *e)
{
	struct hf_store_conf conf = *c;
	struct hf_error local;
	struct hf_writer w;
	int rc;

	e = e == NULL ? &local : e;
	conf.lock_timeout_ms = LOCK_TIMEOUT_MS;
	rc = hf_writer_open(&w, &conf, HF_DB_WRITE, NULL, e);
	if (rc < 0)
		return rc;
	rc = hf_writer_run(&w, run, NULL, e);
	hf_writer_close(&w);
	return rc;
}
