/*
 * Prometheus text.
 */
#include <config.h>

#include "gateway/metrics.h"

static const struct {
	const char *type, *name, *labels, *help;
} metric[HF_C_COUNT] = {
#define HF_COUNTER(field, type, name, labels, help) \
	[HF_C_##field] = { #type, name, labels, help },
#include "base/counters.def"
#undef HF_COUNTER
};

void
hf_metrics_print(const struct hf_shm *s, struct hf_buf *out)
{
	const char *last = "";

	for (unsigned c = 0; c < HF_C_COUNT; c++) {
		/* Rows of one name stand together in the table. */
		if (strcmp(metric[c].name, last) != 0)
			hf_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n",
			    metric[c].name, metric[c].help, metric[c].name,
			    metric[c].type);
		last = metric[c].name;
		hf_buf_puts(out, metric[c].name);
		if (metric[c].labels[0] != '\0')
			hf_buf_printf(out, "{%s}", metric[c].labels);
		hf_buf_printf(out, " %lld\n",
		    (long long)hf_shm_sum(s, (enum hf_counter)c));
	}
}
