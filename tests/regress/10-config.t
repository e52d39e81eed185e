"""Configuration: -t names file, line and key; a reload that is refused keeps
the old one; a good one changes routes without dropping a stream."""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import client
import provider
import tap
import wait
from daemon import KEY, Config, Daemon, program, shared, source

A = provider.Provider("openai")
B = provider.Provider("openai")
GOOD = """gateway {
	listen = {"127.0.0.1:0"}
	database = "%(dir)s/db"
	control = "%(dir)s/ctl"
}
provider "a" {
	dialect = "openai"
	base_url = "http://127.0.0.1:1/v1"
}
route "m" {
	targets = {"a/model-a"}
}
"""


def check(t, text, env=None):
    """holdfast -t on this text: (exit code, its words)."""
    folder = tempfile.mkdtemp(prefix="hf-")
    t.cleanup(shutil.rmtree, folder)
    path = os.path.join(folder, "test.conf")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text % {"dir": folder} if "%(dir)s" in text else text)
    full = dict(os.environ, HF_TEST_KEY=KEY, **(env or {}))
    p = subprocess.run([program(), "-t", "-c", path], capture_output=True,
                       text=True, stdin=subprocess.DEVNULL, env=full,
                       timeout=20)
    t.eq(sorted(os.listdir(folder)), ["test.conf"],
         "-t leaves nothing behind")
    return p.returncode, (p.stdout + p.stderr).replace(folder + "/", "")


@tap.case("-t accepts a good configuration")
def good(t):
    code, words = check(t, GOOD)
    t.eq(code, 0, words)


@tap.case("-t accepts the sample configuration as it is shipped")
def sample(t):
    with open(source("docs", "examples", "holdfast.conf"),
              encoding="utf-8") as f:
        text = f.read()
    # The files of secrets that it names do not exist here.
    text, n = re.subn(r'(?m)^\tapi_key_file = \S+',
                      '\tapi_key_env = "HF_TEST_KEY"', text)
    t.ok(n > 0, "secrets are in files")
    code, words = check(t, text)
    t.eq(code, 0, words)


# (what is changed, by what, the line, words of the message)
BAD = [
    ('listen = {"127.0.0.1:0"}', 'listen = {"nowhere"}', 2, "listen"),
    ('listen = {"127.0.0.1:0"}', 'listen = {"127.0.0.1:70000"}', 2,
     "listen"),
    ('listen = {"127.0.0.1:0"}', "workers = 1000", 2, "workers"),
    ('listen = {"127.0.0.1:0"}', "workers = many", 2, "workers"),
    ('listen = {"127.0.0.1:0"}', "wrokers = 2", 2, "wrokers"),
    ('listen = {"127.0.0.1:0"}', 'synchronous = "off"', 2, "synchronous"),
    ('listen = {"127.0.0.1:0"}', "flush_ms = -1", 2, "flush_ms"),
    ('listen = {"127.0.0.1:0"}', 'body_soft = "16Q"', 2, "body_soft"),
    ('dialect = "openai"', 'dialect = "gopher"', 7, "dialect"),
    ('dialect = "openai"', "", None, "dialect"),
    ('base_url = "http://127.0.0.1:1/v1"', 'base_url = "ftp://x"', 8,
     "base_url"),
    ('base_url = "http://127.0.0.1:1/v1"', "", None, "base_url"),
    ('base_url = "http://127.0.0.1:1/v1"',
     'base_url = "http://x"\n\tapi_key_env = "HF_NOT_SET_ANYWHERE"', 9,
     "api_key_env"),
    ('base_url = "http://127.0.0.1:1/v1"',
     'base_url = "http://x"\n\tapi_key_file = "/nonexistent/key"', 9,
     "api_key_file"),
    ('targets = {"a/model-a"}', 'targets = {"nobody/model"}', 11, "nobody"),
    ('targets = {"a/model-a"}', 'targets = {"model"}', 11, "targets"),
    ('targets = {"a/model-a"}', "targets = {}", None, "targets"),
    ('targets = {"a/model-a"}',
     'targets = {"a/x"}\n\tmax_retries = 6', 12, "max_retries"),
    ('route "m" {', 'route "m" {\n}\nroute "m" {', None, "m"),
    ("gateway {", "gateway {{", 1, ""),
    ('\ttargets = {"a/model-a"}\n}', '\ttargets = {"a/model-a"', None, ""),
]


@tap.case("-t names file, line, key and what was expected; exit 78")
def bad(t):
    for old, new, line, word in BAD:
        t.isin(old, GOOD, "the planted place")
        code, words = check(t, GOOD.replace(old, new, 1))
        t.eq(code, 78, "%r: %s" % (new, words))
        t.isin("test.conf:" + (str(line) + ":" if line else ""), words,
               repr(new))
        t.isin(word, words, repr(new))
        t.notin("Sanitizer", words, repr(new))


