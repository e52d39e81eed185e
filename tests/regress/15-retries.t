"""Retries: the same request is one turn and one bill.  With an Idempotency-Key
it joins or is told the stored answer; without one only if the earlier turn
still runs, or its end never reached the client, or the SDK marks it."""
import itertools
import os
import sys

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import client
import provider
import tap
import wait
from daemon import Config, Daemon, shared

A = provider.Provider("openai")
_n = itertools.count(1)


def make():
    conf = Config(workers=3)
    conf.provider("a", A)
    conf.route("m", ["a/model-a"], max_retries=0)
    return Daemon(conf).start()


get_daemon = shared(make)


def fresh():
    A.take()
    A.behave(provider.echo())
    return get_daemon(), "retry-%d" % next(_n)


def key(k):
    return [("Idempotency-Key", k)]


def same(t, r1, r2):
    """What a replay must repeat."""
    b1, b2 = r1.json, r2.json
    for member in ("id", "created", "model", "usage", "choices"):
        t.eq(b2.get(member), b1.get(member), member)
    t.eq(r2.headers["x-holdfast-turn"], r1.headers["x-holdfast-turn"], "turn")
    t.eq(r2.headers["x-holdfast-target"], r1.headers["x-holdfast-target"],
         "target")


def usage(r):
    return [c["usage"] for c in r.events
            if isinstance(c, dict) and c.get("usage")]


@tap.case("a key is answered once, by any worker, plain")
def plain(t):
    d, s = fresh()
    A.script(provider.answer("the one answer"))
    r1 = client.chat(d, "hi", session=s, headers=key("k1"))
    t.eq(r1.status, 200, "first")
    for _ in range(9):
        r2 = client.chat(d, "hi", session=s, headers=key("k1"))
        t.eq(r2.status, 200, "again")
        same(t, r1, r2)
        t.eq(r2.headers["x-holdfast-history"], "replay", "history")
    t.eq(len(A.requests), 1, "calls of the provider")
    t.eq(len(d.session(s)["turns"]), 1, "turns")


@tap.case("a key is answered once, streamed, with usage")
def streamed(t):
    d, s = fresh()
    A.script(provider.answer("one two three"))
    more = {"stream": True, "stream_options": {"include_usage": True}}
    r1 = client.chat(d, "hi", session=s, headers=key("k2"), **more)
    r2 = client.chat(d, "hi", session=s, headers=key("k2"), **more)
    for r in (r1, r2):
        t.eq((r.status, r.text, r.finish, r.done), (200, "one two three",
             "stop", True), repr(r))
    c1, c2 = r1.events[0], r2.events[0]
    for member in ("id", "created", "model"):
        t.eq(c2[member], c1[member], member)
    t.eq([usage(r2)],
         [usage(r1)], "usage")
    t.eq(len(A.requests), 1, "calls of the provider")


@tap.case("tool calls are told again with the same ids")
def calls(t):
    d, s = fresh()
    tools = [{"type": "function", "function": {"name": "f",
              "parameters": {"type": "object", "properties": {}}}}]
    A.script(provider.answer("", calls=[
        ("call_x1", "f", '{"a": 1.10}'), ("call_x2", "f", '{"a":2}')]))
    r1 = client.chat(d, "hi", session=s, headers=key("k3"), tools=tools)
    r2 = client.chat(d, "hi", session=s, headers=key("k3"), tools=tools)
    t.eq(len(r1.calls), 2, "two calls")
    same(t, r1, r2)
    t.eq(r2.finish, "tool_calls", "finish")


@tap.case("another request under the same key is 409")
def conflict(t):
    d, s = fresh()
    t.eq(client.chat(d, "hi", session=s, headers=key("k4")).status, 200, "1")
    for r in (client.chat(d, "other", session=s, headers=key("k4")),
              client.chat(d, "hi", session=s + "x", headers=key("k4"))):
        t.eq(r.status, 409, repr(r))
        t.eq(r.error["code"], "idempotency_key_reused", "code")
        t.eq(r.headers["x-should-retry"], "false", "x-should-retry")
    t.eq(len(A.requests), 1, "calls of the provider")


@tap.case("a key joins the turn that runs for it")
def join(t):
    d, s = fresh()
    b = provider.Barrier()
    A.script(provider.hold(b, provider.answer("joined")))
    one = client.background(client.chat, d, "hi", session=s,
                            headers=key("k5"))
    b.wait_for(1)
    rest = [client.background(client.chat, d, "hi", session=s,
                              headers=key("k5"), stream=i % 2 == 1)
            for i in range(4)]

    # A stream is another request than a plain one: its bodies differ.
    wait.until(lambda: sum(x["state"] == "queued"
                           for x in d.session(s)["turns"]) == 2, 10,
               "the joiners to wait")
    b.release()
    r1 = one.get()
    t.eq(r1.status, 200, "first")
    for i, r in enumerate(x.get() for x in rest):
        if i % 2 == 1:
            t.eq(r.status, 409, "another request under the key")
        else:
            same(t, r1, r)
    t.eq(len(A.requests), 1, "calls of the provider")
    r = client.chat(d, "and now", session=s)
    t.eq(A.history(A.requests[-1])[-3:], [("user", "hi"),
         ("assistant", "joined"), ("user", "and now")], "one turn in history")
    t.eq(r.status, 200, "the session goes on")


@tap.case("a key holds without a session, and concurrently")
def nameless(t):
    d, _ = fresh()
    rs = client.together([lambda: client.chat(d, "hi", headers=key("k6"))
                          for _ in range(8)])
    t.eq([r.status for r in rs], [200] * 8, "all answered")
    for r in rs[1:]:
        same(t, rs[0], r)
    t.eq(len(A.requests), 1, "calls of the provider")


