#!/usr/bin/env python3
"""Measure what streams cost a worker when their clients are slow, or leave.

  streams.py memory   N streams of so many bytes to readers that take them
                      slowly: the worker's peak memory
  streams.py leave    N clients of streams leave at once: how long the others
                      wait meanwhile, against before

Prints what was measured and exits with 1 when a bound is missed or an answer
was wrong.  See docs/perf.md.
"""
import argparse
import asyncio
import json
import multiprocessing
import os
import random
import resource
import selectors
import shutil
import socket
import statistics
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import machine  # noqa: E402
import targets  # noqa: E402

BASE_MB, STREAM_MB = 32, 0.4	# what a worker may use, and for each stream
LEAVE_RATIO = 3			# p99 of the others, against before
CANCEL_MS = 50			# until the provider is hung up on


# --- the provider ---------------------------------------------------------

def event(delta, finish=None):
    return b"data: %s\n\n" % json.dumps(
        {"id": "chatcmpl-up", "object": "chat.completion.chunk",
         "created": 1, "model": "perf", "choices": [
             {"index": 0, "delta": delta, "finish_reason": finish}]},
        separators=(",", ":")).encode()


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


HEAD = (b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n")
END = event({}, "stop") + b"data: [DONE]\n\n"


def numbered(n, size):
    """Piece number n of a text: 'size' bytes that no other piece has."""
    return (" w%08d" % n).ljust(size, "x")


class Provider:
    """Chat completions by what the last message says:
    "long PIECES SIZE" streams that many pieces as fast as they are taken,
    "stay MS" a piece each MS until hung up on, anything else a word."""

    def __init__(self, hung_up):
        self.hung_up = hung_up

    async def serve(self, reader, writer):
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                size = [int(x.split(b":")[1]) for x in head.split(b"\r\n")
                        if x.lower().startswith(b"content-length:")]
                body = json.loads(await reader.readexactly(size[0]))
                await self.answer(reader, writer, body)
        except (asyncio.IncompleteReadError, ConnectionError, OSError):
            pass
        finally:
            writer.close()

    async def answer(self, reader, writer, body):
        words = body["messages"][-1]["content"].split()
        if words[0] == "long":
            await self.long(writer, int(words[1]), int(words[2]))
        elif words[0] == "stay":
            await self.stay(reader, writer, int(words[1]) / 1000)
        elif body.get("stream"):
            writer.write(HEAD + chunk(event({"content": "ok"}) + END) +
                         b"0\r\n\r\n")
            await writer.drain()
        else:
            text = json.dumps({
                "id": "x", "object": "chat.completion", "created": 1,
                "model": "perf", "choices": [
                    {"index": 0, "finish_reason": "stop", "message": {
                        "role": "assistant", "content": "ok"}}]}).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json"
                         b"\r\nContent-Length: %d\r\n\r\n%s" % (
                             len(text), text))
            await writer.drain()

    async def long(self, writer, pieces, size):
        writer.write(HEAD)
        for n in range(0, pieces, 16):
            writer.write(chunk(b"".join(
                event({"content": numbered(i, size)})
                for i in range(n, min(n + 16, pieces)))))
            await writer.drain()
        writer.write(chunk(END) + b"0\r\n\r\n")
        await writer.drain()

    async def stay(self, reader, writer, pause):
        writer.write(HEAD)
        async def leaves():
            try:
                await reader.read(1)
            except OSError:
                pass
        gone = asyncio.ensure_future(leaves())
        n = 0
        while not gone.done():
            writer.write(chunk(event({"content": numbered(n, 12)})))
            n += 1
            await asyncio.wait([gone], timeout=pause)
        self.hung_up.put(time.monotonic())
        raise ConnectionError	# there is nobody to answer any more


def provide(port, hung_up):
    os.sched_setaffinity(0, targets.LOAD_CPU)

    async def main():
        p = Provider(hung_up)
        server = await asyncio.start_server(p.serve, "127.0.0.1", 0,
                                            backlog=4096, limit=1 << 22)
        port.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()
    asyncio.run(main())


