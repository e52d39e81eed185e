/*
 * Calibrating as a condition.
 */
#include <config.h>

#include "bench/gate.h"

#include <stdio.h>

#include "bench/cmd.h"

int
hf_gate(const struct hf_judge_options *o, enum hf_progress_mode mode,
    json_t **calibration)
{
	struct hf_progress progress;
	struct hf_judge_conf conf;
	struct hf_error e;
	json_t *cases;
	int rc;

	if (hf_calibration_load(&cases, o->calibration, &e) != 0) {
		fprintf(stderr, "continuitybench: %s\n", e.text);
		return HF_EXIT_USAGE;
	}
	hf_judge_options_conf(o, &conf);
	hf_progress_begin(&progress, mode, "calibrating the judge", "cases");
	rc = hf_calibrate(&conf, cases, &progress, calibration, &e);
	json_decref(cases);
	if (rc != 0) {
		fprintf(stderr, "continuitybench: %s\n", e.text);
		return HF_EXIT_UNREACHABLE;
	}
	if (json_is_true(json_object_get(*calibration, "passed")))
		return HF_EXIT_OK;
	fprintf(stderr,
	    "failed: the judge %s agrees with %lld of %lld labels; %lld are "
	    "needed\n",
	    o->model, json_integer_value(json_object_get(*calibration, "k")),
	    json_integer_value(json_object_get(*calibration, "n")),
	    json_integer_value(json_object_get(*calibration, "needed")));
	return HF_EXIT_FAILED;
}
