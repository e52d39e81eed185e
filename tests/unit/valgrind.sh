#!/bin/sh
# Run unit tests and the replays of the fuzz corpora under valgrind's memcheck:
# a bad access, a use of uninitialized memory or a leak fails.  "make
# check-valgrind" calls this with all check programs; those that are no tests
# (helpers of other tests) are named.  Tests see HF_VALGRIND=1; what they skip
# for it is told.  JOBS=N: at once; default the number of processors.
set -u

if [ "${1:-}" = --one ]; then
	log=valgrind/$(basename "$2").log
	began=$(date +%s)
	CMOCKA_MESSAGE_OUTPUT=STDOUT timeout "${HF_VALGRIND_LIMIT_S:-900}" \
	    valgrind --quiet --error-exitcode=99 --leak-check=full \
	    --show-leak-kinds=definite,indirect,possible \
	    --errors-for-leak-kinds=definite,indirect,possible \
	    "$2" >"$log" 2>&1 </dev/null
	status=$?
	case $status in
	0) result=ok ;;
	99) result="FAILED: valgrind found errors" ;;
	124) result="FAILED: it did not end in time" ;;
	*) result="FAILED: exit status $status" ;;
	esac
	skipped=$(grep '^\[  SKIPPED \] ' "$log" |
	    grep -v 'listed below:$' | sed 's/.*\] //' | sort -u |
	    tr '\n' ' ')
	printf '%-36s %4s s  %s%s\n' "$2" $(($(date +%s) - began)) "$result" \
	    "${skipped:+, skipped: $skipped}"
	[ $status -eq 0 ]
	exit
fi

if ! command -v valgrind >/dev/null 2>&1; then
	echo "$0: valgrind is missing" >&2
	exit 1
fi
tests=
n=0
for p in "$@"; do
	case $p in
	tests/unit/test_* | tests/fuzz/replay_*)
		tests="$tests $p"
		n=$((n + 1))
		;;
	*) echo "$p: no unit test, not run" ;;
	esac
	if grep -q __asan_init "$p"; then
		echo "$0: $p is built with ASan; valgrind needs a build" \
		    "without" >&2
		exit 1
	fi
done
if [ $n -eq 0 ]; then
	echo "$0: no tests" >&2
	exit 1
fi
mkdir -p valgrind || exit 1
export HF_VALGRIND=1
# shellcheck disable=SC2086
if printf '%s\n' $tests | xargs -P "${JOBS:-$(nproc 2>/dev/null || echo 1)}" \
    -n 1 sh "$0" --one; then
	echo "valgrind: $n programs, no errors"
else
	echo "valgrind: failed, logs in valgrind/"
	exit 1
fi
