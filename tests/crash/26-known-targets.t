"""What is known of targets outlives workers and the daemon, whatever ends it:
open breakers, hints, learned quotas, and the calls in their windows."""
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import client
import dialect as words
import provider
import tap
import wait
from daemon import Config, Daemon


def make(t, workers=2, **keys):
    a, b = provider.Provider("openai"), provider.Provider("openai")
    conf = Config(workers=workers, log_level="info")
    for n, p, more in (("a", a, keys), ("b", b, {})):
        t.cleanup(p.close)
        p.behave(provider.answer("by " + n))
        conf.provider(n, p, **more)
    conf.route("m", ["a/x", "b/y"])
    d = Daemon(conf)
    t.cleanup(d.destroy)
    return d.start(), a, b


def say(t, d, n, want):
    got = [client.chat(d, "hi", model="m") for _ in range(n)]
    t.eq([(r.status, r.text) for r in got], [(200, want)] * n, "answers")


def written(d, calls, learned):
    """Until the file has so many calls, and a quota if one was learned."""
    def is_there():
        try:
            with open(d.db_path + ".targets", encoding="ascii") as f:
                rows = [line.split() for line in f]
        except FileNotFoundError:
            return False
        quota = [r for r in rows if r[0] == "row" and r[6] != "0"]
        return (sum(r[0] == "call" for r in rows) == calls and
                bool(quota) == learned)
    wait.until(is_there, 10, "the file")


def worker(d, calls, learned):
    pid = list(d.workers().values())[0]
    os.kill(pid, signal.SIGKILL)
    wait.until(lambda: len(d.workers()) == 2 and
               pid not in d.workers().values(), 20, "a new worker")


def stop(d, calls, learned):
    d.stop()
    d.start()


def kill(d, calls, learned):
    written(d, calls, learned)
    d.kill_tree()
    d.start()


ENDS = {"a worker that is killed": worker, "TERM": stop,
        "kill -9 of all processes": kill}


def each(case):
    for name, end in ENDS.items():
        tap.case("%s: %s" % (case.__doc__, name), 60)(
            lambda t, end=end: case(t, end))


@each
def breaker(t, end):
    """an open breaker stays open"""
    d, a, b = make(t, breaker_failures=3, breaker_open_ms=600000)
    a.behave(provider.status(500))
    say(t, d, 5, "by b")
    t.eq(len(a.requests), 3, "calls until it opened")
    end(d, 8, False)
    say(t, d, 5, "by b")
    t.eq(len(a.requests), 3, "no call since")


@each
def hint(t, end):
    """a provider's hint holds"""
    d, a, b = make(t, breaker_failures=3)
    a.behave(lambda ex: ex.error(429, "later", [("retry-after", "600")]))
    say(t, d, 3, "by b")
    end(d, 4, False)
    say(t, d, 3, "by b")
    t.eq(len(a.requests), 1, "calls")


@each
def window(t, end):
    """the calls in a quota's window are counted"""
    d, a, b = make(t, rpm=5, when_full="next")
    say(t, d, 3, "by a")
    end(d, 3, False)
    say(t, d, 2, "by a")
    say(t, d, 3, "by b")
    t.eq(len(a.requests), 5, "calls in the window")


@each
def learned(t, end):
    """a quota that was learned is known"""
    d, a, b = make(t, breaker_failures=3, slow_start=4)
    limit = [("x-ratelimit-limit-requests", "5"),
             ("x-ratelimit-reset-requests", "12s")]
    a.behave(lambda ex: ex.say(words.Said("by a"), limit))
    say(t, d, 3, "by a")
    end(d, 3, True)
    a.behave(provider.answer("by a"))
    say(t, d, 2, "by a")
    say(t, d, 3, "by b")
    t.eq(len(a.requests), 5, "calls in the window")


@tap.case("a file that is not whole is forgotten, and said so", 60)
def torn(t):
    d, a, b = make(t, breaker_failures=3, breaker_open_ms=600000)
    a.behave(provider.status(500))
    say(t, d, 5, "by b")
    d.stop()
    path = d.db_path + ".targets"
    with open(path, "rb") as f:
        text = f.read()
    t.eq(os.stat(path).st_mode & 0o777, 0o600, "its mode")
    with open(path, "wb") as f:
        f.write(text[:-5])
    a.behave(provider.answer("by a"))
    d.start()
    t.ok(d.log.find(r"not whole\s+or too old"), "a line in the log")
    say(t, d, 1, "by a")


tap.main()
