"""holdfastctl providers and failovers: what targets do, live; tested by a
real call; disabled, tripped and reset by hand; where turns changed targets."""
import itertools
import os
import signal
import socket
import sqlite3
import ssl
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import client
import ctl
import provider
import tap
import wait
from daemon import KEY, Config, Daemon, shared

A = provider.Provider("openai")
B = provider.Provider("anthropic")
TEXT = "Nobody is here. Please hold."
_n = itertools.count(1)


def name():
    return "ops-%d" % next(_n)


def config(a=A, b=B, **keys):
    """A primary with these keys, and a fallback without."""
    conf = Config(workers=3)
    conf.provider("a", a, **keys)
    conf.provider("b", b)
    conf.route("m", ["a/x", "b/y"])
    conf.route("alone", ["a/x"], max_retries=5, backoff_unit_ms=5000)
    conf.route("resort", ["a/x"], max_retries=5, backoff_unit_ms=5000,
               last_resort_text=TEXT)
    return conf


get_daemon = shared(lambda: Daemon(config()).start())


def quiet():
    for p, who in ((A, "a"), (B, "b")):
        p.take()
        p.behave(provider.answer("by " + who))
    return get_daemon()


def own(t, conf=None, **keys):
    d = Daemon(conf or config(**keys))
    t.cleanup(d.destroy)
    return d.start()


def ask(d, model="m", **more):
    more.setdefault("session", name())
    return client.chat(d, "hi", model=model, **more)


def offline(d, *words):
    p = subprocess.run([ctl.path(), "--offline", "--database", d.db_path] +
                       list(words), capture_output=True, text=True,
                       timeout=30)
    return ctl.Result(p.returncode, p.stdout, p.stderr)


def target(d, wanted="a/x"):
    """The target as the list shows it; show must agree."""
    for p in d.ctl("providers", "list"):
        for x in p["targets"]:
            if x["name"] == wanted:
                return x
    raise AssertionError("no target " + wanted)


# -- figures ----------------------------------------------------------------

@tap.case("list counts calls, answers and failures by class, of all workers")
def figures(t):
    d = own(t)
    x = target(d)
    t.eq((x["state"], x["calls"], x["answered"], x["failed"], x["in_flight"],
          x["waiting"], x["last_error"], x["first_token_p50_us"]),
         ("ok", 0, 0, 0, 0, 0, None, -1), "nothing yet")
    quiet()
    for _ in range(6):
        t.eq(ask(d).text, "by a", "answered")
    A.script(provider.status(500), provider.cut("one two", 1, "drop"),
             provider.status(429), provider.status(401),
             provider.cut("one two three", 2, "drop"))
    for _ in range(5):
        t.eq(ask(d).status, 200, "failed over")
    x = target(d)
    t.eq((x["calls"], x["answered"], x["failed"], x["cut"], x["limited"]),
         (11, 6, 5, 0, 1), "figures")
    t.eq({k: v for k, v in x["failed_by_class"].items() if v},
         {"provider": 1, "network": 2, "capacity": 1, "auth": 1}, "classes")
    t.eq((x["last_error"], x["last_error_status"]), ("network", 200), "last")
    t.ok(x["last_error_at"].startswith("20"), "its time")
    t.ok(0 <= x["first_token_p50_us"] <= x["first_token_p99_us"] < 5000000,
         "first tokens: %r" % x)
    t.eq(x["first_tokens"], 8, "of what said anything")
    y = target(d, "b/y")
    t.eq((y["calls"], y["answered"]), (5, 5), "the fallback")
    shown = d.ctl("providers", "show", "a/x")
    t.eq(shown["targets"][0]["calls"], 11, "show agrees")
    r = d.ctl_run("providers", "list")
    t.eq(r.code, 0, "table")
    row = [line for line in r.out.splitlines() if line.startswith("a/x")][0]
    for word in ("ok", "11", "6", "5", "network", "HTTP", "alone,"):
        t.isin(word, row.split(), "table")


