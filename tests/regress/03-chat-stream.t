"""Chat completions as a stream: the shape of every chunk, upstream framings
of all kinds, and clients that leave."""
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
from daemon import Config, Daemon, shared

A = provider.Provider("openai")
C = provider.Provider("anthropic")
TEXT = "Your order ships on Tuesday, \u65e5\u672c\u8a9e \U0001f642 included."
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {
    "type": "object"}}}]


def make():
    conf = Config(workers=2)
    conf.provider("a", A)
    conf.provider("c", C)
    conf.route("m", ["a/model-a"])
    conf.route("claude", ["c/model-c"])
    return Daemon(conf).start()


get_daemon = shared(make)
ROUTES = [("m", A), ("claude", C)]


def check_shape(t, r, model, usage):
    t.eq(r.status, 200, repr(r))
    t.ok(r.headers["content-type"].startswith("text/event-stream"), "type")
    t.notin("content-length", r.headers, "no length")
    t.eq(r.end, "chunked", "the body is whole")
    t.eq(r.events[-1], "[DONE]", "the last event")
    t.eq(set(r.event_names), {None}, "no event names")
    t.notin(b"\nid:", b"\n" + r.body, "no event ids")
    chunks = r.events[:-1]
    for c in chunks:
        t.eq(c["object"], "chat.completion.chunk", "object")
        t.ok("error" not in c, "an error chunk: %r" % c)
    for key in ("id", "created", "model"):
        t.eq(len({c[key] for c in chunks}), 1, "one %s" % key)
    t.eq(chunks[0]["model"], model, "model")
    t.ok(chunks[0]["id"].startswith("chatcmpl-"), "id")
    roles = [c for c in r.choices if "role" in c["delta"]]
    t.eq(len(roles), 1, "one role chunk")
    t.ok(roles[0] is r.choices[0], "the role comes first")
    t.eq(roles[0]["delta"]["role"], "assistant", "role")
    finishes = [c for c in r.choices if c.get("finish_reason") is not None]
    t.eq(len(finishes), 1, "one finish")
    t.ok(finishes[0] is r.choices[-1], "nothing follows the finish")
    t.eq(finishes[0]["delta"], {}, "its delta is empty")
    t.eq([c["index"] for c in r.choices], [0] * len(r.choices), "index")
    if usage:
        last = chunks[-1]
        t.eq(last["choices"], [], "the usage chunk has no choices")
        t.eq((last["usage"]["prompt_tokens"],
              last["usage"]["completion_tokens"],
              last["usage"]["total_tokens"]), (31, 6, 37), "usage")
        for c in chunks[:-1]:
            t.eq(c.get("usage", "absent"), None, "usage of other chunks")
    else:
        t.ok(all(c["choices"] for c in chunks), "no usage chunk")
        t.ok(all(c.get("usage") is None for c in chunks), "no usage")


@tap.case("every chunk has its shape, without and with include_usage")
def shape(t):
    d = get_daemon()
    for model, p in ROUTES:
        p.behave(provider.answer(TEXT))
        r = client.chat(d, "x", stream=True, model=model)
        check_shape(t, r, model, False)
        t.eq((r.text, r.finish), (TEXT, "stop"), model)
        r = client.chat(d, "x", stream=True, model=model,
                        stream_options={"include_usage": True})
        check_shape(t, r, model, True)
        t.eq((r.text, r.finish), (TEXT, "stop"), model)
        t.eq(p.violations, [], "violations")


@tap.case("tool calls arrive whole, with index, id, type and name")
def tool_calls(t):
    d = get_daemon()
    calls = [("call_up1", "look", '{"id":42,"t":"\\u00e9"}'),
             ("call_up2", "look", "{}")]
    for model, p in ROUTES:
        p.script(provider.answer("Let me look.", calls))
        r = client.chat(d, "x", stream=True, model=model, tools=TOOLS)
        check_shape(t, r, model, False)
        t.eq((r.text, r.finish), ("Let me look.", "tool_calls"), model)
        t.eq([(n, json.loads(a)) for _, n, a in r.calls],
             [("look", {"id": 42, "t": "\u00e9"}), ("look", {})], "calls")
        first = {}
        for c in r.choices:
            for x in c["delta"].get("tool_calls") or []:
                first.setdefault(x["index"], x)
        t.eq(sorted(first), [0, 1], "indexes")
        for x in first.values():
            t.eq(x["type"], "function", "type in the first delta")
            t.ok(x["id"] and x["function"]["name"], "id and name")
            t.isin("arguments", x["function"], "arguments")
        t.eq(len({i for i, _, _ in r.calls}), 2, "different ids")


