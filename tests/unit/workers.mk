workers_tests = tests/unit/test_supervise tests/unit/test_spawn \
	tests/unit/test_control tests/unit/test_handover \
	tests/unit/test_notify tests/unit/test_verbs
check_PROGRAMS += $(workers_tests)
TESTS += $(workers_tests)
CONTROL_CLIENT = tests/unit/control_client.c tests/unit/control_client.h
WORKERS_TEST_LIBS = $(WORKERS_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
WORKERS_TEST_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(EVENT_CFLAGS) \
	$(JANSSON_CFLAGS)
tests_unit_test_supervise_CFLAGS = $(WORKERS_TEST_CFLAGS)
tests_unit_test_supervise_LDADD = $(WORKERS_TEST_LIBS)
tests_unit_test_spawn_CFLAGS = $(WORKERS_TEST_CFLAGS)
tests_unit_test_spawn_LDADD = $(WORKERS_TEST_LIBS)
tests_unit_test_handover_CFLAGS = $(WORKERS_TEST_CFLAGS)
tests_unit_test_handover_LDADD = $(WORKERS_TEST_LIBS)
tests_unit_test_control_SOURCES = tests/unit/test_control.c \
	$(CONTROL_CLIENT)
tests_unit_test_control_CFLAGS = $(WORKERS_TEST_CFLAGS)
tests_unit_test_control_LDADD = $(WORKERS_TEST_LIBS)
tests_unit_test_notify_CFLAGS = $(WORKERS_TEST_CFLAGS)
tests_unit_test_notify_LDADD = $(WORKERS_TEST_LIBS)
tests_unit_test_verbs_SOURCES = tests/unit/test_verbs.c $(CONTROL_CLIENT) \
	$(STORE_FIXTURE)
tests_unit_test_verbs_CFLAGS = $(WORKERS_TEST_CFLAGS) $(SQLITE_CFLAGS)
tests_unit_test_verbs_LDADD = $(WORKERS_LIBS) $(GATEWAY_LIBS) $(STORE_LIBS) \
	$(BASE_LIBS) $(CMOCKA_LIBS)
