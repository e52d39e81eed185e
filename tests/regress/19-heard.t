"""What was heard is kept apart from what was generated: a client that leaves
in mid-answer had only a part of it, and the next turn goes by that part."""
import itertools
import json
import os
import signal
import socket
import sqlite3
import struct
import sys

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
PIECES = ["The ", "tide ", "comes ", "in ", "twice ", "a ", "day; ", "bring ",
          "\u00e9t\u00e9 ", "boots."]
FULL = "".join(PIECES)
SAID = len(FULL.encode())
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {
    "type": "object", "properties": {}}}}]
_n = itertools.count(1)


def config(workers=2):
    conf = Config(workers=workers, flush_ms=20)
    for name, p in BOTH:
        conf.provider(name, p)
        conf.route(name + "-cancel", [name + "/x"])
        conf.route(name + "-finish", [name + "/x"], on_disconnect="finish")
        conf.route(name + "-clause", [name + "/x"], on_disconnect="cancel",
                   release="clause")
    conf.route("o-both", ["o/x", "a/x"], on_disconnect="finish")
    conf.route("a-both", ["a/x", "o/x"], on_disconnect="finish")
    return conf


get_daemon = shared(lambda: Daemon(config()).start())


def name():
    for _, p in BOTH:
        p.take()
        p.behave(provider.echo())
    return "heard-%d" % next(_n)


def hesitate(after, barrier=None, calls=()):
    """Say so many pieces, then wait: for the barrier, else for the peer to
    go.  Then say the rest."""
    def behave(ex):
        events = ex.events(words.Said("", calls, pieces=PIECES))
        head = words.first_useful(ex.dialect) + after
        ex.start()
        # At once: whoever sees the first of them has been sent the last.
        ex.chunk(b"".join(events[:head]))
        if barrier is not None:
            barrier.arrive()
        else:
            ex.wait_gone(15)
            ex.close()
            return
        for event in events[head:]:
            ex.chunk(event)
        ex.end()
    return behave


def leave(c, how):
    """End a connection: a close, or a reset."""
    if how == "RST":
        c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                          struct.pack("ii", 1, 0))
    c.close()


def ask_and_leave(d, s, model, until, how="FIN", stream=True, key=None, **more):
    """Ask; leave when the client has 'until' of the answer."""
    c = client.Connection(d.addr)
    headers = client.headers_of(s, headers=[("Idempotency-Key", key)]
                                if key else ())
    c.request("POST", "/v1/chat/completions", headers, json.dumps(
        client.body_of("tell me", model, stream, **more)).encode())
    if until:
        r = c.response("POST", lambda r: r.text == until)
        assert r.end is None and r.text == until, repr(r)
    leave(c, how)


def ended(d, s, state, n=1):
    """The turns once the n-th has ended and was noted as left."""
    def look():
        if d.ctl_run("sessions", "show", s).code == 3:
            return None		# nothing of it is stored yet
        turns = d.session(s)["turns"]
        return turns if len(turns) >= n and turns[n - 1]["ended_us"] else None
    turns = wait.until(look, 10, "the turn to end")
    assert turns[n - 1]["state"] == state, turns
    return turns


def answer_of(d, s, turn=1):
    """The answer's text item of a turn, body and heard decoded."""
    for i in d.session(s)["items"]:
        if i["turn_seq"] == turn and i["output"] and i["kind"] == "message":
            heard = i["heard"]
            return (json.loads(i["body"])["content"],
                    None if not i["has_heard"] else
                    json.loads(heard)["content"] if heard else "")
    return None


def next_hears(t, d, s, model, p, want, messages="and then?", how="delta"):
    p.behave(provider.echo())
    r = client.chat(d, messages, session=s, model=model)
    t.eq(r.status, 200, repr(r))
    t.eq(r.headers["x-holdfast-history"], how, "history")
    t.eq(p.history(p.requests[-1]), want, "what the provider heard")
    for _, x in BOTH:
        t.eq(x.violations, [], "violations")
    return r.text


def figures(turn):
    return turn["said"], turn["heard"], turn["gone_us"] > 0


def clean(t, d, s):
    r = d.ctl_run("sessions", "verify", s)
    t.eq(r.code, 0, repr(r))


# -- cancel -------------------------------------------------------------------

