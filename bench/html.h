/*
 * Writing HTML: what comes from outside goes through hf_html_text(), in text
 * and in attributes alike; all else is ours.  And short ways to look into a
 * report.  Pure.
 */
#ifndef HF_BENCH_HTML_H
#define HF_BENCH_HTML_H

#include <jansson.h>

#include "base/buf.h"
#include "base/hf.h"

/* Escaped, whatever it holds; NULL: nothing. */
void hf_html_text(struct hf_buf *b, const char *z);
/* The first 'size' bytes of it. */
void hf_html_part(struct hf_buf *b, const char *p, size_t size);
/* <TAG>text</TAG>; 'tag' may have attributes of ours. */
void hf_html_element(struct hf_buf *b, const char *tag, const char *text);
/* A number for people: 3 digits or so, no exponent. */
void hf_html_number(struct hf_buf *b, double v);
/* A page up to and with <main>, and its end.  It loads nothing from anywhere,
 * and may run a script only if it has one of ours.  'script': that, or NULL;
 * the same both times. */
void hf_html_begin(struct hf_buf *b, const char *title, const char *script);
void hf_html_end(struct hf_buf *b, const char *script);

static inline json_t *
hf_get(json_t *o, const char *key)
{
	return json_object_get(o, key);
}
static inline double
hf_num(json_t *o, const char *key)
{
	return json_number_value(hf_get(o, key));
}
static inline int
hf_int(json_t *o, const char *key)
{
	return (int)json_integer_value(hf_get(o, key));
}
/* "" if there is none. */
static inline const char *
hf_text(json_t *o, const char *key)
{
	const char *s = json_string_value(hf_get(o, key));

	return s == NULL ? "" : s;
}

#endif
