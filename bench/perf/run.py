#!/usr/bin/env python3
"""Measure holdfast against nginx proxy_pass in front of the same upstream.

Prints a table, and exits with 1 when a floor is missed or an answer was
wrong.  See docs/perf.md for the method and how to build for it.
"""
import argparse
import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import machine  # noqa: E402
import targets  # noqa: E402

CONNECTIONS = 64
RATE = 300
STREAMS, CHUNKS, INTERVAL_MS = 100, 50, 20
TURNS = {"1k": 5, "50k": 2}	# of a session, before the next one begins

# name: (what it says, class, its settings, requests are turns of sessions)
TARGETS = {
    "direct": ("no proxy", None, {}, False),
    "nginx": ("nginx proxy_pass", targets.Nginx, {}, False),
    "stateless": ("holdfast, no session", targets.Holdfast, {}, False),
    "default": ("holdfast, no session, upstream_stream=always",
                targets.Holdfast, {"upstream_stream": "always"}, False),
    "full": ("holdfast, turns, synchronous=full", targets.Holdfast,
             {"synchronous": "full"}, True),
    "normal": ("holdfast, turns, synchronous=normal", targets.Holdfast,
               {"synchronous": "normal"}, True),
}

# test: (targets, bodies)
TESTS = {
    "tput": (("direct", "nginx", "stateless", "default", "full", "normal"),
             ("1k", "50k")),
    "rate": (("direct", "nginx", "stateless", "default", "full", "normal"),
             ("1k",)),
    "stream": (("direct", "nginx", "stateless", "full"), ("1k",)),
    "memory": (("nginx", "stateless"), ("-",)),
}

# (test, body, target, figure, "ratio" to nginx or "value",
#  "at least" / "at most", floor, goal)
FLOORS = [
    ("tput", "1k", "stateless", "per_s", "ratio", "at least", 0.40, 0.55),
    ("tput", "50k", "stateless", "per_s", "ratio", "at least", 0.30, 0.50),
    ("tput", "1k", "full", "per_s", "ratio", "at least", 0.18, 0.25),
    ("rate", "1k", "stateless", "p50_us", "ratio", "at most", 2.0, 1.5),
    ("stream", "1k", "stateless", "first_p50_us", "ratio", "at most", 2.5,
     1.5),
    ("stream", "1k", "stateless", "cpu_us", "ratio", "at most", 1.7, 1.3),
    ("memory", "-", "stateless", "rss_mb", "value", "at most", 45, 32),
]


def make_bodies(directory):
    """The request bodies: conversations for those that have no session, one
    message of the same size for those that have."""
    words = ("the caller said that account number and address were changed "
             "last week so please check billing again before noon").split()
    rng = random.Random(42)

    def text(size):
        out = ""
        while len(out) < size:
            out += rng.choice(words) + " "
        return out[:size] + ' "ok"\n'

    def write(name, messages, stream):
        body = {"model": "perf", "temperature": 0}
        if stream:
            body["stream"] = True
        body["messages"] = messages
        path = os.path.join(directory, name)
        with open(path, "w") as f:
            json.dump(body, f)
        return path

    out = {}
    for name, pairs, size, whole in (("1k", 4, 70, 940),
                                     ("50k", 50, 480, 51000)):
        talk = [{"role": "system", "content": text(80)}]
        for _ in range(pairs):
            talk += [{"role": "user", "content": text(size)},
                     {"role": "assistant", "content": text(size)}]
        talk.pop()
        one = [{"role": "user", "content": text(whole)}]
        for stream in (False, True):
            for kind, messages in (("talk", talk), ("one", one)):
                key = (name, kind, stream)
                out[key] = write("%s-%s-%d.json" % key, messages, stream)
    return out


