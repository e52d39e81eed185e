"""What every client library must be able to do against the daemon: declared
once, run for each library, in each of its modes and for both dialects."""
import itertools
import json
import os
import random
import sys

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import provider
import tap
from daemon import Config, Daemon, KEY, shared

import node
import relay

A = provider.Provider("openai", key=KEY)
C = provider.Provider("anthropic", key=KEY)
TEXT = "Your order ships on Tuesday, \u65e5\u672c\u8a9e \U0001f642 \"in\\cluded\".\n"
_names = itertools.count(1)


def make():
    conf = Config(workers=2)
    conf.provider("a", A, first_token_ms=1500)
    conf.provider("c", C, first_token_ms=1500)
    conf.route("m", ["a/model-a", "c/model-c"])
    conf.route("r", ["c/model-c", "a/model-a"])
    conf.route("gpt", ["a/model-a"])
    conf.route("claude", ["c/model-c"])
    conf.route("gpt-5-mini", ["c/model-c"])
    conf.route("slow", ["a/model-a"], deadline_ms=400)
    d = Daemon(conf).start()
    d.key = d.ctl("keys", "create", "--tenant", "acme")["secret"]
    return d


_get = shared(make)
ROUTES = [("gpt", A), ("claude", C)]


def fresh():
    """The daemon, with providers that live and have heard nothing."""
    d = _get()
    for p in (A, C):
        p.up()
        p.behave(provider.echo())
        p.take()
        del p.violations[:]
    return d


def base(d, path="/v1"):
    return "http://127.0.0.1:%d%s" % (d.addr[1], path)


def name():
    return "conv-%d" % next(_names)


class Library:
    """A driver and what its calls need to be told each time."""

    def __init__(self, script, modes):
        self.modes = modes
        self.driver = node.Driver(script)

    def ready(self):
        self.driver.start()
        return fresh()

    def to(self, d, **more):
        """How to reach the daemon."""
        out = {"base": base(d), "key": d.key, "retries": 0}
        out.update(more)
        return out

    def call(self, op, **params):
        return self.driver.call(op, **params)

    def open(self, d, conv=None, model="m", **more):
        conv = conv or name()
        self.call("open", conv=conv, model=model, **self.to(d, **more))
        return conv

    def good(self, t, r):
        t.eq(r["error"], None, repr(r))
        return r

    def say(self, t, conv, text, mode, **more):
        return self.good(t, self.call("say", conv=conv, text=text, mode=mode,
                                      **more))


def calm(t):
    """The providers' strict checks had nothing to say."""
    for p in (A, C):
        t.eq(p.violations, [], "violations at " + p.dialect)
        t.eq(p.errors, [], "errors of the script")


def numbered(history):
    """A history with call ids replaced by their order of appearance."""
    seen, out = {}, []
    for item in history:
        if item[0] in ("call", "result"):
            n = seen.setdefault(item[1], len(seen))
            item = (item[0], n) + item[2:]
        out.append(item)
    return out


TWO = [("x_up1", "weather", '{"city": "K\u00f6ln"}'),
       ("x_up2", "order", '{"id": "2512292042121000001", "qty": 3}')]
CALLS = [
    ("one", TWO[:1]), ("two", TWO), ("none", [("x_up3", "look", "{}")]),
    ("mixed", [TWO[0], ("x_up3", "look", ""), ("x_up4", "look", "{}")]),
]


def upstream(p, calls):
    """Ids as that provider makes them."""
    prefix = "toolu_" if p is C else "call_"
    return [(i.replace("x_", prefix), n, a) for i, n, a in calls]


def arguments(a):
    return json.loads(a or "{}")


