noinst_LIBRARIES += libstore.a
libstore_a_SOURCES = \
	store/adopt.c store/auth.c store/auth.h store/begin.c store/db.c \
	store/db.h store/failovers.c store/fields.c store/heard.c \
	store/history.c store/history.h store/inspect.c store/inspect.h \
	store/inspect_int.h store/offline.c store/probe.c \
	store/sql_inspect.def store/verify.c store/verify_int.h \
	store/verify_turn.c store/verify_view.c \
	store/internal.h store/keep.c store/keep.h store/lease.c store/lease.h \
	store/master.c store/master.h store/migrate.c store/migrate.h \
	store/parts.c store/parts.h store/queue.c store/queue.h store/retry.c \
	store/row.c store/row.h store/seal.c \
	store/seal.h store/sql.def store/store.c store/store.h \
	store/timeline.c store/turn.c \
	store/wal_file.c store/wal_file.h store/writer.c store/writer.h
nodist_libstore_a_SOURCES = migrations/embedded.c
libstore_a_CFLAGS = $(AM_CFLAGS) $(SQLITE_CFLAGS) $(SODIUM_CFLAGS)
STORE_LIBS = libstore.a $(SQLITE_LIBS)

# Append only: a step is never edited once it has landed.
MIGRATIONS = migrations/0001_init.sql migrations/0002_retries.sql \
	migrations/0003_heard.sql migrations/0004_window.sql \
	migrations/0005_operators.sql
EXTRA_DIST += $(MIGRATIONS) migrations/SUMS migrations/embed.sh
CLEANFILES += migrations/embedded.c migrations/embedded.c.tmp
migrations/embedded.c: $(MIGRATIONS) migrations/SUMS migrations/embed.sh
	$(AM_V_GEN)$(MKDIR_P) migrations && \
	$(SHELL) $(srcdir)/migrations/embed.sh $(srcdir)/migrations \
		> $@.tmp && mv $@.tmp $@