class Bench:
    def __init__(self, options, directory):
        self.o = options
        self.dir = directory
        self.bodies = make_bodies(directory)
        self.rng = random.Random(options.seed)
        self.rows = {}		# (test, body, target): [figures of a round]
        self.failures = []
        self.counter = 0
        self.mocks = {}

    def program(self, name):
        return os.path.join(self.o.build, "bench", "perf", name)

    # -- starting and ending ----------------------------------------------

    def mock(self, test):
        kind = "stream" if test == "stream" else "plain"
        if kind not in self.mocks:
            behaviour = ("fill=16,chunks=%d,interval_ms=%d" %
                         (CHUNKS, INTERVAL_MS) if kind == "stream"
                         else "fill=64,chunks=4,interval_ms=0")
            self.mocks[kind] = targets.Mock(self.program("perfmock"),
                                            behaviour, self.dir)
        return self.mocks[kind]

    def start(self, name, mock, **more):
        _says, kind, settings, _turns = TARGETS[name]
        if kind is None:
            return targets.Direct(mock)
        program = (self.o.nginx if kind is targets.Nginx else
                   os.path.join(self.o.build, "holdfast"))
        return kind(program, mock.port, self.dir, **settings, **more)

    def close(self):
        for mock in self.mocks.values():
            mock.stop()

    # -- one sample -------------------------------------------------------

    def load_args(self, test, body, name, port):
        turns = TARGETS[name][3]
        kind = "one" if turns else "talk"
        args = ["-p", port, "-b", self.bodies[body, kind, test == "stream"]]
        if turns:
            self.counter += 1
            args += ["-H", "X-Holdfast-History: delta", "-T", TURNS[body],
                     "-S", "perf%d" % self.counter]
        if test == "tput":
            args += ["-m", "closed", "-c", CONNECTIONS]
        elif test == "rate":
            args += ["-m", "open", "-r", RATE]
        else:
            args += ["-m", "stream", "-c", STREAMS,
                     "-g", CHUNKS * INTERVAL_MS]
        return args

    def sample(self, test, body, name):
        """Starts the target, warms it up, measures it, ends it."""
        mock = self.mock(test)
        target = self.start(name, mock)
        try:
            args = self.load_args(test, body, name, target.port)
            targets.Load(self.program("perfload"),
                         args + ["-d", self.o.warm])
            machine.wait_quiet(0.1, self.o.patience)
            pids, mock_pids = target.pids(), mock.pids()
            asked = mock.requests()
            busy, mine = machine.busy_s(), os.times()
            cpu, ticks = machine.cpu_ns(pids), machine.ticks_s(pids + mock_pids)
            began = time.monotonic()
            args = self.load_args(test, body, name, target.port)
            load = targets.Load(self.program("perfload"),
                                args + ["-d", self.o.secs])
            took = time.monotonic() - began
            cpu = machine.cpu_ns(pids) - cpu
            ticks = machine.ticks_s(pids + mock_pids) - ticks
            busy, now = machine.busy_s() - busy, os.times()
            own = now.user + now.system - mine.user - mine.system
            r = load.result
            r["foreign"] = (busy - ticks - load.load_s - own) / took
            r["upstream"] = mock.requests() - asked
            r["proxy_cores"] = cpu / 1e9 / took
            r["cpu_ns"] = cpu
            r["rss_mb"] = machine.memory_mb(target.pids())[0]
            return r
        finally:
            target.stop()

    def quiet_sample(self, test, body, name):
        """The first sample that others hardly disturbed, or the least."""
        best = None
        for _ in range(self.o.tries):
            r = self.sample(test, body, name)
            if best is None or r["foreign"] < best["foreign"]:
                best = r
            if r["foreign"] <= self.o.max_foreign:
                break
        return best

    def check(self, what, r):
        """Nothing but right answers, all of them fetched upstream."""
        bad = {k: r[k] for k in ("status", "broken", "wrong", "under_way",
                                 "unsent") if r[k]}
        if bad or not r["latency"]["n"]:
            self.failures.append("%s: answers %s" % (what, bad))
        if r["upstream"] < r["latency"]["n"]:
            self.failures.append("%s: %d answers, but %d upstream requests" %
                                 (what, r["latency"]["n"], r["upstream"]))

    def figures(self, test, r):
        out = {"foreign": r["foreign"], "rss_mb": r["rss_mb"],
               "cores": r["proxy_cores"], "p50_us": r["latency"]["p50"],
               "p99_us": r["latency"]["p99"]}
        done = r["latency"]["n"]
        if test == "stream":
            out.update(per_s=r["chunks"] / self.o.secs,
                       first_p50_us=r["first"]["p50"],
                       first_p99_us=r["first"]["p99"],
                       chunk_p50_us=r["transit"]["p50"],
                       chunk_p99_us=r["transit"]["p99"])
            done = r["chunks"]
        else:
            out["per_s"] = r["per_s"]
        out["cpu_us"] = r["cpu_ns"] / 1e3 / max(1, done)
        return out

    def memory(self, name):
        """Nothing but what is there after a first request, idle."""
        mock = self.mock("tput")
        target = self.start(name, mock, workers=2, cpus=None)
        try:
            args = ["-m", "closed", "-p", target.port, "-c", 4, "-d", 0.3,
                    "-b", self.bodies["1k", "talk", False]]
            targets.Load(self.program("perfload"), args)
            time.sleep(1)
            rss, pss = machine.memory_mb(target.pids())
            return {"rss_mb": rss, "pss_mb": pss, "foreign": 0.0,
                    "processes": len(target.pids())}
        finally:
            target.stop()

    # -- all of it --------------------------------------------------------

    def cases(self, test):
        names, bodies = TESTS[test]
        return [(test, body, name) for body in bodies for name in names
                if not self.o.targets or name in self.o.targets]

    def round(self, number):
        cases = [c for test in self.o.tests for c in self.cases(test)]
        self.rng.shuffle(cases)
        for test, body, name in cases:
            what = "%s %s %s" % (test, body, name)
            if test == "memory":
                f = self.memory(name)
            else:
                r = self.quiet_sample(test, body, name)
                self.check(what, r)
                f = self.figures(test, r)
            self.rows.setdefault((test, body, name), []).append(f)
            print("round %d: %-24s %s" % (number, what, " ".join(
                "%s=%.4g" % kv for kv in f.items())), file=sys.stderr,
                flush=True)

    def median(self, key, figure):
        return statistics.median(f[figure] for f in self.rows[key])

    def ratio(self, key, figure):
        """Median of the ratios to nginx within each round, and its range."""
        base = self.rows.get((key[0], key[1], "nginx"))
        if base is None or key not in self.rows:
            return None
        ratios = [f[figure] / b[figure]
                  for f, b in zip(self.rows[key], base)]
        return statistics.median(ratios), min(ratios), max(ratios)


