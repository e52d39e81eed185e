"""holdfastctl against a scripted daemon: what it sends, what it makes of
good, broken and hostile answers, and how it ends."""
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading

CTL = os.path.join(os.environ.get("HF_BUILDDIR", "."), "holdfastctl")
DIR = pathlib.Path(tempfile.mkdtemp(prefix="hf-ctl-"))
SOCK = str(DIR / "c.sock")

count = failed = 0


def check(name, good, detail=""):
    global count, failed
    count += 1
    if not good:
        failed += 1
        for line in str(detail).splitlines():
            print("#", line)
    print("ok" if good else "not ok", count, "-", name)


def frame(obj):
    body = obj if isinstance(obj, bytes) else json.dumps(obj).encode()
    return struct.pack(">I", len(body)) + body


def data(**members):
    return frame({"v": 1, "id": 1, "data": members})


END = frame({"v": 1, "id": 1, "end": True})


def read_request(conn):
    buf = b""
    while len(buf) < 4 or len(buf) < 4 + struct.unpack(">I", buf[:4])[0]:
        more = conn.recv(65536)
        if not more:
            return None
        buf += more
    return json.loads(buf[4:])


class Daemon:
    """Serves one connection by `script(conn, request)`."""

    def __init__(self, script, read=True):
        self.script, self.read, self.request = script, read, None
        self.sock = socket.socket(socket.AF_UNIX)
        if os.path.exists(SOCK):
            os.unlink(SOCK)
        self.sock.bind(SOCK)
        self.sock.listen(1)
        self.sock.settimeout(30)
        self.error = None
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        try:
            conn, _ = self.sock.accept()
            conn.settimeout(30)
            with conn:
                if self.read:
                    self.request = read_request(conn)
                self.script(conn, self.request)
        except Exception as e:  # told by stop()
            self.error = e

    def stop(self):
        self.thread.join(60)
        self.sock.close()
        return self.error


def run(*args, stdout=subprocess.PIPE, **kw):
    return subprocess.run([CTL, *args], stdout=stdout,
                          stderr=subprocess.PIPE, timeout=60, **kw)


def ask(answer, *args, read=True, **kw):
    """Run against a daemon that sends `answer` (bytes, or a function)."""
    script = answer if callable(answer) else \
        (lambda conn, request: conn.sendall(answer))
    d = Daemon(script, read)
    p = run("-s", SOCK, *args, **kw)
    error = d.stop()
    if error is not None and not isinstance(error, (BrokenPipeError,
                                                    ConnectionResetError)):
        print("# daemon:", repr(error))
    return p, d.request


SESSION = {"id": "ses_0123", "tenant": "acme", "name": "call \x1b[2J7",
           "created_us": 1764417600123000, "updated_us": 1764417601000000,
           "turns": 3, "last_state": "complete", "last_target": "p/m",
           "locked": False, "owner_slot": 0, "owner_inc": 0, "fence": 4,
           "lock_since_us": 0, "queued": 0, "later": {"x": 1}}
OTHER = dict(SESSION, id="ses_4567", tenant="be", name=None, locked=True,
             owner_inc=(2 << 32) + 5, owner_slot=1, last_target=None)
TURN = {"id": "turn_1", "seq": 1, "parent_seq": 0, "retry_of_seq": 0,
        "state": "complete", "on_path": True, "route": "gpt",
        "stream": False, "started_us": 1764417600123000,
        "ended_us": 1764417600999000, "finish_reason": "stop",
        "error_class": None, "status": 200, "attempts": 2, "target": "q/n",
        "first_token_us": 250000, "total_us": 1250000, "said": 40,
        "heard": 12}
ITEM = {"turn_seq": 1, "idx": 0, "kind": "message", "role": "user",
        "origin": "client", "output": False, "lead": False,
        "has_heard": False, "body": '{"content":"s3cret\\u0007"}',
        "heard": None}
PARTS = dict(ITEM, idx=1, role="assistant", has_heard=True,
             body='{"content": [{"type":"text","text":"long "},'
                  '{"type":"text","text":"answer"}]}',
             heard='{"content":"long"}')
UNHEARD = dict(PARTS, idx=2, heard="")
CALL = dict(ITEM, idx=3, kind="tool_call", body={"name": "f", "a": 1})
ODD = dict(ITEM, idx=4, body="no \x1b JSON")
ATTEMPT = {"turn_seq": 1, "n": 1, "target": "p/m", "cls": "provider",
           "reason": "http_502", "http_status": 502,
           "started_us": 1764417600123000, "first_token_us": 0,
           "total_us": 3000, "bytes_out": 2048, "bytes_in": 10,
           "tokens_in": -1, "tokens_out": -1}
KEY = {"id": "key_1", "tenant": "acme", "label": "la\u202ebel",
       "created_us": 1764417600123000, "revoked_us": 0}
