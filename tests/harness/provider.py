"""Scripted upstream providers on real sockets, with control of every byte.

    p = Provider("openai")            # or "anthropic"; a port of the kernel
    p.behave(answer("hello"))         # for all requests from now on
    p.script(status(503), reset())    # for the next requests, then as before
    p.base_url                        # goes into the daemon's configuration
    p.requests                        # what arrived, in order of arrival

A behaviour is a function of one Exchange; it may hold on a Barrier, send raw
bytes, wait for the peer to leave.  Requests are validated strictly first: a
request that the real API would refuse gets its 400 and an entry in
p.violations.  All threads end with close().
"""
import json
import re
import select
import socket
import struct
import threading
import time

import dialect as words
import validate

LIMIT = 30.0		# no hold or silence outlives this


class Barrier:
    """Requests stop at it until release(); wait_for(n) sees them arrive."""

    def __init__(self):
        self._cond = threading.Condition()
        self._arrived = 0
        self._tickets = 0
        self._open = False

    def arrive(self, limit=LIMIT):
        with self._cond:
            self._arrived += 1
            self._cond.notify_all()

            def may():
                return self._open or self._tickets > 0
            if not self._cond.wait_for(may, limit):
                return False
            if not self._open:
                self._tickets -= 1
            return True

    def release(self, n=None):
        """Let n of them go (None: these and all that come)."""
        with self._cond:
            if n is None:
                self._open = True
            else:
                self._tickets += n
            self._cond.notify_all()

    def wait_for(self, n, timeout=10):
        with self._cond:
            if not self._cond.wait_for(lambda: self._arrived >= n, timeout):
                raise AssertionError("%d of %d requests reached the barrier"
                                     % (self._arrived, n))

    @property
    def arrived(self):
        with self._cond:
            return self._arrived


class Request:
    """One request as it was read from the wire."""

    def __init__(self, n, conn_n, method, path, headers, body):
        self.n = n
        self.conn_n = conn_n
        self.time = time.monotonic()
        self.ended = None	# when the behaviour returned
        self.peer_left = None	# when a behaviour saw the peer close
        self.method = method
        self.path = path
        self.header_list = headers
        self.headers = {k.lower(): v for k, v in headers}
        self.body = body
        self.refused = None	# what the validator said
        try:
            self.json = json.loads(body)
        except ValueError:
            self.json = None

    @property
    def messages(self):
        return self.json["messages"]

    @property
    def model(self):
        return self.json.get("model")

    @property
    def stream(self):
        return bool(self.json.get("stream"))

    @property
    def usage(self):
        options = self.json.get("stream_options") or {}
        return bool(options.get("include_usage"))

    def last_user(self):
        for m in reversed(self.messages):
            if m["role"] == "user":
                text = validate.text_of(m["content"])
                if text:
                    return text
        return ""


class Exchange:
    """One request and the connection to answer it on."""

    def __init__(self, provider, sock, request):
        self.provider = provider
        self.dialect = provider.dialect
        self.sock = sock
        self.request = request
        self.keep = True
        self.chunked = False

    # -- bytes ------------------------------------------------------------

    def send(self, data):
        self.sock.sendall(data)

    def head(self, code, headers=(), reason="X"):
        lines = ["HTTP/1.1 %d %s" % (code, reason)]
        lines += ["%s: %s" % h for h in headers]
        self.send(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))

    def reply(self, code, body, headers=(), kind="application/json"):
        self.head(code, [("Content-Type", kind),
                         ("Content-Length", str(len(body)))] + list(headers))
        self.send(body)

    def start(self, code=200, kind="text/event-stream; charset=utf-8",
              headers=()):
        self.chunked = True
        self.head(code, [("Content-Type", kind),
                         ("Transfer-Encoding", "chunked"),
                         ("Cache-Control", "no-cache")] + list(headers))

    def chunk(self, data):
        if data:
            self.send(b"%x\r\n%s\r\n" % (len(data), data))

    def end(self):
        self.send(b"0\r\n\r\n")

    # -- ends -------------------------------------------------------------

    def close(self):
        self.keep = False

    def reset(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                             struct.pack("ii", 1, 0))
        self.keep = False

    def wait_gone(self, limit=LIMIT):
        """Until the peer closes (True) or the limit or close() (False)."""
        end = time.monotonic() + limit
        while time.monotonic() < end and not self.provider.closing:
            ready, _, _ = select.select([self.sock], [], [], 0.05)
            if not ready:
                continue
            try:
                if self.sock.recv(65536) == b"":
                    self.request.peer_left = time.monotonic()
                    return True
            except OSError:
                self.request.peer_left = time.monotonic()
                return True
        return False

    # -- answers ----------------------------------------------------------

    def events(self, said):
        return words.stream(self.dialect, said, self.request.model,
                            self.request.usage)

    def say(self, said, headers=()):
        """Answer as asked: one body or a stream."""
        if not self.request.stream:
            self.reply(200, words.plain(self.dialect, said,
                                        self.request.model), headers)
            return
        self.start(headers=headers)
        for event in self.events(said):
            self.chunk(event)
        self.end()

    def error(self, status, message="scripted failure", headers=(), **more):
        self.reply(status, words.error(self.dialect, status, message, **more),
                   headers)


