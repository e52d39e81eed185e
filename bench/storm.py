#!/usr/bin/env python3
"""Measure a storm: many sessions fail over at once onto a rate-limited target.

The primary is dead, the fallback admits a quota in any window and refuses the
rest with 429 and the time to wait.  Played with pacing (rpm configured), with a
quota that has to be learned, with fixed 2 s retries, and with exponential
backoff and jitter.  Exits with 1 when, paced or learning, a session was not
answered, the quota was passed or asked for more than it is, draining took over
1.15 times the quota's own minimum, more calls were made than were promised for
each answer, or sockets or memory grew with more than the sessions.
"""
import argparse
import os
import sys
import threading
import time

sys.dont_write_bytecode = True
_SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(_SOURCE, "tests", "harness"))
import client
import dialect as words
import provider
from daemon import Config, Daemon

PER_ANSWER = {"paced": 1.02, "learning": 1.3}
# A client's connection is a descriptor of its worker and one of the master's;
# upstream there are never more than calls that may be made at once.
SOCKETS_EACH, SOCKETS_MORE = 2, 120
MEMORY_EACH = 256 * 1024	# bytes for each session, in all processes


class Quota:
    """Admits 'n' calls in any window."""

    def __init__(self, n, window):
        self.n, self.window = n, window
        self.lock = threading.Lock()
        self.at, self.refused, self.calls = [], [], 0

    def __call__(self, ex):
        with self.lock:
            now = time.monotonic()
            recent = [x for x in self.at if x > now - self.window]
            self.calls += 1
            full = len(recent) >= self.n
            (self.refused if full else self.at).append(now)
        if not full:
            ex.say(words.Said("an answer"))
            return
        ms = int((recent[-self.n] + self.window - now) * 1000) + 1
        ex.error(429, "slow down", [("retry-after-ms", str(ms))])

    def most(self):
        """Admitted in a window."""
        return max([sum(1 for y in self.at if x <= y < x + self.window)
                    for x in self.at] or [0])

    def late_refusals(self):
        """Refused after the first window with a refusal: it was known."""
        if not self.refused:
            return 0
        known = self.refused[0] + self.window
        return sum(1 for x in self.refused if x >= known)


class Watch(threading.Thread):
    """What the processes of a daemon hold: sockets and memory, at most."""

    def __init__(self, daemon):
        super().__init__(daemon=True)
        self.pids = daemon.pids()
        self.stopped = threading.Event()
        self.sockets, self.memory = self.look()
        self.began = (self.sockets, self.memory)

    def look(self):
        sockets = memory = 0
        for pid in self.pids:
            try:
                fds = "/proc/%d/fd" % pid
                for fd in os.listdir(fds):
                    try:
                        sockets += os.readlink(
                            "%s/%s" % (fds, fd)).startswith("socket:")
                    except OSError:
                        pass
                with open("/proc/%d/status" % pid, encoding="latin-1") as f:
                    memory += sum(int(line.split()[1]) * 1024 for line in f
                                  if line.startswith("RssAnon:"))
            except OSError:
                pass
        return sockets, memory

    def run(self):
        while not self.stopped.wait(0.1):
            s, m = self.look()
            self.sockets, self.memory = (max(self.sockets, s),
                                         max(self.memory, m))

    def end(self):
        """(sockets, bytes) more than at the start."""
        self.stopped.set()
        self.join()
        return (self.sockets - self.began[0], self.memory - self.began[1])


def policies(o):
    ms = int(o.window * 1000)
    retry = {"max_retries": 5}
    return (("paced", {"rpm": o.quota, "rpm_window_ms": ms}, retry),
            ("learning", {"slow_start": 8}, retry),
            ("fixed 2 s", {}, {"max_retries": 5, "backoff_unit_ms": 2000,
                               "backoff_cap_ms": 2000}),
            ("backoff", {}, {"max_retries": 5, "backoff_unit_ms": 1000,
                             "backoff_cap_ms": 30000}))