@tap.case("cancel: the text is kept, what was heard is what the next turn has")
def cancel(t):
    d = get_daemon()
    for (dialect, p), how in itertools.product(BOTH, ("FIN", "RST")):
        for n in (1, 4, 9):
            s = name()
            p.script(hesitate(n))
            part = "".join(PIECES[:n])
            ask_and_leave(d, s, dialect + "-cancel", part, how)
            turn = ended(d, s, "canceled")[0]
            size = len(part.encode())
            t.eq(figures(turn), (size, size, True), "figures")
            t.eq(answer_of(d, s), (part, None), "stored")
            clean(t, d, s)
            next_hears(t, d, s, dialect + "-cancel", p,
                       [("user", "tell me"), ("assistant", part),
                        ("user", "and then?")])
            clean(t, d, s)


@tap.case("what was generated and not released was not heard")
def held(t):
    d = get_daemon()
    for dialect, p in BOTH:
        s = name()
        p.script(hesitate(9))
        first = "".join(PIECES[:7])
        ask_and_leave(d, s, dialect + "-clause", first)
        turn = ended(d, s, "canceled")[0]
        said = "".join(PIECES[:9])
        t.eq(figures(turn), (len(said.encode()), len(first), True), "figures")
        t.eq(answer_of(d, s), (said, first), "stored")
        clean(t, d, s)
        next_hears(t, d, s, dialect + "-clause", p,
                   [("user", "tell me"), ("assistant", first),
                    ("user", "and then?")])
        clean(t, d, s)


@tap.case("a plain client that leaves heard nothing")
def plain(t):
    d = get_daemon()
    for dialect, p in BOTH:
        s = name()
        b = provider.Barrier()
        t.cleanup(b.release)

        def behave(ex):
            events = ex.events(words.Said(FULL, pieces=PIECES))
            ex.start()
            for event in events[:words.first_useful(ex.dialect) + 4]:
                ex.chunk(event)
            b.arrive()
            ex.wait_gone(15)
            ex.close()
        p.script(behave)
        c = client.Connection(d.addr)
        c.request("POST", "/v1/chat/completions", client.headers_of(s),
                  json.dumps(client.body_of(
                      "tell me", dialect + "-cancel")).encode())
        b.wait_for(1)
        b.release()
        c.close()
        turn = ended(d, s, "canceled")[0]
        t.eq((turn["heard"], turn["gone_us"] > 0), (0, True), "figures")
        got = answer_of(d, s)
        # What of the pieces had arrived by then is kept.
        if got is not None:
            t.ok(FULL.startswith(got[0]), repr(got))
            t.eq((got[1], turn["said"]), ("", len(got[0])), "unheard")
        clean(t, d, s)
        next_hears(t, d, s, dialect + "-cancel", p,
                   [("user", "tell me"), ("user", "and then?")])
        clean(t, d, s)


# -- finish -------------------------------------------------------------------

def finished(t, d, dialect, p, n, how="FIN", calls=(), **more):
    """A client leaves after n pieces, the answer is made to its end."""
    s = name()
    b = provider.Barrier()
    t.cleanup(b.release)
    p.script(hesitate(n, b, calls))
    part = "".join(PIECES[:n])
    ask_and_leave(d, s, dialect + "-finish", part, how, **more)
    wait.until(lambda: d.session(s)["turns"][0]["gone_us"] != 0, 10,
               "the client's leaving to be noted")
    b.release()
    turn = ended(d, s, "complete")[0]
    t.eq(figures(turn), (SAID, len(part.encode()), True), "figures")
    t.eq(turn["delivered_us"], 0, "not delivered")
    t.eq(answer_of(d, s), (FULL, part), "stored")
    clean(t, d, s)
    return s, part


@tap.case("finish: the whole is kept, the next turn has what was heard")
def finish(t):
    d = get_daemon()
    for (dialect, p), how in itertools.product(BOTH, ("FIN", "RST")):
        s, part = finished(t, d, dialect, p, 5, how)
        next_hears(t, d, s, dialect + "-finish", p,
                   [("user", "tell me"), ("assistant", part),
                    ("user", "and then?")])
        clean(t, d, s)


