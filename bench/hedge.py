#!/usr/bin/env python3
"""Measure what hedging saves, and that nothing of a loser is heard.

Plays the same turns twice against a built holdfast, without and with hedging.
A share of each provider's first tokens is late, chosen by the seed, so both
runs meet the same lateness.  Every answer is made of words that say which
provider gave it to which turn.  Exits with 1 when too many turns were slow, a
loser was not hung up on, any of its words came to a client or the store, or
the budget was passed.
"""
import argparse
import json
import os
import random
import re
import sys
import threading
import time

sys.dont_write_bytecode = True
_SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(_SOURCE, "tests", "harness"))

WORDS = 12
ALPHA, BRAVO = "alpha", "bravo"
BURST = 5	# of the budget, as in base/budget.h


class Load:
    """How many turns, and how late who is."""

    def __init__(self, turns=1000, sessions=50, slow_percent=5, slow_ms=4000,
                 fast_ms=150, hedge_ms=400, budget=10, limit_ms=1500, seed=42):
        self.turns = turns
        self.sessions = sessions
        self.slow_ms = slow_ms
        self.fast_ms = fast_ms
        self.hedge_ms = hedge_ms
        self.budget = budget
        self.limit_ms = limit_ms
        rng = random.Random(seed)
        n = round(turns * slow_percent / 100)
        self.slow = {name: set(rng.sample(range(turns), n))
                     for name in (ALPHA, BRAVO)}

    def delay_s(self, name, turn):
        late = turn in self.slow[name]
        return (self.slow_ms if late else self.fast_ms) / 1000

    def turns_of(self, session):
        return range(session, self.turns, self.sessions)


def words_of(name, turn):
    return ["%s-%d-%d " % (name, turn, i) for i in range(WORDS)]


def answer_of(name, turn):
    return "".join(words_of(name, turn))


class Call:
    """One request as its provider saw it end."""

    def __init__(self, name, turn):
        self.name = name
        self.turn = turn
        self.spoke_at = None	# it began to say something
        self.left_at = None	# the gateway hung up
        self.whole = False	# all of it was said


class Voice:
    """A scripted provider that says its words late or in time."""

    def __init__(self, provider, words, load, name):
        self.words = words
        self.load = load
        self.name = name
        self.calls = []
        self.lock = threading.Lock()
        self.provider = provider
        provider.behave(self.behave)

    def behave(self, ex):
        turn = int(re.search(r"question (\d+)$",
                             ex.request.last_user()).group(1))
        call = Call(self.name, turn)
        with self.lock:
            self.calls.append(call)
        if ex.wait_gone(self.load.delay_s(self.name, turn)):
            call.left_at = time.monotonic()
            ex.close()
            return
        call.spoke_at = time.monotonic()
        pieces = words_of(self.name, turn)
        try:
            ex.say(self.words.Said("".join(pieces), pieces=pieces))
            call.whole = True
        except OSError:
            call.left_at = time.monotonic()
            raise


class Outcome:
    """What one run brought."""

    def __init__(self):
        self.took = {}		# turn: seconds
        self.text = {}		# turn: what the client read
        self.stored = {}	# session: [texts]
        self.calls = []
        self.counters = {}
        self.problems = []

    def slow(self, limit_ms):
        return sum(s * 1000 > limit_ms for s in self.took.values())

    def late_ms(self):
        """From the winner's first word until each loser saw the end."""
        spoke = {}
        for c in self.calls:
            if c.whole:
                spoke[c.turn] = c.spoke_at
        return sorted((c.left_at - spoke[c.turn]) * 1000 for c in self.calls
                      if c.left_at is not None and c.turn in spoke)


def run(load, hedged):
    """One daemon, one pass over all turns.  Environment: HF_BUILDDIR."""
    import client
    import dialect
    import provider
    from daemon import Config, Daemon

    first = provider.Provider("openai")
    second = provider.Provider("anthropic")
    voices = [Voice(first, dialect, load, ALPHA),
              Voice(second, dialect, load, BRAVO)]
    conf = Config(workers=2, log_level="info")
    late = load.slow_ms * 4 + 5000
    for name, p in ((ALPHA, first), (BRAVO, second)):
        conf.provider(name, p, first_token_ms=late, total_ms=late * 2,
                      hedge_after_ms=load.hedge_ms if hedged else 0)
    conf.route("m", [ALPHA + "/x", BRAVO + "/y"], deadline_ms=late * 2,
               hedge_budget_percent=load.budget)
    d = Daemon(conf)
    out = Outcome()

    def talk(session):
        with client.Connection(d.addr, late * 2 / 1000) as c:
            for turn in load.turns_of(session):
                r = client.chat(d, "question %d" % turn, connection=c,
                                session="s-%d" % session,
                                stream=turn % 2 == 0)
                if r.status != 200 or r.end not in ("length", "chunked"):
                    raise AssertionError("turn %d: %r" % (turn, r))
                out.took[turn] = r.took
                out.text[turn] = r.text
    try:
        d.start()
        client.together([lambda s=s: talk(s) for s in range(load.sessions)],
                        load.turns * load.slow_ms / 1000 + 60)
        for s in range(load.sessions):
            shown = d.ctl("sessions", "show", "s-%d" % s, "--contents")
            out.stored[s] = [json.loads(i["body"])["content"]
                             for i in shown["items"]
                             if i["role"] == "assistant"]
        out.counters = {k[len("holdfast_"):-len("_total")]: int(v)
                        for k, v in d.metrics().items()
                        if k.startswith("holdfast_hedges")}
        d.stop()
    finally:
        d.destroy()
        first.close()
        second.close()
    for v in voices:
        out.calls += v.calls
        out.problems += ["%s: %s" % (v.name, what) for what in
                         v.provider.violations + v.provider.errors]
    return out


