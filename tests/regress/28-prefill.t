"""Shadow prefill: after a turn the conversation is sent ahead to a fallback
that wants it, for one token.  It gives way to everything, and nothing comes of
it but a warm cache."""
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

TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {
    "type": "object", "properties": {}}}}]
_n = itertools.count(1)


def name():
    return "prefill-%d" % next(_n)


class World:
    """a answers, b is the next, c is the local one at the end."""

    def __init__(self, t, local="openai", workers=2, **keys):
        self.t = t
        self.a = provider.Provider("openai")
        self.b = provider.Provider("anthropic")
        self.c = provider.Provider(local)
        conf = Config(workers=workers)
        local_keys = {"warm": "prefill", "first_token_ms": 20000}
        local_keys.update(keys)
        for n, p, more in (("a", self.a, {}), ("b", self.b, {}),
                           ("c", self.c, local_keys)):
            t.cleanup(p.close)
            p.behave(provider.answer("by " + n))
            conf.provider(n, p, **more)
        conf.route("m", ["a/x", "b/y", "c/z"])
        conf.route("local", ["c/z"])
        conf.route("stay", ["c/z", "a/x"])
        self.d = Daemon(conf)
        t.cleanup(self.d.destroy)
        self.d.start()

    def ask(self, session, want="by a", text="hi", model="m", **more):
        r = client.chat(self.d, text, session=session, model=model, **more)
        self.t.eq((r.status, r.text), (200, want), repr(r))
        return r

    def count(self, result):
        return self.d.metrics()['holdfast_shadows_total{result="%s"}' % result]

    def shadows(self):
        return [r for r in list(self.c.requests)
                if r.json.get("max_tokens") == 1]

    def wait_shadows(self, n):
        wait.until(lambda: len(self.shadows()) >= n, 15, "%d shadows" % n)
        self.t.eq(len(self.shadows()), n, "shadows")
        return self.shadows()


@tap.case("the conversation is sent ahead after each turn, for one token", 60)
def sent(t):
    for local in ("openai", "anthropic"):
        w = World(t, local)
        s = name()
        said = [("system", "rules")]
        for turn in range(1, 4):
            text = "turn %d" % turn
            messages = [{"role": "user", "content": text}]
            if turn == 1:
                messages.insert(0, {"role": "system", "content": "rules"})
            r = client.chat(w.d, messages, session=s, model="m", tools=TOOLS,
                            stream=turn == 2, temperature=0.5)
            t.eq(r.text, "by a", repr(r))
            said += [("user", text), ("assistant", "by a")]
            rq = w.wait_shadows(turn)[-1]
            t.eq(w.c.history(rq), said + [("user", ".")], local)
            t.eq((rq.stream, rq.model, len(rq.json["tools"])),
                 (False, "z", 1), local)
            wait.until(lambda: w.count("done") == turn, 10, "its end")
        shown = w.d.session(s)
        t.eq([x["target"] for x in shown["attempts"]], ["a/x"] * 3,
             "attempts")
        t.eq(len(shown["turns"]), 3, "turns")
        t.eq(len(shown["items"]), 7, "items")
        m = w.d.metrics()
        t.eq((m["holdfast_attempts_total"], m["holdfast_failovers_total"],
              w.count("failed"), w.count("canceled"), w.count("skipped")),
             (3, 0, 0, 0, 0), "counted")
        t.eq(w.c.violations + w.b.requests, [], "else")
        # Now it answers, and has not changed by it.
        w.a.down()
        w.b.down()
        r = client.chat(w.d, "turn 4", session=s, model="m")
        t.eq(r.text, "by c", repr(r))
        t.eq(w.c.history(w.c.requests[-1]), said + [("user", "turn 4")],
             "told")
        w.d.destroy()


@tap.case("the limit has the name that the client gave it")
def limit(t):
    w = World(t)
    s = name()
    for fields, want in (({"max_tokens": 77}, {"max_tokens": 1}),
                         ({"max_completion_tokens": 77},
                          {"max_completion_tokens": 1}),
                         ({}, {"max_tokens": 1})):
        w.ask(s, **fields)
        rq = w.c.wait_requests(1)[0]
        t.eq({k: v for k, v in rq.json.items() if k.startswith("max_")}, want,
             str(fields))
        w.c.take()
        wait.until(lambda: w.count("done") + w.count("canceled") >= 1, 10,
                   "its end")


@tap.case("nothing is sent ahead to who answered, nor without a session")
def none(t):
    w = World(t)
    w.ask(name(), "by c", model="local")
    w.ask(name(), "by c", model="stay")
    w.ask(None)
    w.a.down()
    w.b.down()
    w.ask(name(), "by c")
    w.a.up()
    w.ask(name())
    w.wait_shadows(1)
    t.eq(len(w.c.requests), 4, "and three answers")


