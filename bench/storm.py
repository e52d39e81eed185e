#!/usr/bin/env python3
"""Measure a storm: many sessions fail over at once onto a rate-limited target.

The primary is dead, the fallback admits a quota in any window and refuses the
rest with 429 and the time to wait.  Played with pacing (rpm configured), with
fixed 2 s retries, and with exponential backoff and jitter.  Exits with 1 when,
with pacing, a session was not answered, the quota was passed, draining took
over 1.15 times the quota's own minimum, or over 1.02 calls were made for each
answer.
"""
import argparse
import os
import sys
import threading
import time

sys.dont_write_bytecode = True
_SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(_SOURCE, "tests", "harness"))

LONGEST, PER_ANSWER = 1.15, 1.02


class Quota:
    """Admits 'n' calls in any window."""

    def __init__(self, n, window):
        self.n, self.window = n, window
        self.lock = threading.Lock()
        self.at, self.calls = [], 0

    def __call__(self, ex):
        with self.lock:
            now = time.monotonic()
            recent = [x for x in self.at if x > now - self.window]
            self.calls += 1
            full = len(recent) >= self.n
            if not full:
                self.at.append(now)
        if not full:
            ex.say(words.Said("an answer"))
            return
        ms = int((recent[-self.n] + self.window - now) * 1000) + 1
        ex.error(429, "slow down", [("retry-after-ms", str(ms))])


def policies(o):
    ms = int(o.window * 1000)
    return (("paced", {"rpm": o.quota, "rpm_window_ms": ms}, {}),
            ("fixed 2 s", {}, {"max_retries": 5, "backoff_unit_ms": 2000,
                               "backoff_cap_ms": 2000}),
            ("backoff", {}, {"max_retries": 5, "backoff_unit_ms": 1000,
                             "backoff_cap_ms": 30000}))


def run(o, target_keys, route_keys):
    """(answered, calls, seconds, most in a window)"""
    dead, limited = provider.Provider("openai"), provider.Provider("openai")
    quota = Quota(o.quota, o.window)
    dead.behave(provider.status(503))
    limited.behave(quota)
    conf = Config(workers=4, log_level="info")
    conf.provider("dead", dead, breaker_failures=5)
    conf.provider("limited", limited, first_token_ms=30000, **target_keys)
    conf.route("m", ["dead/x", "limited/y"], **dict(
        {"deadline_ms": int(o.deadline * 1000)}, **route_keys))
    d = Daemon(conf)
    try:
        d.start()
        began = time.monotonic()
        answers = client.together(
            [lambda i=i: client.chat(d, "hi", session="s%d" % i, model="m",
                                     timeout=o.deadline + 10)
             for i in range(o.sessions)], o.deadline + 20)
        took = time.monotonic() - began
    finally:
        d.destroy()
        dead.close()
        limited.close()
    at = quota.at
    most = max(sum(1 for y in at if x <= y < x + o.window) for x in at)
    return (sum(r.status == 200 for r in answers), quota.calls, took, most)


def options():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--build", required=True, help="build directory")
    p.add_argument("--sessions", type=int, default=100)
    p.add_argument("--quota", type=int, default=15)
    p.add_argument("--window", type=float, default=3.0, help="seconds")
    p.add_argument("--deadline", type=float, default=120.0, help="of a turn")
    return p.parse_args()


def main():
    o = options()
    least = ((o.sessions + o.quota - 1) // o.quota - 1) * o.window
    print("%d sessions, %d calls in any %g s: at least %g s" % (
        o.sessions, o.quota, o.window, least))
    print("%-10s %9s %6s %11s %8s %9s" % (
        "", "answered", "calls", "per answer", "seconds", "of least"))
    failed = False
    for name, target_keys, route_keys in policies(o):
        answered, calls, took, most = run(o, target_keys, route_keys)
        print("%-10s %9d %6d %11.2f %8.1f %9.2f" % (
            name, answered, calls, calls / max(1, answered), took,
            took / least))
        sys.stdout.flush()
        if name == "paced" and (
                answered < o.sessions or calls > PER_ANSWER * answered or
                took > LONGEST * least or most > o.quota):
            print("FAILED")
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    build = options().build
    os.environ["HF_BUILDDIR"] = os.path.abspath(build)
    os.environ.setdefault("HF_SRCDIR", _SOURCE)
    import client
    import dialect as words
    import provider
    from daemon import Config, Daemon
    code = main()
    sys.stdout.flush()
    os._exit(code)