@tap.case("-t survives a file of garbage, an empty one and none")
def garbage(t):
    for text in ("\0\1\2\xff garbage", "}" * 1000, "{" * 1000,
                 'route "x" { targets = {"' + "a/" * 5000 + '"} }',
                 "gateway { listen = {" + '"127.0.0.1:1",' * 1000 + "} }"):
        code, words = check(t, text)
        t.eq(code, 78, "%r: %s" % (text[:40], words[:400]))
    p = subprocess.run([program(), "-t", "-c", "/nonexistent/file"],
                       capture_output=True, text=True, timeout=20,
                       stdin=subprocess.DEVNULL)
    t.eq(p.returncode, 78, p.stderr)
    t.isin("/nonexistent/file", p.stderr + p.stdout, "says which")


@tap.case("a secret from the environment and from a file; never in words")
def secrets(t):
    text = GOOD.replace('base_url = "http://127.0.0.1:1/v1"',
                        'base_url = "http://127.0.0.1:1/v1"\n'
                        '\tapi_key_env = "HF_TEST_KEY"')
    code, words = check(t, text)
    t.eq(code, 0, words)
    t.notin(KEY, words, "the secret")
    code, words = check(t, text.replace('targets = {"a/model-a"}',
                                        'targets = {"b/x"}'))
    t.eq(code, 78, words)
    t.notin(KEY, words, "the secret")


@tap.case("a daemon does not start with a bad configuration")
def no_start(t):
    conf = Config()
    conf.provider("a", A)
    conf.route("m", ["nobody/x"])
    d = Daemon(conf).start(ready=False)
    t.eq(d.ended(), 78, "exit code")
    d.proc = None
    t.isin("nobody", d.log.text(), "says why")
    t.ok(not os.path.exists(d.db_path), "no database was made")


@tap.case("a listener beyond loopback is refused as long as there is no key")
def loopback_only(t):
    conf = Config(listen=["0.0.0.0:0"])
    conf.provider("a", A)
    conf.route("m", ["a/x"])
    d = Daemon(conf).start(ready=False)
    code = d.ended()
    d.proc = None
    t.ok(code not in (0, -signal.SIGKILL, -signal.SIGSEGV,
                      -signal.SIGABRT), "exit code %s" % code)
    t.isin("key", d.log.text(), "says why")


@tap.case("a second daemon on the same database is refused, exit 6")
def one_instance(t):
    conf = Config()
    conf.provider("a", A)
    conf.route("m", ["a/x"])
    d = Daemon(conf).start()
    t.cleanup(d.close)
    other = Daemon(conf, path=d.dir)
    other.start(ready=False)
    code = other.ended(30)
    other.proc = None
    t.eq(code, 6, other.log.text())
    t.eq(client.get(d, "/readyz").status, 200, "the first one serves")
    t.eq(d.ctl("status")["pid"], d.proc.pid, "its control socket is its own")


def reload_daemon(t, **gateway):
    conf = Config(**gateway)
    conf.provider("a", A)
    conf.provider("b", B)
    conf.route("m", ["a/model-a"])
    d = Daemon(conf).start()
    t.cleanup(d.close)
    A.behave(provider.answer("from a"))
    B.behave(provider.answer("from b"))
    return d, conf


@tap.case("HUP with a bad configuration keeps the old one")
def hup_bad(t):
    d, conf = reload_daemon(t)
    before = d.workers()
    at = len(d.log.lines)
    d.write_config(open(d.conf_path, encoding="utf-8").read().replace(
        "a/model-a", "nobody/model-a"))
    d.proc.send_signal(signal.SIGHUP)
    m = d.log.wait(r"ERROR.*reload.*|error.*reload.*", 10, since=at)
    t.isin("holdfast.conf:", m.string, "names the file")
    t.isin("nobody", m.string, "names the fault")
    r = client.chat(d, "hi")
    t.eq((r.status, r.text), (200, "from a"), "the old configuration serves")
    t.eq(d.workers(), before, "the workers are the same")


@tap.case("HUP with a good one changes routes; a running stream goes on", 40)
def hup_good(t):
    d, conf = reload_daemon(t)
    gate = provider.Barrier()
    t.cleanup(gate.release)
    A.script(provider.trickle("one two three four", gate, before=2))
    seen = []
    stream = client.background(
        client.chat, d, "hi", session="s", stream=True, timeout=30,
        on_event=lambda r: seen.append(1) and False)
    gate.wait_for(1)
    wait.until(lambda: len(seen) >= 3, 10, "the first deltas")
    before = d.workers()
    conf.route("m", ["b/model-b"])
    conf.route("extra", ["b/model-b"])
    d.write_config()
    at = len(d.log.lines)
    d.proc.send_signal(signal.SIGHUP)

    def changed():
        r = client.chat(d, "hi")
        return (r.status, r.text) == (200, "from b")
    wait.until(changed, 15, "the new route", step=0.02)
    # A worker that has not heard yet that it is to drain may still answer.
    wait.until(lambda: [m["id"] for m in client.get(
        d, "/v1/models").json["data"]] == ["m", "extra"], 10, "models")
    gate.release()
    r = stream.get()
    t.eq((r.text, r.finish, r.done, r.end),
         ("one two three four", "stop", True, "chunked"), "the stream")
    d.log.wait(r"reload: done", 20, since=at)
    after = d.workers()
    t.ok(not set(before.values()) & set(after.values()),
         "all workers were replaced: %r %r" % (before, after))
    r = client.chat(d, "and now?", session="s")
    t.eq((r.status, r.text), (200, "from b"), "its session goes on")
    t.eq(B.history(B.requests[-1]),
         [("user", "hi"), ("assistant", "one two three four"),
          ("user", "and now?")], "with its history")