@tap.case("in flight, waiting and admitted are live, over all workers", 60)
def live(t):
    d = own(t, rpm=5, rpm_window_ms=6000)
    gate = provider.Barrier()
    A.take()
    A.behave(provider.hold(gate, provider.answer("by a")))
    calls = [client.background(ask, d, "alone", timeout=60)
             for _ in range(8)]
    gate.wait_for(5)
    wait.until(lambda: target(d)["waiting"] == 3, 10, "three to wait")
    x = target(d)
    t.eq((x["in_flight"], x["waiting"], x["admitted"], x["reserved"]),
         (5, 3, 5, 3), "live")
    r = d.ctl_run("providers", "show", "a/x")
    t.isin("admitted       5 of 5", r.out, "show")
    gate.release()
    for c in calls:
        t.eq(c.get(60).status, 200, "answered")
    x = target(d)
    t.eq((x["in_flight"], x["waiting"], x["calls"]), (0, 0, 8), "at rest")


@tap.case("clients that leave are cut calls, waiting turns end with them")
def leaving(t):
    d = own(t)
    A.take()
    A.behave(provider.silence())
    body = (b'{"model":"alone","messages":[{"role":"user","content":"x"}]}')
    with client.Connection(client._addr(d)) as c:
        c.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
               b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n"
               % len(body) + body)
        A.wait_requests(1)
        t.eq(target(d)["in_flight"], 1, "under way")
    wait.until(lambda: target(d)["in_flight"] == 0, 10, "hung up on")
    x = target(d)
    t.eq((x["calls"], x["cut"], x["failed"], x["answered"]), (1, 1, 0, 0),
         "counted as cut")


@tap.case("show has the settings in force, and where the key is, not the key")
def show(t):
    d = quiet()
    v = d.ctl("providers", "show", "a")
    t.eq((v["name"], v["dialect"], v["base_url"], v["api_key_key"]),
         ("a", "openai", A.base_url, "api_key_env"), "provider")
    t.isin("HF_TEST_KEY", v["api_key_from"], "where")
    t.eq([x["name"] for x in v["targets"]], ["a/x"], "targets")
    s = v["targets"][0]["settings"]
    t.eq((s["connect_ms"], s["first_token_ms"], s["when_full"],
          s["upstream_stream"], s["breaker_failures"]),
         (2000, 5000, "wait", "always", 0), "settings")
    t.eq(v["targets"][0]["routes"], ["m", "alone", "resort"], "routes")
    one = d.ctl("providers", "show", "b/y")
    t.eq((one["name"], [x["name"] for x in one["targets"]]), ("b", ["b/y"]),
         "one target")
    for words in (("providers", "show", "a"), ("providers", "list"),
                  ("-o", "json", "providers", "show", "a")):
        r = d.ctl_run(*words)
        t.eq(r.code, 0, repr(words))
        t.notin(KEY, r.out, "a secret")
    for words in (("show", "nobody"), ("show", "a/y"), ("test", "nobody"),
                  ("disable", "nobody"), ("enable", "nobody"),
                  ("trip", "a/nothing"), ("reset", "x")):
        r = d.ctl_run("providers", *words)
        t.eq((r.code, r.out), (3, ""), "providers %s %s" % words)
    for words in (("show",), ("test",), ("trip", "a", "--for", "0"),
                  ("trip", "a", "--for", "2d"), ("disable", "a", "b"),
                  ("list", "--for", "3")):
        t.eq(d.ctl_run("providers", *words).code, 2, repr(words))


@tap.case("--watch prints again and again")
def watch(t):
    d = quiet()
    p = subprocess.Popen([ctl.path(), "-s", d.control, "--no-headers",
                          "providers", "list", "--watch", "1"],
                         stdout=subprocess.PIPE, text=True)
    try:
        lines = [p.stdout.readline() for _ in range(6)]
    finally:
        p.kill()
        p.wait()
    t.eq([x.split()[0] for x in lines], ["a/x", "b/y"] * 3, "lines")


