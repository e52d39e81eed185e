# The ground floor.
BASE_TESTS = tests/unit/test_base_mem tests/unit/test_base_run \
	tests/unit/test_budget tests/unit/test_hold tests/unit/test_shm \
	tests/unit/test_quota tests/unit/test_target tests/unit/test_figures
check_PROGRAMS += $(BASE_TESTS)
TESTS += $(BASE_TESTS)

tests_unit_test_base_mem_SOURCES = tests/unit/test_base_mem.c
tests_unit_test_base_mem_CFLAGS = $(AM_CFLAGS) $(SODIUM_CFLAGS) \
	$(CMOCKA_CFLAGS)
tests_unit_test_base_mem_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)
tests_unit_test_base_run_SOURCES = tests/unit/test_base_run.c
tests_unit_test_base_run_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_base_run_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)
tests_unit_test_hold_SOURCES = tests/unit/test_hold.c
tests_unit_test_hold_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_hold_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)
tests_unit_test_shm_SOURCES = tests/unit/test_shm.c
tests_unit_test_shm_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_shm_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)
tests_unit_test_target_SOURCES = tests/unit/test_target.c
tests_unit_test_target_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_target_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)
tests_unit_test_budget_SOURCES = tests/unit/test_budget.c
tests_unit_test_budget_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_budget_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)
tests_unit_test_figures_SOURCES = tests/unit/test_figures.c
tests_unit_test_figures_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_figures_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)
tests_unit_test_quota_SOURCES = tests/unit/test_quota.c
tests_unit_test_quota_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_quota_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)
