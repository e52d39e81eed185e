"""Hedging: when a target says nothing for hedge_after_ms the next one is
called beside it; the first useful delta wins, the loser is hung up on and
recorded, and none of its bytes is anywhere; within a budget."""
import copy
import itertools
import json
import os
import sqlite3
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "bench"))
import client
import dialect as words
import hedge
import provider
import tap
import validate
import wait
from daemon import Config, Daemon, shared

A = provider.Provider("openai")
B = provider.Provider("anthropic")
C = provider.Provider("openai")
ALL = (A, B, C)
AFTER = int(250 * tap.SCALE)
FULL = ("The quick brown fox jumps over the lazy dog, and then it runs far "
        "away; nobody has seen it since.")
_n = itertools.count(1)


def make():
    conf = Config(workers=2, flush_ms=20)
    for n, p in zip("abc", ALL):
        conf.provider(n, p, first_token_ms=max(8000, AFTER * 8),
                      idle_ms=max(3000, AFTER * 8), hedge_after_ms=AFTER)
    conf.target("c/never", hedge_after_ms=0)
    conf.target("b/calm", hedge_after_ms=0)
    conf.target("a/patient", first_token_ms=AFTER + 250)
    conf.target("a/long", first_token_ms=28000, total_ms=29000)
    conf.target("a/client", upstream_stream="client")
    for name, targets in (("ab", ["a/x", "b/y"]), ("ba", ["b/y", "a/x"]),
                          ("abc", ["a/x", "b/y", "c/z"]), ("alone", ["a/x"]),
                          ("calm", ["a/x", "b/calm", "c/z"]),
                          ("cab", ["c/never", "a/x", "b/y"]),
                          ("plain", ["a/client", "b/y"]),
                          ("late", ["a/patient", "b/y"]),
                          ("long", ["a/long", "b/y"])):
        conf.route(name, targets, hedge_budget_percent=100)
    conf.route("tenth", ["a/x", "b/y"])
    conf.route("none", ["a/x", "b/y"], hedge_budget_percent=0)
    conf.route("beats", ["a/x", "b/y"], hedge_budget_percent=100,
               heartbeat_ms=100)
    conf.route("hurry", ["a/x", "b/y"], hedge_budget_percent=100,
               deadline_ms=AFTER * 5)
    return Daemon(conf).start()


get_daemon = shared(make)


def fresh():
    """A name for a session; the providers forget what was."""
    for p in ALL:
        p.behave(provider.silence())
        p.take()
    return "h-%d" % next(_n)


def attempts(d, s):
    """[(target, class, reason)] of the last turn, once it has ended."""
    def ended():
        shown = d.session(s)
        return shown["turns"][-1]["ended_us"] and shown
    shown = wait.until(ended, 10, "the turn to end")
    seq = shown["turns"][-1]["seq"]
    return [(a["target"], a["cls"], a["reason"])
            for a in shown["attempts"] if a["turn_seq"] == seq]


def hung_up_on(t, p, n=0, what="the loser"):
    """The n-th request's provider saw the gateway leave."""
    r = p.requests[n]
    wait.until(lambda: r.peer_left is not None or r.ended is not None, 5,
               "the provider to see the end")
    t.ok(r.peer_left is not None, what + " is hung up on")
    return r.peer_left


def timeline(d, s):
    """[(event, attempt)] of the calls of the last turn, in order of time."""
    events = d.ctl("timeline", s)
    return [(e["event"], e["attempt"]) for e in events
            if e["turn_seq"] == events[-1]["turn_seq"] and e.get("attempt")]


def begins(begun):
    """A stream that has begun and says nothing."""
    def behave(ex):
        ex.start()
        for event in ex.events(words.Said("x"))[:words.first_useful(
                ex.dialect)]:
            ex.chunk(event)
        begun.set()
        ex.wait_gone()
        ex.close()
    return behave


