"""Streams of megabytes: to clients that read slowly, that leave, and broken
off far behind the beginning.  A worker holds only the end of such a text; what
is stored, continued and heard by the next turn is the whole."""
import itertools
import json
import os
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import client
import dialect as words
import provider
import tap
import validate
import wait
from daemon import Config, Daemon, shared

A = provider.Provider("openai")
B = provider.Provider("anthropic")
C = provider.Provider("openai")
ALL = (A, B, C)
READERS, SIZE = 12, 4000000
_n = itertools.count(1)


def config(**gateway):
    conf = Config(workers=1, flush_ms=20, log_level="info", **gateway)
    for n, p in (("a", A), ("b", B), ("c", C)):
        conf.provider(n, p, first_token_ms=10000, idle_ms=5000,
                      total_ms=100000)
    conf.target("c/prefills", prefill="plain")
    more = {"max_retries": 0, "deadline_ms": 110000}
    conf.route("alone", ["a/x"], **more)
    conf.route("ab", ["a/x", "b/y"], **more)
    conf.route("bc", ["b/y", "c/z"], **more)
    conf.route("ap", ["a/x", "c/prefills"], **more)
    conf.route("abc", ["a/x", "b/y", "c/z"], **more)
    conf.route("hidden", ["a/x", "b/y"], continuation="hidden", **more)
    conf.route("finish", ["a/x"], on_disconnect="finish", **more)
    return conf


get_daemon = shared(lambda: Daemon(config()).start())


def fresh():
    d = get_daemon()
    for p in ALL:
        p.behave(provider.echo())
        p.take()
    return d


def name():
    return "long-%d" % next(_n)


def long_text(size):
    """Numbered words, so that none is missing, doubled or misplaced."""
    n = size // 8
    return "".join("w%06d " % i for i in range(n)).rstrip()


