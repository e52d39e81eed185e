noinst_LIBRARIES += libctl.a
libctl_a_SOURCES = ctl/client.c ctl/client.h ctl/ctl.h \
	ctl/escape.c ctl/escape.h ctl/gather.c ctl/gather.h ctl/local.c \
	ctl/local.h ctl/offline.c ctl/options.c ctl/render.c ctl/render.h \
	ctl/render_admin.c ctl/render_int.h ctl/render_providers.c ctl/render_text.c \
	ctl/render_timeline.c ctl/run.c ctl/table.c ctl/table.h
libctl_a_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
CTL_LIBS = libctl.a $(STORE_LIBS) $(BASE_LIBS) $(JANSSON_LIBS)

bin_PROGRAMS += holdfastctl
holdfastctl_SOURCES = ctl/main.c
holdfastctl_LDADD = $(CTL_LIBS)