@tap.case("text is passed on as it comes")
def incremental(t):
    d = get_daemon()
    for model, p in ROUTES:
        gate = provider.Barrier()
        t.cleanup(gate.release)
        p.script(provider.trickle("one two three four", gate, before=2))

        def on_event(r):
            if r.text == "one two":
                gate.release()	# only then does the provider go on
        r = client.chat(d, "x", stream=True, model=model, on_event=on_event)
        t.eq((r.text, r.done), ("one two three four", True), model)


def split_every(n):
    return lambda data: [data[i:i + n] for i in range(0, len(data), n)]


FRAMINGS = [
    ("in one write", lambda b: [b]),
    ("byte by byte", split_every(1)),
    ("in pieces of 7", split_every(7)),
    ("with CRLF", lambda b: [b.replace(b"\n", b"\r\n")]),
    ("with CRLF, byte by byte",
     lambda b: split_every(1)(b.replace(b"\n", b"\r\n"))),
    ("with CR", lambda b: [b.replace(b"\n", b"\r")]),
    ("with comments", lambda b: [b": ping\n\n:\n" + b.replace(
        b"\n\n", b"\n\n: x\n\n")]),
    ("with comments inside events", lambda b: [b.replace(
        b"data: ", b": in\ndata: ")]),
    ("without the space", lambda b: [b.replace(b"data: ", b"data:").replace(
        b"event: ", b"event:")]),
    ("with a byte order mark", lambda b: [b"\xef\xbb\xbf" + b]),
    ("with id and retry lines", lambda b: [b.replace(
        b"data: ", b"id: 7\nretry: 10\ndata: ")]),
]


@tap.case("upstream framings of all kinds give the same stream", 60)
def framings(t):
    d = get_daemon()
    for model, p in ROUTES:
        for name, fn in FRAMINGS:
            p.script(provider.rewritten(TEXT, fn))
            r = client.chat(d, "x", stream=True, model=model)
            t.eq((r.status, r.text, r.finish, r.done, r.end),
                 (200, TEXT, "stop", True, "chunked"),
                 "%s %s" % (model, name))


@tap.case("odd chunks of compatible servers are tolerated")
def odd_chunks(t):
    d = get_daemon()

    def odd(ex):
        ex.start()
        head = {"id": "", "object": "", "created": 0, "model": ""}
        ex.chunk(b"data: " + dialect.compact(dict(
            head, choices=[], prompt_filter_results=[])).encode() + b"\n\n")
        for delta in ({"role": "assistant"}, {"role": "assistant",
                                              "content": "one"},
                      {"content": None}, {"reasoning_content": "hmm"},
                      {"role": "assistant", "content": " two"}):
            ex.chunk(b"data: " + dialect.compact(dict(
                head, obfuscation="xyz", choices=[
                    {"index": 0, "delta": delta, "finish_reason": None}])
            ).encode() + b"\n\n")
        ex.chunk(b"data: " + dialect.compact(dict(head, choices=[
            {"index": 0, "delta": {"content": ""}, "finish_reason": "stop"}])
        ).encode() + b"\n\n")
        ex.chunk(b"data: [DONE]\n\n")
        ex.end()
    A.script(odd)
    r = client.chat(d, "x", stream=True)
    check_shape(t, r, "m", False)
    t.eq(r.text, "one two", "text")


@tap.case("a finish without [DONE] ends within two seconds")
def no_done(t):
    d = get_daemon()
    for end in ("close", "idle"):
        def behave(ex, end=end):
            ex.start()
            for event in ex.events(dialect.Said("all of it"))[:-1]:
                ex.chunk(event)
            if end == "close":
                ex.end()
            else:
                ex.wait_gone()
                ex.close()
        A.script(behave)
        r = client.chat(d, "x", stream=True)
        t.eq((r.text, r.finish, r.done), ("all of it", "stop", True), end)
        t.between(r.took, 0, 2.5, "seconds")