# -- test -------------------------------------------------------------------

def tested(d, what, code):
    r = d.ctl_run("-o", "json", "providers", "test", what)
    if r.code != code:
        raise AssertionError("exit %d expected: %r" % (code, r))
    return r.json


@tap.case("test: a real call, and how far it came")
def test_call(t):
    d = quiet()
    A.behave(provider.answer("ok"))
    one, = tested(d, "a/x", 0)
    t.eq((one["target"], one["ok"], one["result"], one["status"],
          one["address"], one["text"]),
         ("a/x", True, "ok", 200, "127.0.0.1", "ok"), "what came")
    t.ok(0 <= one["resolved_us"] <= one["connected_us"] <=
         one["first_token_us"] <= one["total_us"], "times: %r" % one)
    t.eq(one["secured_us"], -1, "no TLS")
    t.eq(len(A.requests), 1, "one call")
    rq = A.requests[0]
    t.eq((rq.model, rq.stream, len(rq.messages), rq.headers["authorization"]),
         ("x", True, 1, "Bearer " + KEY), "what was asked")
    t.eq(A.violations + B.violations, [], "as the dialect wants it")
    B.behave(provider.answer("yes"))
    one, = tested(d, "b", 0)
    t.eq((one["target"], one["text"]), ("b/y", "yes"), "a provider's targets")
    x = target(d)
    had = d.ctl("status")["store"]
    r = d.ctl_run("providers", "test", "a")
    t.eq(r.code, 0, "table")
    t.isin("127.0.0.1", r.out, "table")
    t.eq(target(d)["calls"], x["calls"], "not counted as a turn's")
    t.eq([d.ctl("status")["store"][k] for k in ("sessions", "turns")],
         [had[k] for k in ("sessions", "turns")], "nothing is stored")
    t.notin(KEY, r.out + r.err, "a secret")


@tap.case("test: each way to fail, with its class and its exit code", 60)
def test_failures(t):
    d = own(t, first_token_ms=500, connect_ms=1000)
    A.take()
    for behaviour, code, want in (
            (provider.status(401), 1, ("auth", 401)),
            (provider.status(404), 1, ("auth", 404)),
            (provider.status(500), 1, ("provider", 500)),
            (provider.status(429), 75, ("capacity", 429)),
            (provider.reset(), 1, ("network", 0)),
            (provider.raw_reply(b"rubbish"), 1, ("network", 200)),
            (provider.html(502), 1, ("provider", 502)),
            (provider.answer(""), 1, ("provider", 200)),
            (provider.cut("one two", 1, "drop"), 1, ("network", 200)),
            (provider.headers_only(), 8, ("network", 200)),
            (provider.silence(), 8, ("network", 0))):
        A.behave(behaviour)
        one, = tested(d, "a/x", code)
        t.eq((one["ok"], one["result"], one["status"]), (False,) + want,
             repr(one))
        t.ok(one["connected_us"] >= 0, "connected")
    t.eq(one["reason"], "first_token_timeout", "what was waited for")
    A.down()
    one, = tested(d, "a", 1)
    t.eq((one["result"], one["reason"], one["connected_us"]),
         ("network", "connect_refused", -1), "a closed port")
    t.eq(one["address"], "127.0.0.1", "that was tried")
    A.up()
    t.eq(target(d)["state"], "ok", "no test moves the breaker")


def tls_server(t, context):
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    s.listen()
    t.cleanup(s.close)

    def serve():
        while True:
            try:
                c, _ = s.accept()
            except OSError:
                return
            try:
                context.wrap_socket(c, server_side=True).close()
            except OSError:
                c.close()
    threading.Thread(target=serve, daemon=True).start()
    return s.getsockname()[1]


