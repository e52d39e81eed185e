"""What was reported against other gateways, each as the smallest case that
shows it: framing of providers, headers that leak, redirects, connections and
descriptors after failures, answers that broke off."""
import itertools
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import client
import dialect
import provider
import tap
import wait
from daemon import Config, Daemon, KEY, shared

A = provider.Provider("openai", key=KEY)
B = provider.Provider("openai", key=KEY)
C = provider.Provider("anthropic", key=KEY)
LONG = bool(os.environ.get("HF_TEST_LONG"))
_names = itertools.count(1)


def make():
    conf = Config(workers=2)
    for name_, p in (("a", A), ("b", B), ("c", C)):
        conf.provider(name_, p, first_token_ms=2000)
    conf.route("m", ["a/model-a", "b/model-b"])
    conf.route("one", ["a/model-a"])
    conf.route("three", ["a/model-a", "c/model-c", "b/model-b"])
    return Daemon(conf).start()


get_daemon = shared(make)


def fresh():
    for p in (A, B, C):
        p.up()
        p.behave(provider.echo())
        p.take()
    return get_daemon(), "field-%d" % next(_names)


def body(ex, text="from a"):
    """An answer's bytes, in the form that was asked for, and its type."""
    said = dialect.Said(text)
    if ex.request.stream:
        return b"".join(ex.events(said)), "text/event-stream"
    return (dialect.plain(ex.dialect, said, ex.request.model),
            "application/json")


def head(*lines):
    return "\r\n".join(lines + ("", "")).encode()


# --- framing -----------------------------------------------------------------

def informational(ex):
    data, kind = body(ex)
    ex.send(head("HTTP/1.1 100 Continue") + head(
        "HTTP/1.1 103 Early Hints", "Link: </x>; rel=preload"))
    ex.reply(200, data, kind=kind)


def trailers(ex):
    data, kind = body(ex)
    ex.start(kind=kind, headers=[("Trailer", "X-Sum")])
    ex.chunk(data)
    ex.send(b"0\r\nX-Sum: 1\r\n\r\n")


def extensions(ex):
    data, kind = body(ex)
    ex.start(kind=kind)
    ex.send(b"%X;name=\"v;1\"\r\n" % len(data) + data + b"\r\n0;last\r\n\r\n")


def until_close(ex):
    data, kind = body(ex)
    ex.head(200, [("Content-Type", kind), ("Connection", "close")])
    ex.send(data)
    ex.close()


def http10(ex):
    data, kind = body(ex)
    ex.send(head("HTTP/1.0 200 OK", "Content-Type: " + kind) + data)
    ex.close()


def bare_type(ex):
    data, _ = body(ex)
    ex.send(head("HTTP/1.1 200", "content-length:%d" % len(data)) + data)


@tap.case("unusual but right framings of providers are understood")
def right_framings(t):
    d, _ = fresh()
    for fn in (informational, trailers, extensions, until_close, http10,
               bare_type):
        for stream in (False, True):
            A.behave(fn)
            r = client.chat(d, "hi", model="m", stream=stream)
            what = "%s stream=%s" % (fn.__name__, stream)
            t.eq((r.status, r.text, r.finish), (200, "from a", "stop"),
                 "%s: %r" % (what, r))
            t.eq(r.headers["x-holdfast-target"], "a/model-a", what)
    t.eq(B.requests, [], "nobody else was asked")


def garbage_head(ex):
    ex.send(b"\x16\x03\x01 this is no HTTP\r\n\r\n")


def bad_chunk(ex):
    ex.start()
    ex.send(b"zz\r\nnonsense\r\n")


def zipped(ex):
    data, kind = body(ex)
    ex.reply(200, b"\x1f\x8b\x08\x00" + data,
             [("Content-Encoding", "gzip")], kind)


def endless_header(ex):
    ex.send(b"HTTP/1.1 200 OK\r\nX-Long: ")
    for _ in range(64):
        ex.send(b"x" * 65536)


def switching(ex):
    ex.send(head("HTTP/1.1 101 Switching Protocols", "Upgrade: h2c",
                 "Connection: Upgrade"))


@tap.case("broken framings of providers fail over and poison no connection",
          60)
