"""What all workers share of a target: a dead one is left alone by everybody
after a few failures, one probe at a time asks whether it is back, load ramps
when it is; and a quota is kept to by all, in order of arrival."""
import itertools
import json
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import client
import provider
import tap
import wait
from daemon import Config, Daemon

_n = itertools.count(1)


def name():
    return "breaker-%d" % next(_n)


def make(t, workers=4, route=None, **keys):
    """A primary with these keys, and a fallback without."""
    a, b = provider.Provider("openai"), provider.Provider("anthropic")
    conf = Config(workers=workers)
    for n, p, more in (("a", a, keys), ("b", b, {})):
        t.cleanup(p.close)
        p.behave(provider.answer("by " + n))
        conf.provider(n, p, **more)
    conf.route("m", ["a/x", "b/y"], **(route or {}))
    conf.route("alone", ["a/x"], **(route or {}))
    d = Daemon(conf)
    t.cleanup(d.destroy)
    return d.start(), a, b


def ask(d, model="m", **more):
    return client.chat(d, "hi", session=name(), model=model, **more)


def crowd(d, n, model="m", timeout=60):
    return client.together([lambda: ask(d, model, timeout=timeout)
                            for _ in range(n)], timeout)


def all_say(t, answers, text):
    t.eq([(r.status, r.text) for r in answers if (r.status, r.text) !=
          (200, text)], [], "answers other than %r" % text)


@tap.case("a dead primary gets the threshold and what was in flight", 60)
def dead(t):
    d, a, b = make(t, breaker_failures=4, breaker_open_ms=600000)
    gate = provider.Barrier()
    a.behave(provider.hold(gate, provider.status(500)))
    calls = [client.background(ask, d) for _ in range(10)]
    gate.wait_for(10)
    gate.release()
    all_say(t, [c.get() for c in calls], "by b")
    t.eq(len(a.requests), 10, "calls in flight when it was crossed")
    for _ in range(4):
        all_say(t, crowd(d, 15), "by b")
    t.eq(len(a.requests), 10, "no call since, by any worker")
    t.eq(len(b.requests), 70, "the fallback answered each once")


@tap.case("one after the other it gets the threshold exactly")
def threshold(t):
    d, a, b = make(t, breaker_failures=4, breaker_open_ms=600000)
    a.behave(provider.reset())
    for _ in range(20):
        all_say(t, [ask(d)], "by b")
    t.eq(len(a.requests), 4, "calls")


@tap.case("rate limits, callers' faults and clients that leave are neutral")
def neutral(t):
    d, a, b = make(t, breaker_failures=2, breaker_open_ms=600000)
    for behaviour in (provider.status(429), provider.status(400)):
        a.behave(behaviour)
        for _ in range(5):
            ask(d)
    t.eq(len(a.requests), 10, "asked each time")
    a.behave(provider.silence())
    for i in range(4):
        with client.Connection(client._addr(d)) as c:
            c.send(client_request(d))
            a.wait_requests(11 + i)
        wait.until(lambda: d.metrics()["holdfast_turns_in_flight"] == 0, 10,
                   "the turn to end")
    a.behave(provider.answer("by a"))
    all_say(t, [ask(d)], "by a")


def client_request(d):
    body = json.dumps(client.body_of("hi", model="m")).encode()
    return (b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
            b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
            % (len(body), body))


@tap.case("it returns: one probe, then load ramps", 60)
def returns(t):
    d, a, b = make(t, breaker_failures=2, breaker_open_ms=1000,
                   breaker_ramp=6, first_token_ms=20000)
    a.behave(provider.status(500))
    for _ in range(3):
        all_say(t, [ask(d)], "by b")
    a.take()
    gate = provider.Barrier()
    a.behave(provider.hold(gate, provider.answer("by a")))

    def probed():
        ask(d)
        return len(a.requests)
    probe = client.background(lambda: wait.until(probed, 20, "a probe"))
    gate.wait_for(1, 20)
    b.take()
    all_say(t, crowd(d, 12), "by b")
    t.eq(len(a.requests), 1, "one probe, for all workers")
    gate.release()
    probe.get()
    # Now at most one more with each answer.
    most = provider.Barrier()
    a.behave(provider.hold(most, provider.answer("by a")))
    calls = [client.background(ask, d) for _ in range(10)]
    wait.until(lambda: len(b.requests) >= 12 + 10 - 2, 20, "the others")
    t.ok(1 <= most.arrived <= 2, "in flight: %d" % most.arrived)
    most.release()
    for c in calls:
        t.eq(c.get().status, 200, "answered")
    a.behave(provider.answer("by a"))
    for _ in range(8):
        ask(d)
    all_say(t, crowd(d, 12), "by a")


