"""The openai library for node against the daemon."""
import json
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import scenarios
from scenarios import A, C, Library, ROUTES, base, calm, fresh, name
import client
import provider
import relay
import tap
import wait

lib = Library("openai.mjs", ["plain", "stream", "helper"])
U = [{"role": "user", "content": "hi"}]


def check_stream_error(t, e):
    t.isin("APIError", e["classes"], repr(e))
    t.eq(e.get("status"), None, "the status was 200 already")
    t.eq((e["type"], e["code"]), ("server_error", "stream_interrupted"),
         "what users match on")


lib.check_stream_error = check_stream_error
scenarios.declare(lib)


@tap.case("models, and base URLs with and without /v1")
def models(t):
    d = lib.ready()
    for path in ("/v1", "/v1/", "", "/"):
        r = lib.good(t, lib.call("models", model="claude",
                                 **lib.to(d, base=base(d, path))))
        t.eq(r["ids"], ["m", "r", "gpt", "claude", "gpt-5-mini",
                         "slow"], path)
        t.eq((r["one"]["id"], r["one"]["object"]), ("claude", "model"), path)
        for mode in lib.modes:
            conv = lib.open(d, base=base(d, path))
            t.eq(lib.say(t, conv, "hi", mode)["text"], "heard 1: hi", path)
    r = lib.call("models", model="nothing", **lib.to(d))
    t.eq((r["error"]["classes"][0], r["error"]["code"]),
         ("NotFoundError", "model_not_found"), "an unknown model")
    r = lib.call("models", model="m", **lib.to(d, key="wrong"))
    t.eq(r["error"]["classes"][0], "AuthenticationError", "a wrong key")


@tap.case("the answer's shape: id, object, model, request id, headers")
def shape(t):
    d = lib.ready()
    for mode in lib.modes:
        conv = name()
        lib.open(d, conv, headers={"X-Holdfast-Session": conv})
        r = lib.say(t, conv, "hi", mode)
        t.ok(r["id"].startswith("chatcmpl-"), "id " + r["id"])
        t.eq((r["model"], r["object"]), ("m", "chat.completion.chunk" if
             mode == "stream" else "chat.completion"), mode)
        if mode == "helper":
            continue
        h = r["headers"]
        t.eq(h["x-holdfast-target"], "a/model-a", "target")
        t.eq(h["x-request-id"], h["x-holdfast-turn"], "ids")
        t.eq(r["request_id"], h["x-request-id"], "the library finds it")
        t.eq(r["id"][9:], r["request_id"][5:], "one id for the turn")
        if mode == "stream":
            t.eq(r["identities"], 1, "one id, model, object in all chunks")


@tap.case("usage comes only when it was asked for, and last")
def usage(t):
    d = lib.ready()
    for model, p in ROUTES:
        p.behave(provider.answer("one two"))
        for want in (True, False, None):
            conv = lib.open(d, model=model)
            r = lib.say(t, conv, "hi", "stream", usage=want)
            t.eq(r["usage"] is not None, want is True, model)
            t.eq(r["order"][-1], "usage" if want else "stop", "the last")
            t.eq(r["order"].count("stop"), 1, "one finish")


@tap.case("the helper tells each call's arguments when they are done")
def helper_events(t):
    d = lib.ready()
    A.behave(provider.answer("", scenarios.upstream(A, scenarios.TWO)))
    conv = lib.open(d, tools=["weather", "order"])
    r = lib.say(t, conv, "x", "helper")
    t.eq([(i, n, json.loads(a)) for i, n, a in r["done"]],
         [(k, n, json.loads(a)) for k, (_, n, a) in
          enumerate(scenarios.TWO)], "events")


@tap.case("runTools: the library runs the tools, plain and streamed")
def run_tools(t):
    d = lib.ready()
    for (model, p), streamed in [(m, s) for m in ROUTES
                                 for s in (False, True)]:
        fresh()
        p.script(provider.answer("Looking.", scenarios.upstream(p, [
            ("x_u1", "look", ""), ("x_u2", "weather",
                                   '{"city":"Rome"}')])),
            provider.answer("", scenarios.upstream(p, [
                ("x_u3", "order", '{"id":"7","qty":1}')])),
            provider.answer("Ordered."))
        r = lib.good(t, lib.call("runTools", model=model, text="go",
                                 streamed=streamed, **lib.to(d)))
        t.eq(r["text"], "Ordered.", model)
        t.eq(r["ran"], [["look", {}], ["weather", {"city": "Rome"}],
                        ["order", {"id": "7", "qty": 1}]], "tools run")
        t.eq(scenarios.numbered(p.history(p.requests[-1])),
             [("user", "go"), ("assistant", "Looking."),
              ("call", 0, "look", {}), ("call", 1, "weather",
                                        {"city": "Rome"}),
              ("result", 0, "look is done"), ("result", 1,
                                              "weather is done"),
              ("call", 2, "order", {"id": "7", "qty": 1}),
              ("result", 2, "order is done")], model + " heard")
        calm(t)


