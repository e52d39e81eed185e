"""holdfastctl: status, sessions, keys; table and JSON; how it exits."""
import json
import os
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import client
import ctl
import provider
import tap
import wait
from daemon import Config, Daemon, shared

A = provider.Provider("openai")
B = provider.Provider("openai")


def make():
    conf = Config(workers=3)
    conf.provider("a", A)
    conf.provider("b", B)
    conf.route("m", ["a/model-a", "b/model-b"])
    return Daemon(conf).start()


get_daemon = shared(make)


@tap.case("status shows processes, listeners, store and counters")
def status(t):
    d = get_daemon()
    A.behave(provider.echo())
    t.eq(client.chat(d, "hi", session="status").status, 200, "a turn")
    v = d.ctl("status")
    t.eq(v["pid"], d.proc.pid, "the master")
    t.eq(v["listen"], ["%s:%d" % d.addr], "listeners")
    by = {}
    for p in v["processes"]:
        by.setdefault(p["role"], []).append(p)
        t.isin(p["pid"], d.pids(), "a process of the tree")
        t.eq(p["state"], "ready", "state")
    t.eq((len(by["keeper"]), len(by["worker"])), (1, 3), "processes")
    t.eq(len({p["inc"] for p in v["processes"]}), 4, "incarnations")
    t.eq(v["store"]["sessions"], 1, "sessions")
    t.eq(v["store"]["open_turns"], 0, "open turns")
    t.ok(v["store"]["schema_version"] >= 1, "schema version")
    t.ok(v["counters"]["requests"] >= 1, "counters")
    r = d.ctl_run("status")
    t.eq(r.code, 0, "table")
    for p in v["processes"]:
        t.isin(str(p["pid"]), r.out, "a process in the table")


@tap.case("sessions list: newest first, by tenant, in pages")
def sessions_list(t):
    d = get_daemon()
    A.behave(provider.echo())
    for i in range(5):
        t.eq(client.chat(d, "hi", session="list-%d" % i).status, 200, "turn")
    v = d.ctl("sessions", "list")
    names = [s["name"] for s in v if s["name"].startswith("list-")]
    t.eq(names, ["list-%d" % i for i in (4, 3, 2, 1, 0)], "order")
    for s in v:
        t.eq(s["tenant"], "default", "tenant")
        t.eq((s["locked"], s["queued"]), (False, 0), "idle")
    first = d.ctl("sessions", "list", "--limit", "2")
    t.eq([s["name"] for s in first], ["list-4", "list-3"], "page one")
    second = d.ctl("sessions", "list", "--limit", "2", "--before",
                   first[-1]["id"])
    t.eq([s["name"] for s in second], ["list-2", "list-1"], "page two")
    r = d.ctl_run("-o", "json", "sessions", "list", "--tenant", "nobody")
    t.isin(r.code, (0, 1), "no sessions")
    t.eq(r.json, [], "of a tenant that has none")
    r = d.ctl_run("sessions", "list")
    t.eq(r.code, 0, "table")
    lines = r.out.splitlines()
    t.eq(len(lines), len(v) + 1, "a head and a line each")
    r = d.ctl_run("--no-headers", "sessions", "list")
    t.eq(len(r.out.splitlines()), len(v), "without the head")


