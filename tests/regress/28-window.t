"""Context windows: a target is told as much of a conversation as it can hold,
newest turns first, and the client is told what was left out; a target that
cannot hold the least is not called; one that refuses a payload as too long is
followed by a larger one, or asked once more with less."""
import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import client
import ctl
import dialect as words
import provider
import tap
import validate
import wait
from daemon import Config, Daemon

_n = itertools.count(1)
LEXICON = """the of and to in is you that it he was for on are as with his they
at be this have from or one had by word but not what all were we when your can
said there use an each which she do how their if will up other about out many
then them these so some her would make like him into time has look two more
write go see number no way could people my than first water been call who oil
its now find long down day did get come made may part between another question
delivery appointment reservation insurance available especially""".split()
TOOLS = [{"type": "function", "function": {
    "name": "look", "description": "Look something up.", "parameters": {
        "type": "object", "properties": {"id": {"type": "integer"}}}}}]


def name():
    return "window-%d" % next(_n)


def prose(tokens, seed):
    """Sentences of about so many tokens."""
    rnd, out = random.Random(seed), []
    while len(out) * 1.08 < tokens:
        n = rnd.randint(6, 14)
        sentence = [rnd.choice(LEXICON) for _ in range(n)]
        out += sentence[:-1] + [sentence[-1] + "."]
    return " ".join(out)


def count_text(text):
    return len(re.findall(r"[A-Za-z]{1,7}|\d{1,3}|[^\sA-Za-z0-9]", text))


def count(request):
    """What a provider of these tests takes a request for."""
    total = 3
    for item in validate.history(request.headers.get("x-api-key") and
                                 "anthropic" or "openai", request.json):
        total += 4 + sum(count_text(x if isinstance(x, str) else
                                    json.dumps(x)) for x in item[1:])
    return total + count_text(json.dumps(request.json.get("tools") or ""))


def too_long(dialect, sent, limit):
    if dialect == "anthropic":
        return "prompt is too long: %d tokens > %d maximum" % (sent, limit)
    return ("This model's maximum context length is %d tokens. However, your "
            "messages resulted in %d tokens. Please reduce the length of the "
            "messages." % (limit, sent))


def window(limit, then=None, say=too_long):
    """A target that holds so many tokens, and refuses more as the real ones
    do; it notes what it counted."""
    def behave(ex):
        n = ex.request.counted = count(ex.request)
        if n > limit:
            code = ("context_length_exceeded"
                    if ex.dialect == "openai" else None)
            ex.error(400, say(ex.dialect, n, limit), code=code)
        elif then is not None:
            then(ex)
        else:
            ex.say(words.Said("fits", usage=(n, 5)))
    return behave


def world(t, targets, workers=1, dialects=None, route=None, **gateway):
    """Providers a, b, c ... with these keys of theirs; route m has all."""
    conf, out = Config(workers=workers, **gateway), []
    for letter, keys in zip("abcd", targets):
        p = provider.Provider((dialects or {}).get(letter, "openai"))
        t.cleanup(p.close)
        p.behave(provider.answer("by " + letter))
        more = {"first_token_ms": 20000, "total_ms": 60000}
        more.update(keys)
        conf.provider(letter, p, **more)
        out.append(p)
    conf.route("m", ["%s/x" % x for x in "abcd"[:len(targets)]],
               **dict({"deadline_ms": 60000}, **(route or {})))
    d = Daemon(conf)
    t.cleanup(d.destroy)
    return [d.start()] + out


def U(text, **more):
    return dict({"role": "user", "content": text}, **more)


def A(text):
    return {"role": "assistant", "content": text}


def marks(history):
    """The turns that user messages of a payload begin."""
    return [int(m) for item in history if item[0] == "user"
            for m in re.findall(r"turn (\d+) begins", item[1])]


def said(n, tokens, seed=None):
    return "turn %02d begins. %s turn %02d ends." % (
        n, prose(tokens, n if seed is None else seed), n)


def chat_turns(t, d, session, turns, tokens, first=1, **more):
    for n in range(first, first + turns):
        r = client.chat(d, said(n, tokens), session=session, timeout=60,
                        **more)
        t.eq(r.status, 200, "turn %d: %r" % (n, r))


def attempts(d, session, turn=None):
    rows = d.session(session)["attempts"]
    last = max(x["turn_seq"] for x in rows)
    return [x for x in rows if x["turn_seq"] == (turn or last)]


