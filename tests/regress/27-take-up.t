"""A client whose own connection broke takes a stream up again from a position,
while the turn runs, on any worker, and after: no byte twice, none missing."""
import itertools
import json
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import client
import dialect as words
import provider
import tap
import wait
from daemon import Config, Daemon, shared

P = provider.Provider("openai")
FULL = "One two thr\u00e9e \u2014 four \U0001f389 five, six s\u00e9ven eight."
TOOL = [{"type": "function", "function": {"name": "f", "parameters": {
    "type": "object", "properties": {}}}}]
_n = itertools.count(1)


def make():
    conf = Config(workers=3, flush_ms=10)
    conf.provider("p", P, first_token_ms=30000, idle_ms=30000,
                  total_ms=60000, prefill="plain")
    conf.route("m", ["p/x"], on_disconnect="finish", deadline_ms=60000)
    conf.route("cancel", ["p/x"], on_disconnect="cancel")
    conf.route("target", ["p/x"], reported_model="target")
    return Daemon(conf).start()


get_daemon = shared(make)


def name():
    return "t-%d" % next(_n)


def take_up(d, session, turn, after=None, headers=(), timeout=30, more="",
            connection=None, on_event=None):
    path = "/v1/sessions/%s/turns/%s/stream" % (session, turn)
    query = [] if after is None else ["after=%d" % after]
    if more:
        query.append(more)
    if query:
        path += "?" + "&".join(query)
    if connection is not None:
        connection.request("GET", path, headers)
        return connection.response("GET", on_event)
    return client.get(d, path, headers=headers, timeout=timeout,
                      on_event=on_event)


def say(d, s, text=FULL, **more):
    P.behave(provider.answer(text))
    r = client.chat(d, "tell me", session=s, stream=True, **more)
    r.status == 200 or tap.diag(repr(r))
    return r


def whole(t, r, rest, what):
    t.eq((r.status, r.text, r.finish, r.done, r.end),
         (200, rest, "stop", True, "chunked"), "%s: %r" % (what, r))


@tap.case("after the end: from every position, by number and by id", 60)
def after_the_end(t):
    d = get_daemon()
    s = name()
    r = say(d, s)
    turn = r.headers["x-holdfast-turn"]
    ses = r.headers["x-holdfast-session"]
    data = FULL.encode()
    chunk = [e for e in r.events if isinstance(e, dict)][0]
    for at in range(len(data) + 1):
        key, n = [(s, "1"), (ses, turn)][at % 2]
        got = take_up(d, key, n, at)
        what = "after %d" % at
        if at < len(data) and data[at] & 0xc0 == 0x80:
            t.eq((got.status, got.error["code"], got.error["param"]),
                 (400, "invalid_position", "after"), what)
            continue
        whole(t, got, data[at:].decode(), what)
        chunks = [e for e in got.events if isinstance(e, dict)]
        t.eq({(e["id"], e["model"], e["created"]) for e in chunks},
             {(chunk["id"], chunk["model"], chunk["created"])},
             what + ": the same answer")
        t.eq(sum("role" in c["delta"] for c in got.choices),
             1 if at == 0 else 0, what + ": the first chunk")
        t.eq(got.headers["x-holdfast-turn"], turn, what)
    got = take_up(d, s, 1, len(data) + 1)
    t.eq((got.status, got.error["code"]), (400, "invalid_position"),
         "behind the end")
    whole(t, take_up(d, s, 1), FULL, "no position: from the beginning")


@tap.case("while it runs, on another worker, as it comes", 60)
def while_it_runs(t):
    d = get_daemon()
    P.take()
    for before in (1, 3, 6):
        s = name()
        gate = provider.Barrier()
        t.cleanup(gate.release)
        P.script(provider.trickle(FULL, gate, before=before))
        some = words.split(FULL)[:before]
        seen = []

        def enough(r):
            seen.append(r.text)
            return r.text == "".join(some)
        with d.connect_to(sorted(d.workers().values())[0], 30) as conn:
            r = client.chat(d, "tell me", session=s, stream=True,
                            connection=conn, on_event=enough)
        have = len(r.text.encode())
        live = []
        with d.connect_to(sorted(d.workers().values())[1], 30) as conn:
            call = client.background(
                take_up, d, s, 1, have, connection=conn,
                on_event=lambda r: live.append(r.text) and False)
            late = client.background(
                take_up, d, s, 1, 0,
                on_event=lambda r: live.append("late") and False)
            # The second one is told all there is so far, at once.
            wait.until(lambda: "late" in live, 10, "the text so far")
            gate.release()
            whole(t, call.get(30), FULL[len(r.text):], "the rest")
            whole(t, late.get(30), FULL, "all of it")
        t.eq(d.session(s)["turns"][-1]["state"], "complete", "the turn")
        t.eq(len(P.take()), 1, "one call")


