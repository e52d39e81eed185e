/*
 * "continuitybench report": what a run's JSON says, for people and for
 * spreadsheets.
 */
#include <config.h>

#include "bench/cmd.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/report.h"

static const char usage[] =
    "usage: continuitybench report FILE.json [--html FILE] [--csv FILE]\n"
    "Make a page of what \"run --json\" wrote (\"-\": standard input): one "
    "file\n"
    "that loads nothing and needs no script; or a table of all measures.\n"
    "Without an option, print the tables that \"run\" prints.\n"
    "\n"
    "  --html FILE            \"-\": to standard output\n"
    "  --csv FILE             likewise\n"
    "  --paper                the failover paper's tables, in its layout\n";

enum { OPT_HTML = 256, OPT_CSV, OPT_PAPER, OPT_HELP };

static const struct option longopts[] = { { "html", required_argument, NULL,
					      OPT_HTML },
	{ "csv", required_argument, NULL, OPT_CSV },
	{ "paper", no_argument, NULL, OPT_PAPER },
	{ "help", no_argument, NULL, OPT_HELP }, { 0 } };

struct options {
	const char *html, *csv, *file;
	bool paper;
};

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
		if (c == '?') {
			fputs(usage, stderr);
			return HF_EXIT_USAGE;
		}
		if (c == OPT_HTML)
			o->html = optarg;
		else if (c == OPT_PAPER)
			o->paper = true;
		else
			o->csv = optarg;
	}
	if (optind + 1 != argc) {
		fputs(usage, stderr);
		return HF_EXIT_USAGE;
	}
	o->file = argv[optind];
	return -1;
}

/* NULL: told why. */
json_t *
hf_report_load(const char *path)
{
	struct hf_error e;
	json_error_t je;
	json_t *o = strcmp(path, "-") == 0 ? json_loadf(stdin, 0, &je) :
					     json_load_file(path, 0, &je);

	if (o == NULL) {
		fprintf(stderr, "continuitybench: %s: line %d: %s\n", path,
		    je.line, je.text);
		return NULL;
	}
	if (hf_report_check(o, &e) != 0) {
		fprintf(stderr, "continuitybench: %s: %s\n", path, e.text);
		json_decref(o);
		return NULL;
	}
	return o;
}

int
hf_write_file(const char *path, struct hf_str text)
{
	bool out = strcmp(path, "-") == 0;
	FILE *f = out ? stdout : fopen(path, "we");
	bool ok = f != NULL && fwrite(text.p, 1, text.size, f) == text.size &&
	    fflush(f) == 0;
	int error = errno;

	if (f != NULL && !out)
		ok = fclose(f) == 0 && ok;
	if (ok)
		return HF_EXIT_OK;
	fprintf(stderr, "continuitybench: %s: %s\n", path, strerror(error));
	return HF_EXIT_FAILED;
}

static int
write_as(const char *path, void (*make)(struct hf_buf *, json_t *), json_t *o)
{
	struct hf_buf b;
	int rc = HF_EXIT_FAILED;

	if (path == NULL)
		return HF_EXIT_OK;
	hf_buf_init(&b, HF_BUF_NOCAP);
	make(&b, o);
	if (hf_buf_ok(&b))
		rc = hf_write_file(path, hf_buf_str(&b));
	else
		fputs("continuitybench: out of memory\n", stderr);
	hf_buf_free(&b);
	return rc;
}

/* The tables of one suite. */
static int
print_one(json_t *report, bool paper)
{
	if (!paper) {
		hf_report_text(stdout, report);
		return HF_EXIT_OK;
	}
	if (hf_report_paper(stdout, report) == 0)
		return HF_EXIT_OK;
	fputs("continuitybench: the report is one of an older version, without "
	      "\"messages\" in its \"plays\"\n",
	    stderr);
	return HF_EXIT_USAGE;
}

static int
print_tables(json_t *file, bool paper)
{
	json_t *all = hf_report_each(file), *one;
	const char *title;
	int rc = HF_EXIT_OK;

	json_object_foreach(all, title, one)
	{
		if (json_object_size(all) > 1)
			printf("suite %s\n\n", title);
		rc = print_one(one, paper) != 0 ? HF_EXIT_USAGE : rc;
		putchar('\n');
	}
	json_decref(all);
	return rc;
}

int
hf_cmd_report(int argc, char **argv)
{
	struct options o = { 0 };
	int rc = parse(&o, argc, argv), tables = HF_EXIT_OK, csv;
	json_t *report;

	if (rc >= 0)
		return rc;
	report = hf_report_load(o.file);
	if (report == NULL)
		return HF_EXIT_USAGE;
	if (o.paper || (o.html == NULL && o.csv == NULL))
		tables = print_tables(report, o.paper);
	rc = write_as(o.html, hf_report_html, report);
	csv = write_as(o.csv, hf_report_csv, report);
	json_decref(report);
	rc = rc > csv ? rc : csv;
	return rc > tables ? rc : tables;
}
