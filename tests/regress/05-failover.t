"""Failover: every way a provider fails, in both client modes and across
dialects; what the next target hears, what the client is told, how long it
waits."""
import email.utils
import itertools
import os
import sys
import time

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import client
import dialect
import provider
import tap
import wait
from daemon import Config, Daemon, shared

A = provider.Provider("openai")
B = provider.Provider("openai")
C = provider.Provider("anthropic")
ALL = (A, B, C)
FIRST = 800		# ms to the first useful delta
_names = itertools.count(1)


def make():
    conf = Config(workers=2)
    for n, p in (("a", A), ("b", B), ("c", C)):
        conf.provider(n, p, connect_ms=1000, first_token_ms=FIRST,
                      total_ms=3000)
    # A host name that does not resolve, and a plain mode without a first
    # token limit, where only total_ms ends a silence.
    conf.provider("x", A, base_url="http://does-not-exist.invalid:1/v1",
                  first_token_ms=5000)
    conf.provider("t", A, first_token_ms=0, total_ms=600,
                  upstream_stream="client")
    # A plain answer comes as a whole and has no first token.
    conf.provider("pa", A, connect_ms=500, total_ms=FIRST,
                  upstream_stream="client")
    conf.provider("pb", B, upstream_stream="client")
    conf.route("m", ["a/model-a", "b/model-b"])
    conf.route("plain", ["pa/model-a", "pb/model-b"])
    conf.route("mix", ["a/model-a", "c/model-c"])
    conf.route("xim", ["c/model-c", "a/model-a"])
    conf.route("m-off", ["a/model-a", "b/model-b"], continuation="off")
    conf.route("xim-off", ["c/model-c", "a/model-a"], continuation="off")
    conf.route("three", ["a/model-a", "c/model-c", "b/model-b"])
    conf.route("one", ["a/model-a"])
    conf.route("resolve", ["x/model-x", "b/model-b"])
    conf.route("total", ["t/model-t", "b/model-b"])
    conf.route("waits", ["a/model-a"], max_retries=5, backoff_unit_ms=20)
    conf.route("waits2", ["a/model-a", "b/model-b"], max_retries=5,
               backoff_unit_ms=20)
    conf.route("hurry", ["a/model-a"], max_retries=5, backoff_unit_ms=1000,
               deadline_ms=1500)
    conf.route("late", ["a/model-a", "b/model-b"], max_retries=5,
               deadline_ms=700)
    conf.route("last", ["a/model-a", "b/model-b"],
               failover_payload="last_user_message")
    return Daemon(conf).start()


get_daemon = shared(make)


def name():
    return "failover-%d" % next(_names)


def fresh():
    """All providers up, empty, and answering by the echo rules."""
    d = get_daemon()
    for p in ALL:
        p.up()
        p.behave(provider.echo())
        p.take()
    return d


def down(p):
    p.down()


def script(behaviour):
    return lambda p: p.script(behaviour)


def fresh_script(behaviour):
    """On a connection of its own: a pooled one is dialled again."""
    def fail(p):
        p.cut_idle()
        p.script(behaviour)
    return fail


# What goes wrong, the class and the part of the reason that is recorded.
FAULTS = [
    ("refused", down, "network", "refused"),
    ("reset", fresh_script(provider.reset()), "network", ""),
    ("hung up", fresh_script(provider.hang_up()), "network", ""),
    ("500", script(provider.status(500)), "provider", "500"),
    ("502 with a page", script(provider.html(502)), "provider", "502"),
    ("503", script(provider.status(503)), "provider", "503"),
    ("429 with a hint", script(provider.rate_limited(2)), "capacity",
     "429"),
    ("429 without", script(provider.rate_limited()), "capacity", "429"),
    ("401", script(provider.status(401)), "auth", ""),
    ("403", script(provider.status(403)), "auth", ""),
    ("404 model", script(provider.status(404)), "auth", ""),
    ("silence", script(provider.silence()), "network", "first_token"),
    ("headers and pings only", script(provider.headers_only()), "network",
     "first_token"),
    ("an error in a 200", script(provider.error_in_200()), "", ""),
    ("an empty answer", script(provider.answer("")), "provider", "empty"),
    ("a page in a 200", script(provider.raw_reply(b"<html>", "text/html")),
     "provider", ""),
    ("broken JSON in a 200", script(provider.raw_reply(b'{"choices":[')),
     "provider", ""),
    ("a stream without an end", script(provider.raw_stream(
        [b": hello\n\n"])), "", ""),
    ("cut before the first text", script(provider.cut("x", 0, "drop")), "",
     ""),
    ("a status line of garbage", script(lambda ex: (
        ex.send(b"GARBAGE\r\n\r\n"), ex.close())), "", ""),
]