def ends(d):
    m = d.metrics()
    return (m["holdfast_hedges_total"], m["holdfast_hedges_won_total"],
            m["holdfast_hedges_refused_total"])


def grew(d, before):
    return tuple(int(a - b) for a, b in zip(ends(d), before))


def stored_text(d, s):
    return [json.loads(i["body"])["content"] for i in d.session(s)["items"]
            if i["role"] == "assistant"]


def second_wins(t, route, stream, named):
    d = get_daemon()
    s = fresh()
    first, second = (B, A) if route == "ba" else (A, B)
    names = ["b/y", "a/x"] if route == "ba" else ["a/x", "b/y"]
    before = ends(d)
    # A conversation that both must be told.
    first.script(provider.answer("first answer"))
    r = client.chat(d, "hello", session=s if named else None, model=route)
    t.eq(r.text, "first answer", "without a hedge")
    t.eq(len(second.requests), 0, "nobody else was asked")
    second.behave(provider.answer("said by the second"))
    r = client.chat(d, [{"role": "user", "content": "hello"},
                        {"role": "assistant", "content": "first answer"},
                        {"role": "user", "content": "and now?"}],
                    session=s if named else None, model=route, stream=stream)
    t.eq((r.status, r.text, r.finish), (200, "said by the second", "stop"),
         repr(r))
    t.ok(r.took * 1000 >= AFTER, "not before hedge_after_ms")
    t.eq((r.headers["x-holdfast-target"], r.headers["x-holdfast-attempts"]),
         (names[1], "2"), "headers")
    if stream:
        t.eq((r.done, r.end), (True, "chunked"), "the end")
        t.eq([c for c in r.comments if "target=" in c], [], "no switch")
    left = hung_up_on(t, first, 1)
    t.ok(left < r.ended_at + 1.0 * tap.SCALE, "at once")
    t.eq(first.history(first.requests[1]), second.history(second.requests[0]),
         "both were told the same")
    t.eq(len(first.history(first.requests[1])), 3, "and all of it")
    t.eq(grew(d, before), (1, 1, 0), "counters")
    if not named:
        return
    t.eq(attempts(d, s), [(names[0], "hedged", "lost_race"),
                          (names[1], "ok", "ok")], "attempts")
    shown = d.session(s)
    t.eq(shown["turns"][-1]["target"], names[1], "the turn's target")
    loser, winner = shown["attempts"][-2:]
    t.eq(loser["first_token_us"], 0, "the loser said nothing")
    t.ok(loser["total_us"] >= AFTER * 1000, "and was given its time")
    t.ok(winner["started_us"] >= loser["started_us"] + AFTER * 1000 - 1000,
         "the second began later")
    t.ok(0 < winner["first_token_us"] <= winner["total_us"], "times")
    t.eq(stored_text(d, s), ["first answer", "said by the second"], "stored")
    events = timeline(d, s)
    t.eq(events[:2], [("called", 1), ("called", 2)], "timeline")
    t.eq(sorted(events[2:]), [("answered", 2), ("first_token", 2),
                              ("hedged", 1)], "timeline")


for _route in ("ab", "ba"):
    for _stream in (True, False):
        for _named in (True, False):
            def _one(t, args=(_route, _stream, _named)):
                second_wins(t, *args)
            tap.case("the second answers, %s, %s, %s" % (
                _route, "streamed" if _stream else "plain",
                "session" if _named else "no session"))(_one)


