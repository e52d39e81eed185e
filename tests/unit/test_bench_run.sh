#!/bin/sh
# continuitybench as a program: its verbs, its exit codes, and a short run of
# the paper's suite on the real daemon.  Prints TAP.
bench=$HF_BUILDDIR/continuitybench
tmp=$(mktemp -d "${TMPDIR:-/tmp}/hf-bench.XXXXXX") || exit 1
pid=
trap '[ -z "$pid" ] || kill "$pid"; rm -rf "$tmp"' EXIT
n=0

# check NAME STATUS COMMAND...: the exit status is the one expected.
check() {
	n=$((n + 1))
	name=$1 want=$2
	shift 2
	"$@" >"$tmp/out" 2>"$tmp/err"
	got=$?
	if [ "$got" -eq "$want" ]; then
		echo "ok $n - $name"
	else
		echo "not ok $n - $name: exit $got, not $want"
		sed 's/^/# /' "$tmp/out" "$tmp/err"
	fi
}

# says NAME PATTERN FILE
says() {
	n=$((n + 1))
	if grep -q -e "$2" "$3"; then
		echo "ok $n - $1"
	else
		echo "not ok $n - $1"
		sed 's/^/# /' "$3"
	fi
}

check "version" 0 "$bench" --version
check "help" 0 "$bench" --help
check "help of run" 0 "$bench" run --help
check "help of providers" 0 "$bench" providers --help
check "suites" 0 "$bench" suites
says "the suite is listed" '^paper ' "$tmp/out"
check "no verb" 2 "$bench"
check "unknown verb" 2 "$bench" frobnicate
check "unknown option" 2 "$bench" run --frobnicate
check "bad number" 2 "$bench" run --runs 0
check "bad rate" 2 "$bench" run --require 1.5
check "bad history" 2 "$bench" run --history some
check "unknown system" 2 "$bench" run --systems holdfast,other
check "a system twice" 2 "$bench" run --systems holdfast,holdfast
check "unknown suite" 2 "$bench" run --suite other
check "a daemon that is not there" 4 "$bench" run --quiet \
    --holdfast "$tmp/none" --keep "$tmp/none.d"
check "a daemon that ends at once" 4 "$bench" run --quiet \
    --holdfast /bin/false --keep "$tmp/false.d"
check "providers: bad address" 2 "$bench" providers --listen primary=nowhere
check "providers: bad manifest" 2 "$bench" providers --manifest "$tmp/none"

# The real thing.  A loaded machine may give up a provider that is only slow:
# that is allowed, and the wait is longer than the default's.
run() {
	dir=$1
	shift
	"$bench" run --quiet --first-token-ms 1500 --require 1 \
	    --keep "$tmp/$dir" --json "$tmp/$dir.json" "$@"
}
check "thin clients: all preserved, no bleed" 0 run thin.d --runs 2
says "the baseline lost all" '^  all  *0/300 ' "$tmp/out"
says "holdfast kept all" ' 300/300 100.0 %' "$tmp/out"
says "each payload was judged" 'failed_over=600 unasked=[0-9]* not_failed_over=0' "$tmp/out"
check "full history, streams, three workers" 0 run full.d --runs 1 \
    --history full --stream --workers 3
says "the baseline lost all" '^  all  *0/150 ' "$tmp/out"
check "no secret in the log" 1 grep -q bench-key "$tmp/thin.d/holdfast.log"
check "no content in the log" 1 grep -q -e 'allergic' -e 'CB-' \
    "$tmp/thin.d/holdfast.log"

# A stateless endpoint fails the requirement of a thin client.
mkfifo "$tmp/ports"
"$bench" providers --no-faults --with-parent >"$tmp/ports" &
pid=$!
url=
while read -r word name addr; do
	[ "$word" != ready ] || break
	[ "$name" != primary ] || url=$addr/v1
done <"$tmp/ports"
BENCH_KEY=k
export BENCH_KEY
check "any endpoint, full history" 0 "$bench" run --quiet --runs 1 \
    --target "$url" --model m --api-key-env BENCH_KEY --history full \
    --require 1
check "any endpoint, thin, without a memory" 1 "$bench" run --quiet \
    --runs 1 --target "$url" --model m --api-key-env BENCH_KEY --require 0.5
check "an endpoint without a key" 1 "$bench" run --quiet --runs 1 \
    --target "$url" --model m --require 1
says "the reason is told" 'HTTP 401' "$tmp/out"

echo "1..$n"
