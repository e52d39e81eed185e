"""A worker that dies before or after each durable step of a turn: with its
client's connection taken over, and without handover, by the client's retry.
Either way one user turn, one answer, a valid history and a free lease."""
import json
import os
import signal
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import client
import dialect as words
import provider
import tap
import validate
import wait
from daemon import Config, Daemon

FULL = "one two three four five six seven eight nine ten eleven twelve"

# Point, the how-manieth time in the process kills it: all in its second turn,
# which fails over once.
POINTS = [
    ("store.t1.before_commit", 2), ("store.t1.after_commit", 2),
    ("turn.t1.done", 2),
    ("store.attempts.before_commit", 2), ("store.attempts.after_commit", 2),
    ("turn.call", 3), ("turn.call", 4),
    ("store.part.before_commit", 1), ("store.part.after_commit", 1),
    ("store.t2.before_commit", 2), ("store.t2.after_commit", 2),
    ("turn.t2.done", 2),
]
free = []	# seconds from a death to the next call of a provider


def have_faults():
    with open(os.path.join(os.environ["HF_BUILDDIR"], "config.h"),
              encoding="utf-8") as f:
        return "#define HF_FAULTS 1" in f.read()


def go_on(ex):
    """The rest of FULL behind what the request has of it; streams pause in
    the middle, for a part to be stored."""
    last = ex.request.messages[-1]
    have = (validate.text_of(last["content"])
            if last["role"] == "assistant" else "")
    assert FULL.startswith(have), have
    said = words.Said(FULL[len(have):], pieces=words.split(
        FULL[len(have):], 5))
    if not ex.request.stream:
        ex.say(said)
        return
    events = ex.events(said)
    ex.start()
    for i, event in enumerate(events):
        if i == len(events) // 2 and i > 3:
            time.sleep(0.03)
        ex.chunk(event)
    ex.end()


class World:
    def __init__(self, t, fault, handover, once=True, **gateway):
        if not have_faults():
            raise tap.Skip("built without --enable-faults")
        self.t = t
        self.a = provider.Provider("openai")
        self.b = provider.Provider("openai")
        t.cleanup(self.a.close)
        t.cleanup(self.b.close)
        self.a.behave(provider.status(503))
        self.b.behave(go_on)
        conf = Config(workers=3, handover=handover, flush_ms=2, **gateway)
        for name, p in (("a", self.a), ("b", self.b)):
            conf.provider(name, p, prefill="plain")
        conf.route("m", ["a/x", "b/y"])
        env = {"HF_FAULT": fault}
        self.d = Daemon(conf, env=env)
        t.cleanup(self.d.destroy)
        token = os.path.join(self.d.dir, "once")
        if once:
            with open(token, "w", encoding="ascii"):
                pass
            self.d.env["HF_FAULT_ONCE"] = token
        self.d.start()
        self.token = token

    def connect(self, slot=1):
        c = self.d.connect_to(self.d.workers()[slot], 40)
        self.t.cleanup(c.close)
        return c

    def check(self, r, stream, what):
        t = self.t
        t.eq((r.status, r.text, r.finish), (200, FULL, "stop"),
             "%s: %r" % (what, r))
        if stream:
            t.eq((r.done, r.end), (True, "chunked"), what)
            chunks = [e for e in r.events if isinstance(e, dict)]
            t.eq(len({(e["id"], e["model"], e["created"]) for e in chunks}),
                 1, what + ": one id")
            t.eq(sum("role" in c["delta"] for c in r.choices), 1,
                 what + ": one role chunk")

    def check_history(self, conn, n=2):
        """Two user turns with an answer each, and a third one hears them."""
        t, d = self.t, self.d
        t.ok(not os.path.exists(self.token), "nobody died")
        shown = d.session("s")
        turns = [x for x in shown["turns"] if x["on_path"]]
        t.eq([x["state"] for x in turns], ["complete"] * n, "turns")
        t.eq(shown["session"]["locked"], False, "the lease is free")
        on_path = {x["seq"] for x in turns}
        t.eq([json.loads(x["body"])["content"] for x in shown["items"]
              if x["turn_seq"] in on_path], ["one", FULL, "two", FULL],
             "history")
        r = client.chat(d, "three", session="s", connection=conn)
        t.eq((r.status, r.text), (200, FULL), repr(r))
        t.eq(self.b.history(self.b.requests[-1]),
             [("user", "one"), ("assistant", FULL), ("user", "two"),
              ("assistant", FULL), ("user", "three")],
             "what the provider hears")
        t.eq(self.a.violations + self.b.violations, [], "violations")
        d.stop()