@tap.case("parse: a schema goes to the provider, the answer comes parsed")
def parse(t):
    d = lib.ready()
    A.behave(provider.answer('{"city":"Rome","days":3}'))
    r = lib.good(t, lib.call("parse", model="gpt", text="where?",
                             **lib.to(d)))
    t.eq(r["parsed"], {"city": "Rome", "days": 3}, "parsed")
    f = A.requests[-1].json["response_format"]
    t.eq((f["type"], f["json_schema"]["name"], f["json_schema"]["strict"]),
         ("json_schema", "trip", True), "the schema as it was sent")
    A.behave(provider.answer('{"city":"Ro', finish="length"))
    r = lib.call("parse", model="gpt", text="where?", **lib.to(d))
    t.eq(r["error"]["classes"][0], "LengthFinishReasonError", "too long")
    A.behave(provider.answer("", finish="content_filter"))
    r = lib.call("parse", model="gpt", text="where?", **lib.to(d))
    t.eq(r["error"]["classes"][0], "ContentFilterFinishReasonError",
         "filtered")


@tap.case("parameters of newer interfaces are taken and not passed on")
def unknown(t):
    d = lib.ready()
    body = {"model": "m", "messages": [
        {"role": "developer", "content": [{"type": "text", "text": "Be "},
                                          {"type": "text", "text": "kind."}]},
        {"role": "user", "name": "ann", "content": "hi"}],
        "store": True, "metadata": {"a": "b"}, "prediction": None,
        "service_tier": "auto", "prompt_cache_key": "k",
        "max_completion_tokens": 100, "temperature": 0.5, "top_p": 0.9,
        "seed": 7, "stop": ["END"], "user": "u1", "logprobs": False,
        "some_new_thing": {"x": 1}}
    for mode in lib.modes:
        r = lib.good(t, lib.call("raw", body=body, mode=mode, **lib.to(d)))
        t.eq(r["text"], "heard 1: hi", mode)
        got = A.requests[-1].json
        t.notin("some_new_thing", got, "an unknown parameter")
        t.eq((got["seed"], got["stop"], got["max_completion_tokens"]),
             (7, ["END"], 100), "known ones")
    calm(t)


@tap.case("messages with all the members that the library knows")
def full_messages(t):
    d = lib.ready()
    none = {"refusal": None, "annotations": [], "audio": None,
            "function_call": None}
    messages = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "go"},
        dict(none, role="assistant", content=None, parsed=None, tool_calls=[
            {"id": "call_abc", "type": "function", "index": 0, "function": {
                "name": "look", "arguments": "{}",
                "parsed_arguments": {}}}]),
        {"role": "tool", "tool_call_id": "call_abc", "content": [
            {"type": "text", "text": "seen"}]},
        dict(none, role="assistant", content="I looked.", parsed=None,
             tool_calls=[]),
        {"role": "user", "content": [{"type": "text", "text": "and?"}]}]
    tools = [{"type": "function", "function": {
        "name": "look", "strict": True, "parameters": {
            "type": "object", "properties": {}, "required": [],
            "additionalProperties": False}}}]
    for (model, p), mode in [(m, s) for m in ROUTES for s in lib.modes]:
        fresh()
        body = {"model": model, "messages": messages, "tools": tools,
                "tool_choice": "auto", "parallel_tool_calls": True}
        if mode != "plain":
            body["stream_options"] = {"include_usage": True,
                                      "include_obfuscation": False}
        r = lib.good(t, lib.call("raw", body=body, mode=mode, **lib.to(d)))
        t.eq(r["text"], "heard 2: and?", model)
        t.eq(scenarios.numbered(p.history(p.requests[-1])),
             [("system", "Be kind."), ("user", "go"), ("call", 0, "look", {}),
              ("result", 0, "seen"), ("assistant", "I looked."),
              ("user", "and?")], model + " heard")
        calm(t)


# --- errors ----------------------------------------------------------------