class ProviderProcess:
    def __init__(self):
        self.hung_up = multiprocessing.Queue()
        port = multiprocessing.Queue()
        self.process = multiprocessing.Process(
            target=provide, args=(port, self.hung_up), daemon=True)
        self.process.start()
        self.port = port.get(timeout=targets.READY_S)

    def cancelled(self, n, within):
        """When each of n streams was hung up on, or the ones that were."""
        out, end = [], time.monotonic() + within
        while len(out) < n and time.monotonic() < end:
            try:
                out.append(self.hung_up.get(timeout=0.1))
            except Exception:  # queue.Empty
                pass
        return out

    def stop(self):
        self.process.kill()
        self.process.join()


# --- clients ----------------------------------------------------------------

def request(text, stream, session, model="perf"):
    body = json.dumps({"model": model, "stream": stream, "messages": [
        {"role": "user", "content": text}]}).encode()
    head = ("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
            "Content-Type: application/json\r\nContent-Length: %d\r\n"
            % len(body))
    if session:
        head += "X-Session-Id: %s\r\n" % session
    return head.encode() + b"\r\n" + body


class Reader:
    """A stream whose client takes 'rate' bytes a second, and checks them."""

    def __init__(self, port, text, session, pieces, size):
        self.pieces, self.size, self.next = pieces, size, 0
        self.raw = self.left = 0
        self.buf, self.line = b"", b""
        self.done = self.ended = False
        self.began = time.monotonic()
        self.wrong = None
        self.sock = socket.socket()
        # What the kernel holds for a client is not the worker's, but it
        # shall not hide that the client is slow.
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        self.sock.connect(("127.0.0.1", port))
        self.sock.setblocking(False)
        self.sock.sendall(request(text, True, session))

    def take(self, limit):
        while limit > 0 and not self.ended:
            try:
                data = self.sock.recv(min(limit, 65536))
            except BlockingIOError:
                return
            except OSError as e:
                data = b""
                self.wrong = "%s after %d of %d pieces, %.1f s" % (
                    e, self.next, self.pieces,
                    time.monotonic() - self.began)
            if not data:
                self.ended = True
                return
            limit -= len(data)
            self.raw += len(data)
            self.feed(data)

    def feed(self, data):
        self.buf += data
        lines = self.buf.split(b"\n")
        self.buf = lines.pop()
        for line in lines:	# chunk framing has lines of its own
            if line.startswith(b"data: "):
                self.event(line[6:])
        if self.buf == b"" and self.done and lines[-2:] == [b"0\r", b"\r"]:
            self.ended = True

    def event(self, data):
        if data == b"[DONE]":
            self.done = True
            return
        try:
            value = json.loads(data)
            for c in value["choices"]:
                self.text(c["delta"].get("content") or "")
        except (ValueError, KeyError) as e:
            self.wrong = self.wrong or "%r in %r" % (e, data[:200])

    def text(self, text):
        """Words are released one by one; they must be the right ones."""
        self.line += text.encode()
        while len(self.line) >= self.size:
            if self.line[:self.size] != numbered(self.next,
                                                 self.size).encode():
                self.wrong = self.wrong or "piece %d is %r" % (
                    self.next, self.line[:40])
            self.line = self.line[self.size:]
            self.next += 1

    def verdict(self):
        if self.wrong:
            return self.wrong
        if not self.done:
            return "no end after %d of %d pieces" % (self.next, self.pieces)
        if self.next != self.pieces or self.line:
            return "%d of %d pieces" % (self.next, self.pieces)
        return None


