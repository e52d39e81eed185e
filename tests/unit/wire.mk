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

check_PROGRAMS += tests/unit/test_retry_hint
TESTS += tests/unit/test_retry_hint
tests_unit_test_retry_hint_SOURCES = tests/unit/test_retry_hint.c
tests_unit_test_retry_hint_LDADD = $(WIRE_TEST_LIBS)

check_PROGRAMS += tests/unit/test_openai
TESTS += tests/unit/test_openai
tests_unit_test_openai_SOURCES = tests/unit/test_openai.c \
	tests/unit/wire_util.c tests/unit/wire_util.h
tests_unit_test_openai_LDADD = $(WIRE_TEST_LIBS)

check_PROGRAMS += tests/unit/test_anthropic
TESTS += tests/unit/test_anthropic
tests_unit_test_anthropic_SOURCES = tests/unit/test_anthropic.c \
	tests/unit/wire_util.c tests/unit/wire_util.h
tests_unit_test_anthropic_LDADD = $(WIRE_TEST_LIBS)

check_PROGRAMS += tests/unit/test_openai_requests
TESTS += tests/unit/test_openai_requests
tests_unit_test_openai_requests_SOURCES = tests/unit/test_openai_requests.c \
	tests/unit/wire_util.c tests/unit/wire_util.h
tests_unit_test_openai_requests_LDADD = $(WIRE_TEST_LIBS)

check_PROGRAMS += tests/unit/test_anthropic_requests
TESTS += tests/unit/test_anthropic_requests
tests_unit_test_anthropic_requests_SOURCES = tests/unit/test_anthropic_requests.c \
	tests/unit/wire_util.c tests/unit/wire_util.h
tests_unit_test_anthropic_requests_LDADD = $(WIRE_TEST_LIBS)