def fails(t, d, via, want, body=None, mode=None, kind=None, count=1, **more):
    """Both ways of asking give the same typed error, after one request,
    with the library's default of two retries."""
    out = None
    for m in [mode] if mode else ["plain", "stream"]:
        del via.requests[:]
        value = {"model": "gpt", "messages": U}
        value.update(body or {})
        to = lib.to(d, base=via.base_url, retries=2)
        to.update(more)
        e = lib.call("kinds", body=value, mode=m, **to)
        what = "%s %s: %r" % (want[0], m, e)
        t.ok(e is not None, what + " no error")
        for k in (want[0], "APIError", "OpenAIError"):
            t.isin(k, e["kinds"], what)
        t.eq((want[0], e.get("status"), e.get("type"), e.get("code"),
              e.get("param")), want, what)
        t.ok(e["message"].startswith("%s " % want[1]), "message")
        t.ok(len(e["message"]) > 8, "message " + e["message"])
        t.ok(e["requestID"], "an id to report it by")
        t.eq(len(via.requests), count, what + " requests at the daemon")
        out = e
    return out


def via_relay(t, d):
    r = relay.Relay(d.addr)
    t.cleanup(r.close)
    return r


BAD = [
    ({"temperature": 3}, "invalid_value", "temperature"),
    ({"top_p": "x"}, "invalid_value", "top_p"),
    ({"n": 2}, "unsupported_value", "n"),
    ({"logprobs": True}, "unsupported_parameter", "logprobs"),
    ({"messages": []}, "empty_array", "messages"),
    ({"messages": [{"role": "boss", "content": "x"}]}, "invalid_value",
     "messages[0].role"),
    ({"messages": [{"role": "user", "content": [
        {"type": "image_url", "image_url": {"url": "data:,"}}]}]},
     "invalid_value", "messages[0].content[0].type"),
    ({"tools": [{"type": "function"}]}, "invalid_value", "tools[0]"),
]


@tap.case("400 of ours: BadRequestError with param and code")
def bad_request(t):
    d = lib.ready()
    via = via_relay(t, d)
    for body, code, param in BAD:
        fails(t, d, via, ("BadRequestError", 400, "invalid_request_error",
                          code, param), body)
    t.eq(A.requests + C.requests, [], "no provider heard of it")


@tap.case("400 of the provider: its message, code and param")
def provider_400(t):
    d = lib.ready()
    via = via_relay(t, d)
    A.behave(provider.status(400, "tools[0] is too odd", param="tools",
                             code="invalid_function_parameters"))
    e = fails(t, d, via, ("BadRequestError", 400, "invalid_request_error",
                          "invalid_function_parameters", "tools"))
    t.isin("tools[0] is too odd", e["message"], "its words")
    A.behave(provider.status(400, "maximum context length is 10 tokens",
                             param="messages",
                             code="context_length_exceeded"))
    fails(t, d, via, ("BadRequestError", 400, "invalid_request_error",
                      "context_length_exceeded", "messages"))
    C.behave(provider.status(400, "messages.0: too odd"))
    e = fails(t, d, via, ("BadRequestError", 400, "invalid_request_error",
                          "invalid_request", None), {"model": "claude"})
    t.isin("messages.0: too odd", e["message"], "anthropic's words")


@tap.case("401: AuthenticationError, invalid_api_key")
def unauthorized(t):
    d = lib.ready()
    via = via_relay(t, d)
    other = d.key[:-1] + ("y" if d.key.endswith("x") else "x")
    for key in ("wrong", other, "sk-" + "x" * 300):
        e = fails(t, d, via, ("AuthenticationError", 401,
                              "invalid_request_error", "invalid_api_key",
                              None), key=key)
        t.notin(key, e["message"], "a key is never said")
    t.eq(A.requests, [], "no provider heard of it")


@tap.case("404: NotFoundError for models and paths")
def not_found(t):
    d = lib.ready()
    via = via_relay(t, d)
    fails(t, d, via, ("NotFoundError", 404, "invalid_request_error",
                      "model_not_found", "model"), {"model": "gpt-99"})
    e = lib.call("kinds", body={"model": "m", "messages": U}, mode="plain",
                 options={"path": "/nowhere"},
                 **lib.to(d, base=base(d, "/v1/nowhere/at/all")))
    t.isin("NotFoundError", e["kinds"], repr(e))
    t.eq(e["type"], "invalid_request_error", "type of a wrong path")


