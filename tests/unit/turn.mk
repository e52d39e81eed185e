TURN_TEST_LDADD = $(GATEWAY_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += tests/unit/test_align tests/unit/test_plan
TESTS += tests/unit/test_align tests/unit/test_plan

tests_unit_test_align_SOURCES = tests/unit/test_align.c
tests_unit_test_align_LDADD = $(TURN_TEST_LDADD)
tests_unit_test_plan_SOURCES = tests/unit/test_plan.c
tests_unit_test_plan_LDADD = $(TURN_TEST_LDADD)
