/*
 * Looking at a configuration: what is in force and from which line it comes,
 * and what is allowed but hardly meant.  No secret is read or shown.
 */
#ifndef HF_BASE_CONF_SHOW_H
#define HF_BASE_CONF_SHOW_H

#include "base/conf.h"
#include "base/params.h"

/* The bytes of a file, NUL-terminated; the caller frees them. */
int hf_conf_read(
    const char *path, char **text, struct hf_error *e) HF_MUST_CHECK;
/* As hf_conf_parse(), but every api_key stays NULL. */
int hf_conf_parse_public(const char *name, const char *text,
    struct hf_conf **out, struct hf_error *e) HF_MUST_CHECK;

struct hf_conf_setting {
	const struct hf_param *param;
	const char *title; /* of its block; "": untitled */
	const char *value; /* of a secret: where it is kept */
	int line;	   /* 0: the default */
};
/* Nonzero stops, and is returned. */
typedef int (*hf_conf_setting_fn)(void *arg, const struct hf_conf_setting *s);
/* Every setting in force, the elements of a list one by one.  Those that a
 * target takes over from its provider are left out. */
int hf_conf_settings(const char *name, const char *text, hf_conf_setting_fn fn,
    void *arg, struct hf_error *e) HF_MUST_CHECK;

/* 'what' reads "provider openai: ..."; line 0: the file as a whole. */
typedef void (*hf_conf_warning_fn)(void *arg, int line, const char *what);
int hf_conf_warnings(const char *name, const char *text, hf_conf_warning_fn fn,
    void *arg, struct hf_error *e) HF_MUST_CHECK;

/* Is 'b' one edit (insert, delete, replace, swap) away from 'a'? */
bool hf_conf_near(const char *a, const char *b);

#endif
