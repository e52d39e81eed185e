"""The table of error classes: what "holdfastctl explain errors" prints is what
happens, row by row, and what a route changes; and the first request of all is
answered by the next target, whatever is wrong with the first."""
import itertools
import json
import os
import socket
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import client
import ctl
import provider
import tap
from daemon import Config, Daemon, shared

A = provider.Provider("openai")
B = provider.Provider("openai")
C = provider.Provider("anthropic")
_names = itertools.count(1)
LONG = "This model's maximum context length is 8192 tokens"

# One failure of each class, and one of those that have an answer of their own
# when every target fails so.
FAILS = {
    "caller": provider.status(422, "no such thing", code="odd", param="top"),
    "policy": provider.status(400, "refused", code="content_filter"),
    "context": provider.status(400, LONG, code="context_length_exceeded"),
    "auth": provider.status(401, "who are you"),
    "capacity": provider.status(529, "overloaded"),
    "provider": provider.status(500, "oops"),
    "network": provider.reset(),
}
SPECIAL = {"capacity": provider.rate_limited(3),
           "network": provider.silence()}
# More tools than dialect anthropic can say.
UNSAYABLE = {"tools": [{"type": "function", "function": {"name": "f%d" % i}}
                       for i in range(1025)]}


def make():
    conf = Config(workers=1)
    for n, p in (("a", A), ("b", B)):
        conf.provider(n, p, first_token_ms=600)
    both = ["a/model-a", "b/model-b"]
    conf.provider("c", C)
    conf.route("m", both)
    conf.route("anthropic", ["c/model-c", "c/model-d"])
    conf.route("again", both, max_retries=1, backoff_unit_ms=1,
               backoff_cap_ms=1)
    for cls in FAILS:
        for action in ("end", "next", "retry"):
            conf.route("%s-%s" % (cls, action), both, max_retries=1,
                       backoff_unit_ms=1, backoff_cap_ms=1,
                       on_error=["%s=%s" % (cls, action)])
    return Daemon(conf).start()


get_daemon = shared(make)


def explained():
    r = subprocess.run([ctl.path(), "-o", "json", "explain", "errors"], capture_output=True, text=True, timeout=10)
    if r.returncode != 0:
        raise AssertionError(r.stderr)
    return {row["class"]: row for row in json.loads(r.stdout)}


def failing(cls):
    for p in (A, B):
        p.up()
        p.behave(FAILS[cls])
        p.take()
        p.cut_idle()	# a reset on a pooled connection is dialled again
    return get_daemon()


def asked():
    return len(A.requests), len(B.requests)


@tap.case("explain errors: a table and JSON, without a daemon")
def explain(t):
    r = subprocess.run([ctl.path(), "explain", "errors"],
                       capture_output=True, text=True, timeout=10)
    t.eq(r.returncode, 0, r.stderr)
    for word in ("CLASS", "caller", "gateway", "429 rate_limit_exceeded",
                 "504 deadline_exceeded", "neutral", "after a wait"):
        t.isin(word, r.stdout, "table")
    rows = explained()
    t.eq(list(rows), ["caller", "policy", "context", "auth", "capacity",
                      "provider", "network", "gateway"], "classes")
    t.eq(rows["capacity"]["answer_special"],
         {"status": 429, "type": "rate_limit_error",
          "code": "rate_limit_exceeded"}, "an answer")
    t.eq([(rows[c]["breaker"]) for c in rows],
         ["no", "no", "no", "yes", "neutral", "yes", "yes", "neutral"],
         "what the breaker counts")


def check_answer(t, r, want, where):
    """'r' is the error that the table names."""
    if want["status"] == 0:
        t.eq((r.status, r.error["code"], r.error["param"]),
             (422, "odd", "top"), where + ": the provider's own")
        t.isin("no such thing", r.error["message"], where)
    else:
        t.eq((r.status, r.error["code"]), (want["status"], want["code"]),
             where)
    t.eq(r.error["type"], want["type"], where + ": type")
    t.eq(r.headers["x-should-retry"], "false", where)


@tap.case("each row: who is asked, what the client gets, what is counted",
          deadline=60)