@tap.case("sessions show: turns, items and what was tried")
def sessions_show(t):
    d = get_daemon()
    A.behave(provider.echo())
    B.behave(provider.echo())
    client.chat(d, [{"role": "system", "content": "rules"},
                    {"role": "user", "content": "one"}], session="show")
    A.script(provider.status(502))
    r1 = client.chat(d, "two", session="show", stream=True)
    t.eq(r1.status, 200, repr(r1))
    v = d.session("show")
    ident = r1.headers["x-holdfast-session"]
    t.eq(v["session"]["id"], ident, "id")
    t.eq(v["session"]["turns"], 2, "turns")
    t.eq([(x["seq"], x["state"], x["on_path"], x["stream"], x["target"],
           x["finish_reason"], x["status"], x["attempts"], x["route"])
          for x in v["turns"]],
         [(1, "complete", True, False, "a/model-a", "stop", 200, 1, "m"),
          (2, "complete", True, True, "b/model-b", "stop", 200, 2, "m")],
         "turns")
    t.eq(v["turns"][1]["id"], r1.headers["x-holdfast-turn"], "turn id")
    t.eq([(x["turn_seq"], x["role"], x["output"],
           json.loads(x["body"])["content"]) for x in v["items"]],
         [(1, "system", False, "rules"), (1, "user", False, "one"),
          (1, "assistant", True, "heard 1: one"), (2, "user", False, "two"),
          (2, "assistant", True, "heard 2: two")], "items")
    t.eq([(x["turn_seq"], x["n"], x["target"], x["cls"], x["http_status"])
          for x in v["attempts"]],
         [(1, 1, "a/model-a", "ok", 200), (2, 1, "a/model-a", "provider",
                                           502),
          (2, 2, "b/model-b", "ok", 200)], "attempts")
    a = v["attempts"][2]
    t.eq((a["tokens_in"], a["tokens_out"]), (31, 6), "tokens")
    t.ok(0 < a["first_token_us"] <= a["total_us"], "times")
    t.ok(a["bytes_out"] > 0 and a["bytes_in"] > 0, "bytes")
    # Without --contents nothing that was said is shown.
    r = d.ctl_run("-o", "json", "sessions", "show", "show")
    t.notin("heard 2", r.out, "contents are not shown unasked")
    t.eq(d.ctl("sessions", "show", ident)["session"]["name"], "show",
         "by id")
    t.eq(d.ctl("sessions", "show", ident[:12])["session"]["name"], "show",
         "by a unique prefix")
    r = d.ctl_run("sessions", "show", "show", "--contents", "--attempts")
    t.eq(r.code, 0, "table")
    for word in ("heard 2: two", "b/model-b", "502"):
        t.isin(word, r.out, "table")


@tap.case("an unknown session is exit 3, an ambiguous one too")
def not_found(t):
    d = get_daemon()
    for words in (("sessions", "show", "nothing"),
                  ("sessions", "show", "ses_0000"),
                  ("keys", "revoke", "key_0000")):
        r = d.ctl_run(*words)
        t.eq(r.code, 3, " ".join(words))
        t.ok(r.err.strip(), "a message")
        t.eq(r.out, "", "nothing on stdout")
    r = d.ctl_run("sessions", "show", "ses_")
    t.eq(r.code, 3, "ambiguous")


@tap.case("wrong words are exit 2, no daemon is exit 4")
def wrong_words(t):
    d = get_daemon()
    for words in (("nothing",), ("sessions",), ("sessions", "show"),
                  ("status", "extra"), ("-o", "xml", "status"),
                  ("--nothing",), ("keys", "create"),
                  ("sessions", "list", "--limit", "many"), ()):
        r = d.ctl_run(*words)
        t.eq(r.code, 2, "holdfastctl " + " ".join(words))
        t.ok(r.err.strip(), "a message")
    r = ctl.run(os.path.join(d.dir, "nobody"), "status")
    t.eq(r.code, 4, "no daemon")
    t.isin("nobody", r.err, "says where")


@tap.case("help and version are exit 0")
def help_version(t):
    d = get_daemon()
    for word in ("--help", "--version"):
        r = d.ctl_run(word)
        t.eq(r.code, 0, word)
        t.ok(r.out.strip(), word)
    for verb in ("status", "sessions", "keys"):
        t.isin(verb, d.ctl_run("--help").out, "help")


