"""Without handover: a worker that hangs (stopped by a signal) while it holds a session's lease:
it is replaced when its heartbeat is stale, its turn is settled, what waits
behind it goes on, and nothing it might still do changes a row."""
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


def make(t):
    p = provider.Provider("openai")
    t.cleanup(p.close)
    p.behave(provider.echo())
    conf = Config(workers=3, heartbeat_ms=500, handover="off")
    conf.provider("a", p, first_token_ms=30000, total_ms=60000)
    conf.route("m", ["a/model-a"], deadline_ms=60000)
    d = Daemon(conf)
    t.cleanup(d.destroy)
    return d.start(), p


@tap.case("a hung owner is replaced and its lease freed", 60)
def hung(t):
    d, p = make(t)
    gate = provider.Barrier()
    t.cleanup(gate.release)
    p.script(provider.hold(gate, provider.echo()))
    victim = client.background(client.chat, d, "one", session="s",
                               timeout=40)
    gate.wait_for(1)
    s = d.session("s")["session"]
    pid = d.workers()[s["owner_slot"]]
    os.kill(pid, signal.SIGSTOP)
    stopped = time.monotonic()
    # The provider answers into the stopped process meanwhile.
    p.behave(provider.echo())
    gate.release()

    def replaced():
        workers = d.workers()
        return len(workers) == 3 and pid not in workers.values()
    wait.until(replaced, 15, "the hung worker to be replaced", step=0.02)
    t.diag("replaced %.2f s after it hung" % (time.monotonic() - stopped))
    r = client.chat(d, "two", session="s", timeout=20)
    t.eq((r.status, r.text), (200, "heard 2: two"), repr(r))
    got = victim.get(30)
    t.ok(got.status is None or got.end in ("cut", "reset") or got.error,
         "the hung turn's client was told of no good end")
    t.eq([x["state"] for x in d.session("s")["turns"]],
         ["interrupted", "complete"], "states")
    d.stop()


@tap.case("a worker that is only slow for a moment is left alone", 40)
def slow(t):
    d, p = make(t)
    pids = set(d.workers().values())
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(0.15)	# well under the heartbeat's limit
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    t.eq(client.chat(d, "hi", session="s").status, 200, "served")
    t.eq(set(d.workers().values()), pids, "the same workers")
    d.stop()


if __name__ == "__main__":
    tap.main()