@tap.case("test: a name that does not resolve, a certificate that is no good")
def test_lower(t):
    conf = config()
    conf.provider("no", A, base_url="http://nobody.invalid/v1",
                  connect_ms=3000)
    conf.route("no", ["no/x"])
    cert = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days",
         "2", "-subj", "/CN=localhost", "-keyout", "-", "-out", "-"],
        capture_output=True)
    pem = None
    if cert.returncode == 0:
        d = Daemon(conf)
        t.cleanup(d.destroy)
        pem = os.path.join(d.dir, "pem")
        with open(pem, "wb") as f:
            f.write(cert.stdout)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem)
        conf.provider("tls", A, base_url="https://127.0.0.1:%d/v1" %
                      tls_server(t, context))
        conf.route("tls", ["tls/x"])
        d.start()
    else:
        d = own(t, conf)
    r = d.ctl_run("-o", "json", "providers", "test", "no")
    one, = r.json
    t.isin(r.code, (1, 8), repr(r))
    t.eq((one["ok"], one["result"], one["resolved_us"], one["address"]),
         (False, "network", -1, ""), "not resolved")
    if pem is not None:
        one, = tested(d, "tls/x", 1)
        t.eq((one["result"], one["reason"], one["secured_us"],
              one["address"]), ("network", "tls", -1, "127.0.0.1"), "TLS")
        t.isin("certificate", one["text"], "why")


@tap.case("test blocks nobody, whoever asked for it may leave", 60)
def test_blocks(t):
    d = own(t, first_token_ms=30000)
    A.take()
    gate = provider.Barrier()
    A.behave(provider.hold(gate, provider.answer("ok")))
    p, q, r = [subprocess.Popen([ctl.path(), "-s", d.control, "providers",
                                 "test", "a/x"], stdout=subprocess.DEVNULL)
               for _ in range(3)]
    gate.wait_for(3)
    t.eq(d.ctl("status")["pid"], d.proc.pid, "others are served")
    for left in (p, q):
        left.kill()
        left.wait()
    t.eq(d.ctl("providers", "list")[0]["name"], "a", "still")
    gate.release()
    t.eq(r.wait(20), 0, "who stayed is told")
    many = [subprocess.Popen([ctl.path(), "-s", d.control, "providers",
                              "test", "a/x"], stdout=subprocess.DEVNULL)
            for _ in range(20)]
    t.eq([x.wait(20) for x in many], [0] * 20, "twenty at a time")
    gate = provider.Barrier()
    A.behave(provider.hold(gate, provider.answer("ok")))
    last = subprocess.Popen([ctl.path(), "-s", d.control, "providers", "test",
                             "a/x"], stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)
    gate.wait_for(1)
    d.stop()
    gate.release()
    t.eq(last.wait(20), 4, "a test that the daemon's end cuts")


@tap.case("test takes its place in the quota, and none that is not there")
def test_quota(t):
    d = own(t, rpm=2, rpm_window_ms=600000)
    quiet()
    t.eq(ask(d, "alone").text, "by a", "one")
    tested(d, "a/x", 0)
    one, = tested(d, "a/x", 75)
    t.eq((one["result"], one["reason"]), ("capacity", "no_room"), repr(one))
    t.eq(len(A.requests), 2, "calls")


# -- disable and enable -----------------------------------------------------

@tap.case("disable: no worker calls it any more, calls under way finish", 60)
def disable(t):
    d = own(t)
    quiet()
    gate = provider.Barrier()
    A.behave(provider.hold(gate, provider.answer("by a")))
    under_way = client.background(ask, d)
    gate.wait_for(1)
    r = d.ctl("providers", "disable", "a/x")
    t.eq([(x["state"], x["disabled_as"]) for x in r[0]["targets"]],
         [("disabled", "target")], "reply")
    for r in client.together([lambda: ask(d) for _ in range(12)]):
        t.eq(r.text, "by b", "skipped by all workers")
    t.eq(len(A.requests), 1, "no call since")
    gate.release()
    t.eq(under_way.get().text, "by a", "what was under way")
    x = target(d)
    t.eq((x["state"], x["disabled"]), ("disabled", True), "list")
    t.isin("disabled", d.ctl_run("providers", "list").out, "table")
    # It survives a reload and a restart.
    d.ctl("reload")
    t.eq(ask(d).text, "by b", "after a reload")
    d.stop()
    d.start()
    d.log.wait(r"disabled name=a/x")
    t.eq((ask(d).text, target(d)["state"]), ("by b", "disabled"),
         "after a restart")
    t.eq(d.ctl_run("providers", "disable", "a/x").code, 0, "again")
    d.ctl("providers", "enable", "a/x")
    t.eq((ask(d).text, target(d)["state"]), ("by a", "ok"), "enabled")
    d.stop()
    d.start()
    t.eq(ask(d).text, "by a", "and stays so")


