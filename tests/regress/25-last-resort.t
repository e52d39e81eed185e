"""The last resort: what a route says itself when all targets are gone, within
the deadline; and how the time of a turn is shared, so that all are asked."""
import itertools
import os
import sys

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import client
import provider
import tap
from daemon import Config, Daemon, shared

A = provider.Provider("openai")
B = provider.Provider("anthropic")
C = provider.Provider("openai")
ALL = (A, B, C)
DEADLINE = 1500		# ms
TEXT = "I cannot answer right now. Please hold."
TOOLS = [{"type": "function", "function": {"name": "transfer",
                                           "parameters": {}}}]
_names = itertools.count(1)


def make():
    conf = Config(workers=2)
    for n, p in (("a", A), ("b", B), ("c", C)):
        conf.provider(n, p, first_token_ms=20000, total_ms=30000)
    conf.provider("pa", A, upstream_stream="client", first_token_ms=0)
    conf.provider("pb", B, upstream_stream="client", first_token_ms=0)
    three = ["a/m", "b/m", "c/m"]
    conf.route("text", three, deadline_ms=DEADLINE, last_resort_text=TEXT)
    conf.route("beats", three, deadline_ms=DEADLINE, last_resort_text=TEXT,
               heartbeat_ms=100)
    conf.route("both", three, deadline_ms=DEADLINE, last_resort_text=TEXT,
               last_resort_tool="transfer")
    conf.route("tool", three, deadline_ms=DEADLINE,
               last_resort_tool="transfer")
    conf.route("five", three, deadline_ms=5000, last_resort_text=TEXT)
    conf.route("none", three, deadline_ms=DEADLINE)
    conf.route("plain", ["pa/m", "pb/m", "c/m"], deadline_ms=DEADLINE)
    conf.route("waits", ["a/m"], deadline_ms=DEADLINE, max_retries=5,
               backoff_unit_ms=60000, last_resort_text=TEXT)
    return Daemon(conf).start()


get_daemon = shared(make)


def everybody(behaviour):
    d = get_daemon()
    for p in ALL:
        p.behave(behaviour)
        p.take()
    return d


def name():
    return "resort-%d" % next(_names)


def check_marks(t, r, where):
    t.eq(r.status, 200, "%s: %r" % (where, r))
    t.eq(r.headers.get("x-holdfast-last-resort"), "true", where)
    t.eq(r.headers.get("x-holdfast-target"), None, where + ": nobody's")
    t.isin(b'"system_fingerprint":"holdfast-last-resort"', r.body, where)


@tap.case("all targets silent: the last resort by the deadline", deadline=60)
def silent(t):
    for model in ("text", "beats"):
        for stream in (False, True):
            for n in (name(), None):
                d = everybody(provider.silence())
                where = "%s, stream=%s, session=%s" % (model, stream, n)
                r = client.chat(d, "hi", model=model, stream=stream,
                                session=n)
                began = model == "beats" and stream
                if not began:
                    check_marks(t, r, where)
                t.eq((r.status, r.text, r.finish), (200, TEXT, "stop"), where)
                t.between(r.took, 0.5, DEADLINE / 1000 + 0.5 * (tap.SCALE - 1),
                          where + ": in time")
                t.eq([len(p.requests) for p in ALL], [1, 1, 1],
                     where + ": each was asked")
                if stream:
                    t.isin(b": holdfast last_resort", r.body, where)
                    t.isin(b"data: [DONE]", r.body, where)


@tap.case("all targets silent, deadline 5 s: by 5 s, streamed and not", 60)
def silent_five(t):
    d = everybody(provider.silence())
    asked = [(stream, n) for stream in (False, True) for n in (name(), None)]
    answers = client.together([
        lambda stream=stream, n=n: client.chat(
            d, "hi", model="five", stream=stream, session=n)
        for stream, n in asked])
    for (stream, n), r in zip(asked, answers):
        where = "stream=%s, session=%s" % (stream, n)
        check_marks(t, r, where)
        t.eq((r.text, r.finish), (TEXT, "stop"), where)
        # Nobody is given up long before the time is over.
        t.between(r.took, 4.5, 5.0 + 0.5 * (tap.SCALE - 1), where)
        if n is not None:
            x = d.session(n)
            t.eq([a["target"] for a in x["attempts"]],
                 ["a/m", "b/m", "c/m"], where + ": each was asked")
            t.eq(x["turns"][0]["state"], "complete", where)
    t.eq([len(p.requests) for p in ALL], [4, 4, 4], "calls")


@tap.case("refused at once: at once, and without waiting for what is too late")
def refused(t):
    d = everybody(provider.status(503))
    r = client.chat(d, "hi", model="text", session=name())
    check_marks(t, r, "503s")
    t.between(r.took, 0, 1.0 * tap.SCALE, "seconds")
    r = client.chat(d, "hi", model="waits", session=name())
    check_marks(t, r, "a wait longer than the turn")
    t.eq(r.text, TEXT, "text")