def first_wins(t, stream):
    d = get_daemon()
    s = fresh()
    gate = provider.Barrier()
    before = ends(d)
    A.script(provider.hold(gate, provider.answer("said by the first")))
    begun = threading.Event()
    B.script(begins(begun))
    call = client.background(client.chat, d, "hello", session=s, model="ab",
                             stream=stream, headers={"Idempotency-Key": s})
    t.ok(begun.wait(10), "the second was called")
    gate.release()
    r = call.get()
    t.eq((r.status, r.text), (200, "said by the first"), repr(r))
    t.eq((r.headers["x-holdfast-target"], r.headers["x-holdfast-attempts"]),
         ("a/x", "2"), "headers")
    hung_up_on(t, B)
    t.eq(attempts(d, s), [("a/x", "ok", "ok"),
                          ("b/y", "hedged", "lost_race")], "attempts")
    t.eq(d.session(s)["turns"][-1]["target"], "a/x", "the turn's target")
    t.eq(grew(d, before), (1, 0, 0), "counters")
    # Told again, it is still the first one's answer.
    r = client.chat(d, "hello", session=s, model="ab", stream=stream,
                    headers={"Idempotency-Key": s})
    t.eq((r.text, r.headers["x-holdfast-history"],
          r.headers["x-holdfast-target"], r.headers["x-holdfast-attempts"]),
         ("said by the first", "replay", "a/x", "2"), "replay")


for _stream in (True, False):
    def _two(t, stream=_stream):
        first_wins(t, stream)
    tap.case("the first answers after all, %s" % (
        "streamed" if _stream else "plain"))(_two)


@tap.case("both speak at the same moment: one is heard, to the byte", 60)
def photo_finish(t):
    d = get_daemon()
    won = {"alpha": 0, "beta": 0}

    def saying(gate, word):
        def go(ex):
            pieces = [word + "%d " % i for i in range(40)]
            gate.arrive()
            ex.say(words.Said("".join(pieces), pieces=pieces))
        return go
    for i in range(24):
        s = fresh()
        gate = provider.Barrier()
        A.script(saying(gate, "alpha"))
        B.script(saying(gate, "beta"))
        call = client.background(client.chat, d, "hello", session=s,
                                 model="ab" if i % 2 else "ba",
                                 stream=i % 4 < 2)
        gate.wait_for(2)
        gate.release()
        r = call.get()
        word = "alpha" if r.text.startswith("alpha") else "beta"
        won[word] += 1
        t.eq(r.text, "".join(word + "%d " % i for i in range(40)), "text")
        t.eq(stored_text(d, s), [r.text], "stored as heard")
        t.eq(sorted(a[1] for a in attempts(d, s)), ["hedged", "ok"],
             "attempts")
    t.diag("alpha %(alpha)d, beta %(beta)d" % won)


def one_fails(t, who, how):
    d = get_daemon()
    s = fresh()
    gate = provider.Barrier()
    bad = {"500": provider.status(500), "reset": provider.reset(),
           "empty": provider.answer(""),
           "garbage": provider.raw_stream([b"data: {]\n\n"])}[how]
    for p in (A, B):
        p.cut_idle()	# else a reset is dialled again
    if who == "first":
        def fail(ex):
            gate.arrive()
            bad(ex)

        def answer(ex):
            wait.until(lambda: len(A.requests) and A.requests[0].ended, 10,
                       "the first to have failed")
            time.sleep(0.05)
            provider.answer("the other one")(ex)
        A.script(fail)
        B.script(answer)
    else:
        A.script(provider.hold(gate, provider.answer("the other one")))
        B.script(bad)
    call = client.background(client.chat, d, "hello", session=s, model="ab",
                             stream=True)
    B.wait_requests(1)
    if who == "second":
        wait.until(lambda: B.requests[0].ended, 5, "the second to fail")
        time.sleep(0.05)
    gate.release()
    r = call.get()
    t.eq((r.status, r.text, r.done), (200, "the other one", True), repr(r))
    t.eq((len(A.requests), len(B.requests)), (1, 1), "nobody is asked twice")
    got = attempts(d, s)
    ok = 1 if who == "first" else 0
    t.eq(got[ok], (("a/x", "b/y")[ok], "ok", "ok"), "the one that went on")
    t.ok(got[1 - ok][1] in ("provider", "network"), "the other: %r" % (got,))
    t.eq(r.headers["x-holdfast-target"], ("a/x", "b/y")[ok], "target")