def fail_over(t, model, first, second, target, modes=(False, True),
              late="first_token"):
    d = fresh()
    for what, fail, cls, reason in FAULTS:
        if reason == "first_token":
            reason = late
        for stream in modes:
            where = "%s, %s" % (what, "stream" if stream else "plain")
            n = name()
            for p in ALL:
                p.up()
                p.behave(provider.echo())
            r = client.chat(d, [{"role": "system", "content": "rules"},
                                {"role": "user",
                                 "content": "remember code is Q7"}],
                            session=n, model=model, stream=stream)
            t.eq(r.status, 200, "the first turn: %s: %r" % (where, r))
            first.take()
            second.take()
            fail(first)
            began = time.monotonic()
            r = client.chat(d, "recall code", session=n, model=model,
                            stream=stream)
            took = time.monotonic() - began
            t.eq(r.status, 200, "%s: %r" % (where, r))
            t.eq((r.text, r.finish), ("code is Q7", "stop"), where)
            t.eq(r.headers.get("x-holdfast-target"), target, where)
            t.eq(r.headers.get("x-holdfast-attempts"), "2", where)
            t.eq(r.json["model"] if not stream else r.events[0]["model"],
                 model, "model")
            want = [("system", "rules"), ("user", "remember code is Q7"),
                    ("assistant", "heard 1: remember code is Q7"),
                    ("user", "recall code")]
            t.eq([second.history(q) for q in second.requests], [want], where)
            for q in first.requests:
                t.eq(first.history(q), want, where)
            limit = FIRST / 1000 + 0.6 if reason == late else 1.0
            t.between(took, 0, limit * tap.SCALE, where + ": seconds")
            turn = d.session(n)["attempts"][-2:]
            t.eq([x["n"] for x in turn], [1, 2], where)
            t.eq(turn[1]["cls"], "ok", where)
            if cls:
                t.eq(turn[0]["cls"], cls, where)
            t.isin(reason, turn[0]["reason"], where)
    for p in ALL:
        t.eq(p.violations, [], "violations")
        t.eq(p.errors, [], "errors of the harness")


@tap.case("every fault of the first target: openai to openai", 90)
def openai_openai(t):
    fail_over(t, "m", A, B, "b/model-b")


@tap.case("every fault of the first target: openai to anthropic", 90)
def openai_anthropic(t):
    fail_over(t, "mix", A, C, "c/model-c")


@tap.case("every fault of the first target: anthropic to openai", 90)
def anthropic_openai(t):
    fail_over(t, "xim", C, A, "a/model-a")


@tap.case("every fault of the first target, asked without a stream", 90)
def asked_plain(t):
    fail_over(t, "plain", A, B, "pb/model-b", modes=(False,),
              late="total")


@tap.case("a conversation goes openai, anthropic, openai with all it knows")
def there_and_back(t):
    d = fresh()
    n = name()
    told = []
    for i in range(9):
        (A.down if i % 3 == 1 else A.up)()
        A.take()
        C.take()
        text = "turn %d" % i
        r = client.chat(d, text, session=n, model="mix", stream=i % 2 == 1)
        t.eq(r.status, 200, repr(r))
        p = C if i % 3 == 1 else A
        told.append(("user", text))
        t.eq([p.history(q) for q in p.requests], [told], text)
        told.append(("assistant", r.text))
    t.eq(A.violations + C.violations, [], "violations")


