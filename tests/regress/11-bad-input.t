"""Bad input and bad HTTP: each a typed error or correct service, the workers
alive, nobody else disturbed, and byte-exact where it is passed on."""
import itertools
import json
import os
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import client
import provider
import tap
from daemon import Config, Daemon, shared

A = provider.Provider("openai")
C = provider.Provider("anthropic")
_names = itertools.count(1)


def make():
    conf = Config(workers=2, body_soft="2M", body_hard="8M",
                  header_timeout_ms=1000, body_timeout_ms=1500)
    conf.provider("a", A)
    conf.provider("c", C)
    conf.route("m", ["a/model-a"])
    conf.route("claude", ["c/model-c"])
    return Daemon(conf).start()


get_daemon = shared(make)


def fresh():
    A.behave(provider.echo())
    A.take()
    C.behave(provider.answer("ok"))
    C.take()
    return get_daemon()


def refused(t, r, status, what):
    t.eq(r.status, status, "%s: %r" % (what, r))
    e = r.error
    t.ok(isinstance(e, dict), what + ": an error object")
    t.ok(isinstance(e.get("message"), str) and e["message"], what)
    t.eq(e.get("type"), "invalid_request_error", what + ": type")
    t.eq(set(e), {"message", "type", "param", "code"}, what + ": members")


def alive(t, d, before):
    t.eq(d.workers(), before, "the same workers live")
    t.eq(client.chat(d, "hi").status, 200, "and serve")


BODIES = [
    ("an empty body", b""),
    ("white space", b"  \r\n"),
    ("broken JSON", b'{"model":"m","messages":[{"role":"user"'),
    ("bytes after the value", b'{"model":"m","messages":[]} x'),
    ("an array", b"[]"), ("a string", b'"x"'), ("a number", b"7"),
    ("null", b"null"),
    ("single quotes", b"{'model':'m'}"),
    ("a trailing comma", b'{"model":"m","messages":[],}'),
    ("a comment", b'{"model":"m"/**/,"messages":[]}'),
    ("NaN", b'{"model":"m","temperature":NaN,"messages":[]}'),
    ("a leading zero", b'{"model":"m","seed":01,"messages":[]}'),
    ("no UTF-8", b'{"model":"m","messages":[{"role":"user","content":"\xff"'
     b'}]}'),
    ("an overlong encoding", b'{"model":"m","messages":[{"role":"user",'
     b'"content":"\xc0\xaf"}]}'),
    ("UTF-8 of a surrogate", b'{"model":"m","messages":[{"role":"user",'
     b'"content":"\xed\xa0\x80"}]}'),
    ("a raw control character", b'{"model":"m","messages":[{"role":"user",'
     b'"content":"a\x01b"}]}'),
    ("a bad escape", b'{"model":"m","messages":[{"role":"user","content":'
     b'"\\x41"}]}'),
    ("a short escape", b'{"model":"m","messages":[{"role":"user","content":'
     b'"\\u12"}]}'),
    ("10,000 brackets", b"[" * 10000),
    ("10,000 objects", b'{"a":' * 10000),
    ("65 levels", b'{"model":"m","messages":[{"role":"user","content":"x"}],'
     b'"x":' + b"[" * 70 + b"]" * 70 + b"}"),
]


@tap.case("bodies that are no request are 400")
def bodies(t):
    d = fresh()
    before = d.workers()
    for what, body in BODIES:
        r = client.chat(d, None, raw=body)
        refused(t, r, 400, what)
    t.eq(A.requests, [], "the provider is not called")
    alive(t, d, before)


def messages(value):
    return {"model": "m", "messages": value}