@tap.case("HUPs under load lose no request", 60)
def hup_load(t):
    d, conf = reload_daemon(t)
    stop = []
    bad = []

    def load(i):
        n = 0
        while not stop:
            r = client.chat(d, "turn %d" % n, session="load-%d" % i,
                            timeout=20)
            if r.status != 200:
                bad.append(repr(r))
                return n
            n += 1
        return n
    threads = [client.background(load, i) for i in range(8)]
    for k in range(4):
        at = len(d.log.lines)
        d.proc.send_signal(signal.SIGHUP)
        d.log.wait(r"reload: done", 20, since=at)
    stop.append(1)
    counts = [x.get() for x in threads]
    t.eq(bad, [], "requests that failed")
    t.ok(min(counts) > 0, "all took part: %r" % counts)
    for i, n in enumerate(counts):
        shown = d.session("load-%d" % i)
        t.eq([x["seq"] for x in shown["turns"]], list(range(1, n + 1)),
             "every turn once")


@tap.case("HUP changes the number of workers", 40)
def hup_workers(t):
    d, conf = reload_daemon(t, workers=2)
    conf.gateway["workers"] = 4
    d.write_config()
    at = len(d.log.lines)
    d.proc.send_signal(signal.SIGHUP)
    d.log.wait(r"reload: done", 20, since=at)
    t.eq(len(d.workers()), 4, "workers")


@tap.case("handover: the log says whether it is on; a change needs a restart",
          40)
def handover(t):
    d, conf = reload_daemon(t)
    m = d.log.wait(r"handover: (on) connections=(\d+)", 1)
    t.between(int(m.group(2)), 100, 4096, "connections that can be held")
    conf.gateway["handover"] = "off"
    d.write_config()
    d.proc.send_signal(signal.SIGHUP)
    d.log.wait(r"reload: key=handover changed and needs a restart", 10)
    d.log.wait(r"reload: done", 20)
    d.stop()
    d.start()
    d.log.wait(r"handover: off reason=configured", 1)
    t.eq(client.chat(d, "hi").status, 200, "without handover")
    t.eq(d.metrics()["holdfast_connections_held"], 0, "none is held")
    d.stop()
    conf.gateway["handover"] = "on"
    d.start()
    d.log.wait(r"handover: on ", 1)
    d.stop()


@tap.case("TERM lets a running stream end, and takes no new ones", 40)
def term_drains(t):
    conf = Config()
    conf.provider("a", A)
    conf.route("m", ["a/model-a"])
    d = Daemon(conf).start()
    t.cleanup(d.destroy)
    gate = provider.Barrier()
    t.cleanup(gate.release)
    A.script(provider.trickle("one two three four", gate, before=2))
    stream = client.background(client.chat, d, "hi", session="s",
                               stream=True, timeout=30)
    gate.wait_for(1)
    d.proc.send_signal(signal.SIGTERM)

    def closed():
        try:
            client.Connection(d.addr, 2).close()
            return False
        except OSError:
            return True
    wait.until(closed, 10, "the listener to close")
    gate.release()
    r = stream.get()
    t.eq((r.text, r.finish, r.done, r.end),
         ("one two three four", "stop", True, "chunked"), "the stream")
    d.stop()


@tap.case("TERM gives up on a turn after drain_ms; QUIT stops at once", 40)
def drain_limit(t):
    for sig, low, high in ((signal.SIGTERM, 0.4, 4.0),
                           (signal.SIGQUIT, 0, 2.0)):
        conf = Config(drain_ms=500)
        conf.provider("a", A, first_token_ms=30000, total_ms=30000)
        conf.route("m", ["a/model-a"])
        d = Daemon(conf).start()
        t.cleanup(d.destroy)
        A.take()
        A.script(provider.silence())
        call = client.background(client.chat, d, "hi", session="s",
                                 timeout=30)
        A.wait_requests(1)
        began = time.monotonic()
        d.stop(sig)
        t.between(time.monotonic() - began, low, high * tap.SCALE,
                  "seconds after %s" % sig.name)
        call.get()
        A.behave(provider.answer("from a"))
        d.start()
        shown = d.session("s")
        t.isin(shown["turns"][0]["state"], ("interrupted", "failed",
                                            "canceled"), "the turn's state")
        d.close()


if __name__ == "__main__":
    tap.main()
