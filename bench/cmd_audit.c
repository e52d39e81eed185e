/*
 * "continuitybench audit": a person checks what the judge said.
 */
#include <config.h>

#include "bench/cmd.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/audit.h"
#include "bench/option.h"

static const char usage[] =
    "usage: continuitybench audit REPORT.json --page FILE.html [options]\n"
    "       continuitybench audit REPORT.json --verdicts FILE [--json FILE]\n"
    "Put a sample of a report's answers on a page for a person to judge, "
    "without\n"
    "saying how they were judged; read the verdicts back and tell how often "
    "they\n"
    "agree.  Exits 1 if not all cases have a verdict.\n"
    "\n"
    "  --cases N              default 20\n"
    "  --seed N               of the sample, default 1\n"
    "  --judged               only answers that a model decided\n"
    "  --page FILE            \"-\": to standard output\n"
    "  --verdicts FILE        what the page's text box held\n"
    "  --json FILE            record verdicts and agreement there\n";

enum {
	OPT_CASES = 256,
	OPT_SEED,
	OPT_JUDGED,
	OPT_PAGE,
	OPT_VERDICTS,
	OPT_JSON,
	OPT_HELP
};

static const struct option longopts[] = { { "cases", required_argument, NULL,
					      OPT_CASES },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "judged", no_argument, NULL, OPT_JUDGED },
	{ "page", required_argument, NULL, OPT_PAGE },
	{ "verdicts", required_argument, NULL, OPT_VERDICTS },
	{ "json", required_argument, NULL, OPT_JSON },
	{ "help", no_argument, NULL, OPT_HELP }, { 0 } };

struct options {
	const char *file, *page, *verdicts, *json;
	unsigned long cases, seed;
	bool judged;
};

static bool
set_option(struct options *o, int c, const char *arg)
{
	switch (c) {
	case OPT_CASES:
		return hf_option_number(arg, 1, 10000, &o->cases);
	case OPT_SEED:
		return hf_option_number(arg, 0, UINT32_MAX, &o->seed);
	case OPT_JUDGED:
		o->judged = true;
		return true;
	case OPT_PAGE:
		o->page = arg;
		return true;
	case OPT_VERDICTS:
		o->verdicts = arg;
		return true;
	case OPT_JSON:
		o->json = arg;
		return true;
	default:
		return false;
	}
}

/* -1: go on; else the exit code. */
static int
parse(struct options *o, int argc, char **argv)
{
	int c;

	while ((c = getopt_long(argc, argv, "", longopts, NULL)) != -1) {
		if (c == OPT_HELP) {
			fputs(usage, stdout);
			return HF_EXIT_OK;
		}
		if (!set_option(o, c, optarg)) {
			if (c != '?')
				fprintf(stderr,
				    "continuitybench: bad value '%s'\n",
				    optarg);
			fputs(usage, stderr);
			return HF_EXIT_USAGE;
		}
	}
	if (optind + 1 != argc || (o->page == NULL) == (o->verdicts == NULL) ||
	    (o->json != NULL && o->verdicts == NULL)) {
		fputs(usage, stderr);
		return HF_EXIT_USAGE;
	}
	o->file = argv[optind];
	return -1;
}

static int
fail(const char *what, const struct hf_error *e)
{
	fprintf(stderr, "continuitybench: %s: %s\n", what, e->text);
	return HF_EXIT_USAGE;
}

static int
make_page(const struct options *o, json_t *report)
{
	struct hf_audit a = { .cases = (unsigned)o->cases,
		.seed = o->seed,
		.judged = o->judged };
	struct hf_error e;
	struct hf_buf b;
	int rc;

	if (hf_audit_sample(&a, report, &e) != 0)
		return fail(o->file, &e);
	hf_buf_init(&b, HF_BUF_NOCAP);
	hf_audit_page(&b, &a);
	rc = hf_write_file(o->page, hf_buf_str(&b));
	hf_buf_free(&b);
	hf_audit_free(&a);
	return rc;
}

static int
read_file(const char *path, struct hf_buf *b, struct hf_error *e)
{
	FILE *f = fopen(path, "re");
	char block[4096];
	size_t n;

	if (f == NULL)
		return hf_fail_errno(e, "%s", path);
	while ((n = fread(block, 1, sizeof(block), f)) > 0)
		hf_buf_put(b, block, n);
	fclose(f);
	return hf_buf_ok(b) && b->size > 0 ?
	    0 :
	    hf_fail(e, HF_EINVAL, "%s: empty, or too long", path);
}

static int
take_verdicts(const struct options *o, json_t *report, const char *text)
{
	struct hf_audit a;
	struct hf_error e;
	json_t *result;
	int rc;

	if (hf_audit_header(&a, text, &e) != 0 ||
	    hf_audit_sample(&a, report, &e) != 0)
		return fail(o->verdicts, &e);
	rc = hf_audit_read(&a, text, &result, &e);
	hf_audit_free(&a);
	if (rc != 0)
		return fail(o->verdicts, &e);
	hf_audit_text(stdout, result);
	rc = json_integer_value(json_object_get(result, "unanswered")) > 0 ?
	    HF_EXIT_FAILED :
	    HF_EXIT_OK;
	if (o->json != NULL &&
	    json_dump_file(result, o->json, JSON_INDENT(1)) != 0) {
		fprintf(stderr, "continuitybench: cannot write %s\n", o->json);
		rc = HF_EXIT_FAILED;
	}
	json_decref(result);
	return rc;
}

int
hf_cmd_audit(int argc, char **argv)
{
	struct options o = { .cases = 20, .seed = 1 };
	int rc = parse(&o, argc, argv);
	struct hf_buf text;
	struct hf_error e;
	json_t *report;

	if (rc >= 0)
		return rc;
	report = hf_report_load(o.file);
	if (report == NULL)
		return HF_EXIT_USAGE;
	if (o.page != NULL) {
		rc = make_page(&o, report);
	} else {
		hf_buf_init(&text, 1 << 20);
		rc = read_file(o.verdicts, &text, &e) != 0 ?
		    fail("verdicts", &e) :
		    take_verdicts(&o, report, text.data);
		hf_buf_free(&text);
	}
	json_decref(report);
	return rc;
}