STATUS = {"version": "0.1.0", "pid": 7, "started_us": 1764417600123000,
          "uptime_ms": 3720000, "boot": 2, "config_generation": 1,
          "listen": ["127.0.0.1:8080", "[::1]:8080"], "database": "/x.db",
          "processes": [{"slot": 0, "role": "keeper", "pid": 8,
                         "inc": (2 << 32) + 1, "state": "ready",
                         "worked": 0, "in_flight": 0}],
          "store": {"sessions": 3, "turns": 4, "items": 5, "open_turns": 0,
                    "queued_turns": 0, "db_bytes": 4096, "wal_bytes": 1048576,
                    "schema_version": 1},
          "counters": {"requests": 12, "failovers": 0, "attempts": 14}}


def test_status():
    for name, members in ("plain", STATUS), ("wrapped", {"status": STATUS}):
        p, req = ask(data(**members) + END, "status")
        out = p.stdout.decode()
        check(f"status {name}: exit 0", p.returncode == 0, p.stderr)
        check(f"status {name}: request",
              req == {"v": 1, "id": 1, "verb": "status", "args": {}}, req)
        want = ["version        0.1.0", "up             1h02m",
                "listen         127.0.0.1:8080, [::1]:8080",
                "started        2025-11-29T12:00:00.123Z",
                "WAL size       1.0M", "requests                 12",
                "keeper    8  2.1          ready       0          0"]
        check(f"status {name}: text", all(w in out for w in want), out)
        check(f"status {name}: no idle counters", "failovers" not in out, out)
    p, _ = ask(data(**STATUS) + END, "status", "-o", "json")
    doc = json.loads(p.stdout)
    check("status json", p.returncode == 0 and
          doc == dict(STATUS, started="2025-11-29T12:00:00.123Z"), doc)
    p, _ = ask(END, "status")
    check("status without data: exit 4", p.returncode == 4, p.stderr)
    p, _ = ask(data(**STATUS) + END, "-q", "status")
    check("status -q: says nothing", p.returncode == 0 and not p.stdout)


def test_list():
    answer = data(session=SESSION) + data(session=OTHER) + END
    p, req = ask(answer, "sessions", "list", "--tenant", "acme", "--limit",
                 "2", "--before", "ses_9")
    check("list: request", req["verb"] == "sessions.list" and req["args"] ==
          {"tenant": "acme", "limit": 2, "before": "ses_9"}, req)
    rows = p.stdout.decode().split("\n")
    check("list: exit 0", p.returncode == 0, p.stderr)
    check("list: rows", len(rows) == 4 and rows[0].startswith("ID") and
          rows[1].split() == ["ses_0123", "acme", "call", "\\x1b[2J7", "3",
                              "complete", "p/m", "-", "0",
                              "2025-11-29T12:00:01.000Z"] and
          rows[2].split() == ["ses_4567", "be", "-", "3", "complete", "-",
                              "yes", "0", "2025-11-29T12:00:01.000Z"], rows)
    check("list: aligned", rows[0].index("TENANT") == rows[1].index("acme")
          == rows[2].index("be"), rows)
    check("list: no escape reaches the terminal", b"\x1b" not in p.stdout)
    p, _ = ask(answer, "sessions", "list", "--no-headers")
    check("list: no headers", p.stdout.decode().count("\n") == 2 and
          b"TENANT" not in p.stdout, p.stdout)
    p, _ = ask(answer, "sessions", "list", "-q")
    check("list -q: ids", p.stdout == b"ses_0123\nses_4567\n", p.stdout)
    p, _ = ask(answer, "sessions", "list", "-o", "json")
    doc = json.loads(p.stdout)
    check("list json", [s["id"] for s in doc] == ["ses_0123", "ses_4567"] and
          doc[0]["created"] == "2025-11-29T12:00:00.123Z" and
          doc[0]["lock_since"] is None and doc[0]["created_us"] ==
          SESSION["created_us"] and doc[0]["name"] == SESSION["name"] and
          doc[0]["later"] == {"x": 1}, doc)
    p, _ = ask(END, "sessions", "list")
    check("empty list: exit 1 and a word about it", p.returncode == 1 and
          not p.stdout and p.stderr == b"holdfastctl: none\n", p.stderr)
    p, _ = ask(END, "sessions", "list", "-o", "json")
    check("empty list json", p.returncode == 1 and
          json.loads(p.stdout) == [] and not p.stderr, p.stdout)


