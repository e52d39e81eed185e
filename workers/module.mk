noinst_LIBRARIES += libworkers.a
libworkers_a_CFLAGS = $(AM_CFLAGS) $(EVENT_CFLAGS) $(JANSSON_CFLAGS)
libworkers_a_SOURCES = \
	workers/audit.c workers/children.c workers/confine.c workers/confine.h \
	workers/control.c workers/control.h workers/deaths.c \
	workers/handover.c workers/handover.h workers/inherit.c \
	workers/ipc.c workers/ipc.h workers/keeper.c workers/listen.c \
	workers/listen.h workers/master.c workers/master.h \
	workers/master_internal.h workers/notify.c workers/notify.h \
	workers/reload.c workers/proc.c workers/proc.h workers/spawn.c \
	workers/spawn.h workers/supervise.c workers/supervise.h \
	workers/targets.c workers/targets.h workers/tell.c workers/tell.h \
	workers/figures.c workers/figures.h \
	workers/verbs.c workers/verbs.h workers/verbs_admin.c \
	workers/verbs_failovers.c workers/verbs_providers.c \
	workers/verbs_test.c workers/verbs_int.h workers/view.c workers/view.h workers/worker.c
WORKERS_LIBS = libworkers.a $(EVENT_LIBS) $(JANSSON_LIBS)

sbin_PROGRAMS += holdfast
holdfast_SOURCES = workers/main.c
holdfast_CFLAGS = $(AM_CFLAGS) $(EVENT_CFLAGS)
holdfast_LDADD = $(WORKERS_LIBS) $(GATEWAY_LIBS) $(STORE_LIBS) $(BASE_LIBS)