@tap.case("429: RateLimitError with Retry-After, asked once")
def rate_limited(t):
    d = lib.ready()
    via = via_relay(t, d)
    for behaviour, low, high in ((provider.rate_limited(7), 6, 7),
                                 (provider.rate_limited(ms=2500), 2, 3),
                                 (provider.rate_limited(), 1, 1)):
        A.behave(behaviour)
        e = fails(t, d, via, ("RateLimitError", 429, "rate_limit_error",
                              "rate_limit_exceeded", None))
        t.between(int(e["headers"]["retry-after"]), low, high, "seconds")
        t.between(int(e["headers"]["retry-after-ms"]), low * 1000 - 600,
                  high * 1000, "milliseconds")
        t.eq(e["headers"]["x-should-retry"], "false", "do not")


@tap.case("503: InternalServerError, asked once")
def unavailable(t):
    d = lib.ready()
    via = via_relay(t, d)
    for status in (500, 503, 529, 401, 403):
        A.behave(provider.status(status))
        e = fails(t, d, via, ("InternalServerError", 503, "server_error",
                              "no_target", None))
        t.ok(e["requestID"].startswith("turn_"), "a request id to ask about")
    A.down()
    fails(t, d, via, ("InternalServerError", 503, "server_error",
                      "no_target", None))


@tap.case("504: InternalServerError when time ran out, asked once")
def timeout(t):
    d = lib.ready()
    via = via_relay(t, d)
    A.behave(provider.silence())
    fails(t, d, via, ("InternalServerError", 504, "server_error",
                      "deadline_exceeded", None), {"model": "slow"})


@tap.case("413: an APIError with code and status")
def too_large(t):
    d = lib.ready()
    via = via_relay(t, d)
    fails(t, d, via, ("APIError", 413, "invalid_request_error",
                      "request_too_large", None),
          {"messages": [{"role": "user", "content": "x" * (17 << 20)}]},
          mode="plain")


# --- broken connections, and clients that leave ------------------------------

@tap.case("the library's retry of a broken connection is one turn", 40)
def broken(t):
    d = lib.ready()
    for mode in lib.modes:
        for fault in ("refuse", "lose"):
            fresh()
            via = via_relay(t, d)
            conv = name()
            lib.open(d, conv, base=via.base_url, retries=2,
                     headers={"X-Holdfast-Session": conv})
            lib.say(t, conv, "one", mode)
            via.script(fault)
            r = lib.say(t, conv, "two", mode)
            what = "%s %s: " % (mode, fault)
            t.eq(r["text"], "heard 2: two", what + "answer")
            lib.say(t, conv, "three", mode)
            t.eq(len(via.posts()), 4, what + "requests")
            t.eq([p[2] and dict((k.lower(), v) for k, v in p[2])[
                "x-stainless-retry-count"] for p in via.posts()],
                ["0", "0", "1", "0"], what + "the library marks its retry")
            t.eq(A.history(A.requests[-1]),
                 [("user", "one"), ("assistant", "heard 1: one"),
                  ("user", "two"), ("assistant", "heard 2: two"),
                  ("user", "three")], what + "one turn each")
            # A stream that is left before its end is cancelled; then the
            # retry is asked again.
            t.isin(len(A.requests),
                   (3, 4) if fault == "lose" and mode != "plain" else (3,),
                   what + "one bill each")


@tap.case("an Idempotency-Key: told again, and 409 for another request")
def idempotent(t):
    d = lib.ready()
    via = via_relay(t, d)
    for mode in lib.modes:
        A.take()
        body = {"model": "gpt", "messages": U}
        key = {"headers": {"Idempotency-Key": "key of " + mode}}
        one = lib.good(t, lib.call("raw", body=body, mode=mode, options=key,
                                   **lib.to(d)))
        two = lib.good(t, lib.call("raw", body=body, mode=mode, options=key,
                                   **lib.to(d)))
        for k in ("id", "text", "finish", "model"):
            t.eq(two[k], one[k], mode + ": " + k)
        t.eq(len(A.requests), 1, mode + ": one bill")
        e = fails(t, d, via, ("ConflictError", 409, "invalid_request_error",
                              "idempotency_key_reused", None),
                  {"temperature": 0.5}, "plain", options=key)


