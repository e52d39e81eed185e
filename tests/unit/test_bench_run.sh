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
says "and those about streams" '^midstream ' "$tmp/out"
says "and those about streams" '^rolling ' "$tmp/out"
says "and its knobs" '--knobs quota=15' "$tmp/out"
check "a knob that a suite has not" 2 "$bench" run --suite paper \
    --knobs quota=3
check "a knob out of range" 2 "$bench" run --suite storm --knobs quota=0
check "no verb" 2 "$bench"
check "unknown verb" 2 "$bench" frobnicate
check "unknown option" 2 "$bench" run --frobnicate
check "bad number" 2 "$bench" run --runs 0
check "bad rate" 2 "$bench" run --require 1.5
check "bad history" 2 "$bench" run --history some
check "unknown system" 2 "$bench" run --systems holdfast,other
check "a system twice" 2 "$bench" run --systems holdfast,holdfast
check "conversations without their failures" 2 "$bench" run \
    --conversations "$tmp/c.json"
check "a suite and a set" 2 "$bench" run --suite paper \
    --conversations "$tmp/c.json" --manifest "$tmp/m.json"
check "kills where nothing was started" 2 "$bench" run --kill-workers 100 \
    --target http://127.0.0.1:1/v1
check "bad retries" 2 "$bench" run --retries -1
check "unknown suite" 2 "$bench" run --suite other
check "bad size" 2 "$bench" run --suite midstream --size 0
check "a suite of one size" 2 "$bench" run --suite paper --size 54
check "a suite of too many" 2 "$bench" run --suite rolling --size 99999
check "a set has its size" 2 "$bench" run --size 54 \
    --conversations "$tmp/c.json" --manifest "$tmp/m.json"
check "a daemon that is not there" 4 "$bench" run --quiet \
    --holdfast "$tmp/none" --keep "$tmp/none.d"
check "a daemon that ends at once" 4 "$bench" run --quiet \
    --holdfast /bin/false --keep "$tmp/false.d"
check "providers: bad address" 2 "$bench" providers --listen primary=nowhere
check "providers: unknown suite" 2 "$bench" providers --suite other
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

# Each suite, a little of it.
check "all suites" 0 run all.d --suite all --size 6 --runs 1 \
    --systems holdfast --idle-ms 1000
says "each is told" '^suite failback: exit 0' "$tmp/out"
says "each is reported" '"failback": {' "$tmp/all.d.json"

# A published set, made here: 60 conversations of 3 to 13 messages, 20 facts,
# four probes, each behind one of three failures.
python3 - "$tmp/c.json" "$tmp/m.json" <<'EOF'
import json
import sys

convs, rows = [], []
ask = ["What is in the %s box?" % c for c in ("red", "blue", "green", "old")]
for i in range(60):
    kind = i % 4
    fact = "item %d" % (10 + i % 20)
    turns = ["In the %s box there is %s, believe me." % (
        ("red", "blue", "green", "old")[kind], fact), "I see."]
    for k in range(i % 6):
        turns += ["Tell me number %d." % k, "Number %d, told." % k]
    turns.append(ask[kind])
    convs.append({
        "id": "set-%02d" % i, "fact_turn_index": 0,
        "probe_turn_index": len(turns) - 1, "expected_fact": fact,
        "fact_type": "box", "turns": [
            {"role": ("user", "assistant")[n % 2], "content": t}
            for n, t in enumerate(turns)]})
    rows.append({
        "conversation_id": "set-%02d" % i, "failure_turn": len(turns) - 1,
        "mode": ("timeout", "api_error", "rate_limit")[i % 3],
        "fallback_provider": None})
with open(sys.argv[1], "w", encoding="utf-8") as f:
    json.dump(convs, f)
with open(sys.argv[2], "w", encoding="utf-8") as f:
    json.dump(rows, f)
convs[7]["turns"][2]["role"] = "system"
with open(sys.argv[1] + ".bad", "w", encoding="utf-8") as f:
    json.dump(convs, f)
EOF
set="--conversations $tmp/c.json --manifest $tmp/m.json"
# shellcheck disable=SC2086
check "a published set: all preserved" 0 run set.d --runs 2 --paper $set
says "the paper's first table" '^Treatment (holdfast)  *120 / 120  *100.00   \[96.90, 100.00\]$' "$tmp/out"
says "the paper's second table" '^Pooled  *0 / 120  *0.0   \[0.0, 3.1\]  *120 / 120 ' "$tmp/out"
says "the paper's third table" '^CLO (paired)  *[+-]' "$tmp/out"
says "the paper's fourth table" '^13  *10  *0.0% ' "$tmp/out"
says "the baseline lost all" '^  all  *0/120 ' "$tmp/out"
says "holdfast kept all" ' 120/120 100.0 %' "$tmp/out"
says "each payload was judged" 'failed_over=240 unasked=[0-9]* not_failed_over=0' "$tmp/out"
check "the same of the report" 0 "$bench" report --paper "$tmp/set.d.json"
says "the paper's first table" '^Baseline (stateless)  *0 / 120  *0.00 ' "$tmp/out"
# shellcheck disable=SC2086
check "the set, full history, streams" 0 run set2.d --runs 1 \
    --history full --stream $set
check "a malformed set" 2 "$bench" run --conversations "$tmp/c.json.bad" \
    --manifest "$tmp/m.json"
says "file, conversation and member are named" \
    "c.json.bad: conversation set-07: turns\[2\]: role: expected" "$tmp/err"
check "providers of a set without failures" 2 "$bench" providers \
    --conversations "$tmp/c.json"

# Workers die by kill -9 while clients repeat what broke.  A silent provider is
# left soon here: a try that waits for it must outlive some kills.
check "kills and retries: all preserved" 0 run kill.d --runs 3 --workers 4 \
    --first-token-ms 400 --kill-workers 500 --retries 20
says "the baseline lost all" '^  all  *0/450 ' "$tmp/out"
says "holdfast kept all" ' 450/450 100.0 %' "$tmp/out"
says "the store is sound" "sessions verify --all: exit 0" "$tmp/out"
says "workers were killed" 'kills=[1-9]' "$tmp/out"
says "no turn is there twice" 'doubled=0' "$tmp/out"

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
