"""Tool calls across dialects: two parallel calls, their results, and ids that
stay the same for the client whoever answers."""
import json
import itertools
import os
import sys

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import client
import provider
import tap
from daemon import Config, Daemon, shared

A = provider.Provider("openai")
C = provider.Provider("anthropic")
_names = itertools.count(1)
TOOLS = [{"type": "function", "function": {
    "name": "look", "description": "Order state", "parameters": {
        "type": "object", "properties": {"id": {"type": "integer"}},
        "required": ["id"]}}}]
BIG = '{"id": 2512292042121000001, "p": 1.10, "e": 1e400}'


def make():
    conf = Config(workers=2)
    conf.provider("a", A, first_token_ms=1000)
    conf.provider("c", C, first_token_ms=1000)
    conf.route("m", ["a/model-a", "c/model-c"])
    conf.route("r", ["c/model-c", "a/model-a"])
    conf.route("claude", ["c/model-c"])
    return Daemon(conf).start()


get_daemon = shared(make)


def fresh():
    d = get_daemon()
    for p in (A, C):
        p.up()
        p.behave(provider.answer("ok"))
        p.take()
    return d, "tools-%d" % next(_names)


def U(text):
    return {"role": "user", "content": text}


def result(ident, text):
    return {"role": "tool", "tool_call_id": ident, "content": text}


def shape(history):
    """A history with ids replaced by their order of appearance."""
    seen, out = {}, []
    for item in history:
        if item[0] in ("call", "result"):
            n = seen.setdefault(item[1], len(seen))
            item = (item[0], n) + item[2:]
        out.append(item)
    return out


def conversation(t, full, stream, back):
    """Calls by one dialect, results told to the other, calls there, results
    told to the first again.  'back' begins with anthropic."""
    d, n = fresh()
    model = "r" if back else "m"
    first, second = (C, A) if back else (A, C)
    log = []

    def say(messages):
        log.extend(messages)
        r = client.chat(d, list(log) if full else messages, session=n,
                        model=model, stream=stream, tools=TOOLS)
        t.eq(r.status, 200, repr(r))
        log.append(r.message)
        return r

    up1 = [("toolu_up1" if back else "call_up1", "look", '{"id": 42}'),
           ("toolu_up2" if back else "call_up2", "look", '{"id": 43}')]
    first.script(provider.answer("", up1))
    r1 = say([U("where are 42 and 43?")])
    ids1 = [i for i, _, _ in r1.calls]
    t.eq(r1.finish, "tool_calls", "finish")
    t.eq([json.loads(x) for _, _, x in r1.calls], [{"id": 42}, {"id": 43}],
         "arguments")

    # The first provider is gone when the results come.
    first.down()
    second.take()
    second.script(provider.answer("", [
        ("call_other1" if back else "toolu_other1", "look", '{"id": 44}'),
        ("call_other2" if back else "toolu_other2", "look", "{}")]))
    r2 = say([result(ids1[1], "sent"), result(ids1[0], "packed")])
    ids2 = [i for i, _, _ in r2.calls]
    t.eq(len(set(ids1 + ids2)), 4, "four ids")
    told = [("user", "where are 42 and 43?"),
            ("call", 0, "look", {"id": 42}), ("call", 1, "look", {"id": 43})]
    got = shape(second.history(second.requests[-1]))
    t.eq(got[:3], told, "calls told to the second")
    t.eq(sorted(got[3:]), [("result", 0, "packed"), ("result", 1, "sent")],
         "results told to the second")

    # It is back for the next ones.
    first.up()
    first.take()
    first.script(provider.answer("All of them are on their way."))
    r3 = say([result(ids2[0], "lost"), result(ids2[1], "found")])
    t.eq(r3.text, "All of them are on their way.", "text")
    got = shape(first.history(first.requests[-1]))
    t.eq(got[:3], told, "the first calls again")
    t.eq(sorted(got[3:5]), [("result", 0, "packed"), ("result", 1, "sent")],
         "their results")
    t.eq(got[5:7], [("call", 2, "look", {"id": 44}), ("call", 3, "look", {})],
         "the second's calls")
    t.eq(sorted(got[7:]), [("result", 2, "lost"), ("result", 3, "found")],
         "their results")
    r4 = say([U("thanks")])
    t.eq(r4.status, 200, "the last turn")
    t.eq(A.violations + C.violations, [], "strict validators")
    t.eq(A.errors + C.errors, [], "errors of the harness")


for _full in (False, True):
    for _stream in (False, True):
        for _back in (False, True):
            def _case(t, f=_full, s=_stream, b=_back):
                conversation(t, f, s, b)
            tap.case("two parallel calls, %s, %s client, %s" % (
                "anthropic to openai and back" if _back else
                "openai to anthropic and back",
                "full-history" if _full else "thin",
                "streamed" if _stream else "plain"))(_case)


@tap.case("a failover in the turn that brings the results hears them all")
def results_fail_over(t):
    d, n = fresh()
    A.script(provider.answer("", [("call_1", "look", '{"id":1}'),
                                  ("call_2", "look", '{"id":2}')]))
    r = client.chat(d, "go", session=n, tools=TOOLS)
    ids = [i for i, _, _ in r.calls]
    A.script(provider.status(503))
    r = client.chat(d, [result(ids[0], "x"), result(ids[1], "y")],
                    session=n, tools=TOOLS)
    t.eq((r.status, r.text), (200, "ok"), repr(r))
    messages = C.requests[-1].messages
    t.eq([m["role"] for m in messages], ["user", "assistant", "user"],
         "one user message holds both results")
    t.eq([b["type"] for b in messages[2]["content"]],
         ["tool_result", "tool_result"], "its blocks")
    t.eq(A.violations + C.violations, [], "violations")