def test_show():
    answer = data(session=OTHER) + data(turn=TURN) + data(item=ITEM) + \
        data(item=PARTS) + data(item=UNHEARD) + data(item=CALL) + \
        data(item=ODD) + data(attempt=ATTEMPT) + data(unheard_of={}) + END
    p, req = ask(answer, "sessions", "show", "ses_4", "--attempts")
    out = p.stdout.decode()
    check("show: request", req["verb"] == "sessions.show" and req["args"] ==
          {"key": "ses_4", "attempts": True}, req)
    check("show: exit 0", p.returncode == 0, p.stderr)
    want = ["session        ses_4567", "owner          2.5", "http_502",
            "q/n", "250.0ms", "1.25s", "2.0K"]
    check("show: text", all(w in out for w in want), out)
    turn = [r.split() for r in out.split("\n") if "q/n" in r][0]
    check("show: a turn", turn == ["1", "-", "complete", "yes", "gpt", "q/n",
                                   "2", "200", "stop", "-", "250.0ms",
                                   "1.25s", "40", "12",
                                   "2025-11-29T12:00:00.123Z"], turn)
    # One of an earlier version, and one whose figures are not known.
    for more in {}, {"said": -1, "heard": -1}:
        old = {k: v for k, v in TURN.items() if k not in ("said", "heard")}
        p, _ = ask(data(session=OTHER) + data(turn=dict(old, **more)) + END,
                   "sessions", "show", "x")
        turn = [r.split() for r in p.stdout.decode().split("\n")
                if "q/n" in r][0]
        check("show: figures not known", turn[12:14] == ["-", "-"], turn)
    check("show: no contents unasked", "s3cret" not in out and
          "answer" not in out, out)
    p, req = ask(answer, "sessions", "show", "ses_4", "--contents",
                 "--tenant", "be")
    out = p.stdout.decode()
    check("show --contents: request", req["args"] ==
          {"key": "ses_4", "contents": True, "tenant": "be"}, req)
    want = ["1.0 user message from client\n    s3cret\\x07\n",
            "1.1 assistant message from client\n    long answer\n"
            "    heard: long\n",
            "1.2 assistant message from client\n    long answer\n"
            "    heard: nothing\n", "    no \\x1b JSON\n",
            '    {"name":"f","a":1}\n']
    check("show --contents: text", all(w in out for w in want), out)
    p, _ = ask(answer, "sessions", "show", "x", "-o", "json")
    doc = json.loads(p.stdout)
    check("show json: shape", sorted(doc) ==
          ["attempts", "items", "session", "turns"] and
          doc["turns"][0]["ended"] == "2025-11-29T12:00:00.999Z" and
          doc["turns"][0]["total_us"] == 1250000 and
          "total" not in doc["turns"][0], doc)
    check("show json: no contents unasked", "s3cret" not in
          p.stdout.decode() and "body" not in doc["items"][0], doc)
    p, _ = ask(answer, "sessions", "show", "x", "-o", "json", "--contents")
    doc = json.loads(p.stdout)
    check("show json: contents", doc["items"][0]["body"] == ITEM["body"] and
          doc["items"][1]["heard"] == PARTS["heard"], doc)
    p, _ = ask(data(turn=TURN) + END, "sessions", "show", "x")
    check("show without a session: exit 4", p.returncode == 4, p.stderr)


def event(seq, us, name, **more):
    e = {"turn_seq": seq, "at_us": 1764417600123000 + us, "after_us": us,
         "event": name, "attempt": 0, "target": None, "state": None,
         "cls": None, "reason": None, "status": 0, "bytes": -1, "of": -1}
    return data(event=dict(e, **more))


def test_timeline():
    answer = (
        event(1, 0, "received") + event(1, 1200, "stored") +
        event(1, 1300, "called", attempt=1, target="p/m") +
        event(1, 9000, "failed", attempt=1, target="p/m", cls="network",
              reason="idle_timeout", status=200) +
        event(1, 9100, "continued", attempt=2, target="q/n", bytes=35) +
        event(1, 12345, "answered", attempt=2, target="q/n", cls="ok",
              reason="ok", status=200) +
        event(1, 13000, "client_gone") + event(1, 13000, "heard", bytes=7,
                                               of=40) +
        event(1, 14000, "finished", state="complete", reason="st\x1bop",
              status=200, bytes=40) + END)
    p, req = ask(answer, "timeline", "call", "2", "--tenant", "acme")
    check("timeline: request", req["verb"] == "timeline" and req["args"] ==
          {"key": "call", "turn": "2", "tenant": "acme"}, req)
    want = ["TURN MS EVENT ATTEMPT TARGET DETAIL", "1 0.0 received - - -",
            "1 1.2 stored - - -", "1 1.3 called 1 p/m -",
            "1 9.0 failed 1 p/m network idle_timeout HTTP 200",
            "1 9.1 continued 2 q/n at byte 35",
            "1 12.3 answered 2 q/n HTTP 200", "1 13.0 client_gone - - -",
            "1 13.0 heard - - 7 of 40 bytes",
            "1 14.0 finished - - complete st\\x1bop HTTP 200, 40 bytes"]
    got = [" ".join(r.split()) for r in p.stdout.decode().splitlines()]
    check("timeline: text", p.returncode == 0 and got == want, got)
    p, req = ask(answer, "timeline", "call", "-o", "json")
    doc = json.loads(p.stdout)
    check("timeline: request of all", req["args"] == {"key": "call"}, req)
    check("timeline json", [e["event"] for e in doc][-2:] ==
          ["heard", "finished"] and doc[1]["after_us"] == 1200 and
          doc[1]["at"] == "2025-11-29T12:00:00.124Z" and
          "detail" not in doc[1], doc)
    p, _ = ask(END, "timeline", "call")
    check("timeline of no turn: exit 1", p.returncode == 1, p.stderr)


