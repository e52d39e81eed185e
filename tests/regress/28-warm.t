"""Connections to providers: a pooled one that died when it was taken is dialled
again, unseen, and nothing else is."""
import itertools
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import client
import provider
import tap
import wait
from daemon import Config, Daemon

_n = itertools.count(1)


def name():
    return "warm-%d" % next(_n)


class OnReuse:
    """Answers the first request of a connection, and treats the later ones
    otherwise."""

    def __init__(self, first, later):
        self.first, self.later = first, later
        self.lock = threading.Lock()
        self.seen = set()

    def __call__(self, ex):
        with self.lock:
            again = ex.request.conn_n in self.seen
            self.seen.add(ex.request.conn_n)
        (self.later if again else self.first)(ex)


def then(*steps):
    def behave(ex):
        for step in steps:
            step(ex)
    return behave


def make(t, **keys):
    a, b = provider.Provider("openai"), provider.Provider("anthropic")
    # One failure would open the breaker, and show.
    conf = Config(workers=1)
    for n, p, more in (("a", a, dict(keys, breaker_failures=1)), ("b", b, {})):
        t.cleanup(p.close)
        p.behave(provider.answer("by " + n))
        conf.provider(n, p, **more)
    conf.route("m", ["a/x", "b/y"])
    d = Daemon(conf)
    t.cleanup(d.destroy)
    return d.start(), a, b


def reasons(d, session):
    return [(x["target"], x["cls"], x["reason"])
            for x in d.session(session)["attempts"]]


@tap.case("a pooled connection that dies when it is taken is dialled again",
          deadline=60)
def stale(t):
    for how in (provider.reset(), provider.hang_up()):
        for stream in (False, True):
            d, a, b = make(t)
            a.behave(OnReuse(provider.answer("by a"), how))
            s = name()
            for turn in range(1, 6):
                r = client.chat(d, "turn %d" % turn, session=s, model="m",
                                stream=stream)
                t.eq((r.status, r.text), (200, "by a"), repr(r))
            # Each but the first was made on the connection before it.
            t.eq(reasons(d, s)[1:], [
                ("a/x", "network", "stale_connection"),
                ("a/x", "ok", "ok")] * 4, "recorded")
            t.eq(len(a.requests), 9, "calls")
            t.eq([x.body for x in a.requests[1::2]],
                 [x.body for x in a.requests[2::2]], "the same, from disk")
            t.eq(b.requests, [], "nobody else was asked")
            m = d.metrics()
            t.eq((m["holdfast_redials_total"],
                  m['holdfast_attempts_failed_total{class="network"}'],
                  m["holdfast_failovers_total"]), (4, 0, 0), "counted")
            d.destroy()


@tap.case("an idle connection that was closed before is seen in time")
def closed_before(t):
    d, a, b = make(t)
    s = name()
    for turn in range(4):
        t.eq(client.chat(d, "hi %d" % turn, session=s, model="m").text, "by a",
             "answered")
        a.cut_idle()
    t.eq([x["cls"] for x in d.session(s)["attempts"]], ["ok"] * 4, "at once")
    t.eq(len(a.requests), 4, "calls")


@tap.case("when the other end restarts, all pooled connections may be dead")
def restart(t):
    d, a, b = make(t)
    gate = provider.Barrier()
    a.behave(provider.hold(gate, provider.answer("by a")))
    calls = [client.background(client.chat, d, "hi", session=name(), model="m")
             for _ in range(5)]
    gate.wait_for(5)
    gate.release()
    for c in calls:
        t.eq(c.get().text, "by a", "answered")
    old = {x.conn_n for x in a.requests}
    t.eq(len(old), 5, "connections in the pool")

    def dead(ex):
        if ex.request.conn_n in old:
            ex.reset()
        else:
            provider.answer("by a")(ex)
    a.behave(dead)
    s = name()
    r = client.chat(d, "hi", session=s, model="m")
    t.eq((r.status, r.text), (200, "by a"), repr(r))
    t.eq([x[2] for x in reasons(d, s)], ["stale_connection", "ok"],
         "dialled once, not through the pool")


@tap.case("nothing else is dialled again", deadline=60)
def others(t):
    head = b"HTTP/1.1 200 OK\r\n"
    cases = [
        # What the target does, and to which requests of a connection.
        ("a fresh connection that dies", None, provider.reset()),
        ("one that is fresh and closed", None, provider.hang_up()),
        ("a line of a response came", provider.answer("by a"), then(
            lambda ex: ex.send(head), provider.hang_up())),
        ("a part of an answer came", provider.answer("by a"),
         provider.cut("by a", 0, "drop")),
        ("an error", provider.answer("by a"), provider.status(503)),
        ("it died of the request", provider.answer("by a"), then(
            lambda ex: time.sleep(2.2), provider.reset())),
    ]
    for what, first, later in cases:
        d, a, b = make(t)
        a.behave(later if first is None else OnReuse(first, later))
        s = name()
        if first is not None:
            t.eq(client.chat(d, "hi", session=s, model="m").text, "by a", what)
        a.take()
        r = client.chat(d, "hello", session=s, model="m")
        t.eq((r.status, r.text), (200, "by b"), what)
        t.eq(len(a.requests), 1, what + ": calls")
        t.eq(d.metrics()["holdfast_redials_total"], 0, what)
        t.eq(d.metrics()["holdfast_failovers_total"], 1, what)
        d.destroy()


