"""What clients send in the words of one dialect is said to each provider in
words that it accepts: roles, empty texts, order, marks of other makers."""
import json
import itertools
import os
import sys

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import client
import dialect
import provider
import tap
from daemon import Config, Daemon, shared

A = provider.Provider("openai")
C = provider.Provider("anthropic")
_names = itertools.count(1)
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


def U(text):
    return {"role": "user", "content": text}


def R(text):
    return {"role": "assistant", "content": text}


def ask(t, messages, model, p, session=None, **more):
    """Send; the provider's strict validator must agree."""
    p.behave(provider.answer("ok"))
    p.take()
    n = len(p.violations)
    r = client.chat(get_daemon(), messages, model=model, session=session,
                    **more)
    t.eq(p.violations[n:], [], "violations of %r" % (messages,))
    t.eq((r.status, r.text), (200, "ok"), "%r: %r" % (messages, r))
    return p.history(p.requests[-1])


def told(history, *words):
    return [h for h in history if any(w in h[1] for w in words)]


@tap.case("neighbours of one role: nothing is lost")
def neighbours(t):
    messages = [U("one"), U("two"), R("three"), R("four"), U("five"),
                U("six")]
    for model, p in ROUTES:
        got = ask(t, messages, model, p)
        text = " ".join(h[1] for h in got)
        at = [text.index(w) for w in ("one", "two", "three", "four", "five",
                                      "six")]
        t.eq(at, sorted(at), "order for " + model)
        for role, a, b in (("user", "one", "two"), ("user", "five", "six"),
                           ("assistant", "three", "four")):
            t.eq({h[0] for h in told(got, a, b)}, {role}, a)


@tap.case("a conversation that ends with an assistant message is answered")
def ends_with_assistant(t):
    for model, p in ROUTES:
        got = ask(t, [U("one"), R("half an ans")], model, p)
        t.eq([h[1] for h in got][:2], ["one", "half an ans"], model)


@tap.case("a conversation that begins with a greeting is answered")
def begins_with_assistant(t):
    for model, p in ROUTES:
        got = ask(t, [R("Acme, hello?"), U("hi")], model, p)
        t.eq(told(got, "Acme", "hi"), [("assistant", "Acme, hello?"),
                                       ("user", "hi")], model)


@tap.case("empty and blank texts do not stop a turn")
def empty_texts(t):
    for blank in ("", " ", "\n", [{"type": "text", "text": ""}]):
        for messages in ([U("one"), {"role": "assistant", "content": blank},
                          U("two")],
                         [{"role": "system", "content": blank}, U("two")],
                         [{"role": "user", "content": blank}, U("two")]):
            for model, p in ROUTES:
                got = ask(t, messages, model, p)
                t.eq(told(got, "two"), [("user", "two")], model)


@tap.case("the developer role is the system's for all")
def developer(t):
    for model, p in ROUTES:
        got = ask(t, [{"role": "developer", "content": "be brief"},
                      U("one")], model, p)
        t.eq(got, [("system", "be brief"), ("user", "one")], model)


@tap.case("several leading system messages arrive in order")
def systems(t):
    for model, p in ROUTES:
        got = ask(t, [{"role": "system", "content": "first"},
                      {"role": "system", "content": "second"}, U("one")],
                  model, p)
        text = " ".join(h[1] for h in got if h[0] == "system")
        t.ok(text.index("first") < text.index("second"), model)
        t.eq(got[-1], ("user", "one"), model)


@tap.case("a late system message stays late, in words that are accepted")
def late_system(t):
    messages = [{"role": "system", "content": "rules"}, U("one"), R("ONE"),
                {"role": "system", "content": "speak French now"}, U("two")]
    for model, p in ROUTES:
        got = ask(t, messages, model, p)
        text = [h[1] for h in got]
        late = [i for i, x in enumerate(text) if "speak French now" in x]
        t.eq(len(late), 1, model + ": said once")
        t.ok(late[0] > text.index("ONE"), model + ": after what was said")
        t.notin("French", text[0], model + ": not hoisted")
    got = ask(t, messages[:3] + [messages[3]], "claude", C)
    t.ok(any("speak French now" in h[1] for h in got), "as the last message")


@tap.case("marks of another maker are not passed on")
def marks(t):
    m = {"role": "user", "content": [
        {"type": "text", "text": "one", "cache_control": {
            "type": "ephemeral"}}], "cache_control": {"type": "ephemeral"},
        "x_extra": 1}
    a = dict(R("two"), reasoning_content="hmm", thinking="x",
             annotations=[], refusal=None, audio=None)
    for model, p in ROUTES:
        for session in (None, "marks-%d" % next(_names)):
            got = ask(t, [m, a, U("three")], model, p, session=session)
            t.eq(got, [("user", "one"), ("assistant", "two"),
                       ("user", "three")], model)


