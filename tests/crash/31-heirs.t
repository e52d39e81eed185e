"""Who goes on with a dead worker's connections, one case for each way to die:
idle and half-read ones, the only worker, a worker that hangs, a drain that
took too long, the end of the service; and what is cut after all."""
import json
import os
import resource
import signal
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

FULL = "one two three four five six seven eight nine ten"


def make(t, workers=3, **gateway):
    p = provider.Provider("openai")
    t.cleanup(p.close)
    p.behave(provider.echo())
    conf = Config(workers=workers, handover="on", **gateway)
    conf.provider("a", p, first_token_ms=30000, idle_ms=30000,
                  total_ms=60000, prefill="plain")
    conf.route("m", ["a/model-a"], deadline_ms=60000)
    d = Daemon(conf)
    t.cleanup(d.destroy)
    return d.start(), p


def connect(t, d, pid):
    c = d.connect_to(pid, 40)
    t.cleanup(c.close)
    return c


def kill(d, pid, sig=signal.SIGKILL):
    """... and wait until its connections have heirs."""
    since = len(d.log.lines)
    os.kill(pid, sig)
    return d.log.wait(r"handover: slot=\d+ inc=\d+ (.*)", 15, since=since)


def replaced(d, pid, n):
    wait.until(lambda: len(d.workers()) == n and
               pid not in d.workers().values(), 10, "a new worker")


def count(d, what):
    return d.metrics()["holdfast_%s" % what]


def go_on():
    """The rest of FULL behind what the client has of it."""
    def fn(request):
        last = request.messages[-1]
        have = (validate.text_of(last["content"])
                if last["role"] == "assistant" else "")
        assert FULL.startswith(have), have
        return words.Said(FULL[len(have):],
                          pieces=words.split(FULL[len(have):], 5))
    return provider.reply_to(fn)


def stream_that_stands(t, d, p, conn, session="s", head=3):
    """A stream on that connection whose client has the first words and whose
    provider then says nothing more; whoever is called next goes on."""
    gate = provider.Barrier()
    t.cleanup(gate.release)
    p.behave(go_on())
    p.script(provider.trickle(FULL, gate, before=head))
    seen = []
    call = client.background(
        client.chat, d, "count", session=session, stream=True,
        connection=conn, on_event=lambda r: seen.append(r.text) and False)
    gate.wait_for(1)
    wait.until(lambda: seen and seen[-1] == " ".join(FULL.split()[:head]), 10,
               "the first words")
    return call, gate


def whole(t, r):
    t.eq((r.status, r.text, r.finish, r.done, r.end),
         (200, FULL, "stop", True, "chunked"), repr(r))


@tap.case("idle, half-read and half-written connections live on", 60)
def at_rest(t):
    d, p = make(t)
    pid = sorted(d.workers().values())[0]
    idle, head, body = [connect(t, d, pid) for _ in range(3)]
    data = json.dumps(client.body_of("half a body", "m", False)).encode()
    head.send(b"GET /v1/mo")
    body.request("POST", "/v1/chat/completions",
                 [("Content-Length", str(len(data)))], data[:20],
                 length=False)
    for _ in range(2):
        # The second time the heirs are killed.
        wait.until(lambda: count(d, "connections_held") >= 3, 10, "held")
        for pid in list(d.workers().values()):
            os.kill(pid, signal.SIGKILL)
            replaced(d, pid, 3)
    t.ok(count(d, "handovers_total") >= 6, "handed over")
    t.eq(count(d, "handovers_lost_total"), 0, "cut")
    head.send(b"dels HTTP/1.1\r\nHost: x\r\n\r\n")
    r = head.response()
    t.eq((r.status, r.end), (200, "length"), repr(r))
    body.send(data[20:])
    r = body.response("POST")
    t.eq((r.status, r.text), (200, "heard 1: half a body"), repr(r))
    for c in (idle, head, body):
        t.eq(client.chat(d, "hi", connection=c).status, 200, "goes on")
    for c in (idle, head, body):
        c.close()
    wait.until(lambda: count(d, "connections_held") <= 1, 10,
               "closed connections are let go")
    d.stop()


@tap.case("the end of a connection reaches its client though it is held", 40)
def ends(t):
    d, p = make(t, workers=1)
    r = client.request(d, "GET", "/livez", [("Connection", "close")])
    t.eq((r.status, r.end), (200, "length"), repr(r))
    with client.Connection(d.addr) as c:
        c.send(b"GET /livez HTTP/1.0\r\n\r\n")
        t.eq(c.response().status, 200, "HTTP/1.0")
        t.eq(c.sock.recv(1), b"", "the end")
    d.stop()


