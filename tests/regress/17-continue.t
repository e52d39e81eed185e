"""A stream that breaks off in mid-answer is finished by the next target: one
stream to the client, no word twice and none missing, and what is stored is
what the client saw."""
import itertools
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import client
import dialect as words
import provider
import tap
import validate
from daemon import Config, Daemon, shared

A = provider.Provider("openai")
B = provider.Provider("anthropic")
C = provider.Provider("openai")
ALL = (A, B, C)
FULL = ("The quick brown fox jumps over the lazy dog, and then it runs far "
        "away; nobody has seen it since.")
_n = itertools.count(1)
REFUSED = range(2, len(words.split(FULL, 4)), 3)	# cut after that delta
REFUSERS = [("ab", "a", "b"), ("ac", "a", "c"), ("bc", "b", "c")]
BY_NAME = {"a": A, "b": B, "c": C}


def make():
    conf = Config(workers=2, flush_ms=20)
    conf.provider("a", A, first_token_ms=1000, idle_ms=250, total_ms=8000)
    conf.provider("b", B, first_token_ms=1000, idle_ms=250, total_ms=8000)
    conf.provider("c", C, first_token_ms=1000, idle_ms=250, total_ms=8000)
    conf.target("c/prefills", prefill="plain")
    conf.target("b/prefills", prefill="plain")
    # Each is asked for a prefill once, and refuses it.
    for (route, x, y), n in itertools.product(REFUSERS, REFUSED):
        conf.target("%s/%s-%d" % (y, route, n), prefill="plain")
        conf.route("%s-%d" % (route, n), ["%s/x" % x, "%s/%s-%d" % (
            y, route, n)], max_retries=0)
    conf.route("ab", ["a/x", "b/y"], max_retries=0)
    conf.route("ba", ["b/y", "a/x"], max_retries=0)
    conf.route("abc", ["a/x", "b/y", "c/z"], max_retries=0)
    conf.route("ap", ["a/x", "c/prefills"], max_retries=0)
    conf.route("apb", ["a/x", "b/prefills"], max_retries=0)
    conf.route("hidden", ["a/x", "b/y"], max_retries=0, continuation="hidden")
    conf.route("off", ["a/x", "b/y"], max_retries=0, continuation="off")
    conf.route("alone", ["a/x"], max_retries=0)
    conf.route("slow", ["a/slow", "b/y"], max_retries=0)
    conf.target("a/slow", min_chars_per_s=40, rate_window_ms=400)
    conf.route("clause", ["a/x", "b/y"], max_retries=0, release="clause")
    return Daemon(conf).start()


get_daemon = shared(make)


def squeeze(text):
    return re.sub(r"\s+", " ", text).strip()


def cut_at(n, how, size=4):
    """Stream FULL in pieces of 'size' characters; break off after n."""
    pieces = words.split(FULL, size)

    def behave(ex):
        events = ex.events(words.Said(FULL, pieces=pieces))
        ex.start()
        for event in events[:words.first_useful(ex.dialect) + n]:
            ex.chunk(event)
        if how == "stall":
            ex.wait_gone(5)
        elif how == "error":
            ex.chunk(words.error_event(ex.dialect, 503, "overloaded"))
            ex.end()
        elif how == "garbage":
            ex.chunk(b"data: {\"choices\":[{\"delta\":\n\n")
            ex.end()
        elif how == "reset":
            import time
            time.sleep(0.03)
            ex.reset()
        else:
            ex.end()
        ex.close()
    return behave, pieces


def partial_of(request):
    """What the provider was given to go on with."""
    said = [validate.text_of(m["content"]) for m in request.messages
            if m["role"] == "assistant"]
    return said[-1] if said else ""


def rest(style):
    """Go on with what was given, as models do."""
    def fn(request):
        p = squeeze(partial_of(request))
        assert squeeze(FULL).startswith(p), (p, FULL)
        q = squeeze(FULL)[len(p):]
        if style == "exact":
            return q
        if style == "spaced":
            return " " + q.lstrip()
        if style == "stripped":
            return q.lstrip()
        if style == "repeats":
            return " ".join(p.split()[-5:]) + q
        return squeeze(FULL)
    return fn