@tap.case("a client that leaves ends the provider's call")
def leaves(t):
    d = get_daemon()
    for model, p in ROUTES:
        gone = []

        def behave(ex, gone=gone):
            ex.start()
            n = dialect.first_useful(ex.dialect) + 2
            for event in ex.events(dialect.Said("one two three"))[:n]:
                ex.chunk(event)
            gone.append(ex.wait_gone(10))
            ex.close()
        p.script(behave)
        p.take()
        r = client.chat(d, "x", stream=True, model=model, session="leaver",
                        on_event=lambda r: r.text == "one two")
        t.eq(r.end, None, "the client left early")
        left = time.monotonic()
        wait.until(lambda: gone, 5, "the call to end")
        t.ok(gone[0], "the provider saw the call end")
        took = p.requests[0].peer_left - left
        t.between(took, -0.5, 1.0 * tap.SCALE, "seconds to cancel")
        # The session is free for the next turn at once.
        p.script(provider.answer("after"))
        r = client.chat(d, "still there?", model=model, session="leaver")
        t.eq((r.status, r.text), (200, "after"), "the next turn")
        t.eq(p.violations, [], "violations")


@tap.case("a client that leaves before the first token ends the call too")
def leaves_early(t):
    d = get_daemon()
    for stream in (False, True):
        gone = []

        def silent(ex, gone=gone):
            gone.append(ex.wait_gone(10))
            ex.close()
        A.script(silent)
        n = len(A.requests)
        with client.Connection(d.addr) as c:
            c.request("POST", "/v1/chat/completions", client.headers_of(),
                      json.dumps(client.body_of("x", stream=stream)).encode())
            A.wait_requests(n + 1)
        left = time.monotonic()
        wait.until(lambda: gone, 5, "the call to end")
        t.ok(gone[0], "the provider saw the call end")
        t.between(A.requests[-1].peer_left - left, -0.5, 1.0 * tap.SCALE,
                  "seconds to cancel")


@tap.case("2 MB of tool arguments in 20,000 deltas")
def long_arguments(t):
    d = get_daemon()
    args = json.dumps({"data": "x" * 2000000})

    def behave(ex):
        said = dialect.Said("", [("call_1", "look", "")])
        head = ex.events(said)
        ex.start()
        ex.chunk(b"".join(head[:2]))
        out = []
        for i in range(0, len(args), 100):
            out.append("data: " + dialect.compact({
                "id": "x", "object": "chat.completion.chunk", "created": 1,
                "model": "m", "choices": [{"index": 0, "delta": {
                    "tool_calls": [{"index": 0, "function": {
                        "arguments": args[i:i + 100]}}]},
                    "finish_reason": None}]}) + "\n\n")
        ex.chunk("".join(out).encode())
        ex.chunk(b"".join(head[2:]))
        ex.end()
    A.script(behave)
    r = client.chat(d, "x", stream=True, tools=TOOLS, timeout=30)
    t.eq(r.finish, "tool_calls", "finish")
    t.ok(r.calls[0][2] == args, "arguments (%d bytes)" % len(r.calls[0][2]))
    t.between(r.took, 0, 6 * tap.SCALE, "seconds")


@tap.case("a client that reads slowly gets every byte of a large stream", 60)
def slow_reader(t):
    d = get_daemon()
    piece = "0123456789abcdef" * 256
    said = dialect.Said("", pieces=[piece] * 1000)
    A.script(lambda ex: ex.say(said))
    with client.Connection(d.addr, 30) as c:
        c.request("POST", "/v1/chat/completions", client.headers_of(),
                  json.dumps(client.body_of("x", stream=True)).encode())
        time.sleep(0.5)	# the window fills up meanwhile: that is the point
        r = c.response("POST")
    t.eq((r.finish, r.done, len(r.text)), ("stop", True, 4096 * 1000), "end")
    t.ok(r.text == piece * 1000, "every byte")


if __name__ == "__main__":
    tap.main()