@tap.case("the only worker dies: its connections wait for the next one", 60)
def alone(t):
    d, p = make(t, workers=1)
    conn = connect(t, d, d.workers()[1])
    call, gate = stream_that_stands(t, d, p, conn)
    m = kill(d, d.workers()[1])
    t.isin("to=nobody waiting=", m.group(1), "who goes on")
    d.log.wait(r"handover: later given=\d+ to=1:\d+ waiting=0", 10)
    whole(t, call.get(20))
    gate.release()
    t.eq([x["state"] for x in d.session("s")["turns"]], ["complete"], "turns")
    t.eq(client.chat(d, "hi", connection=conn).status, 200, "goes on")
    d.stop()


@tap.case("a stopped worker is found, killed at once and inherited from", 60)
def stopped(t):
    d, p = make(t, heartbeat_ms=800)
    pid = sorted(d.workers().values())[0]
    conn = connect(t, d, pid)
    call, gate = stream_that_stands(t, d, p, conn)
    os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    whole(t, call.get(30))
    t.diag("from SIGSTOP to the end of the stream: %.2f s" % (
        time.monotonic() - began))
    t.between(time.monotonic() - began, 0.5, 2.0 * tap.SCALE, "seconds")
    m = d.log.wait(r"master: signal sent .* pid=%d signal=(\d+) "
                   r"reason=loop_stands" % pid, 1)
    t.eq(m.group(1), "9", "which signal")
    gate.release()
    t.eq([x["state"] for x in d.session("s")["turns"]], ["complete"], "turns")
    d.stop()


@tap.case("a worker that wakes when its successor serves changes nothing", 60)
def awakes(t):
    d, p = make(t, heartbeat_ms=800)
    for i in range(8):
        session = "s%d" % i
        pid = sorted(d.workers().values())[0]
        conn = connect(t, d, pid)
        call, gate = stream_that_stands(t, d, p, conn, session)
        os.kill(pid, signal.SIGSTOP)
        # Some time around its end, with what its provider said meanwhile.
        gate.release()
        time.sleep(0.8 + 0.05 * i)
        try:
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            pass
        whole(t, call.get(30))
        shown = d.session(session)
        t.eq([x["state"] for x in shown["turns"]], ["complete"], "turns")
        t.eq([json.loads(x["body"])["content"] for x in shown["items"]],
             ["count", FULL], "one question, one answer")
        wait.until(lambda: len(d.workers()) == 3, 10, "three workers")
    d.stop()


@tap.case("a stream that outlasts a reload's drain goes to the new workers",
          60)
def reload(t):
    d, p = make(t, drain_ms=500)
    old = set(d.workers().values())
    conn = connect(t, d, sorted(old)[0])
    call, gate = stream_that_stands(t, d, p, conn)
    d.proc.send_signal(signal.SIGHUP)
    d.log.wait(r"drain took too long", 20)
    whole(t, call.get(20))
    d.log.wait(r"reload: done", 20)
    gate.release()
    t.eq(set(d.workers().values()) & old, set(), "only new workers")
    t.eq(count(d, "handovers_lost_total"), 0, "cut")
    t.eq([x["state"] for x in d.session("s")["turns"]], ["complete"], "turns")
    t.eq(client.chat(d, "hi", connection=conn).status, 200, "goes on")
    d.stop()


@tap.case("while the service ends, those who still serve inherit", 60)
def draining(t):
    d, p = make(t)
    pids = sorted(d.workers().values())
    calls = []
    for i, pid in enumerate(pids[:2]):
        calls.append(stream_that_stands(t, d, p, connect(t, d, pid),
                                        "s%d" % i))
    d.proc.send_signal(signal.SIGTERM)
    d.log.wait(r"master: draining", 5)
    m = kill(d, pids[0])
    t.isin("given=1 ", m.group(1), "who goes on")
    whole(t, calls[0][0].get(20))
    calls[1][1].release()
    whole(t, calls[1][0].get(20))
    t.eq(d.ended(), 0, "exit")
    d.proc = None
    d.verify()


@tap.case("the last one dies while the service ends: cut, and marked", 60)
def last(t):
    d, p = make(t, workers=1)
    pid = d.workers()[1]
    call, gate = stream_that_stands(t, d, p, connect(t, d, pid))
    d.proc.send_signal(signal.SIGTERM)
    d.log.wait(r"master: draining", 5)
    os.kill(pid, signal.SIGKILL)
    r = call.get(20)
    t.eq((r.done, r.end in ("cut", "reset")), (False, True), repr(r))
    t.eq(d.ended(), 0, "exit")
    d.proc = None
    gate.release()
    d.verify()