class Play:
    """One random conversation and what it must have told by now."""

    def __init__(self, lib, t, rng):
        self.lib, self.t, self.rng = lib, t, rng
        self.conv = name()
        self.want = [("system", "Be brief.")]
        self.calls = 0		# so far in the conversation
        self.pending = []	# ids that wait for a result
        lib.open(_get(), self.conv, system="Be brief.", retries=0,
                 tools=["look", "weather", "order"],
                 headers={"X-Holdfast-Session": self.conv})

    def said(self, p, n):
        """What the provider is to answer: text, calls, or both."""
        rng = self.rng
        calls = []
        if rng.random() < 0.4:
            for k in range(rng.randint(1, 3)):
                args = rng.choice(["", "{}", '{"city": "R\u00f6m %d"}' % n,
                                   '{"id": "2512292042121000001", "qty": %d}'
                                   % n])
                tool = ("weather" if "city" in args else
                        "order" if "qty" in args else "look")
                calls.append(("x_%d_%d" % (n, k), tool, args))
        text = rng.choice(["", "answer %d" % n, TEXT + str(n)])
        return (text or ("" if calls else "ok %d" % n), upstream(p, calls))

    def step(self, n):
        rng, lib, t = self.rng, self.lib, self.t
        dead = rng.choice((None, None, A, C))
        p = C if dead is A else A
        for q in (A, C):
            if q is dead:
                q.down()
            else:
                q.up()
        text, calls = self.said(p, n)
        p.script(provider.answer(text, calls))
        news = {}
        if self.pending:
            news["results"] = [{"id": i, "content": "result %s" % i[-6:]}
                               for i in self.pending]
            first = self.calls - len(self.pending)
            self.want += [("result", first + k, r["content"])
                          for k, r in enumerate(news["results"])]
            self.pending = []
        else:
            news["text"] = "message %d" % n
            self.want.append(("user", news["text"]))
        mode = rng.choice(lib.modes)
        thin = rng.random() < 0.5
        r = lib.good(t, lib.call("say", conv=self.conv, mode=mode, thin=thin,
                                 **news))
        what = "step %d %s thin=%s dead=%s: " % (
            n, mode, thin, dead and dead.dialect)
        t.eq(numbered(p.history(p.requests[-1])), self.want, what + "heard")
        t.eq(r["text"], text, what + "text")
        t.eq([(c["name"], c["args"]) for c in r["calls"]],
             [(m, arguments(a)) for _, m, a in calls], what + "calls")
        if text:
            self.want.append(("assistant", text))
        for c in r["calls"]:
            self.want.append(("call", self.calls, c["name"], c["args"]))
            self.calls += 1
            self.pending.append(c["id"])