COLUMNS = {
    "tput": (("per_s", "req/s", "%.0f"), ("p50_us", "p50 us", "%.0f"),
             ("p99_us", "p99 us", "%.0f"), ("cpu_us", "CPU us", "%.1f"),
             ("rss_mb", "RSS MB", "%.0f")),
    "rate": (("p50_us", "p50 us", "%.0f"), ("p99_us", "p99 us", "%.0f"),
             ("cpu_us", "CPU us", "%.1f")),
    "stream": (("first_p50_us", "first p50", "%.0f"),
               ("first_p99_us", "first p99", "%.0f"),
               ("chunk_p50_us", "chunk p50", "%.0f"),
               ("chunk_p99_us", "chunk p99", "%.0f"),
               ("cpu_us", "CPU us", "%.1f"), ("rss_mb", "RSS MB", "%.0f")),
    "memory": (("rss_mb", "RSS MB", "%.1f"), ("pss_mb", "PSS MB", "%.1f"),
               ("processes", "processes", "%d")),
}
TITLES = {
    "tput": "Throughput, %s body, %d connections; CPU per request"
            % ("%s", CONNECTIONS),
    "rate": "Latency at %d requests/s, open loop, %%s body" % RATE,
    "stream": "%d streams of %d chunks at %d ms, %%s body; microseconds, "
              "CPU per chunk" % (STREAMS, CHUNKS, INTERVAL_MS),
    "memory": "Memory, idle, 2 workers, whole tree%.0s",
}