class Provider:
    def __init__(self, dialect="openai", strict=True, key=None,
                 prefill=False):
        self.dialect = dialect
        self.strict = strict
        self.prefill = prefill	# goes on with an assistant message
        self.key = key
        self.closing = False
        self.requests = []
        self.listed = []	# connections that asked for the models
        self.violations = []
        self.connections = 0
        self.errors = []
        self._behaviour = answer("ok")
        self._script = []
        self._cond = threading.Condition()
        self._socks = set()
        self._threads = []
        # A second socket keeps the port ours while nobody listens.
        self._anchor = self._bind(0)
        self.port = self._anchor.getsockname()[1]
        self._listener = None
        self.up()

    @property
    def base_url(self):
        return "http://127.0.0.1:%d/v1" % self.port

    @property
    def path(self):
        return ("/v1/messages" if self.dialect == "anthropic"
                else "/v1/chat/completions")

    @staticmethod
    def _bind(port):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        s.bind(("127.0.0.1", port))
        return s

    # -- control ----------------------------------------------------------

    def behave(self, behaviour):
        with self._cond:
            self._behaviour = behaviour
            self._script = []

    def script(self, *behaviours):
        with self._cond:
            self._script.extend(behaviours)

    def down(self):
        """Refuse connections (the port stays ours) and cut the open ones."""
        with self._cond:
            listener, self._listener = self._listener, None
        if listener is not None:
            # Shutdown wakes the accepting thread; close alone would not.
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self.cut_idle()

    def up(self):
        with self._cond:
            if self._listener is not None:
                return
            s = self._bind(self.port)
            s.listen(512)
            self._listener = s
        t = threading.Thread(target=self._accept, args=(s,), daemon=True)
        t.start()

    def cut_idle(self):
        with self._cond:
            socks = list(self._socks)
        for s in socks:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.closing = True
        self.down()
        self._anchor.close()

    def wait_requests(self, n, timeout=10):
        """The first n requests, once they have arrived."""
        with self._cond:
            if not self._cond.wait_for(lambda: len(self.requests) >= n,
                                       timeout):
                raise AssertionError("%d of %d requests came to the %s "
                                     "provider" % (len(self.requests), n,
                                                   self.dialect))
            return self.requests[:n]

    def take(self):
        """The requests so far; forgets them."""
        with self._cond:
            out, self.requests = self.requests, []
            return out

    def histories(self):
        """What each request told, in one form for both dialects."""
        return [validate.history(self.dialect, r.json)
                for r in list(self.requests)]

    def history(self, request):
        return validate.history(self.dialect, request.json)

    # -- serving ----------------------------------------------------------

    def _accept(self, listener):
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            with self._cond:
                # Accepted, and meanwhile we went down.
                gone = self._listener is not listener
                if not gone:
                    self.connections += 1
                    n = self.connections
                    self._socks.add(sock)
            if gone:
                sock.close()
                continue
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(sock, n),
                             daemon=True).start()

    def _serve(self, sock, conn_n):
        reader = Reader(sock)
        try:
            while not self.closing:
                got = reader.request()
                if got is None:
                    return
                if not self._one(sock, conn_n, *got):
                    return
        except (ConnectionError, BrokenPipeError, socket.timeout):
            pass
        except Exception as e:	# a bug of the test shows in its report
            self.errors.append(repr(e))
        finally:
            with self._cond:
                self._socks.discard(sock)
            sock.close()

    def _one(self, sock, conn_n, method, path, headers, body):
        if method == "GET" and path == "/v1/models":
            self.listed.append(conn_n)
            body = b'{"object":"list","data":[{"id":"x","object":"model"}]}'
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json"
                         b"\r\nContent-Length: %d\r\n\r\n%s" % (
                             len(body), body))
            return True
        with self._cond:
            request = Request(len(self.requests), conn_n, method, path,
                              headers, body)
            self.requests.append(request)
            behaviour = (self._script.pop(0) if self._script
                         else self._behaviour)
            self._cond.notify_all()
        ex = Exchange(self, sock, request)
        refusal = self._refuse(request)
        try:
            if refusal is not None:
                request.refused = refusal
                self.violations.append(refusal)
                ex.error(*refusal)
            else:
                behaviour(ex)
        finally:
            request.ended = time.monotonic()
        return ex.keep

    def _refuse(self, request):
        if request.method != "POST" or request.path != self.path:
            return 404, "Invalid URL (%s %s)" % (request.method, request.path)
        if not self.strict:
            return None
        if self.dialect == "anthropic":
            bad = validate.anthropic(request.headers, request.body,
                                     self.prefill)
        else:
            bad = validate.openai(request.headers, request.body)
        if bad is None and self.key is not None:
            sent = request.headers.get("x-api-key") or request.headers.get(
                "authorization", "")[len("Bearer "):]
            if sent != self.key:
                bad = 401, "Incorrect API key provided"
        return bad