@tap.case("a host that does not resolve, and the total time of an attempt")
def resolve_and_total(t):
    d = fresh()
    r = client.chat(d, "hi", model="resolve")
    t.eq((r.status, r.headers["x-holdfast-target"]), (200, "b/model-b"),
         repr(r))
    A.script(provider.silence())
    r = client.chat(d, "hi", model="total")
    t.eq((r.status, r.headers["x-holdfast-target"]), (200, "b/model-b"),
         repr(r))
    t.between(r.took, 0.55, 1.2 * tap.SCALE, "seconds")


@tap.case("text that never ends is cut by the total time of its attempt")
def total_of_stream(t):
    d = fresh()

    def drip(ex):
        ex.start()
        for event in ex.events(dialect.Said("a b c"))[:2]:
            ex.chunk(event)
        end = time.monotonic() + 10
        while time.monotonic() < end and not ex.wait_gone(0.1):
            ex.chunk(b": ping\n\n")
        ex.close()
    A.script(drip)
    r = client.chat(d, "hi", model="m", session=name(), stream=False)
    t.eq((r.status, r.headers["x-holdfast-target"]), (200, "b/model-b"),
         "nothing was sent to a plain client, so it fails over: %r" % r)
    t.between(r.took, 2.9, 4.5 * tap.SCALE, "seconds")


@tap.case("a stream that breaks after its first text says that it is not "
          "finished")
def cut_after_text(t):
    d = fresh()
    for model, p in (("m-off", A), ("xim-off", C)):
        for what, fault in [
                ("close", provider.cut("one two three", 2)),
                ("drop", provider.cut("one two three", 2, "drop")),
                ("reset", provider.cut("one two three", 2, "reset")),
                ("error event", provider.error_after("one two three", 2))]:
            n = name()
            for q in ALL:
                q.take()
            p.script(fault)
            r = client.chat(d, "hi", session=n, model=model, stream=True)
            t.eq(r.status, 200, what)
            t.eq(r.text, "one two", what)
            t.eq(r.finish, None, what + ": no finish")
            t.eq(r.done, False, what + ": no [DONE]")
            t.ok(r.error and r.error["message"], what + ": an error event")
            t.isin("type", r.error, what)
            shown = d.session(n)
            t.eq([x["state"] for x in shown["turns"]], ["incomplete"], what)
            r = client.chat(d, "go on", session=n, model=model)
            t.eq(r.status, 200, what + ": the next turn")
            t.eq(p.violations, [], what)
            t.eq(p.history(p.requests[-1])[-1], ("user", "go on"), what)


@tap.case("a broken plain answer is never told as complete")
def cut_plain(t):
    d = fresh()
    for what, fault in [("cut body", provider.cut_body()),
                        ("cut", provider.cut("one two", 2)),
                        ("drop", provider.cut("one two", 2, "drop"))]:
        A.script(fault)
        r = client.chat(d, "hi", model="m")
        t.eq((r.status, r.text), (200, "heard 1: hi"), what)
        t.eq(r.headers["x-holdfast-target"], "b/model-b", what)


@tap.case("the caller's own fault is told in the provider's words, once")
def caller_fault(t):
    d = fresh()
    n = name()
    t.eq(client.chat(d, "one", session=n, model="m").status, 200, "turn 1")
    for stream in (False, True):
        for p in ALL:
            p.take()
        A.script(provider.status(400, "temperature is too warm",
                                 param="temperature"))
        r = client.chat(d, "a bad one", session=n, model="m", stream=stream)
        t.eq(r.status, 400, repr(r))
        t.isin("temperature is too warm", r.error["message"], "message")
        t.eq(r.error["type"], "invalid_request_error", "type")
        t.eq(B.requests, [], "not failed over")
    r = client.chat(d, "two", session=n, model="m")
    t.eq(A.history(A.requests[-1]),
         [("user", "one"), ("assistant", "heard 1: one"), ("user", "two")],
         "what was refused is not in the history")
    C.script(provider.status(400, "messages: bad"))
    r = client.chat(d, "three", session=n, model="xim")
    t.eq(r.status, 400, "anthropic's refusal")
    t.eq(set(r.json), {"error"}, "in the caller's protocol")
    t.isin("messages: bad", r.error["message"], "message")


