if HAVE_CMOCKA
check_PROGRAMS += tests/unit/test_conf
TESTS += tests/unit/test_conf
endif
tests_unit_test_conf_SOURCES = tests/unit/test_conf.c
tests_unit_test_conf_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_conf_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)
