"""Quotas that nobody configured: they are learned from headers and 429s, by
all workers alike, without being attacked; tokens beside calls; the share of
failures that opens a breaker."""
import copy
import itertools
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "bench"))
import client
import dialect as words
import provider
import storm
import tap
import wait
from daemon import Config, Daemon

_n = itertools.count(1)


def make(t, workers=4, route=None, b_keys=None, **keys):
    """A target with these keys, and another one."""
    a, b = provider.Provider("openai"), provider.Provider("openai")
    conf = Config(workers=workers, log_level="info")
    for n, p, more in (("a", a, keys), ("b", b, b_keys or {})):
        t.cleanup(p.close)
        p.behave(provider.answer("by " + n))
        conf.provider(n, p, first_token_ms=30000, total_ms=60000, **more)
    conf.route("m", ["a/x", "b/y"], **(route or {}))
    conf.route("alone", ["a/x"], **(route or {}))
    d = Daemon(conf)
    t.cleanup(d.destroy)
    return d.start(), a, b


def ask(d, model="alone", text="hi", **more):
    return client.chat(d, text, session="quota-%d" % next(_n), model=model,
                       **more)


def crowd(d, n, model="alone", timeout=60, **more):
    return client.together([lambda: ask(d, model, timeout=timeout, **more)
                            for _ in range(n)], timeout)


def all_say(t, answers, text):
    t.eq([(r.status, r.text) for r in answers if (r.status, r.text) !=
          (200, text)], [], "answers other than %r" % text)


@tap.case("a storm, paced and learning: answered in time, few are refused",
          180)
def small_storm(t):
    # bench/storm.py has the full size, and the time that was promised.
    o = storm.options(["--sessions", "72", "--quota", "8", "--window",
                       str(1.5 * max(1, tap.SCALE)), "--deadline", "100",
                       "--longest", "1.5"])
    out = {}
    for name in ("paced", "learning"):
        out[name] = storm.run(o, name)
        t.eq(out[name].faults(), [], name)
    t.eq(out["paced"].calls, 72, "calls when the quota is configured")

    # The checks see what they are for.
    for field, value in (("answered", 71), ("calls", 99), ("seconds", 999.0),
                         ("most", 9), ("late", 1), ("sockets", 10 ** 4),
                         ("memory", 10 ** 9)):
        bad = copy.copy(out["learning"])
        setattr(bad, field, value)
        t.ok(bad.faults(), "unseen: %s = %r" % (field, value))


def names_limit(q, dialect="openai"):
    """Answers within the quota, which name it."""
    def behave(ex):
        with q.lock:
            now = time.monotonic()
            recent = [x for x in q.at if x > now - q.window]
            full = len(recent) >= q.n
            (q.refused if full else q.at).append(now)
        head = [("x-ratelimit-limit-requests", str(q.n)),
                ("x-ratelimit-remaining-requests",
                 str(max(0, q.n - len(recent) - 1))),
                ("x-ratelimit-reset-requests", "%dms" % (q.window * 1000))]
        if full:
            ex.error(429, "slow down", head)
        else:
            ex.say(words.Said("by quota"), head)
    return behave


@tap.case("a limit that answers name is kept to from the first of them", 60)
def from_headers(t):
    window = 2.0 * max(1, tap.SCALE)
    d, a, b = make(t, slow_start=4, rpm_window_ms=int(window * 1000),
                   route={"deadline_ms": 60000})
    q = storm.Quota(6, window)
    a.behave(names_limit(q))
    all_say(t, crowd(d, 25), "by quota")
    t.eq((len(q.at), len(q.refused)), (25, 0), "admitted, refused")
    took, least = q.at[-1] - q.at[0], window * 4
    t.ok(least <= took <= least * 1.3, "%.1f s for %.1f" % (took, least))


@tap.case("a quota of a day, named or hinted at, stalls nobody")
def of_a_day(t):
    d, a, b = make(t, slow_start=8, breaker_failures=5)
    hours = [("retry-after", "43200")]
    named = [("x-ratelimit-limit-requests", "4"),
             ("x-ratelimit-remaining-requests", "1"),
             ("x-ratelimit-reset-requests", "8h24m0s")]
    a.script(lambda ex: ex.error(429, "come back tomorrow", hours))
    all_say(t, [ask(d, "m")], "by b")
    a.behave(lambda ex: ex.say(words.Said("by a"), named))
    began = time.monotonic()
    for _ in range(10):
        all_say(t, [ask(d, "m")], "by a")
    t.ok(time.monotonic() - began < 20 * max(1, tap.SCALE), "nobody waited")


@tap.case("no turn waits for a learned quota while another can be asked")
def others(t):
    d, a, b = make(t, slow_start=4, breaker_failures=5)
    q = storm.Quota(5, 60.0)
    a.behave(q)
    all_say(t, [ask(d, "m") for _ in range(5)], "an answer")
    began = time.monotonic()
    all_say(t, crowd(d, 20, "m"), "by b")
    t.ok(time.monotonic() - began < 20 * max(1, tap.SCALE), "at once")
    # Five answers made room for five more than four at a time.
    t.ok(len(q.refused) <= 9, "%d were refused" % len(q.refused))
    before = len(q.refused)
    all_say(t, crowd(d, 20, "m"), "by b")
    t.eq(len(q.refused), before, "known to all workers")
    shown = d.ctl_run("providers", "show", "a/x").out
    t.isin("5 calls in 60 s, found", shown, "what operators see")
    t.isin("5 of 5", shown, "what operators see")