for _who in ("first", "second"):
    for _how in ("500", "reset", "empty", "garbage"):
        def _three(t, who=_who, how=_how):
            one_fails(t, who, how)
        tap.case("the %s fails (%s), the other goes on" % (_who, _how))(
            _three)


def both_fail(t, order):
    d = get_daemon()
    s = fresh()
    gates = {p: provider.Barrier() for p in (A, B)}
    for p in (A, B):
        p.script(provider.hold(gates[p], provider.status(503)))
    C.behave(provider.answer("said by the third"))
    call = client.background(client.chat, d, "hello", session=s, model="calm",
                             stream=True)
    for p in (A, B):
        gates[p].wait_for(1)
    first, second = order
    gates[first].release()
    if first is B:
        # The third is called beside the first at once: it is late already.
        C.wait_requests(1)
        r = call.get()
        lead = "hedged"
    else:
        wait.until(lambda: A.requests[0].ended, 5, "the first to fail")
        r = None
        lead = "provider"
    gates[second].release()
    r = r or call.get()
    t.eq((r.status, r.text), (200, "said by the third"), repr(r))
    t.eq([a[:2] for a in attempts(d, s)],
         [("a/x", lead), ("b/calm", "provider"), ("c/z", "ok")], "attempts")
    t.eq(r.headers["x-holdfast-attempts"], "3", "header")
    t.eq([len(p.requests) for p in ALL], [1, 1, 1], "each was asked once")


for _order in ((A, B), (B, A)):
    def _four(t, order=_order):
        both_fail(t, order)
    tap.case("both fail, the %s before: on with the third" % (
        "first" if _order[0] is A else "second"))(_four)


@tap.case("both fail and nobody is left: an error, and both are recorded")
def all_gone(t):
    d = get_daemon()
    s = fresh()
    gate = provider.Barrier()
    A.script(provider.hold(gate, provider.status(500)))
    B.script(provider.hold(gate, provider.status(500)))
    call = client.background(client.chat, d, "hello", session=s, model="ab")
    gate.wait_for(2)
    gate.release()
    r = call.get()
    t.eq((r.status, r.error["code"]), (503, "no_target"), repr(r))
    t.eq([a[:2] for a in attempts(d, s)],
         [("a/x", "provider"), ("b/y", "provider")], "attempts")


@tap.case("the winner breaks off in mid-stream and is continued")
def winner_breaks(t):
    d = get_daemon()
    pieces = words.split(FULL, 4)

    def broken(ex):
        events = ex.events(words.Said(FULL, pieces=pieces))
        ex.start()
        for event in events[:words.first_useful(ex.dialect) + 9]:
            ex.chunk(event)
        ex.end()
        ex.close()

    def rest(request):
        said = [validate.text_of(m["content"]) for m in request.messages
                if m["role"] == "assistant"]
        part = " ".join(said[-1].split())
        assert FULL.startswith(part), part
        return FULL[len(part):]
    for route, asked in (("abc", C), ("ab", A)):
        s = fresh()
        before = ends(d)
        asked.behave(provider.reply_to(rest))
        A.script(provider.silence())
        B.script(broken)
        r = client.chat(d, "tell me", session=s, model=route, stream=True)
        t.eq((r.status, r.text, r.done), (200, FULL, True), repr(r))
        t.eq(stored_text(d, s), [FULL], "stored as heard")
        got = attempts(d, s)
        t.eq([a[0] for a in got], ["a/x", "b/y", "c/z" if asked is C else
                                   "a/x"], "who was asked")
        t.eq((got[0][1:], got[2][1:]), (("hedged", "lost_race"),
                                        ("ok", "ok")), "attempts")
        t.ok(got[1][1] in ("provider", "network"), "cut: %r" % (got,))
        t.eq(r.headers["x-holdfast-target"], "b/y", "the winner began")
        t.isin("attempts=3", str(r.comments), "and another one finished")
        t.eq(grew(d, before), (1, 1, 0), "a continuation is not hedged")