@tap.case("a probe whose client leaves does not wedge it", 60)
def probe_left(t):
    d, a, b = make(t, breaker_failures=1, breaker_open_ms=200,
                   first_token_ms=60000, total_ms=60000)
    a.behave(provider.status(500))
    ask(d)
    a.take()
    a.behave(provider.silence())
    time.sleep(0.3)	# breaker_open_ms: a clock of the daemon's
    with client.Connection(client._addr(d)) as c:
        c.send(client_request(d))
        a.wait_requests(1)
        all_say(t, [ask(d)], "by b")
    a.behave(provider.answer("by a"))
    wait.until(lambda: ask(d).text == "by a", 10, "the next probe")


@tap.case("all are open: the first that opens is probed at once")
def all_open(t):
    d, a, b = make(t, breaker_failures=1, breaker_open_ms=600000)
    a.behave(provider.status(500))
    t.eq(ask(d, "alone").status, 503, "down")
    a.behave(provider.answer("by a"))
    all_say(t, [ask(d, "alone")], "by a")


@tap.case("who waits while another one probes waits on, wait after wait", 60)
def waits_on(t):
    d, a, b = make(t, breaker_failures=1, breaker_ramp=0, first_token_ms=50000,
                   total_ms=50000, route={"max_retries": 5, "deadline_ms":
                                          50000, "backoff_unit_ms": 50})
    d.ctl("providers", "trip", "a/x", "--for", "10m")
    gate = provider.Barrier()
    a.behave(provider.hold(gate, provider.answer("by a")))
    probe = client.background(ask, d, "alone")
    gate.wait_for(1)
    other = client.background(ask, d, "alone")
    d.log.wait("turn: waiting", count=2)
    gate.release()
    all_say(t, [probe.get(), other.get()], "by a")
    t.eq(len(a.requests), 2, "calls")


# --- pace -------------------------------------------------------------------

class Quota:
    """Admits 'n' in any window; else 429."""

    def __init__(self, n, window):
        self.n, self.window = n, window
        self.lock = threading.Lock()
        self.at, self.refused = [], 0

    def __call__(self, ex):
        with self.lock:
            now = time.monotonic()
            recent = [x for x in self.at if x > now - self.window]
            full = len(recent) >= self.n
            if full:
                self.refused += 1
            else:
                self.at.append(now)
        if full:
            ms = int((recent[-self.n] + self.window - now) * 1000) + 1
            ex.error(429, "slow down", [("retry-after-ms", str(ms))])
        else:
            provider.answer("by quota")(ex)


@tap.case("a quota is kept to by all workers, and used", 60)
def quota(t):
    n, window, total = 10, 1.5, 50
    d, a, b = make(t, rpm=n, rpm_window_ms=int(window * 1000),
                   route={"deadline_ms": 60000})
    q = Quota(n, window)
    a.behave(q)
    all_say(t, crowd(d, total, "alone"), "by quota")
    t.eq(q.refused, 0, "calls beyond the quota")
    t.eq(len(a.requests), total, "calls")
    took = q.at[-1] - q.at[0]
    least = window * (total // n - 1)
    t.ok(least <= took <= least * 1.5, "%.2f s for %.2f s" % (took, least))
    t.ok(d.metrics()["holdfast_paced_waits_total"] >= total - n, "waits")


@tap.case("turns that do not fit go on, or wait, as the target says")
def when_full(t):
    d, a, b = make(t, rpm=3, when_full="next", route={"deadline_ms": 3000})
    for want in ["by a"] * 3 + ["by b"] * 4:
        all_say(t, [ask(d)], want)
    t.eq(len(a.requests), 3, "calls")
    began = time.monotonic()
    r = ask(d, "alone")
    t.ok(r.status in (429, 503), "no room within the deadline: %r" % r)
    t.ok(time.monotonic() - began < 2, "said at once")


@tap.case("max_in_flight holds over all workers", 60)
def in_flight(t):
    d, a, b = make(t, max_in_flight=3, total_ms=60000, first_token_ms=60000,
                   route={"deadline_ms": 60000})
    lock, state = threading.Lock(), {"now": 0, "most": 0}

    def slow(ex):
        with lock:
            state["now"] += 1
            state["most"] = max(state["most"], state["now"])
        time.sleep(0.05)	# an answer that takes some time
        with lock:
            state["now"] -= 1
        provider.answer("by a")(ex)
    a.behave(slow)
    all_say(t, crowd(d, 30, "alone"), "by a")
    t.ok(state["most"] <= 3, "at most 3: %d" % state["most"])


@tap.case("a client that leaves while it waits frees the turn at once")
def leaves(t):
    d, a, b = make(t, rpm=1, route={"deadline_ms": 100000})
    ask(d, "alone")
    with client.Connection(client._addr(d)) as c:
        c.send(client_request(d))
        wait.until(lambda: d.metrics()["holdfast_paced_waits_total"] == 1,
                   10, "it to wait")
    wait.until(lambda: d.metrics()["holdfast_turns_in_flight"] == 0, 10,
               "the turn to end")
    t.eq(len(a.requests), 1, "calls")


tap.main()
