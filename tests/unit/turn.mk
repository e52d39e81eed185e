TURN_TEST_LDADD = $(GATEWAY_LIBS) $(STORE_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_align tests/unit/test_plan \
	tests/unit/test_items tests/unit/test_chat_request
TESTS += tests/unit/test_align tests/unit/test_plan \
	tests/unit/test_items tests/unit/test_chat_request

tests_unit_test_align_SOURCES = tests/unit/test_align.c
tests_unit_test_align_LDADD = $(TURN_TEST_LDADD)
tests_unit_test_plan_SOURCES = tests/unit/test_plan.c
tests_unit_test_plan_LDADD = $(TURN_TEST_LDADD)
tests_unit_test_items_SOURCES = tests/unit/test_items.c
tests_unit_test_items_LDADD = $(TURN_TEST_LDADD)
tests_unit_test_chat_request_SOURCES = tests/unit/test_chat_request.c
tests_unit_test_chat_request_LDADD = $(TURN_TEST_LDADD)

check_PROGRAMS += tests/unit/test_fit tests/unit/test_tokens \
	tests/unit/test_window
TESTS += tests/unit/test_fit tests/unit/test_tokens tests/unit/test_window
tests_unit_test_fit_SOURCES = tests/unit/test_fit.c
tests_unit_test_fit_LDADD = $(TURN_TEST_LDADD)
tests_unit_test_tokens_SOURCES = tests/unit/test_tokens.c
tests_unit_test_tokens_LDADD = $(TURN_TEST_LDADD)
tests_unit_test_window_SOURCES = tests/unit/test_window.c
tests_unit_test_window_LDADD = $(TURN_TEST_LDADD)

check_PROGRAMS += tests/unit/test_class
TESTS += tests/unit/test_class
tests_unit_test_class_SOURCES = tests/unit/test_class.c
tests_unit_test_class_LDADD = $(TURN_TEST_LDADD)

check_PROGRAMS += tests/unit/test_splice tests/unit/test_splice_sweep \
	tests/unit/test_release tests/unit/test_progress
TESTS += tests/unit/test_splice tests/unit/test_splice_sweep \
	tests/unit/test_release tests/unit/test_progress
tests_unit_test_progress_SOURCES = tests/unit/test_progress.c
tests_unit_test_progress_LDADD = $(TURN_TEST_LDADD)
tests_unit_test_splice_SOURCES = tests/unit/test_splice.c
tests_unit_test_splice_LDADD = $(TURN_TEST_LDADD)
tests_unit_test_splice_sweep_SOURCES = tests/unit/test_splice_sweep.c
tests_unit_test_splice_sweep_LDADD = $(TURN_TEST_LDADD)
tests_unit_test_release_SOURCES = tests/unit/test_release.c
tests_unit_test_release_LDADD = $(TURN_TEST_LDADD)

# The turn machine between stand-ins of a client and of providers.
check_PROGRAMS += tests/unit/test_turn_adopt tests/unit/test_turn_sweep
TESTS += tests/unit/test_turn_adopt tests/unit/test_turn_sweep
TURN_RIG = tests/unit/turn_rig.c tests/unit/turn_rig.h tests/unit/say.c \
	tests/unit/say.h tests/unit/store_fixture.c tests/unit/store_fixture.h
TURN_RIG_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(EVENT_CFLAGS) \
	$(SQLITE_CFLAGS) $(SODIUM_CFLAGS)
tests_unit_test_turn_adopt_SOURCES = tests/unit/test_turn_adopt.c $(TURN_RIG)
tests_unit_test_turn_adopt_CFLAGS = $(TURN_RIG_CFLAGS)
tests_unit_test_turn_adopt_LDADD = $(TURN_TEST_LDADD)
tests_unit_test_turn_sweep_SOURCES = tests/unit/test_turn_sweep.c $(TURN_RIG)
tests_unit_test_turn_sweep_CFLAGS = $(TURN_RIG_CFLAGS)
tests_unit_test_turn_sweep_LDADD = $(TURN_TEST_LDADD)