@tap.case("disable: of a whole provider, also what a reload adds")
def disable_provider(t):
    conf = config()
    d = own(t, conf)
    quiet()
    d.ctl("providers", "disable", "a")
    t.eq((ask(d).text, target(d)["disabled_as"]), ("by b", "provider"), "m")
    conf.route("new", ["a/new", "b/y"])
    d.write_config()
    d.ctl("reload")
    t.eq(ask(d, "new").text, "by b", "a new target of it")
    t.eq(target(d, "a/new")["state"], "disabled", "is disabled")
    # A dead keeper or worker changes nothing.
    for p in d.ctl("status")["processes"]:
        os.kill(p["pid"], signal.SIGKILL)
    d.log.wait(r"keeper: ready .*first=no")
    wait.until(lambda: d.ctl_run("status").code == 0, 10, "the keeper")
    wait.until(lambda: ask(d, "new").text == "by b", 10, "workers")
    t.eq(len(A.requests), 0, "no call")
    # Its own flag and that of its provider are two.
    d.ctl("providers", "disable", "a/x")
    d.ctl("providers", "enable", "a")
    t.eq((ask(d).text, ask(d, "new").text), ("by b", "by a"), "one is left")
    d.ctl("providers", "enable", "a/x")
    t.eq(ask(d).text, "by a", "none is")


@tap.case("disable: what the file names no more can be enabled")
def disable_gone(t):
    conf = config()
    conf.route("old", ["a/old", "b/y"])
    d = own(t, conf)
    d.ctl("providers", "disable", "a/old")
    del conf.routes["old"]
    d.write_config()
    d.ctl("reload")
    t.eq(d.ctl_run("providers", "show", "a/old").code, 3, "is gone")
    d.ctl("providers", "enable", "a/old")
    t.eq(d.ctl_run("providers", "enable", "a/old").code, 3, "is enabled")


@tap.case("everything of a route is disabled: a typed error, or the last "
          "resort, at once")
def disable_all(t):
    d = own(t)
    quiet()
    d.ctl("providers", "disable", "a")
    for stream in (False, True):
        r = ask(d, "alone", stream=stream)
        t.eq((r.status, r.error["code"]), (503, "no_target"), repr(r))
        t.eq(r.headers["x-should-retry"], "false", "final")
        t.between(r.took, 0, 3.0 * tap.SCALE, "no wait for what stays away")
        s = name()
        r = ask(d, "resort", stream=stream, session=s)
        t.eq((r.status, r.text), (200, TEXT), repr(r))
        t.eq(r.headers["x-holdfast-last-resort"], "true", "flagged")
        t.between(r.took, 0, 3.0 * tap.SCALE, "at once")
        t.eq([(x["cls"], x["reason"]) for x in d.session(s)["attempts"]],
             [("skipped", "disabled")], "noted")
    t.eq(len(A.requests), 0, "no call")
    one, = tested(d, "a/x", 0)
    t.eq(one["ok"], True, "and yet it can be tested")
    # The others' failure alone decides what the client is told.
    d.ctl("providers", "enable", "a")
    d.ctl("providers", "disable", "b")
    A.behave(provider.rate_limited(ms=4321))
    r = ask(d)
    t.eq((r.status, r.error["code"]), (429, "rate_limit_exceeded"), repr(r))