def test_keys():
    made = dict(KEY, secret="hf_s3cret")
    args = ("keys", "create", "--tenant", "acme", "--label", "l")
    p, req = ask(data(key=made) + END, *args)
    check("create: request", req["verb"] == "keys.create" and req["args"] ==
          {"tenant": "acme", "label": "l"}, req)
    check("create: text", p.returncode == 0 and
          b"secret         hf_s3cret\n" in p.stdout and
          b"la\\u{202e}bel" in p.stdout, p.stdout)
    p, _ = ask(data(key=made) + END, "-q", *args)
    check("create -q: the secret alone", p.stdout == b"hf_s3cret\n", p.stdout)
    p, _ = ask(data(key=made) + END, "-o", "json", *args)
    doc = json.loads(p.stdout)
    check("create json", doc == dict(made, revoked=None,
                                     created="2025-11-29T12:00:00.123Z"), doc)
    p, req = ask(data(key=KEY) + END, "keys", "list")
    check("keys list", p.returncode == 0 and
          p.stdout.decode().split("\n")[1].split() ==
          ["key_1", "acme", "la\\u{202e}bel", "2025-11-29T12:00:00.123Z",
           "-"], p.stdout)
    gone = dict(KEY, revoked_us=1764417600123000)
    p, req = ask(data(key=gone) + END, "keys", "revoke", "key_1")
    check("revoke", req["args"] == {"prefix": "key_1"} and
          p.returncode == 0 and
          b"revoked        2025-11-29T12:00:00.123Z" in p.stdout, p.stdout)


def row(p, n):
    """The words of a line of output."""
    lines = p.stdout.decode().split("\n")
    return lines[n].split() if len(lines) > n else lines


def test_check():
    daemon = data(daemon={"version": "0.1.0", "pid": 7, "boot": 2})
    good = data(check={"name": "workers", "ok": True, "text": "2 ready"})
    bad = data(check={"name": "writable", "ok": False, "text": "full\x1b["})
    p, req = ask(daemon + good + END, "check")
    check("check: request", req["verb"] == "check" and req["args"] == {}, req)
    check("check: all well", p.returncode == 0 and p.stdout.decode() ==
          "ok    workers: 2 ready\n"
          "ok    version: daemon 0.1.0 (pid 7), holdfastctl 0.1.0\n",
          p.stdout)
    p, _ = ask(daemon + good + bad + END, "check")
    check("check: one fails", p.returncode == 1 and
          b"FAIL  writable: full\\x1b[\n" in p.stdout, p.stdout)
    p, _ = ask(daemon + bad + END, "-o", "json", "check")
    check("check: json", p.returncode == 1 and
          json.loads(p.stdout)["ok"] is False, p.stdout)
    p, _ = ask(data(daemon={"version": "9.9"}) + good + END, "check")
    check("check: another version", p.returncode == 1 and
          b"FAIL  version: daemon 9.9" in p.stdout, p.stdout)
    p, _ = ask(good + END, "check")
    check("check: no version", p.returncode == 1, p.stdout)
    p = run("-s", str(DIR / "none"), "check")
    check("check: no daemon", p.returncode == 1 and
          p.stdout.startswith(b"FAIL  daemon: cannot reach"), p.stdout)
    p, _ = ask(daemon + good, "check")
    check("check: a daemon that hangs up", p.returncode == 1 and
          b"hung up" in p.stdout, p.stdout)


FOUND = {"session": "ses_1\x1b", "severity": "corrupt", "what": "chain",
         "turn_seq": 2, "idx": 1, "text": "does not follow"}
LOOSE = {"session": None, "severity": "odd", "what": "stray",
         "turn_seq": 0, "idx": -1, "text": "of turn row 7"}


def verified(corrupt, odd):
    return data(verified={"sessions": 2, "turns": 3, "items": 4,
                          "corrupt": corrupt, "odd": odd}) + END


def test_verify():
    p, req = ask(verified(0, 0), "sessions", "verify", "--all")
    check("verify: request", req["verb"] == "sessions.verify" and
          req["args"] == {"all": True}, req)
    check("verify: clean", p.returncode == 0 and p.stdout == b"clean: 2 "
          b"sessions, 3 turns, 4 items; 0 corrupt, 0 odd\n", p.stdout)
    answer = data(finding=FOUND) + data(progress={"sessions": 1}) + \
        data(finding=LOOSE)
    p, req = ask(answer + verified(1, 1), "sessions", "verify", "x",
                 "--tenant", "be")
    check("verify: request of one", req["args"] ==
          {"key": "x", "tenant": "be"}, req)
    check("verify: corrupt", p.returncode == 7 and
          p.stdout.decode().split("\n")[:2] ==
          ["corrupt ses_1\\x1b turn 2 item 1: chain: does not follow",
           "odd: stray: of turn row 7"], p.stdout)
    p, _ = ask(data(finding=LOOSE) + verified(0, 1), "-o", "json",
               "sessions", "verify", "--all")
    check("verify: odd", p.returncode == 1 and
          json.loads(p.stdout)["findings"] == [LOOSE], p.stdout)
    p, _ = ask(data(finding=FOUND) * 2 + data(finding=LOOSE) +
               verified(2, 1), "-q", "sessions", "verify", "--all")
    check("verify -q: the sessions", p.stdout == b"ses_1\\x1b\n" and
          p.returncode == 7, p.stdout)
    p, _ = ask(data(finding=LOOSE) + END, "sessions", "verify", "--all")
    check("verify without its end: exit 4", p.returncode == 4, p.stderr)


