"""An answer's bytes on real sockets, cut at every event and one byte to each
side of it, and gone on with by a target of the other dialect: by prefill, in
words, hidden.  The client has every word once and one end, and what is stored
is what it has.  HF_TEST_LONG cuts at every byte."""
import functools
import itertools
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

LONG = bool(os.environ.get("HF_TEST_LONG"))
FULL = ("Gr\u00fc\u00dfe, Zelmira! Order 42 (3.14 kg) isn't late: it leaves "
        "today \U0001f389, at 12:30.")
WAYS = ("prefill", "instruction", "hidden")
ENDS = ("end", "close", "reset")
AT_ONCE = 12		# clients
TURNS = 7		# of a session
TAG = re.compile(r"\[(\w+) (\w+) (\d+)\]")

PROVIDERS = {"openai": provider.Provider("openai"),
             "anthropic": provider.Provider("anthropic", prefill=True)}


def make():
    conf = Config(workers=2, flush_ms=20)
    for name, p in PROVIDERS.items():
        conf.provider(name, p, idle_ms=4000)
        conf.target(name + "/prefills", prefill="plain")
    for first, second in itertools.permutations(PROVIDERS):
        for way in WAYS:
            conf.route("%s-%s" % (first, way), [
                first + "/x", second + ("/prefills" if way == "prefill"
                                        else "/y")],
                continuation="hidden" if way == "hidden" else None)
    return Daemon(conf).start()


get_daemon = shared(make)


def squeeze(text):
    return re.sub(r"\s+", " ", text).strip()


# --- the cuts ---------------------------------------------------------------

@functools.lru_cache()
def positions(first):
    """Where the wire of this dialect is cut, and from where on it is whole:
    with the event that says how it finished."""
    events = words.stream(first, words.Said(FULL), "x", True)
    ends = [0] + list(itertools.accumulate(len(e) for e in events))
    last = len(events) - (3 if first == "openai" else 1)
    whole = ends[last] + len(events[last].rstrip())
    if LONG:
        return range(ends[-1] + 1), whole
    return sorted({min(max(at + d, 0), ends[-1])
                   for at in ends for d in (-1, 0, 1)}), whole


# --- the providers ----------------------------------------------------------

class Ask:
    """What a request is about: its tag, and the partial answer, if any."""

    def __init__(self, request):
        self.partial = None
        self.in_words = False
        for m in request.messages:
            text = validate.text_of(m["content"])
            tag = TAG.search(text) if m["role"] == "user" else None
            if tag:
                self.first, self.way, cut = tag.groups()
                self.cut = int(cut)
                self.partial = None
            elif m["role"] == "assistant":
                self.partial = text
            self.in_words = self.partial is not None and m["role"] == "user"


def cut_short(ex, ask):
    """The first bytes of the answer, at once or event by event."""
    events = ex.events(words.Said(FULL))
    wire = b"".join(events)[:ask.cut]
    ex.start()
    if ask.cut % 2:
        ex.chunk(wire)
    else:
        for event in events:
            ex.chunk(wire[:len(event)])
            wire = wire[len(event):]
    how = ENDS[ask.cut // 2 % len(ENDS)]
    if how == "end":	# a whole body, whatever is in it
        ex.end()
        return
    if how == "reset" and ask.cut < positions(ex.dialect)[1]:
        # Mostly the peer has the bytes before the reset discards them; if
        # not, the cut is another one.
        ex.wait_gone(0.05)
        ex.reset()
    ex.close()


def rest(ask):
    """What a model says that is given this."""
    p = ask.partial
    if p is None:
        return FULL
    assert FULL.startswith(p), p
    q = FULL[len(p):]
    said = p.split()
    style = ask.cut % 5
    if not ask.in_words:
        # The space that the text ends with is not in the message, or the
        # model says it again.
        return q if style % 2 else " " + q.lstrip()
    if style == 1:
        return q.lstrip()
    if style == 2:
        return " " + q.lstrip() if q else q
    if style == 3 and len(said) > 5:
        return " ".join(said[-5:]) + " " + q.lstrip()
    if style == 4 and len(said) > 5:
        return FULL
    return q


def behave(ex):
    ask = Ask(ex.request)
    if ask.first == ex.dialect:
        cut_short(ex, ask)
        return
    if ask.way == "hidden":
        assert ask.partial is None, ask.partial
    ex.say(words.Said(rest(ask)))


# --- the check ---------------------------------------------------------------

def check_stream(t, r, what):
    t.eq((r.status, r.end), (200, "chunked"), "%s: %r" % (what, r))
    t.eq(squeeze(r.text), FULL, what)
    chunks = [e for e in r.events if isinstance(e, dict)]
    t.eq(sum(e == "[DONE]" for e in r.events), 1, what + ": one [DONE]")
    t.eq(r.events[-1], "[DONE]", what + ": nothing behind it")
    t.eq(r.finish, "stop", what + ": one finish")
    t.eq(sum("role" in c["delta"] for e in chunks for c in e["choices"]), 1,
         what + ": one role chunk")
    t.eq(len({(e["id"], e["model"], e["created"]) for e in chunks}), 1,
         what + ": one id")


def check_stored(t, d, session, told):
    """told: the texts of the session's turns, in order."""
    shown = d.ctl("sessions", "show", session, "--contents")
    t.eq([turn["state"] for turn in shown["turns"]],
         ["complete"] * len(told), session)
    stored = [validate.parse(i["body"].encode())["content"]
              for i in shown["items"] if i["output"]]
    t.eq(stored, told, "%s: stored is what was told" % session)
    return [turn["attempts"] for turn in shown["turns"]]


def play(t, d, first, way, cuts, n):
    """One session: a turn for each cut."""
    session = "%s-%s-%d" % (first, way, n)
    told = []
    for cut in cuts:
        r = client.chat(d, "tell me [%s %s %d]" % (first, way, cut),
                        session=session, model="%s-%s" % (first, way),
                        stream=True, timeout=30)
        check_stream(t, r, "%s %s cut %d" % (first, way, cut))
        told.append(r.text)
    attempts = check_stored(t, d, session, told)
    t.eq(set(attempts) - {1, 2}, set(), session + ": attempts")
    return sum(n == 2 for n in attempts)


def sweep(t, first, way):
    d = get_daemon()
    cuts, whole = positions(first)
    for p in PROVIDERS.values():
        p.take()
        p.behave(behave)
    groups = [cuts[i:i + TURNS] for i in range(0, len(cuts), TURNS)]
    continued = 0
    for i in range(0, len(groups), AT_ONCE):
        continued += sum(client.together([
            lambda n=i + k, g=g: play(t, d, first, way, g, n)
            for k, g in enumerate(groups[i:i + AT_ONCE])], 120 * tap.SCALE))
    for p in PROVIDERS.values():
        t.eq((p.violations, p.errors), ([], []), p.dialect)
    asked = sum(len(p.requests) for p in PROVIDERS.values())
    t.eq(continued, sum(cut < whole for cut in cuts), "gone on with")
    t.eq(asked, len(cuts) + continued, "requests")
    t.diag("%d cuts, %d gone on with" % (len(cuts), continued))


for _first, _way in itertools.product(PROVIDERS, WAYS):
    tap.case("%s cut at every event, gone on with %s" % (
        _first, {"prefill": "by prefill", "instruction": "in words",
                 "hidden": "hidden"}[_way]), 1200 if LONG else 60)(
        lambda t, first=_first, way=_way: sweep(t, first, way))


tap.main()
