"""Chat completions without a stream and without a session: the answer's
shape, what is passed on and what is not."""
import json
import os
import re
import sys
import time

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import client
import dialect
import provider
import tap
from daemon import Config, Daemon, KEY, shared

A = provider.Provider("openai", key=KEY)
P = provider.Provider("openai", key=KEY)
C = provider.Provider("anthropic", key=KEY)


def make():
    conf = Config(workers=2)
    conf.provider("a", A)
    conf.provider("p", P, upstream_stream="client")
    conf.provider("c", C)
    conf.route("m", ["a/model-a"])
    conf.route("plain", ["p/model-p"])
    conf.route("claude", ["c/model-c"])
    return Daemon(conf).start()


get_daemon = shared(make)
ROUTES = [("m", A, "a/model-a"), ("plain", P, "p/model-p"),
          ("claude", C, "c/model-c")]


@tap.case("the answer has the shape of a chat completion")
def shape(t):
    d = get_daemon()
    for model, p, target in ROUTES:
        p.behave(provider.answer("Your order ships Tuesday."))
        p.take()
        r = client.chat(d, "where is it?", model=model)
        t.eq((r.status, r.end), (200, "length"), model)
        t.ok(r.headers["content-type"].startswith("application/json"),
             "content type")
        v = r.json
        t.eq(set(v) - {"service_tier", "system_fingerprint"},
             {"id", "object", "created", "model", "choices", "usage"},
             "members")
        t.ok(re.match(r"^chatcmpl-[0-9a-hj-km-npq-tv-z]{26}$", v["id"]),
             "id %r" % v["id"])
        t.eq(v["object"], "chat.completion", "object")
        t.between(v["created"], time.time() - 60, time.time() + 5, "created")
        t.eq(v["model"], model, "model")
        t.eq(len(v["choices"]), 1, "choices")
        c = v["choices"][0]
        t.eq((c["index"], c["finish_reason"], c["logprobs"]),
             (0, "stop", None), "choice")
        t.eq({k: c["message"][k] for k in ("role", "content", "refusal")},
             {"role": "assistant", "content": "Your order ships Tuesday.",
              "refusal": None}, "message")
        t.eq({k: v["usage"][k] for k in ("prompt_tokens",
                                         "completion_tokens",
                                         "total_tokens")},
             {"prompt_tokens": 31, "completion_tokens": 6,
              "total_tokens": 37}, "usage")
        t.eq(r.headers.get("x-holdfast-target"), target, "target")
        t.eq(r.headers.get("x-holdfast-attempts"), "1", "attempts")
        t.ok(re.match(r"^turn_[0-9a-z]{26}$",
                      r.headers.get("x-holdfast-turn", "")), "turn id")
        t.eq(v["id"][len("chatcmpl-"):],
             r.headers["x-holdfast-turn"][len("turn_"):],
             "the answer's id is the turn's")
        t.notin("x-holdfast-session", r.headers, "a stateless turn")
        t.eq(p.violations, [], "violations")
        t.eq(p.requests[0].stream, model != "plain", "asked to stream")


@tap.case("paths with and without /v1, and with a doubled suffix")
def paths(t):
    d = get_daemon()
    A.behave(provider.answer("ok"))
    body = json.dumps(client.body_of("x")).encode()
    for path in ("/v1/chat/completions", "/chat/completions",
                 "/v1/v1/chat/completions",
                 "/v1/chat/completions/chat/completions",
                 "/v1/chat/completions?api-version=1"):
        r = client.request(d, "POST", path, client.headers_of(), body)
        t.eq(r.status, 200, path)


@tap.case("the provider gets its own model, its own key and no client header")
def upstream_request(t):
    d = get_daemon()
    for model, p, target in ROUTES:
        p.take()
        r = client.chat(d, "x", model=model, key="client-secret", headers={
            "Cookie": "a=b", "X-Private": "mine",
            "OpenAI-Organization": "org-client"})
        t.eq(r.status, 200, model)
        rq = p.requests[0]
        t.eq(rq.model, target.split("/")[1], "model")
        t.notin("client-secret", repr(rq.header_list), "the client's key")
        for name in ("cookie", "x-private", "openai-organization",
                     "x-holdfast-session"):
            t.notin(name, rq.headers, "header passed on")
        t.eq(rq.headers.get("content-type"), "application/json", "type")
        t.isin(KEY, rq.headers.get("authorization", "") +
               rq.headers.get("x-api-key", ""), "the provider's key")
        t.notin("transfer-encoding", rq.headers, "framing")
        t.notin("expect", rq.headers, "no Expect")


@tap.case("known parameters arrive unchanged, unknown ones do not")
def parameters(t):
    d = get_daemon()
    known = {"temperature": 0.25, "top_p": 0.5, "stop": ["END", "STOP"],
             "seed": 7, "max_completion_tokens": 50, "user": "u-1",
             "frequency_penalty": 0.5, "presence_penalty": -0.5,
             "response_format": {"type": "json_object"},
             "tools": [{"type": "function", "function": {
                 "name": "look", "description": "d",
                 "parameters": {"type": "object", "properties": {}}}}],
             "tool_choice": "auto", "parallel_tool_calls": True}
    unknown = {"session_hint": 1, "guardrails": {"x": [1]}, "fallbacks": []}
    A.take()
    r = client.chat(d, "x", **known, **unknown)
    t.eq(r.status, 200, "status")
    got = A.requests[0].json
    for key, value in known.items():
        t.eq(got.get(key), value, key)
    for key in unknown:
        t.notin(key, got, "unknown field")
    t.eq(A.violations, [], "violations")