def test_locks_and_providers():
    lock = {"session": "ses_1", "tenant": "acme", "name": None,
            "owner_slot": 3, "owner_inc": (2 << 32) + 9, "owner": "alive",
            "fence": 4, "lock_since_us": 1764417600123000, "turn": "turn_1",
            "turn_seq": 5, "turn_state": "open", "queued": 2}
    p, req = ask(data(lock=lock) + END, "locks", "list")
    check("locks", req["verb"] == "locks.list" and p.returncode == 0 and
          row(p, 1) == ["ses_1", "acme", "-", "3", "2.9", "alive", "5",
                        "open", "2", "2025-11-29T12:00:00.123Z"], p.stdout)
    p, _ = ask(data(lock=lock) + END, "-o", "json", "locks", "list")
    check("locks json", json.loads(p.stdout)[0]["lock_since"] ==
          "2025-11-29T12:00:00.123Z", p.stdout)
    p, _ = ask(END, "locks", "list")
    check("no locks: exit 1", p.returncode == 1 and
          p.stderr == b"holdfastctl: none\n", p.stderr)
    provider = {"name": "o", "dialect": "openai", "base_url": "https://x",
                "targets": [{"name": "o/m", "model": "m",
                             "routes": ["a", "b\x1b"]},
                            {"name": "o/n", "model": "n", "routes": []}]}
    empty = {"name": "e", "dialect": "anthropic", "base_url": "https://y",
             "targets": []}
    p, req = ask(data(provider=provider) + data(provider=empty) + END,
                 "providers", "list")
    lines = [row(p, n) for n in (1, 2, 3)]
    check("providers", req["verb"] == "providers.list" and
          lines[0] == ["o/m"] + ["-"] * 13 + ["a,", "b\\x1b"] and
          lines[1] == ["o/n"] + ["-"] * 14 and
          lines[2] == ["e"] + ["-"] * 14, p.stdout)
    for wrong in ({"name": 3, "targets": [3]}, {"targets": {"a": 1}}, {}):
        p, _ = ask(data(provider=wrong) + END, "providers", "list")
        check(f"a provider of {wrong}", p.returncode == 0, p.stderr)