@tap.case("a 400 of a later target is our translation's fault: next")
def later_400(t):
    d = fresh()
    A.script(provider.status(503))
    C.script(provider.status(400, "I do not like this"))
    r = client.chat(d, "hi", model="three")
    t.eq((r.status, r.headers["x-holdfast-target"]), (200, "b/model-b"),
         repr(r))
    t.eq(r.headers["x-holdfast-attempts"], "3", "attempts")


@tap.case("a context that is too long goes to the next target")
def context(t):
    d = fresh()
    A.script(provider.status(400, "This model's maximum context length is "
                             "8192 tokens", code="context_length_exceeded"))
    r = client.chat(d, "hi", model="m")
    t.eq((r.status, r.headers["x-holdfast-target"]), (200, "b/model-b"),
         repr(r))
    C.script(provider.status(400, "prompt is too long: 210000 tokens > "
                             "200000 maximum"))
    r = client.chat(d, "hi", model="xim")
    t.eq((r.status, r.headers["x-holdfast-target"]), (200, "a/model-a"),
         repr(r))


def gone(t, r, status, code=None):
    t.eq(r.status, status, repr(r))
    t.eq(r.headers.get("x-should-retry"), "false", "x-should-retry")
    t.ok(r.error and r.error["message"], "an error body")
    if code:
        t.eq(r.error["code"], code, "code")


@tap.case("all targets gone: 503, 429 with the least hint, 504")
def all_gone(t):
    d = fresh()
    for stream in (False, True):
        A.script(provider.status(503))
        B.script(provider.status(500))
        r = client.chat(d, "hi", model="m", stream=stream)
        gone(t, r, 503)
        t.ok(int(r.headers["retry-after"]) >= 1, "Retry-After")
        A.script(provider.rate_limited(9))
        B.script(provider.rate_limited(4))
        r = client.chat(d, "hi", model="m", stream=stream)
        gone(t, r, 429)
        t.isin(r.headers.get("retry-after"), ("3", "4"), "the least hint")
        A.script(provider.silence())
        B.script(provider.silence())
        r = client.chat(d, "hi", model="m", stream=stream)
        gone(t, r, 504)
        t.between(r.took, 0.75, 2.0 * tap.SCALE, "seconds")
        A.down()
        B.down()
        r = client.chat(d, "hi", model="m", stream=stream)
        gone(t, r, 503)
        A.up()
        B.up()


@tap.case("waits follow 2^a units plus jitter, five at most")
def waits(t):
    d = fresh()
    A.behave(provider.status(503))
    r = client.chat(d, "hi", model="waits")
    gone(t, r, 503)
    t.eq(len(A.requests), 6, "one call and five retries")
    for a in range(5):
        gap = A.requests[a + 1].time - A.requests[a].time
        low = 0.020 * 2 ** a
        t.between(gap, low, low + 0.020 + 0.25 * tap.SCALE, "wait %d" % a)
    # With two targets, each round tries both before it waits.
    for p in ALL:
        p.take()
    B.behave(provider.status(503))
    r = client.chat(d, "hi", model="waits2")
    gone(t, r, 503)
    t.eq((len(A.requests), len(B.requests)), (6, 6), "six rounds")


HINTS = [("retry-after-ms", dict(ms=300), 0.3, 0.3),
         ("Retry-After: 1", dict(seconds=1), 1.0, 1.0),
         ("Retry-After-ms beats Retry-After", dict(seconds=9, ms=200), 0.2,
          0.2)]


@tap.case("a wait is never below the provider's hint")
def hints(t):
    d = fresh()
    for what, hint, low, high in HINTS:
        A.take()
        A.script(provider.rate_limited(**hint))
        r = client.chat(d, "hi", model="waits")
        t.eq(r.status, 200, what)
        t.between(A.requests[1].time - A.requests[0].time, low,
                  high + 0.3 * tap.SCALE, what)
    date = email.utils.formatdate(time.time() + 2, usegmt=True)
    A.take()
    A.script(provider.rate_limited(date=date))
    r = client.chat(d, "hi", model="waits")
    t.eq(r.status, 200, "a date")
    t.between(A.requests[1].time - A.requests[0].time, 0.9,
              2.3 * tap.SCALE, "Retry-After as a date")
    for odd in ("-5", "soon", "", "1e9", "0"):
        A.take()
        A.script(provider.status(429, headers=[("Retry-After", odd)]))
        r = client.chat(d, "hi", model="waits")
        t.eq(r.status, 200, "Retry-After: %r" % odd)
        t.between(A.requests[1].time - A.requests[0].time, 0,
                  1 * tap.SCALE, "Retry-After: %r" % odd)