# --- the whole ---------------------------------------------------------------

def tool_turn(t, d, a, session, n):
    """Turn n makes two calls, and gets long results."""
    a.script(provider.answer(calls=[("up1", "look", '{"id": 1}'),
                                    ("up2", "look", '{"id": 2}')]))
    r = client.chat(d, said(n, 4000), session=session, tools=TOOLS,
                    timeout=60)
    t.eq(len(r.calls), 2, repr(r))
    results = [{"role": "tool", "tool_call_id": c[0],
                "content": "result %02d/%d: %s" % (n, i, prose(8000, n + i))}
               for i, c in enumerate(r.calls)]
    r = client.chat(d, results, session=session, tools=TOOLS, timeout=60)
    t.eq(r.status, 200, repr(r))


def build_long(t, d, a, session):
    """16 turns of some 20,000 tokens."""
    system = {"role": "system", "content": "The desk's code is SYS-4711."}
    r = client.chat(d, [system, U(said(1, 20000))], session=session,
                    timeout=60)
    t.eq(r.status, 200, repr(r))
    r = client.chat(d, [U("Pinned: turn 02 begins. The alarm's code is "
                          "PIN-2222.", pinned=True)], session=session)
    t.eq(r.status, 200, repr(r))
    for n in range(3, 17):
        if n in (5, 15):
            tool_turn(t, d, a, session, n)
        else:
            chat_turns(t, d, session, 1, 20000 + 1500 * (n == 4), n)


def check_told(t, history, newest):
    """In order, once: the system message, the pinned one, the newest."""
    t.eq(history[0], ("system", "The desk's code is SYS-4711."), "system")
    t.isin("PIN-2222", history[1][1], "pinned")
    told = marks(history)
    t.eq(told, [2] + list(range(told[1], newest + 1)), "turns")
    calls = [x[1] for x in history if x[0] == "call"]
    results = [x[1] for x in history if x[0] == "result"]
    t.eq(results, calls, "a result for each call")
    for item in history:
        t.notin("call interrupted", str(item[-1]), "tool pairs")
    return told


@tap.case("320,000 tokens fail over to a target of 65,000", 300)
def long_session(t):
    for dialect in ("anthropic", "openai"):
        d, a, b = world(t, [{}, {"context_window": 65000}],
                        dialects={"b": dialect}, route={"deadline_ms": 90000})
        a.behave(window(400000))
        b.behave(window(65000))
        s = name()
        build_long(t, d, a, s)
        a.behave(provider.status(503))
        for newest, stream in ((17, False), (18, True)):
            b.take()
            r = client.chat(d, said(newest, 300), session=s, stream=stream,
                            timeout=90)
            t.eq((r.status, r.text), (200, "fits"), repr(r)[:500])
            got = b.take()
            t.eq(len(got), 1, "no call was refused")
            t.between(got[0].counted, 32000, 65000, "tokens")
            history = b.history(got[0])
            told = check_told(t, history, newest)
            t.ok(1 < len(told) < 8, "turns %r" % told)
            omitted = r.headers["x-holdfast-omitted"]
            turns, items = map(int, re.match(
                r"turns=(\d+), items=(\d+)$", omitted).groups())
            shown = d.session(s)
            path = [x for x in shown["turns"] if x["on_path"]]
            stored = [x for x in shown["items"] if x["turn_seq"] in
                      {y["seq"] for y in path}]
            # What is stored but the answer.
            t.eq(len(stored) - 1, len(history) + items,
                 "what is stored was told or is omitted")
            t.eq(turns, newest - 1 - len([x for x in told
                                          if 2 < x < newest]),
                 "turns of which something is missing")
            last = attempts(d, s)[-1]
            t.eq((last["omitted_turns"], last["omitted_items"]),
                 (turns, items), "the attempt's row")
            t.between(last["tokens_estimated"], 32000, 65000, "the estimate")
        out = d.ctl_run("sessions", "show", s, "--attempts").out
        t.isin("OMITTED", out, "shown")
        out = d.ctl_run("timeline", s).out
        t.isin("without %d turns, %d items" % (turns, items), out, "timeline")
        t.eq(d.metrics()["holdfast_fitted_payloads_total"], 2, "counted")
        # The store has all of it: the primary, when it returns, hears it.
        a.behave(window(400000))
        a.take()
        r = client.chat(d, said(19, 100), session=s, timeout=90)
        t.eq((r.status, r.text), (200, "fits"), repr(r)[:500])
        t.notin("x-holdfast-omitted", r.headers, "nothing is omitted")
        t.eq(marks(a.history(a.take()[0])), list(range(1, 20)), "all")
        d.stop()