@tap.case("tools offered: the call of the winner, once, with our id")
def tools(t):
    d = get_daemon()
    tool = [{"type": "function", "function": {"name": "f", "parameters": {
        "type": "object", "properties": {}}}}]
    for stream in (True, False):
        s = fresh()
        B.script(provider.answer("", [("toolu_q", "f", '{"n": 1}')]))
        r = client.chat(d, "call", session=s, model="ab", stream=stream,
                        tools=tool)
        t.eq((r.finish, [c[1:] for c in r.calls]),
             ("tool_calls", [("f", '{"n": 1}')]), repr(r))
        t.eq([a[1] for a in attempts(d, s)], ["hedged", "ok"], "attempts")
        t.eq(len(A.requests[0].json["tools"]),
             len(B.requests[0].json["tools"]), "both were offered it")


@tap.case("a tool call that has begun to come is something said")
def tool_begins(t):
    d = get_daemon()
    s = fresh()
    gate = provider.Barrier()
    tool = [{"type": "function", "function": {"name": "f", "parameters": {
        "type": "object", "properties": {}}}}]

    def slow_call(ex):
        events = ex.events(words.Said("", [("call_1", "f", '{"n": 12345}')]))
        ex.start()
        B.wait_requests(1)
        for event in events[:4]:
            ex.chunk(event)
        gate.arrive()
        for event in events[4:]:
            ex.chunk(event)
        ex.end()
    A.script(slow_call)
    call = client.background(client.chat, d, "call", session=s, model="ab",
                             stream=True, tools=tool)
    gate.wait_for(1)
    hung_up_on(t, B)
    gate.release()
    r = call.get()
    t.eq([c[1:] for c in r.calls], [("f", '{"n": 12345}')], repr(r))
    t.eq(r.headers["x-holdfast-target"], "a/x", "target")


def hedged_not(t, route, first, text, **more):
    d = get_daemon()
    s = fresh()
    before = ends(d)
    A.script(first)
    B.behave(provider.answer("of the second"))
    r = client.chat(d, "hello", session=s, model=route, **more)
    t.eq(r.text, text, repr(r))
    t.eq(grew(d, before), (0, 0, 0), "counters")
    return s


@tap.case("who is not hedged: the quick, the plain call, budget 0, no next")
def not_hedged(t):
    late = provider.delay(AFTER * 3 / 1000, provider.answer("late"))
    hedged_not(t, "ab", provider.answer("quick"), "quick")
    hedged_not(t, "plain", late, "late")
    hedged_not(t, "none", late, "late")
    hedged_not(t, "alone", late, "late")
    d = get_daemon()
    s = fresh()
    before = ends(d)
    # Each target has its own deadline; this one has none.
    C.script(provider.delay(AFTER * 3 / 1000, provider.status(500)))
    A.script(provider.silence())
    B.behave(provider.answer("beside the second"))
    r = client.chat(d, "hello", session=s, model="cab")
    t.eq(r.text, "beside the second", repr(r))
    t.eq([a[:2] for a in attempts(d, s)],
         [("c/never", "provider"), ("a/x", "hedged"), ("b/y", "ok")],
         "attempts")
    t.eq(grew(d, before), (1, 1, 0), "counters")


@tap.case("a pause in an answer that has begun is not hedged")
def pause(t):
    def first(ex):
        events = ex.events(words.Said("one two three"))
        n = words.first_useful(ex.dialect) + 1
        ex.start()
        for event in events[:n]:
            ex.chunk(event)
        if ex.wait_gone(AFTER * 3 / 1000):
            return
        for event in events[n:]:
            ex.chunk(event)
        ex.end()
    s = hedged_not(t, "ab", first, "one two three", stream=True)
    t.eq([a[1] for a in attempts(get_daemon(), s)], ["ok"], "one attempt")


