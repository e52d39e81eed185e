"""The AI SDK's openai provider (chat completions) against the daemon."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import scenarios
from scenarios import A, C, Library, ROUTES, calm, fresh, name
import provider
import relay
import tap

lib = Library("aisdk.mjs", ["plain", "stream"])


def check_stream_error(t, e):
    # An error part, which carries the error object as it came.
    t.eq((e["message"], e["data"]["type"], e["data"]["code"]),
         ("error part", "server_error", "stream_interrupted"), repr(e))


lib.check_stream_error = check_stream_error
scenarios.declare(lib)


@tap.case("the SDK runs the tools in a loop, plain and streamed")
def loop(t):
    d = lib.ready()
    for (model, p), mode in [(m, s) for m in ROUTES for s in lib.modes]:
        fresh()
        p.script(provider.answer("Looking.", scenarios.upstream(p, [
            ("x_u1", "look", ""), ("x_u2", "weather",
                                   '{"city":"Rome"}')])),
            provider.answer("", scenarios.upstream(p, [
                ("x_u3", "order", '{"id":"7","qty":1}')])),
            provider.answer("Ordered."))
        r = lib.good(t, lib.call("loop", model=model, text="go", mode=mode,
                                 **lib.to(d)))
        t.eq((r["text"], r["steps"]), ("Ordered.", 3), model)
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


@tap.case("an object by schema")
def structured(t):
    d = lib.ready()
    A.behave(provider.answer('{"city": "Rome", "days": 3}'))
    r = lib.good(t, lib.call("structured", text="where?", model="gpt",
                             **lib.to(d)))
    t.eq(r["value"], {"city": "Rome", "days": 3}, "value")
    t.eq(A.requests[-1].json["response_format"]["type"], "json_schema",
         "the schema was passed on")


@tap.case("a route that is named like a reasoning model")
def reasoning(t):
    d = lib.ready()
    for mode in lib.modes:
        conv = lib.open(d, model="gpt-5-mini", system="Be brief.",
                        settings={"maxOutputTokens": 77, "temperature": 1})
        t.eq(lib.say(t, conv, "hi", mode)["text"], "heard 1: hi", mode)
        request = C.requests[-1]
        t.eq(C.history(request), [("system", "Be brief."), ("user", "hi")],
             "the developer's words")
        t.eq(request.json["max_tokens"], 77, "max_completion_tokens")
        calm(t)


ERRORS = [
    # what goes wrong, model, status, type, code, param
    (None, "gpt-99", 404, "invalid_request_error", "model_not_found",
     "model"),
    (provider.rate_limited(3), "gpt", 429, "rate_limit_error",
     "rate_limit_exceeded", None),
    (provider.status(500), "gpt", 503, "server_error", "no_target", None),
    (provider.silence(), "slow", 504, "server_error", "deadline_exceeded",
     None),
    (provider.status(400, "maximum context length is 10 tokens",
                     code="context_length_exceeded"), "gpt", 400,
     "invalid_request_error", "context_length_exceeded", None),
]


def check(t, r, want, what):
    e = r["error"]
    t.ok(e is not None, "%s: no error: %r" % (what, r))
    t.eq(e["classes"][0], "APICallError", "%s: %r" % (what, e))
    v = e["data"]["error"]
    t.eq((e["statusCode"], v["type"], v["code"], v["param"]), want,
         "%s: %r" % (what, e))
    t.eq(e["message"], v["message"], what + ": message")
    return e


@tap.case("errors of each kind are APICallErrors with our type and code")
def errors(t):
    d = lib.ready()
    for fault, model, *want in ERRORS:
        for mode in lib.modes:
            if fault is not None:
                A.behave(fault)
            r = lib.call("say", conv=lib.open(d, model=model), text="x",
                         mode=mode)
            check(t, r, tuple(want), "%s %s" % (mode, want))
    r = lib.call("say", conv=lib.open(d, key="wrong"), text="x",
                 mode="plain")
    check(t, r, (401, "invalid_request_error", "invalid_api_key", None),
          "a wrong key")


@tap.case("its own retries")
def retries(t):
    d = lib.ready()
    via = relay.Relay(d.addr)
    t.cleanup(via.close)
    for model, key, count in (("gpt-99", d.key, 1), ("gpt", "wrong", 1)):
        del via.requests[:]
        conv = lib.open(d, model=model, key=key, base=via.base_url,
                        retries=2)
        r = lib.call("say", conv=conv, text="x", mode="plain")
        t.ok(r["error"] is not None, repr(r))
        t.eq(len(via.requests), count, "requests for %s" % model)
    # It waits as it is told to, and the failed turn is not said twice.
    for mode in lib.modes:
        del via.requests[:]
        conv = name()
        lib.open(d, conv, base=via.base_url, retries=1, model="gpt",
                 headers={"X-Holdfast-Session": conv})
        A.behave(provider.echo())
        A.script(provider.rate_limited(ms=700))
        t.eq(lib.say(t, conv, "one", mode)["text"], "heard 1: one", mode)
        t.eq(len(via.requests), 2, "two requests")
        t.eq(A.history(A.requests[-1]), [("user", "one")], "said once")
        t.between(A.requests[-1].time - A.requests[-2].time, 0.6, 10,
                  "the wait")


@tap.case("an answer that was lost on its way is one turn of the history")
def lost(t):
    d = lib.ready()
    via = relay.Relay(d.addr)
    t.cleanup(via.close)
    for mode in lib.modes:
        fresh()
        conv = name()
        lib.open(d, conv, base=via.base_url, retries=2,
                 headers={"X-Holdfast-Session": conv})
        lib.say(t, conv, "one", mode)
        via.script("lose")
        t.eq(lib.say(t, conv, "two", mode)["text"], "heard 2: two", mode)
        lib.say(t, conv, "three", mode)
        t.eq(A.history(A.requests[-1]),
             [("user", "one"), ("assistant", "heard 1: one"),
              ("user", "two"), ("assistant", "heard 2: two"),
              ("user", "three")], mode + ": one turn each")


tap.main()