@tap.case("an answer of the gateway can be sent back as it came")
def sent_back(t):
    """SDKs append the whole message object, null members and all."""
    for model, p in ROUTES:
        n = "back-%d" % next(_names)
        p.behave(provider.answer("Let me look.", [("c1", "look", "{}")]))
        r = client.chat(get_daemon(), [U("go")], model=model, session=n,
                        tools=TOOLS)
        message = r.json["choices"][0]["message"]
        result = {"role": "tool", "content": "x",
                  "tool_call_id": message["tool_calls"][0]["id"]}
        got = ask(t, [U("go"), message, result, U("so?")], model, p,
                  session=n, tools=TOOLS)
        t.eq([h[0] for h in got], ["user", "assistant", "call", "result",
                                   "user"], model)


@tap.case("a tool result as a list of parts, and an empty one")
def result_forms(t):
    call = {"role": "assistant", "content": None, "tool_calls": [
        {"id": "c1", "type": "function", "function": {
            "name": "look", "arguments": "{}"}}]}
    for content, want in (([{"type": "text", "text": "a"},
                            {"type": "text", "text": "b"}], "ab"),
                          ("", None), ([], None)):
        for model, p in ROUTES:
            got = ask(t, [U("go"), call, {
                "role": "tool", "tool_call_id": "c1", "content": content},
                U("so?")], model, p, tools=TOOLS)
            t.eq(got[1][0], "call", model)
            t.eq(got[2][0], "result", model)
            if want is not None:
                t.eq(got[2][2], want, model)


@tap.case("results without a call and calls without a result")
def orphans(t):
    def call(*ids):
        return {"role": "assistant", "content": None, "tool_calls": [
            {"id": i, "type": "function", "function": {
                "name": "look", "arguments": "{}"}} for i in ids]}

    def result(i):
        return {"role": "tool", "tool_call_id": i, "content": "r-" + i}
    for messages in ([U("go"), result("c9"), U("so?")],
                     [U("go"), call("c1", "c2"), result("c1"), U("so?")],
                     [U("go"), call("c1"), U("wait"), result("c1"),
                      U("so?")],
                     [U("go"), call("c1", "c2"), result("c2"), result("c1"),
                      result("c1"), U("so?")],
                     [U("go"), call("c1")]):
        for model, p in ROUTES:
            ask(t, messages, model, p, tools=TOOLS)


@tap.case("ids that repeat in a history are told apart")
def repeated_ids(t):
    messages = []
    for i in range(3):
        messages += [U("go %d" % i), {
            "role": "assistant", "content": None, "tool_calls": [
                {"id": "call_0", "type": "function", "function": {
                    "name": "look", "arguments": '{"n":%d}' % i}}]},
            {"role": "tool", "tool_call_id": "call_0",
             "content": "r%d" % i}]
    for model, p in ROUTES:
        got = ask(t, messages + [U("so?")], model, p, tools=TOOLS)
        for i in range(3):
            call, result = got[3 * i + 1], got[3 * i + 2]
            t.eq((call[3], result[2]), ({"n": i}, "r%d" % i), model)
            t.eq(call[1], result[1], model + ": one id")


@tap.case("tool arguments cut after every byte are put together")
def arguments_cut(t):
    d = get_daemon()
    args = json.dumps({"a": "\u00e9\U0001f642 \"x\"", "b": [1, 2]})
    for model, p in ROUTES:
        for i in range(1, len(args), 3):
            said = dialect.Said("", [("c1", "look", args)])

            def behave(ex, said=said, i=i):
                events = ex.events(said)
                data = b"".join(events)
                ex.start()
                for k in range(0, len(data), i):
                    ex.chunk(data[k:k + i])
                ex.end()
            p.script(behave)
            r = client.chat(d, "x", model=model, tools=TOOLS)
            t.eq(r.status, 200, repr(r))
            t.eq(json.loads(r.calls[0][2]), json.loads(args), model)


@tap.case("a broken event in mid-stream is never passed on as complete")
def broken_event(t):
    d = get_daemon()

    def behave(ex):
        events = ex.events(dialect.Said("one two three"))
        n = dialect.first_useful(ex.dialect) + 2
        ex.start()
        for event in events[:n]:
            ex.chunk(event)
        ex.chunk(b'data: {"choices":[{"delta":\n\n')
        ex.end()
    for model, p in ROUTES:
        p.script(behave)
        r = client.chat(d, "x", model=model, stream=True)
        t.eq((r.text, r.finish, r.done), ("one two", None, False), model)
        t.ok(r.error, model + ": an error event")


@tap.case("usage of the provider is counted, its absence is no error")
def usage(t):
    d = get_daemon()

    def without(ex):
        ex.start()
        for event in ex.events(dialect.Said("one")):
            if b'"choices":[],' not in event:
                ex.chunk(event)
        ex.end()
    A.script(without)
    r = client.chat(d, "x", stream=True,
                    stream_options={"include_usage": True})
    t.eq((r.status, r.text, r.done), (200, "one", True), repr(r))
    A.script(without)
    r = client.chat(d, "x")
    t.eq((r.status, r.text), (200, "one"), repr(r))


if __name__ == "__main__":
    tap.main()