class Reader:
    """Requests from a socket: Content-Length and chunked bodies."""

    def __init__(self, sock):
        self.sock = sock
        self.buf = b""

    def _more(self):
        data = self.sock.recv(65536)
        self.buf += data
        return bool(data)

    def _until(self, mark):
        while mark not in self.buf:
            if not self._more():
                return None
        out, self.buf = self.buf.split(mark, 1)
        return out

    def _exactly(self, size):
        while len(self.buf) < size:
            if not self._more():
                return None
        out, self.buf = self.buf[:size], self.buf[size:]
        return out

    def request(self):
        head = self._until(b"\r\n\r\n")
        if head is None:
            return None
        lines = head.decode("latin-1").split("\r\n")
        method, path, _ = lines[0].split(" ", 2)
        headers = []
        for line in lines[1:]:
            name, value = line.split(":", 1)
            headers.append((name, value.strip()))
        low = {k.lower(): v for k, v in headers}
        if low.get("expect", "").lower() == "100-continue":
            self.sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        if "chunked" in low.get("transfer-encoding", ""):
            body = b""
            while True:
                size = self._until(b"\r\n")
                if size is None:
                    return None
                size = int(size.split(b";")[0], 16)
                piece = self._exactly(size + 2)
                if piece is None:
                    return None
                if size == 0:
                    break
                body += piece[:-2]
        else:
            body = self._exactly(int(low.get("content-length", "0")))
        if body is None:
            return None
        return method, path, headers, body


# --- behaviours -----------------------------------------------------------

def answer(text="", calls=(), **more):
    """Say this, plain or streamed as asked."""
    return lambda ex: ex.say(words.Said(text, calls, **more))


def reply_to(fn):
    """fn(request) returns the text (or a Said) to answer."""
    def behave(ex):
        said = fn(ex.request)
        ex.say(said if isinstance(said, words.Said) else words.Said(said))
    return behave


_REMEMBER = re.compile(r"remember (\S+) is (\S+)")
_RECALL = re.compile(r"recall (\S+)\s*$")


def echo_rule(request):
    """Answer only from the messages received: "recall K" finds the value
    that an earlier user message "remember K is V" gave; anything else is
    answered "heard N: TEXT", N being how many user messages there are."""
    users = [validate.text_of(m["content"]) for m in request.messages
             if m["role"] == "user"]
    users = [u for u in users if u]
    last = users[-1] if users else ""
    probe = _RECALL.search(last)
    if probe:
        for text in users:
            for key, value in _REMEMBER.findall(text):
                if key == probe.group(1):
                    return "%s is %s" % (key, value)
        return "%s is unknown" % probe.group(1)
    return "heard %d: %s" % (len(users), last)


def echo():
    return reply_to(echo_rule)


def status(status_, message="scripted failure", headers=(), **more):
    """An error in the dialect's words; more: kind, code, param."""
    return lambda ex: ex.error(status_, message, headers, **more)


def html(code):
    """An error page of some middle box: not JSON."""
    return lambda ex: ex.reply(code, b"<html><h1>Bad gateway</h1></html>",
                               kind="text/html")