def broken_framings(t):
    d, _ = fresh()
    for fn in (garbage_head, bad_chunk, zipped, endless_header,
               switching):
        for stream in (False, True):
            fresh()
            A.behave(provider.answer("from a"))
            t.eq(client.chat(d, "hi", model="m").text, "from a", "warm")
            A.script(fn)
            r = client.chat(d, "hi", model="m", stream=stream)
            what = "%s stream=%s" % (fn.__name__, stream)
            t.eq((r.status, r.text), (200, "heard 1: hi"),
                 "%s: %r" % (what, r))
            t.eq(r.headers["x-holdfast-target"], "b/model-b", what)
            used = A.requests[-1].conn_n
            for _ in range(4):
                t.eq(client.chat(d, "hi", model="m").text, "from a",
                     what + ": the next ones")
            if fn is not zipped:	# whose framing is right
                t.notin(used, [q.conn_n for q in A.requests[2:]],
                        what + ": a broken connection is not used again")


@tap.case("bytes behind an answer are not the next one's")
def bytes_behind(t):
    d, _ = fresh()
    ghost = dialect.plain("openai", dialect.Said("ghost"), "m")

    def fn(ex):
        data, kind = body(ex)
        ex.send(head("HTTP/1.1 200 OK", "Content-Type: " + kind,
                     "Content-Length: %d" % len(data)) + data +
                head("HTTP/1.1 200 OK", "Content-Type: application/json",
                     "Content-Length: %d" % len(ghost)) + ghost)
    for stream in (False, True):
        A.behave(provider.answer("mine"))
        A.script(fn)
        t.eq(client.chat(d, "hi", model="one", stream=stream).text, "from a",
             "the answer")
        for _ in range(6):
            r = client.chat(d, "hi", model="m", stream=stream)
            t.eq(r.text, "mine", "no ghost: %r" % r)


# --- what leaks --------------------------------------------------------------

@tap.case("no header of a provider reaches the client")
def headers_stay(t):
    d, _ = fresh()
    odd = [("Set-Cookie", "session=upstream"), ("Server", "upstream/9"),
           ("X-Request-Id", "req_upstream"), ("Via", "1.1 upstream"),
           ("openai-organization", "upstream"), ("ETag", "upstream"),
           ("x-ratelimit-remaining-requests", "41"), ("Age", "3"),
           ("Keep-Alive", "timeout=5"), ("Vary", "upstream"),
           ("Access-Control-Allow-Origin", "upstream")]

    def good(ex):
        data, kind = body(ex)
        ex.reply(200, data, odd, kind)
    for fn in (good, provider.status(500, "x", odd),
               provider.status(400, "x", odd)):
        for stream in (False, True):
            A.behave(fn)
            r = client.chat(d, "hi", model="one", stream=stream)
            for name, value in r.header_list:
                t.notin("upstream", value, name)
                t.ok(name.lower() not in ("set-cookie", "age", "etag", "via",
                                          "keep-alive"), name)
            names = [n.lower() for n, _ in r.header_list]
            t.eq(len(names), len(set(names)), "no header twice: %r" % names)
            t.eq(len({"content-length", "transfer-encoding"} & set(names)),
                 1, "one framing")


@tap.case("a redirect is not followed, and no key goes anywhere else")
def redirect(t):
    d, _ = fresh()
    other = provider.Provider("openai", strict=False)
    t.cleanup(other.close)
    for status in (301, 302, 303, 307, 308):
        for stream in (False, True):
            A.behave(lambda ex: ex.reply(status, b"", [
                ("Location", other.base_url + "/chat/completions")]))
            r = client.chat(d, "hi", model="m", stream=stream)
            t.eq((r.status, r.headers["x-holdfast-target"]),
                 (200, "b/model-b"), "%d: %r" % (status, r))
    t.eq((other.connections, other.requests), (0, []), "never contacted")