@tap.case("events have ids, and Last-Event-ID is a position", 40)
def event_ids(t):
    d = get_daemon()
    s = name()
    say(d, s)
    text, at, rounds = "", None, 0
    while not text == FULL:
        got = take_up(d, s, 1, headers=[("Last-Event-ID", str(at))]
                      if at is not None else (),
                      on_event=lambda r: r.choices and bool(r.text))
        text += got.text
        ids = [x[3:].strip() for x in got.body.decode().splitlines()
               if x.startswith("id:")]
        at = int(ids[-1])
        t.eq(at, len(text.encode()), "the id is the position")
        rounds += 1
        t.ok(rounds < 50, "it gets on")
    # The query counts more than the header.
    whole(t, take_up(d, s, 1, 4, headers=[("Last-Event-ID", "7")]),
          FULL.encode()[4:].decode(), "both")
    for bad in ("x", "-1", "1.5", "99999999999999999999"):
        got = take_up(d, s, 1, more="after=" + bad)
        t.eq((got.status, got.error["param"]), (400, "after"), bad)


@tap.case("calls and usage come with the end", 40)
def calls(t):
    d = get_daemon()
    s = name()
    P.behave(provider.answer("Looking.", [("c1", "f", '{"a": 1}')]))
    r = client.chat(d, "go", session=s, stream=True, tools=TOOL)
    got = take_up(d, s, 1, 3, more="include_usage=true")
    t.eq((got.text, got.finish, got.done), ("king.", "tool_calls", True),
         repr(got))
    t.eq(got.calls, r.calls, "the same call, the same id")
    t.eq([e["usage"]["total_tokens"] for e in got.events
          if isinstance(e, dict) and e.get("usage")], [37], "usage")
    P.behave(provider.answer(FULL))
    r = client.chat(d, "plain", session=s)
    whole(t, take_up(d, s, 2), FULL, "a plain answer, as a stream")


@tap.case("turns that wait, fail, or were left", 60)
def other_turns(t):
    d = get_daemon()
    s = name()
    gate = provider.Barrier()
    t.cleanup(gate.release)
    P.script(provider.hold(gate, provider.answer(FULL)))
    one = client.background(client.chat, d, "one", session=s, stream=True)
    gate.wait_for(1)
    P.behave(provider.answer("two"))
    two = client.background(client.chat, d, "two", session=s, stream=True)
    wait.until(lambda: d.session(s)["session"]["queued"] == 1, 10, "queued")
    got = client.background(take_up, d, s, 2)
    gate.release()
    whole(t, got.get(30), "two", "a turn that waited")
    one.get(30), two.get(30)

    P.behave(provider.status(500))
    r = client.chat(d, "three", session=s, stream=True)
    t.eq(r.status, 503, "it fails")
    got = take_up(d, s, 3)
    t.eq((got.status, got.error["code"]), (503, "no_target"), repr(got))

    # Its client leaves, and the route cancels.
    gate = provider.Barrier()
    t.cleanup(gate.release)
    P.script(provider.trickle(FULL, gate, before=3))
    r = client.chat(d, "four", session=s, stream=True, model="cancel",
                    on_event=lambda r: len(r.text) > 6)
    wait.until(lambda: d.session(s)["turns"][-1]["state"] == "canceled", 10,
               "canceled")
    got = take_up(d, s, 4, len(r.text.encode()))
    # With nothing left to tell it is a plain answer.
    t.eq((got.streamed and got.finish, got.done, got.error["code"]),
         (None if got.streamed else False, False, "turn_canceled"), repr(got))
    t.ok(FULL.startswith(r.text + (got.text if got.streamed else "")),
         "text so far")
    gate.release()


@tap.case("what is not there, or another tenant's, is not found", 40)
def not_found(t):
    d = get_daemon()
    s = name()
    r = say(d, s)
    other = name()
    r2 = say(d, other)
    for key, turn in ((s, 2), ("nobody", 1), (s, 0), (s, "x"),
                      (s, "turn_" + "0" * 26),
                      (s, r2.headers["x-holdfast-turn"]),
                      ("ses_" + "0" * 26, 1)):
        got = take_up(d, key, turn)
        t.eq((got.status, got.error["code"]), (404, "turn_not_found"),
             "%s %s" % (key, turn))
    for path in ("/v1/sessions/", "/v1/sessions/%s" % s,
                 "/v1/sessions/%s/turns/1" % s,
                 "/v1/sessions/%s/turns/1/streams" % s):
        t.eq(client.get(d, path).status, 404, path)
    t.eq(client.request(d, "POST", "/v1/sessions/%s/turns/1/stream" % s,
                        body=b"").status, 405, "POST")