def print_table(bench, test, body):
    columns = COLUMNS[test]
    print("\n" + TITLES[test] % body)
    print("%-46s" % "" + "".join("%11s" % c[1] for c in columns) +
          "%9s  x nginx (CPU) in %s" % ("foreign", columns[0][1]))
    for name in TESTS[test][0]:
        key = (test, body, name)
        if key not in bench.rows:
            continue
        line = "%-46s" % TARGETS[name][0]
        for figure, _title, form in columns:
            line += "%11s" % (form % bench.median(key, figure))
        line += "%9.2f" % max(f["foreign"] for f in bench.rows[key])
        ratio = bench.ratio(key, columns[0][0])
        if ratio is not None and name != "nginx":
            line += "  %.3f [%.3f-%.3f]" % ratio
            if test != "memory" and name != "direct":
                line += " (%.2f)" % bench.ratio(key, "cpu_us")[0]
        print(line)
    added = [(n, bench.median((test, body, n), f) -
              bench.median((test, body, "direct"), f))
             for n in TESTS[test][0] if test in ("rate", "stream")
             for f in [columns[0][0]]
             if (test, body, n) in bench.rows and
             (test, body, "direct") in bench.rows and n != "direct"]
    if added:
        print("added over direct, p50: " + ", ".join(
            "%s %+.0f us" % a for a in added))


def print_verdict(bench):
    """True if no floor was missed, of those that were measured."""
    good = True
    print("\nFloors and goals")
    for test, body, name, figure, kind, way, floor, goal in FLOORS:
        key = (test, body, name)
        if key not in bench.rows:
            continue
        if kind == "ratio":
            ratio = bench.ratio(key, figure)
            if ratio is None:
                continue
            value = ratio[0]
        else:
            value = bench.median(key, figure)
        sign = 1 if way == "at least" else -1
        word = ("goal" if sign * value >= sign * goal else
                "floor" if sign * value >= sign * floor else "MISSED")
        good = good and word != "MISSED"
        unit = " x nginx" if kind == "ratio" else ""
        print("  %-7s %-7s %-10s %-13s %8.3f%s, %s %g (goal %g): %s" % (
            test, body, name, figure, value, unit, way, floor, goal, word))
    return good


def print_method(o):
    print("Method")
    print("  proxy with 1 worker on CPU %s; perfload and perfmock on CPU %s;"
          "\n  each sample starts its target anew, warms it up for %g s, "
          "measures %g s" % (targets.PROXY_CPU, targets.LOAD_CPU, o.warm,
                             o.secs))
    print("  %d rounds, targets in random order; medians; ratios are medians "
          "of the\n  ratios within a round, [least-most]" % o.rounds)
    print("  taken again, up to %d times, when others use over %.2f of a "
          "core ('foreign'\n  is the worst that was kept)" %
          (o.tries, o.max_foreign))
    print("  nginx without access log, holdfast at log_level=warn; nice %d" %
          o.nice)
    print("  plain answers are fetched with upstream_stream=client, so that "
          "both proxies\n  do the same; the line '=always' has the default, "
          "a streamed upstream call")
    print("  turns: delta clients, history grows; sessions of %d (1k) and %d "
          "(50k) turns" % (TURNS["1k"], TURNS["50k"]))