def test_operators():
    live = {"name": "o/m", "state": "open", "breaker": "open",
            "breaker_until_us": 1764417600123000, "disabled": False,
            "in_flight": 3, "waiting": 2, "admitted": 4,
            "quota_from": "said", "quota_calls": 15, "quota_tokens": 90000,
            "quota_window_ms": 1500,
            "calls": 90, "answered": 80, "failed": 7, "cut": 0,
            "failed_by_class": {"network": 6, "auth": 0, "x\x1b": 1},
            "first_token_p50_us": 1500, "first_token_p99_us": -1,
            "last_error": "net\x1b", "last_error_status": 502,
            "last_error_at_us": 1764417600123000, "routes": ["m"],
            "settings": {"connect_ms": 7, "k\x1b": "v\x1b"}}
    provider = {"name": "o", "dialect": "openai", "targets": [live]}
    at = "2025-11-29T12:00:00.123Z"
    p, req = ask(data(provider=provider) + END, "providers", "disable", "o/m")
    check("disable", req["verb"] == "providers.disable" and
          req["args"] == {"name": "o/m"} and row(p, 1) ==
          ["o/m", "open", at, "3", "2", "4", "of", "15", "90", "80", "7",
           "0", "1.5", "-", "net\\x1b", "HTTP", "502", at, "m"], p.stdout)
    p, req = ask(data(provider=provider) + END, "providers", "trip", "o",
                 "--for", "15m")
    check("trip: request", req["args"] == {"name": "o", "for_s": 900}, req)
    p, req = ask(data(provider=provider) + END, "providers", "show", "o/m")
    check("show", p.returncode == 0 and b"network 6, x\\x1b 1\n" in p.stdout
          and b"k\\x1b" in p.stdout and b"v\\x1b\n" in p.stdout and
          b"connect_ms     7\n" in p.stdout and
          b"15 calls, 90000 tokens in 1.5 s, said\n" in p.stdout, p.stdout)
    p, _ = ask(data(provider=provider) + END, "-o", "json", "providers",
               "show", "o/m")
    check("show json: times of targets", json.loads(p.stdout)["targets"][0]
          ["last_error_at"] == at, p.stdout)
    p, _ = ask(END, "providers", "show", "o")
    check("show without one: exit 4", p.returncode == 4, p.stderr)
    for wrong in ({"targets": [3, {"routes": 5}]}, {"targets": {}}, {"x": 1},
                  {"targets": [{"failed_by_class": [1], "settings": 3}]}):
        for verb in "show", "reset":
            p, _ = ask(data(provider=wrong) + END, "providers", verb, "o")
            check(f"{verb} of {wrong}", p.returncode == 0, p.stderr)

    def test(**more):
        return data(test=dict({"target": "o/m", "ok": False, "result":
                               "network", "timed_out": False, "status": 0,
                               "resolved_us": -1, "text": "a\x1bb"}, **more))
    for frames, code in ((test(ok=True), 0), (test(), 1),
                         (test(timed_out=True), 8),
                         (test(result="capacity"), 75),
                         (test(ok=True) + test(result="capacity"), 75),
                         (test(timed_out=True) + test(result="capacity"), 8),
                         (test(timed_out=True) + test(result=3), 1), (b"", 1)):
        p, _ = ask(frames + END, "providers", "test", "o")
        check(f"test: exit {code}", p.returncode == code and
              b"\x1b" not in p.stdout, p)
    failover = {"row": 1 << 21, "at_us": 1764417600123000, "session": "ses_1",
                "turn": "turn_1", "turn_seq": 2, "from": "o/m", "to": "p/n",
                "cls": "network", "reason": "eof", "status": 200,
                "gap_us": 1500, "from_bytes": 35, "items": 3, "items_of": 5,
                "outcome": "ok"}
    p, req = ask(data(failover=failover) + data(failover=dict(
        failover, from_bytes=0, items=0, gap_us=-1, outcome=None)) + END,
        "failovers", "list", "--since", "2h", "--before", "77")
    check("failovers", req["args"] == {"since_s": 7200, "before": "77"} and
          [row(p, n) for n in (1, 2)] ==
          [[at, "ses_1", "2", "o/m", "p/n", "network", "eof", "200", "1.5",
            "at", "byte", "35", "3", "of", "5", "ok", str(1 << 21)],
           [at, "ses_1", "2", "o/m", "p/n", "network", "eof", "200", "-",
            "before", "-", "-", str(1 << 21)]], p.stdout)
    group = {"target": "o/m", "cls": "network", "failovers": 3, "answered": 2,
             "in_stream": 1, "shortened": 0, "gap_p50_us": 1500,
             "gap_p99_us": -1, "last_us": 1764417600123000}
    p, _ = ask(data(progress={}) + data(failovers=group) + END, "failovers",
               "summary")
    check("summary", row(p, 1) == ["o/m", "network", "3", "2", "1", "0",
                                   "1.5", "-", at], p.stdout)
    p, _ = ask(END, "failovers", "summary")
    check("no failovers: exit 1", p.returncode == 1, p.stderr)


def test_config():
    settings = [{"block": "gateway", "title": "", "key": "workers",
                 "value": "2", "source": "file", "line": 7,
                 "restart": False},
                {"block": "route", "title": "m\\\x1b", "key": "targets",
                 "value": "a/b", "source": "default", "line": 0,
                 "restart": False}]
    answer = data(config={"file": "/f", "generation": 3}) + \
        b"".join(data(setting=s) for s in settings) + END
    p, req = ask(answer, "config", "show")
    check("config show", req["verb"] == "config.show" and
          row(p, 0) == ["file", "/f"] and row(p, 1) == ["generation", "3"]
          and row(p, 4) == ["gateway.workers", "line", "7", "2"] and
          row(p, 5) == ["route", "m\\\\\\x1b.targets", "default", "a/b"],
          p.stdout)
    p, _ = ask(answer, "config", "show", "-o", "json")
    check("config show json", json.loads(p.stdout)["settings"] == settings,
          p.stdout)
    p, _ = ask(data(setting=settings[0]) + END, "config", "show")
    check("config show without its head: exit 4", p.returncode == 4)
    p = run("config", "explain", "route")
    check("config explain BLOCK", p.returncode == 0 and
          p.stdout.count(b"route.") >= 6, p.stdout)


