noinst_LIBRARIES += libgateway.a
libgateway_a_CFLAGS = $(AM_CFLAGS) $(EVENT_CFLAGS) $(CURL_CFLAGS) \
	$(JANSSON_CFLAGS) $(SODIUM_CFLAGS)
libgateway_a_SOURCES = gateway/gateway.h
GATEWAY_LIBS = libgateway.a $(EVENT_LIBS) $(JANSSON_LIBS)

# json
libgateway_a_SOURCES += gateway/json/bytes.h gateway/json/check.c \
	gateway/json/scan.c gateway/json/scan.h gateway/json/text.c

# provider
libgateway_a_SOURCES += \
	gateway/provider/anthropic.c \
	gateway/provider/anthropic_decode.c gateway/provider/anthropic_decode.h \
	gateway/provider/anthropic_tools.c gateway/provider/anthropic_tools.h \
	gateway/provider/api_error.c gateway/provider/api_error.h \
	gateway/provider/decoder.c gateway/provider/decoder.h gateway/provider/finish.c \
	gateway/provider/headers.c gateway/provider/headers.h \
	gateway/provider/hint.h \
	gateway/provider/history.c gateway/provider/history.h \
	gateway/provider/openai.c \
	gateway/provider/openai_decode.c gateway/provider/openai_decode.h \
	gateway/provider/provider.h gateway/provider/quota_headers.c \
	gateway/provider/request.c gateway/provider/request.h \
	gateway/provider/retry_hint.c gateway/provider/tools.c \
	gateway/provider/window.c

# upstream
libgateway_a_SOURCES += gateway/upstream/handle.c \
	gateway/upstream/internal.h gateway/upstream/libcurl.c \
	gateway/upstream/libcurl.def gateway/upstream/libcurl.h \
	gateway/upstream/loop.c \
	gateway/upstream/resolve.c gateway/upstream/resolve.h \
	gateway/upstream/result.c gateway/upstream/sse.c \
	gateway/upstream/sse.h gateway/upstream/upstream.c \
	gateway/upstream/upstream.h

# front
libgateway_a_SOURCES += gateway/front/conn.c gateway/front/front.c \
	gateway/front/front.h gateway/front/head.c gateway/front/head.h gateway/front/held.c \
	gateway/front/internal.h gateway/front/route.c gateway/front/sink.c \
	gateway/front/socket.c

# turn, surface, gateway
libgateway_a_SOURCES += gateway/gateway.c gateway/metrics.c gateway/metrics.h \
	gateway/probe.c gateway/warm.c gateway/warm.h \
	gateway/surface/chat.c gateway/surface/chat_internal.h \
	gateway/surface/chat_params.c gateway/surface/chat_request.c \
	gateway/surface/error.c gateway/surface/follow.c \
	gateway/surface/models.c \
	gateway/surface/progress.c gateway/surface/progress.h \
	gateway/surface/refuse.c \
	gateway/surface/session_name.c gateway/surface/surface.h \
	gateway/turn/admit.c gateway/turn/adopt.c gateway/turn/align.c \
	gateway/turn/align.h gateway/turn/answer.c gateway/turn/attempt.c \
	gateway/turn/call.c \
	gateway/turn/chars.c gateway/turn/chars.h gateway/turn/continue.c \
	gateway/turn/crowd.c \
	gateway/turn/release.c gateway/turn/splice.c gateway/turn/splice.h \
	gateway/turn/failover.c gateway/turn/finish.c gateway/turn/follow.c \
	gateway/turn/fit.c gateway/turn/fit.h \
	gateway/turn/follow.h gateway/turn/heard.c \
	gateway/turn/hedge.c gateway/turn/last_resort.c \
	gateway/turn/items.c gateway/turn/items.h gateway/turn/overlap.c \
	gateway/turn/overlap.h gateway/turn/plan.c \
	gateway/turn/plan.h gateway/turn/rebuild.c gateway/turn/reconcile.c \
	gateway/turn/replay.c gateway/turn/text.c \
	gateway/turn/tokens.c gateway/turn/tokens.h gateway/turn/window.c \
	gateway/turn/shadow.c gateway/turn/stay.c \
	gateway/turn/turn.c gateway/turn/turn.h gateway/turn/turn_internal.h