@tap.case("the first one's deadline ends it; the second goes on")
def first_token(t):
    d = get_daemon()
    s = fresh()
    A.script(provider.silence())
    B.script(provider.delay(0.8, provider.answer("slow too")))
    r = client.chat(d, "hello", session=s, model="late", stream=True)
    t.eq(r.text, "slow too", repr(r))
    t.eq(attempts(d, s), [("a/patient", "network", "first_token_timeout"),
                          ("b/y", "ok", "ok")], "attempts")
    hung_up_on(t, A)


@tap.case("a second that cannot be reached: the third beside the first")
def next_beside(t):
    d = get_daemon()
    s = fresh()
    before = ends(d)
    B.down()
    t.cleanup(B.up)
    C.behave(provider.answer("said by the third"))
    r = client.chat(d, "hello", session=s, model="abc", stream=True)
    t.eq(r.text, "said by the third", repr(r))
    t.eq(attempts(d, s), [("a/x", "hedged", "lost_race"),
                          ("b/y", "network", "connect_refused"),
                          ("c/z", "ok", "ok")], "attempts")
    t.eq(grew(d, before), (2, 1, 0), "counters")


@tap.case("what is the caller's fault is told by the first; not by the other")
def caller(t):
    d = get_daemon()
    s = fresh()
    gate = provider.Barrier()
    A.script(provider.hold(gate, provider.status(400, "no such thing")))
    call = client.background(client.chat, d, "hello", session=s, model="ab")
    B.wait_requests(1)
    gate.release()
    r = call.get()
    t.eq((r.status, r.error["message"]), (400, "no such thing"), repr(r))
    hung_up_on(t, B)
    t.eq([a[1:] for a in attempts(d, s)],
         [("caller", "http_400"), ("hedged", "not_needed")], "attempts")
    s = fresh()
    gate = provider.Barrier()
    A.script(provider.hold(gate, provider.answer("fine")))
    B.script(provider.status(400, "wrong translation"))
    call = client.background(client.chat, d, "hello", session=s, model="ab")
    B.wait_requests(1)
    wait.until(lambda: B.requests[0].ended, 5, "the second to refuse")
    gate.release()
    r = call.get()
    t.eq((r.status, r.text), (200, "fine"), repr(r))


@tap.case("a client that leaves: both are hung up on and recorded")
def client_leaves(t):
    d = get_daemon()
    s = fresh()
    c = client.Connection(d.addr)
    c.request("POST", "/v1/chat/completions",
              client.headers_of(s), b'{"model":"ab","stream":true,'
              b'"messages":[{"role":"user","content":"hello"}]}')
    B.wait_requests(1)
    c.close()
    hung_up_on(t, A, what="the first")
    hung_up_on(t, B, what="the second")
    t.eq(attempts(d, s), [("a/x", "canceled", "client_gone"),
                          ("b/y", "canceled", "client_gone")], "attempts")
    t.eq(d.session(s)["turns"][-1]["state"], "canceled", "the turn")


@tap.case("the turn's deadline ends the second, its share the first")
def deadline(t):
    d = get_daemon()
    s = fresh()
    r = client.chat(d, "hello", session=s, model="hurry")
    t.eq((r.status, r.error["code"]), (504, "deadline_exceeded"), repr(r))
    # The first has its share of the time, the last one all of the rest.
    t.eq(attempts(d, s), [("a/x", "network", "share_timeout"),
                          ("b/y", "network", "deadline")], "attempts")
    hung_up_on(t, A)
    hung_up_on(t, B)


@tap.case("a heartbeat began the response: the end names who answered")
def heartbeat(t):
    d = get_daemon()
    s = fresh()
    B.script(provider.delay(0.4, provider.answer("said by the second")))
    r = client.chat(d, "hello", session=s, model="beats", stream=True)
    t.eq((r.text, r.headers["x-holdfast-target"]),
         ("said by the second", "a/x"), repr(r))
    t.isin("holdfast target=b/y attempts=2", str(r.comments), "the truth")


