"""Many clients of streams leave in one moment: their providers are hung up on
at once, what they got is kept, and nobody else notices."""
import json
import os
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import client
import dialect as words
import provider
import tap
import wait
from daemon import Config, Daemon, shared

A = provider.Provider("openai")
B = provider.Provider("openai")
LEAVERS = 120
TEXT = "".join("w%03d " % i for i in range(200))


def make():
    conf = Config(workers=2, flush_ms=20, log_level="info")
    conf.provider("a", A, first_token_ms=20000, idle_ms=20000)
    conf.provider("b", B, first_token_ms=20000)
    conf.route("stay", ["a/x"])
    conf.route("quick", ["b/x"])
    return Daemon(conf).start()


get_daemon = shared(make)


def begins(ex):
    """Says a little, and then waits for its peer to leave."""
    ex.start()
    for event in ex.events(words.Said(TEXT))[:20]:
        ex.chunk(event)
    ex.wait_gone()
    ex.close()


def begin(d, n):
    """A stream that has begun."""
    s = socket.create_connection(d.addr, 30)
    body = json.dumps(client.body_of("tell me", "stay", True)).encode()
    session = "X-Holdfast-Session: leave-%d\r\n" % n if n % 2 else ""
    s.sendall(("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n%s"
               "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n"
               % (session, len(body))).encode() + body)
    data = b""
    while b"w010" not in data:
        data += s.recv(4096)
    return s


class Others:
    """Turns one after the other, until told to stop."""

    def __init__(self, d, n=4):
        self.took, self.wrong, self.stop = [], [], False
        self.threads = [client.background(self._run, d, i) for i in range(n)]

    def _run(self, d, i):
        with client.Connection(d.addr, 30) as c:
            while not self.stop:
                began = time.monotonic()
                r = client.chat(d, "recall x", session="other-%d" % i,
                                model="quick", connection=c)
                if r.status != 200 or r.text != "x is unknown":
                    self.wrong.append(repr(r))
                self.took.append((began, time.monotonic() - began))

    def worst(self, since, until):
        return max(took for began, took in self.took
                   if began + took >= since and began < until)

    def end(self):
        self.stop = True
        for t in self.threads:
            t.get(30)


@tap.case("%d clients leave at once" % LEAVERS, 90)
def leave(t):
    d = get_daemon()
    A.behave(begins)
    B.behave(provider.echo())
    socks = [begin(d, n) for n in range(LEAVERS)]
    others = Others(d)
    time.sleep(0.5)
    at = time.monotonic()
    for s in socks:
        s.close()
    wait.until(lambda: all(r.peer_left for r in A.requests), 20,
               "all calls to be hung up on")
    lag = max(r.peer_left for r in A.requests) - at
    time.sleep(0.3)
    others.end()
    worst = others.worst(at, at + 0.3)
    t.diag("hung up on within %.0f ms; the others waited %.0f ms at most, "
           "%.0f ms before" % (lag * 1000, worst * 1000,
                               others.worst(at - 0.5, at) * 1000))
    t.eq(others.wrong, [], "answers of the others")
    t.between(lag, 0, 2.0 * tap.SCALE, "seconds until all were hung up on")
    t.between(worst, 0, 2.0 * tap.SCALE, "seconds that the others waited")
    wait.until(lambda: d.metrics()["holdfast_turns_in_flight"] == 0, 20,
               "no turn in flight")
    for n in range(1, LEAVERS, 2):
        shown = d.session("leave-%d" % n)
        t.eq([x["state"] for x in shown["turns"]], ["canceled"], "state")
        said = json.loads(shown["items"][-1]["body"])["content"]
        t.ok(TEXT.startswith(said) and "w010" in said,
             "kept is what was said: %r" % said)
        t.eq(shown["session"]["locked"], False, "no lease is held")
    t.eq(len(A.requests), LEAVERS, "nobody was asked again")


if __name__ == "__main__":
    tap.main()