@tap.case("text after results goes into the same message, behind them")
def results_and_text(t):
    d, n = fresh()
    C.script(provider.answer("Looking.", [("toolu_1", "look", '{"id":1}')]))
    r = client.chat(d, "go", session=n, tools=TOOLS, model="claude")
    t.eq(r.text, "Looking.", "text beside a call")
    r = client.chat(d, [result(r.calls[0][0], "x"), U("hurry")], session=n,
                    tools=TOOLS, model="claude")
    t.eq(r.status, 200, repr(r))
    t.eq(shape(C.history(C.requests[-1])),
         [("user", "go"), ("assistant", "Looking."),
          ("call", 0, "look", {"id": 1}), ("result", 0, "x"),
          ("user", "hurry")], "what it heard")
    t.eq(C.violations, [], "violations")


@tap.case("a call that was never answered does not poison the session")
def orphan_call(t):
    for model, p in (("m", A), ("claude", C)):
        d, n = fresh()
        p.script(provider.answer("", [("call_1", "look", '{"id":1}')]))
        r = client.chat(d, "go", session=n, tools=TOOLS, model=model)
        t.eq(r.finish, "tool_calls", "a call")
        r = client.chat(d, "never mind", session=n, tools=TOOLS, model=model)
        t.eq((r.status, r.text), (200, "ok"), repr(r))
        r = client.chat(d, "again", session=n, tools=TOOLS, model=model)
        t.eq((r.status, r.text), (200, "ok"), repr(r))
        t.eq(p.violations, [], "violations")


@tap.case("history of calls goes on without tools in the request")
def no_tools_later(t):
    for model, p in (("m", A), ("claude", C)):
        d, n = fresh()
        p.script(provider.answer("", [("call_1", "look", '{"id":1}')]))
        r = client.chat(d, "go", session=n, tools=TOOLS, model=model)
        r = client.chat(d, [result(r.calls[0][0], "x")], session=n,
                        model=model)
        t.eq((r.status, r.text), (200, "ok"), repr(r))
        t.eq(p.violations, [], "violations")


@tap.case("contents beside tool calls: null, absent, empty, a list")
def content_variants(t):
    for i, content in enumerate([None, "absent", "", [], [
            {"type": "text", "text": "hm"}]]):
        for model, p in (("m", A), ("claude", C)):
            d, n = fresh()
            m = {"role": "assistant", "content": content, "tool_calls": [
                {"id": "call_x", "type": "function", "function": {
                    "name": "look", "arguments": '{"id":1}'}}]}
            if content == "absent":
                del m["content"]
            r = client.chat(d, [U("go"), m, result("call_x", "y"),
                                U("and?")], session=n, tools=TOOLS,
                            model=model)
            t.eq(r.status, 200, "%r for %s: %r" % (content, model, r))
            t.eq(p.violations, [], repr(content))
            want = [("user", "go"), ("call", 0, "look", {"id": 1}),
                    ("result", 0, "y"), ("user", "and?")]
            got = shape(p.history(p.requests[-1]))
            t.eq([g for g in got if g != ("assistant", "hm")], want,
                 repr(content))


@tap.case("numbers in arguments are passed on byte by byte, both ways")
def numbers(t):
    d, n = fresh()
    A.script(provider.answer("", [("call_1", "look", BIG)]))
    r = client.chat(d, "go", session=n, tools=TOOLS)
    t.eq(r.calls[0][2], BIG, "to the client")
    r = client.chat(d, [result(r.calls[0][0], "x")], session=n, tools=TOOLS)
    call = A.requests[-1].messages[1]["tool_calls"][0]
    t.eq(call["function"]["arguments"], BIG, "back to openai")
    A.down()
    r = client.chat(d, "more", session=n, tools=TOOLS)
    t.eq(r.status, 200, repr(r))
    body = C.requests[-1].body
    for text in (b"2512292042121000001", b"1.10", b"1e400"):
        t.isin(text, body, "to anthropic")
    t.eq(C.violations, [], "violations")


@tap.case("arguments that are no JSON do not stop a failover")
def broken_arguments(t):
    d, n = fresh()
    m = {"role": "assistant", "content": None, "tool_calls": [
        {"id": "call_x", "type": "function", "function": {
            "name": "look", "arguments": '{"id": 4'}}]}
    A.down()
    r = client.chat(d, [U("go"), m, result("call_x", "y"), U("and?")],
                    session=n, tools=TOOLS)
    t.eq((r.status, r.text), (200, "ok"), repr(r))
    t.eq(C.violations, [], "violations")


@tap.case("ids that clients bring in are legal for each target")
def foreign_ids(t):
    for ident in ("functions.look:0", "x" * 64, "call_0", "\u00fc id"):
        for model, p in (("m", A), ("claude", C)):
            d, n = fresh()
            m = {"role": "assistant", "content": None, "tool_calls": [
                {"id": ident, "type": "function", "function": {
                    "name": "look", "arguments": "{}"}}]}
            r = client.chat(d, [U("go"), m, result(ident, "y"), U("and?")],
                            session=n, tools=TOOLS, model=model)
            t.eq(r.status, 200, "%r for %s: %r" % (ident, model, r))
            t.eq(p.violations, [], repr(ident))


if __name__ == "__main__":
    tap.main()