def check(t, d, s, r, what):
    t.eq(r.status, 200, what)
    t.eq(squeeze(r.text), squeeze(FULL), what)
    t.eq((r.finish, r.done, r.end), ("stop", True, "chunked"),
         "%s: %r" % (what, r))
    chunks = [e for e in r.events if isinstance(e, dict)]
    t.eq(len({(e["id"], e["model"], e["created"]) for e in chunks}), 1,
         what + ": one id")
    t.eq(sum("role" in c["delta"] for e in chunks for c in e["choices"]), 1,
         what + ": one role chunk")
    t.eq(sum(c["finish_reason"] is not None for e in chunks
             for c in e["choices"]), 1, what + ": one finish")
    if s is not None:
        items = d.ctl("sessions", "show", s, "--contents")["items"]
        t.isin(r.text, str([i.get("body") for i in items]).replace(
            "\\\\", "\\"), what + ": stored as seen")
    for p in ALL:
        t.eq(p.violations, [], what + ": violations")


def name():
    return "c-%d" % next(_n)


def sweep(t, route, first, second, how, style, cuts):
    d = get_daemon()
    for n in cuts:
        s = name()
        for p in ALL:
            p.take()
        behave, pieces = cut_at(n, how)
        first.script(behave)
        second.behave(provider.reply_to(rest(style)))
        r = client.chat(d, "tell me", session=s, model=route, stream=True)
        check(t, d, s, r, "%s %s %s cut %d" % (route, how, style, n))
        t.eq(len(second.requests), 1 if n < len(pieces) else 0, "asked once")


PIECES = len(words.split(FULL, 4))

for _route, _x, _y in (("ab", A, B), ("ba", B, A)):
    for _style in ("exact", "spaced", "stripped", "repeats", "whole"):
        def _one(t, route=_route, x=_x, y=_y, style=_style):
            # After fewer words than can be recognised a model may repeat
            # them; from five words on nothing may come twice.
            low = 10 if style == "repeats" else 1
            sweep(t, route, x, y, "close", style, range(low, PIECES))
        tap.case("cut at every delta, %s, the next one says %s" % (
            _route, _style), 60)(_one)

for _how in ("reset", "error", "garbage", "stall"):
    def _two(t, how=_how):
        step = 8 if how == "stall" else 3
        sweep(t, "ab", A, B, how, "stripped", range(2, PIECES, step))
        sweep(t, "ba", B, A, how, "stripped", range(3, PIECES, step))
    tap.case("broken by %s" % _how, 60)(_two)


@tap.case("a target that prefills goes on exactly there", 40)
def prefill(t):
    def fn(request):
        last = request.messages[-1]
        t.eq(last["role"], "assistant", "the partial answer stands last")
        q = FULL[len(validate.text_of(last["content"])):]
        # Some models begin with the space that the message ended with.
        return (" " + q.lstrip()) if spaced else q
    d = get_daemon()
    for n in range(2, PIECES, 2):
        spaced = n % 4 == 0
        s = name()
        C.take()
        A.script(cut_at(n, "close")[0])
        C.behave(provider.reply_to(fn))
        r = client.chat(d, "tell me", session=s, model="ap", stream=True)
        check(t, d, s, r, "prefill, cut %d" % n)
        t.eq(r.text, FULL, "to the byte")