# -- trip and reset ---------------------------------------------------------

@tap.case("trip opens the breaker for a time, reset closes it")
def trip(t):
    d = own(t, breaker_failures=3, breaker_ramp=0)
    quiet()
    r = d.ctl("providers", "trip", "a/x", "--for", "10m")
    x = r[0]["targets"][0]
    t.eq((x["state"], x["breaker"]), ("open", "open"), "reply")
    left = x["breaker_until_us"] - d.ctl("timeline", _session(t, d))[0][
        "at_us"]
    t.between(left / 1e6, 590, 601, "seconds")
    for r in client.together([lambda: ask(d) for _ in range(9)]):
        t.eq(r.text, "by b", "left alone by all workers")
    t.eq(len(A.requests), 0, "no call")
    d.ctl("providers", "reset", "a")
    t.eq((ask(d).text, target(d)["state"]), ("by a", "ok"), "reset")
    d.ctl("providers", "trip", "a", "--for", "1")
    t.eq(ask(d).text, "by b", "for a second")
    wait.until(lambda: ask(d).text == "by a", 10, "the probe")
    t.eq(target(d)["state"], "ok", "and closed")
    # Without --for as long as by itself; a hint of the provider goes too.
    A.behave(provider.rate_limited(seconds=600))
    ask(d)
    x = target(d)
    t.eq(x["state"], "limited", "a hint")
    t.ok(x["limited_until_us"] > 0, "until when")
    A.behave(provider.answer("by a"))
    t.eq(ask(d).text, "by b", "believed")
    d.ctl("providers", "reset", "a/x")
    t.eq(ask(d).text, "by a", "forgotten")
    A.behave(provider.status(500))
    for _ in range(3):
        ask(d)
    x = target(d)
    t.eq((x["state"], x["breaker"]), ("open", "open"), "by itself")
    A.behave(provider.answer("by a"))
    d.ctl("providers", "reset", "a/x")
    t.eq(ask(d).text, "by a", "closed by hand")


def _session(t, d):
    s = name()
    t.eq(ask(d, session=s).status, 200, "a turn for its time")
    return s


@tap.case("every change is in the log: who, what, what came of it")
def audit(t):
    d = quiet()
    mark = len(d.log.lines)
    d.ctl("providers", "trip", "b/y", "--for", "1")
    d.ctl("providers", "reset", "b/y")
    d.ctl_run("providers", "disable", 'x" y\n')
    d.ctl("providers", "list")
    who = r"uid=%d pid=\d+" % os.getuid()
    for pattern in (r'verb=providers.trip what="b/y" %s result=ok',
                    r'verb=providers.reset what="b/y" %s result=ok',
                    r'verb=providers.disable what="x\?\?y\?" %s '
                    r'result=ENOTFOUND'):
        d.log.wait("control: audit " + pattern % who, since=mark)
    t.eq(d.log.find(r"audit verb=providers\.list"), [], "looking is none")


# -- failovers --------------------------------------------------------------