@tap.case("one deadline is shared by all attempts and waits of a turn")
def deadline(t):
    d = fresh()
    A.behave(provider.status(503))
    r = client.chat(d, "hi", model="hurry")
    t.isin(r.status, (503, 504), repr(r))
    t.between(r.took, 0, 1.8 * tap.SCALE, "seconds")
    A.behave(provider.rate_limited(60))
    r = client.chat(d, "hi", model="hurry")
    gone(t, r, 429)
    t.between(r.took, 0, 1.0 * tap.SCALE,
              "a hint beyond the deadline is told at once")
    t.between(int(r.headers["retry-after"]), 58, 60, "the hint")
    A.behave(provider.silence())
    B.behave(provider.silence())
    r = client.chat(d, "hi", model="late")
    gone(t, r, 504)
    t.between(r.took, 0.65, 1.1 * tap.SCALE, "seconds")


@tap.case("after a failed turn the next one is served")
def recovers(t):
    d = fresh()
    n = name()
    t.eq(client.chat(d, "remember code is Q7", session=n,
                     model="one").status, 200, "turn 1")
    A.script(provider.status(500))
    t.eq(client.chat(d, "x", session=n, model="one").status, 503, "turn 2")
    r = client.chat(d, "recall code", session=n, model="one")
    t.eq((r.status, r.text), (200, "code is Q7"), "turn 3")


@tap.case("failover_payload last_user_message tells the fallback no more")
def baseline(t):
    d = fresh()
    n = name()
    client.chat(d, "remember code is Q7", session=n, model="last")
    B.take()
    A.down()
    r = client.chat(d, "recall code", session=n, model="last")
    t.eq((r.status, r.text), (200, "code is unknown"), repr(r))
    t.eq(B.histories(), [[("user", "recall code")]], "what B heard")
    A.up()
    A.take()
    r = client.chat(d, "recall code", session=n, model="last")
    t.eq(r.text, "code is Q7", "the first target hears all")


@tap.case("a pooled connection that died is redialled, not a failed target")
def stale_pool(t):
    d = fresh()
    for i in range(6):
        t.eq(client.chat(d, "hi", model="one").status, 200, "call")
    A.cut_idle()
    time.sleep(0.05)	# the FINs travel; the pool is not told
    for i in range(4):
        r = client.chat(d, "hi", model="one")
        t.eq(r.status, 200, "after idle connections died: %r" % r)


@tap.case("a call is not repeated behind the gateway's back")
def no_silent_repeat(t):
    d = fresh()
    for i in range(4):
        client.chat(d, "hi", model="one")
    A.take()

    def executes_and_dies(ex):
        ex.reset()
    A.script(executes_and_dies)
    r = client.chat(d, "hi", model="m", session="once")
    t.eq(r.status, 200, repr(r))
    shown = d.session("once")
    t.eq(len(A.requests) + len(B.requests), len(shown["attempts"]),
         "every call has its row")


@tap.case("metrics count attempts, failures by class, and failovers")
def counted(t):
    d = fresh()
    before = d.metrics()
    A.script(provider.status(500))
    t.eq(client.chat(d, "hi", model="m").status, 200, "failed over")
    A.script(provider.rate_limited())
    t.eq(client.chat(d, "hi", model="m").status, 200, "failed over")

    def right():
        after = d.metrics()
        return [after[k] - before[k] for k in (
            "holdfast_attempts_total", "holdfast_failovers_total",
            'holdfast_attempts_failed_total{class="provider"}',
            'holdfast_attempts_failed_total{class="capacity"}')] == [
                4, 2, 1, 1]
    wait.until(right, 5, "the counts")


if __name__ == "__main__":
    tap.main()
