#!/bin/sh
# Build holdfast and run its tests; on Debian 12 as root this installs what is
# missing first.  The last line is "N passed, N failed"; the exit status is 0
# only if tests ran and none failed.
#
#   tests/run.sh [--asan] [--long] [--no-install] [TEST...]
#
#   --asan	with AddressSanitizer and UndefinedBehaviorSanitizer
#   --long	the long forms of the tests that have one
#   --no-install	never call apt-get
#   TEST	only these, e.g. tests/regress/05-failover.t
set -u
cd "$(dirname "$0")/.." || exit 1
top=$(pwd)
build=build-test
options="--enable-werror --enable-faults"
install=yes
only=

while [ $# -gt 0 ]; do
	case $1 in
	--asan)
		build=build-test-asan
		options="$options --enable-asan"
		HF_TIME_SCALE=${HF_TIME_SCALE:-4}
		export HF_TIME_SCALE
		;;
	--long)
		HF_TEST_LONG=1
		export HF_TEST_LONG
		;;
	--no-install) install=no ;;
	-*)
		sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
		exit 2
		;;
	*) only="$only $1" ;;
	esac
	shift
done

finish() {	# finish PASSED FAILED
	echo "$1 passed, $2 failed"
	[ "$2" -eq 0 ] && [ "$1" -gt 0 ]
	exit
}
broken() {
	echo "tests/run.sh: $*"
	finish 0 1
}

packages="gcc libc6-dev make autoconf automake autoconf-archive pkg-config
	python3 util-linux libsqlite3-dev libevent-dev libcurl4-openssl-dev
	libjansson-dev libsodium-dev libconfuse-dev libcmocka-dev
	pmccabe mandoc"

if [ $install = yes ] && command -v dpkg-query >/dev/null 2>&1; then
	missing=
	for p in $packages; do
		dpkg-query -W -f '${Status}\n' "$p" 2>/dev/null |
		    grep -q 'ok installed' || missing="$missing $p"
	done
	if [ -n "$missing" ]; then
		echo "installing:$missing"
		[ "$(id -u)" -eq 0 ] || broken "not root: install$missing"
		DEBIAN_FRONTEND=noninteractive
		export DEBIAN_FRONTEND
		# shellcheck disable=SC2086
		{ apt-get update -q && apt-get install -q -y \
		    --no-install-recommends $missing; } </dev/null >&2 ||
		    broken "apt-get failed"
	fi
fi

# Node is needed by the tests with real clients only: without it those skip.
if [ $install = yes ] && ! command -v npm >/dev/null 2>&1 &&
    command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" -eq 0 ]; then
	echo "installing: nodejs npm"
	{ apt-get update -q && DEBIAN_FRONTEND=noninteractive \
	    apt-get install -q -y --no-install-recommends nodejs npm; } \
	    </dev/null >&2 || echo "tests/run.sh: no nodejs and npm"
fi

jobs=$(nproc 2>/dev/null || echo 2)
[ -x configure ] && [ configure -nt configure.ac ] || ./autogen.sh >&2 ||
    broken "autogen.sh failed"
mkdir -p $build
cd $build || broken "no directory $build"
if [ ! -f Makefile ]; then
	# shellcheck disable=SC2086
	../configure -q $options >&2 || broken "configure failed"
fi
# The client libraries come while the compiler runs.
mkdir -p tests/clients
sh ../tests/clients/install.sh tests/clients/node 2>clients.err </dev/null &
clients=$!
make -s -j"$jobs" >&2 </dev/null || broken "the build failed"
wait $clients ||
    echo "tests/run.sh: no client libraries: $(tail -1 clients.err)"
find . -name '*.trs' -exec rm -f {} +

# Tests wait more than they compute.
jobs=$((jobs + 1))
began=$(date +%s)
if [ -n "$only" ]; then
	make -s -j"$jobs" check TESTS="$only" </dev/null
else
	make -s -j"$jobs" check </dev/null
fi >check.out 2>&1
status=$?
took=$(($(date +%s) - began))

# Results over all programs.  A program that ended with a status because a
# case of it failed is not one failure more (ERROR counts on its own only).
results=$(find . -name '*.trs' -exec awk '
	FNR == 1 { failed = 0 }
	/^:test-result: / {
		if ($2 == "FAIL") failed = 1
		if ($2 != "ERROR" || !failed) print $2
	}' {} +)
count() {
	echo "$results" | grep -c "^$1\$"
}
passed=$(count PASS)
skipped=$(count SKIP)
failed=$(($(count FAIL) + $(count ERROR) + $(count XPASS)))
passed=$((passed + $(count XFAIL)))

if [ $status -ne 0 ]; then
	# Each test's failing cases, with the diagnostics that follow them.
	find . -name '*.trs' | sort | while read -r trs; do
		grep -q -e '^:test-result: \(FAIL\|ERROR\|XPASS\)' "$trs" ||
		    continue
		echo "=== ${trs%.trs}"
		awk '/^not ok|^Bail out/ { show = 1; left = 120 }
		     /^ok/ { show = 0 }
		     show && left-- > 0' "${trs%.trs}.log" |
		    sed "s|$top/||g" | cut -c1-400
		grep -e '^:test-result: ERROR' "$trs"
	done
	# Compiler errors of the test programs are not in any log.
	grep -n -e '[0-9]: error:' -e '\*\*\*' check.out | head -20
	[ "$failed" -gt 0 ] || failed=1
fi
echo "suite: $(find . -name '*.trs' | grep -c .) test programs," \
    "$took s, $skipped skipped, logs in $build"
finish "$passed" "$failed"