@tap.case("failovers list and summary tell each change of target")
def failovers(t):
    d = own(t)
    r = d.ctl_run("failovers", "list")
    t.eq((r.code, r.out), (1, ""), "none")
    t.eq(d.ctl_run("-o", "json", "failovers", "summary").json, [], "none")
    quiet()
    s = name()
    B.behave(provider.echo())
    A.behave(provider.echo())
    client.chat(d, "one", session=s)
    A.script(provider.status(502))
    client.chat(d, "two", session=s)
    A.script(provider.cut("five six seven eight nine", 3, "drop"))
    B.behave(provider.answer("ten eleven"))
    r = client.chat(d, "three", session=s, stream=True)
    t.eq(r.finish, "stop", "went on")
    v = d.ctl("failovers", "list")
    t.eq([(x["turn_seq"], x["from"], x["to"], x["cls"], x["status"],
           x["outcome"], x["n"], x["name"], x["route"]) for x in v],
         [(3, "a/x", "b/y", "network", 200, "ok", 2, s, "m"),
          (2, "a/x", "b/y", "provider", 502, "ok", 2, s, "m")], "newest first")
    shown = d.session(s)
    t.eq([x["turn"] for x in v], [shown["turns"][2]["id"],
                                  shown["turns"][1]["id"]], "turns")
    t.eq({x["session"] for x in v}, {shown["session"]["id"]}, "session")
    t.eq(v[1]["from_bytes"], 0, "before anything was said")
    t.ok(v[0]["from_bytes"] > 0, "in mid-stream")
    t.eq([(x["items"], x["items_of"]) for x in v], [(5, 5), (3, 3)],
         "the whole history went along")
    t.ok(all(0 <= x["gap_us"] < 10000000 for x in v), "gaps: %r" % v)
    t.ok(v[0]["at"].startswith("20"), "time")
    table = d.ctl_run("failovers", "list")
    t.isin("at byte %d" % v[0]["from_bytes"], table.out, "seam")
    t.isin("5 of 5", table.out, "history")
    t.eq(len(table.out.splitlines()), 3, "lines")
    total = d.ctl("failovers", "summary")
    t.eq([(x["target"], x["cls"], x["failovers"], x["answered"],
           x["in_stream"], x["shortened"]) for x in total],
         [("a/x", "network", 1, 1, 1, 0), ("a/x", "provider", 1, 1, 0, 0)],
         "summary")
    t.ok(all(0 <= x["gap_p50_us"] <= x["gap_p99_us"] for x in total), "gaps")
    t.eq(d.ctl_run("failovers", "summary").code, 0, "table")
    for words in (("list",), ("summary",), ("list", "--since", "1h"),
                  ("summary", "--since", "90"), ("list", "--limit", "1")):
        t.eq(offline(d, "-o", "json", "failovers", *words).json,
             d.ctl("failovers", *words), "offline: %r" % (words,))
    first = d.ctl("failovers", "list", "--limit", "1")
    then = d.ctl("failovers", "list", "--limit", "1", "--before",
                 str(first[0]["row"]))
    t.eq(first + then, v, "in pages")
    for words in (("--since", "soon"), ("--before", "x"), ("--limit", "0")):
        t.eq(d.ctl_run("failovers", "list", *words).code, 2, repr(words))
    r = offline(d, "failovers", "list", "--before", "x")
    t.eq(r.code, 2, "offline too")


@tap.case("failovers: no failure of a target is none of them")
def no_failovers(t):
    conf = config(hedge_after_ms=150)
    conf.route("h", ["a/x", "b/y"], hedge_budget_percent=100)
    d = own(t, conf)
    quiet()
    t.eq(ask(d, "h").status, 200, "nothing happens")
    A.behave(provider.delay(0.6, provider.answer("by a")))
    gate = provider.Barrier()
    B.behave(provider.hold(gate, provider.answer("by b")))
    r = ask(d, "h")
    gate.release()
    t.eq(r.text, "by a", "the first of two calls wins")
    t.eq(d.ctl_run("-o", "json", "failovers", "list").json, [], "nobody left")
    A.behave(provider.silence())
    B.behave(provider.answer("by b"))
    t.eq(ask(d, "h").text, "by b", "the second wins")
    v = d.ctl("failovers", "list")
    t.eq([(x["from"], x["to"], x["cls"]) for x in v],
         [("a/x", "b/y", "hedged")], "left as too slow")