def read_all(readers, rate, hold, limit):
    """Nobody reads for 'hold' seconds; then all do, at 'rate' a second."""
    time.sleep(hold)
    tick = 0.05
    end = time.monotonic() + limit
    while time.monotonic() < end:
        began = time.monotonic()
        left = [r for r in readers if not r.ended]
        if not left:
            return
        for r in left:
            r.take(int(rate * tick))
        time.sleep(max(0, tick - (time.monotonic() - began)))


def peak_mb(pid):
    with open("/proc/%d/status" % pid) as f:
        for line in f:
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024
    return 0


def workers_of(target):
    """Its processes, without the master and the keeper: those that grow."""
    out = []
    for pid in target.pids():
        try:
            with open("/proc/%d/cmdline" % pid, "rb") as f:
                words = f.read().split(b"\0")
        except OSError:
            continue
        if any(b"worker" in w for w in words):
            out.append(pid)
    return out


# --- memory -------------------------------------------------------------------

def memory_once(o, directory, stored):
    provider = ProviderProcess()
    target = targets.Holdfast(
        os.path.join(o.build, "holdfast"), provider.port, directory,
        workers=o.workers, cpus=None, upstream_stream="always")
    try:
        pieces = max(1, int(o.mb * 1e6 / o.delta))
        # The worker's own size, before.
        warm = Reader(target.port, "long 4 64", "warm" if stored else None,
                      4, 64)
        read_all([warm], 1e6, 0, 10)
        before = [peak_mb(p) for p in workers_of(target)]
        began = time.monotonic()
        readers = [Reader(target.port, "long %d %d" % (pieces, o.delta),
                          "s%d" % i if stored else None, pieces, o.delta)
                   for i in range(o.streams)]
        read_all(readers, o.rate * 1000, o.hold, o.limit)
        took = time.monotonic() - began
        peaks = [peak_mb(p) for p in workers_of(target)]
        wrong = [w for w in (r.verdict() for r in readers) if w]
        bound = BASE_MB * o.workers + STREAM_MB * o.streams
        if wrong:
            wrong.append("the daemon says: " + target.said())
        return {"stored": stored, "before_mb": sum(before),
                "peak_mb": sum(peaks), "bound_mb": bound, "took_s": took,
                "bytes": sum(r.raw for r in readers),
                "wrong": wrong, "cpu_s": machine.cpu_ns(target.pids()) / 1e9}
    finally:
        target.stop()
        provider.stop()


def memory(o, directory):
    good, rows = True, []
    print("%d streams of %g MB in deltas of %d bytes; nobody reads for %g s, "
          "then each %g kB/s" % (o.streams, o.mb, o.delta, o.hold, o.rate))
    for stored in {"both": (True, False), "stored": (True,),
                   "stateless": (False,)}[o.turns]:
        r = memory_once(o, directory, stored)
        rows.append(r)
        ok = r["peak_mb"] <= r["bound_mb"] and not r["wrong"]
        good = good and ok
        print("  %-9s worker peak %.1f MB (%.1f before), %.3f MB a stream; "
              "bound %.0f MB: %s  (%.0f s, %.0f MB read, CPU %.1f s)" % (
                  "stored" if stored else "stateless", r["peak_mb"],
                  r["before_mb"],
                  (r["peak_mb"] - r["before_mb"]) / o.streams, r["bound_mb"],
                  "ok" if ok else "MISSED", r["took_s"], r["bytes"] / 1e6,
                  r["cpu_s"]), flush=True)
        for w in r["wrong"][-3:]:
            print("    WRONG: %s" % w)
    return good, rows


# --- leaving --------------------------------------------------------------------

