/*
 * Errors in the shape of chat completions, which every surface here shares.
 */
#include <config.h>

#include "gateway/surface/surface.h"

#include <stdarg.h>
#include <stdio.h>

int
hf_refuse(struct hf_refusal *r, int status, const char *code, const char *param,
    const char *fmt, ...)
{
	va_list ap;

	r->status = status;
	r->type = status >= 500 ? "server_error" : "invalid_request_error";
	r->code = code;
	snprintf(r->param, sizeof(r->param), "%s", param == NULL ? "" : param);
	va_start(ap, fmt);
	vsnprintf(r->message, sizeof(r->message), fmt, ap);
	va_end(ap);
	return -1;
}

void
hf_surface_error_body(struct hf_buf *out, const char *type, const char *code,
    struct hf_str param, struct hf_str message)
{
	hf_buf_puts(out, "{\"error\":{\"message\":");
	hf_json_put_string(out, message);
	hf_buf_puts(out, ",\"type\":");
	hf_json_put_string(out, hf_str(type));
	hf_buf_puts(out, ",\"param\":");
	if (param.size > 0)
		hf_json_put_string(out, param);
	else
		hf_buf_puts(out, "null");
	hf_buf_puts(out, ",\"code\":");
	if (code != NULL)
		hf_json_put_string(out, hf_str(code));
	else
		hf_buf_puts(out, "null");
	hf_buf_puts(out, "}}");
}