@tap.case("many failovers do not hold up the others", 120)
def many(t):
    d = own(t)
    quiet()
    t.eq(ask(d, session="seed").status, 200, "a session")
    d.stop()
    db = sqlite3.connect(d.db_path)
    seed = db.execute("SELECT max(id) FROM turn").fetchone()[0]
    total = 60000
    cols = [r[1] for r in db.execute("PRAGMA table_info(turn)")
            if r[1] not in ("id", "seq")]
    names = ", ".join(cols)
    db.execute("WITH RECURSIVE n (i) AS (SELECT %d UNION ALL SELECT i + 1 "
               "FROM n WHERE i < %d) INSERT INTO turn (id, seq, %s) "
               "SELECT n.i, n.i, %s FROM n, turn t WHERE t.id = %d" % (
                   seed + 1, seed + total, names,
                   ", ".join("NULL" if c == "idem" else "t." + c
                             for c in cols), seed))
    for k, cls in ((1, "provider"), (2, "ok")):
        db.execute("INSERT INTO attempt (id, target, started_us, ended_us, "
                   "class, called_us, total_us, first_token_us) "
                   "SELECT id << 20 | %d, '%s', created_us, created_us + 9, "
                   "'%s', created_us, 9, %d FROM turn WHERE id > %d" % (
                       k, "ab"[k - 1] + "/x", cls, 0 if k == 1 else 5000,
                       seed))
    db.commit()
    db.close()
    d.expect_damage = True	# turns of no session's history
    d.start()
    slow = client.background(d.ctl, "failovers", "summary")
    worst = 0.0
    while slow.is_alive():
        began = time.monotonic()
        s = socket.socket(socket.AF_UNIX)
        s.connect(d.control)
        s.settimeout(20)
        data = b'{"v":1,"id":1,"verb":"locks.list"}'
        s.sendall(struct.pack(">I", len(data)) + data)
        s.recv(65536)
        s.close()
        worst = max(worst, time.monotonic() - began)
    t.eq([(x["target"], x["failovers"]) for x in slow.get()],
         [("a/x", total)], "all are counted")
    t.ok(worst < 1.0 * tap.SCALE, "others waited at most %.3f s" % worst)
    t.eq(len(d.ctl("failovers", "list", "--limit", "10000")), 10000, "a page")


# -- frames -----------------------------------------------------------------

@tap.case("odd arguments are refused, and others are served")
def odd(t):
    d = quiet()
    long = '"' + "x" * 60000 + '"'
    for verb, args in (
            ("providers.show", "{}"), ("providers.show", '{"name":7}'),
            ("providers.show", '{"name":""}'),
            ("providers.show", '{"name":%s}' % long),
            ("providers.test", '{"name":null}'),
            ("providers.test", '{"name":["a"]}'),
            ("providers.disable", '{"name":"a\\u0000"}'),
            ("providers.disable", '{"name":{}}'),
            ("providers.enable", '{"name":%s}' % long),
            ("providers.trip", '{"name":"a","for_s":-1}'),
            ("providers.trip", '{"name":"a","for_s":1e300}'),
            ("providers.trip", '{"name":"a","for_s":"1"}'),
            ("providers.trip", '{"name":"a","for_s":9223372036854775807}'),
            ("providers.reset", '{"name":true}'),
            ("failovers.list", '{"since_s":0}'),
            ("failovers.list", '{"since_s":9223372036854775807}'),
            ("failovers.list", '{"limit":10001}'),
            ("failovers.list", '{"before":5}'),
            ("failovers.list", '{"before":"99999999999999999999"}'),
            ("failovers.summary", '{"since_s":"1h"}')):
        s = socket.socket(socket.AF_UNIX)
        t.cleanup(s.close)
        s.settimeout(10)
        s.connect(d.control)
        data = ('{"v":1,"id":1,"verb":"%s","args":%s}' % (verb,
                                                           args)).encode()
        s.sendall(struct.pack(">I", len(data)) + data)
        s.shutdown(socket.SHUT_WR)
        got = b""
        while True:
            try:
                more = s.recv(65536)
            except ConnectionResetError:
                break
            if not more:
                break
            got += more
        t.notin(b'"end":true', got, "%s %s was accepted" % (verb, args[:60]))
    t.eq(target(d)["state"], "ok", "nothing changed")


tap.main()