@tap.case("what fits is told whole, to the token")
def whole(t):
    d, a, b = world(t, [{}, {"context_window": 4000}])
    a.behave(provider.status(503))
    b.behave(window(4000))
    s = name()
    chat_turns(t, d, s, 8, 300)
    for n, r in enumerate(b.take()):
        t.eq(marks(b.history(r)), list(range(1, n + 2)), "turn %d" % n)
        t.ok(r.counted < 3000, "tokens")
    rows = d.session(s)["attempts"]
    t.eq({x["omitted_items"] for x in rows}, {0}, "nothing is omitted")
    t.ok(all(x["tokens_estimated"] > 0 for x in rows), "estimates")


@tap.case("a session without a name is fitted too; the last message stays")
def stateless(t):
    d, a = world(t, [{"context_window": 3000}])
    a.behave(window(3000))
    messages = [{"role": "system", "content": "SYS"}]
    for n in range(1, 11):
        messages += [U(said(n, 400)), A("answer %d" % n)]
    messages.append(U(said(11, 400)))
    r = client.chat(d, messages)
    t.eq(r.status, 200, repr(r))
    told = marks(a.history(a.requests[0]))
    t.eq(told, list(range(told[0], 12)), "the newest")
    t.between(len(told), 3, 6, "turns")
    t.eq(a.history(a.requests[0])[0], ("system", "SYS"), "system")
    t.isin("turns=%d," % (11 - len(told)), r.headers["x-holdfast-omitted"],
           "omitted")


@tap.case("a client that sends its list may pin what it said before")
def pinned_later(t):
    d, a = world(t, [{"context_window": 3000}])
    a.behave(window(3000))
    s = name()
    messages = [U("the PIN-1 is this"), A("fits")]
    for n in range(1, 8):
        messages += [U(said(n, 400)), A("fits")]
        t.eq(client.chat(d, messages[:-1], session=s).status, 200, "turn")
    t.notin("PIN-1", str(a.history(a.requests[-1])), "left out")
    messages[0] = U("the PIN-1 is this", pinned=True)
    r = client.chat(d, messages + [U(said(8, 100))], session=s)
    t.eq(r.status, 200, repr(r))
    t.eq(r.headers["x-holdfast-history"], "full", "a pin is no edit")
    t.isin("PIN-1", str(a.history(a.requests[-1])), "kept")
    t.notin("pinned", json.dumps(a.requests[-1].json), "is for us only")
    r = client.chat(d, [U("x", pinned="yes")])
    t.eq((r.status, r.error["param"]), (400, "messages[0].pinned"), repr(r))


@tap.case("the room that the client wants for its answer is kept free")
def reserve(t):
    d, a = world(t, [{"context_window": 4000}])
    a.behave(window(4000))
    s = name()
    chat_turns(t, d, s, 12, 300)
    small = client.chat(d, said(13, 50), session=s, max_tokens=100)
    large = client.chat(d, said(14, 50), session=s, max_tokens=2500)
    t.eq((small.status, large.status), (200, 200), "answered")
    x, y = a.requests[-2:]
    t.between(x.counted, 2500, 3900, "with little")
    t.between(y.counted, 500, 1500, "with much")


# --- too small ---------------------------------------------------------------

@tap.case("a target that cannot hold the least is not called")
def too_small(t):
    d, a, b, c = world(t, [{}, {"context_window": 1000}, {}])
    a.behave(provider.status(503))
    s = name()
    r = client.chat(d, said(1, 2000), session=s)
    t.eq((r.status, r.text), (200, "by c"), repr(r))
    t.eq(len(b.requests), 0, "calls of the small one")
    rows = attempts(d, s)
    t.eq([(x["target"], x["cls"], x["reason"]) for x in rows[1:]],
         [("b/x", "skipped", "window_too_small"), ("c/x", "ok", "ok")],
         "attempts")
    t.eq(rows[1]["called_us"], 0, "it was not called")
    t.eq(d.metrics()["holdfast_window_skips_total"], 1, "counted")
    # Short enough, it is.
    r = client.chat(d, "hello", session=name())
    t.eq(r.text, "by b", "a short one")


