"""Where a session stays after a failover, and when it goes back: with turn, at
once; with session, when the target that answered fails; with health, when a
preferred one has been well for some time.  Whoever is asked has all turns."""
import itertools
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import client
import provider
import tap
import wait
from daemon import Config, Daemon

AFTER = 1.5	# seconds of health before a session goes back
_n = itertools.count(1)


class World:
    """Three targets, a route for each rule."""

    def __init__(self, t, workers=2, route=None, **keys):
        self.t = t
        self.p = {n: provider.Provider(dialect) for n, dialect in (
            ("a", "openai"), ("b", "anthropic"), ("c", "openai"))}
        conf = Config(workers=workers)
        for n, p in self.p.items():
            t.cleanup(p.close)
            conf.provider(n, p, **keys)
            self.well(n)
        for rule in ("turn", "session", "health"):
            conf.route(rule, ["a/x", "b/y", "c/z"], failback=rule,
                       failback_after_ms=int(AFTER * 1000), **(route or {}))
        # What it is called elsewhere must not matter.
        conf.route("other", ["c/z", "a/x"], failback="session")
        self.d = Daemon(conf)
        t.cleanup(self.d.destroy)
        self.d.start()
        self.said = {}

    def well(self, *names):
        for n in names:
            self.p[n].up()
            self.p[n].behave(provider.answer("by " + n))

    def ill(self, *names):
        for n in names:
            self.p[n].behave(provider.status(503))

    def session(self):
        return "failback-%d" % next(_n)

    def ask(self, rule, session, want, attempts=None, **more):
        """One turn, which 'want' must answer, having been told all."""
        for p in self.p.values():
            p.take()
        said = self.said.setdefault(session, [])
        text = "turn %d" % (len(said) // 2 + 1)
        r = client.chat(self.d, text, session=session, model=rule, **more)
        where = "%s, %s, %s" % (session, rule, text)
        self.t.eq((r.status, r.text), (200, "by " + want), where)
        if attempts is not None:
            self.t.eq(r.headers["x-holdfast-attempts"], str(attempts), where)
        said.append(("user", text))
        for n, p in self.p.items():
            for rq in p.requests:
                self.t.eq(p.history(rq), said, where + ": told to " + n)
        said.append(("assistant", r.text))
        return r


@tap.case("turn: each turn begins with the first target")
def turn(t):
    w = World(t)
    s = w.session()
    w.ask("turn", s, "a")
    w.ill("a")
    w.ask("turn", s, "b", attempts=2)
    w.ask("turn", s, "b", attempts=2)
    w.well("a")
    w.ask("turn", s, "a", attempts=1)


@tap.case("session: it stays until the target that answered fails")
def session(t):
    w = World(t)
    for stream in (False, True):
        s = w.session()
        w.well("a", "b", "c")
        w.ask("session", s, "a", stream=stream)
        w.ill("a")
        w.ask("session", s, "b", attempts=2, stream=stream)
        w.well("a")
        for _ in range(3):
            w.ask("session", s, "b", attempts=1, stream=stream)
        w.ask("session", w.session(), "a", attempts=1)
        w.ill("b")
        w.ask("session", s, "a", attempts=2, stream=stream)
        w.well("b")
        w.ask("session", s, "a", attempts=1, stream=stream)
        w.ill("a", "b")
        w.ask("session", s, "c", attempts=3, stream=stream)
        w.well("a", "b")
        w.ask("session", s, "c", attempts=1, stream=stream)
    t.eq(w.d.metrics()["holdfast_failbacks_total"], 2, "b failed, a answered")


@tap.case("session: a turn that nobody could answer changes nothing")
def failed_turn(t):
    w = World(t)
    s = w.session()
    w.ill("a")
    w.ask("session", s, "b")
    w.ill("a", "b", "c")
    r = client.chat(w.d, "lost", session=s, model="session")
    t.eq(r.status, 503, "nobody")
    w.well("a", "b", "c")
    w.said[s].append(("user", "lost"))
    r = client.chat(w.d, "again", session=s, model="session")
    t.eq(r.headers["x-holdfast-target"], "b/y", "stays")


@tap.case("session: restarts and other routes know where it stays")
def known(t):
    w = World(t)
    s = w.session()
    w.ill("a")
    w.ask("session", s, "b")
    w.well("a")
    w.d.stop()
    w.d.start()
    w.ask("session", s, "b", attempts=1)
    # A route without that target has its own order.
    w.ask("other", s, "c", attempts=1)
    w.ask("session", s, "c", attempts=1)
    w.d.kill_tree()
    w.d.start()
    w.ask("session", s, "c", attempts=1)


@tap.case("session: while the breaker of its target is open it goes elsewhere")
def breaker(t):
    w = World(t, breaker_failures=1, breaker_open_ms=600000)
    s, other = w.session(), w.session()
    w.ill("a")
    w.ask("session", s, "b", attempts=2)
    w.ask("session", other, "b", attempts=1)
    w.ill("b")
    w.ask("session", other, "c", attempts=2)
    w.well("a", "b")
    w.ask("session", s, "c", attempts=1)
    t.eq(len(w.p["a"].requests) + len(w.p["b"].requests), 0, "left alone")
    w.ask("session", other, "c", attempts=1)


@tap.case("session: a client that leaves in mid-answer stays with who spoke",
          deadline=60)
def leaves(t):
    w = World(t)
    s = w.session()
    w.ill("a")
    w.ask("session", s, "b")
    w.well("a")
    gate = provider.Barrier()
    w.p["b"].behave(provider.trickle("one two three four five", gate))

    client.chat(w.d, "talk", session=s, model="session", stream=True,
                on_event=lambda *_: True)
    wait.until(lambda: w.d.metrics()["holdfast_turns_in_flight"] == 0, 20,
               "the turn to end")
    gate.release()
    w.well("b")
    r = client.chat(w.d, "go on", session=s, model="session")
    t.eq(r.headers["x-holdfast-target"], "b/y", "stays")


@tap.case("session: who wins a race keeps the session", deadline=60)
def hedged(t):
    w = World(t, hedge_after_ms=150, first_token_ms=20000)
    s = w.session()
    w.ill("a")
    w.ask("session", s, "b")
    w.well("a")
    w.p["b"].behave(provider.silence())
    w.ask("session", s, "a", attempts=2)
    w.well("b")
    w.ask("session", s, "a", attempts=1)


@tap.case("session: a worker's death moves nobody", deadline=60)
def death(t):
    w = World(t)
    s = w.session()
    w.ill("a")
    w.ask("session", s, "b")
    w.well("a")
    for p in w.p.values():
        p.take()
    gate = provider.Barrier()
    w.p["b"].behave(provider.hold(gate, provider.answer("by b")))
    pid = next(iter(w.d.workers().values()))
    call = client.background(
        client.chat, w.d, "turn 2", session=s, model="session", stream=True,
        connection=w.d.connect_to(pid, timeout=40))
    gate.wait_for(1)
    os.kill(pid, signal.SIGKILL)
    w.well("b")
    gate.release()
    r = call.get(40)
    t.eq((r.status, r.text), (200, "by b"), repr(r))
    w.said[s] += [("user", "turn 2"), ("assistant", "by b")]
    w.ask("session", s, "b")


@tap.case("health: it goes back when a preferred one was well for long",
          deadline=90)
def health(t):
    for keys in ({}, {"breaker_failures": 1, "breaker_open_ms": 50}):
        w = World(t, **keys)
        s = w.session()
        w.ask("health", s, "a")
        w.ill("a")
        before = time.monotonic()	# of its last failure
        w.ask("health", s, "b", attempts=2)
        after = time.monotonic()
        w.well("a")
        while True:
            began = time.monotonic()
            r = client.chat(w.d, "again", session=s, model="health")
            ended = time.monotonic()
            t.eq((r.status, r.headers["x-holdfast-attempts"]), (200, "1"),
                 repr(r))
            if r.headers["x-holdfast-target"] == "a/x":
                break
            t.eq(r.headers["x-holdfast-target"], "b/y", "stays")
            t.ok(began - after < AFTER + 10, "goes back at last")
            time.sleep(0.05)	# a person's pace
        t.ok(ended - before >= AFTER, "not before: %.2f s" % (ended - before))
        t.eq(len(w.p["a"].requests[-1].messages),
             len(w.d.session(s)["turns"]) * 2 - 1, "told all turns")
        t.eq(w.d.metrics()["holdfast_failbacks_total"], 1, "counted")


@tap.case("health: one that fails again is left alone for as long again",
          deadline=90)
def relapse(t):
    w = World(t)
    s = w.session()
    w.ill("a")
    w.ask("health", s, "b", attempts=2)
    failed = time.monotonic()
    w.ask("health", s, "b", attempts=1)
    w.p["a"].take()

    def tried():
        r = client.chat(w.d, "again", session=s, model="health")
        t.eq((r.status, r.text), (200, "by b"), "answered all the same")
        return r.headers["x-holdfast-attempts"] == "2"
    wait.until(tried, AFTER + 20, "it to be tried again")
    again = time.monotonic()
    t.ok(again - failed >= AFTER * 0.9, "not before")
    n = len(w.p["a"].requests)
    t.eq(n, 1, "once")
    if time.monotonic() - again < AFTER / 2:
        tried()
        t.eq(len(w.p["a"].requests), 1, "and not at the next turn")


@tap.case("health: a rate limit is no health either", deadline=60)
def limited(t):
    w = World(t)
    s = w.session()
    w.p["a"].behave(provider.rate_limited())
    began = time.monotonic()
    w.ask("health", s, "b", attempts=2)
    w.well("a")
    r = client.chat(w.d, "again", session=s, model="health")
    if time.monotonic() - began < AFTER:
        t.eq(r.headers["x-holdfast-target"], "b/y", "stays")


@tap.case("health: after a start it is counted anew", deadline=60)
def restarted(t):
    w = World(t)
    s = w.session()
    w.ill("a")
    w.ask("health", s, "b")
    w.well("a")
    w.d.stop()
    began = time.monotonic()
    w.d.start()
    r = client.chat(w.d, "again", session=s, model="health")
    if time.monotonic() - began < AFTER:
        t.eq(r.headers["x-holdfast-target"], "b/y", "stays")
    wait.until(lambda: client.chat(
        w.d, "again", session=s, model="health").headers[
            "x-holdfast-target"] == "a/x", AFTER + 20, "it to go back")
    t.ok(time.monotonic() - began >= AFTER, "not before")


tap.main()