@tap.case("a key whose turn failed runs again")
def failed(t):
    d, s = fresh()
    A.script(provider.status(500))
    r1 = client.chat(d, "hi", session=s, headers=key("k7"))
    t.eq(r1.status, 503, "failed")
    r2 = client.chat(d, "hi", session=s, headers=key("k7"))
    t.eq(r2.status, 200, "then answered")
    r3 = client.chat(d, "hi", session=s, headers=key("k7"))
    same(t, r2, r3)
    t.eq(len(A.requests), 2, "calls of the provider")
    t.eq([x["state"] for x in d.session(s)["turns"] if x["on_path"]],
         ["complete"], "the history")


@tap.case("a bad key is refused")
def bad_key(t):
    d, s = fresh()
    r = client.chat(d, "hi", session=s, headers=key("k" * 300))
    t.eq((r.status, r.error["param"]), (400, "Idempotency-Key"), repr(r))


@tap.case("without a key: said twice is two turns, once its end arrived")
def twice(t):
    d, s = fresh()
    ids = set()
    for i in range(20):
        r = client.chat(d, "yes", session=s)
        t.eq(r.status, 200, "turn %d" % i)
        ids.add(r.json["id"])
    t.eq(len(ids), 20, "twenty answers")
    t.eq(len(A.requests), 20, "calls of the provider")


@tap.case("without a key: the same request joins while the first one runs")
def join_keyless(t):
    d, s = fresh()
    b = provider.Barrier()
    A.script(provider.hold(b, provider.answer("once")))
    one = client.background(client.chat, d, "hi", session=s)
    b.wait_for(1)
    two = client.background(client.chat, d, "hi", session=s)
    wait.until(lambda: [x["state"] for x in d.session(s)["turns"]] ==
               ["open", "queued"], 10, "the second to wait")
    b.release()
    same(t, one.get(), two.get())
    t.eq(len(A.requests), 1, "calls of the provider")


@tap.case("without a key: the SDK's own retry is told the answer again")
def sdk(t):
    d, s = fresh()
    r1 = client.chat(d, "hi", session=s)
    r2 = client.chat(d, "hi", session=s,
                     headers=[("x-stainless-retry-count", "1")])
    same(t, r1, r2)
    r3 = client.chat(d, "hi", session=s,
                     headers=[("x-stainless-retry-count", "0")])
    t.ne(r3.json["id"], r1.json["id"], "a new turn")
    t.eq(len(A.requests), 2, "calls of the provider")


@tap.case("answers are told again after a restart", deadline=40)
def restart(t):
    p = provider.Provider("openai")
    t.cleanup(p.close)
    p.behave(provider.echo())
    conf = Config(workers=2)
    conf.provider("a", p)
    conf.route("m", ["a/model-a"])
    d = Daemon(conf)
    t.cleanup(d.destroy)
    d.start()
    r1 = client.chat(d, "hi", session="s", headers=key("k"))
    r2 = client.chat(d, "ho", session="s")
    d.stop()
    d.start()
    same(t, r1, client.chat(d, "hi", session="s", headers=key("k")))
    t.eq(len(p.requests), 2, "calls of the provider")
    # Its end arrived before the restart: said again, it is a new turn.
    t.ne(client.chat(d, "ho", session="s").json["id"], r2.json["id"],
         "a new turn")
    d.kill_tree()
    d.start()
    same(t, r1, client.chat(d, "hi", session="s", headers=key("k")))


def have_faults():
    with open(os.path.join(os.environ["HF_BUILDDIR"], "config.h"),
              encoding="utf-8") as f:
        return "#define HF_FAULTS 1" in f.read()


def killed_at(t, point, calls, stream, **more):
    """The worker dies at 'point' of the second turn; the client repeats its
    request and gets one answer."""
    if not have_faults():
        raise tap.Skip("built without --enable-faults")
    p = provider.Provider("openai")
    t.cleanup(p.close)
    p.behave(provider.echo())
    conf = Config(workers=1, handover="off")
    conf.provider("a", p)
    conf.route("m", ["a/model-a"])
    d = Daemon(conf, env={"HF_FAULT": point + "=kill@2"})
    t.cleanup(d.destroy)
    d.start()
    pid = d.workers()[1]
    t.eq(client.chat(d, "one", session="s").status, 200, "turn 1")
    broken = client.chat(d, "two", session="s", stream=stream, **more)
    t.ok(not broken.done and broken.end in ("cut", "reset"), repr(broken))
    wait.until(lambda: d.workers() and pid not in d.workers().values(), 10,
               "a new worker")
    r = client.chat(d, "two", session="s", stream=stream, **more)
    t.eq(r.status, 200, "the retry: %r" % r)
    t.eq(len(p.requests), 1 + calls, "calls of the provider")
    on_path = [x for x in d.session("s")["turns"] if x["on_path"]]
    t.eq([x["state"] for x in on_path], ["complete", "complete"], "history")
    d.stop()
    d.env = {}
    d.start()
    p.take()
    t.eq(client.chat(d, "three", session="s").status, 200, "it goes on")
    told = [w for w in p.history(p.requests[-1]) if w[0] == "user"]
    t.eq(told, [("user", "one"), ("user", "two"), ("user", "three")],
         "what the provider hears")


for _point, _calls in (("turn.t1.done", 1), ("turn.call", 1),
                       ("turn.t2.done", 1)):
    for _stream in (False, True):
        for _key in (False, True):
            def one(t, a=_point, b=_calls, c=_stream, k=_key):
                more = {"headers": key("k")} if k else {}
                killed_at(t, a, b, c, **more)
            tap.case("a worker killed at %s, %s, %s: one turn, one answer" % (
                _point, "stream" if _stream else "plain",
                "with a key" if _key else "without"), deadline=30)(one)


tap.main()