def locked(t, d):
    """The database, as a foreign writer that holds its lock."""
    db = sqlite3.connect(d.db_path, timeout=10, isolation_level=None)
    db.execute("PRAGMA wal_autocheckpoint = 0")
    t.cleanup(db.close)
    db.execute("BEGIN IMMEDIATE")
    return db


@tap.case("the second is not called before that is on disk", 40)
def record_first(t):
    d = get_daemon()
    s = fresh()
    B.behave(provider.answer("said by the second"))
    call = client.background(client.chat, d, "hello", session=s, model="ab")
    A.wait_requests(1)
    db = locked(t, d)
    time.sleep(AFTER * 4 / 1000)	# nothing may happen in this time
    t.eq(B.requests, [], "no call while the commit cannot be made")
    db.execute("ROLLBACK")
    t.eq(call.get().text, "said by the second", "then it is called")
    t.eq([a[1] for a in attempts(d, s)], ["hedged", "ok"], "attempts")


@tap.case("the first answers while the second is being recorded", 40)
def answered_meanwhile(t):
    d = get_daemon()
    s = fresh()
    before = ends(d)
    gate, said = provider.Barrier(), threading.Event()
    A.script(provider.hold(gate, provider.answer("said by the first")))

    def seen(r):
        if r.text:
            said.set()
    call = client.background(client.chat, d, "hello", session=s, model="ab",
                             stream=True, on_event=seen)
    gate.wait_for(1)
    db = locked(t, d)
    time.sleep(AFTER * 4 / 1000)	# the record is under way by now
    gate.release()
    t.ok(said.wait(10), "what it says is heard at once")
    db.execute("ROLLBACK")
    r = call.get()
    t.eq((r.text, r.done), ("said by the first", True), repr(r))
    t.eq(attempts(d, s), [("a/x", "ok", "ok"),
                          ("b/y", "hedged", "not_called")], "attempts")
    t.eq(B.requests, [], "the second was not called")
    t.notin(("called", 2), timeline(d, s), "timeline")
    t.eq(grew(d, before), (0, 0, 0), "counters")


@tap.case("the first fails while the second is being recorded", 40)
def failed_meanwhile(t):
    d = get_daemon()
    s = fresh()
    gate = provider.Barrier()
    A.script(provider.hold(gate, provider.status(500)))
    B.behave(provider.answer("said by the second"))
    call = client.background(client.chat, d, "hello", session=s, model="ab")
    gate.wait_for(1)
    db = locked(t, d)
    time.sleep(AFTER * 4 / 1000)	# the record is under way by now
    gate.release()
    wait.until(lambda: A.requests[0].ended, 5, "the first to fail")
    db.execute("ROLLBACK")
    r = call.get()
    t.eq((r.text, r.headers["x-holdfast-target"]),
         ("said by the second", "b/y"), repr(r))
    t.eq([a[:2] for a in attempts(d, s)], [("a/x", "provider"),
                                           ("b/y", "ok")], "attempts")
    t.eq((len(A.requests), len(B.requests)), (1, 1), "one call each")


@tap.case("the client leaves while the second is being recorded", 40)
def left_meanwhile(t):
    d = get_daemon()
    s = fresh()
    c = client.Connection(d.addr)
    c.request("POST", "/v1/chat/completions",
              client.headers_of(s), b'{"model":"ab","stream":true,'
              b'"messages":[{"role":"user","content":"hello"}]}')
    A.wait_requests(1)
    db = locked(t, d)
    time.sleep(AFTER * 4 / 1000)	# the record is under way by now
    c.close()
    hung_up_on(t, A, what="the first")
    db.execute("ROLLBACK")
    t.eq(attempts(d, s), [("a/x", "canceled", "client_gone"),
                          ("b/y", "canceled", "client_gone")], "attempts")
    t.eq(B.requests, [], "the second was not called")
    t.eq(d.session(s)["turns"][-1]["state"], "canceled", "the turn")