def test_reload_and_drain():
    p, req = ask(data(reload={"generation": 4, "restart_needed": None}) +
                 END, "reload")
    check("reload", req["verb"] == "reload" and p.returncode == 0 and
          p.stdout == b"reloaded: generation 4 serves\n", p.stdout)
    p, _ = ask(data(reload={"generation": 4, "restart_needed": "listen"}) +
               END, "reload")
    check("reload: what needs a restart", b"in force: listen\n" in p.stdout,
          p.stdout)
    p, _ = ask(frame({"v": 1, "id": 1, "error": {
        "code": 78, "name": "ECONFIG", "message": "/f:3: gateway.x: no"}}),
        "reload")
    check("reload refused: exit 78", p.returncode == 78 and
          p.stderr == b"holdfastctl: /f:3: gateway.x: no\n", p.stderr)
    drained = data(drain={"state": "drained", "turns_in_flight": 0})
    draining = data(drain={"state": "draining", "turns_in_flight": 2})
    p, req = ask(draining + END, "drain")
    check("drain", req["args"] == {} and p.returncode == 0 and
          p.stdout == b"draining: 2 turns under way\n", p.stdout)
    p, req = ask(draining + drained + END, "drain", "--wait", "5")
    check("drain --wait", req["args"] == {"wait": True} and
          p.stdout == b"drained\n", p.stdout)
    p, _ = ask(lambda conn, _: (conn.sendall(draining), conn.recv(1)),
               "drain", "--wait", "1")
    check("drain --wait: still turns after it", p.returncode == 8 and
          b"after 1 s" in p.stderr, p.stderr)
    p, _ = ask(draining, "drain", "--wait", "5")
    check("drain: the daemon goes without a word: exit 4",
          p.returncode == 4, p.stderr)


def test_errors():
    for code in 1, 2, 3, 5, 6, 7, 8, 75, 78:
        p, _ = ask(frame({"v": 1, "id": 1, "error": {
            "code": code, "name": "EX", "message": f"reason {code}\x1b"}}),
            "status")
        check(f"error frame of code {code}", p.returncode == code and
              p.stderr == f"holdfastctl: reason {code}\\x1b\n".encode() and
              not p.stdout, p.stderr)
    for code in 0, -1, 256, "3", None:
        p, _ = ask(frame({"v": 1, "id": 1, "error": {"code": code}}),
                   "status")
        check(f"error frame of code {code!r}: exit 1", p.returncode == 1,
              p.stderr)
    p, _ = ask(frame({"v": 1, "id": 1, "error": {"name": "EBUSY",
                                                 "code": 75}}), "status")
    check("error frame without a message", p.returncode == 75 and
          p.stderr == b"holdfastctl: EBUSY\n", p.stderr)
    p, _ = ask(data(session=SESSION) + frame(
        {"v": 1, "id": 1, "error": {"code": 7, "message": "row 3"}}),
        "sessions", "list")
    check("error after data: nothing half printed", p.returncode == 7 and
          not p.stdout, p.stdout)
    p, _ = ask(frame({"v": 1, "error": {"code": 5, "message": "who?"}}),
               "status", read=False)
    check("error before the request was read", p.returncode == 5, p.stderr)


def test_broken():
    deep = b'{"v":1,"id":1,"data":' + b"[" * 100000 + b"]" * 100000 + b"}"
    broken = {
        "empty": b"", "half a header": b"\0\0", "header only": b"\0\0\0\x09",
        "half a frame": END[:-3], "no end": data(session=SESSION),
        "zero length": b"\0\0\0\0", "endless length": b"\xff\xff\xff\xff{}",
        "no JSON": frame(b"hello"), "trailing garbage": frame(b"{}x"),
        "array": frame([1]), "no UTF-8": frame(b'{"v":1,"a":"\xff"}'),
        "twice": frame(b'{"v":1,"v":1,"id":1,"end":true}'),
        "deep": frame(deep), "no version": frame({"id": 1, "end": True}),
        "version 2": frame({"v": 2, "id": 1, "end": True}),
        "no id": frame({"v": 1, "end": True}),
        "other id": frame({"v": 1, "id": 2, "end": True}),
        "nothing in it": frame({"v": 1, "id": 1}),
        "end of false": frame({"v": 1, "id": 1, "end": False}),
        "data of 3": frame({"v": 1, "id": 1, "data": 3}),
        "no session": data(key=KEY) + END,
        "session of 3": data(session=3) + END,
        "HTTP": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    }
    for name, answer in broken.items():
        p, _ = ask(answer, "sessions", "list")
        check(f"broken answer, {name}: exit 4", p.returncode == 4 and
              p.stderr.startswith(b"holdfastctl: ") and not p.stdout,
              (p.returncode, p.stderr))
    wrong = {k: [] for k in SESSION}
    p, _ = ask(data(session=wrong) + data(session={}) + END,
               "sessions", "list")
    check("members of wrong types are shown as missing", p.returncode == 0
          and p.stdout.decode().split("\n")[1].split() == ["-"] * 9, p.stdout)
    huge = dict(TURN, started_us=2**63 - 1, ended_us=-2**63, total_us=-2**63,
                first_token_us=2**63 - 1)
    for how in ("table", "json"):
        p, _ = ask(data(session=OTHER) + data(turn=huge) + END, "-o", how,
                   "sessions", "show", "x")
        check(f"extreme figures as {how}", p.returncode == 0, p.stderr)