@tap.case("behind a skipped one the caller's fault is still its own")
def callers_fault(t):
    d, a, b, c = world(t, [{"context_window": 1000}, {}, {}])
    b.behave(provider.status(400, "no such thing"))
    r = client.chat(d, said(1, 2000), session=name())
    t.eq((r.status, r.error["message"]), (400, "no such thing"), repr(r))
    t.eq(len(c.requests), 0, "it is not asked elsewhere")


@tap.case("no place in a small target's pace is waited for")
def no_pace(t):
    d, a, b = world(t, [{"context_window": 1000, "rpm": 1}, {}])
    for _ in range(3):
        r = client.chat(d, said(1, 2000), session=name(), timeout=10)
        t.eq(r.text, "by b", repr(r))
    t.ok(r.took < 5, "took %g s" % r.took)
    t.eq(client.chat(d, "hello", session=name()).text, "by a", "its place")


@tap.case("if nobody can hold it, the client is told in its own words")
def nobody(t):
    d, a, b = world(t, [{"context_window": 1000}, {"context_window": 900}],
                    dialects={"b": "anthropic"})
    s = name()
    t.eq(client.chat(d, "hello", session=s).status, 200, "before")
    for stream in (False, True):
        r = client.chat(d, said(1, 2000), session=s, stream=stream)
        t.eq(r.status, 400, repr(r))
        t.eq((r.error["type"], r.error["code"]),
             ("invalid_request_error", "context_length_exceeded"), repr(r))
        t.eq(r.headers["x-should-retry"], "false", "no use")
    t.eq(len(a.requests) + len(b.requests), 1, "calls")
    # It does not stand in the way of what is said next.
    r = client.chat(d, "hello again", session=s)
    t.eq(r.status, 200, repr(r))
    t.eq(a.history(a.requests[-1])[-1], ("user", "hello again"), "history")
    t.notin("turn 01", str(a.history(a.requests[-1])), "it has left")


@tap.case("a late one is not hedged by one that is too small")
def hedged(t):
    d, a, b, c = world(t, [{"hedge_after_ms": 100}, {"context_window": 1000},
                           {}])
    a.behave(provider.silence())
    s = name()
    r = client.chat(d, said(1, 2000), session=s, stream=True)
    t.eq((r.status, r.text), (200, "by c"), repr(r))
    t.eq(len(b.requests), 0, "calls of the small one")


# --- refused as too long ------------------------------------------------------

@tap.case("an overflow goes to a larger target, past a smaller one")
def larger(t):
    d, a, b, c = world(t, [{}, {"context_window": 2500},
                           {"context_window": 50000}])
    s = name()
    chat_turns(t, d, s, 6, 600)
    a.behave(window(3000))
    r = client.chat(d, said(7, 600), session=s)
    t.eq((r.status, r.text), (200, "by c"), repr(r))
    t.eq(len(b.requests), 0, "the smaller one was not asked")
    t.eq(marks(c.history(c.requests[0])), list(range(1, 8)), "all of it")
    t.notin("x-holdfast-omitted", r.headers, "nothing is omitted")
    t.eq([x["cls"] for x in attempts(d, s)], ["context", "ok"], "attempts")


@tap.case("one whose window is not known counts as larger")
def unknown(t):
    d, a, b, c = world(t, [{"context_window": 6000}, {"context_window": 2500},
                           {}])
    s = name()
    chat_turns(t, d, s, 6, 600)
    a.behave(window(1000))
    r = client.chat(d, said(7, 600), session=s)
    t.eq((r.status, r.text), (200, "by c"), repr(r))


