# The store.
STORE_TEST_LIBS = $(STORE_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
STORE_TEST_CFLAGS = $(AM_CFLAGS) $(SQLITE_CFLAGS) $(CMOCKA_CFLAGS)
STORE_FIXTURE = tests/unit/store_fixture.c tests/unit/store_fixture.h

check_PROGRAMS += tests/unit/test_store_turn
TESTS += tests/unit/test_store_turn
tests_unit_test_store_turn_SOURCES = tests/unit/test_store_turn.c \
	$(STORE_FIXTURE)
tests_unit_test_store_turn_CFLAGS = $(STORE_TEST_CFLAGS)
tests_unit_test_store_turn_LDADD = $(STORE_TEST_LIBS)
