"""Sessions: what the provider hears for every kind of client, each row of the
alignment table; names, aliases and tenants."""
import itertools
import json
import os
import re
import sys
import time

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import client
import provider
import tap
import wait
from daemon import Config, Daemon, shared

A = provider.Provider("openai")
B = provider.Provider("anthropic")
_names = itertools.count(1)


def make():
    conf = Config(workers=3)
    conf.provider("a", A)
    conf.provider("b", B)
    conf.route("m", ["a/model-a"])
    conf.route("other", ["b/model-b"])
    return Daemon(conf).start()


get_daemon = shared(make)


def name():
    return "session-%d" % next(_names)


def U(text):
    return {"role": "user", "content": text}


def S(text):
    return {"role": "system", "content": text}


def R(text):
    return {"role": "assistant", "content": text}


class Talk:
    """One session against provider A, which answers what it is told to."""

    def __init__(self, t, session=None):
        self.t = t
        self.d = get_daemon()
        self.session = session or name()
        A.take()
        A.behave(provider.echo())

    def say(self, messages, reply=None, status=200, **more):
        """Send; 'reply' is what the provider answers.  Returns the
        response."""
        if reply is not None:
            A.script(provider.answer(reply))
        A.take()
        self.r = client.chat(self.d, messages, session=self.session, **more)
        self.t.eq(self.r.status, status, repr(self.r))
        return self.r

    def heard(self, want, how=None):
        """The provider heard exactly this."""
        self.t.eq(A.violations, [], "violations")
        self.t.eq(len(A.requests), 1, "one call")
        self.t.eq(A.history(A.requests[0]), want, "what the provider heard")
        if how is not None:
            self.t.eq(self.r.headers.get("x-holdfast-history"), how,
                      "X-Holdfast-History")


def u(text):
    return ("user", text)


def r(text):
    return ("assistant", text)


def s(text):
    return ("system", text)


# --- the alignment table ---------------------------------------------------

@tap.case("a first turn is all new")
def fresh(t):
    k = Talk(t)
    k.say([U("one")], "ONE")
    k.heard([u("one")], "new")
    t.ok(re.match(r"^ses_[0-9a-z]{26}$",
                  k.r.headers["x-holdfast-session"]), "session id")


@tap.case("a thin client sends only what is new")
def thin(t):
    k = Talk(t)
    k.say([U("one")], "ONE")
    k.say([U("two")], "TWO")
    k.heard([u("one"), r("ONE"), u("two")], "delta")
    k.say([U("three")], "THREE", stream=True)
    k.heard([u("one"), r("ONE"), u("two"), r("TWO"), u("three")], "delta")
    k.say([U("four")], "FOUR")
    k.heard([u("one"), r("ONE"), u("two"), r("TWO"), u("three"), r("THREE"),
             u("four")])


@tap.case("a client that sends everything: the stored list is a prefix")
def full(t):
    k = Talk(t)
    k.say([U("one")], "ONE")
    k.say([U("one"), R("ONE"), U("two")], "TWO")
    k.heard([u("one"), r("ONE"), u("two")], "full")
    k.say([U("one"), R("ONE"), U("two"), R("TWO"), U("three")], "THREE",
          stream=True)
    k.heard([u("one"), r("ONE"), u("two"), r("TWO"), u("three")], "full")


@tap.case("a client may change between thin and full")
def mixed(t):
    k = Talk(t)
    k.say([U("one")], "ONE")
    k.say([U("two")], "TWO")
    k.say([U("one"), R("ONE"), U("two"), R("TWO"), U("three")], "THREE")
    k.heard([u("one"), r("ONE"), u("two"), r("TWO"), u("three")], "full")
    k.say([U("four")], "FOUR")
    k.heard([u("one"), r("ONE"), u("two"), r("TWO"), u("three"), r("THREE"),
             u("four")], "delta")


@tap.case("nothing matches: all of it is new")
def nothing(t):
    k = Talk(t)
    k.say([U("one")], "ONE")
    k.say([U("two"), U("three")], "X")
    k.heard([u("one"), r("ONE"), u("two"), u("three")], "delta")