USER = {"role": "user", "content": "x"}
WRONG = [
    ("no messages", {"model": "m"}, "messages"),
    ("messages null", messages(None), "messages"),
    ("messages a string", messages("x"), "messages"),
    ("messages an object", messages({}), "messages"),
    ("messages empty", messages([]), "messages"),
    ("a message that is a string", messages(["x"]), "messages[0]"),
    ("a message without role", messages([{"content": "x"}]), "messages[0]"),
    ("a role that is a number", messages([{"role": 1, "content": "x"}]),
     "messages[0]"),
    ("an unknown role", messages([USER, {"role": "robot", "content": "x"}]),
     "messages[1]"),
    ("no content", messages([{"role": "user"}]), "messages[0]"),
    ("content a number", messages([{"role": "user", "content": 7}]),
     "messages[0]"),
    ("content null", messages([{"role": "user", "content": None}]),
     "messages[0]"),
    ("a part without type", messages([{"role": "user", "content": [
        {"text": "x"}]}]), "messages[0]"),
    ("a part of an unknown type", messages([{"role": "user", "content": [
        {"type": "smell", "smell": "x"}]}]), "messages[0]"),
    ("a text part without text", messages([{"role": "user", "content": [
        {"type": "text"}]}]), "messages[0]"),
    ("tool_calls no array", messages([USER, {
        "role": "assistant", "tool_calls": {}}]), "messages[1]"),
    ("a call without id", messages([USER, {
        "role": "assistant", "tool_calls": [{"type": "function", "function": {
            "name": "f", "arguments": "{}"}}]}]), "messages[1]"),
    ("arguments an object", messages([USER, {
        "role": "assistant", "tool_calls": [{
            "id": "a", "type": "function", "function": {
                "name": "f", "arguments": {}}}]}]), "messages[1]"),
    ("a tool message without id", messages([USER, {
        "role": "tool", "content": "x"}]), "messages[1]"),
    ("no model", {"messages": [USER]}, "model"),
    ("model a number", {"model": 7, "messages": [USER]}, "model"),
    ("stream a string", dict(messages([USER]), stream="yes"), "stream"),
    ("n above one", dict(messages([USER]), n=2), "n"),
    ("tools no array", dict(messages([USER]), tools="x"), "tools"),
]


@tap.case("wrong types and missing members are 400 and name the member")
def wrong_types(t):
    d = fresh()
    before = d.workers()
    for what, value, param in WRONG:
        for session in (None, "wrong"):
            r = client.chat(d, None, raw=json.dumps(value).encode(),
                            session=session)
            refused(t, r, 400, what)
            t.isin(param.split("[")[0], (r.error["param"] or "") +
                   r.error["message"], what + ": names the member")
    t.eq(A.requests, [], "the provider is not called")
    t.eq(d.ctl_run("sessions", "show", "wrong").code, 3,
         "nothing was stored")
    alive(t, d, before)


@tap.case("an unknown model is 404 model_not_found")
def unknown_model(t):
    d = fresh()
    for model in ("gpt-nothing", "", "m\u0000", "x" * 5000, "../m"):
        r = client.chat(d, "x", model=model)
        t.isin(r.status, (400, 404), repr(model))
        if model == "gpt-nothing":
            refused(t, r, 404, model)
            t.eq(r.error["code"], "model_not_found", "code")
    t.eq(A.requests, [], "the provider is not called")


@tap.case("a lone surrogate is repaired, said so, and does not stick")
def surrogate(t):
    d = fresh()
    n = "surrogate-%d" % next(_names)
    for text in (rb"x\ud800y", rb"x\udc00y", rb"\ud83d", rb"\ud83d\u0041",
                 rb"\uD800\uD800"):
        for model, p in (("m", A), ("claude", C)):
            body = (b'{"model":"%s","messages":[{"role":"user","content":'
                    b'"%s"}]}' % (model.encode(), text))
            r = client.chat(d, None, raw=body, session=n)
            t.eq(r.status, 200, "%r: %r" % (text, r))
            t.ok("x-holdfast-repaired" in r.headers, "the header says so")
            t.isin("\ufffd", p.requests[-1].last_user(), "U+FFFD")
    r = client.chat(d, "next", session=n)
    t.eq(r.status, 200, "the next turn")
    t.notin("x-holdfast-repaired", r.headers, "nothing to repair in it")
    t.eq(A.violations + C.violations, [], "violations")
    # In a tool result, too, and in arguments.
    body = (rb'{"model":"m","messages":[{"role":"user","content":"go"},'
            rb'{"role":"assistant","tool_calls":[{"id":"c","type":"function",'
            rb'"function":{"name":"f","arguments":"{\"a\":\"\ud800\"}"}}]},'
            rb'{"role":"tool","tool_call_id":"c","content":"\ud800"}]}')
    r = client.chat(d, None, raw=body)
    t.eq(r.status, 200, repr(r))
    t.eq(A.violations, [], "violations")


@tap.case("a good pair of surrogates is one character and not repaired")
def pairs(t):
    d = fresh()
    r = client.chat(d, None, raw=b'{"model":"m","messages":[{"role":"user",'
                    rb'"content":"\ud83d\ude42"}]}')
    t.eq(r.status, 200, repr(r))
    t.notin("x-holdfast-repaired", r.headers, "header")
    t.eq(A.requests[-1].last_user(), "\U0001f642", "text")