def adopted(t, point, nth, stream):
    w = World(t, "%s=kill@%d" % (point, nth), "on")
    conn = w.connect()
    w.check(client.chat(w.d, "one", session="s", connection=conn), False,
            "turn 1")
    r = client.chat(w.d, "two", session="s", stream=stream, connection=conn)
    w.check(r, stream, point)
    t.eq(len(w.d.session("s")["turns"]), 2, "one turn each")
    w.check_history(conn)


def retried(t, point, nth, stream):
    w = World(t, "%s=kill@%d" % (point, nth), "off")
    conn, other = w.connect(), w.connect(2)
    w.check(client.chat(w.d, "one", session="s", connection=conn), False,
            "turn 1")
    # So that nothing but the lease is measured.
    t.eq(client.chat(w.d, "warm", connection=other).status, 200, "warm")
    before = len(w.a.requests)
    r = client.chat(w.d, "two", session="s", stream=stream, connection=conn)
    died = r.ended_at
    t.ok(r.end in ("cut", "reset"), "%s did not kill: %r" % (point, r))
    t.eq(r.done, False, "no end told")
    calls = len(w.a.requests)
    r = client.chat(w.d, "two", session="s", stream=stream, connection=other)
    w.check(r, stream, point)
    if len(w.a.requests) > calls:	# else it was told from disk
        free.append(w.a.requests[calls].time - died)
    t.ok(before < len(w.a.requests), "calls")
    w.check_history(other)


for _point, _nth in POINTS:
    for _stream in (False, True):
        if not _stream and ".part." in _point:
            continue

        def _adopted(t, point=_point, nth=_nth, stream=_stream):
            adopted(t, point, nth, stream)

        def _retried(t, point=_point, nth=_nth, stream=_stream):
            retried(t, point, nth, stream)
        _how = "%s (%d), %s" % (_point, _nth,
                                "streamed" if _stream else "plain")
        tap.case("dies at %s: taken over" % _how, 60)(_adopted)
        tap.case("dies at %s: the client tries again" % _how, 60)(_retried)