class Others:
    """Clients that stay: requests at a fixed rate, on connections of their
    own, each late one charged from when it was due."""

    def __init__(self, port, rate, sessions, threads=24):
        self.port, self.rate, self.sessions = port, rate, sessions
        self.samples, self.wrong = [], []
        self.stop = False
        self.lock = threading.Lock()
        self.due = time.monotonic()
        self.n = 0
        self.threads = [threading.Thread(target=self._run, daemon=True)
                        for _ in range(threads)]
        for t in self.threads:
            t.start()

    def _take(self):
        with self.lock:
            self.due = self.due + 1 / self.rate
            self.n += 1
            return self.due, self.n

    def _run(self):
        sock = socket.create_connection(("127.0.0.1", self.port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(30)
        while not self.stop:
            due, n = self._take()
            wait = due - time.monotonic()
            if wait > 0:
                time.sleep(wait)
            # A session of its own each time, so that none waits for itself.
            sock.sendall(request("hello", n % 2 == 0, "o%d" % n
                                 if self.sessions else None))
            data = b""
            while not (data.endswith(b"0\r\n\r\n") or data.endswith(b"]}")
                       or data.endswith(b"}}")):
                more = sock.recv(65536)
                if not more:
                    break
                data += more
            now = time.monotonic()
            if b" 200 " not in data[:20] or b"ok" not in data:
                self.wrong.append(data[:300])
                sock = socket.create_connection(("127.0.0.1", self.port))
            self.samples.append((due, now - due))

    def between(self, a, b):
        return [s for due, s in list(self.samples) if a <= due < b]

    def end(self):
        self.stop = True
        for t in self.threads:
            t.join(5)


def p99(samples):
    s = sorted(samples)
    return s[min(len(s) - 1, int(len(s) * 0.99))] * 1000


def stayers(port, n, stored, tag):
    out = []
    for i in range(n):
        s = socket.create_connection(("127.0.0.1", port))
        s.sendall(request("stay 250", True, "%s-%d" % (tag, i)
                          if stored else None, "stay"))
        out.append(s)
    for s in out:
        s.settimeout(30)
        data = b""
        while b"w0000" not in data:	# it streams
            data += s.recv(4096)
    return out


def leaver(port, n, stored, tag, ready, go, left):
    os.sched_setaffinity(0, targets.LOAD_CPU)
    socks = stayers(port, n, stored, tag)
    ready.set()
    go.wait()
    at = time.monotonic()
    for s in socks:
        s.close()
    left.put((at, time.monotonic()))


def leave_once(o, target, provider, stored, number):
    tag = "l%d" % number
    ready, go = multiprocessing.Event(), multiprocessing.Event()
    left = multiprocessing.Queue()
    p = multiprocessing.Process(target=leaver, args=(
        target.port, o.clients, stored, tag, ready, go, left), daemon=True)
    p.start()
    if not ready.wait(60):
        raise targets.Failure("%d streams did not begin" % o.clients)
    others = Others(target.port, o.rate, stored)
    time.sleep(o.window + 0.5)
    go.set()
    at, done = left.get(timeout=10)
    cancelled = provider.cancelled(o.clients, 10)
    time.sleep(max(0, at + o.window - time.monotonic()) + 0.3)
    others.end()
    p.join()
    lag = sorted(c - at for c in cancelled)
    before = others.between(at - o.window, at)
    after = others.between(at - 0.01, at + o.window)
    return {"before_ms": p99(before), "after_ms": p99(after),
            "ratio": p99(after) / p99(before), "n": len(after),
            "closing_ms": (done - at) * 1000, "cancelled": len(cancelled),
            "cancel_p50_ms": lag[len(lag) // 2] * 1000 if lag else None,
            "cancel_max_ms": lag[-1] * 1000 if lag else None,
            "wrong": [repr(w) for w in others.wrong]}


# The provider that is hung up on 500 times is not the one of the others.
STAY = """provider "stay" {
	dialect = "openai"
	base_url = "http://127.0.0.1:%d/v1"
}
route "stay" {
	targets = {"stay/perf"}
	deadline_ms = 600000
}
"""


def leave_rows(o, directory, stored):
    provider, stay = ProviderProcess(), ProviderProcess()
    target = targets.Holdfast(
        os.path.join(o.build, "holdfast"), provider.port, directory,
        workers=o.workers, cpus=None, upstream_stream="always",
        extra=STAY % stay.port)
    try:
        leave_once(o, target, stay, stored, 0)	# warms up
        return [leave_once(o, target, stay, stored, i + 1)
                for i in range(o.repeats)]
    finally:
        target.stop()
        provider.stop()
        stay.stop()


def leave(o, directory):
    good, rows = True, []
    print("%d clients of streams leave at once; others ask %g times a second; "
          "p99 over %g s\nbefore and from then on" % (
              o.clients, o.rate, o.window))
    for stored in {"both": (True, False), "stored": (True,),
                   "stateless": (False,)}[o.turns]:
        runs = leave_rows(o, directory, stored)
        for r in runs:
            print("  %-9s before %6.2f ms  after %6.2f ms  x %.2f  (n=%d)  "
                  "cancelled %d, p50 %.0f ms, last %.0f ms (closing took "
                  "%.0f ms)" % (
                      "stored" if stored else "stateless", r["before_ms"],
                      r["after_ms"], r["ratio"], r["n"], r["cancelled"],
                      r["cancel_p50_ms"] or -1, r["cancel_max_ms"] or -1,
                      r["closing_ms"]))
            for w in r["wrong"][:3]:
                print("    WRONG: %s" % w)
        ratio = statistics.median(r["ratio"] for r in runs)
        ok = (ratio <= LEAVE_RATIO and not any(r["wrong"] for r in runs) and
              all(r["cancelled"] == o.clients for r in runs))
        good = good and ok
        print("  %-9s median of %d: x %.2f, at most x %g: %s" % (
            "stored" if stored else "stateless", len(runs), ratio,
            LEAVE_RATIO, "ok" if ok else "MISSED"), flush=True)
        rows.append({"stored": stored, "ratio": ratio, "runs": runs})
    return good, rows


# --- all of it --------------------------------------------------------------------

def options():
    p = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", choices=("memory", "leave"))
    p.add_argument("--build", default=os.environ.get("HF_BUILDDIR", "."),
                   help="build directory (default: $HF_BUILDDIR or .)")
    p.add_argument("--dir", help="where databases are put for the time")
    p.add_argument("--workers", type=int, default=1)
    p.add_argument("--turns", choices=("both", "stored", "stateless"),
                   default="both", help="with or without a session")
    p.add_argument("--nice", type=int, default=0, help="priority of all "
                   "that is measured, e.g. -10 on a machine in use (root)")
    p.add_argument("--json", help="write what was measured here")
    g = p.add_argument_group("memory")
    g.add_argument("--streams", type=int, default=200)
    g.add_argument("--mb", type=float, default=5, help="of text, each")
    g.add_argument("--delta", type=int, default=1000, help="bytes of text")
    g.add_argument("--hold", type=float, default=5,
                   help="seconds in which nobody reads")
    g.add_argument("--limit", type=float, default=300, help="seconds in all")
    g = p.add_argument_group("leave")
    g.add_argument("--clients", type=int, default=500)
    g.add_argument("--window", type=float, default=1, help="seconds")
    g.add_argument("--repeats", type=int, default=5)
    p.add_argument("--rate", type=float, help="memory: kB/s of each reader "
                   "(200); leave: requests a second of the others (200)",
                   default=200)
    o = p.parse_args()
    o.build = os.path.abspath(o.build)
    targets.NICE = o.nice
    targets.prefer()
    return o


def main():
    o = options()
    program = os.path.join(o.build, "holdfast")
    if not os.access(program, os.X_OK):
        print("streams: no %s: build there first" % program, file=sys.stderr)
        return 2
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    directory = tempfile.mkdtemp(prefix="hf-streams.", dir=o.dir)
    try:
        good, rows = (memory if o.what == "memory" else leave)(o, directory)
    except targets.Failure as e:
        print("streams: %s" % e, file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    if o.json:
        with open(o.json, "w") as f:
            json.dump(rows, f, indent=1)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