@tap.case("a refused prefill is asked in words; the 400 is not seen")
def prefill_refused(t):
    d = get_daemon()
    for route, p in (("ap", C), ("apb", B)):
        s = name()
        for x in ALL:
            x.take()
        A.script(cut_at(9, "close")[0])
        p.behave(provider.reply_to(rest("stripped")))
        if p is C:  # the other one's rules refuse it by themselves
            p.script(provider.status(400, "This model does not support "
                                     "assistant message prefill."))
        r = client.chat(d, "tell me", session=s, model=route, stream=True)
        del p.violations[:]
        check(t, d, s, r, route)
        t.eq(len(p.requests), 2, "asked again in words")
        t.eq(p.requests[-1].messages[-1]["role"], "user", "an instruction")
        # It is remembered.
        A.script(cut_at(9, "close")[0])
        r = client.chat(d, "more", session=name(), model=route, stream=True)
        # Each of the two workers remembers for itself.
        refused = len(p.violations) + (p is C and len(p.requests) - 3)
        t.ok(refused <= 1, "no second refusal by one worker")
        del p.violations[:]
        check(t, d, None, r, route + " again")


@tap.case("cut after any delta, and the next one refuses a prefill by 400", 60)
def all_refused(t):
    d = get_daemon()
    for (route, one, two), n in itertools.product(REFUSERS, REFUSED):
        what = "%s-%d" % (route, n)
        s, x, y = name(), BY_NAME[one], BY_NAME[two]
        for p in ALL:
            p.take()
        x.script(cut_at(n, "close")[0])
        y.behave(provider.reply_to(rest("stripped")))
        y.script(provider.status(400, "Prefilling assistant messages is not "
                                 "supported for this model."))
        r = client.chat(d, "tell me", session=s, model=what, stream=True)
        del y.violations[:]	# the strict check may refuse it itself
        check(t, d, s, r, what)
        t.eq(r.error, None, what + ": the client sees no error")
        t.eq([(a["target"].split("/")[0], a["http_status"])
              for a in d.session(s)["attempts"]],
             [(one, 200), (two, 400), (two, 200)], what)
        t.eq(y.requests[0].messages[-1]["role"], "assistant", "a prefill")
        t.eq(y.requests[1].messages[-1]["role"], "user", "in words")


@tap.case("rolling: the second one breaks too, and the third finishes")
def rolling(t):
    d = get_daemon()
    for n in (2, 7, 12):
        s = name()
        for p in ALL:
            p.take()
        A.script(cut_at(n, "close")[0])

        def some(ex):
            text = rest("stripped")(ex.request)
            events = ex.events(words.Said(text, pieces=words.split(text, 4)))
            ex.start()
            for event in events[:words.first_useful(ex.dialect) + 5]:
                ex.chunk(event)
            ex.end()
            ex.close()
        B.script(some)
        C.behave(provider.reply_to(rest("stripped")))
        r = client.chat(d, "tell me", session=s, model="abc", stream=True)
        check(t, d, s, r, "rolling %d" % n)
        shown = d.ctl("sessions", "show", s, "--attempts")
        t.eq([a["target"] for a in shown["attempts"]],
             ["a/x", "b/y", "c/z"], "attempts")
        t.isin("holdfast target=c/z attempts=3", str(r.comments),
               "the truth in a comment")
        t.eq(r.headers["x-holdfast-target"], "a/x", "the header came before")


@tap.case("a hidden continuation is spliced in")
def hidden(t):
    d = get_daemon()
    for n in range(1, PIECES, 4):
        s = name()
        B.take()
        A.script(cut_at(n, "close")[0])
        B.behave(provider.answer(FULL))
        r = client.chat(d, "tell me", session=s, model="hidden", stream=True)
        check(t, d, s, r, "hidden, cut %d" % n)
        t.eq(B.requests[-1].messages[-1]["role"], "user", "as if first asked")
        t.notin("cut off", str(B.requests[-1].messages), "no instruction")


@tap.case("without a session too")
def stateless(t):
    d = get_daemon()
    A.script(cut_at(11, "reset")[0])
    B.behave(provider.reply_to(rest("stripped")))
    r = client.chat(d, "tell me", model="ab", stream=True)
    check(t, d, None, r, "stateless")


@tap.case("the next turn hears the joined answer once")
def next_turn(t):
    d = get_daemon()
    s = name()
    A.script(cut_at(11, "close")[0])
    B.behave(provider.reply_to(rest("stripped")))
    r = client.chat(d, "tell me", session=s, model="ab", stream=True)
    A.take()
    A.behave(provider.echo())
    client.chat(d, "thanks", session=s, model="ab")
    t.eq(A.history(A.requests[-1]), [("user", "tell me"),
         ("assistant", r.text), ("user", "thanks")], "history")