@tap.case("a retry is told the whole, and then the whole was heard")
def retry(t):
    d = get_daemon()
    for (dialect, p), key in itertools.product(BOTH, ("k", None)):
        if key is not None:
            key = "heard-%d" % next(_n)
        s, part = finished(t, d, dialect, p, 5, key=key)
        r = client.chat(d, "tell me", session=s, model=dialect + "-finish",
                        stream=True, headers=[("Idempotency-Key", key)]
                        if key else ())
        t.eq((r.status, r.text, r.finish, r.done), (200, FULL, "stop", True),
             repr(r))
        t.eq(r.headers["x-holdfast-history"], "replay", "told again")
        turn = wait.until(lambda: [
            x for x in d.session(s)["turns"] if x["delivered_us"]], 10,
            "the delivery to be noted")[0]
        t.eq(figures(turn), (SAID, SAID, True), "figures")
        t.eq(answer_of(d, s), (FULL, None), "no mark")
        clean(t, d, s)
        next_hears(t, d, s, dialect + "-finish", p,
                   [("user", "tell me"), ("assistant", FULL),
                    ("user", "and then?")])
        t.eq(len(p.requests), 2, "calls of the provider")
        clean(t, d, s)


@tap.case("plain: a retry is told the whole, which was not heard before")
def retry_plain(t):
    d = get_daemon()
    for dialect, p in BOTH:
        s = name()
        b = provider.Barrier()
        t.cleanup(b.release)
        p.script(hesitate(3, b))
        c = client.Connection(d.addr)
        body = json.dumps(client.body_of(
            "tell me", dialect + "-finish")).encode()
        c.request("POST", "/v1/chat/completions", client.headers_of(s), body)
        b.wait_for(1)
        c.close()
        wait.until(lambda: d.session(s)["turns"][0]["gone_us"] != 0, 10,
                   "the client's leaving to be noted")
        b.release()
        turn = ended(d, s, "complete")[0]
        t.eq(figures(turn), (SAID, 0, True), "figures")
        t.eq(answer_of(d, s), (FULL, ""), "unheard")
        clean(t, d, s)
        r = client.chat(d, None, session=s, raw=body)
        t.eq((r.text, r.headers["x-holdfast-history"]), (FULL, "replay"),
             repr(r))
        wait.until(lambda: d.session(s)["turns"][0]["heard"] == SAID, 10,
                   "the delivery to be noted")
        clean(t, d, s)
        next_hears(t, d, s, dialect + "-finish", p,
                   [("user", "tell me"), ("assistant", FULL),
                    ("user", "and then?")])
        clean(t, d, s)


@tap.case("a call that was not heard is not in the history, but told again")
def calls(t):
    d = get_daemon()
    for dialect, p in BOTH:
        s, part = finished(t, d, dialect, p, 6,
                           calls=[("call_1", "f", '{"x":1}')], tools=TOOLS)
        kinds = [(i["kind"], i["has_heard"], i["heard"]) for i in
                 d.session(s)["items"] if i["output"]]
        t.eq([k[:2] for k in kinds], [("message", True), ("tool_call", True)],
             "marks")
        t.eq(kinds[1][2], "", "the call was not heard at all")
        next_hears(t, d, s, dialect + "-finish", p,
                   [("user", "tell me"), ("assistant", part),
                    ("user", "and then?")])
        clean(t, d, s)
        s, part = finished(t, d, dialect, p, 6,
                           calls=[("call_1", "f", '{"x":1}')], tools=TOOLS)
        r = client.chat(d, "tell me", session=s, model=dialect + "-finish",
                        stream=True, tools=TOOLS)
        t.eq((r.text, r.finish, len(r.calls)), (FULL, "tool_calls", 1),
             repr(r))
        wait.until(lambda: d.session(s)["turns"][0]["heard"] == SAID, 10,
                   "the delivery to be noted")
        t.eq([i["has_heard"] for i in d.session(s)["items"]], [False] * 3,
             "no marks")
        clean(t, d, s)


@tap.case("what breaks off after the client left: gone on with, or kept so")
def breaks(t):
    d = get_daemon()
    for (dialect, p), kind in itertools.product(BOTH, ("both", "finish")):
        s = name()
        model = "%s-%s" % (dialect, kind)
        b = provider.Barrier()
        t.cleanup(b.release)

        def behave(ex):
            events = ex.events(words.Said(FULL, pieces=PIECES))
            at = words.first_useful(ex.dialect)
            ex.start()
            for event in events[:at + 5]:
                ex.chunk(event)
            b.arrive()
            for event in events[at + 5:at + 7]:
                ex.chunk(event)
            ex.end()
            ex.close()
        p.script(behave)
        other = B if p is A else A
        other.script(provider.answer("".join(PIECES[7:])))
        part = "".join(PIECES[:5])
        ask_and_leave(d, s, model, part)
        wait.until(lambda: d.session(s)["turns"][0]["gone_us"], 10,
                   "the client's leaving to be noted")
        b.release()
        turn = ended(d, s, "complete" if kind == "both" else "incomplete")[0]
        said = FULL if kind == "both" else "".join(PIECES[:7])
        t.eq(figures(turn), (len(said.encode()), len(part), True), model)
        t.eq(answer_of(d, s), (said, part), model)
        clean(t, d, s)
        next_hears(t, d, s, model, p, [("user", "tell me"),
                                       ("assistant", part),
                                       ("user", "and then?")])
        clean(t, d, s)


