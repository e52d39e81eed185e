# continuitybench: suites, faithful providers, statistics.
BENCH_TESTS = tests/unit/test_bench_suite tests/unit/test_bench_dialect \
	tests/unit/test_bench_stats tests/unit/test_bench_providers \
	tests/unit/test_bench_judge tests/unit/test_bench_published \
	tests/unit/test_bench_client tests/unit/test_bench_streams \
	tests/unit/test_bench_breaks tests/unit/test_bench_gemini \
	tests/unit/test_bench_verdict tests/unit/test_bench_report \
	tests/unit/test_bench_window tests/unit/test_bench_proxy \
	tests/unit/test_bench_any
BENCH_TEST_LIBS = $(BENCH_LIBS) $(CMOCKA_LIBS)
if HAVE_CMOCKA
check_PROGRAMS += $(BENCH_TESTS)
TESTS += $(BENCH_TESTS)
endif
TESTS += tests/unit/test_bench_run.sh
EXTRA_DIST += tests/unit/test_bench_run.sh tests/unit/valgrind.sh
tests_unit_test_bench_suite_CFLAGS = $(libbench_a_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_bench_suite_LDADD = $(BENCH_TEST_LIBS)
tests_unit_test_bench_dialect_CFLAGS = $(libbench_a_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_bench_dialect_LDADD = $(BENCH_TEST_LIBS)
tests_unit_test_bench_gemini_CFLAGS = $(libbench_a_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_bench_gemini_LDADD = $(BENCH_TEST_LIBS)
tests_unit_test_bench_stats_CFLAGS = $(libbench_a_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_bench_stats_LDADD = $(BENCH_TEST_LIBS)
tests_unit_test_bench_providers_CFLAGS = $(libbench_a_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_bench_providers_LDADD = $(BENCH_TEST_LIBS)
tests_unit_test_bench_judge_CFLAGS = $(libbench_a_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_bench_judge_LDADD = $(BENCH_TEST_LIBS)
tests_unit_test_bench_published_CFLAGS = $(libbench_a_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_bench_published_LDADD = $(BENCH_TEST_LIBS)
tests_unit_test_bench_client_CFLAGS = $(libbench_a_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_bench_client_LDADD = $(BENCH_TEST_LIBS)
tests_unit_test_bench_streams_CFLAGS = $(libbench_a_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_bench_streams_LDADD = $(BENCH_TEST_LIBS)
tests_unit_test_bench_breaks_CFLAGS = $(libbench_a_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_bench_breaks_LDADD = $(BENCH_TEST_LIBS)
tests_unit_test_bench_verdict_CFLAGS = $(libbench_a_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_bench_verdict_LDADD = $(BENCH_TEST_LIBS)
tests_unit_test_bench_report_CFLAGS = $(libbench_a_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_bench_report_LDADD = $(BENCH_TEST_LIBS)
tests_unit_test_bench_window_CFLAGS = $(libbench_a_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_bench_window_LDADD = $(BENCH_TEST_LIBS)
tests_unit_test_bench_proxy_CFLAGS = $(libbench_a_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_bench_proxy_LDADD = $(BENCH_TEST_LIBS)
tests_unit_test_bench_any_CFLAGS = $(libbench_a_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_bench_any_LDADD = $(BENCH_TEST_LIBS)

# The kill campaign's tool (tests/crash/30-handover.t).
check_PROGRAMS += tests/crash/campaign
tests_crash_campaign_SOURCES = tests/crash/campaign.c tests/crash/campaign.h \
	tests/crash/campaign_client.c tests/crash/campaign_provider.c \
	tests/crash/campaign_text.c
tests_crash_campaign_CFLAGS = $(libbench_a_CFLAGS)
tests_crash_campaign_LDADD = $(BENCH_LIBS)