@tap.case("an error of a provider never shows its address or key")
def error_words(t):
    d, _ = fresh()
    for fn in (provider.status(401, "Incorrect API key provided: " + KEY),
               provider.status(500, "http://127.0.0.1:%d down" % A.port),
               provider.reset()):
        A.behave(fn)
        for stream in (False, True):
            r = client.chat(d, "hi", model="one", stream=stream)
            t.eq(r.status, 503, repr(r))
            for word in (KEY, str(A.port), "127.0.0.1"):
                t.notin(word, r.error["message"], "the message")
    r = client.get(d, "/metrics")
    t.notin(KEY.encode(), r.body, "metrics")


# --- connections and descriptors ---------------------------------------------

@tap.case("a client's connection serves on after errors of every kind")
def connection_lives(t):
    d, n = fresh()
    ok = json.dumps(client.body_of("hi", "one")).encode()
    bad = [(404, dict(model="nothing"), None), (400, dict(n=3), None),
           (503, {}, provider.status(500)), (400, {}, provider.status(400)),
           (429, {}, provider.rate_limited(1)), (503, {}, provider.reset()),
           (200, dict(stream=True), provider.error_after("a b c d", 2)),
           (200, dict(stream=True), provider.cut("a b c d", 2, "reset")),
           (503, dict(stream=True), provider.status(500))]
    with client.Connection(d.addr) as c:
        for status, fields, fault in bad * 3:
            if fault is not None:
                A.cut_idle()	# else a reset is dialled again
                A.script(fault)
            more = dict(fields)
            model = more.pop("model", "one")
            r = client.chat(d, "hi", model=model, connection=c, **more)
            t.eq(r.status, status, "%r: %r" % (fields, r))
            t.isin(r.end, ("length", "chunked"), "whole by its framing")
            t.ok(r.error, "an error: %r" % r)
            r = client.chat(d, "", raw=ok, connection=c)
            t.eq((r.status, r.text), (200, "heard 1: hi"), "after %r" %
                 (fields,))


def descriptors(pid):
    return len(os.listdir("/proc/%d/fd" % pid))


@tap.case("failing calls of every kind leak no descriptor", 120)
def no_leak(t):
    d, _ = fresh()
    faults = [provider.reset(), provider.hang_up(), provider.status(500),
              provider.cut("a b c", 1, "drop"), provider.html(502),
              provider.cut("a b c", 1, "reset"), provider.cut_body(),
              provider.error_in_200(), garbage_head, bad_chunk,
              provider.error_after("a b c", 1)]

    def round_(k):
        for fault in faults:
            A.script(*[fault] * 4)
            client.together([lambda i=i: client.chat(
                d, "hi", model="one", stream=i % 2 == 0) for i in range(4)])

    def count():
        return {pid: descriptors(pid) for pid in d.workers().values()}
    for k in range(2):
        round_(k)
    before = count()
    for k in range(40 if LONG else 6):
        round_(k)
    A.cut_idle()
    for pid, n in before.items():
        # Pooled connections may differ by a few; a leak would be 260.
        wait.until(lambda: descriptors(pid) <= n + 8, 10,
                   "descriptors of a worker to go down")
    t.eq(set(d.workers().values()), set(before), "the same workers")


@tap.case("a client that leaves before a plain answer frees the provider")
def leaves_plain(t):
    d, n = fresh()
    gone = []

    def fn(ex):
        gone.append(ex.wait_gone(10))
        ex.close()
    for stream in (False, True):
        del gone[:]
        A.behave(fn)
        A.take()
        c = client.Connection(d.addr)
        c.request("POST", "/v1/chat/completions", client.headers_of(n),
                  json.dumps(client.body_of("one", "one", stream)).encode())
        A.wait_requests(1)
        c.close()
        left = time.monotonic()
        wait.until(lambda: gone, 5, "the call to end")
        t.eq(gone, [True], "the provider was let go")
        t.between(time.monotonic() - left, 0, 1.0 * tap.SCALE, "seconds")
    A.behave(provider.echo())
    r = client.chat(d, "two", session=n, model="one")
    t.eq(r.status, 200, "the session is free: %r" % r)
    t.eq(A.history(A.requests[-1])[-1], ("user", "two"), "and goes on")