@tap.case("it is stored as the gateway's words, and the next turn hears it")
def stored(t):
    n = name()
    d = everybody(provider.echo())
    t.eq(client.chat(d, "one", model="text", session=n).text, "heard 1: one",
         "a model")
    d = everybody(provider.status(503))
    t.eq(client.chat(d, "two", model="text", session=n, stream=True).text,
         TEXT, "the last resort")
    d = everybody(provider.echo())
    r = client.chat(d, "three", model="text", session=n)
    t.eq(r.text, "heard 3: three", "a model again")
    t.eq(r.headers.get("x-holdfast-last-resort"), None, "no mark")
    t.eq([m["content"] for m in A.requests[0].messages],
         ["one", "heard 1: one", "two", TEXT, "three"], "its history")
    shown = d.session(n)
    t.eq([i["origin"] for i in shown["items"]],
         ["client", "model", "client", "gateway", "client", "model"],
         "whose words")
    t.eq([x["state"] for x in shown["turns"]], ["complete"] * 3, "states")
    t.ok(d.metrics()["holdfast_last_resorts_total"] >= 1, "counted")


@tap.case("a retry is told the same last resort, with its marks")
def replayed(t):
    d = everybody(provider.status(503))
    key = [("Idempotency-Key", name())]
    first = client.chat(d, "hi", model="text", headers=key)
    d = everybody(provider.echo())
    again = client.chat(d, "hi", model="text", headers=key)
    check_marks(t, again, "again")
    t.eq((again.text, again.json["id"]), (TEXT, first.json["id"]), "the same")
    t.eq([len(p.requests) for p in ALL], [0, 0, 0], "nobody was called")


@tap.case("a tool call, if the request offers the tool")
def tool(t):
    for stream in (False, True):
        d = everybody(provider.status(503))
        r = client.chat(d, "hi", model="tool", session=name(), stream=stream,
                        tools=TOOLS)
        check_marks(t, r, "tool")
        t.eq((r.finish, [c[1:] for c in r.calls]),
             ("tool_calls", [("transfer", "{}")]), "the call")
        n = name()
        r = client.chat(d, "hi", model="both", session=n, stream=stream,
                        tools=TOOLS)
        t.eq((r.text, len(r.calls)), (TEXT, 1), "text and call")
        d = everybody(provider.echo())
        back = [{"role": "user", "content": "hi"}, r.message,
                {"role": "tool", "tool_call_id": r.calls[0][0],
                 "content": "done"}, {"role": "user", "content": "well?"}]
        r = client.chat(d, back, model="both", session=n, tools=TOOLS)
        t.eq((r.status, r.text), (200, "heard 2: well?"), "it goes on")
        d = everybody(provider.status(503))
        r = client.chat(d, "hi", model="tool", session=name(), stream=stream)
        t.eq((r.status, r.error["code"]), (503, "no_target"), "not offered")
        r = client.chat(d, "hi", model="both", session=name(), stream=stream)
        t.eq((r.text, r.finish), (TEXT, "stop"), "text alone")


@tap.case("the caller's own error is told, and a stream that began is not mended")
def not_for(t):
    d = everybody(provider.status(400, "top_p is odd"))
    t.eq(client.chat(d, "hi", model="text", session=name()).status, 400,
         "a caller's error")
    d = everybody(provider.cut("one two three four", 3, "drop"))
    r = client.chat(d, "hi", model="text", session=name(), stream=True)
    t.notin(TEXT.encode(), r.body, "half an answer stays what it is")


@tap.case("the deadline is shared: the last target is asked in time",
          deadline=60)
def shares(t):
    for model in ("none", "plain"):
        for stream in (False, True):
            d = everybody(provider.silence())
            C.behave(provider.echo())
            n = name()
            r = client.chat(d, "hi", model=model, stream=stream, session=n)
            where = "%s, stream=%s" % (model, stream)
            t.eq((r.status, r.text), (200, "heard 1: hi"), where)
            t.between(r.took, 0.6, DEADLINE / 1000, where)
            t.eq([a["reason"] for a in d.session(n)["attempts"]],
                 ["share_timeout", "share_timeout", "ok"], where)
    d = everybody(provider.silence())
    r = client.chat(d, "hi", model="none", session=name())
    t.eq((r.status, r.error["code"]), (504, "deadline_exceeded"), "all silent")
    t.eq(r.headers["x-should-retry"], "false", "x-should-retry")
    t.between(r.took, 1.2, DEADLINE / 1000 + 0.5 * tap.SCALE, "seconds")


tap.main()
