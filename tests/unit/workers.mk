workers_tests = tests/unit/test_supervise tests/unit/test_spawn \
	tests/unit/test_control tests/unit/test_notify
check_PROGRAMS += $(workers_tests)
TESTS += $(workers_tests)
WORKERS_TEST_LIBS = $(WORKERS_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
WORKERS_TEST_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(EVENT_CFLAGS) \
	$(JANSSON_CFLAGS)
tests_unit_test_supervise_CFLAGS = $(WORKERS_TEST_CFLAGS)
tests_unit_test_supervise_LDADD = $(WORKERS_TEST_LIBS)
tests_unit_test_spawn_CFLAGS = $(WORKERS_TEST_CFLAGS)
tests_unit_test_spawn_LDADD = $(WORKERS_TEST_LIBS)
tests_unit_test_control_CFLAGS = $(WORKERS_TEST_CFLAGS)
tests_unit_test_control_LDADD = $(WORKERS_TEST_LIBS)
tests_unit_test_notify_CFLAGS = $(WORKERS_TEST_CFLAGS)
tests_unit_test_notify_LDADD = $(WORKERS_TEST_LIBS)
