/*
 * The model list: what clients may ask for are the routes.
 */
#include <config.h>

#include "gateway/surface/surface.h"

static void
put_model(struct hf_buf *b, const struct hf_conf_route *r)
{
	hf_buf_puts(b, "{\"id\":");
	hf_json_put_string(b, hf_str(r->name));
	hf_buf_puts(b,
	    ",\"object\":\"model\",\"created\":0,"
	    "\"owned_by\":\"holdfast\"}");
}

void
hf_models_serve(
    const struct hf_conf *conf, struct hf_req *rq, struct hf_sink *sink)
{
	const struct hf_conf_route *route;
	struct hf_refusal r = { 0 };
	struct hf_buf b;

	hf_buf_init(&b, HF_BUF_NOCAP);
	if (rq->rest.size > 0) {
		route = hf_conf_route(conf, rq->rest);
		if (route == NULL) {
			hf_refuse(&r, 404, "model_not_found", "model",
			    "there is no route of that name");
			hf_surface_refuse(sink, &r, -1, true);
			return;
		}
		put_model(&b, route);
	} else {
		hf_buf_puts(&b, "{\"object\":\"list\",\"data\":[");
		for (unsigned i = 0; i < conf->n_route; i++) {
			if (i > 0)
				hf_buf_putc(&b, ',');
			put_model(&b, &conf->route[i]);
		}
		hf_buf_puts(&b, "]}");
	}
	hf_sink_reply(sink, 200, NULL, 0, "application/json", hf_buf_str(&b));
	hf_buf_free(&b);
}