@tap.case("the session of one tenant is nobody else's", 40)
def tenants(t):
    conf = Config(workers=1)
    conf.provider("p", P)
    conf.route("m", ["p/x"])
    d = Daemon(conf)
    t.cleanup(d.destroy)
    d.start()
    a, b = [d.ctl("keys", "create", "--tenant", x)["secret"] for x in ("a", "b")]
    P.behave(provider.answer(FULL))
    r = client.chat(d, "hi", session="s", key=a)
    ses, turn = (r.headers["x-holdfast-session"],
                 r.headers["x-holdfast-turn"])
    for key in ("s", ses):
        for n in (1, turn):
            whole(t, take_up(d, key, n, headers=client.headers_of(key=a)),
                  FULL, "its own")
            got = take_up(d, key, n, headers=client.headers_of(key=b))
            t.eq((got.status, got.error["code"]), (404, "turn_not_found"),
                 "another's")
    # That there are keys is seen within a second.
    wait.until(lambda: take_up(d, "s", 1).status == 401, 10, "nobody")
    d.stop()


@tap.case("workers die: of the turn, and of who follows it", 90)
def deaths(t):
    conf = Config(workers=3, flush_ms=10, handover="on")
    conf.provider("p", P, first_token_ms=30000, idle_ms=30000,
                  total_ms=60000, prefill="plain")
    conf.route("m", ["p/x"], deadline_ms=60000)
    d = Daemon(conf)
    t.cleanup(d.destroy)
    d.start()

    def rest(ex):
        last = ex.request.messages[-1]
        have = last["content"] if last["role"] == "assistant" else ""
        assert FULL.startswith(have), have
        said = words.Said(FULL[len(have):])
        ex.start()
        for event in ex.events(said):
            ex.chunk(event)
        ex.end()
    for who in (1, 2):
        s = name()
        gate = provider.Barrier()
        t.cleanup(gate.release)
        P.behave(rest)
        P.script(provider.trickle(FULL, gate, before=3))
        serves, follows = [d.workers()[k] for k in (1, 2)]
        seen, live = [], []
        with d.connect_to(serves, 40) as c1, d.connect_to(follows, 40) as c2:
            call = client.background(
                client.chat, d, "go", session=s, stream=True, connection=c1,
                on_event=lambda r: seen.append(r.text) and False)
            gate.wait_for(1)
            follow = client.background(
                take_up, d, s, 1, 0, connection=c2,
                on_event=lambda r: live.append(r.text) and False)
            wait.until(lambda: live and live[-1] != "", 10, "text")
            os.kill(d.workers()[who], signal.SIGKILL)
            if who == 2:
                # Its heir follows from the byte that the client has.
                d.log.wait(r"handover: slot=2 .*given=[1-9]", 10)
                gate.release()
            whole(t, call.get(40), FULL, "the client of the turn")
            r = follow.get(40)
            whole(t, r, FULL, "the one that follows")
            t.eq(sum("role" in c["delta"] for c in r.choices), 1,
                 "one first chunk")
            gate.release()
        wait.until(lambda: len(d.workers()) == 3 and
                   {serves, follows} != set(
                       [d.workers().get(1), d.workers().get(2)]), 10,
                   "a new worker")
    d.stop()


@tap.case("a long answer, read slowly, and from the middle", 90)
def long_answer(t):
    d = get_daemon()
    s = name()
    text = "".join("%06d " % i for i in range(60000))
    P.behave(provider.answer(text, pieces=words.split(text, 4000)))
    r = client.chat(d, "tell me all", session=s, stream=True, timeout=60)
    t.eq(r.text, text, "the stream")
    got = take_up(d, s, 1, 7 * 30000, timeout=60)
    whole(t, got, text[7 * 30000:], "the second half")
    with client.Connection(d.addr, 60) as conn:
        conn.request("GET", "/v1/sessions/%s/turns/1/stream" % s)
        time.sleep(0.3)		# the reader does nothing
        whole(t, conn.response("GET"), text, "read late")


if __name__ == "__main__":
    tap.main()