def test_delivery():
    answer = data(session=SESSION) * 300 + END

    def dribble(conn, _request):
        for i in range(0, len(answer), 17):
            conn.sendall(answer[i:i + 17])
    p, _ = ask(dribble, "sessions", "list", "-q")
    check("an answer in small pieces", p.returncode == 0 and
          p.stdout == b"ses_0123\n" * 300, p.stderr)
    big = dict(ITEM, body=json.dumps({"content": "x" * 5000000 + "\0"}))
    p, _ = ask(data(session=SESSION) + data(item=big) + END, "sessions",
               "show", "x", "--contents")
    check("a large answer", p.returncode == 0 and
          b"x" * 5000000 + b"\\x00\n" in p.stdout, p.stderr)
    p, _ = ask(lambda conn, _: conn.recv(1), "--timeout", "200", "status")
    check("no answer: exit 8", p.returncode == 8 and
          b"within 200 ms" in p.stderr, p.stderr)
    p, _ = ask(lambda conn, _: (conn.sendall(data(session=SESSION)),
                                conn.recv(1)),
               "--timeout", "200", "sessions", "list")
    check("no end: exit 8", p.returncode == 8 and not p.stdout, p.stderr)
    with open("/dev/full", "wb") as full:
        p, _ = ask(data(session=SESSION) + END, "sessions", "list",
                   stdout=full)
    check("no room for the output: exit 1", p.returncode == 1, p.stderr)


def test_no_daemon():
    p = run("-s", str(DIR / "none"), "status")
    check("no socket: exit 4", p.returncode == 4 and
          b"No such file" in p.stderr, p.stderr)
    dead = str(DIR / "dead")
    s = socket.socket(socket.AF_UNIX)
    s.bind(dead)
    s.close()
    p = run("-s", dead, "status")
    check("nobody listens: exit 4", p.returncode == 4, p.stderr)
    p = run("-s", "/" + "x" * 200, "status")
    check("path too long: exit 2", p.returncode == 2, p.stderr)
    full = str(DIR / "full")
    s = socket.socket(socket.AF_UNIX)
    s.bind(full)
    s.listen(0)
    held = []
    try:
        while True:     # fill the backlog
            c = socket.socket(socket.AF_UNIX)
            held.append(c)
            c.setblocking(False)
            c.connect(full)
    except BlockingIOError:
        pass
    p = run("-s", full, "--timeout", "200", "status")
    check("backlog full: exit 8", p.returncode == 8, p.stderr)
    for c in held + [s]:
        c.close()


def test_permission():
    name = "no right to connect: exit 5"
    if os.getuid() != 0:
        p_dir = DIR / "closed"
        p_dir.mkdir(mode=0)
        p = run("-s", str(p_dir / "s"), "status")
        p_dir.chmod(0o700)
    else:
        DIR.chmod(0o755)
        s = socket.socket(socket.AF_UNIX)
        path = str(DIR / "root.sock")
        s.bind(path)
        os.chmod(path, 0o600)
        s.listen(1)
        tool = DIR / "holdfastctl"  # where anybody may run it
        shutil.copy(CTL, tool)
        p = subprocess.run([str(tool), "-s", path, "status"], timeout=60,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           user=65534)
        s.close()
        DIR.chmod(0o700)
    check(name, p.returncode == 5, (p.returncode, p.stderr))


def test_usage_and_config():
    p = run("sessions", "list", "--contents")
    check("usage: exit 2", p.returncode == 2 and p.stderr ==
          b"holdfastctl: sessions list takes no --contents\n", p.stderr)
    p = run("-s", SOCK, "sessions", "show", b"\xff")
    check("argument not UTF-8: exit 2", p.returncode == 2, p.stderr)
    p, req = ask(b"", "sessions", "show", "x" * 70000)
    check("argument too long: exit 2", p.returncode == 2 and req is None,
          p.stderr)
    p = run("--help")
    check("--help", p.returncode == 0 and b"keys revoke PREFIX" in p.stdout)
    p = run("--version")
    check("--version", p.returncode == 0 and
          p.stdout.startswith(b"holdfastctl "))
    conf = DIR / "h.conf"
    conf.write_text('gateway { control = "%s" }\nprovider p { dialect = '
                    'openai base_url = http://h api_key_file = /none }\n'
                    % SOCK)
    d = Daemon(lambda conn, _: conn.sendall(data(key=KEY) + END))
    p = run("-c", str(conf), "-q", "keys", "list")
    d.stop()
    check("-c: the socket of the configuration, secrets unread",
          p.returncode == 0 and p.stdout == b"key_1\n", p.stderr)
    conf.write_text("gateway {\n control = 3\n}\n")
    p = run("-c", str(conf), "status")
    check("-c with an error: exit 78", p.returncode == 78 and
          b"h.conf:2: gateway.control" in p.stderr, p.stderr)
    p = run("-c", str(DIR / "no.conf"), "status")
    check("-c without a file: exit 78", p.returncode == 78, p.stderr)


try:
    for test in (test_status, test_list, test_show, test_timeline, test_keys,
                 test_check,
                 test_verify, test_locks_and_providers,
                 test_operators, test_config,
                 test_reload_and_drain, test_errors,
                 test_broken, test_delivery, test_no_daemon, test_permission,
                 test_usage_and_config):
        test()
finally:
    shutil.rmtree(DIR, ignore_errors=True)
print(f"1..{count}")
sys.exit(1 if failed else 0)