@tap.case("the same words may be said twice")
def yes_twice(t):
    k = Talk(t)
    k.say([U("yes")], "ONE")
    k.say([U("yes")], "TWO")
    k.heard([u("yes"), r("ONE"), u("yes")], "delta")
    k.say([U("yes")], "THREE")
    k.heard([u("yes"), r("ONE"), u("yes"), r("TWO"), u("yes")], "delta")


@tap.case("equal text in another JSON form is the same text")
def other_form(t):
    k = Talk(t)
    k.say([U("caf\u00e9 one")], "ONE")
    parts = [{"type": "text", "text": "caf\u00e9 "},
             {"type": "text", "text": "one"}]
    k.say([{"role": "user", "content": parts}, R("ONE"), U("two")], "TWO")
    k.heard([u("caf\u00e9 one"), r("ONE"), u("two")], "full")


@tap.case("a changed assistant text is what was heard; the full text is kept")
def heard(t):
    k = Talk(t)
    k.say([U("one")], "A long answer that was interrupted")
    k.say([U("one"), R("A long answer"), U("wait")], "TWO")
    k.heard([u("one"), r("A long answer"), u("wait")], "merged")
    k.say([U("three")], "THREE")
    k.heard([u("one"), r("A long answer"), u("wait"), r("TWO"), u("three")],
            "delta")
    text = json.dumps(k.d.session(k.session))
    t.isin("A long answer that was interrupted", text, "kept for the record")


@tap.case("an assistant text that the client lacks was not heard")
def unheard(t):
    k = Talk(t)
    k.say([U("one")], "never heard")
    k.say([U("one"), U("two")], "TWO")
    k.heard([u("one"), u("two")], "merged")
    k.say([U("three")], "THREE")
    k.heard([u("one"), u("two"), r("TWO"), u("three")], "delta")
    t.isin("never heard", json.dumps(k.d.session(k.session)),
           "kept for the record")


@tap.case("an edited user message is a new branch")
def edited(t):
    k = Talk(t)
    k.say([U("one")], "ONE")
    k.say([U("two")], "TWO")
    k.say([U("three")], "THREE")
    k.say([U("one"), R("ONE"), U("two, really")], "TWO B")
    k.heard([u("one"), r("ONE"), u("two, really")], "branch")
    k.say([U("four")], "FOUR")
    k.heard([u("one"), r("ONE"), u("two, really"), r("TWO B"), u("four")],
            "delta")
    shown = k.d.session(k.session)
    t.eq([x["on_path"] for x in shown["turns"]],
         [True, False, False, True, True], "turns on the path")


@tap.case("an edited first message begins the tree anew")
def edited_first(t):
    k = Talk(t)
    k.say([U("one")], "ONE")
    k.say([U("two")], "TWO")
    k.say([U("one, edited"), R("ONE"), U("two")], "X",
          headers={"X-Holdfast-History": "full"})
    k.heard([u("one, edited"), r("ONE"), u("two")], "branch")


@tap.case("the same list again after an answer is a regeneration")
def regenerate(t):
    k = Talk(t)
    k.say([U("one")], "ONE")
    k.say([U("one"), R("ONE"), U("two")], "TWO")
    k.say([U("one"), R("ONE"), U("two")], "TWO AGAIN")
    k.heard([u("one"), r("ONE"), u("two")], "branch")
    k.say([U("three")], "THREE")
    k.heard([u("one"), r("ONE"), u("two"), r("TWO AGAIN"), u("three")],
            "delta")


@tap.case("a greeting that nobody here made is inserted in its place")
def greeting(t):
    k = Talk(t)
    k.say([U("one")], "ONE")
    k.say([R("Acme, hello?"), U("one"), R("ONE"), U("two")], "TWO")
    k.heard([r("Acme, hello?"), u("one"), r("ONE"), u("two")], "merged")
    k.say([U("three")], "THREE")
    k.heard([r("Acme, hello?"), u("one"), r("ONE"), u("two"), r("TWO"),
             u("three")], "delta")
    k.say([R("Acme, hello?"), U("one"), R("ONE"), U("two"), R("TWO"),
           U("three"), R("THREE"), U("four")], "FOUR")
    k.heard([r("Acme, hello?"), u("one"), r("ONE"), u("two"), r("TWO"),
             u("three"), r("THREE"), u("four")], "full")