def declare(lib):
    case = tap.case

    @case("versions", 300)
    def versions(t):
        lib.driver.start()
        t.diag("node %s, %s" % (lib.driver.version, ", ".join(
            "%s %s" % v for v in sorted(node.versions().items()))))
        with open(os.path.join(os.environ["HF_SRCDIR"], "docs",
                               "clients.md"), encoding="utf-8") as f:
            table = f.read()
        for package, version in node.versions().items():
            t.isin("| %s | %s |" % (package, version), table, "docs")

    @case("text arrives whole, with finish and usage")
    def text(t):
        d = lib.ready()
        for (model, p), mode in itertools.product(ROUTES, lib.modes):
            p.behave(provider.answer(TEXT))
            conv = lib.open(d, model=model)
            r = lib.say(t, conv, "where is it?", mode, usage=True)
            what = "%s %s: " % (model, mode)
            t.eq(r["text"], TEXT, what + "text")
            t.eq(r["finish"], "stop", what + "finish")
            t.eq(r["usage"], {"in": 31, "out": 6, "total": 37},
                 what + "usage")
            if mode != "plain":
                t.ok(r["deltas"] >= 5, what + "in pieces")
        calm(t)

    @case("finish length and content_filter are told")
    def finishes(t):
        d = lib.ready()
        for (model, p), mode in itertools.product(ROUTES, lib.modes):
            p.behave(provider.answer("too lo", finish="length"))
            r = lib.call("say", conv=lib.open(d, model=model), text="x",
                         mode=mode)
            t.eq((r["error"], r["text"], r["finish"]),
                 (None, "too lo", "length"), "%s %s" % (model, mode))

    @case("tool calls: one, two parallel, without arguments; results go back",
          60)
    def calls(t):
        d = lib.ready()
        for (model, p), mode, (kind, said) in itertools.product(
                ROUTES, lib.modes, CALLS):
            what = "%s %s %s: " % (model, mode, kind)
            fresh()
            p.script(provider.answer("", upstream(p, said)))
            conv = lib.open(d, model=model,
                            tools=["look", "weather", "order"])
            r = lib.say(t, conv, "do it", mode)
            t.eq([(c["name"], c["args"]) for c in r["calls"]],
                 [(n, arguments(a)) for _, n, a in said], what + "calls")
            t.eq(r["finish"], "tool_calls", what + "finish")
            ids = [c["id"] for c in r["calls"]]
            t.eq(len(set(ids)), len(said), what + "ids differ")
            for i in ids:
                t.ok(i.startswith("call_") and "up" not in i,
                     what + "an id of ours: " + i)
            p.script(provider.answer("All done."))
            r = lib.good(t, lib.call(
                "say", conv=conv, mode=mode,
                results=[{"id": i, "content": "result %d" % k}
                         for k, i in enumerate(ids)]))
            t.eq((r["text"], r["finish"]), ("All done.", "stop"), what)
            lib.say(t, conv, "thanks", mode)
            want = [("user", "do it")]
            want += [("call", k, n, arguments(a))
                     for k, (_, n, a) in enumerate(said)]
            want += [("result", k, "result %d" % k)
                     for k in range(len(said))]
            want += [("assistant", "All done."), ("user", "thanks")]
            t.eq(numbered(p.history(p.requests[-1])), want, what + "heard")
            calm(t)

    @case("calls and results survive a failover to the other dialect", 60)
    def calls_fail_over(t):
        d = lib.ready()
        for mode, thin, model in itertools.product(
                lib.modes, (False, True), ("m", "r")):
            what = "%s %s thin=%s: " % (model, mode, thin)
            first, second = (A, C) if model == "m" else (C, A)
            fresh()
            conv = name()
            lib.open(d, conv, model=model, thin=thin, tools=["weather",
                                                             "order"],
                     headers={"X-Holdfast-Session": conv})
            first.script(provider.answer("Let me see.", upstream(first, TWO)))
            r = lib.say(t, conv, "weather and order", mode)
            t.eq(r["text"], "Let me see.", what + "text beside calls")
            ids = [c["id"] for c in r["calls"]]
            first.down()
            second.script(provider.answer("Sunny, and ordered."))
            r = lib.good(t, lib.call(
                "say", conv=conv, mode=mode,
                results=[{"id": ids[0], "content": "sun"},
                         {"id": ids[1], "content": "ok"}]))
            t.eq(r["text"], "Sunny, and ordered.", what + "answer")
            want = [("user", "weather and order"),
                    ("assistant", "Let me see."),
                    ("call", 0, "weather", {"city": "K\u00f6ln"}),
                    ("call", 1, "order",
                     {"id": "2512292042121000001", "qty": 3}),
                    ("result", 0, "sun"), ("result", 1, "ok")]
            t.eq(numbered(second.history(second.requests[-1])), want,
                 what + "the second heard")
            first.up()
            second.down()
            first.script(provider.answer("You are welcome."))
            lib.say(t, conv, "thanks", mode)
            t.eq(numbered(first.history(first.requests[-1])),
                 want + [("assistant", "Sunny, and ordered."),
                         ("user", "thanks")], what + "the first heard")
            calm(t)

    @case("a conversation goes on over dead providers, full and thin", 60)
    def conversation(t):
        d = lib.ready()
        for mode, thin in itertools.product(lib.modes, (False, True)):
            what = "%s thin=%s: " % (mode, thin)
            fresh()
            conv = name()
            lib.open(d, conv, thin=thin, system="Be brief.",
                     headers={"X-Session-Id": conv})
            want = [("system", "Be brief.")]
            for n, (dead, p) in enumerate(((None, A), (A, C), (A, C),
                                           (C, A)), 1):
                for q in (A, C):
                    if q is dead:
                        q.down()
                    else:
                        q.up()
                text = "message %d" % n
                r = lib.say(t, conv, text, mode)
                t.eq(r["text"], "heard %d: %s" % (n, text), what + "answer")
                want.append(("user", text))
                t.eq(p.history(p.requests[-1]), want,
                     what + "payload of turn %d" % n)
                want.append(("assistant", r["text"]))
            s = d.session(conv, "acme")
            t.eq(s["session"]["turns"], 4, what + "turns on disk")
            calm(t)

    @case("a stream error in mid-stream is an error, not an end")
    def mid_stream(t):
        d = lib.ready()
        for (model, p), mode in itertools.product(ROUTES, lib.modes):
            for fault in (provider.error_after("one two three four", 2),
                          provider.cut("one two three four", 2, "reset"),
                          provider.cut("one two three four", 2, "close")):
                fresh()
                p.behave(fault)
                r = lib.call("say", conv=lib.open(d, model=model), text="x",
                             mode=mode)
                what = "%s %s" % (model, mode)
                t.ok(r["error"] is not None, what + ": %r" % r)
                if mode == "plain":
                    continue
                t.eq(r["text"], "one two", what + " text before it")
                lib.check_stream_error(t, r["error"])

    @case("a cut that nobody can go on with is an error, not an end", 60)
    def nobody_left(t):
        d = lib.ready()
        text = "one two three four five six"
        for (model, x, y), mode, how, then in itertools.product(
                (("m", A, C), ("r", C, A)), lib.modes, ("close", "reset"),
                (provider.status(500), provider.cut(" four five six", 2),
                 None)):
            what = "%s %s %s: " % (model, mode, how)
            fresh()
            conv = name()
            lib.open(d, conv, model=model,
                     headers={"X-Holdfast-Session": conv})
            # The fourth word is held until it is known to be whole.
            x.script(provider.cut(text, 4, how))
            if then is None:
                y.down()
            else:
                y.script(then)
            r = lib.call("say", conv=conv, text="x", mode=mode)
            t.ok(r["error"] is not None, what + "%r" % r)
            turn = d.session(conv, "acme")["turns"][0]
            if mode == "plain":
                t.eq((turn["state"], turn["status"]), ("failed", 503), what)
            else:
                t.eq(turn["state"], "incomplete", what)
                t.ok(r["text"] and text.startswith(r["text"].strip()),
                     what + "text before it: %r" % r["text"])
                lib.check_stream_error(t, r["error"])
            # What the library has of it, and its next turn, are right.
            fresh()
            lib.say(t, conv, "go on", mode)
            told = x.history(x.requests[-1])
            t.eq((told[0], told[-1]), (("user", "x"), ("user", "go on")),
                 what + "%r" % told)
            calm(t)

    @case("40 conversations at once do not mix")
    def many(t):
        d = lib.ready()
        A.behave(provider.echo())
        C.behave(provider.echo())
        n = 40
        session = name() + "-"
        for k in range(2):
            said = ["remember secret-%d is canary-%d-%d" % (i, i, k)
                    if k == 0 else "recall secret-%d" % i for i in range(n)]
            if k == 1:
                A.down()
            r = lib.call("many", texts=said, session=session, model="m",
                         patience=60, **lib.to(d))
            if k == 1:
                t.eq(r, ["secret-%d is canary-%d-0" % (i, i)
                         for i in range(n)], "what the fallback knew")
        calm(t)

    @case("random conversations: tools, deaths, thin and full, all modes",
          600)
    def play(t):
        lib.ready()
        long = bool(os.environ.get("HF_TEST_LONG"))
        seed = int(os.environ.get("HF_TEST_SEED") or
                   random.randrange(1 << 30))
        t.diag("HF_TEST_SEED=%d" % seed)
        for k in range(40 if long else 2):
            fresh()
            play = Play(lib, t, random.Random(seed + k))
            t.reporter(lambda: "seed %d" % (seed + k))
            for n in range(40 if long else 15):
                play.step(n)
            calm(t)
