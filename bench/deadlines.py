#!/usr/bin/env python3
"""How late the next target's words come when a provider keeps the line alive
and says nothing, or too little.

    bench/deadlines.py [--rounds N] [--at-once N] [BUILD]

BUILD is a build directory (default: build).  Prints, for each way to stall,
each dialect and each kind of client, the median and the longest time from the
deadline to the next target's first words.  Exits with 1 when a median is over
100 ms or any time over 500 ms, or when an answer was wrong.
"""
import argparse
import itertools
import os
import statistics
import sys

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TOP, "tests", "harness"))
MEDIAN_MS = 100
LONGEST_MS = 500


def options():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("--rounds", type=int, default=20)
    p.add_argument("--at-once", type=int, default=4,
                   help="turns under way at a time")
    p.add_argument("build", nargs="?", default=os.path.join(TOP, "build"))
    o = p.parse_args()
    if not os.access(os.path.join(o.build, "holdfast"), os.X_OK):
        p.error("no holdfast in %s" % o.build)
    return o


def measure(o, client, stalls, daemon, setup, stall, first, stream):
    """The times in ms after the deadline; None for a wrong answer."""
    def one(n):
        late = setup.measure(daemon, stall, first, stream,
                             "%s-%s-%d-%d" % (stall, first, stream, n))
        r = late.response
        good = r.status == 200 and r.text == stalls.FULL
        return late.ms if good else None
    out = []
    for i in range(0, o.rounds, o.at_once):
        out += client.together([lambda n=n: one(n) for n in range(
            i, min(i + o.at_once, o.rounds))], 120)
    return out


def main():
    o = options()
    os.environ["HF_SRCDIR"] = TOP
    os.environ["HF_BUILDDIR"] = os.path.abspath(o.build)
    import client
    import stalls
    from daemon import Daemon
    setup = stalls.Setup()
    daemon = Daemon(setup.config(workers=2, log_level="info")).start()
    bad = False
    print("%-28s %-10s %-7s %9s %9s %6s" % (
        "the first target", "dialect", "client", "median ms", "longest",
        "turns"))
    try:
        for stall, first, stream in itertools.product(
                stalls.STALLS, setup.providers, (True, False)):
            took = measure(o, client, stalls, daemon, setup, stall, first,
                           stream)
            if None in took:
                print("%s %s: a wrong answer" % (stall, first))
                bad = True
                continue
            median = statistics.median(took)
            missed = median > MEDIAN_MS or max(took) > LONGEST_MS
            bad = bad or missed
            print("%-28s %-10s %-7s %9.1f %9.1f %6d%s" % (
                stalls.TITLES[stall], first, "stream" if stream else "plain",
                median, max(took), len(took), "  MISSED" if missed else ""),
                flush=True)
        daemon.stop()
    finally:
        daemon.destroy()
        setup.close()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