@tap.case("the lease was free at once")
def lease(t):
    if not have_faults():
        raise tap.Skip("built without --enable-faults")
    free.sort()
    t.diag("from a death to the next call of a provider: median %.1f ms, "
           "worst %.1f ms, %d deaths" % (
               free[len(free) // 2] * 1000, free[-1] * 1000, len(free)))
    t.ok(len(free) > 10, "deaths that were measured")
    t.between(free[len(free) // 2], 0, 0.05 * tap.SCALE, "seconds")


# --- those who take over die as well ---------------------------------------

def stands(w, conn, seen):
    """A stream whose provider stands still after the first words."""
    gate = provider.Barrier()
    w.t.cleanup(gate.release)
    w.a.behave(go_on)
    w.a.script(provider.trickle(FULL, gate, before=4))
    call = client.background(
        client.chat, w.d, "two", session="s", stream=True, connection=conn,
        timeout=40, on_event=lambda r: seen.append(r.text) and False)
    gate.wait_for(1)
    wait.until(lambda: seen and seen[-1] != "", 10, "the first words")
    return call, gate


for _point in ("store.adopt.before_commit", "store.adopt.after_commit"):
    def _twice(t, point=_point):
        w = World(t, point + "=kill@1", "on")
        conn = w.connect()
        w.a.behave(go_on)
        w.check(client.chat(w.d, "one", session="s", connection=conn), False,
                "turn 1")
        seen = []
        call, gate = stands(w, conn, seen)
        os.kill(w.d.workers()[1], signal.SIGKILL)
        r = call.get(40)
        w.check(r, True, point)
        gate.release()
        shown = w.d.session("s")
        t.eq([x["cls"] for x in shown["attempts"]
              if x["turn_seq"] == 2], ["lost", "ok"], "attempts")
        w.b = w.a
        w.check_history(conn)
    tap.case("whoever takes over dies at %s: another does" % _point,
             60)(_twice)


@tap.case("each heir dies when it has stored a part", 90)
def rolling(t):
    # Every process dies at its third part, so heirs die too, until a process
    # has less than three left to store.
    w = World(t, "store.part.after_commit=kill@3", "on", once=False)
    conn = w.connect()
    w.a.behave(go_on)
    w.check(client.chat(w.d, "one", session="s", connection=conn), False,
            "turn 1")

    def slowly(ex):
        last = ex.request.messages[-1]
        have = (validate.text_of(last["content"])
                if last["role"] == "assistant" else "")
        said = words.Said(FULL[len(have):], pieces=words.split(
            FULL[len(have):], 5))
        ex.start()
        for event in ex.events(said):
            ex.chunk(event)
            time.sleep(0.02)
        ex.end()
    w.a.behave(slowly)
    r = client.chat(w.d, "two", session="s", stream=True, connection=conn,
                    timeout=60)
    w.check(r, True, "rolling")
    shown = w.d.session("s")
    lost = [x["cls"] for x in shown["attempts"] if x["turn_seq"] == 2]
    t.diag("attempts: %s" % " ".join(lost))
    t.ok(len(lost) >= 3, "heirs died")
    w.a.behave(go_on)
    w.b = w.a
    w.check_history(conn)


# --- requests without a session, and answers that are long -------------------

@tap.case("streams without a session: in memory, kept, and with a key", 60)
def nameless(t):
    for stateless, key in (("memory", None), ("keep", None),
                           ("memory", "k1")):
        w = World(t, "none=kill", "on", once=False, stateless=stateless)
        headers = [] if key is None else [("Idempotency-Key", key)]
        gate = provider.Barrier()
        t.cleanup(gate.release)
        w.a.behave(go_on)
        w.a.script(provider.trickle(FULL, gate, before=4))
        seen = []
        conn = w.connect()
        call = client.background(
            client.chat, w.d, "hi", stream=True, connection=conn,
            headers=headers, timeout=40,
            on_event=lambda r: seen.append(r.text) and False)
        gate.wait_for(1)
        wait.until(lambda: seen and seen[-1] != "", 10, "the first words")
        os.kill(w.d.workers()[1], signal.SIGKILL)
        r = call.get(40)
        what = "%s, key %s" % (stateless, key)
        w.check(r, True, what)
        t.eq(len(w.a.requests), 2, what + ": calls")
        t.eq(w.a.history(w.a.requests[1])[0], ("user", "hi"), what)
        if key is not None:
            again = client.chat(w.d, "hi", stream=True, headers=headers)
            w.check(again, True, what)
            t.eq(len(w.a.requests), 2, what + ": told again")
            t.eq([e["id"] for e in again.events[:1]],
                 [e["id"] for e in r.events[:1]], what + ": one answer")
        if stateless == "keep" or key is not None:
            # Without a name each is a session of its own.
            t.eq([s["turns"] for s in w.d.ctl("sessions", "list")],
                 [1], what + ": stored once")
        gate.release()
        w.d.stop()


@tap.case("a long plain answer of which the client has a part", 60)
def long_plain(t):
    w = World(t, "none=kill", "on", once=False)
    # More than the kernel takes off the worker's hands.
    text = "".join("%06d " % i for i in range(1500000))
    w.a.behave(provider.answer(text, pieces=words.split(text, 50000)))
    conn = w.connect()
    conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    data = json.dumps(client.body_of("all of it", "m", False)).encode()
    conn.request("POST", "/v1/chat/completions",
                 client.headers_of(session="s"), data)
    conn.sock.settimeout(30)
    conn.buf = conn.sock.recv(1000)
    # The rest waits for a client that does not read.
    time.sleep(0.2)
    os.kill(w.d.workers()[1], signal.SIGKILL)
    # It was complete on disk, and is made again from there.
    w.d.log.wait(r"turn: adopted .* found=1 state=3 ", 10)
    r = conn.response("POST")
    t.eq((r.status, r.end), (200, "length"), repr(r)[:300])
    t.ok(r.text == text, "the text: %d of %d bytes" % (len(r.text),
                                                       len(text)))
    t.eq(len(w.a.requests), 1, "calls")
    r = client.chat(w.d, "more", session="s", connection=conn)
    t.eq(r.status, 200, "the connection goes on")
    w.d.stop()


if __name__ == "__main__":
    tap.main()
