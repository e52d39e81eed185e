"""Workers that die in the middle of calls: a probe ends with its worker, and
no call in flight is counted for ever."""
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import client
import provider
import tap
import wait
from daemon import Config, Daemon

KILLS = int(os.environ.get("HF_KILLS", "8"))


def make(t, workers, **keys):
    a, b = provider.Provider("openai"), provider.Provider("openai")
    conf = Config(workers=workers)
    for n, p, more in (("a", a, keys), ("b", b, {})):
        t.cleanup(p.close)
        p.behave(provider.answer("by " + n))
        conf.provider(n, p, first_token_ms=60000, total_ms=60000, **more)
    conf.route("m", ["a/x", "b/y"], deadline_ms=60000)
    conf.route("alone", ["a/x"], deadline_ms=60000)
    d = Daemon(conf)
    t.cleanup(d.destroy)
    return d.start(), a, b


def kill(d, pid):
    os.kill(pid, signal.SIGKILL)
    wait.until(lambda: d.workers() and pid not in d.workers().values(), 20,
               "a new worker")


@tap.case("a probe whose worker is killed does not wedge the target", 60)
def probe(t):
    d, a, b = make(t, 1, breaker_failures=1, breaker_open_ms=1)
    a.behave(provider.status(500))
    t.eq(client.chat(d, "hi").text, "by b", "the target fails")
    a.take()
    a.behave(provider.silence())
    time.sleep(0.05)	# breaker_open_ms, by the clock of the daemon
    call = client.background(client.chat, d, "hi", timeout=60)
    a.wait_requests(1)
    t.eq(client.chat(d, "hi").text, "by b", "nobody else goes there")
    a.behave(provider.answer("by a"))
    kill(d, list(d.workers().values())[0])
    wait.until(lambda: client.chat(d, "hi").text == "by a", 20,
               "the next probe")
    call.get(60)


@tap.case("calls of killed workers are counted no more", 30 + 4 * KILLS)
def in_flight(t):
    d, a, b = make(t, 1, max_in_flight=2)
    calls = []
    for i in range(KILLS):
        gate = provider.Barrier()
        t.cleanup(gate.release)
        a.take()
        a.behave(provider.hold(gate, provider.answer("held")))
        calls += [client.background(client.chat, d, "hi", model="alone",
                                    timeout=60) for _ in range(2)]
        gate.wait_for(2)
        a.behave(provider.answer("by a"))
        kill(d, list(d.workers().values())[0])
        r = client.chat(d, "hi", model="alone")
        t.eq((r.status, r.text), (200, "by a"), "after kill %d" % (i + 1))
    for c in calls:
        c.get(60)


tap.main()