@tap.case("words that the client's side spoke between turns are kept")
def spoken_between(t):
    k = Talk(t)
    k.say([U("one")], "ONE")
    k.say([U("one"), R("ONE"), R("Are you still there?"), U("yes")], "TWO")
    k.heard([u("one"), r("ONE"), r("Are you still there?"), u("yes")], "full")


@tap.case("a leading system message is in force until it is replaced")
def system(t):
    k = Talk(t)
    k.say([S("be brief"), U("one")], "ONE")
    k.heard([s("be brief"), u("one")], "new")
    k.say([U("two")], "TWO")
    k.heard([s("be brief"), u("one"), r("ONE"), u("two")], "delta")
    k.say([S("be long"), U("three")], "THREE")
    k.heard([s("be long"), u("one"), r("ONE"), u("two"), r("TWO"),
             u("three")], "delta")
    k.say([S("be kind"), U("one"), R("ONE"), U("two"), R("TWO"), U("three"),
           R("THREE"), U("four")], "FOUR")
    k.heard([s("be kind"), u("one"), r("ONE"), u("two"), r("TWO"),
             u("three"), r("THREE"), u("four")], "full")
    k.say([U("five")], "FIVE")
    t.eq(A.history(A.requests[0])[0], s("be kind"), "still in force")
    t.eq(A.history(A.requests[0])[1], u("one"), "once only")


@tap.case("a late system message stays late")
def late_system(t):
    k = Talk(t)
    k.say([S("be brief"), U("one"), R("ONE"), S("now in French"), U("two")],
          "DEUX")
    k.heard([s("be brief"), u("one"), r("ONE"), s("now in French"),
             u("two")])


@tap.case("a shorter view never shortens the store")
def window(t):
    k = Talk(t)
    told = []
    for word in ("one", "two", "three", "four"):
        k.say([U(word)], word.upper())
        told += [u(word), r(word.upper())]
    k.say([U("four"), R("FOUR"), U("five")], "FIVE")
    k.heard(told + [u("five")], "window")
    k.say([R("FIVE"), U("six")], "SIX")
    k.heard(told + [u("five"), r("FIVE"), u("six")])
    k.say([S("rules"), R("FIVE"), U("six"), R("SIX"), U("seven")], "SEVEN")
    k.heard([s("rules")] + told + [u("five"), r("FIVE"), u("six"), r("SIX"),
                                   u("seven")])


@tap.case("X-Holdfast-History: delta takes all of it as new")
def forced_delta(t):
    k = Talk(t)
    k.say([U("one")], "ONE")
    k.say([U("one"), R("ONE"), U("two")], "TWO",
          headers={"X-Holdfast-History": "delta"})
    k.heard([u("one"), r("ONE"), u("one"), r("ONE"), u("two")], "delta")


@tap.case("X-Holdfast-History: full takes the list as the conversation")
def forced_full(t):
    k = Talk(t)
    k.say([U("one")], "ONE")
    k.say([U("two")], "TWO")
    k.say([U("something else")], "X",
          headers={"X-Holdfast-History": "full"})
    k.heard([u("something else")], "branch")
    shown = json.dumps(k.d.session(k.session))
    for text in ("one", "ONE", "two", "TWO"):
        t.isin(text, shown, "the store is not shortened")


@tap.case("X-Holdfast-History: auto is the guess; other words are 400")
def forced_auto(t):
    k = Talk(t)
    k.say([U("one")], "ONE")
    k.say([U("two")], "TWO", headers={"X-Holdfast-History": "auto"})
    k.heard([u("one"), r("ONE"), u("two")], "delta")
    k.say([U("x")], status=400, headers={"X-Holdfast-History": "maybe"})
    t.eq(A.requests, [], "the provider is not called")
    t.eq(k.r.error["type"], "invalid_request_error", "type")