@tap.case("clients that leave do not count against the provider")
def aborts_are_neutral(t):
    d, _ = fresh()
    barrier = provider.Barrier()
    t.cleanup(barrier.release)
    A.behave(provider.hold(barrier, provider.answer("late")))
    n = 20
    for i in range(n):
        c = client.Connection(d.addr)
        c.request("POST", "/v1/chat/completions", client.headers_of(),
                  json.dumps(client.body_of("hi", "m", i % 2 == 0)).encode())
        barrier.wait_for(i + 1)
        c.close()
    barrier.release()
    A.behave(provider.answer("from a"))
    for _ in range(10):
        r = client.chat(d, "hi", model="m")
        t.eq((r.text, r.headers["x-holdfast-target"]),
             ("from a", "a/model-a"), "the first target is still the first")
    t.eq(B.requests, [], "nobody else was asked")


# --- what is remembered -----------------------------------------------------

@tap.case("an answer that broke off is kept as that, never told as whole")
def broken_off(t):
    for fault in (provider.cut("one two three", 2, "reset"),
                  provider.error_after("one two three", 2)):
        d, n = fresh()
        A.behave(fault)
        r = client.chat(d, "count", session=n, model="one", stream=True)
        t.eq((r.text, r.finish, r.done), ("one two", None, False), repr(r))
        t.eq(r.error["code"], "stream_interrupted", "said so")
        s = d.session(n)
        t.ne(s["turns"][-1]["state"], "complete", "the turn's state")
        # The same again is a new call, not the broken text as an answer.
        A.behave(provider.answer("one two three"))
        k = len(A.requests)
        r = client.chat(d, "count", session=n, model="one", stream=True)
        t.eq((r.text, r.finish), ("one two three", "stop"), repr(r))
        t.eq(len(A.requests), k + 1, "the provider was asked again")
        t.eq([h for h in A.history(A.requests[-1]) if h[0] == "user"],
             [("user", "count")], "and it was said once")


@tap.case("a prompt against the provider's policy is told, not shopped around")
def policy(t):
    d, n = fresh()
    t.eq(client.chat(d, "one", session=n).status, 200, "turn 1")
    for stream in (False, True):
        B.take()
        A.script(provider.status(400, "Your request was rejected",
                                 code="content_policy_violation"))
        r = client.chat(d, "bad words", session=n, model="m", stream=stream)
        t.eq((r.status, r.error["code"]),
             (400, "content_policy_violation"), repr(r))
        t.eq(r.headers["x-should-retry"], "false", "asked once is enough")
        t.eq(B.requests, [], "nobody else was asked")
    r = client.chat(d, "two", session=n, model="m")
    t.eq(A.history(A.requests[-1]),
         [("user", "one"), ("assistant", "heard 1: one"), ("user", "two")],
         "the refused words are not told again")


@tap.case("who answered and what was tried is said and recorded")
def tried(t):
    d, n = fresh()
    chains = [([], "a/model-a", 1),
              ([(A, provider.status(500))], "c/model-c", 2),
              ([(A, provider.reset()), (C, provider.status(529))],
               "b/model-b", 3),
              ([(A, provider.cut("x", 0, "close")),
                (C, provider.html(502))], "b/model-b", 3)]
    seq = 0
    for faults, target, count in chains:
        for stream in (False, True):
            for p, fault in faults:
                p.cut_idle()	# else a reset is dialled again
                p.script(fault)
            r = client.chat(d, "hi %d" % seq, session=n, model="three",
                            stream=stream)
            seq += 1
            t.eq((r.status, r.headers["x-holdfast-target"],
                  r.headers["x-holdfast-attempts"]),
                 (200, target, str(count)), repr(r))
            a = [x for x in d.session(n)["attempts"]
                 if x["turn_seq"] == seq]
            t.eq([x["n"] for x in a], list(range(1, count + 1)), "attempts")
            t.eq((a[-1]["target"], a[-1]["cls"]), (target, "ok"), "the last")
            t.eq([x["cls"] == "ok" for x in a[:-1]], [False] * (count - 1),
                 "those before failed")
            t.eq((a[-1]["tokens_in"], a[-1]["tokens_out"]), (31, 6),
                 "usage of the one that answered")


