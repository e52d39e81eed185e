check_PROGRAMS += tests/unit/test_head tests/unit/test_front \
	tests/unit/test_held \
	tests/unit/test_upstream
TESTS += tests/unit/test_head tests/unit/test_front \
	tests/unit/test_held tests/unit/test_upstream
HTTP_TEST_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(EVENT_CFLAGS)
HTTP_TEST_LIBS = $(GATEWAY_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
tests_unit_test_head_SOURCES = tests/unit/test_head.c
tests_unit_test_head_CFLAGS = $(HTTP_TEST_CFLAGS)
tests_unit_test_head_LDADD = $(HTTP_TEST_LIBS)
tests_unit_test_held_SOURCES = tests/unit/test_held.c
tests_unit_test_held_CFLAGS = $(HTTP_TEST_CFLAGS)
tests_unit_test_held_LDADD = $(HTTP_TEST_LIBS)
tests_unit_test_front_SOURCES = tests/unit/test_front.c tests/unit/peer.c \
	tests/unit/peer.h
tests_unit_test_front_CFLAGS = $(HTTP_TEST_CFLAGS)
tests_unit_test_front_LDADD = $(HTTP_TEST_LIBS)
tests_unit_test_upstream_SOURCES = tests/unit/test_upstream.c \
	tests/unit/peer.c tests/unit/peer.h
tests_unit_test_upstream_CFLAGS = $(HTTP_TEST_CFLAGS) $(CURL_CFLAGS)
tests_unit_test_upstream_LDADD = $(HTTP_TEST_LIBS)
