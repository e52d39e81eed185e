#!/usr/bin/env python3
"""What handover costs: processor time of a streamed turn of 50 chunks with
handover on, over the same with handover off, in pairs whose order alternates.
Exits with 1 if the median of the ratios is over the bound."""
import argparse
import os
import statistics
import sys
import tempfile
import types

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import machine		# noqa: E402
import run		# noqa: E402
import targets		# noqa: E402

BOUND = 1.10


def sample(bench, name, handover, secs):
    """Processor time of all processes per streamed turn, in microseconds."""
    target = bench.start(name, bench.mock("stream"), handover=handover)
    try:
        args = bench.load_args("stream", "1k", name, target.port)
        program = bench.program("perfload")
        targets.Load(program, args + ["-d", 1])
        before = machine.cpu_ns(target.pids())
        load = targets.Load(program, args + ["-d", secs])
        cpu = machine.cpu_ns(target.pids()) - before
        chunks = load.result["chunks"]
        if not chunks or load.result["wrong"] or load.result["broken"]:
            raise targets.Failure("answers were wrong or missing")
        return cpu / 1e3 / (chunks / run.CHUNKS)
    finally:
        target.stop()


def options():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--build", default=os.environ.get("HF_BUILDDIR", "."))
    p.add_argument("--pairs", type=int, default=15)
    p.add_argument("--secs", type=float, default=3)
    p.add_argument("--streams", type=int, default=400, help="""at a time; few
                   leave the machine idle in between, and then it is its
                   waking up that is measured""")
    p.add_argument("--target", default="full",
                   choices=("stateless", "default", "full", "normal"))
    p.add_argument("--dir", default=os.environ.get("TMPDIR", "/tmp"))
    return p.parse_args()


def main():
    o = options()
    run.STREAMS = o.streams
    ratios = []
    with tempfile.TemporaryDirectory(prefix="hf-handover.", dir=o.dir) as d:
        bench = run.Bench(types.SimpleNamespace(
            build=o.build, nginx="nginx", seed=1), d)
        try:
            for i in range(o.pairs):
                order = ("on", "off") if i % 2 == 0 else ("off", "on")
                us = {h: sample(bench, o.target, h, o.secs) for h in order}
                ratios.append(us["on"] / us["off"])
                print("pair %2d: on %6.0f us a turn, off %6.0f, ratio %.3f" % (
                    i + 1, us["on"], us["off"], ratios[-1]), flush=True)
        finally:
            bench.close()
    median = statistics.median(ratios)
    print("%s: median of %d pairs %.3f (%.3f to %.3f), bound %.2f" % (
        o.target, len(ratios), median, min(ratios), max(ratios), BOUND))
    return 0 if median <= BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