def check_texts(load, out, problem):
    """Every answer is one provider's, whole, as heard and as stored."""
    for turn in range(load.turns):
        if out.text.get(turn) not in (answer_of(ALPHA, turn),
                                      answer_of(BRAVO, turn)):
            problem("turn %d: the client read %r" % (turn,
                                                     out.text.get(turn)))
    for s in range(load.sessions):
        if out.stored[s] != [out.text[turn] for turn in load.turns_of(s)]:
            problem("session %d: what is stored is not what was heard" % s)


def check_calls(load, out, problem):
    """One call of each turn is answered to its end: the one that is heard;
    the others are hung up on."""
    by_turn = {}
    for c in out.calls:
        by_turn.setdefault(c.turn, []).append(c)
    for turn in range(load.turns):
        calls = by_turn.get(turn, [])
        heard = [c for c in calls
                 if answer_of(c.name, turn) == out.text.get(turn)]
        others = [c for c in calls if c not in heard]
        if len(heard) != 1 or not heard[0].whole or len(calls) > 2:
            problem("turn %d: %d calls, %d heard" % (turn, len(calls),
                                                     len(heard)))
        for c in others:
            if c.left_at is None:
                problem("turn %d: the loser was not hung up on" % turn)
    extra = len(out.calls) - load.turns
    if extra != out.counters["hedges"]:
        problem("%d calls beside others, %d counted" % (
            extra, out.counters["hedges"]))
    won = sum(text.startswith(BRAVO) for text in out.text.values())
    if won != out.counters["hedges_won"]:
        problem("%d answers of the second, %d counted as won" % (
            won, out.counters["hedges_won"]))
    if extra > load.turns * load.budget / 100 + BURST:
        problem("%d hedges pass the budget" % extra)


def check(load, out):
    """What was wrong with a run, beyond its speed."""
    problems = list(out.problems)
    check_texts(load, out, problems.append)
    check_calls(load, out, problems.append)
    return problems


# --- the command ------------------------------------------------------------

def quantile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, int(q * len(values)))]


def print_run(name, load, out):
    took = [s * 1000 for s in out.took.values()]
    slow = out.slow(load.limit_ms)
    print("%-10s %6d %5d (%.2f %%) %8.0f %7.0f %7.0f %7.0f %8d %5d %8d" % (
        name, len(took), slow, 100 * slow / len(took), quantile(took, 0.5),
        quantile(took, 0.95), quantile(took, 0.99), max(took),
        out.counters["hedges"], out.counters["hedges_won"],
        out.counters["hedges_refused"]))


def options():
    p = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", default=os.environ.get("HF_BUILDDIR", "."),
                   help="build directory (default: $HF_BUILDDIR or .)")
    p.add_argument("--turns", type=int, default=1000)
    p.add_argument("--sessions", type=int, default=50,
                   help="that talk at once")
    p.add_argument("--slow-percent", type=float, default=5)
    p.add_argument("--slow-ms", type=int, default=4000)
    p.add_argument("--fast-ms", type=int, default=150)
    p.add_argument("--hedge-ms", type=int, default=400)
    p.add_argument("--budget", type=int, default=10, help="percent")
    p.add_argument("--limit-ms", type=int, default=1500,
                   help="a turn that takes longer is slow")
    p.add_argument("--allowed", type=float, default=1.0,
                   help="percent of turns that may be slow with hedging")
    p.add_argument("--seed", type=int, default=42)
    return p.parse_args()


def main():
    o = options()
    os.environ["HF_BUILDDIR"] = os.path.abspath(o.build)
    os.environ.setdefault("HF_SRCDIR", _SOURCE)
    load = Load(o.turns, o.sessions, o.slow_percent, o.slow_ms, o.fast_ms,
                o.hedge_ms, o.budget, o.limit_ms, o.seed)
    print("%d turns of %d sessions; %g %% of each provider's first tokens at "
          "%d ms, the rest at %d ms;\nhedge at %d ms, budget %d %%; both are "
          "late in %d turns" % (
              o.turns, o.sessions, o.slow_percent, o.slow_ms, o.fast_ms,
              o.hedge_ms, o.budget,
              len(load.slow[ALPHA] & load.slow[BRAVO])))
    print("%-10s %6s %14s %9s %7s %7s %7s %8s %5s %8s" % (
        "", "turns", "over %d ms" % o.limit_ms, "p50 ms", "p95", "p99", "max",
        "hedges", "won", "refused"))
    problems = []
    for name, hedged in (("without", False), ("with", True)):
        out = run(load, hedged)
        print_run(name, load, out)
        sys.stdout.flush()
        problems += ["%s: %s" % (name, p) for p in check(load, out)]
        share = 100 * out.slow(o.limit_ms) / o.turns
        if hedged and share > o.allowed:
            problems.append("%.2f %% of the turns were slow" % share)
        elif not hedged and share < o.slow_percent:
            problems.append("too few turns were slow without hedging: the "
                            "load is not what it should be")
    late = out.late_ms()
    if late:
        print("losers hung up on: %d of %d, after the winner's first word by "
              "%.1f ms (median), %.1f ms (most)" % (
                  len(late), out.counters["hedges"], quantile(late, 0.5),
                  late[-1]))
    for p in problems:
        print("FAILED " + p)
    if not problems:
        print("no word of a loser at a client or in the store")
    return 1 if problems else 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)