# -- clients with a list of their own -----------------------------------------

@tap.case("a client that sends everything keeps its own version")
def full(t):
    d = get_daemon()
    for dialect, p in BOTH:
        for version in ("heard", "whole", "other", "none"):
            s, part = finished(t, d, dialect, p, 5)
            text = {"heard": part, "whole": FULL, "other": "The tide...",
                    "none": None}[version]
            said = [{"role": "user", "content": "tell me"},
                    {"role": "user", "content": "and then?"}]
            want = [("user", "tell me"), ("user", "and then?")]
            if text is not None:
                said.insert(1, {"role": "assistant", "content": text})
                want.insert(1, ("assistant", text))
            answer = next_hears(t, d, s, dialect + "-finish", p, want, said,
                                "full" if version == "heard" else "merged")
            t.eq(answer_of(d, s), (FULL, {"whole": None, "none": ""}.get(
                version, text)), "stored, " + version)
            t.eq(d.session(s)["turns"][0]["heard"], len(part),
                 "what was delivered stays so")
            clean(t, d, s)
            # And once more, with a list that has grown.
            more = said + [{"role": "assistant", "content": answer},
                           {"role": "user", "content": "hm"}]
            r = client.chat(d, more, session=s, model=dialect + "-finish")
            t.eq((r.status, r.headers["x-holdfast-history"]), (200, "full"),
                 version)
            clean(t, d, s)


@tap.case("a window that holds the whole of it is recognized")
def window(t):
    d = get_daemon()
    s, _ = finished(t, d, "o", A, 5)
    said = [{"role": "assistant", "content": FULL},
            {"role": "user", "content": "and then?"}]
    next_hears(t, d, s, "o-finish", A,
               [("user", "tell me"), ("assistant", FULL),
                ("user", "and then?")], said, "window")
    t.eq(answer_of(d, s), (FULL, None), "stored")
    clean(t, d, s)


# -- after the answer was stored ------------------------------------------------

def long_answer(n):
    return ["%0511d " % i for i in range(n)]


def slow_client(d, s, model):
    """A client that reads nothing, for which the kernel takes little: small
    segments keep its buffers small."""
    c = client.Connection.__new__(client.Connection)
    c.addr, c.timeout, c.buf = d.addr, 15.0, b""
    c.sock = socket.socket()
    c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    c.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
    c.sock.settimeout(15.0)
    c.sock.connect(d.addr)
    c.request("POST", "/v1/chat/completions", client.headers_of(s),
              json.dumps(client.body_of("tell me", model, True)).encode())
    return c


def leave_in_tail(t, d, model, p, how, n):
    """An answer of n releases is stored whole, and its client leaves while
    some of it waits; how much the kernel takes before is not known.  None: it
    took all, or so little that the gateway stopped reading."""
    s = name()
    p.script(provider.answer("", pieces=long_answer(n)))
    c = slow_client(d, s, model)
    try:
        wait.until(lambda: d.ctl_run("sessions", "show", s).code == 0 and
                   d.session(s)["turns"][0]["ended_us"], 1.5 * tap.SCALE,
                   "the turn to end")
    except wait.TimedOut:
        leave(c, how)
        return None
    leave(c, how)
    turn = wait.until(lambda: [x for x in d.session(s)["turns"]
                               if x["gone_us"] or x["delivered_us"]], 10,
                      "the client's leaving to be noted")[0]
    return (s, turn) if turn["gone_us"] else None