@tap.case("an id that nobody made is 404 at once, one just made never")
def ids(t):
    d, n = fresh()
    began = time.monotonic()
    for i in range(20):
        r = client.chat(d, "hi", session="ses_" + "%026d" % i)
        t.eq((r.status, r.error["code"]), (404, "session_not_found"),
             repr(r))
    t.between((time.monotonic() - began) / 20, 0, 0.1 * tap.SCALE,
              "seconds each")
    t.eq(A.requests, [], "no provider was asked")
    for i in range(30):
        r = client.chat(d, "remember k is v%d" % i, session="%s-%d" % (n, i),
                        stream=i % 2 == 0)
        r = client.chat(d, "recall k", session=r.headers[
            "x-holdfast-session"])
        t.eq((r.status, r.text), (200, "k is v%d" % i), repr(r))


@tap.case("a provider's changing ids and model names stay behind it")
def foreign_ids(t):
    d, n = fresh()

    def fn(ex):
        k = len(A.requests)
        if k == 1:
            ex.say(dialect.Said("", [("call_%d" % k, "look", "{}")],
                                model="model-a-2026-%d" % k))
        else:
            ex.say(dialect.Said("answer %d" % k,
                                model="model-a-2026-%d" % k))
    A.behave(fn)
    tools = [{"type": "function", "function": {
        "name": "look", "parameters": {"type": "object"}}}]
    seen = set()
    r = client.chat(d, "look", session=n, tools=tools, stream=True)
    seen.add(r.events[0]["id"])
    t.notin(b"2026", r.body, "its model name")
    r = client.chat(d, [{"role": "tool", "tool_call_id": r.calls[0][0],
                         "content": "seen"}], session=n, tools=tools)
    seen.add(r.json["id"])
    t.eq(r.json["model"], "m", "the route's name")
    r = client.chat(d, "and?", session=n, tools=tools)
    seen.add(r.json["id"])
    t.eq(len(seen), 3, "ids of ours: %r" % seen)
    t.ok(all(i.startswith("chatcmpl-") and "up0" not in i for i in seen),
         "ids of ours: %r" % seen)
    t.eq([h[0] for h in A.history(A.requests[-1])],
         ["user", "call", "result", "assistant", "user"], "one history")


def sanitized(d):
    """AddressSanitizer keeps freed memory for a while."""
    with open("/proc/%d/maps" % d.proc.pid, encoding="utf-8") as f:
        return "libasan" in f.read()


@tap.case("many large streams to slow clients do not pile up in memory", 90)
def memory(t):
    d, _ = fresh()
    n, size = (20, 32 << 20) if LONG else (6, 16 << 20)
    piece = "x" * 8192

    def fn(ex):
        ex.start()
        events = ex.events(dialect.Said("ab", pieces=[piece, "!"]))
        ex.chunk(events[0])
        for _ in range(size // len(piece)):
            ex.chunk(events[1])
        for event in events[2:]:
            ex.chunk(event)
        ex.end()

    def resident():
        total = 0
        for pid in d.workers().values():
            with open("/proc/%d/statm" % pid, encoding="ascii") as f:
                total += int(f.read().split()[1]) * 4096
        return total
    A.behave(fn)
    before = resident()
    conns = []
    for i in range(n):
        c = client.Connection(d.addr, timeout=60)
        t.cleanup(c.close)
        c.request("POST", "/v1/chat/completions", client.headers_of(),
                  json.dumps(client.body_of("hi", "one", True)).encode())
        conns.append(c)
    A.wait_requests(n)
    # Nobody reads: what the box holds must reach its end and stay there.
    last, same = 0, 0
    end = time.monotonic() + 30
    while same < 5 and time.monotonic() < end:
        time.sleep(0.2)
        now = resident()
        same = same + 1 if abs(now - last) < (1 << 20) else 0
        last = now
    t.diag("%d streams of %d MB: %d MB more" % (
        n, size >> 20, (last - before) >> 20))
    if not sanitized(d):
        t.ok(last - before < n * size // 2, "%d MB more" % (
            (last - before) >> 20))
    r = client.chat(d, "hi", model="nothing")
    t.eq(r.status, 404, "others are served")
    for c in conns:
        r = c.response("POST")
        t.eq((r.end, r.finish, len(r.text)), ("chunked", "stop", size + 1),
             "each stream is whole")


tap.main()
