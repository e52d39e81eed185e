# Tests of the built programs; each runs its own daemon and providers.
EXTRA_DIST += tests/run.sh .ci/run \
	tests/harness/client.py tests/harness/ctl.py tests/harness/daemon.py \
	tests/harness/dialect.py tests/harness/provider.py \
	tests/harness/tap.py tests/harness/validate.py tests/harness/wait.py
REGRESS_TESTS = tests/regress/00-harness.t
TESTS += $(REGRESS_TESTS)
EXTRA_DIST += $(REGRESS_TESTS)