@tap.case("a turn that failed is not said twice when it is repeated")
def repeated(t):
    k = Talk(t)
    k.say([U("one")], "ONE")
    A.script(provider.status(503))
    r1 = client.chat(k.d, [U("two")], session=k.session)
    t.eq(r1.status, 503, "the provider failed")
    k.say([U("two")], "TWO")
    k.heard([u("one"), r("ONE"), u("two")], "retry")
    A.script(provider.status(503))
    r1 = client.chat(k.d, [U("one"), R("ONE"), U("two"), R("TWO"),
                           U("three")], session=k.session)
    t.eq(r1.status, 503, "the provider failed")
    k.say([U("one"), R("ONE"), U("two"), R("TWO"), U("three")], "THREE")
    k.heard([u("one"), r("ONE"), u("two"), r("TWO"), u("three")], "retry")


@tap.case("a turn that failed is remembered when the caller goes on")
def failed_then_on(t):
    k = Talk(t)
    k.say([U("my code is Q7")], "ok")
    A.script(provider.status(503))
    t.eq(client.chat(k.d, [U("and my name is Zelmira")],
                     session=k.session).status, 503, "failed")
    k.say([U("what is my code?")], "Q7")
    k.heard([u("my code is Q7"), r("ok"), u("and my name is Zelmira"),
             u("what is my code?")])


def drop(k, messages, stream=True, **more):
    """A request whose client leaves before it hears anything."""
    A.take()
    A.behave(provider.silence())
    with client.Connection(k.d.addr) as c:
        c.request("POST", "/v1/chat/completions", client.headers_of(
            k.session, headers=list(more.get("headers", {}).items())),
            json.dumps(client.body_of(messages, stream=stream)).encode())
        A.wait_requests(1)
    wait.until(lambda: [x["state"] for x in k.d.session(k.session)["turns"]]
               [-1] == "canceled", 10, "the turn to end")
    A.behave(provider.echo())


@tap.case("a request that was dropped and has grown is not said twice")
def grown(t):
    # The first of a session, as clients of either kind send it.
    for first in ([], [S("rules")]):
        k = Talk(t)
        drop(k, first + [U("I would")])
        drop(k, first + [U("I would like")], stream=False)
        k.say(first + [U("I would like a table")], "For how many?")
        told = [(m["role"], m["content"]) for m in first]
        k.heard(told + [u("I would like a table")], "retry")
        k.say([U("two")], "Done")
        k.heard(told + [u("I would like a table"), r("For how many?"),
                        u("two")], "delta")
        shown = k.d.session(k.session)
        t.eq([x["state"] for x in shown["turns"]],
             ["canceled", "canceled", "complete", "complete"], "all kept")
    # A later one of a client that sends only what is new.
    k = Talk(t)
    k.say([U("one")], "ONE")
    drop(k, [U("two")])
    k.say([U([{"type": "text", "text": "two, please"}])], "TWO")
    k.heard([u("one"), r("ONE"), u("two, please")], "retry")
    # One that failed for its provider's sake.
    A.script(provider.status(503))
    t.eq(client.chat(k.d, [U("three")], session=k.session).status, 503,
         "failed")
    k.say([U("three, please")], "THREE")
    k.heard([u("one"), r("ONE"), u("two, please"), r("TWO"),
             u("three, please")], "retry")


@tap.case("what only looks like it is said as well")
def not_grown(t):
    for before, now, headers, why in (
            ("yes", "yesterday", {}, "another word"),
            ("yes", "no", {}, "another text"),
            ("I see", "I see it", {"X-Holdfast-History": "delta"},
             "the client says that it is new")):
        k = Talk(t)
        k.say([U("one")], "ONE")
        drop(k, [U(before)], headers=headers)
        k.say([U(now)], "TWO", headers=headers)
        k.heard([u("one"), r("ONE"), u(before), u(now)], "delta")
    # It was answered; or a part of an answer was heard.
    k = Talk(t)
    k.say([U("one")], "ONE")
    k.say([U("one more")], "TWO")
    k.heard([u("one"), r("ONE"), u("one more")], "delta")
    A.behave(provider.cut("half an answer", 2))
    client.chat(k.d, [U("three")], session=k.session, stream=True)
    A.behave(provider.echo())
    k.say([U("three more")], "FOUR")
    told = A.histories()[-1]
    t.eq((told[-3], told[-2][0], told[-1]),
         (u("three"), "assistant", u("three more")), "heard in part")