@tap.case("a connection that breaks inside a stream is an error")
def broken_stream(t):
    d = lib.ready()
    for mode in ("stream", "helper"):
        fresh()
        A.behave(provider.answer("one two three four five"))
        via = via_relay(t, d)
        conv = lib.open(d, base=via.base_url, retries=2)
        barrier = provider.Barrier()
        # The third word is held until it is known to be whole.
        A.behave(provider.trickle("one two three four five", barrier, 3))
        via.script("cut:two")
        r = lib.call("say", conv=conv, text="x", mode=mode)
        barrier.release()
        t.ok(r["error"] is not None, "%s: %r" % (mode, r))
        t.eq(r["text"].strip(), "one two", mode + ": what came before")


@tap.case("a client that leaves a stream, by break and by abort")
def leaves(t):
    d = lib.ready()
    for how in ("break", "abort"):
        fresh()
        barrier = provider.Barrier()
        t.cleanup(barrier.release)
        left = []

        def behave(ex):
            events = ex.events(provider.words.Said("one two three four"))
            ex.start()
            for event in events[:3]:
                ex.chunk(event)
            left.append(ex.wait_gone(5))
            ex.close()
        A.behave(behave)
        conv = name()
        r = lib.call("leave", model="gpt", text="count", how=how, after=2,
                     **lib.to(d, headers={"X-Holdfast-Session": conv}))
        t.eq((r["error"], r["text"]), (None, "one two"), how)
        wait.until(lambda: left, 5, "the provider's call to end")
        t.eq(left, [True], how + ": the provider was let go")
        A.behave(provider.echo())
        lib.open(d, conv, model="gpt", thin=True,
                 headers={"X-Holdfast-Session": conv})
        lib.say(t, conv, "go on", "plain")
        t.eq(A.history(A.requests[-1]),
             [("user", "count"), ("assistant", "one two"),
              ("user", "go on")], how + ": what was heard is remembered")


@tap.case("the library's own timeout, and the turn after it")
def own_timeout(t):
    d = lib.ready()
    for mode in lib.modes:
        fresh()
        barrier = provider.Barrier()
        A.behave(provider.hold(barrier, provider.answer("late")))
        conv = name()
        lib.open(d, conv, model="gpt", timeout=300, thin=True,
                 headers={"X-Holdfast-Session": conv})
        r = lib.call("say", conv=conv, text="one", mode=mode)
        t.isin("APIConnectionTimeoutError", r["error"]["classes"], repr(r))
        barrier.release()
        A.behave(provider.echo())
        lib.open(d, conv, model="gpt", thin=True,
                 headers={"X-Holdfast-Session": conv})
        r = lib.say(t, conv, "two", mode)
        t.eq(r["text"], "heard 2: two", mode + ": the next turn")


@tap.case("workers killed under a request: the library's retry is one turn",
          60)
def killed(t):
    d = lib.ready()
    for mode in lib.modes:
        fresh()
        conv = name()
        lib.open(d, conv, retries=5,
                 headers={"X-Holdfast-Session": conv})
        lib.say(t, conv, "one", mode)
        barrier = provider.Barrier()
        A.script(provider.hold(barrier, provider.answer("nobody hears it")))
        call = lib.driver.begin("say", conv=conv, text="two", mode=mode)
        barrier.wait_for(1)
        before = d.workers()
        for pid in before.values():
            os.kill(pid, signal.SIGKILL)
        r = lib.good(t, lib.driver.finish(call))
        barrier.release()
        t.eq(r["text"], "heard 2: two", mode + ": answer")
        lib.say(t, conv, "three", mode)
        t.eq(A.history(A.requests[-1]),
             [("user", "one"), ("assistant", "heard 1: one"),
              ("user", "two"), ("assistant", "heard 2: two"),
              ("user", "three")], mode + ": one turn each")
        wait.until(lambda: len(d.workers()) == len(before), 10, "workers")


@tap.case("reloads under load: pooled connections of the library cope", 60)
def reloads(t):
    d = lib.ready()
    session = name() + "-"
    said = ["remember k%d is v%d" % (i, i) for i in range(24)]
    r = lib.call("many", texts=said, session=session, model="m",
                 **lib.to(d, retries=2))
    for n in range(1, 4):
        since = len(d.log.lines)
        said = ["recall k%d" % i for i in range(24)]
        calls = [lib.driver.begin("many", texts=said, session=session,
                                  model="m", **lib.to(d, retries=2))
                 for _ in range(3)]
        d.proc.send_signal(signal.SIGHUP)
        for call in calls:
            r = lib.driver.finish(call)
            t.eq(r, ["k%d is v%d" % (i, i) for i in range(24)],
                 "answers over reload %d" % n)
        d.log.wait(r"reload: done", 40, since=since)
    calm(t)


tap.main()