@tap.case("API keys are made, listed and revoked; secrets are shown once")
def keys(t):
    conf = Config(workers=2)
    conf.provider("a", A)
    conf.route("m", ["a/model-a"])
    d = Daemon(conf).start()
    t.cleanup(d.close)
    A.behave(provider.echo())
    one = d.ctl("keys", "create", "--tenant", "red", "--label", "laptop")
    two = d.ctl("keys", "create", "--tenant", "blue")
    t.ok(len(one["secret"]) >= 32, "a long secret")
    t.ne(one["secret"], two["secret"], "secrets differ")
    r = d.ctl_run("-o", "json", "keys", "list")
    t.eq([(k["tenant"], k["label"]) for k in sorted(
        r.json, key=lambda k: k["tenant"])],
        [("blue", ""), ("red", "laptop")], "list")
    for k in (one, two):
        t.notin(k["secret"], r.out, "a secret in the list")
    wait.until(lambda: client.chat(d, "x").status == 401, 5,
               "keys to be in force")
    time.sleep(1.1)	# a worker may believe for a second that there is none
    t.eq(client.chat(d, "x", key=one["secret"]).status, 200, "red")
    t.eq(client.chat(d, "x", key=two["secret"]).status, 200, "blue")
    d.ctl("keys", "revoke", one["id"])
    wait.until(lambda: client.chat(d, "x", key=one["secret"]).status == 401,
               5, "the revocation")
    t.eq(client.chat(d, "x", key=two["secret"]).status, 200, "blue stays")
    revoked = {k["id"]: k["revoked_us"] for k in d.ctl("keys", "list")}
    t.ok(revoked[one["id"]] > 0 and revoked[two["id"]] == 0, "list says so")
    with open(d.db_path, "rb") as f:
        data = f.read()
    for suffix in ("-wal",):
        try:
            with open(d.db_path + suffix, "rb") as f:
                data += f.read()
        except FileNotFoundError:
            pass
    for k in (one, two):
        t.notin(k["secret"].encode(), data, "a secret on disk")
        t.notin(k["secret"], d.log.text(), "a secret in the log")
    # Revoking the last key does not open the door again.
    d.ctl("keys", "revoke", two["id"][:12])
    time.sleep(1.2)	# a worker may remember keys for a second
    t.eq(client.chat(d, "x", key=two["secret"]).status, 401, "revoked")


@tap.case("contents are not readable in the database files")
def sealed(t):
    d = get_daemon()
    A.script(provider.answer("the answer is xyzzy-answer-4711"))
    r = client.chat(d, "xyzzy-question-4711", session="sealed-name")
    t.eq(r.status, 200, "a turn")
    for suffix in ("", "-wal"):
        with open(d.db_path + suffix, "rb") as f:
            t.notin(b"xyzzy", f.read(), "contents in the database" + suffix)


def frame(data):
    return struct.pack(">I", len(data)) + data


@tap.case("bad frames on the control socket close that client only")
def bad_frames(t):
    d = get_daemon()
    for data in (b"\0\0\0\0", b"\xff\xff\xff\xff" + b"x" * 100,
                 frame(b"not json"), frame(b"[1]"), frame(b"{}"),
                 frame(b'{"v":99,"id":1,"verb":"status","args":{}}'),
                 frame(b'{"v":1,"id":1,"verb":7,"args":{}}'),
                 frame(b'{"v":1,"id":1,"verb":"sessions.show",'
                       b'"args":{"key":{}}}'),
                 frame(b'{"v":1,"id":1,"verb":"sessions.show",'
                       b'"args":{"key":"a\\u0000b"}}'),
                 frame(b"[" * 60000), b"\0\0", frame(b"\xff\xfe")):
        s = socket.socket(socket.AF_UNIX)
        t.cleanup(s.close)
        s.settimeout(10)
        s.connect(d.control)
        s.sendall(data)
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
        t.notin(b'"end":true', got, "%r was accepted" % data[:60])
        t.eq(d.ctl("status")["pid"], d.proc.pid, "others are served")


@tap.case("a client that hangs on the control socket blocks nobody")
def hanging(t):
    d = get_daemon()
    socks = []
    for _ in range(20):
        s = socket.socket(socket.AF_UNIX)
        s.connect(d.control)
        s.sendall(b"\0\0")
        socks.append(s)
    t.eq(d.ctl("status")["pid"], d.proc.pid, "status")
    for s in socks:
        s.close()


if __name__ == "__main__":
    tap.main()
