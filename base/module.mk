noinst_LIBRARIES += libbase.a
libbase_a_SOURCES = \
	base/arena.c base/arena.h base/backoff.c base/backoff.h \
	base/breaker.c base/breaker.h base/budget.c base/budget.h \
	base/buf.c base/buf.h base/check.c base/check.h \
	base/class.c base/class.def base/class.h \
	base/clock.c base/clock.h base/counters.def \
	base/conf.c base/conf.h base/conf_build.c base/conf_int.h \
	base/conf_raw.c base/conf_secret.c base/conf_text.c base/conf_value.c \
	base/conf_show.c base/conf_show.h base/conf_warn.c \
	base/err.c base/err.def base/err.h base/exits.c base/exits.h \
	base/fault.c base/fault.h base/figures.c base/figures.h \
	base/frame.c base/frame.h base/hist.c base/hist.h \
	base/pace.c base/pace.h base/quota.c base/quota.h \
	base/rate.c base/rate.h base/target.c base/target.h \
	base/target_save.c base/target_save.h \
	base/hf.h base/hold.c base/hold.h base/hold_tcp.c base/id.c base/id.h base/log.c base/log.h \
	base/params.c base/params.def base/params.h \
	base/shm.c base/shm.h base/sm.c base/sm.h base/verbs.def \
	base/verbs.h
libbase_a_CFLAGS = $(AM_CFLAGS) $(SODIUM_CFLAGS) $(CONFUSE_CFLAGS)
BASE_LIBS = libbase.a $(SODIUM_LIBS) $(CONFUSE_LIBS) -lpthread
