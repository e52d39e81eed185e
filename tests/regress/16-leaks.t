"""Descriptors and memory stay flat over turns that succeed, fail, break off
and lose their clients; nothing is left in flight."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import client
import provider
import tap
import wait
from daemon import Config, Daemon, shared

A = provider.Provider("openai")
B = provider.Provider("anthropic")
TURNS = 10000 if os.environ.get("HF_TEST_LONG") else 1200


def make():
    conf = Config(workers=2)
    conf.provider("a", A)
    conf.provider("b", B)
    conf.route("m", ["a/model-a", "b/model-b"])
    return Daemon(conf).start()


get_daemon = shared(make)

# By what the last user message says.
FAULTS = {
    "0": provider.answer("fine"), "1": provider.status(503),
    "2": provider.reset(), "3": provider.cut("one two three", 2, "drop"),
    "4": provider.error_in_200(), "5": provider.status(400),
    "6": provider.hang_up(), "7": provider.cut("one two", 1, "close"),
    "8": provider.raw_reply(b"{"), "9": provider.answer("fine"),
}


def by_number(ex):
    FAULTS[ex.request.last_user()[-1]](ex)


def vanish(d, i):
    """A client that leaves while its turn is under way."""
    with client.Connection(d.addr) as c:
        c.request("POST", "/v1/chat/completions", client.headers_of(
            "v-%d" % (i % 50)), json.dumps(client.body_of(
                "turn %d" % i, stream=i % 2 == 0)).encode())


def run(d, n):
    def some(k):
        for i in range(k, n, 16):
            if i % 7 == 0:
                vanish(d, i)
            else:
                client.chat(d, "turn %d" % i, session="s-%d" % (
                    i % 50 + 100 * k), stream=i % 3 == 0)
    client.together([lambda k=k: some(k) for k in range(16)], 300)

    def quiet():
        m = d.metrics()
        return (m["holdfast_turns_in_flight"] == 0 and
                d.ctl("status")["store"]["open_turns"] == 0)
    wait.until(quiet, 20, "no turn in flight", step=0.05)


def measure(d):
    """{pid: (descriptors, resident kB)} of the tree."""
    out = {}
    for pid in d.pids():
        with open("/proc/%d/status" % pid, encoding="ascii") as f:
            rss = [int(line.split()[1]) for line in f
                   if line.startswith("VmRSS")][0]
        out[pid] = (len(os.listdir("/proc/%d/fd" % pid)), rss)
    return out


@tap.case("descriptors and memory are flat over %d turns" % TURNS, 400)
def flat(t):
    d = get_daemon()
    A.behave(by_number)
    B.behave(by_number)
    run(d, 400)
    before = measure(d)
    run(d, TURNS)
    A.cut_idle()
    B.cut_idle()

    def settled():
        after = measure(d)
        return all(after[p][0] <= before[p][0] + 20 for p in before)
    wait.until(settled, 15, "descriptors to be closed: %r, %r" % (
        before, measure(d)), step=0.1)
    after = measure(d)
    t.diag("before %r" % before)
    t.diag("after %r" % after)
    t.eq(set(after), set(before), "the same processes")
    sanitized = "__asan" in open(
        os.path.join(os.environ["HF_BUILDDIR"], "holdfast"), "rb").read(
            ).decode("latin-1")
    for p in before:
        if not sanitized:	# which keeps what is freed for a while
            t.between(after[p][1] - before[p][1], -1 << 20, 24 * 1024,
                      "kB grown by %d" % p)
    t.eq(A.violations + B.violations, [], "violations")
    shown = d.ctl("sessions", "list", "--limit", "1000")
    t.eq([s for s in shown if s["locked"] or s["queued"]], [],
         "no lease is held")


if __name__ == "__main__":
    tap.main()