class Outcome:
    """How a storm went."""

    def __init__(self, o, name):
        self.o, self.name = o, name
        self.answered = self.calls = self.most = self.late = 0
        self.seconds = 0.0
        self.sockets = self.memory = 0

    def line(self):
        return "%-10s %9d %6d %11.2f %8.1f %9.2f %8d %7.1f" % (
            self.name, self.answered, self.calls,
            self.calls / max(1, self.answered), self.seconds,
            self.seconds / least(self.o), self.sockets, self.memory / 2**20)

    def faults(self):
        """What is wrong with it, if it is a policy that promises something."""
        n = self.o.sessions
        if self.name not in PER_ANSWER:
            return []
        found = []
        for bad, text in (
                (self.answered < n, "only %d of %d answered" % (
                    self.answered, n)),
                (self.calls > PER_ANSWER[self.name] * self.answered,
                 "%d calls for %d answers" % (self.calls, self.answered)),
                (self.seconds > self.o.longest * least(self.o),
                 "%.1f s where %.1f are needed" % (self.seconds,
                                                   least(self.o))),
                (self.most > self.o.quota, "%d in a window" % self.most),
                (self.late > 0, "%d refused when the quota was known" %
                 self.late),
                (self.sockets > SOCKETS_EACH * n + SOCKETS_MORE,
                 "%d sockets more" % self.sockets),
                (self.memory > MEMORY_EACH * n + 2**25,
                 "%d bytes more" % self.memory)):
            if bad:
                found.append("%s: %s" % (self.name, text))
        return found


def least(o):
    """The quota's own minimum, in seconds."""
    return ((o.sessions + o.quota - 1) // o.quota - 1) * o.window


def run(o, name):
    out = Outcome(o, name)
    target_keys, route_keys = [(t, r) for n, t, r in policies(o)
                               if n == name][0]
    dead, limited = provider.Provider("openai"), provider.Provider("openai")
    quota = Quota(o.quota, o.window)
    dead.behave(provider.status(503))
    limited.behave(quota)
    conf = Config(workers=4, log_level="info")
    # In proportion to a minute, as by default.
    conf.provider("dead", dead, breaker_failures=5,
                  breaker_open_ms=int(o.window * 1000 / 6))
    conf.provider("limited", limited, first_token_ms=30000, **target_keys)
    conf.route("m", ["dead/x", "limited/y"], **dict(
        {"deadline_ms": int(o.deadline * 1000)}, **route_keys))
    d = Daemon(conf)
    try:
        d.start()
        watch = Watch(d)
        watch.start()
        began = time.monotonic()
        answers = client.together(
            [lambda i=i: client.chat(d, "hi", session="s%d" % i, model="m",
                                     timeout=o.deadline + 10)
             for i in range(o.sessions)], o.deadline + 20)
        out.seconds = time.monotonic() - began
        out.sockets, out.memory = watch.end()
    finally:
        d.destroy()
        dead.close()
        limited.close()
    out.answered = sum(r.status == 200 for r in answers)
    out.calls, out.most = quota.calls, quota.most()
    out.late = quota.late_refusals()
    return out


def options(args=None):
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--build", help="build directory (or HF_BUILDDIR)")
    p.add_argument("--sessions", type=int, default=100)
    p.add_argument("--quota", type=int, default=15)
    p.add_argument("--window", type=float, default=3.0, help="seconds")
    p.add_argument("--deadline", type=float, default=120.0, help="of a turn")
    p.add_argument("--longest", type=float, default=1.15,
                   help="times the quota's own minimum")
    p.add_argument("--policy", action="append",
                   help="only this one; may be given again")
    return p.parse_args(args)


def main():
    o = options()
    if o.build:
        os.environ["HF_BUILDDIR"] = os.path.abspath(o.build)
    os.environ.setdefault("HF_SRCDIR", _SOURCE)
    print("%d sessions, %d calls in any %g s: at least %g s" % (
        o.sessions, o.quota, o.window, least(o)))
    print("%-10s %9s %6s %11s %8s %9s %8s %7s" % (
        "", "answered", "calls", "per answer", "seconds", "of least",
        "sockets", "MB"))
    failed = []
    for name in o.policy or [n for n, _, _ in policies(o)]:
        out = run(o, name)
        print(out.line())
        sys.stdout.flush()
        failed += out.faults()
    for text in failed:
        print("FAILED: " + text)
    return 1 if failed else 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)