@tap.case("429s without a hint: one at a time is asked, nobody waits", 60)
def without_hint(t):
    d, a, b = make(t, slow_start=4, breaker_failures=5)
    lock, state = threading.Lock(), {"now": 0, "most": 0}
    all_say(t, [ask(d, "m") for _ in range(6)], "by a")

    def full(ex):
        with lock:
            state["now"] += 1
            state["most"] = max(state["most"], state["now"])
        time.sleep(0.02)	# a refusal that takes some time
        with lock:
            state["now"] -= 1
        ex.error(429, "slow down")
    a.behave(full)
    all_say(t, [ask(d, "m")], "by b")
    all_say(t, crowd(d, 20, "m"), "by b")
    t.eq(state["most"], 1, "on their way at a time")
    a.behave(provider.answer("by a"))
    all_say(t, crowd(d, 20, "m"), "by a")


@tap.case("a turn waits for a hint rather than spend itself on a dead target",
          60)
def waits_for_hint(t):
    d, a, b = make(t, breaker_failures=2, breaker_open_ms=600000,
                   b_keys={"breaker_failures": 5},
                   route={"max_retries": 2, "deadline_ms": 60000})
    a.behave(provider.status(500))
    for _ in range(2):
        all_say(t, [ask(d, "m")], "by b")
    b.script(lambda ex: ex.error(429, "later", [("retry-after", "2")]))
    began = time.monotonic()
    all_say(t, [ask(d, "m")], "by b")
    t.ok(time.monotonic() - began >= 2, "not before the hint")
    # Before its time once, when nobody else could be asked at all.
    t.eq(len(a.requests), 3, "calls of the dead one")


@tap.case("a slow start doubles; in one worker it is in order of arrival", 60)
def slow_start(t):
    d, a, b = make(t, workers=1, slow_start=2, slow_start_ms=600000,
                   route={"deadline_ms": 60000})
    gate = provider.Barrier()
    a.behave(provider.hold(gate, provider.answer("by a")))
    calls = []
    for i in range(7):
        calls.append(client.background(ask, d, text="turn %d" % i,
                                       timeout=60))
        if i < 2:
            gate.wait_for(i + 1)
        else:
            wait.until(lambda: d.metrics()["holdfast_paced_waits_total"] ==
                       i - 1, 10, "turn %d to wait" % i)
    # Each that is admitted makes room for itself and one more.
    t.eq(gate.arrived, 2, "on their way at first")
    gate.release(1)
    gate.wait_for(4)
    gate.release(1)
    gate.wait_for(6)
    gate.release()
    all_say(t, [c.get(60) for c in calls], "by a")
    # Those that are let through together may arrive in any order.
    order = [r.last_user() for r in a.requests]
    t.eq([sorted(order[i:i + 2]) for i in (0, 2, 4, 6)],
         [["turn %d" % n for n in range(i, min(i + 2, 7))]
          for i in (0, 2, 4, 6)], "the order")


@tap.case("a target that thinks for long is asked by all, in a slow start, too",
          60)
def silent(t):
    d, a, b = make(t, workers=2, slow_start=2, slow_start_ms=200,
                   route={"deadline_ms": 60000})
    gate = provider.Barrier()
    a.behave(provider.hold(gate, provider.answer("by a")))
    calls = [client.background(ask, d, timeout=60) for _ in range(12)]
    gate.wait_for(12)	# nobody was answered yet
    gate.release()
    all_say(t, [c.get(60) for c in calls], "by a")


@tap.case("tpm: by estimate before a call, by what it took after it", 90)
def tokens(t):
    window = 2.0 * max(1, tap.SCALE)
    tpm = 1000
    d, a, b = make(t, tpm=tpm, rpm_window_ms=int(window * 1000),
                   route={"deadline_ms": 80000})
    lock, log = threading.Lock(), []

    def counts(ex):
        # As estimated, or nearly so; 100 of them are the answer's.
        used = 240
        with lock:
            log.append((time.monotonic(), used))
        ex.say(words.Said("by a", usage=(used - 100, 100)))
    a.behave(counts)
    all_say(t, crowd(d, 14, text="word " * 130, max_tokens=100), "by a")
    most = max(sum(n for y, n in log if x <= y < x + window)
               for x, _ in log)
    t.ok(most <= tpm, "%d tokens in a window" % most)
    took = log[-1][0] - log[0][0]
    t.ok(took <= window * 6, "%.1f s" % took)
    # One that used more than was thought leaves less for the next.
    wait.until(lambda: time.monotonic() > log[-1][0] + window * 1.1, 30,
               "the window to pass")
    a.behave(lambda ex: ex.say(words.Said("by a", usage=(900, 90))))
    began = time.monotonic()
    all_say(t, [ask(d), ask(d, text="word " * 130)], "by a")
    t.ok(time.monotonic() - began >= window, "the second waited")
    # One that is larger than all of it is asked when it is alone.
    all_say(t, [ask(d, text="word " * 3000)], "by a")


@tap.case("a share of failures opens the breaker, whatever lies between", 60)
def share(t):
    d, a, b = make(t, breaker_failures=5, breaker_open_ms=600000,
                   breaker_rate_percent=50, breaker_rate_calls=12)
    for i in range(40):
        a.script(provider.status(500) if i % 2 else provider.answer("by a"))
        all_say(t, [ask(d, "m")], "by b" if i % 2 and i < 12 or i >= 12
                else "by a")
    t.eq(len(a.requests), 12, "calls")


@tap.case("a smaller share does not", 60)
def smaller(t):
    d, a, b = make(t, breaker_failures=5, breaker_open_ms=600000,
                   breaker_rate_percent=50, breaker_rate_calls=12)
    for i in range(40):
        a.script(provider.answer("by a") if i % 3 else provider.status(500))
        all_say(t, [ask(d, "m")], "by a" if i % 3 else "by b")
    t.eq(len(a.requests), 40, "calls")


tap.main()
