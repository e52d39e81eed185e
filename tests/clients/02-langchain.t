"""LangChain's ChatOpenAI (chat completions) against the daemon."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import scenarios
from scenarios import A, C, Library, ROUTES, calm, fresh, name
import provider
import relay
import tap

lib = Library("langchain.mjs", ["plain", "stream"])


def check_stream_error(t, e):
    t.isin("APIError", e["classes"], repr(e))
    t.eq((e["type"], e["code"]), ("server_error", "stream_interrupted"),
         "what users match on")


lib.check_stream_error = check_stream_error
scenarios.declare(lib)


@tap.case("structured output by tool call and by schema")
def structured(t):
    d = lib.ready()
    for model, p in ROUTES:
        p.behave(provider.answer("", scenarios.upstream(p, [
            ("x_up1", "trip", '{"city": "Rome", "days": 3}')])))
        r = lib.good(t, lib.call("structured", text="where?", model=model,
                                 method="functionCalling", **lib.to(d)))
        t.eq(r["value"], {"city": "Rome", "days": 3}, model + " by tool")
    A.behave(provider.answer('{"city": "Rome", "days": 3}'))
    r = lib.good(t, lib.call("structured", text="where?", model="gpt",
                             method="jsonSchema", **lib.to(d)))
    t.eq(r["value"], {"city": "Rome", "days": 3}, "by schema")
    t.eq(A.requests[-1].json["response_format"]["type"], "json_schema",
         "the schema was passed on")
    calm(t)


@tap.case("a batch of calls at once")
def batch(t):
    d = lib.ready()
    texts = ["text %d" % i for i in range(20)]
    r = lib.good(t, lib.call("batch", texts=texts, model="m", **lib.to(d)))
    t.eq(r["texts"], ["heard 1: " + x for x in texts], "each its own")


ERRORS = [
    # what goes wrong, model, class, status, code, LangChain's own code
    (None, "gpt-99", "NotFoundError", 404, "model_not_found",
     "MODEL_NOT_FOUND"),
    (provider.rate_limited(3), "gpt", "RateLimitError", 429,
     "rate_limit_exceeded", "MODEL_RATE_LIMIT"),
    (provider.status(500), "gpt", "InternalServerError", 503, "no_target",
     None),
    (provider.silence(), "slow", "InternalServerError", 504,
     "deadline_exceeded", None),
    (provider.status(400, "maximum context length is 10 tokens",
                     code="context_length_exceeded"), "gpt",
     "ContextOverflowError", None, None, None),
]


@tap.case("errors of each kind keep their class, status and code")
def errors(t):
    d = lib.ready()
    for fault, model, cls, status, code, own in ERRORS:
        for mode in lib.modes:
            if fault is not None:
                A.behave(fault)
            r = lib.call("say", conv=lib.open(d, model=model), text="x",
                         mode=mode)
            e = r["error"]
            t.ok(e is not None, "%s: no error: %r" % (cls, r))
            t.eq((e["classes"][0], e.get("status"), e.get("code"),
                  e.get("lc_error_code")), (cls, status, code, own),
                 "%s %s: %r" % (cls, mode, e))
    r = lib.call("say", conv=lib.open(d, key="wrong"), text="x",
                 mode="plain")
    e = r["error"]
    t.eq((e["classes"][0], e["status"], e["code"], e["lc_error_code"]),
         ("AuthenticationError", 401, "invalid_api_key",
          "MODEL_AUTHENTICATION"), repr(e))


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
    # A 503 is asked again, though the answer says not to.
    del via.requests[:]
    A.behave(provider.status(500))
    r = lib.call("say", conv=lib.open(d, model="gpt", base=via.base_url,
                                      retries=1), text="x", mode="plain")
    t.eq(r["error"]["status"], 503, repr(r))
    t.eq(len(via.requests), 2, "requests of a 503")
    # A broken connection is asked again, and is one turn.
    for mode in lib.modes:
        conv = name()
        lib.open(d, conv, base=via.base_url, retries=2,
                 headers={"X-Holdfast-Session": conv})
        A.behave(provider.echo())
        lib.say(t, conv, "one", mode)
        via.script("refuse")
        t.eq(lib.say(t, conv, "two", mode)["text"], "heard 2: two", mode)
        t.eq(A.history(A.requests[-1]),
             [("user", "one"), ("assistant", "heard 1: one"),
              ("user", "two")], mode + ": one turn each")


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