@tap.case("in a race the other one goes on, and nothing is counted either",
          deadline=60)
def race(t):
    d, a, b = make(t, hedge_after_ms=100, first_token_ms=20000)
    s = name()
    t.eq(client.chat(d, "hi", session=s, model="m").text, "by a", "answered")
    raced, gate = provider.Barrier(), provider.Barrier()
    a.behave(OnReuse(provider.answer("by a"), provider.hold(
        raced, provider.reset())))
    a._behaviour.seen = {x.conn_n for x in a.requests}
    b.behave(provider.hold(gate, provider.answer("by b")))
    call = client.background(client.chat, d, "hello", session=s, model="m",
                             stream=True)
    gate.wait_for(1)
    raced.release()
    wait.until(lambda: a.requests[-1].ended is not None, 10, "it to die")
    gate.release()
    r = call.get()
    t.eq((r.status, r.text), (200, "by b"), repr(r))
    m = d.metrics()
    t.eq((m['holdfast_attempts_failed_total{class="network"}'],
          m["holdfast_hedges_total"]), (0, 1), "counted")
    t.eq(sorted(x[1:] for x in reasons(d, s)), [
        ("network", "stale_connection"), ("ok", "ok"), ("ok", "ok")],
         "recorded")
    t.eq(client.chat(d, "hi", session=s, model="m").text, "by a", "not left")


@tap.case("what dies again is a failure, once")
def twice(t):
    d, a, b = make(t)
    s = name()
    t.eq(client.chat(d, "hi", session=s, model="m").text, "by a", "answered")
    a.behave(provider.reset())
    r = client.chat(d, "hello", session=s, model="m")
    t.eq((r.status, r.text), (200, "by b"), repr(r))
    t.eq([x[:2] for x in reasons(d, s)][1:], [
        ("a/x", "network"), ("a/x", "network"), ("b/y", "ok")], "recorded")
    m = d.metrics()
    t.eq((m["holdfast_redials_total"],
          m['holdfast_attempts_failed_total{class="network"}']), (1, 1),
         "counted")
    a.take()
    t.eq(client.chat(d, "hi", session=s, model="m").text, "by b", "again")
    t.eq(a.requests, [], "its breaker is open")


# --- warm = connect ---------------------------------------------------------

@tap.case("a connection is there before the first turn, and stays", 60)
def connected(t):
    for key in ("warm", "target"):
        a, b = provider.Provider("openai"), provider.Provider("anthropic")
        conf = Config(workers=2)
        for n, p in (("a", a), ("b", b)):
            t.cleanup(p.close)
            p.behave(provider.answer("by " + n))
            conf.provider(n, p, warm_every_ms=300, breaker_failures=1,
                          warm="connect" if key == "warm" else None)
        conf.route("m", ["a/x", "b/y"])
        if key == "target":
            conf.target("a/x", warm="connect")
            conf.target("b/y", warm="connect")
        d = Daemon(conf)
        t.cleanup(d.destroy)
        d.start()
        for p in (a, b):
            wait.until(lambda p=p: len(set(p.listed)) == 2, 15,
                       "a connection of each worker")
        for _ in range(4):
            r = client.chat(d, "hi", session=name(), model="m")
            t.eq((r.status, r.text), (200, "by a"), repr(r))
        t.eq({x.conn_n for x in a.requests} - set(a.listed), set(),
             "turns on warm connections")
        t.eq((a.connections, b.connections), (2, 2), "connections")
        n = len(b.listed)
        wait.until(lambda: len(b.listed) >= n + 4, 20, "to be asked again")
        t.eq(b.connections, 2, "on the same connections")
        # Closed by the other end: made again before a turn wants it.
        b.cut_idle()
        wait.until(lambda: len(set(b.listed)) == 4, 20, "new ones")
        t.eq((b.requests, a.violations, b.violations), ([], [], []),
             "nothing else was asked")
        d.destroy()


@tap.case("what comes of it concerns no turn and no breaker", 60)
def unconcerned(t):
    d, a, b = make(t, warm="connect", warm_every_ms=100)
    a.down()
    failed = 'holdfast_warm_connects_total{result="failed"}'
    wait.until(lambda: d.metrics()[failed] >= 3, 15, "failures")
    a.up()
    a.behave(provider.answer("by a"))
    r = client.chat(d, "hi", session=name(), model="m")
    t.eq((r.status, r.text), (200, "by a"), repr(r))
    t.eq(r.headers["x-holdfast-attempts"], "1", "at once")
    ok = 'holdfast_warm_connects_total{result="ok"}'
    wait.until(lambda: d.metrics()[ok] >= 1, 15, "it to be counted")


tap.main()