@tap.case("a client that leaves before it took the end of a stored answer", 90)
def tail(t):
    d = get_daemon()
    for (dialect, p), how, mode in itertools.product(
            BOTH, ("FIN", "RST"), ("cancel", "finish")):
        model = "%s-%s" % (dialect, mode)
        for n in 2 * (120, 140, 160, 180, 200):
            got = leave_in_tail(t, d, model, p, how, n)
            if got is not None:
                break
        t.ok(got is not None, "no answer was just long enough")
        s, turn = got
        whole = "".join(long_answer(n))
        t.eq((turn["state"], turn["said"]), ("complete", len(whole)), "said")
        t.between(turn["heard"], 0, len(whole) - 1, "heard")
        body, heard = answer_of(d, s)
        t.eq((body, len(heard)), (whole, turn["heard"]), "stored")
        t.ok(whole.startswith(heard) and len(heard) % 512 == 0,
             "whole releases")
        t.diag("%d of %d bytes" % (turn["heard"], turn["said"]))
        clean(t, d, s)
        next_hears(t, d, s, model, p,
                   [("user", "tell me"), ("assistant", heard),
                    ("user", "and then?")] if heard else
                   [("user", "tell me"), ("user", "and then?")])
        clean(t, d, s)


@tap.case("a long answer, of which only the end is in memory", 60)
def long_one(t):
    d = get_daemon()
    for (dialect, p), mode in itertools.product(BOTH, ("cancel", "finish")):
        s = name()
        model = "%s-%s" % (dialect, mode)
        pieces = long_answer(2000)	# 1 MB
        b = provider.Barrier()
        t.cleanup(b.release)

        def behave(ex):
            events = ex.events(words.Said("", [], pieces=pieces))
            n = words.first_useful(ex.dialect) + 1200
            ex.start()
            for event in events[:n]:
                ex.chunk(event)
            b.arrive()
            if mode == "cancel":
                ex.wait_gone(15)
                ex.close()
                return
            for event in events[n:]:
                ex.chunk(event)
            ex.end()
        p.script(behave)
        part = "".join(pieces[:1200])
        ask_and_leave(d, s, model, part)
        wait.until(lambda: d.session(s)["turns"][0]["gone_us"], 10,
                   "the client's leaving to be noted")
        b.release()
        turn = ended(d, s, "canceled" if mode == "cancel" else "complete")[0]
        said = part if mode == "cancel" else "".join(pieces)
        t.eq(figures(turn), (len(said), len(part), True), "figures")
        t.eq(answer_of(d, s), (said, None if said == part else part),
             "stored")
        clean(t, d, s)
        next_hears(t, d, s, model, p,
                   [("user", "tell me"), ("assistant", part),
                    ("user", "and then?")])
        clean(t, d, s)


# -- deaths --------------------------------------------------------------------

@tap.case("a worker that dies after the client left: only that was heard", 40)
def dies(t):
    d = Daemon(config(workers=1))
    t.cleanup(d.destroy)
    d.start()
    for dialect, p in BOTH:
        s = name()
        b = provider.Barrier()
        t.cleanup(b.release)

        def behave(ex):
            events = ex.events(words.Said(FULL, pieces=PIECES))
            at = words.first_useful(ex.dialect)
            ex.start()
            for event in events[:at + 3]:
                ex.chunk(event)
            b.arrive()
            for event in events[at + 3:at + 6]:
                ex.chunk(event)
            ex.wait_gone(15)
            ex.close()
        p.script(behave)
        part = "".join(PIECES[:3])
        ask_and_leave(d, s, dialect + "-finish", part)
        wait.until(lambda: d.session(s)["turns"][0]["gone_us"] != 0, 10,
                   "the client's leaving to be noted")
        b.release()

        def flushed():
            db = sqlite3.connect("file:%s?mode=ro" % d.db_path, uri=True)
            n = db.execute("SELECT count(*) FROM part").fetchone()[0]
            db.close()
            return n >= 2
        wait.until(flushed, 10, "the rest to be on disk")
        pid = d.workers()[1]
        os.kill(pid, signal.SIGKILL)
        turn = ended(d, s, "interrupted")[0]
        body, heard = answer_of(d, s)
        t.eq(heard, part, "heard")
        t.ok(FULL.startswith(body) and len(body) > len(part), "generated")
        t.eq(figures(turn), (len(body), len(part), True), "figures")
        wait.until(lambda: d.workers().get(1) not in (None, pid), 10,
                   "a new worker")
        clean(t, d, s)
        next_hears(t, d, s, dialect + "-finish", p,
                   [("user", "tell me"), ("assistant", part),
                    ("user", "and then?")])
        clean(t, d, s)
    d.stop()


if __name__ == "__main__":
    tap.main()