@tap.case("too little text in a window ends the attempt")
def slow(t):
    d = get_daemon()

    def dribble(ex):
        events = ex.events(words.Said(FULL, pieces=words.split(FULL, 1)))
        ex.start()
        for i, event in enumerate(events):
            ex.chunk(event)
            if i > 3 and ex.wait_gone(0.1):
                break
        ex.close()
    A.script(dribble)
    B.behave(provider.reply_to(rest("stripped")))
    s = name()
    r = client.chat(d, "tell me", session=s, model="slow", stream=True)
    check(t, d, s, r, "slow")
    shown = d.ctl("sessions", "show", s, "--attempts")
    t.eq([a["reason"] for a in shown["attempts"]], ["too_slow", "ok"], "why")


@tap.case("comments and empty deltas do not keep a stalled stream alive")
def pings(t):
    d = get_daemon()

    def ping(ex):
        events = ex.events(words.Said(FULL, pieces=words.split(FULL, 4)))
        ex.start()
        for event in events[:words.first_useful(ex.dialect) + 8]:
            ex.chunk(event)
        while not ex.wait_gone(0.05):
            ex.chunk(b": ping\n\n")
        ex.close()
    A.script(ping)
    B.behave(provider.reply_to(rest("stripped")))
    s = name()
    r = client.chat(d, "tell me", session=s, model="ab", stream=True)
    check(t, d, s, r, "pings")
    t.between(r.took, 0.2, 3.0 * tap.SCALE, "seconds")


@tap.case("an answer that finished is not stalled, however its end lingers")
def finished(t):
    d = get_daemon()

    def lingers(ex):
        ex.start()
        for event in ex.events(words.Said(FULL))[:-1]:
            ex.chunk(event)
        ex.wait_gone(5)
        ex.close()
    B.take()
    A.script(lingers)
    s = name()
    r = client.chat(d, "tell me", session=s, model="ab", stream=True)
    check(t, d, s, r, "no [DONE]")
    t.eq(B.requests, [], "nobody else is asked")


def no_end(t, r, what):
    t.eq(r.status, 200, what)
    t.eq((r.finish, r.done), (None, False), "%s: %r" % (what, r))
    t.eq(r.error["code"], "stream_interrupted", what)


@tap.case("if nobody can go on: an error event, never an end")
def nobody(t):
    d = get_daemon()
    for route in ("off", "alone"):
        s = name()
        A.script(cut_at(9, "close")[0])
        r = client.chat(d, "tell me", session=s, model=route, stream=True)
        no_end(t, r, route)
        t.eq(d.session(s)["turns"][-1]["state"], "incomplete", route)
    A.script(cut_at(9, "close")[0])
    B.behave(provider.status(500))
    r = client.chat(d, "tell me", session=name(), model="ab", stream=True)
    no_end(t, r, "all gone")


@tap.case("half a JSON document is not joined")
def json_mode(t):
    d = get_daemon()
    A.script(cut_at(9, "close")[0])
    B.behave(provider.reply_to(rest("stripped")))
    r = client.chat(d, "tell me", session=name(), model="ab", stream=True,
                    response_format={"type": "json_object"})
    no_end(t, r, "json")


TOOL = [{"type": "function", "function": {"name": "f", "parameters": {
    "type": "object", "properties": {}}}}]
CALLS_A = [("call_q", "f", '{"city": "Oslo"}'), ("call_r", "f", '{"n": 1}')]
CALLS_B = [("toolu_q", "f", '{"city": "Rome"}'), ("toolu_r", "f", '{"n": 2}')]


def cut_after(said, n):
    def behave(ex):
        ex.start()
        for event in ex.events(said)[:n]:
            ex.chunk(event)
        ex.end()
        ex.close()
    return behave