def poisoned(t, told):
    """Two owners of a turn die by their own fault, and one is killed from
    outside in between; 'told': the client has some of the answer."""
    d, p = make(t)
    conn = connect(t, d, sorted(d.workers().values())[0])
    stuck = provider.Barrier()
    t.cleanup(stuck.release)
    waits = provider.hold(stuck, provider.echo())
    if told:
        call, gate = stream_that_stands(t, d, p, conn)
    else:
        p.script(waits)
        call = client.background(client.chat, d, "count", session="s",
                                 stream=True, connection=conn)
        stuck.wait_for(1)
    waiting = len(p.requests)

    def owner():
        s = d.session("s")["session"]
        return d.workers().get(s["owner_slot"]) if s["locked"] else None

    # Whoever goes on is left waiting too.
    for sig, poison in ((signal.SIGSEGV, 0), (signal.SIGKILL, 0),
                        (signal.SIGABRT, 1)):
        p.script(waits)
        pid = owner()
        t.ok(pid is not None, "somebody serves it")
        m = kill(d, pid, sig)
        t.isin("poisoned=%d" % poison, m.group(1), "signal %d" % sig)
        if not poison:
            waiting += 1
            wait.until(lambda: len(p.requests) == waiting, 10, "the next call")
            wait.until(lambda: owner() not in (None, pid), 10, "an heir")
    r = call.get(20)
    t.eq(len(p.requests), waiting, "the provider is not called again")
    t.eq(count(d, "handovers_poisoned_total"), 1, "counted")
    turn = d.session("s")["turns"][-1]
    t.eq(d.session("s")["session"]["locked"], False, "lease")
    stuck.release()
    p.behave(provider.echo())
    r2 = client.chat(d, "hi", session="s")
    t.eq(r2.status, 200, "the session goes on: %r" % r2)
    d.expect_panic = True	# a sanitizer's report of the signals
    d.stop()
    return r, turn


@tap.case("two deaths by its own fault: a turn without answer has failed", 60)
def poison(t):
    r, turn = poisoned(t, False)
    t.eq((r.status, r.error["code"]), (500, "turn_crashed"), repr(r))
    t.eq(turn["state"], "failed", "turn")


@tap.case("... and a stream under way ends with an error", 60)
def poison_told(t):
    r, turn = poisoned(t, True)
    t.eq((r.status, r.error["code"], r.finish),
         (200, "turn_crashed", None), repr(r))
    t.eq(r.text, "one two three", "what was told before")
    t.eq(turn["state"], "incomplete", "turn")


@tap.case("a request longer than what is held is cut, and counted", 60)
def too_long(t):
    d, p = make(t)
    gate = provider.Barrier()
    t.cleanup(gate.release)
    p.script(provider.hold(gate, provider.echo()))
    pid = sorted(d.workers().values())[0]
    call = client.background(client.chat, d, "x" * (5 << 20), session="s",
                             connection=connect(t, d, pid), timeout=40)
    gate.wait_for(1)
    m = kill(d, pid)
    t.isin("lost=1", m.group(1), "what became of it")
    r = call.get(20)
    t.isin(r.end, ("cut", "reset"), repr(r))
    gate.release()
    t.eq(count(d, "handovers_lost_total"), 1, "counted")
    wait.until(lambda: d.session("s")["turns"][-1]["state"] == "interrupted",
               5, "the turn to be settled")
    t.eq(client.chat(d, "hi", session="s").status, 200, "goes on")
    d.stop()


@tap.case("with handover off a death cuts, as ever", 40)
def off(t):
    d, p = make(t)
    d.stop()
    d.conf.gateway["handover"] = "off"
    d.start()
    pid = sorted(d.workers().values())[0]
    conn = connect(t, d, pid)
    os.kill(pid, signal.SIGKILL)
    t.eq(conn.sock.recv(1), b"", "the end")
    t.eq(count(d, "connections_held"), 0, "held")
    t.eq(d.log.find(r"handover: slot"), [], "nothing is handed over")
    d.stop()


@tap.case("more connections than descriptors: served, but not all held", 60)
def few_files(t):
    # For us too, and for good: this case is the last one.
    resource.setrlimit(resource.RLIMIT_NOFILE, (520, 520))
    d, p = make(t, workers=2)
    m = d.log.wait(r"handover: on connections=(\d+)", 1)
    most = int(m.group(1))
    t.between(most, 50, 400, "connections that can be held")
    conns = [client.Connection(d.addr) for _ in range(most + 50)]
    for c in conns:
        t.cleanup(c.close)
        c.request("GET", "/livez")
    for c in conns:
        t.eq(c.response().status, 200, "served")
    t.eq(count(d, "connections_held"), most, "held")
    # A worker can be replaced, and reloads work.
    pid = sorted(d.workers().values())[0]
    kill(d, pid)
    replaced(d, pid, 2)
    alive = 0
    for c in conns:
        try:
            c.request("GET", "/livez")
            alive += c.response().status == 200
        except OSError:
            pass
    t.diag("%d of %d live on, %d were held" % (alive, len(conns), most))
    t.ok(alive >= most, "those that were held live on")
    t.eq(d.ctl_run("reload").code, 0, "a reload")
    d.stop()


if __name__ == "__main__":
    tap.main()
