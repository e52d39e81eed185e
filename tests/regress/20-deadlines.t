"""Providers that keep the line alive and say nothing, or too little: the next
target's words are there within the deadline and 500 ms, in both dialects, for
clients that stream and for those that do not.  bench/deadlines.py measures the
median."""
import itertools
import os
import sys

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import client
import stalls
import tap
from daemon import Daemon, shared

LATE_MS = 500 * tap.SCALE
ROUNDS = 10 if os.environ.get("HF_TEST_LONG") else 2

setup = stalls.Setup()
get_daemon = shared(lambda: Daemon(setup.config(workers=2)).start())


def one(t, d, stall, first, stream, n):
    what = "%s, %s first, %s, round %d" % (
        stall, first, "stream" if stream else "plain", n)
    session = "%s-%s-%d-%d" % (stall, first, stream, n)
    late = setup.measure(d, stall, first, stream, session)
    r = late.response
    t.eq((r.status, r.text, r.finish), (200, stalls.FULL, "stop"),
         "%s: %r" % (what, r))
    t.eq(r.done, stream, what + ": [DONE]")
    shown = d.ctl("sessions", "show", session, "--attempts")
    t.eq([a["reason"] for a in shown["attempts"]],
         [stalls.STALLS[stall][3], "ok"], what)
    # Not early either, but for what the request was under way.
    t.between(late.ms, -100, LATE_MS, what + ": ms after the deadline")
    return late.ms


for _stall in stalls.STALLS:
    def _case(t, stall=_stall):
        d = get_daemon()
        took = client.together([
            lambda a=a: one(t, d, stall, *a) for a in itertools.product(
                setup.providers, (True, False), range(ROUNDS))], 60)
        t.diag("at most %.0f ms after the deadline" % max(took))
    tap.case(stalls.TITLES[_stall], 40)(_case)


tap.main()
