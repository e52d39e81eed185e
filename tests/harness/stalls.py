"""Providers that are alive on the wire and useless: what they do, and how late
the next target's words come.  For the tests of deadlines and their benchmark.

    setup = Setup()
    daemon = Daemon(setup.config()).start()
    late = setup.measure(daemon, "pings", "openai", stream=True)
    late.ms, late.response
"""
import itertools
import re
import time

import client
import dialect as words
import provider
from daemon import Config

FULL = ("One two three four five six, and then it goes on for a while until "
        "all of it was said.")
FIRST_TOKEN_MS = 400
IDLE_MS = 300
WINDOW_MS = 1000	# in which at least MIN_CHARS_PER_S must come
MIN_CHARS_PER_S = 5
PACE_S = 0.9		# of the dribble; its idle_ms is above that
TAG = re.compile(r"\[(\w+) (\S+) (\d+)\]")


def _silence(ex, mark):
    ex.start()
    mark()
    ex.wait_gone()


def _repeat(ex, mark, event, every):
    ex.start()
    mark()
    while not ex.wait_gone(every) and not ex.provider.closing:
        ex.chunk(event)


def _pings(ex, mark):
    _repeat(ex, mark, b": ping\n\n" if ex.dialect == "openai" else
            b"event: ping\ndata: {\"type\": \"ping\"}\n\n", 0.05)


def _roles(ex, mark):
    """Roles, starts of blocks and deltas with nothing in them."""
    empty = ex.events(words.Said("", pieces=[""]))
    at = words.first_useful(ex.dialect)
    _repeat(ex, mark, b"".join(empty[:at + 1]), 0.05)


def _deltas(ex, size=None):
    pieces = words.split(FULL, size)
    events = ex.events(words.Said(FULL, pieces=pieces))
    at = words.first_useful(ex.dialect)
    ex.start()
    ex.chunk(b"".join(events[:at]))
    return events[at:at + len(pieces)]


def _three(ex, mark):
    for event in _deltas(ex)[:3]:
        ex.chunk(event)
    mark()
    ex.wait_gone()


def _dribble(ex, mark):
    deltas = _deltas(ex, 1)
    ex.chunk(deltas.pop(0))
    mark()
    while deltas and not ex.wait_gone(PACE_S):
        ex.chunk(deltas.pop(0))


# name: (what the provider does, the deadline that ends it in ms, counted from
# the mark; the target; why the attempt failed)
STALLS = {
    "headers": (_silence, FIRST_TOKEN_MS, "x", "first_token_timeout"),
    "pings": (_pings, FIRST_TOKEN_MS, "x", "first_token_timeout"),
    "roles": (_roles, FIRST_TOKEN_MS, "x", "first_token_timeout"),
    "dribble": (_dribble, WINDOW_MS, "slow", "too_slow"),
    "three": (_three, IDLE_MS, "x", "idle_timeout"),
}
TITLES = {
    "headers": "headers, then silence",
    "pings": "pings only",
    "roles": "role-only and empty deltas",
    "dribble": "one character each %g s" % PACE_S,
    "three": "three tokens, then silence",
}


class Late:
    """A response, and how long after the deadline the next target's first
    words were there."""

    def __init__(self, response, ms):
        self.response = response
        self.ms = ms


class Setup:
    """Two providers, each of which stalls where it is the first one asked,
    and answers at once where it is the second."""

    def __init__(self):
        self.providers = {d: provider.Provider(d)
                          for d in ("openai", "anthropic")}
        for p in self.providers.values():
            p.behave(self._behave)
        self._marks = {}
        self._names = itertools.count(1)

    def config(self, **gateway):
        conf = Config(**gateway)
        for name, p in self.providers.items():
            conf.provider(name, p, first_token_ms=FIRST_TOKEN_MS,
                          idle_ms=IDLE_MS)
            conf.target(name + "/slow", idle_ms=20000,
                        min_chars_per_s=MIN_CHARS_PER_S,
                        rate_window_ms=WINDOW_MS)
        for first, second in (("openai", "anthropic"),
                              ("anthropic", "openai")):
            for model in ("x", "slow"):
                conf.route("%s-%s" % (first, model),
                           ["%s/%s" % (first, model), second + "/y"])
        return conf

    def _behave(self, ex):
        # An instruction to go on stands behind what the user said.
        said = [TAG.search(str(m["content"])) for m in ex.request.messages]
        first, stall, n = [m for m in said if m][-1].groups()
        if ex.dialect != first:
            ex.say(words.Said(FULL))
            return

        def mark():
            self._marks[n] = (ex.request.time
                              if STALLS[stall][3] == "first_token_timeout"
                              else time.monotonic())
        STALLS[stall][0](ex, mark)
        ex.close()

    def measure(self, daemon, stall, first, stream, session=None):
        n = str(next(self._names))
        _, due_ms, model, _ = STALLS[stall]
        r = client.chat(daemon, "go [%s %s %s]" % (first, stall, n),
                        model="%s-%s" % (first, model), stream=stream,
                        session=session, timeout=30)
        began = self._marks.get(n)
        if began is None:
            raise AssertionError("the first target was not asked: %r" % r)
        at = r.ended_at
        if r.streamed:
            # What came before the deadline is the first target's.
            at = min((t for e, t in zip(r.events, r.event_times)
                      if _has_text(e) and t > began + due_ms / 2000),
                     default=r.ended_at)
        return Late(r, (at - began) * 1000 - due_ms)

    def close(self):
        for p in self.providers.values():
            p.close()


def _has_text(event):
    return (isinstance(event, dict) and event.get("choices") and
            event["choices"][0]["delta"].get("content"))