def rate_limited(seconds=None, ms=None, date=None):
    headers = []
    if seconds is not None:
        headers.append(("Retry-After", str(seconds)))
    if ms is not None:
        headers.append(("retry-after-ms", str(ms)))
    if date is not None:
        headers.append(("Retry-After", date))
    return status(429, "Rate limit reached", headers)


def reset():
    """A TCP reset before any byte of an answer."""
    return lambda ex: ex.reset()


def hang_up():
    """A clean close before any byte of an answer."""
    return lambda ex: ex.close()


def silence(limit=LIMIT):
    """Nothing at all, until the peer gives up."""
    def behave(ex):
        ex.wait_gone(limit)
        ex.close()
    return behave


def headers_only(limit=LIMIT):
    """A 200, a role chunk or message_start and pings, and no useful delta."""
    def behave(ex):
        ex.start()
        for event in ex.events(words.Said("x"))[:words.first_useful(
                ex.dialect)]:
            ex.chunk(event)
        end = time.monotonic() + limit
        while time.monotonic() < end and not ex.wait_gone(0.06):
            if ex.provider.closing:
                break
            ex.chunk(b": ping\n\n")
        ex.close()
    return behave


def cut(text, after, how="close"):
    """A stream that breaks off after that many useful deltas: "close" ends
    the chunked body cleanly, "drop" closes without its end, "reset" resets.
    """
    def behave(ex):
        events = ex.events(words.Said(text))
        ex.start()
        for event in events[:words.first_useful(ex.dialect) + after]:
            ex.chunk(event)
        if how == "close":
            ex.end()
        elif how == "reset":
            # The peer must have the deltas before the reset discards them.
            time.sleep(0.05)
            ex.reset()
        ex.close()
    return behave


def cut_body(text="cut"):
    """A plain answer whose body is shorter than its Content-Length."""
    def behave(ex):
        body = words.plain(ex.dialect, words.Said(text), ex.request.model)
        ex.head(200, [("Content-Type", "application/json"),
                      ("Content-Length", str(len(body)))])
        ex.send(body[:len(body) // 2])
        ex.close()
    return behave


def error_in_200(code=503, message="overloaded"):
    """Status 200 whose body (or first event) is an error."""
    def behave(ex):
        if ex.request.stream:
            ex.start()
            ex.chunk(words.error_event(ex.dialect, code, message))
            ex.end()
        else:
            ex.reply(200, words.error(ex.dialect, code, message))
    return behave


def error_after(text, after, code=503):
    """An error event in mid-stream, after that many useful deltas."""
    def behave(ex):
        ex.start()
        events = ex.events(words.Said(text))
        for event in events[:words.first_useful(ex.dialect) + after]:
            ex.chunk(event)
        ex.chunk(words.error_event(ex.dialect, code, "overloaded"))
        ex.end()
    return behave


def raw_reply(body, kind="application/json", code=200):
    return lambda ex: ex.reply(code, body, kind=kind)


def raw_stream(pieces, pause=0.0):
    """These bytes as the body of a stream, one chunk each."""
    def behave(ex):
        ex.start()
        for piece in pieces:
            ex.chunk(piece)
            if pause:
                time.sleep(pause)
        ex.end()
    return behave


def rewritten(text, fn, calls=()):
    """A normal stream whose bytes pass through fn() and go out in one
    piece per byte string that it returns."""
    def behave(ex):
        if not ex.request.stream:
            ex.say(words.Said(text, calls))
            return
        ex.start()
        for piece in fn(b"".join(ex.events(words.Said(text, calls)))):
            ex.chunk(piece)
        ex.end()
    return behave


def hold(barrier, then):
    def behave(ex):
        if barrier.arrive():
            then(ex)
        else:
            ex.close()
    return behave


def delay(seconds, then):
    def behave(ex):
        if ex.wait_gone(seconds):
            ex.close()
        else:
            then(ex)
    return behave


def trickle(text, barrier, before=2):
    """Stream 'before' deltas, stop at the barrier, then the rest."""
    def behave(ex):
        events = ex.events(words.Said(text))
        n = words.first_useful(ex.dialect) + before
        ex.start()
        for event in events[:n]:
            ex.chunk(event)
        if not barrier.arrive():
            ex.close()
            return
        for event in events[n:]:
            ex.chunk(event)
        ex.end()
    return behave