@tap.case("if none is larger it is asked once more with less, and remembered")
def again(t):
    for dialect, say in (("openai", too_long), ("anthropic", too_long),
                         ("openai", lambda *_: "it is too long")):
        d, a = world(t, [{}], dialects={"a": dialect})
        s = name()
        chat_turns(t, d, s, 10, 600)
        a.take()
        a.behave(window(4000, say=say) if say is too_long else
                 window(4200, say=say))
        r = client.chat(d, said(11, 300), session=s)
        t.eq((r.status, r.text), (200, "fits"), repr(r))
        first, second = a.take()
        t.ok(first.counted > 4200 >= second.counted > 1500,
             "%d, %d tokens" % (first.counted, second.counted))
        told = marks(a.history(second))
        t.eq(told, list(range(told[0], 12)), "the newest")
        t.isin("turns=%d," % (11 - len(told)),
               r.headers["x-holdfast-omitted"], "omitted")
        t.eq([x["cls"] for x in attempts(d, s)], ["context", "ok"],
             "attempts")
        if say is not too_long:
            continue
        # It has said how much it holds.
        r = client.chat(d, said(12, 300), session=s)
        t.eq((r.status, len(a.take())), (200, 1), "is fitted at once")


@tap.case("what was sent before the window was known was the whole", 30)
def meanwhile(t):
    d, a = world(t, [{}])
    one, two = name(), name()
    for s in (one, two):
        chat_turns(t, d, s, 10, 600)
    a.take()
    a.behave(window(4000))
    gate = provider.Barrier()
    a.script(provider.hold(gate, window(4000)))
    call = client.background(client.chat, d, said(11, 300), session=one)
    gate.wait_for(1)
    # The other one hears of it first.
    r = client.chat(d, said(11, 300), session=two)
    t.eq((r.status, r.text), (200, "fits"), repr(r))
    gate.release()
    r = call.get()
    t.eq((r.status, r.text), (200, "fits"), repr(r))
    t.between(a.requests[-1].counted, 2200, 4000, "no less than had to be")


@tap.case("if the answer's room was too much it is asked for less")
def answers_room(t):
    d, a = world(t, [{}], dialects={"a": "anthropic"})

    def behave(ex):
        n = ex.request.counted = count(ex.request)
        room = ex.request.json["max_tokens"]
        if n + room > 3000:
            ex.error(400, "input length and `max_tokens` exceed context "
                     "limit: %d + %d > 3000, decrease input length or "
                     "`max_tokens` and try again" % (n, room))
        else:
            ex.say(words.Said("fits", usage=(n, 5)))
    a.behave(behave)
    s = name()
    chat_turns(t, d, s, 3, 300)
    t.eq([r.json["max_tokens"] for r in a.requests], [4096, 750, 750, 750],
         "asked once more, and remembered")
    t.eq(marks(a.history(a.requests[-1])), [1, 2, 3], "all of it")


@tap.case("what helps neither is told once, as an error")
def no_help(t):
    d, a, b = world(t, [{}, {}], dialects={"b": "anthropic"})
    s = name()
    chat_turns(t, d, s, 4, 300)
    for p in (a, b):
        p.take()
        p.behave(window(100))
    r = client.chat(d, said(5, 300), session=s)
    t.eq((r.status, r.error["code"]), (400, "context_length_exceeded"),
         repr(r))
    t.ok(len(a.take()) <= 2 and len(b.take()) <= 2, "calls")


@tap.case("a later target that is smaller is better than none", 30)
def smaller_helps(t):
    d, a, b = world(t, [{"context_window": 9000}, {"context_window": 3000}])
    s = name()
    chat_turns(t, d, s, 10, 600)
    a.behave(window(100))
    b.behave(window(3000))
    r = client.chat(d, said(11, 300), session=s)
    t.eq((r.status, r.text), (200, "fits"), repr(r))
    t.isin("x-holdfast-omitted", r.headers, "fitted")
    t.eq(attempts(d, s)[-1]["target"], "b/x", "answered by")


@tap.case("a provider that counts more than we do teaches it", 30)
def ratio(t):
    d, a = world(t, [{"context_window": 8000}])

    def behave(ex):
        n = ex.request.counted = count(ex.request)
        ex.say(words.Said("fits", usage=(int(n * 1.6), 5)))
    a.behave(behave)
    s = name()
    chat_turns(t, d, s, 14, 900)
    last = a.requests[-1].counted
    t.between(last * 1.6, 4000, 8000, "what it counts")


# --- in the middle of an answer ------------------------------------------------

FULL = "one two three four five six seven eight nine ten eleven twelve"


def rest(ex):
    """What is missing of FULL behind the assistant's words."""
    have = ""
    for m in ex.request.messages:
        if m["role"] == "assistant":
            have = validate.text_of(m["content"])
    if not FULL.startswith(have):
        have = ""
    ex.say(words.Said(FULL[len(have):].lstrip() if have else FULL))


