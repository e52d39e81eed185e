# Lints print TAP like the other tests; each finds planted faults first.
TEST_EXTENSIONS += .py
PY_LOG_DRIVER = $(LOG_DRIVER)
PY_LOG_COMPILER = $(PYTHON3)
TESTS += tests/lint/includes.py tests/lint/banned.py tests/lint/tables.py \
	tests/lint/limits.sh tests/lint/format.sh tests/lint/man.sh
EXTRA_DIST += tests/lint/common.py tests/lint/includes.py \
	tests/lint/banned.py tests/lint/tables.py tests/lint/limits.sh \
	tests/lint/format.sh tests/lint/man.sh