def shown(d, s):
    """The stored answer: texts and calls, in order."""
    out = []
    for i in d.ctl("sessions", "show", s, "--contents")["items"]:
        if i["output"]:
            body = json.loads(i["body"])
            out.append((body["name"], body["arguments"])
                       if i["kind"] == "tool_call" else body["content"])
    return out


@tap.case("tool calls of a broken answer are asked again, none comes twice",
          60)
def tools(t):
    d = get_daemon()
    for said in ("", "Let me look that up. "):
        whole = len(words.stream("openai", words.Said(said, CALLS_A), "x",
                                 True))
        again = 0
        for n in range(2, whole):
            for p in ALL:
                p.take()
            s = name()
            A.script(cut_after(words.Said(said, CALLS_A), n))
            B.behave(provider.answer("", CALLS_B))
            r = client.chat(d, "weather?", session=s, model="ab",
                            stream=True, tools=TOOL)
            what = "%r cut %d" % (said, n)
            t.eq((r.status, r.finish, r.done), (200, "tool_calls", True),
                 "%s: %r" % (what, r))
            got = [c[1:] for c in r.calls]
            want = CALLS_B if B.requests else CALLS_A
            t.eq(got, [c[1:] for c in want], what)
            t.eq(len({c[0] for c in r.calls}), 2, what + ": ids")
            t.eq(shown(d, s), ([r.text] if r.text else []) + got,
                 what + ": stored as told")
            again += len(B.requests)
            if n > 10:	# all the text was out
                t.eq(r.text, said, what)
            t.eq(A.violations + B.violations, [], what)
        t.between(again, whole - 5, whole - 2, "asked again")


@tap.case("if nobody goes on, a broken answer's calls are not told")
def calls_lost(t):
    d = get_daemon()
    said = words.Said("Let me look that up. ", CALLS_A)
    events = words.stream("openai", said, "x", True)
    last = max(i for i, e in enumerate(events) if b"arguments" in e)
    for model in ("alone", "off"):
        s = name()
        A.script(cut_after(said, last + 1))
        r = client.chat(d, "weather?", session=s, model=model, stream=True,
                        tools=TOOL)
        no_end(t, r, model)
        t.eq(r.calls, [], "calls that were told")
        t.eq(shown(d, s), [r.text], "stored as told")


@tap.case("a refusal is told with the end, a broken one is asked again")
def refusals(t):
    d = get_daemon()

    def refuse(whole):
        def behave(ex):
            ex.start()
            for delta in ({"role": "assistant"}, {"refusal": "No, "},
                          {"refusal": "not that."}):
                ex.chunk(words.compact({"choices": [
                    {"index": 0, "delta": delta, "finish_reason": None}]})
                    .join(("data: ", "\n\n")).encode())
            if whole:
                ex.chunk(b'data: {"choices":[{"index":0,"delta":{},'
                         b'"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n')
            ex.end()
            ex.close()
        return behave
    for whole in (True, False):
        B.take()
        A.script(refuse(whole))
        B.behave(provider.answer("Gladly."))
        s = name()
        r = client.chat(d, "do it", session=s, model="ab", stream=True)
        t.eq((r.status, r.finish, r.done), (200, "stop", True), repr(r))
        said = [c["delta"]["refusal"] for c in r.choices
                if c["delta"].get("refusal")]
        t.eq((said, r.text), (["No, not that."], "") if whole else
             ([], "Gladly."), "what was told")
        t.eq(len(B.requests), 0 if whole else 1, "asked again")


@tap.case("released at clauses: a stream for speech")
def clause(t):
    d = get_daemon()
    B.take()
    A.script(cut_at(14, "close")[0])
    B.behave(provider.reply_to(rest("stripped")))
    s = name()
    r = client.chat(d, "tell me", session=s, model="clause", stream=True)
    check(t, d, s, r, "clause")
    deltas = [c["delta"]["content"] for e in r.events if isinstance(e, dict)
              for c in e["choices"] if c["delta"].get("content")]
    t.eq(squeeze(deltas[0])[-1], ",", "the first clause: %r" % deltas)


tap.main()