@tap.case("a NUL escape makes the round trip")
def nul(t):
    d = fresh()
    n = "nul-%d" % next(_names)
    A.script(provider.answer("c\u0000d"))
    r = client.chat(d, "a\u0000b", session=n)
    t.eq((r.status, r.text), (200, "c\u0000d"), repr(r))
    r = client.chat(d, "next", session=n)
    t.eq(A.history(A.requests[-1])[:2],
         [("user", "a\u0000b"), ("assistant", "c\u0000d")], "history")


NUMBERS = ['2512292042121000001', '9007199254740993', '1.10', '1e400',
           '-0', '0.1000000000000000055511151231257827', '1E+2',
           '123456789012345678901234567890']


@tap.case("numbers of tools and parameters reach the provider byte by byte")
def numbers(t):
    d = fresh()
    listed = "[" + ",".join(NUMBERS) + "]"
    body = ('{"model":"m","temperature":1.10,"seed":2512292042121000001,'
            '"tools":[{"type":"function","function":{"name":"f","parameters":'
            '{"type":"object","enum":%s}}}],'
            '"messages":[{"role":"user","content":"go"},{"role":"assistant",'
            '"tool_calls":[{"id":"c1","type":"function","function":{"name":'
            '"f","arguments":%s}}]},{"role":"tool","tool_call_id":"c1",'
            '"content":"x"}]}' % (listed, json.dumps('{"n": %s}' % listed)))
    for session in (None, "numbers"):
        A.take()
        r = client.chat(d, None, raw=body.encode(), session=session)
        t.eq(r.status, 200, repr(r))
        sent = A.requests[-1].body.decode()
        t.isin('"temperature":1.10', sent.replace(": ", ":"), "temperature")
        t.isin('"seed":2512292042121000001', sent.replace(": ", ":"), "seed")
        t.isin(listed, sent.replace(" ", ""), "schema")
        call = A.requests[-1].messages[1]["tool_calls"][0]["function"]
        t.eq(call["arguments"], '{"n": %s}' % listed, "arguments")
    r = client.chat(d, None, raw=body.replace('"m"', '"claude"', 1).replace(
        '"temperature":1.10,', "").encode())
    t.eq(r.status, 200, repr(r))
    t.isin(listed, C.requests[-1].body.decode().replace(" ", ""),
           "arguments to anthropic")


@tap.case("escapes and unicode in contents arrive as the same text")
def texts(t):
    d = fresh()
    for text in ("\"\\/\b\f\n\r\t", "\u2028\u2029", "\u00e9 e\u0301",
                 "\U0010ffff", "</script>", "\ufeff bom", "a" * 100000):
        r = client.chat(d, text, session="texts-%d" % next(_names))
        t.eq(r.status, 200, repr(text)[:60])
        t.eq(A.requests[-1].last_user(), text, "to the provider")
        t.eq(r.text, "heard 1: " + text, "to the client")


@tap.case("duplicate keys: the last one counts, and only once")
def duplicates(t):
    d = fresh()
    r = client.chat(d, None, raw=b'{"model":"x","model":"m","messages":[],'
                    b'"messages":[{"role":"user","content":"a","content":'
                    b'"b"}],"seed":1,"seed":2}')
    t.eq(r.status, 200, repr(r))
    t.eq(A.requests[-1].last_user(), "b", "the last one")
    t.eq(A.violations, [], "violations")


@tap.case("bodies beyond the soft and the hard limit are 413")
def large(t):
    d = fresh()
    before = d.workers()
    body = json.dumps(client.body_of("x" * 1500000)).encode()
    t.eq(client.chat(d, None, raw=body).status, 200, "1.5 MB")
    body = json.dumps(client.body_of("x" * 3000000)).encode()
    r = client.chat(d, None, raw=body)
    refused(t, r, 413, "3 MB, over the soft limit")
    body = json.dumps(client.body_of("x" * 12000000)).encode()
    r = client.chat(d, None, raw=body)
    t.isin(r.status, (413, None), "12 MB, over the hard limit: %r" % r)
    alive(t, d, before)


# --- HTTP -----------------------------------------------------------------

BODY = json.dumps(client.body_of("hi")).encode()


def raw(d, data, timeout=5):
    """Send bytes; the responses that come back until the close."""
    out = []
    with client.Connection(d.addr, timeout) as c:
        try:
            c.send(data)
            while True:
                r = c.response()
                if r.status is None:
                    return out
                out.append(r)
        except OSError:
            return out


