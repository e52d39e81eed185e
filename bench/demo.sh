#!/bin/sh
# Shows what holdfast is for, on a Debian 12 as root: installs what is missing,
# builds, plays the paper's suite on the built-in providers with both systems,
# prints the table, and checks what it says.  Ends with 0 only if all of it
# holds.  Builds in ./build-demo beside the sources (BUILD=DIR: elsewhere).
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$top/build-demo}
packages="build-essential autoconf automake autoconf-archive pkg-config
libevent-dev libcurl4-openssl-dev libjansson-dev libsodium-dev libsqlite3-dev
libconfuse-dev python3"

say() { printf '== %s\n' "$*"; }

missing=
for p in $packages; do
	case $(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null) in
	installed) ;;
	*) missing="$missing $p" ;;
	esac
done
if [ -n "$missing" ]; then
	say "installing$missing"
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -q >/dev/null
	# shellcheck disable=SC2086
	apt-get install -q -y --no-install-recommends $missing >/dev/null
fi

say "building in $build"
mkdir -p "$build"
log=$build/build.log
if ! {
	cd "$top"
	[ -x configure ] || ./autogen.sh
	cd "$build"
	[ -f Makefile ] || "$top/configure"
	make -j"$(nproc)" holdfast continuitybench
} >"$log" 2>&1; then
	tail -n 40 "$log" >&2
	say "the build failed; all of it is in $log" >&2
	exit 1
fi

say "playing the suite: 5 runs, 100 conversations at once, both systems"
rm -f "$build/demo.json"
start=$(date +%s)
code=0
"$build/continuitybench" run --suite paper --runs 5 --concurrency 100 \
    --json "$build/demo.json" "$@" || code=$?
seconds=$(($(date +%s) - start))
[ -f "$build/demo.json" ] || exit 1

say "checking"
python3 - "$build/demo.json" "$seconds" "$code" <<'EOF'
import json
import sys

with open(sys.argv[1], encoding="utf-8") as f:
    report = json.load(f)
seconds, code = int(sys.argv[2]), int(sys.argv[3])
base = report["systems"]["baseline"]["cpr"]
hold = report["systems"]["holdfast"]["cpr"]
counts = report["counts"]
probes = report["run"]["runs"] * report["suite"]["conversations"]
checks = [
    ("stateless baseline: %d of %d preserved" % (base["k"], base["n"]),
     base["k"] == 0 and base["n"] == probes),
    ("holdfast: %d of %d preserved" % (hold["k"], hold["n"]),
     hold["k"] == hold["n"] == probes),
    ("bleed: %d" % counts["bleed"], counts["bleed"] == 0),
    ("payloads that are not the history: %d of %d" % (
        counts["bad_payloads"], counts["payloads"]),
     counts["bad_payloads"] == 0 and counts["payloads"] > 2 * probes),
    ("probes that failed over: %d" % counts["failed_over"],
     counts["failed_over"] == 2 * probes),
    ("the run took %d s" % seconds, seconds < 240),
    ("the benchmark's own verdict: exit %d" % code, code == 0),
]
for text, ok in checks:
    print("%-4s %s" % ("ok" if ok else "FAIL", text))
sys.exit(0 if all(ok for _, ok in checks) else 1)
EOF