@tap.case("the session's next turn ends it, whoever serves that", deadline=90)
def next_turn(t):
    w = World(t)
    here, there = w.d.workers().values()
    for first, second in ((here, here), (here, there), (there, here)):
        w.c.behave(provider.silence())
        w.c.take()
        s = name()
        w.ask(s, connection=w.d.connect_to(first))
        rq = w.wait_shadows(1)[0]
        t.eq(rq.peer_left, None, "under way")
        began = time.monotonic()
        w.ask(s, connection=w.d.connect_to(second))
        wait.until(lambda: rq.peer_left is not None, 10, "its end")
        t.ok(rq.peer_left >= began, "not before")
        # The new turn has one of its own.
        rq = w.wait_shadows(2)[1]
        t.eq(w.c.history(rq)[-3:-1], [("user", "hi"), ("assistant", "by a")],
             "of the new history")
        w.c.behave(provider.answer("by c"))
        w.c.cut_idle()
        wait.until(lambda: rq.ended is not None, 10, "cut")
    t.eq(w.count("canceled"), 3, "counted")


@tap.case("a call that somebody waits for ends it, in any worker", 90)
def gives_way(t):
    w = World(t)
    here, there = w.d.workers().values()
    for first, second in ((here, here), (here, there)):
        w.c.behave(provider.answer("by c"))
        w.c.take()
        w.c.script(provider.silence())
        w.ask(name(), connection=w.d.connect_to(first))
        rq = w.wait_shadows(1)[0]
        gate = provider.Barrier()
        w.c.behave(provider.hold(gate, provider.answer("by c")))
        call = client.background(w.ask, name(), "by c", model="local",
                                 connection=w.d.connect_to(second))
        gate.wait_for(1)
        wait.until(lambda: rq.peer_left is not None, 10, "its end")
        # While somebody is served there, nothing is sent ahead.
        n = len(w.c.requests)
        for _ in range(3):
            w.ask(name())
        time.sleep(0.3)	# several looks
        t.eq(len(w.c.requests), n, "while it is busy")
        w.c.behave(provider.answer("by c"))
        gate.release()
        call.get()
        wait.until(lambda: len(w.shadows()) == 4, 10, "those that waited")


@tap.case("no more than warm_in_flight at a time, over all workers", 90)
def budget(t):
    for most in (1, 3):
        w = World(t, warm_in_flight=most)
        gate = provider.Barrier()
        w.c.behave(provider.hold(gate, provider.answer("by c")))
        for pid in list(w.d.workers().values()) * 3:
            w.ask(name(), connection=w.d.connect_to(pid))
        gate.wait_for(most)
        time.sleep(0.3)	# several looks
        t.eq(gate.arrived, most, "at a time")
        for n in range(most + 1, 7):
            gate.release(1)
            gate.wait_for(n)
        gate.release()
        wait.until(lambda: w.count("done") == 6, 10, "all")
        w.d.destroy()


@tap.case("its failures are nobody's", deadline=60)
def failures(t):
    w = World(t, breaker_failures=1, breaker_open_ms=600000, connect_ms=300)
    s = name()
    for n, how in enumerate((provider.status(500), provider.status(429),
                             provider.reset(), provider.hang_up(),
                             provider.raw_reply(b"<html>", code=503)), 1):
        w.c.behave(how)
        w.ask(s)
        wait.until(lambda n=n: w.count("failed") == n, 10, "it to fail")
    w.c.down()
    w.ask(s)
    wait.until(lambda: w.count("failed") == 6, 10, "it to fail")
    m = w.d.metrics()
    t.eq(sum(v for k, v in m.items()
             if k.startswith("holdfast_attempts_failed")), 0, "as attempts")
    w.c.up()
    w.c.behave(provider.answer("by c"))
    w.a.down()
    w.b.down()
    r = w.ask(s, "by c")
    t.eq(r.headers["x-holdfast-attempts"], "3", "asked in its turn")


@tap.case("an open breaker gets none")
def open_breaker(t):
    w = World(t, breaker_failures=1, breaker_open_ms=600000)
    w.c.behave(provider.status(500))
    t.eq(client.chat(w.d, "hi", session=name(), model="local").status, 503,
         "down")
    w.c.behave(provider.answer("by c"))
    w.ask(name())
    time.sleep(0.3)	# several looks
    t.eq(len(w.c.requests), 1, "calls")


@tap.case("a worker that dies leaves its place to others", deadline=60)
def death(t):
    w = World(t)
    w.c.behave(provider.silence())
    pid = next(iter(w.d.workers().values()))
    w.ask(name(), connection=w.d.connect_to(pid))
    rq = w.wait_shadows(1)[0]
    w.c.behave(provider.answer("by c"))
    os.kill(pid, signal.SIGKILL)
    wait.until(lambda: rq.peer_left is not None, 10, "its end")
    w.ask(name())
    w.wait_shadows(2)
    wait.until(lambda: w.count("done") == 1, 10, "the other one")


@tap.case("the daemon does not wait for it")
def stops(t):
    w = World(t)
    w.c.behave(provider.silence())
    w.ask(name())
    w.wait_shadows(1)
    began = time.monotonic()
    w.d.stop()
    t.ok(time.monotonic() - began < 10, "it stopped")


tap.main()
