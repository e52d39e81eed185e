if HAVE_CMOCKA
check_PROGRAMS += tests/unit/test_conf tests/unit/test_ctl tests/unit/test_docs
TESTS += tests/unit/test_conf tests/unit/test_ctl tests/unit/test_docs
endif
tests_unit_test_conf_SOURCES = tests/unit/test_conf.c
tests_unit_test_conf_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_conf_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)

tests_unit_test_ctl_SOURCES = tests/unit/test_ctl.c
tests_unit_test_ctl_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_ctl_LDADD = $(CTL_LIBS) $(CMOCKA_LIBS)

tests_unit_test_docs_SOURCES = tests/unit/test_docs.c
tests_unit_test_docs_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_docs_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)

TESTS += tests/unit/ctl_client.t
EXTRA_DIST += tests/unit/ctl_client.t
