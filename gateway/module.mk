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
libgateway_a_SOURCES += gateway/upstream/sse.h gateway/upstream/upstream.h

# front
libgateway_a_SOURCES += gateway/front/front.h

# turn, surface, gateway
