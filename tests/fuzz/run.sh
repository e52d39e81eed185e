#!/bin/sh
# Build all fuzz targets with clang, ASan and UBSan in a directory of their
# own, and let libFuzzer run each over its corpus.  Prints a line per target;
# the exit status is 0 only if each ran its time and found nothing.
#
#   tests/fuzz/run.sh [-j N] [SECONDS [TARGET...]]
#
#   -j N	N targets at a time; default 1
#   SECONDS	for each target; default 600
#   TARGET	only these, e.g. fuzz_json; default all
#
# Builds in ./build-fuzz beside the sources (BUILD=DIR: elsewhere).  There are
# then: corpus/TARGET (inputs that reached something new; they start the next
# run), findings/TARGET-* and logs/TARGET.log.
set -u

if [ "${1:-}" = --one ]; then	# one target, for xargs below
	t=$2
	name=${t#fuzz_}
	mkdir -p "corpus/$t"
	rm -f "findings/$t-"*
	began=$(date +%s)
	"tests/fuzz/$t" -max_total_time="$HF_FUZZ_SECONDS" -timeout=20 \
	    -rss_limit_mb=2048 -print_final_stats=1 \
	    -artifact_prefix="findings/$t-" "corpus/$t" \
	    "$HF_FUZZ_CORPUS/$name" >"logs/$t.log" 2>&1 </dev/null
	status=$?
	took=$(($(date +%s) - began))
	runs=$(sed -n 's/^stat::number_of_executed_units: *//p' \
	    "logs/$t.log" | tail -n 1)
	found=$(ls "findings/$t-"* 2>/dev/null | tr '\n' ' ')
	result=ok
	if [ -n "$found" ]; then
		result="FINDING: $found"
	elif [ $status -ne 0 ]; then
		result="FAILED: exit status $status, see logs/$t.log"
	elif [ "${runs:-0}" -eq 0 ] || [ $took -lt "$HF_FUZZ_SECONDS" ]; then
		result="FAILED: it stopped early, see logs/$t.log"
	fi
	printf '%-18s %10s runs %5s s  %s\n' "$t" "${runs:-?}" "$took" \
	    "$result"
	[ "$result" = ok ]
	exit
fi

cd "$(dirname "$0")/../.." || exit 1
top=$(pwd)
build=${BUILD:-$top/build-fuzz}
jobs=1
if [ "${1:-}" = -j ]; then
	jobs=${2:-}
	shift
	[ $# -eq 0 ] || shift
fi
seconds=${1:-600}
[ $# -eq 0 ] || shift
case $seconds:$jobs in
*[!0-9:]* | :* | *: | 0:* | *:0)
	sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
	exit 2
	;;
esac
if ! command -v clang >/dev/null 2>&1; then
	echo "tests/fuzz/run.sh: clang is missing (Debian: clang," \
	    "libclang-rt-dev or libclang-common-*-dev)" >&2
	exit 1
fi

# One target a source; one that the Makefile does not know fails the build.
targets=
for f in tests/fuzz/fuzz_*.c; do
	t=${f##*/}
	targets="$targets ${t%.c}"
done
[ $# -eq 0 ] || targets=$*
[ -x configure ] && [ ! configure.ac -nt configure ] || ./autogen.sh >&2 ||
    exit 1
mkdir -p "$build/findings" "$build/logs" || exit 1
cd "$build" || exit 1
if [ ! -f Makefile ]; then
	"$top/configure" -q CC=clang --enable-asan --enable-fuzzers >&2 ||
	    exit 1
fi
programs=
for t in $targets; do
	programs="$programs tests/fuzz/$t"
done
# shellcheck disable=SC2086
if ! make -j"$(nproc 2>/dev/null || echo 2)" $programs >logs/build.log 2>&1
then
	tail -n 40 logs/build.log >&2
	echo "tests/fuzz/run.sh: the build failed" >&2
	exit 1
fi

export HF_FUZZ_SECONDS="$seconds" HF_FUZZ_CORPUS="$top/tests/fuzz/corpus"
# shellcheck disable=SC2086
if printf '%s\n' $targets | xargs -P "$jobs" -n 1 sh "$top/tests/fuzz/run.sh" \
    --one; then
	echo "fuzzing: $(echo "$targets" | wc -w) targets, $seconds s each," \
	    "nothing found"
else
	echo "fuzzing: failed; inputs are in $build/findings"
	exit 1
fi
