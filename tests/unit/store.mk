# The store.
STORE_TEST_LIBS = $(STORE_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
STORE_TEST_CFLAGS = $(AM_CFLAGS) $(SQLITE_CFLAGS) $(SODIUM_CFLAGS) \
	$(CMOCKA_CFLAGS)
STORE_FIXTURE = tests/unit/store_fixture.c tests/unit/store_fixture.h

STORE_TESTS = tests/unit/test_store_adopt tests/unit/test_store_commit \
	tests/unit/test_store_io \
	tests/unit/test_store_heard tests/unit/test_store_keep \
	tests/unit/test_store_lease tests/unit/test_store_schema \
	tests/unit/test_store_power \
	tests/unit/test_store_seal tests/unit/test_store_turn \
	tests/unit/test_store_wal
check_PROGRAMS += $(STORE_TESTS)
TESTS += $(STORE_TESTS)

tests_unit_test_store_adopt_SOURCES = tests/unit/test_store_adopt.c \
	$(STORE_FIXTURE)
tests_unit_test_store_adopt_CFLAGS = $(STORE_TEST_CFLAGS)
tests_unit_test_store_adopt_LDADD = $(STORE_TEST_LIBS)
tests_unit_test_store_commit_SOURCES = tests/unit/test_store_commit.c \
	$(STORE_FIXTURE)
tests_unit_test_store_commit_CFLAGS = $(STORE_TEST_CFLAGS)
tests_unit_test_store_commit_LDADD = $(STORE_TEST_LIBS)
tests_unit_test_store_io_SOURCES = tests/unit/test_store_io.c \
	tests/unit/store_vfs.c tests/unit/store_vfs.h $(STORE_FIXTURE)
tests_unit_test_store_io_CFLAGS = $(STORE_TEST_CFLAGS)
tests_unit_test_store_io_LDADD = $(STORE_TEST_LIBS)
tests_unit_test_store_heard_SOURCES = tests/unit/test_store_heard.c \
	$(STORE_FIXTURE)
tests_unit_test_store_heard_CFLAGS = $(STORE_TEST_CFLAGS)
tests_unit_test_store_heard_LDADD = $(STORE_TEST_LIBS)
tests_unit_test_store_keep_SOURCES = tests/unit/test_store_keep.c \
	$(STORE_FIXTURE)
tests_unit_test_store_keep_CFLAGS = $(STORE_TEST_CFLAGS)
tests_unit_test_store_keep_LDADD = $(STORE_TEST_LIBS)
tests_unit_test_store_lease_SOURCES = tests/unit/test_store_lease.c \
	$(STORE_FIXTURE)
tests_unit_test_store_lease_CFLAGS = $(STORE_TEST_CFLAGS)
tests_unit_test_store_lease_LDADD = $(STORE_TEST_LIBS)
tests_unit_test_store_power_SOURCES = tests/unit/test_store_power.c \
	tests/unit/store_vfs.c tests/unit/store_vfs.h $(STORE_FIXTURE)
tests_unit_test_store_power_CFLAGS = $(STORE_TEST_CFLAGS)
tests_unit_test_store_power_LDADD = $(STORE_TEST_LIBS)
tests_unit_test_store_schema_SOURCES = tests/unit/test_store_schema.c \
	$(STORE_FIXTURE)
tests_unit_test_store_schema_CFLAGS = $(STORE_TEST_CFLAGS)
tests_unit_test_store_schema_LDADD = $(STORE_TEST_LIBS)
tests_unit_test_store_seal_SOURCES = tests/unit/test_store_seal.c \
	$(STORE_FIXTURE)
tests_unit_test_store_seal_CFLAGS = $(STORE_TEST_CFLAGS)
tests_unit_test_store_seal_LDADD = $(STORE_TEST_LIBS)
tests_unit_test_store_turn_SOURCES = tests/unit/test_store_turn.c \
	$(STORE_FIXTURE)
tests_unit_test_store_turn_CFLAGS = $(STORE_TEST_CFLAGS)
tests_unit_test_store_turn_LDADD = $(STORE_TEST_LIBS)
tests_unit_test_store_wal_SOURCES = tests/unit/test_store_wal.c \
	tests/unit/store_vfs.c tests/unit/store_vfs.h $(STORE_FIXTURE)
tests_unit_test_store_wal_CFLAGS = $(STORE_TEST_CFLAGS)
tests_unit_test_store_wal_LDADD = $(STORE_TEST_LIBS)

# Real deaths.
check_PROGRAMS += tests/crash/store_crash
tests_crash_store_crash_SOURCES = tests/crash/store_crash.c
tests_crash_store_crash_CFLAGS = $(AM_CFLAGS) $(SODIUM_CFLAGS)
tests_crash_store_crash_LDADD = $(STORE_LIBS) $(BASE_LIBS)
STORE_CRASH_TESTS = tests/crash/10-store-migrate.t tests/crash/11-store-kill.t
TESTS += $(STORE_CRASH_TESTS)
EXTRA_DIST += $(STORE_CRASH_TESTS)
