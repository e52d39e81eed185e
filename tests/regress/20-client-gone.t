"""A client that leaves is noticed while it waits and while it is streamed to,
and the provider's call is hung up on at once."""
import itertools
import json
import os
import socket
import sqlite3
import statistics
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import client
import dialect as words
import provider
import tap
import wait
from daemon import Config, Daemon, shared

A = provider.Provider("openai")
B = provider.Provider("anthropic")
BOTH = (("o", A), ("a", B))
TIMES = 5
WITHIN = 0.5 * tap.SCALE	# seconds; the promise is 50 ms
_n = itertools.count(1)


def make():
    conf = Config(workers=2, flush_ms=10)
    for name, p in BOTH:
        conf.provider(name, p)
        conf.route(name, [name + "/x"])
    return Daemon(conf).start()


get_daemon = shared(make)


def silent(ex):
    ex.wait_gone(15)
    ex.close()


def begun(seen):
    """Two deltas, then silence."""
    def behave(ex):
        ex.start()
        for event in ex.events(words.Said("one two three"))[
                :words.first_useful(ex.dialect) + 2]:
            ex.chunk(event)
        seen.arrive(0)
        ex.wait_gone(15)
        ex.close()
    return behave


def leave(c, how):
    if how == "RST":
        c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                          struct.pack("ii", 1, 0))
    at = time.monotonic()
    c.close()
    return at


def ask(d, model, stream, session):
    c = client.Connection(d.addr)
    c.request("POST", "/v1/chat/completions", client.headers_of(session),
              json.dumps(client.body_of("x", model, stream)).encode())
    return c


def hung_up(p, at, what):
    """Seconds until the provider saw the end of its only call."""
    wait.until(lambda: p.requests and p.requests[0].peer_left is not None,
               10, "the call to end: " + what)
    return p.requests[0].peer_left - at


def round_(t, d, model, p, stream, when, how):
    what = "%s %s %s %s" % (model, "stream" if stream else "plain", when, how)
    s = "gone-%d" % next(_n)
    seen = provider.Barrier()
    p.take()
    p.script(silent if when == "waiting" else begun(seen))
    c = ask(d, model, stream, s)
    if when == "waiting":
        p.wait_requests(1)
    else:
        seen.wait_for(1)
        if stream:
            r = c.response("POST", lambda r: r.text == "one two")
            t.eq(r.end, None, what)
    took = hung_up(p, leave(c, how), what)
    t.between(took, -0.1, WITHIN, what)
    turn = wait.until(lambda: [x for x in d.session(s)["turns"]
                               if x["ended_us"]], 10, "the turn's end")[0]
    t.eq((turn["state"], turn["gone_us"] > 0), ("canceled", True), what)
    a = d.session(s)["attempts"]
    t.eq([x["cls"] for x in a], ["canceled"], what)
    t.eq([x["reason"] for x in a], ["client_gone"], what)
    return took


def matrix(when, stream):
    @tap.case("%s, %s" % ("a stream" if stream else "a plain answer", when),
              60)
    def run(t):
        d = get_daemon()
        for (model, p), how in itertools.product(BOTH, ("FIN", "RST")):
            took = [round_(t, d, model, p, stream, when, how)
                    for _ in range(TIMES)]
            t.diag("%s %s: median %.1f ms, most %.1f ms" % (
                p.dialect, how, statistics.median(took) * 1000,
                max(took) * 1000))
            t.eq(p.violations, [], "violations")


for when_ in ("waiting", "answering"):
    for stream_ in (False, True):
        matrix(when_, stream_)


@tap.case("a stream whose client reads nothing, so that nobody reads", 60)
def paused(t):
    d = get_daemon()
    for (model, p), how in itertools.product(BOTH, ("FIN", "RST")):
        s = "gone-%d" % next(_n)
        full = provider.Barrier()

        def flood(ex):
            n = words.first_useful(ex.dialect)
            events = ex.events(words.Said("", pieces=["x" * 8000]))
            ex.start()
            for event in events[:n]:
                ex.chunk(event)
            ex.sock.settimeout(0.3)
            try:
                while True:
                    ex.chunk(events[n])
            except socket.timeout:
                full.arrive(0)	# nobody has read for a while
            ex.sock.settimeout(15)
            ex.wait_gone(15)
            ex.close()
        p.take()
        p.script(flood)
        c = ask(d, model, True, s)
        full.wait_for(1, 20)
        t.between(hung_up(p, leave(c, how), "paused"), -0.1, WITHIN,
                  "%s %s" % (model, how))
        wait.until(lambda: d.session(s)["turns"][0]["ended_us"], 10,
                   "the turn's end")
        turn = d.session(s)["turns"][0]
        t.eq(turn["state"], "canceled", "state")
        t.between(turn["heard"], 0, turn["said"] - 1, "heard in part")


@tap.case("a provider is not kept waiting for a slow disk")
def slow_disk(t):
    d = get_daemon()
    for model, p in BOTH:
        s = "gone-%d" % next(_n)
        b = provider.Barrier()
        t.cleanup(b.release)

        def behave(ex):
            events = ex.events(words.Said("one two three"))
            n = words.first_useful(ex.dialect)
            ex.start()
            for event in events[:n + 1]:
                ex.chunk(event)
            b.arrive()
            ex.chunk(events[n + 1])
            ex.wait_gone(15)
            ex.close()
        p.take()
        p.script(behave)
        c = ask(d, model, True, s)
        c.response("POST", lambda r: r.text == "one")
        db = sqlite3.connect(d.db_path, isolation_level=None)
        t.cleanup(db.close)
        db.execute("BEGIN IMMEDIATE")
        b.release()
        t.isin(b" two", c.sock.recv(65536), "the next delta")
        time.sleep(0.1)	# it is being flushed, and stuck: that is the point
        t.between(hung_up(p, leave(c, "FIN"), model), -0.1, WITHIN, model)
        t.eq(d.session(s)["turns"][0]["state"], "open", "still under way")
        db.execute("ROLLBACK")
        turn = wait.until(lambda: [x for x in d.session(s)["turns"]
                                   if x["ended_us"]], 10, "the end")[0]
        t.eq(turn["state"], "canceled", "state")


@tap.case("one that waits for its turn leaves the others alone")
def queued(t):
    d = get_daemon()
    for (model, p), how in itertools.product(BOTH, ("FIN", "RST")):
        s = "gone-%d" % next(_n)
        b = provider.Barrier()
        t.cleanup(b.release)
        p.take()
        p.script(provider.hold(b, provider.answer("first")))
        one = client.background(client.chat, d, "one", session=s, model=model)
        b.wait_for(1)
        c = ask(d, model, True, s)
        wait.until(lambda: len(d.session(s)["turns"]) == 2, 10, "the queue")
        at = leave(c, how)
        wait.until(lambda: d.session(s)["turns"][1]["state"] == "canceled",
                   10, "the second to be canceled")
        t.between(time.monotonic() - at, 0, WITHIN + 0.5, "seconds")
        b.release()
        t.eq(one.get().text, "first", "the first is answered")
        t.eq(len(p.requests), 1, "calls")
        t.eq(client.chat(d, "next", session=s, model=model).status, 200,
             "the session goes on")


if __name__ == "__main__":
    tap.main()