@tap.case("an answer that broke off is gone on with by a smaller target")
def cut(t):
    d, a, b = world(t, [{}, {"context_window": 4000}])
    s = name()
    chat_turns(t, d, s, 10, 600)
    a.behave(provider.cut(FULL, 6, "drop"))
    b.behave(window(4000, rest))
    r = client.chat(d, said(11, 300), session=s, stream=True)
    t.eq((r.status, r.text, r.finish, r.done), (200, FULL, "stop", True),
         repr(r))
    told = marks(b.history(b.requests[0]))
    t.eq(told, list(range(told[0], 12)), "the newest")
    t.ok(len(told) < 11, "not all")
    # The headers had left: it stands before the end.
    t.notin("x-holdfast-omitted", r.headers, "too late for that")
    t.isin("omitted_turns=%d" % (11 - len(told)), str(r.comments), "told")
    t.eq(json.loads(d.session(s)["items"][-1]["body"])["content"], FULL,
         "stored")


@tap.case("so does another worker after a death", 40)
def adopted(t):
    d, a, b = world(t, [{}, {"context_window": 4000}], workers=2,
                    handover="on", flush_ms=10)
    s = name()
    chat_turns(t, d, s, 10, 600)
    gate = provider.Barrier()
    a.behave(provider.trickle(FULL, gate, 6))
    b.behave(window(4000, rest))
    pid = sorted(d.workers().values())[0]
    with d.connect_to(pid) as c:
        call = client.background(client.chat, d, said(11, 300), session=s,
                                 stream=True, connection=c, timeout=30)
        gate.wait_for(1)
        wait.until(lambda: [x for x in d.session(s)["turns"]
                            if x["state"] == "open"], 10, "the turn")
        a.behave(provider.status(503))
        os.kill(pid, signal.SIGKILL)
        r = call.get()
    gate.release()
    t.eq((r.status, r.text, r.finish, r.done), (200, FULL, "stop", True),
         repr(r))
    told = marks(b.history(b.requests[-1]))
    t.eq(told, list(range(told[0], 12)), "the newest")
    t.ok(len(told) < 11, "not all")
    t.isin("omitted_turns=%d" % (11 - len(told)), str(r.comments), "told")


@tap.case("nothing is sent ahead that a window cannot hold")
def shadow(t):
    d, a, b = world(t, [{}, {"context_window": 3000, "warm": "prefill"}])
    s = name()
    chat_turns(t, d, s, 1, 300)
    b.wait_requests(1)
    t.eq(b.requests[0].json["max_tokens"], 1, "a short one is")
    b.take()
    chat_turns(t, d, s, 7, 600, 2)
    wait.until(lambda: d.metrics()["holdfast_shadows_total"
                                   "{result=\"skipped\"}"] > 0, 10,
               "one that is too long to be skipped")
    t.ok(all(len(marks(b.history(r))) < 6 for r in b.requests), "all fit")


# --- again and before -----------------------------------------------------------

@tap.case("an answer that is told again says the same")
def replayed(t):
    d, a = world(t, [{"context_window": 3000}])
    a.behave(window(3000))
    s = name()
    chat_turns(t, d, s, 8, 500)
    out = [client.chat(d, said(9, 100), session=s,
                       headers={"Idempotency-Key": s}) for _ in range(2)]
    t.eq([r.status for r in out], [200, 200], "answered")
    t.eq(out[1].headers["x-holdfast-history"], "replay", "again")
    t.eq(out[0].headers["x-holdfast-omitted"],
         out[1].headers["x-holdfast-omitted"], "omitted")
    r = client.get(d, "/v1/sessions/%s/turns/9/stream" % s)
    t.eq(r.headers["x-holdfast-omitted"],
         out[0].headers["x-holdfast-omitted"], "followed")


@tap.case("the configuration is looked at beforehand")
def warned(t):
    d, a = world(t, [{"context_window": 2000, "max_output_tokens": 4096}])
    r = subprocess.run([ctl.path(), "config", "check", d.conf_path],
                       env=d._environ(), capture_output=True, text=True,
                       timeout=30)
    t.isin("context_window", r.stdout + r.stderr, "a warning")
    t.eq(r.returncode, 0, "it is no error")


tap.main()
