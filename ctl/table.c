/*
 * Tables.
 */
#include <config.h>

#include "ctl/table.h"

#include <inttypes.h>

#include "base/check.h"
#include "base/clock.h"
#include "ctl/escape.h"

#define MAX_COLUMNS 16

static void
put_int(struct hf_buf *out, json_int_t v, enum hf_ctl_format format)
{
	char text[32];

	switch (format) {
	case HF_CTL_TIME_CELL:
		hf_wall_format(v, text);
		hf_buf_puts(out, v == 0 ? "-" : text);
		return;
	case HF_CTL_DURATION_CELL:
		if (v == 0)
			hf_buf_putc(out, '-');
		else
			hf_ctl_put_duration(out, v);
		return;
	case HF_CTL_BYTES_CELL:
		hf_ctl_put_bytes(out, v);
		return;
	case HF_CTL_INC_CELL:
		hf_buf_printf(out, "%" PRIu64 ".%" PRIu64, (uint64_t)v >> 32,
		    (uint64_t)v & 0xffffffff);
		return;
	case HF_CTL_MS_CELL:
		if (v < 0) {
			hf_buf_putc(out, '-');
			return;
		}
		hf_buf_printf(out, "%.1f", (double)v / 1e3);
		return;
	case HF_CTL_SOME_CELL:
	case HF_CTL_KNOWN_CELL:
		if (v < 0 || (v == 0 && format == HF_CTL_SOME_CELL)) {
			hf_buf_putc(out, '-');
			return;
		}
		break;
	case HF_CTL_INT_CELL:
	case HF_CTL_TEXT_CELL:
	case HF_CTL_BOOL_CELL:
		break;
	}
	hf_buf_printf(out, "%" PRId64, (int64_t)v);
}

void
hf_ctl_put_cell(struct hf_buf *out, json_t *v, enum hf_ctl_format format)
{
	if (json_is_string(v) && json_string_length(v) > 0)
		hf_ctl_escape(out,
		    (struct hf_str){
			json_string_value(v), json_string_length(v) });
	else if (json_is_integer(v))
		put_int(out, json_integer_value(v), format);
	else if (json_is_true(v))
		hf_buf_puts(out, "yes");
	else
		hf_buf_putc(out, '-');
}

/* Figures are flush right. */
static bool
is_right(enum hf_ctl_format f)
{
	return f == HF_CTL_INT_CELL || f == HF_CTL_SOME_CELL ||
	    f == HF_CTL_KNOWN_CELL || f == HF_CTL_MS_CELL ||
	    f == HF_CTL_DURATION_CELL || f == HF_CTL_BYTES_CELL;
}

static void
print_cell(FILE *out, const char *text, size_t width, bool right, bool last)
{
	size_t have = hf_ctl_width(hf_str(text));
	int pad = have < width ? (int)(width - have) : 0;

	if (right)
		fprintf(out, "%*s%s", pad, "", text);
	else
		fprintf(out, "%s%*s", text, last ? 0 : pad, "");
	fputs(last ? "\n" : "  ", out);
}

int
hf_ctl_table(const struct hf_ctl_column *column, unsigned n_column,
    json_t *rows, bool headers, FILE *out)
{
	size_t width[MAX_COLUMNS] = { 0 }, n, i, n_rows;
	struct hf_buf cells; /* each with its NUL, row after row */
	const char *cell;
	json_t *row;

	HF_CHECK(n_column <= MAX_COLUMNS);
	hf_buf_init(&cells, HF_BUF_NOCAP);
	for (n = 0; n < n_column && headers; n++) {
		hf_buf_put(&cells, column[n].head, strlen(column[n].head) + 1);
		width[n] = strlen(column[n].head);
	}
	json_array_foreach(rows, i, row)
	{
		for (n = 0; n < n_column; n++) {
			size_t from = cells.size, have;

			hf_ctl_put_cell(&cells,
			    json_object_get(row, column[n].member),
			    column[n].format);
			have = hf_ctl_width((struct hf_str){
			    cells.data + from, cells.size - from });
			width[n] = have > width[n] ? have : width[n];
			hf_buf_putc(&cells, '\0');
		}
	}
	if (!hf_buf_ok(&cells)) {
		hf_buf_free(&cells);
		return -1;
	}
	cell = cells.data;
	n_rows = json_array_size(rows) + (headers ? 1 : 0);
	for (i = 0; i < n_rows; i++) {
		for (n = 0; n < n_column; n++) {
			print_cell(out, cell, width[n],
			    is_right(column[n].format), n + 1 == n_column);
			cell += strlen(cell) + 1;
		}
	}
	hf_buf_free(&cells);
	return 0;
}