# --- durability of what was said -------------------------------------------

@tap.case("the next turn on another connection knows the last one, 60 times",
          60)
def read_your_writes(t):
    k = Talk(t)
    told = []
    for i in range(60):
        text = "turn %d" % i
        k.say([U(text)], "said %d" % i, stream=i % 2 == 1)
        k.heard(told + [u(text)])
        told += [u(text), r("said %d" % i)]


@tap.case("a session goes on under another model and another dialect")
def other_model(t):
    k = Talk(t)
    k.say([S("rules"), U("one")], "ONE")
    B.take()
    B.script(provider.answer("TWO"))
    r2 = client.chat(k.d, [U("two")], session=k.session, model="other")
    t.eq((r2.status, r2.text), (200, "TWO"), "on the other model")
    t.eq(B.history(B.requests[0]), [s("rules"), u("one"), r("ONE"),
                                    u("two")], "what it heard")
    k.say([U("three")], "THREE")
    k.heard([s("rules"), u("one"), r("ONE"), u("two"), r("TWO"),
             u("three")], "delta")
    t.eq(B.violations, [], "violations")


@tap.case("a session outlives a restart")
def restart(t):
    conf = Config(workers=2)
    conf.provider("a", A)
    conf.route("m", ["a/model-a"])
    d = Daemon(conf).start()
    t.cleanup(d.close)
    A.behave(provider.echo())
    for word in ("one", "two"):
        A.script(provider.answer(word.upper()))
        t.eq(client.chat(d, word, session="kept").status, 200, word)
    d.stop()
    d.start()
    A.take()
    t.eq(client.chat(d, "three", session="kept").status, 200, "after it")
    t.eq(A.history(A.requests[0]), [u("one"), r("ONE"), u("two"), r("TWO"),
                                    u("three")], "what the provider heard")


# --- names -----------------------------------------------------------------

HEADERS = ["X-Holdfast-Session", "X-Session-Id", "x-conversation-id",
           "x-call-id", "x-litellm-session-id", "x-bf-session-id",
           "Helicone-Session-Id", "agent-session-id", "X-Chat-ID"]
BODIES = [{"session_id": "%s"}, {"conversation_id": "%s"},
          {"conversation": "%s"}, {"conversation": {"id": "%s"}},
          {"metadata": {"session_id": "%s"}},
          {"metadata": {"call_id": "%s"}},
          {"metadata": {"conversation_id": "%s"}},
          {"call": {"id": "%s"}}, {"litellm_session_id": "%s"}]


def named(fields, value):
    return json.loads(json.dumps(fields) % value)


@tap.case("every alias names the session, in headers and in the body")
def aliases(t):
    d = get_daemon()
    A.behave(provider.echo())
    n = name()
    told = 0
    for header in HEADERS:
        r1 = client.chat(d, "hi", headers={header: n})
        told += 1
        t.eq(r1.text, "heard %d: hi" % told, header)
    for fields in BODIES:
        r1 = client.chat(d, "hi", **named(fields, n))
        told += 1
        t.eq((r1.status, r1.text), (200, "heard %d: hi" % told),
             repr(fields))
    t.eq(A.violations, [], "no alias is forwarded")


@tap.case("two names with one value are fine, with two values 400")
def conflicts(t):
    d = get_daemon()
    A.behave(provider.echo())
    n = name()
    r1 = client.chat(d, "hi", headers=[("X-Session-Id", n),
                                       ("X-Chat-ID", n)], session_id=n)
    t.eq(r1.status, 200, "the same value thrice")
    A.take()
    for headers, fields in [
            ([("X-Session-Id", n), ("X-Chat-ID", n + "x")], {}),
            ([("X-Session-Id", n)], {"session_id": n + "x"}),
            ([], {"session_id": n, "conversation": {"id": n + "x"}}),
            ([("X-Session-Id", n), ("X-Session-Id", n + "x")], {})]:
        r1 = client.chat(d, "hi", headers=headers, **fields)
        t.eq(r1.status, 400, repr((headers, fields)))
        t.eq(r1.error["type"], "invalid_request_error", "type")
    t.eq(A.requests, [], "the provider is not called")


