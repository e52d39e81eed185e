# The JSON scanner, the SSE parser, the dialects.
WIRE_TEST_LIBS = libgateway.a $(BASE_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/unit/test_json
TESTS += tests/unit/test_json

tests_unit_test_json_SOURCES = tests/unit/test_json.c
tests_unit_test_json_LDADD = $(WIRE_TEST_LIBS)

check_PROGRAMS += tests/unit/test_sse
TESTS += tests/unit/test_sse
tests_unit_test_sse_SOURCES = tests/unit/test_sse.c
tests_unit_test_sse_LDADD = $(WIRE_TEST_LIBS)
