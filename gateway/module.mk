noinst_LIBRARIES += libgateway.a
libgateway_a_CFLAGS = $(AM_CFLAGS) $(EVENT_CFLAGS) $(CURL_CFLAGS) \
	$(JANSSON_CFLAGS) $(SODIUM_CFLAGS)
libgateway_a_SOURCES = gateway/gateway.h
GATEWAY_LIBS = libgateway.a $(EVENT_LIBS) $(CURL_LIBS) $(JANSSON_LIBS)

# json
libgateway_a_SOURCES += gateway/json/bytes.h gateway/json/check.c \
	gateway/json/scan.c gateway/json/scan.h gateway/json/text.c

# provider
libgateway_a_SOURCES += gateway/provider/class.def gateway/provider/provider.h

# upstream
libgateway_a_SOURCES += gateway/upstream/sse.c gateway/upstream/sse.h \
	gateway/upstream/upstream.h

# front
libgateway_a_SOURCES += gateway/front/front.h

# turn, surface, gateway
libgateway_a_SOURCES += gateway/gateway.c gateway/metrics.c gateway/metrics.h \
	gateway/surface/chat.c gateway/surface/chat_internal.h \
	gateway/surface/chat_params.c gateway/surface/chat_request.c \
	gateway/surface/error.c gateway/surface/models.c \
	gateway/surface/session_name.c gateway/surface/surface.h \
	gateway/turn/align.c gateway/turn/align.h gateway/turn/attempt.c \
	gateway/turn/failover.c gateway/turn/finish.c \
	gateway/turn/items.c gateway/turn/items.h gateway/turn/plan.c \
	gateway/turn/plan.h gateway/turn/rebuild.c gateway/turn/reconcile.c \
	gateway/turn/turn.c gateway/turn/turn.h gateway/turn/turn_internal.h