@tap.case("odd names: unicode, long ones, control characters")
def odd_names(t):
    d = get_daemon()
    A.behave(provider.echo())
    for n in ("call \u00fc\u65e5", "a/b?c=d&e", "x" * 128, " '; --"):
        t.eq(client.chat(d, "hi", session_id=n).text, "heard 1: hi", n)
        t.eq(client.chat(d, "hi", session_id=n).text, "heard 2: hi", n)
    r1 = client.chat(d, "hi", session_id="x" * 100000)
    t.eq(r1.status, 400, "a name of 100,000 characters")
    for n in ("a\r\nX-Evil: 1", "a\u0000b"):
        r1 = client.chat(d, "hi", session_id=n)
        t.isin(r1.status, (200, 400), "a name with control characters")
        t.notin("x-evil", r1.headers, "header injection")
    for wrong in (7, True, [], {"x": 1}):
        r1 = client.chat(d, "hi", session_id=wrong)
        t.isin(r1.status, (200, 400), "a name that is no string")


@tap.case("the session's own id names it; an unknown id is 404")
def own_id(t):
    k = Talk(t)
    k.say([U("one")], "ONE")
    ident = k.r.headers["x-holdfast-session"]
    k.session = ident
    k.say([U("two")], "TWO")
    k.heard([u("one"), r("ONE"), u("two")], "delta")
    t.eq(k.r.headers["x-holdfast-session"], ident, "the same session")
    k.session = "ses_" + "0" * 26
    k.say([U("x")], status=404)
    t.eq(A.requests, [], "the provider is not called")


# --- tenants ---------------------------------------------------------------

@tap.case("one name under two tenants is two sessions")
def tenants(t):
    conf = Config(workers=2)
    conf.provider("a", A)
    conf.route("m", ["a/model-a"])
    d = Daemon(conf).start()
    t.cleanup(d.close)
    A.behave(provider.echo())
    t.eq(client.chat(d, "hi", session="s").status, 200,
         "open as long as there is no key")
    key = {}
    for tenant in ("red", "blue"):
        out = d.ctl("keys", "create", "--tenant", tenant)
        key[tenant] = secret_of(out)
    wait_for_keys(d)
    A.take()
    t.eq(client.chat(d, "remember code is RED", session="s",
                     key=key["red"]).status, 200, "red")
    r1 = client.chat(d, "recall code", session="s", key=key["blue"])
    t.eq(r1.text, "code is unknown", "blue does not know it")
    r2 = client.chat(d, "recall code", session="s", key=key["red"])
    t.eq(r2.text, "code is RED", "red does")
    ident = r2.headers["x-holdfast-session"]
    t.ne(r1.headers["x-holdfast-session"], ident, "two sessions")
    t.eq(A.history(A.requests[1]), [u("recall code")], "blue's payload")
    # An id that is known to another tenant opens nothing.
    A.take()
    r3 = client.chat(d, "recall code", session=ident, key=key["blue"])
    t.eq(r3.status, 404, "another tenant's id")
    t.eq(A.requests, [], "the provider is not called")
    for bad in (None, "wrong", key["red"] + "x", key["red"][:-1]):
        r4 = client.chat(d, "hi", session="s", key=bad)
        t.eq(r4.status, 401, "key %r" % bad)
        t.eq(r4.error["code"], "invalid_api_key", "code")
    t.eq(A.requests, [], "the provider is not called")
    for path, status in (("/livez", 200), ("/v1/models", 401)):
        t.eq(client.get(d, path).status, status, path)


def secret_of(out):
    found = re.findall(r'"secret": *"([^"]+)"', json.dumps(out))
    if len(found) != 1:
        raise AssertionError("no secret in %r" % out)
    return found[0]


def wait_for_keys(d):
    """A worker may believe for a second that there is no key."""
    wait.until(lambda: client.chat(d, "x", session="s").status == 401, 5,
               "keys to be in force")
    time.sleep(1.1)


if __name__ == "__main__":
    tap.main()
