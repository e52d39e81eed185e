"""Without handover: a worker that dies while two calls of one turn are open: both are recorded
as lost, the lease is free, and the client's retry is one turn with one
answer; a race that was decided before stays decided."""
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import client
import provider
import tap
import wait
from daemon import Config, Daemon


def have_faults():
    with open(os.path.join(os.environ["HF_BUILDDIR"], "config.h"),
              encoding="utf-8") as f:
        return "#define HF_FAULTS 1" in f.read()


def make(t, fault=None):
    a = provider.Provider("openai")
    b = provider.Provider("anthropic")
    conf = Config(workers=1, flush_ms=20, handover="off")
    for name, p in (("a", a), ("b", b)):
        t.cleanup(p.close)
        p.behave(provider.silence())
        conf.provider(name, p, first_token_ms=30000, total_ms=60000,
                      hedge_after_ms=100)
    conf.route("m", ["a/x", "b/y"], deadline_ms=60000,
               hedge_budget_percent=100)
    d = Daemon(conf, env={"HF_FAULT": fault} if fault else None)
    t.cleanup(d.destroy)
    return d.start(), a, b


def settled(t, d, pid, want):
    """The dead worker's turn as it is on disk."""
    wait.until(lambda: d.workers() and pid not in d.workers().values(), 10,
               "a new worker")
    wait.until(lambda: d.session("s")["turns"][-1]["state"] == "interrupted",
               5, "the turn to be settled")
    shown = d.session("s")
    t.eq(shown["session"]["locked"], False, "the lease is free")
    t.eq([(x["target"], x["cls"], x["reason"]) for x in shown["attempts"]],
         want, "attempts")
    return shown


def goes_on(t, d, a, b, text, told):
    """The retry, or the next turn: the conversation once, one answer."""
    for p in (a, b):
        p.take()
    a.behave(provider.answer("fine"))
    r = client.chat(d, text, session="s")
    t.eq((r.status, r.text), (200, "fine"), repr(r))
    t.eq(a.history(a.requests[-1]), told, "what the provider hears")
    t.eq((len(a.requests), len(b.requests)), (1, 0), "one call")
    t.eq(d.session("s")["turns"][-1]["state"], "complete", "the turn")
    d.stop()	# and the store verifies


LOST = [("a/x", "lost", "process_died"), ("b/y", "lost", "process_died")]


@tap.case("it dies between the record of the second call and the call", 40)
def before_call(t):
    if not have_faults():
        raise tap.Skip("built without --enable-faults")
    d, a, b = make(t, "turn.call=kill@2")
    pid = d.workers()[1]
    r = client.chat(d, "hello", session="s", stream=True)
    t.ok(r.status is None or r.end in ("cut", "reset"), "cut: %r" % r)
    settled(t, d, pid, LOST)
    t.eq((len(a.requests), len(b.requests)), (1, 0), "the second's calls")
    goes_on(t, d, a, b, "hello", [("user", "hello")])


@tap.case("kill -9 while both are being called", 40)
def while_both(t):
    d, a, b = make(t)
    pid = d.workers()[1]
    call = client.background(client.chat, d, "hello", session="s")
    b.wait_requests(1)
    os.kill(pid, signal.SIGKILL)
    r = call.get()
    t.ok(r.status is None or r.end in ("cut", "reset"), "cut: %r" % r)
    settled(t, d, pid, LOST)
    t.eq(a.history(a.requests[0]), b.history(b.requests[0]), "payloads")
    goes_on(t, d, a, b, "hello", [("user", "hello")])


@tap.case("kill -9 after the race, in mid-stream", 40)
def after_race(t):
    d, a, b = make(t)
    gate = provider.Barrier()
    t.cleanup(gate.release)
    b.script(provider.trickle("one two three four", gate, 3))
    pid = d.workers()[1]
    call = client.background(client.chat, d, "hello", session="s",
                             stream=True)
    gate.wait_for(1)

    def stored():
        return [x["cls"] for x in d.session("s")["attempts"]] == [
            "hedged", None]
    wait.until(stored, 5, "the race to be recorded")
    os.kill(pid, signal.SIGKILL)
    r = call.get()
    t.eq(r.done, False, "no end was told")
    shown = settled(t, d, pid, [("a/x", "hedged", "lost_race"),
                                ("b/y", "lost", "process_died")])
    t.eq(shown["turns"][-1]["target"], "b/y", "who answered")
    gate.release()
    for p in (a, b):
        t.eq(p.violations, [], "violations")
    a.behave(provider.answer("fine"))
    goes_on(t, d, a, b, "hello", [("user", "hello")])


tap.main()
