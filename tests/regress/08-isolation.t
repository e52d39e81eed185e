"""100 sessions at once, each with a canary of its own, fail over at the same
moment, round after round: no payload holds a foreign canary, and each is
exactly its session's history."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import client
import provider
import tap
from daemon import Config, Daemon, shared

A = provider.Provider("openai")
B = provider.Provider("openai")
C = provider.Provider("anthropic")
SESSIONS = 100
ROUNDS = 100 if os.environ.get("HF_TEST_LONG") else 20
CANARY = re.compile(rb"canary-[0-9a-f]{12}-(\d{3})")


def make():
    conf = Config(workers=4)
    for n, p in (("a", A), ("b", B), ("c", C)):
        conf.provider(n, p, connect_ms=5000, first_token_ms=15000,
                      total_ms=30000)
    conf.route("m", ["a/model-a", "b/model-b"], deadline_ms=60000)
    conf.route("mix", ["a/model-a", "c/model-c"], deadline_ms=60000)
    return Daemon(conf).start()


get_daemon = shared(make)


def canary(i):
    return "canary-%s-%03d" % (os.urandom(6).hex(), i)


def check_payloads(t, p, expected, what):
    """Every payload is exactly the history of the session whose canary it
    holds, and each session has one."""
    seen = {}
    for q in p.requests:
        owners = {int(x) for x in CANARY.findall(q.body)}
        t.eq(len(owners), 1, what + ": canaries in one payload")
        i = owners.pop()
        t.notin(i, seen, what + ": one payload a session")
        seen[i] = q
        t.eq(p.history(q), expected[i], "%s: session %d" % (what, i))
    t.eq(len(seen), SESSIONS, what + ": sessions")


def rounds(t, model, second):
    d = get_daemon()
    names = ["%s-%d" % (model, i) for i in range(SESSIONS)]
    canaries = [canary(i) for i in range(SESSIONS)]
    told = [[] for _ in range(SESSIONS)]
    for p in (A, second):
        p.behave(provider.echo())
        p.take()
    for r in range(ROUNDS):
        gate = provider.Barrier()
        t.cleanup(gate.release)
        # All hundred stand at the first provider, then all of them fail.
        A.behave(provider.hold(gate, provider.status(503)))
        text = ["%s round %d" % (canaries[i], r) for i in range(SESSIONS)]
        waiting = [client.background(
            client.chat, d, text[i], session=names[i], model=model,
            stream=(i + r) % 2 == 1, timeout=60) for i in range(SESSIONS)]
        gate.wait_for(SESSIONS, 40)
        gate.release()
        answers = [w.get(60) for w in waiting]
        for i in range(SESSIONS):
            told[i].append(("user", text[i]))
        for p, what in ((A, "first"), (second, "second")):
            check_payloads(t, p, told, "round %d, %s" % (r, what))
            p.take()
        for i, a in enumerate(answers):
            t.eq(a.status, 200, repr(a))
            t.eq(a.text, "heard %d: %s" % (r + 1, text[i]),
                 "round %d, answer %d" % (r, i))
            t.eq({int(x) for x in CANARY.findall(a.body)}, {i},
                 "round %d: canaries in the answer" % r)
            t.eq(a.headers["x-holdfast-attempts"], "2", "attempts")
            told[i].append(("assistant", a.text))
    t.eq(A.violations + second.violations, [], "violations")
    t.eq(A.errors + second.errors, [], "errors of the harness")


@tap.case("%d rounds of 100 sessions, openai to openai" % ROUNDS, 600)
def same_dialect(t):
    rounds(t, "m", B)


@tap.case("%d rounds of 100 sessions, openai to anthropic" % ROUNDS, 600)
def other_dialect(t):
    rounds(t, "mix", C)


@tap.case("no log line holds a canary or a session's name")
def log(t):
    d = get_daemon()
    text = d.log.text()
    t.notin("canary-", text, "contents in the log")
    t.notin("mix-7", text, "a caller's name in the log")


if __name__ == "__main__":
    tap.main()