def rows(t):
    table = explained()
    for cls in FAILS:
        row = table[cls]
        d = failing(cls)
        label = 'holdfast_attempts_failed_total{class="%s"}' % row["metric"]
        before = d.metrics()[label]
        r = client.chat(d, "hi", model="again")
        want = {"end": (1, 0), "first": (1, 0), "next": (1, 1),
                "retry": (2, 2)}[row["action"]]
        t.eq(asked(), want, cls + ": who was asked")
        t.eq(d.metrics()[label] - before, sum(want), cls + ": counted")
        check_answer(t, r, row["answer"], cls)
    for cls in SPECIAL:
        d = failing(cls)
        A.behave(SPECIAL[cls])
        B.behave(SPECIAL[cls])
        r = client.chat(d, "hi", model="m")
        check_answer(t, r, table[cls]["answer_special"], cls + ", special")


@tap.case("a history that no dialect can say is class gateway")
def unsayable(t):
    d = get_daemon()
    label = 'holdfast_attempts_failed_total{class="gateway"}'
    before = d.metrics()[label]
    r = client.chat(d, "hi", model="anthropic", **UNSAYABLE)
    t.eq(C.requests, [], "nobody was called")
    t.eq(d.metrics()[label] - before, 2, "counted")
    check_answer(t, r, explained()["gateway"]["answer"], "gateway")


@tap.case("a route's on_error decides for each class", deadline=60)
def overridden(t):
    for cls in FAILS:
        for action, want in (("end", (1, 0)), ("next", (1, 1)),
                             ("retry", (2, 2))):
            d = failing(cls)
            r = client.chat(d, "hi", model="%s-%s" % (cls, action))
            t.eq(asked(), want, "%s=%s" % (cls, action))
            t.eq(r.status >= 400, True, "an error")


@tap.case("with policy=next the next target may answer")
def policy_next(t):
    d = failing("policy")
    B.behave(provider.echo())
    r = client.chat(d, "hi", model="policy-next")
    t.eq((r.status, r.headers["x-holdfast-target"]), (200, "b/model-b"),
         repr(r))
    t.eq(client.chat(d, "hi", model="m").status, 400, "without, it ends")


class Plain:
    """A port that speaks no TLS: whatever comes is answered with a line."""

    def __init__(self):
        self.sock = socket.create_server(("127.0.0.1", 0))
        self.port = self.sock.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                conn = self.sock.accept()[0]
            except OSError:
                return
            with conn:
                conn.settimeout(5)
                try:
                    conn.recv(4096)
                    conn.sendall(b"HTTP/1.1 400 Bad Request\r\n"
                                 b"Connection: close\r\n\r\n")
                except OSError:
                    pass

    def close(self):
        self.sock.close()


@tap.case("the first request of all is answered by the next target",
          deadline=60)
def first_request(t):
    plain = Plain()
    t.cleanup(plain.close)
    closed = provider.Provider("openai")	# its port stays taken
    t.cleanup(closed.close)
    closed.down()
    cases = [
        ("an unresolvable host", "http://does-not-exist.invalid:1/v1",
         "network"),
        ("a closed port", closed.base_url, "network"),
        ("a TLS failure", "https://127.0.0.1:%d/v1" % plain.port, "network"),
        ("a bare 429", A.base_url, "capacity"),
    ]
    for what, url, cls in cases:
        for stream in (False, True):
            A.up()
            A.behave(provider.status(429, "slow down"))
            B.behave(provider.echo())
            B.take()
            conf = Config(workers=1)
            conf.provider("a", A, base_url=url)
            conf.provider("b", B)
            conf.route("m", ["a/model-a", "b/model-b"])
            d = Daemon(conf).start()
            n = "first-%d" % next(_names)
            r = client.chat(d, "hi", model="m", session=n, stream=stream)
            t.eq((r.status, r.text), (200, "heard 1: hi"), what)
            t.eq((r.headers["x-holdfast-target"],
                  r.headers["x-holdfast-attempts"]), ("b/model-b", "2"), what)
            t.eq(len(B.requests), 1, what + ": called once")
            t.between(r.took, 0, 3.0 * tap.SCALE, what + ": at once")
            t.eq([a["cls"] for a in d.session(n)["attempts"]],
                 [cls, "ok"], what + ": recorded")
            d.destroy()


tap.main()