def stream(ex, text, upto=None, piece=1024):
    """Send that much of the text, in pieces."""
    events = ex.events(words.Said(text, pieces=words.split(text, piece)))
    if upto is not None:
        events = events[:words.first_useful(ex.dialect) + upto // piece]
    ex.start()
    for i in range(0, len(events), 16):
        ex.chunk(b"".join(events[i:i + 16]))


def whole(text):
    def behave(ex):
        stream(ex, text)
        ex.end()
    return behave


def broken(text, upto):
    def behave(ex):
        stream(ex, text, upto)
        ex.end()
        ex.close()
    return behave


def rest_of(text, style="exact"):
    """Goes on where the assistant's last message ends."""
    def fn(request):
        said = [validate.text_of(m["content"]) for m in request.messages
                if m["role"] == "assistant"][-1].rstrip()
        if not text.startswith(said):
            return words.Said("not asked to go on: %r" % said[-100:])
        tail = text[len(said):]
        if style == "repeats":
            tail = " ".join(said.split()[-5:]) + tail
        return words.Said(tail, pieces=words.split(tail, 1024))
    return fn


def stored(d, s):
    """(state of the last turn, its text), from disk."""
    shown = d.session(s)
    items = [i for i in shown["items"] if i["role"] == "assistant"]
    return shown["turns"][-1]["state"], (
        json.loads(items[-1]["body"])["content"] if items else None)


def same(t, got, want, what):
    """Without megabytes in the report."""
    if got == want:
        return
    i = next((k for k in range(min(len(got), len(want)))
              if got[k] != want[k]), min(len(got), len(want)))
    raise tap.Failed("%s: %d and %d bytes; differ at %d: got %r want %r" % (
        what, len(got), len(want), i, got[i - 40:i + 40],
        want[i - 40:i + 40]))


def whole_stream(t, r, text, what):
    t.eq(r.status, 200, what)
    same(t, r.text, text, what)
    t.eq((r.finish, r.done, r.end), ("stop", True, "chunked"), what)


def sanitized():
    with open(os.path.join(os.environ["HF_BUILDDIR"], "holdfast"), "rb") as f:
        return b"__asan" in f.read()


def peak_kb(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as f:
        return [int(line.split()[1]) for line in f
                if line.startswith("VmHWM")][0]


@tap.case("%d streams of %d MB to slow readers are bounded in memory" % (
    READERS, SIZE // 1000000), 120)
def slow_readers(t):
    d = fresh()
    text = long_text(SIZE)
    A.behave(whole(text))
    first = threading.Barrier(READERS + 1)
    go = threading.Event()

    def read(s):
        def on_event(r):
            # Stops after its first text, until all have come so far.
            if len(r.events) == 2:
                first.wait(60)
                go.wait(60)
        return client.chat(d, "tell me", session=s, model="alone",
                           stream=True, on_event=on_event, timeout=60)
    sessions = [name() if i % 2 else None for i in range(READERS)]
    readers = [client.background(read, s) for s in sessions]
    first.wait(60)
    # The worker takes what it may, and then no more.
    seen = [-SIZE]

    def stand():	# looking at it makes some bytes too
        seen.append(d.metrics()["holdfast_response_bytes_total"])
        return seen[-1] - seen[-2] < 100000
    wait.until(stand, 30, "the streams to stand", step=0.5)
    go.set()
    for s, reader in zip(sessions, readers):
        r = reader.get(90)
        whole_stream(t, r, text, "session %s" % s)
        if s is not None:
            state, kept = stored(d, s)
            t.eq(state, "complete", s)
            same(t, kept, text, s + " on disk")
    peak = sum(peak_kb(p) for p in d.workers().values())
    t.diag("peak of the worker: %d kB" % peak)
    if not sanitized():
        t.between(peak, 0, 1.5 * (32 + 0.4 * READERS) * 1024, "kB")


@tap.case("the next turn hears all of it, and a retry is told all of it", 60)
def heard(t):
    d = fresh()
    for first in ("ab", "bc"):
        s = name()
        text = long_text(300000)
        (A if first == "ab" else B).script(whole(text))
        r = client.chat(d, "tell me", session=s, model=first, stream=True)
        whole_stream(t, r, text, first)
        r = client.chat(d, "tell me", session=s, model=first, stream=True,
                        headers={"X-Stainless-Retry-Count": "1"})
        whole_stream(t, r, text, "told again")
        t.eq(r.headers["x-holdfast-history"], "replay", "told from disk")
        A.take()
        client.chat(d, "thanks", session=s, model="alone")
        got = A.history(A.requests[-1])
        t.eq([role for role, _ in got], ["user", "assistant", "user"],
             "roles")
        same(t, got[1][1], text, "heard by the next one")


@tap.case("broken off far behind the beginning, the next target goes on", 90)
def goes_on(t):
    d = fresh()
    text = long_text(400000)
    for route, first, second, style in (
            ("ab", A, B, "exact"), ("ab", A, B, "repeats"),
            ("bc", B, C, "exact"), ("ap", A, C, "exact")):
        for s in (name(), None):
            what = "%s %s %s" % (route, style, s)
            first.script(broken(text, 300000))
            second.behave(provider.reply_to(rest_of(text, style)))
            second.take()
            r = client.chat(d, "tell me", session=s, model=route,
                            stream=True)
            whole_stream(t, r, text, what)
            t.eq(len(second.requests), 1, what)
            if s is not None:
                same(t, stored(d, s)[1], text, what + ": on disk")
    for s in (name(), None):
        A.script(broken(text, 300000))
        B.behave(whole(text))
        r = client.chat(d, "tell me", session=s, model="hidden", stream=True)
        whole_stream(t, r, text, "hidden %s" % s)
    for p in ALL:
        t.eq(p.violations, [], "violations")


@tap.case("rolling: broken off twice, far from the beginning", 60)
def rolling(t):
    d = fresh()
    text = long_text(400000)
    for s in (name(), None):
        A.script(broken(text, 150000))

        def second(ex):
            said = rest_of(text)(ex.request)
            stream(ex, said.text, 100000)
            ex.end()
            ex.close()
        B.script(second)
        C.behave(provider.reply_to(rest_of(text)))
        r = client.chat(d, "tell me", session=s, model="abc", stream=True)
        whole_stream(t, r, text, "rolling %s" % s)
        if s is not None:
            same(t, stored(d, s)[1], text, "on disk")
            shown = d.ctl("sessions", "show", s, "--attempts")
            t.eq([a["target"] for a in shown["attempts"]],
                 ["a/x", "b/y", "c/z"], "attempts")


@tap.case("with nobody to go on: an error, and what was said is kept", 60)
def nobody(t):
    d = fresh()
    text = long_text(300000)
    s = name()
    A.script(broken(text, 200000))
    r = client.chat(d, "tell me", session=s, model="alone", stream=True)
    t.eq((r.finish, r.done), (None, False), "no end")
    t.eq(r.error["code"], "stream_interrupted", "an error event")
    state, kept = stored(d, s)
    t.eq(state, "incomplete", "state")
    same(t, kept, r.text, "what the client has")
    A.take()
    client.chat(d, "go on", session=s, model="alone")
    same(t, A.history(A.requests[-1])[1][1], r.text, "the next turn")


@tap.case("too much text without a session: it cannot be gone on with", 120)
def too_much(t):
    d = fresh()
    text = long_text(6000000)
    A.script(broken(text, 5500000))
    B.behave(provider.reply_to(rest_of(text)))
    r = client.chat(d, "tell me", model="ab", stream=True, timeout=60)
    same(t, r.text, text[:len(r.text)], "what came is right")
    t.ok(len(r.text) > 5000000, "and nearly all")
    t.eq((r.finish, r.done), (None, False), "no end")
    t.eq(r.error["code"], "stream_interrupted", "an error event")
    t.eq(B.requests, [], "nobody is asked with half of it")
    # That was given back: the next one may be long again.
    text = long_text(300000)
    A.script(broken(text, 200000))
    B.behave(provider.reply_to(rest_of(text)))
    r = client.chat(d, "tell me", model="ab", stream=True)
    whole_stream(t, r, text, "the next one")


@tap.case("a tool call behind a long text", 60)
def tool(t):
    d = fresh()
    text = long_text(200000)
    call = [("call_q", "f", '{"city": "Oslo"}')]
    tools = [{"type": "function", "function": {"name": "f", "parameters": {
        "type": "object", "properties": {}}}}]

    def behave(ex):
        ex.start()
        ex.chunk(b"".join(ex.events(words.Said(
            text, call, pieces=words.split(text, 1024)))))
        ex.end()
    s = name()
    A.script(behave)
    r = client.chat(d, "tell me", session=s, model="alone", stream=True,
                    tools=tools)
    same(t, r.text, text, "text")
    t.eq([(n, a) for _i, n, a in r.calls], [("f", '{"city": "Oslo"}')],
         "call")
    A.take()
    r2 = client.chat(d, [{"role": "tool", "tool_call_id": r.calls[0][0],
                          "content": "rain"}], session=s, model="alone",
                     tools=tools)
    t.eq(r2.status, 200, repr(r2))
    got = A.requests[-1].messages
    same(t, got[1]["content"], text, "the text before the call")
    t.eq(got[1]["tool_calls"][0]["id"], r.calls[0][0], "the call")
    t.eq(A.violations, [], "violations")


def leave_at(d, s, model, size):
    """Reads that much of a stream, then leaves without a word."""
    with client.Connection(d.addr, 30) as c:
        c.request("POST", "/v1/chat/completions", client.headers_of(s),
                  json.dumps(client.body_of("tell me", model, True)).encode())
        got = 0
        while got < size:
            got += len(c.sock.recv(65536))


@tap.case("a client that leaves in the middle: what it may have is kept", 60)
def leaves(t):
    d = fresh()
    text = long_text(8000000)
    s = name()
    A.script(whole(text))
    leave_at(d, s, "alone", 300000)
    wait.until(lambda: d.session(s)["turns"][-1]["state"] != "open", 20,
               "the turn to end", step=0.1)
    state, kept = stored(d, s)
    t.eq(state, "canceled", "state")
    same(t, kept, text[:len(kept)], "the beginning")
    t.ok(200000 < len(kept) < len(text), "%d bytes" % len(kept))


@tap.case("on_disconnect = finish: a client that was slow and left is no "
          "brake", 60)
def finishes(t):
    d = fresh()
    text = long_text(12000000)	# more than the kernel takes for it
    s = name()
    A.script(whole(text))
    leave_at(d, s, "finish", 1000)
    wait.until(lambda: d.session(s)["turns"][-1]["state"] != "open", 40,
               "the answer to be complete", step=0.2)
    state, kept = stored(d, s)
    t.eq(state, "complete", "state")
    same(t, kept, text, "all of it")


@tap.case("a worker killed far behind the beginning: another one goes on", 60)
def killed(t):
    d = Daemon(config()).start()
    t.cleanup(d.destroy)

    def broken_by_kill(text, s, after):
        A.behave(whole(text))	# and says all of it again, when asked

        def kill(r):
            if len(r.events) == after:
                os.kill(list(d.workers().values())[0], 9)
        r = client.chat(d, "tell me", session=s, model="alone", stream=True,
                        on_event=kill, timeout=40)
        wait.until(d.workers, 20, "a worker")
        return r
    text, s = long_text(9000000), name()	# more than the kernel holds
    r = broken_by_kill(text, s, 800)
    whole_stream(t, r, text, "with a session")
    state, kept = stored(d, s)
    t.eq(state, "complete", "state")
    same(t, kept, text, "on disk")
    # Without one a successor knows the last 64 KB.
    r = broken_by_kill(text, None, 800)
    same(t, r.text, text[:len(r.text)], "what came is right")
    t.eq((r.finish, r.done), (None, False), "no end: %r" % r.end)
    t.ok(r.error, "an error event")
    d.stop()


def sip(d, text, rate, seconds):
    """A client with little room that takes 'rate' bytes a second: its socket
    and why it was given up, or None."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
    sock.settimeout(30)
    sock.connect(d.addr)
    body = json.dumps(client.body_of(text, "alone", True)).encode()
    sock.sendall(("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
                  "Content-Type: application/json\r\n"
                  "Content-Length: %d\r\n\r\n" % len(body)).encode() + body)
    end, got = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        try:
            data = sock.recv(rate // 20)
        except OSError as e:
            return sock, "%s after %d bytes" % (e, got)
        if not data:
            return sock, "closed after %d bytes" % got
        got += len(data)
        time.sleep(0.05)
    return sock, None


@tap.case("a client that reads, however slowly, is not given up; one that "
          "does not is", 60)
def slow_is_not_gone(t):
    d = Daemon(config(write_timeout_ms=1000, keepalive_timeout_ms=1000))
    t.cleanup(d.destroy)
    d.start()
    # More than the kernel holds for it, and so little that it holds it all.
    for size in (12000000, 600000):
        A.behave(whole(long_text(size)))
        sock, why = sip(d, "tell me", 30000, 5)
        t.cleanup(sock.close)
        t.eq(why, None, "%d bytes of text, after 5 s" % size)
        wait.until(lambda: d.metrics()["holdfast_connections"] == 1, 20,
                   "a client that stopped to be given up", step=0.1)
    d.stop()


@tap.case("an end that cannot be stored is not told", 60)
def not_stored(t):
    with open(os.path.join(os.environ["HF_BUILDDIR"], "config.h")) as f:
        if "#define HF_FAULTS 1" not in f.read():
            raise tap.Skip("built without --enable-faults")
    d = Daemon(config(), env={"HF_FAULT": "store.t2.before_commit=fail@1"})
    t.cleanup(d.destroy)
    d.start()
    text = long_text(300000)
    s = name()
    A.behave(whole(text))
    r = client.chat(d, "tell me", session=s, model="alone", stream=True)
    t.eq((r.finish, r.done), (None, False), "no end")
    t.ok(r.error, "an error event")
    same(t, r.text, text, "text")
    state, kept = stored(d, s)
    t.eq(state, "incomplete", "state")
    same(t, kept, text, "what was said is kept")
    d.stop()


if __name__ == "__main__":
    tap.main()