def post(headers, body=BODY, version="1.1", length=True):
    lines = ["POST /v1/chat/completions HTTP/" + version]
    if length:
        lines.append("Content-Length: %d" % len(body))
    return ("\r\n".join(lines + headers) + "\r\n\r\n").encode(
        "latin-1") + body


SMUGGLED = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
BAD_HTTP = [
    ("no Host", post([])),
    ("two Hosts", post(["Host: a", "Host: b"])),
    ("two lengths", post(["Host: a", "Content-Length: 5"])),
    ("a length with a sign", post(["Host: a", "Content-Length: +%d" %
                                   len(BODY)], length=False)),
    ("a negative length", post(["Host: a", "Content-Length: -1"],
                               length=False)),
    ("a length of words", post(["Host: a", "Content-Length: ten"],
                               length=False)),
    ("length and chunked", post(["Host: a", "Transfer-Encoding: chunked"],
                                b"0\r\n\r\n" + SMUGGLED)),
    ("chunked with a space before the colon",
     post(["Host: a", "Transfer-Encoding : chunked"],
          b"0\r\n\r\n" + SMUGGLED, length=False)),
    ("gzip, chunked", post(["Host: a", "Transfer-Encoding: gzip, chunked"],
                           b"0\r\n\r\n" + SMUGGLED, length=False)),
    ("a vertical tab before chunked",
     post(["Host: a", "Transfer-Encoding: \x0bchunked"],
          b"0\r\n\r\n" + SMUGGLED, length=False)),
    ("a folded header", post(["Host: a", "X-A: b\r\n c"])),
    ("a NUL in a value", post(["Host: a", "X-A: b\0c"])),
    ("a space in the URI", b"GET /livez x HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("a broken escape in the URI", b"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("a NUL in the URI", b"GET /v1/models/%00 HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("an unknown version", b"GET /livez HTTP/1.9\r\nHost: a\r\n\r\n"),
    ("HTTP/9", b"GET /livez HTTP/9.9\r\nHost: a\r\n\r\n"),
    ("garbage", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"),
    ("a header of 1 MB", b"GET /livez HTTP/1.1\r\nHost: a\r\nX: " +
     b"y" * 1000000 + b"\r\n\r\n"),
    ("20,000 headers", b"GET /livez HTTP/1.1\r\nHost: a\r\n" +
     b"X: y\r\n" * 20000 + b"\r\n"),
]


@tap.case("bad HTTP is 4xx and closes; nothing is smuggled", 60)
def bad_http(t):
    d = fresh()
    before = d.workers()
    for what, data in BAD_HTTP:
        got = raw(d, data)
        t.ok(len(got) <= 1, "%s: %d responses" % (what, len(got)))
        for r in got:
            t.ok(400 <= r.status < 600, "%s: %r" % (what, r))
            t.isin(r.headers.get("connection", "close").lower(), ("close",),
                   what)
    t.eq(A.requests, [], "the provider is not called")
    alive(t, d, before)


@tap.case("a request that arrives byte by byte is served")
def dribble(t):
    d = fresh()
    with client.Connection(d.addr) as c:
        for i in range(0, len(post(["Host: a"])), 3):
            c.send(post(["Host: a"])[i:i + 3])
        r = c.response("POST")
        t.eq((r.status, r.text), (200, "heard 1: hi"), repr(r))


@tap.case("Expect: 100-continue is answered before the body")
def expect(t):
    d = fresh()
    with client.Connection(d.addr) as c:
        data = post(["Host: a", "Expect: 100-continue"])
        head, body = data.split(b"\r\n\r\n", 1)
        c.send(head + b"\r\n\r\n")
        began = time.monotonic()
        c._more()
        t.ok(c.buf.startswith(b"HTTP/1.1 100"), repr(c.buf))
        t.between(time.monotonic() - began, 0, 0.5 * tap.SCALE, "seconds")
        c.send(body)
        t.eq(c.response("POST").status, 200, "then the answer")


@tap.case("pipelined requests are answered in order")
def pipelined(t):
    d = fresh()
    before = d.workers()
    with client.Connection(d.addr) as c:
        c.send(post(["Host: a"]) + SMUGGLED + post(["Host: a"]))
        got = [c.response("POST"), c.response(), c.response("POST")]
    t.eq([r.status for r in got], [200, 200, 200], "statuses")
    t.eq([got[0].text, got[2].text], ["heard 1: hi"] * 2, "texts")
    # A pipelined byte while a turn is being served.
    gate = provider.Barrier()
    t.cleanup(gate.release)
    A.script(provider.hold(gate, provider.echo()))
    with client.Connection(d.addr) as c:
        c.send(post(["Host: a"]))
        gate.wait_for(1)
        c.send(SMUGGLED)
        time.sleep(0.1)	# the worker reads it, if it reads at all
        gate.release()
        t.eq(c.response("POST").text, "heard 1: hi", "the turn")
        t.eq(c.response().status, 200, "the pipelined one")
    alive(t, d, before)


@tap.case("so are long ones, with a short one behind each")
def pipelined_long(t):
    d = fresh()
    before = d.workers()
    with client.Connection(d.addr) as c:
        for size in (30000, 50000, 9, 70001, 200000, 300000):
            # The next one is read with what the last one's size suggests.
            said = "%d " % size + "a" * size
            body = json.dumps(client.body_of(said)).encode()
            c.send(post(["Host: a"], body) + SMUGGLED)
            t.eq(c.response("POST").text, "heard 1: " + said, str(size))
            t.eq(c.response().status, 200, "the one behind it")
    alive(t, d, before)


@tap.case("HTTP/1.0 is served, plain and streamed")
def http10(t):
    d = fresh()
    got = raw(d, post(["Host: a"], version="1.0"))
    t.eq([(r.status, r.text) for r in got], [(200, "heard 1: hi")], "plain")
    body = json.dumps(client.body_of("hi", stream=True)).encode()
    got = raw(d, post(["Host: a"], body, version="1.0"))
    t.eq(len(got), 1, "one response")
    t.notin("transfer-encoding", got[0].headers, "no chunks in 1.0")
    t.eq((got[0].text, got[0].finish, got[0].done), ("heard 1: hi", "stop",
                                                     True), "streamed")


@tap.case("chunked request bodies are served or refused with 411")
def chunked(t):
    d = fresh()
    data = post(["Host: a", "Transfer-Encoding: chunked"],
                b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY), length=False)
    got = raw(d, data)
    t.eq(len(got), 1, "one response")
    t.isin(got[0].status, (200, 411), repr(got[0]))


@tap.case("a slow client is cut by its deadline, others are served")
def slowloris(t):
    d = fresh()
    before = d.workers()
    data = post(["Host: a", "X-Slow: " + "y" * 2000])
    with client.Connection(d.addr, 20) as c:
        began = time.monotonic()
        ended = None
        try:
            for i in range(len(data)):
                c.send(data[i:i + 1])
                time.sleep(0.1)	# faster than a read timeout of any use
                c.sock.setblocking(False)
                try:
                    if c.sock.recv(4096) in (b"",):
                        ended = time.monotonic()
                except BlockingIOError:
                    pass
                c.sock.setblocking(True)
                if ended or time.monotonic() - began > 10:
                    break
        except OSError:
            ended = time.monotonic()
        t.ok(ended, "the connection was cut")
        t.between(ended - began, 0.9, 3.0 * tap.SCALE, "seconds")
    alive(t, d, before)


@tap.case("a half-closed client gets its answer or is let go")
def half_closed(t):
    d = fresh()
    before = d.workers()
    with client.Connection(d.addr, 5) as c:
        c.send(post(["Host: a"]))
        c.sock.shutdown(socket.SHUT_WR)
        r = c.response("POST")
        t.isin(r.status, (200, None), repr(r))
    alive(t, d, before)


@tap.case("echoed fields cannot inject headers")
def injection(t):
    d = fresh()
    evil = "x\r\nX-Evil: 1\r\n\r\n<b>"
    for fields in ({"model": evil}, {"session_id": evil},
                   {"metadata": {"session_id": evil}}):
        r = client.chat(d, "hi", **dict({"model": "m"}, **fields))
        t.notin("x-evil", r.headers, repr(fields))
        t.isin(r.status, (200, 400, 404), repr(fields))


@tap.case("hundreds of clients that vanish disturb nobody", 60)
def vanish(t):
    d = fresh()
    before = d.workers()
    data = post(["Host: a"])
    for i in range(300):
        c = client.Connection(d.addr)
        c.send(data[:(i * 7) % len(data)])
        c.close()
    alive(t, d, before)
    t.eq(client.get(d, "/readyz").status, 200, "ready")


if __name__ == "__main__":
    tap.main()
