"""A worker that dies at each named point of a turn.  Its client's connection
is taken over: one answer, one turn.  Without handover: what is on disk
afterwards is what the point's place in the turn says, and the session goes
on."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import client
import provider
import tap
import wait
from daemon import Config, Daemon

# point, state of the turn afterwards, was the provider called, is the answer
# in the history
POINTS = [
    ("turn.t1.done", "interrupted", False, False),
    ("turn.call", "interrupted", False, False),
    ("turn.t2.done", "complete", True, True),
]


def have_faults():
    with open(os.path.join(os.environ["HF_BUILDDIR"], "config.h"),
              encoding="utf-8") as f:
        return "#define HF_FAULTS 1" in f.read()


def make(t, fault, **gateway):
    if not have_faults():
        raise tap.Skip("built without --enable-faults")
    p = provider.Provider("openai")
    t.cleanup(p.close)
    p.behave(provider.echo())
    conf = Config(**dict({"workers": 1}, **gateway))
    conf.provider("a", p)
    conf.route("m", ["a/model-a"])
    d = Daemon(conf, env={"HF_FAULT": fault})
    t.cleanup(d.destroy)
    return d.start(), p


def dies_at(t, point, state, called, answered, stream):
    # Each process of the one worker's life dies at its second turn.
    d, p = make(t, point + "=kill@2", handover="off")
    pid = d.workers()[1]
    t.eq(client.chat(d, "one", session="s").status, 200, "turn 1")
    r = client.chat(d, "two", session="s", stream=stream)
    t.ok(r.status is None or r.end in ("cut", "reset"),
         "%s did not kill: %r" % (point, r))
    t.eq((r.done, r.end in ("cut", "reset")), (False, True), "no end told")
    t.eq(len(p.requests) - 1, 1 if called else 0, "calls of the provider")
    wait.until(lambda: d.workers() and pid not in d.workers().values(), 10,
               "a new worker")

    def settled():
        return d.session("s")["turns"][-1]["state"] == state
    wait.until(settled, 5, "the turn to be %s" % state)
    shown = d.session("s")
    t.eq([x["state"] for x in shown["turns"]], ["complete", state], "states")
    t.eq(shown["session"]["locked"], False, "the lease is free")
    last = shown["attempts"][-1]
    t.eq(last["cls"], "ok" if answered else "lost", "the attempt")
    r = client.chat(d, "three", session="s")
    t.eq(r.status, 200, "the session goes on: %r" % r)
    want = [("user", "one"), ("assistant", "heard 1: one"), ("user", "two")]
    if answered:
        want.append(("assistant", "heard 2: two"))
    want.append(("user", "three"))
    t.eq(p.history(p.requests[-1]), want, "what the provider hears")
    t.eq(p.violations, [], "violations")
    d.stop()


def adopted_at(t, point, calls, stream):
    """The same death, with the connection adopted by another worker, whose
    own second time would be the death of it too."""
    d, p = make(t, point + "=kill@2", workers=3, handover="on")
    with d.connect_to(d.workers()[1]) as conn:
        r = client.chat(d, "one", session="s", connection=conn)
        t.eq(r.status, 200, "turn 1")
        r = client.chat(d, "two", session="s", stream=stream, connection=conn)
        t.eq((r.status, r.text, r.finish), (200, "heard 2: two", "stop"),
             repr(r))
        if stream:
            t.eq((r.done, r.end), (True, "chunked"), "its end")
        d.log.wait(r"handover: slot=1 .* given=\d+ .*lost=0 unheld=0", 5)
        t.eq(len(p.requests) - 1, calls, "calls of the provider")
        shown = d.session("s")
        t.eq([x["state"] for x in shown["turns"]], ["complete"] * 2, "turns")
        t.eq(shown["session"]["locked"], False, "the lease is free")
        t.eq([json.loads(x["body"])["content"] for x in shown["items"]],
             ["one", "heard 1: one", "two", "heard 2: two"], "history")
        r = client.chat(d, "three", session="s", connection=conn)
        t.eq((r.status, r.text), (200, "heard 3: three"), repr(r))
    t.eq(p.history(p.requests[-1])[-3:],
         [("user", "two"), ("assistant", "heard 2: two"), ("user", "three")],
         "what the provider hears")
    t.eq(p.violations, [], "violations")
    d.stop()


for _row in POINTS:
    for _stream in (False, True):
        def _case(t, row=_row, stream=_stream):
            adopted_at(t, row[0], 1, stream=stream)
        tap.case("a worker dies at %s, %s, and another goes on" % (
            _row[0], "streamed" if _stream else "plain"), 40)(_case)

for _row in POINTS:
    for _stream in (False, True):
        def _case(t, row=_row, stream=_stream):
            dies_at(t, *row, stream=stream)
        tap.case("a worker dies at %s, %s, without handover" % (
            _row[0], "streamed" if _stream else "plain"), 40)(_case)


if __name__ == "__main__":
    tap.main()
