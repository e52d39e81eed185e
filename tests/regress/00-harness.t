"""The harness itself: its strict providers refuse what the real APIs refuse,
its failures are real on the wire, and its client sees how a stream ended."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.environ.get("HF_SRCDIR", "."), "tests",
                                "harness"))
import client
import dialect
import provider
import tap
import validate

USER = {"role": "user", "content": "hi"}


def call_of(ident, name="look", args="{}"):
    return {"id": ident, "type": "function",
            "function": {"name": name, "arguments": args}}


def ask(p, body, stream=False):
    body = dict({"model": "m"}, **body)
    if p.dialect == "anthropic":
        body.setdefault("max_tokens", 10)
    if stream:
        body["stream"] = True
    return client.request(
        ("127.0.0.1", p.port), "POST", p.path,
        [("Content-Type", "application/json"), ("Authorization", "Bearer k"),
         ("anthropic-version", "2023-06-01")], json.dumps(body).encode())


TOOLS = [{"type": "function", "function": {"name": "look",
                                           "parameters": {}}}]
CALLS = {"role": "assistant", "content": None,
         "tool_calls": [call_of("a"), call_of("b")]}


def tool(ident, text="r"):
    return {"role": "tool", "tool_call_id": ident, "content": text}


OPENAI = [
    ("a plain message", {"messages": [USER]}, True),
    ("two calls and results in any order", {"tools": TOOLS, "messages": [
        USER, CALLS, tool("b"), tool("a")]}, True),
    ("an unknown field", {"messages": [USER], "session_id": "x"}, False),
    ("an unknown field of a message", {"messages": [
        dict(USER, heard=True)]}, False),
    ("cache_control in a part", {"messages": [
        {"role": "user", "content": [
            {"type": "text", "text": "x",
             "cache_control": {"type": "ephemeral"}}]}]}, False),
    ("an empty list", {"messages": []}, False),
    ("a result without its call", {"messages": [USER, tool("a")]}, False),
    ("a call without its result", {"messages": [USER, CALLS, tool("a"),
                                                USER]}, False),
    ("a result after another message", {"messages": [
        USER, CALLS, tool("a"), USER, tool("b")]}, False),
    ("a result too many", {"messages": [USER, CALLS, tool("a"), tool("b"),
                                        tool("b")]}, False),
    ("an id over 40 characters", {"messages": [
        USER, {"role": "assistant", "tool_calls": [call_of("x" * 41)]},
        tool("x" * 41)]}, False),
    ("stream_options without stream", {
        "messages": [USER], "stream_options": {"include_usage": True}},
        False),
    ("tool_choice without tools", {"messages": [USER],
                                   "tool_choice": "auto"}, False),
    ("an assistant message of nothing", {"messages": [
        USER, {"role": "assistant", "content": None}, USER]}, False),
    ("a lone surrogate", {"messages": [
        {"role": "user", "content": "x\ud800y"}]}, False),
]


def use(ident):
    return {"type": "tool_use", "id": ident, "name": "look", "input": {}}


def res(ident):
    return {"type": "tool_result", "tool_use_id": ident, "content": "r"}


def said(role, *blocks):
    return {"role": role, "content": list(blocks)}


ATOOLS = [{"name": "look", "input_schema": {"type": "object"}}]
ANTHROPIC = [
    ("a plain message", {"messages": [USER]}, True),
    ("two calls and both results in one message", {
        "tools": ATOOLS, "messages": [USER, said("assistant", use("a"),
                                                 use("b")),
                                      said("user", res("a"), res("b"))]},
        True),
    ("results in two messages", {
        "tools": ATOOLS, "messages": [USER, said("assistant", use("a"),
                                                 use("b")),
                                      said("user", res("a")),
                                      said("user", res("b"))]}, False),
    ("text before the results", {
        "tools": ATOOLS, "messages": [
            USER, said("assistant", use("a")),
            said("user", {"type": "text", "text": "x"}, res("a"))]}, False),
    ("calls without declared tools", {
        "messages": [USER, said("assistant", use("a")),
                     said("user", res("a"))]}, False),
    ("an orphan result", {"tools": ATOOLS, "messages": [
        said("user", res("a"))]}, False),
    ("an id with a bad character", {
        "tools": ATOOLS, "messages": [USER, said("assistant", use("a:1")),
                                      said("user", res("a:1"))]}, False),
    ("two user messages in a row", {"messages": [USER, USER]}, False),
    ("an assistant message first", {"messages": [
        {"role": "assistant", "content": "hi"}, USER]}, False),
    ("an assistant message last", {"messages": [
        USER, {"role": "assistant", "content": "hi"}]}, False),
    ("a system message in the list", {"messages": [
        {"role": "system", "content": "x"}, USER]}, False),
    ("an empty text block", {"messages": [
        said("user", {"type": "text", "text": ""})]}, False),
    ("an empty content list", {"messages": [said("user")]}, False),
    ("no max_tokens", {"messages": [USER], "max_tokens": None}, False),
    ("a chat completions field", {"messages": [USER], "seed": 1}, False),
]


@tap.case("the openai validator refuses what the API refuses")
def openai_rules(t):
    rules(t, "openai", OPENAI)


@tap.case("the anthropic validator refuses what the API refuses")
def anthropic_rules(t):
    rules(t, "anthropic", ANTHROPIC)


def rules(t, name, table):
    p = provider.Provider(name)
    t.cleanup(p.close)
    for what, body, good in table:
        n = len(p.violations)
        r = ask(p, body)
        t.eq(r.status, 200 if good else 400, "%s: %r" % (what, r.error))
        t.eq(len(p.violations) - n, 0 if good else 1, what)


@tap.case("both dialects tell one history")
def one_history(t):
    a = {"messages": [{"role": "system", "content": "S"}, USER, CALLS,
                      tool("a", "1"), tool("b", "2"),
                      {"role": "assistant", "content": "done"}, USER]}
    b = {"system": [{"type": "text", "text": "S"}],
         "messages": [USER, said("assistant", use("a"), use("b")),
                      said("user", dict(res("a"), content="1"),
                           dict(res("b"), content="2")),
                      {"role": "assistant", "content": "done"}, USER]}
    t.eq(validate.history("openai", a), validate.history("anthropic", b),
         "histories")


@tap.case("the client sees each end of a stream")
def ends(t):
    p = provider.Provider("openai")
    t.cleanup(p.close)
    for behaviour, want in [
            (provider.answer("one two three"), ("chunked", True, "stop")),
            (provider.cut("one two three", 2), ("chunked", False, None)),
            (provider.cut("one two three", 2, "drop"), ("cut", False, None)),
            (provider.cut("one two three", 2, "reset"),
             ("reset", False, None))]:
        p.script(behaviour)
        r = ask(p, {"messages": [USER]}, stream=True)
        t.eq((r.end, r.done, r.finish), want, "end of the stream")
        t.eq(r.text, "one two three" if want[1] else "one two", "text")
    p.script(provider.reset())
    t.eq(ask(p, {"messages": [USER]}).end, "reset", "reset before bytes")
    p.down()
    try:
        ask(p, {"messages": [USER]})
        t.ok(False, "a closed port accepted a connection")
    except ConnectionRefusedError:
        pass
    p.up()
    t.eq(ask(p, {"messages": [USER]}).status, 200, "after it came back")


@tap.case("answers survive both dialects, plain and streamed")
def answers(t):
    calls = [("call_1", "look", '{"id":42}'), ("call_2", "look", "{}")]
    for name in ("openai", "anthropic"):
        p = provider.Provider(name)
        t.cleanup(p.close)
        p.behave(provider.answer("Let me look.", calls))
        r = ask(p, {"messages": [USER]}, stream=True)
        t.eq(r.status, 200, name)
        if name == "openai":
            t.eq((r.text, r.calls, r.finish),
                 ("Let me look.", calls, "tool_calls"), "streamed")
            r = ask(p, {"messages": [USER]})
            t.eq((r.text, r.calls, r.finish),
                 ("Let me look.", calls, "tool_calls"), "plain")
        else:
            t.eq(r.event_names[0], "message_start", "first event")
            t.eq(r.event_names[-1], "message_stop", "last event")
            r = ask(p, {"messages": [USER]})
            t.eq([b["type"] for b in r.json["content"]],
                 ["text", "tool_use", "tool_use"], "plain")


@tap.case("echo rules answer only from what was received")
def echo(t):
    p = provider.Provider("openai")
    t.cleanup(p.close)
    p.behave(provider.echo())
    known = [{"role": "user", "content": "remember code is Q7"},
             {"role": "assistant", "content": "ok"},
             {"role": "user", "content": "recall code"}]
    t.eq(ask(p, {"messages": known}).text, "code is Q7", "with history")
    t.eq(ask(p, {"messages": known[2:]}).text, "code is unknown", "without")


@tap.case("a barrier holds requests until it is released")
def barrier(t):
    p = provider.Provider("openai")
    t.cleanup(p.close)
    gate = provider.Barrier()
    p.behave(provider.hold(gate, provider.answer("late")))
    waiting = [client.background(ask, p, {"messages": [USER]})
               for _ in range(5)]
    gate.wait_for(5)
    t.ok(all(w.result is None for w in waiting), "nobody was answered")
    gate.release()
    t.eq([w.get().text for w in waiting], ["late"] * 5, "answers")


if __name__ == "__main__":
    tap.main()
