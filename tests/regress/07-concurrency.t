"""Turns of one session at the same time, through all workers: one after the
other in order of arrival, nothing lost, nothing doubled, woken at once."""
import itertools
import json
import os
import re
import sys
import time

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import client
import provider
import tap
import wait
from daemon import Config, Daemon, shared

A = provider.Provider("openai")
N = 20
_names = itertools.count(1)


def make():
    conf = Config(workers=4, queue_limit=32)
    conf.provider("a", A, first_token_ms=20000)
    conf.route("m", ["a/model-a"])
    conf.route("late", ["a/model-a"], deadline_ms=500)
    return Daemon(conf).start()


get_daemon = shared(make)


def fresh():
    A.behave(provider.echo())
    A.take()
    return get_daemon(), "together-%d" % next(_names)


def check_history(t, d, session, texts=None):
    """N turns, complete, in one line, each a user message and its answer;
    every payload is the one before it and two messages more."""
    shown = d.session(session)
    turns = shown["turns"]
    t.eq([x["seq"] for x in turns], list(range(1, N + 1)), "no gap")
    t.eq([x["parent_seq"] for x in turns], list(range(0, N)), "one line")
    t.eq({x["state"] for x in turns}, {"complete"}, "states")
    t.ok(all(x["on_path"] for x in turns), "all on the path")
    items = [(x["turn_seq"], x["role"], json.loads(x["body"])["content"])
             for x in shown["items"]]
    t.eq([(n, role) for n, role, _ in items],
         [(n, role) for n in range(1, N + 1)
          for role in ("user", "assistant")], "pairs are adjacent")
    for n in range(N):
        said = items[2 * n][2]
        t.eq(items[2 * n + 1][2], "heard %d: %s" % (n + 1, said),
             "the answer belongs to its question")
    said = [items[2 * n][2] for n in range(N)]
    t.eq(sorted(said), sorted(texts or ["turn %d" % i for i in range(N)]),
         "every turn once")
    t.eq(len(A.requests), N, "one call a turn")
    told = []
    for n, got in enumerate(A.histories()):
        told.append(("user", said[n]))
        t.eq(got, told, "payload %d" % (n + 1))
        told.append(("assistant", "heard %d: %s" % (n + 1, said[n])))
    t.eq(shown["session"]["locked"], False, "the lease is free")
    t.eq(shown["session"]["queued"], 0, "nothing waits")
    return said


def who_served(d, session_id):
    """Process ids of the workers that logged this session's turns."""
    return {int(m.group(1)) for m in d.log.find(
        r"\[(\d+)\].* turn: done session=%s" % session_id)}


@tap.case("20 turns at once: in one line, adjacent, no gap", 60)
def at_once(t):
    d, n = fresh()
    # Each worker has as many of the callers as any other.
    pids = sorted(d.workers().values())
    conns = []
    for i in range(N):
        conns.append(d.connect_to(pids[i % len(pids)]))
        t.cleanup(conns[-1].close)
    calls = [lambda i=i: client.chat(d, "turn %d" % i, session=n,
                                     stream=i % 2 == 1, connection=conns[i])
             for i in range(N)]
    rs = client.together(calls)
    for i, r in enumerate(rs):
        t.eq(r.status, 200, repr(r))
        t.ok(re.match(r"^heard \d+: turn %d$" % i, r.text), r.text)
        t.eq(r.finish, "stop", "finish")
    t.eq(len({r.headers["x-holdfast-session"] for r in rs}), 1, "one session")
    t.eq(len({r.headers["x-holdfast-turn"] for r in rs}), N, "N turns")
    check_history(t, d, n)
    t.eq(who_served(d, rs[0].headers["x-holdfast-session"]), set(pids),
         "all workers took part")


@tap.case("they are answered in order of arrival", 60)
def in_order(t):
    d, n = fresh()
    gate = provider.Barrier()
    t.cleanup(gate.release)
    A.behave(provider.hold(gate, provider.echo()))
    waiting = [client.background(client.chat, d, "turn 0", session=n,
                                 timeout=40)]
    gate.wait_for(1)
    for i in range(1, N):
        waiting.append(client.background(client.chat, d, "turn %d" % i,
                                         session=n, timeout=40,
                                         stream=i % 2 == 1))
        # The next one is sent when this one is known to wait.
        wait.until(lambda: d.session(n)["session"]["queued"] == i, 10,
                   "%d turns in the queue" % i, step=0.01)
    t.eq(gate.arrived, 1, "only one is being answered")
    gate.release()
    for i, w in enumerate(waiting):
        r = w.get()
        t.eq((r.status, r.text), (200, "heard %d: turn %d" % (i + 1, i)),
             "turn %d" % i)
    said = check_history(t, d, n)
    t.eq(said, ["turn %d" % i for i in range(N)], "order")


@tap.case("a waiting turn is woken at once, not by polling", 60)
def woken(t):
    d, n = fresh()
    gate = provider.Barrier()
    t.cleanup(gate.release)
    A.behave(provider.hold(gate, provider.echo()))
    gaps = []
    first = client.background(client.chat, d, "turn 0", session=n)
    gate.wait_for(1)
    waiting = [client.background(client.chat, d, "turn %d" % i, session=n,
                                 timeout=40) for i in range(1, 11)]
    wait.until(lambda: d.session(n)["session"]["queued"] == 10, 10,
               "ten turns in the queue")
    gate.release()
    for w in [first] + waiting:
        t.eq(w.get().status, 200, "answered")
    for i in range(1, 11):
        gaps.append(A.requests[i].time - A.requests[i - 1].ended)
    gaps.sort()
    t.diag("from an answer to the next call: median %.1f ms, worst %.1f ms" %
           (gaps[5] * 1000, gaps[-1] * 1000))
    t.between(gaps[5], 0, 0.05 * tap.SCALE, "median seconds to the next call")