@tap.case("no record, no call: the first goes on alone", 60)
def not_recorded(t):
    d = get_daemon()
    s = fresh()
    gate = provider.Barrier()
    A.script(provider.hold(gate, provider.answer("said by the first")))
    call = client.background(client.chat, d, "hello", session=s, model="long",
                             timeout=40)
    gate.wait_for(1)
    since = len(d.log.lines)
    db = locked(t, d)
    d.log.wait(r"turn: not_hedged", 20, since=since)
    db.execute("ROLLBACK")
    gate.release()
    r = call.get()
    t.eq((r.text, r.headers["x-holdfast-attempts"]),
         ("said by the first", "1"), repr(r))
    t.eq(attempts(d, s), [("a/long", "ok", "ok")], "attempts")
    t.eq(B.requests, [], "the second was not called")


@tap.case("the budget: a burst, then a tenth of the turns, over all workers",
          60)
def budget(t):
    d = get_daemon()
    fresh()
    before = ends(d)
    hedged = []
    A.behave(provider.delay(AFTER * 3 / 1000, provider.answer("patience")))
    B.behave(provider.answer("hedge"))
    for i in range(22):
        # Connections of their own: either worker takes them.
        r = client.chat(d, "hello", session="budget-%d" % i, model="tenth")
        t.ok(r.text in ("patience", "hedge"), repr(r))
        hedged.append(r.text == "hedge")
    t.eq([i + 1 for i, h in enumerate(hedged) if h], [1, 2, 3, 4, 5, 11, 21],
         "which turns were hedged")
    t.eq(grew(d, before), (7, 7, 15), "counters")
    t.eq(len(B.requests), 7, "calls of the second")


@tap.case("200 turns, one in twenty late: few are slow, no loser is heard",
          180)
def load(t):
    scale = max(1, tap.SCALE)
    # bench/hedge.py has the full size.
    small = hedge.Load(turns=200, sessions=20, slow_ms=int(2500 * scale),
                       fast_ms=20, hedge_ms=int(400 * scale),
                       limit_ms=int(1800 * scale))
    out = hedge.run(small, True)
    t.eq(hedge.check(small, out), [], "problems")
    # Without hedging 10 are.
    t.ok(out.slow(small.limit_ms) <= 4, "%d turns were slow" % out.slow(
        small.limit_ms))
    t.ok(out.counters["hedges_won"] >= 6, "hedges: %r" % out.counters)
    late = out.late_ms()
    t.ok(late[len(late) // 2] < 250 * scale, "hung up on: %r ms" % late)

    # The checks see what they are for.
    def wrong(change):
        bad = copy.deepcopy(out)
        change(bad)
        t.ok(hedge.check(small, bad), "unseen: %s" % change.__name__)

    def foreign_word(bad):
        turn = next(iter(bad.text))
        name = (hedge.BRAVO if bad.text[turn].startswith(hedge.ALPHA)
                else hedge.ALPHA)
        bad.text[turn] += hedge.words_of(name, turn)[0]
        bad.stored = {s: [bad.text[n] for n in small.turns_of(s)]
                      for s in bad.stored}

    def stored_otherwise(bad):
        bad.stored[3][2] += " "

    def not_hung_up_on(bad):
        for c in bad.calls:
            c.left_at = None

    def asked_twice(bad):
        bad.calls.append(bad.calls[0])

    def miscounted(bad):
        bad.counters["hedges_won"] -= 1
    for change in (foreign_word, stored_otherwise, not_hung_up_on,
                   asked_twice, miscounted):
        wrong(change)


@tap.case("nothing was refused by the strict providers")
def violations(t):
    for p in ALL:
        t.eq((p.violations, p.errors), ([], []), p.dialect)


tap.main()