def missing(o):
    """What keeps this from running, as a sentence for each."""
    out = []
    if o.nginx is None:
        out.append("nginx is missing: install nginx-light (Debian)")
    for path in ("holdfast", "bench/perf/perfmock", "bench/perf/perfload"):
        if not os.access(os.path.join(o.build, path), os.X_OK):
            out.append("%s is missing in %s: build there first"
                       % (path, o.build))
    if out:
        return out
    with open(os.path.join(o.build, "holdfast"), "rb") as f:
        program = f.read()
    if b"__asan_init" in program or b"__ubsan_handle" in program:
        out.append("holdfast is built with sanitizers: "
                   "configure CFLAGS='-O2 -g' without --enable-asan")
    with open(os.path.join(o.build, "config.h")) as f:
        if "#define HF_FAULTS 1" in f.read():
            out.append("holdfast is built with --enable-faults")
    if len(os.sched_getaffinity(0)) < 2:
        out.append("two processors are needed")
    return out


def options():
    p = argparse.ArgumentParser(description=__doc__, epilog="Tests: " +
                                ", ".join(TESTS) + ".  Targets: " +
                                ", ".join(TARGETS) + ".")
    p.add_argument("--build", default=os.environ.get("HF_BUILDDIR", "."),
                   help="build directory (default: $HF_BUILDDIR or .)")
    p.add_argument("--nginx", help="the nginx program",
                   default=shutil.which("nginx", path=os.environ.get(
                       "PATH", "") + ":/usr/sbin:/usr/local/sbin"))
    p.add_argument("--tests", type=lambda s: s.split(","),
                   default=list(TESTS), help="only these, with commas")
    p.add_argument("--targets", type=lambda s: s.split(","),
                   help="only these, with commas")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--secs", type=float, default=4.0)
    p.add_argument("--warm", type=float, default=1.0)
    p.add_argument("--max-foreign", type=float, default=0.10,
                   help="cores that others may use during a sample")
    p.add_argument("--tries", type=int, default=4,
                   help="samples until the least disturbed one is kept")
    p.add_argument("--patience", type=int, default=8,
                   help="quarter seconds to wait for a quiet machine")
    p.add_argument("--nice", type=int, default=0, help="priority of all "
                   "that is measured, e.g. -10 on a machine in use (root)")
    p.add_argument("--seed", type=int, default=1, help="of the order")
    p.add_argument("--dir", help="where databases are put for the time "
                   "(default: $TMPDIR or /tmp; tmpfs makes fsync a fiction)")
    p.add_argument("--json", help="write every sample's figures here")
    o = p.parse_args()
    for name in o.tests:
        if name not in TESTS:
            p.error("no test '%s'" % name)
    for name in o.targets or ():
        if name not in TARGETS:
            p.error("no target '%s'" % name)
    o.build = os.path.abspath(o.build)
    targets.NICE = o.nice
    return o


def main():
    o = options()
    wrong = missing(o)
    if wrong:
        print("\n".join("perf: " + w for w in wrong), file=sys.stderr)
        return 2
    directory = tempfile.mkdtemp(prefix="hf-perf.", dir=o.dir)
    bench = Bench(o, directory)
    try:
        print("Machine")
        for what in machine.description(
                o.nginx, os.path.join(o.build, "holdfast"), directory):
            print("  %-12s %s" % what)
        print_method(o)
        sys.stdout.flush()
        for number in range(1, o.rounds + 1):
            bench.round(number)
    except targets.Failure as e:
        print("perf: %s" % e, file=sys.stderr)
        return 1
    finally:
        bench.close()
        shutil.rmtree(directory, ignore_errors=True)
    for test in o.tests:
        for body in TESTS[test][1]:
            print_table(bench, test, body)
    good = print_verdict(bench)
    for line in bench.failures:
        print("FAILED " + line)
    if o.json:
        with open(o.json, "w") as f:
            json.dump({"rows": [{"test": k[0], "body": k[1], "target": k[2],
                                 "rounds": v}
                                for k, v in bench.rows.items()],
                       "failures": bench.failures}, f, indent=1)
    return 0 if good and not bench.failures else 1


if __name__ == "__main__":
    sys.exit(main())