@tap.case("parameters are said in anthropic's words")
def anthropic_parameters(t):
    d = get_daemon()
    C.behave(provider.answer("ok"))
    C.take()
    r = client.chat(d, [{"role": "system", "content": "Be brief."},
                        {"role": "user", "content": "x"}], model="claude",
                    temperature=1.5, stop="END", max_tokens=77, user="u-1",
                    seed=3, tool_choice="required", tools=[
                        {"type": "function", "function": {
                            "name": "look", "description": "d",
                            "parameters": {"type": "object", "properties": {
                                "id": {"type": "integer"}}}}}])
    t.eq(r.status, 200, repr(r))
    t.eq(C.violations, [], "violations")
    got = C.requests[0].json
    t.eq(got["max_tokens"], 77, "max_tokens")
    t.eq(got["stop_sequences"], ["END"], "stop_sequences")
    t.eq(got["tools"][0]["name"], "look", "tool")
    t.eq(got["tools"][0]["input_schema"]["properties"],
         {"id": {"type": "integer"}}, "schema")
    t.eq(got["tool_choice"]["type"], "any", "tool_choice")
    t.eq(C.history(C.requests[0]), [("system", "Be brief."), ("user", "x")],
         "history")
    t.notin("seed", got, "seed")


@tap.case("roles and contents arrive as they were said")
def contents(t):
    d = get_daemon()
    A.behave(provider.answer("ok"))
    A.take()
    messages = [
        {"role": "system", "content": "S"},
        {"role": "assistant", "content": "Acme, how can I help?"},
        {"role": "user", "content": [{"type": "text", "text": "one "},
                                     {"type": "text", "text": "two"}]},
        {"role": "assistant", "content": ""},
        {"role": "user",
         "content": "\u65e5\u672c\u8a9e \U0001f642 \"q\" \\ \n\t"},
    ]
    r = client.chat(d, messages)
    t.eq(r.status, 200, repr(r))
    got = A.history(A.requests[0])
    t.eq([g for g in got if g[1] != ""],
         [("system", "S"), ("assistant", "Acme, how can I help?"),
          ("user", "one two"), ("user", messages[4]["content"])], "history")
    t.eq(A.violations, [], "violations")


@tap.case("finish reasons of both dialects")
def finishes(t):
    d = get_daemon()
    for model, p, _ in ROUTES:
        for finish in ("stop", "length", "content_filter"):
            p.script(provider.answer("some text", finish=finish))
            r = client.chat(d, "x", model=model)
            t.eq((r.status, r.finish), (200, finish), model)


@tap.case("a tool call is answered with ids of the gateway")
def tool_calls(t):
    d = get_daemon()
    tools = [{"type": "function", "function": {"name": "look",
                                               "parameters": {
                                                   "type": "object"}}}]
    for model, p, _ in ROUTES:
        p.script(provider.answer("", [("call_up1", "look", '{"id":42}'),
                                      ("call_up2", "look", "{}")]))
        r = client.chat(d, "x", model=model, tools=tools)
        t.eq(r.status, 200, repr(r))
        t.eq(r.finish, "tool_calls", model)
        t.eq(r.json["choices"][0]["message"]["content"], None, "content")
        t.eq([(n, json.loads(a)) for _, n, a in r.calls],
             [("look", {"id": 42}), ("look", {})], "calls")
        ids = [i for i, _, _ in r.calls]
        t.eq(len(set(ids)), 2, "different ids")
        for i in ids:
            t.ok(re.match(r"^call_[0-9A-Za-z]{24,35}$", i), "id %r" % i)


@tap.case("HTTP 200 bodies in odd splits are understood")
def odd_splits(t):
    d = get_daemon()

    def slowly(ex):
        body = dialect.plain(ex.dialect, dialect.Said("\u65e5\u672c\u8a9e"),
                             "x")
        ex.head(200, [("Content-Type", "application/json"),
                      ("Content-Length", str(len(body)))])
        for i in range(0, len(body)):
            ex.send(body[i:i + 1])
    P.script(slowly)
    r = client.chat(d, "x", model="plain")
    t.eq((r.status, r.text), (200, "\u65e5\u672c\u8a9e"), "text")


@tap.case("a plain answer to a stream request is understood")
def plain_for_stream(t):
    d = get_daemon()

    def plain(ex):
        ex.reply(200, dialect.plain("openai", dialect.Said("whole"), "x"))
    A.script(plain, plain)
    r = client.chat(d, "x")
    t.eq((r.status, r.text), (200, "whole"), "plain client")
    r = client.chat(d, "x", stream=True)
    t.eq((r.status, r.text, r.done), (200, "whole", True), "stream client")


if __name__ == "__main__":
    tap.main()