@tap.case("turns of other sessions do not wait")
def others(t):
    d, n = fresh()
    gate = provider.Barrier()
    t.cleanup(gate.release)
    A.script(provider.hold(gate, provider.echo()))
    held = client.background(client.chat, d, "held", session=n, timeout=40)
    gate.wait_for(1)
    queued = client.background(client.chat, d, "queued", session=n,
                               timeout=40)
    for i in range(20):
        r = client.chat(d, "hi", session="%s-%d" % (n, i), timeout=5)
        t.eq((r.status, r.text), (200, "heard 1: hi"), "session %d" % i)
    t.eq((held.result, queued.result), (None, None), "these still wait")
    gate.release()
    t.eq(held.get().text, "heard 1: held", "held")
    t.eq(queued.get().text, "heard 2: queued", "queued")


@tap.case("a queued turn whose client leaves is not answered")
def queued_leaver(t):
    d, n = fresh()
    gate = provider.Barrier()
    t.cleanup(gate.release)
    A.script(provider.hold(gate, provider.echo()))
    held = client.background(client.chat, d, "one", session=n, timeout=40)
    gate.wait_for(1)
    with client.Connection(d.addr) as c:
        c.request("POST", "/v1/chat/completions", client.headers_of(n),
                  json.dumps(client.body_of("left")).encode())
        wait.until(lambda: d.session(n)["session"]["queued"] == 1, 10,
                   "a queued turn")
    wait.until(lambda: d.session(n)["session"]["queued"] == 0, 10,
               "the queued turn to go")
    behind = client.background(client.chat, d, "two", session=n, timeout=40)
    wait.until(lambda: d.session(n)["session"]["queued"] == 1, 10,
               "the next queued turn")
    gate.release()
    t.eq(held.get().text, "heard 1: one", "held")
    r = behind.get()
    t.eq(r.status, 200, repr(r))
    got = A.history(A.requests[-1])
    t.eq(got[0], ("user", "one"), "history")
    t.eq(got[-1], ("user", "two"), "history")
    t.eq(len(A.requests), 2, "no call for the one that left")


@tap.case("a queued turn keeps its deadline")
def queued_deadline(t):
    d, n = fresh()
    gate = provider.Barrier()
    t.cleanup(gate.release)
    A.script(provider.hold(gate, provider.echo()))
    held = client.background(client.chat, d, "one", session=n, timeout=40)
    gate.wait_for(1)
    r = client.chat(d, "two", session=n, model="late", timeout=20)
    t.eq(r.status, 504, repr(r))
    t.between(r.took, 0.45, 1.0 * tap.SCALE, "seconds")
    gate.release()
    t.eq(held.get().status, 200, "the first one")
    r = client.chat(d, "three", session=n)
    t.eq(r.status, 200, "the session goes on")


@tap.case("over the queue's limit a turn is refused, the others are served")
def queue_limit(t):
    conf = Config(workers=2, queue_limit=3)
    conf.provider("a", A, first_token_ms=20000)
    conf.route("m", ["a/model-a"])
    d = Daemon(conf).start()
    t.cleanup(d.close)
    A.behave(provider.echo())
    gate = provider.Barrier()
    t.cleanup(gate.release)
    A.script(provider.hold(gate, provider.echo()))
    waiting = [client.background(client.chat, d, "turn 0", session="s",
                                 timeout=40)]
    gate.wait_for(1)
    for i in range(1, 4):
        waiting.append(client.background(client.chat, d, "turn %d" % i,
                                         session="s", timeout=40))
        wait.until(lambda: d.session("s")["session"]["queued"] == i, 10,
                   "%d queued" % i)
    r = client.chat(d, "one too many", session="s")
    t.eq(r.status, 429, repr(r))
    t.ok("retry-after" in r.headers, "Retry-After")
    gate.release()
    for w in waiting:
        t.eq(w.get().status, 200, "the others")


@tap.case("a storm on a few sessions: 200 turns, every session in one line",
          90)
def storm(t):
    d, n = fresh()
    sessions = ["%s-%d" % (n, i) for i in range(10)]
    calls = [lambda s=s, i=i: client.chat(d, "turn %d" % i, session=s,
                                          stream=i % 2 == 0, timeout=60)
             for i in range(20) for s in sessions]
    for batch in range(0, len(calls), 100):
        for r in client.together(calls[batch:batch + 100], 80):
            t.eq(r.status, 200, repr(r))
    by = {}
    for q in A.requests:
        by.setdefault(len(q.messages), []).append(q)
    t.eq({k: len(v) for k, v in by.items()},
         {2 * i + 1: 10 for i in range(20)},
         "each session's payloads grow by one pair")
    for s in sessions:
        shown = d.session(s)
        t.eq([x["seq"] for x in shown["turns"]], list(range(1, 21)), s)
        t.eq([x["parent_seq"] for x in shown["turns"]], list(range(20)), s)


if __name__ == "__main__":
    tap.main()
