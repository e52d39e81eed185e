"""Clients on raw sockets: requests, streams, and how they ended.

    r = chat(daemon, "hello", session="s1", stream=True)
    r.status, r.headers, r.json, r.text, r.calls, r.finish, r.error, r.done

A response's 'end' says how the bytes ended: "length" or "chunked" (whole, by
its framing), "close" (until close, no framing), "cut" (closed before its
framing said so), "reset", "timeout".
"""
import json
import socket
import threading
import time

MODEL = "m"


class Response:
    def __init__(self):
        self.status = None
        self.reason = None
        self.header_list = []
        self.headers = {}
        self.body = b""
        self.end = None
        self.events = []	# parsed data of each SSE event
        self.event_times = []
        self.event_names = []
        self.comments = []
        self.done = False	# [DONE] was seen
        self.sent_at = None
        self.head_at = None
        self.ended_at = None

    # -- whole bodies -----------------------------------------------------

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def streamed(self):
        return self.headers.get("content-type", "").startswith(
            "text/event-stream")

    @property
    def took(self):
        return self.ended_at - self.sent_at

    # -- chat, plain or streamed -------------------------------------------

    @property
    def choices(self):
        return [e["choices"][0] for e in self.events
                if isinstance(e, dict) and e.get("choices")]

    @property
    def text(self):
        if not self.streamed:
            return self.json["choices"][0]["message"]["content"]
        return "".join(c["delta"].get("content") or "" for c in self.choices)

    @property
    def calls(self):
        """[(id, name, arguments text)]"""
        if not self.streamed:
            calls = self.json["choices"][0]["message"].get("tool_calls") or []
            return [(c["id"], c["function"]["name"],
                     c["function"]["arguments"]) for c in calls]
        out = {}
        for c in self.choices:
            for d in c["delta"].get("tool_calls") or []:
                call = out.setdefault(d["index"], ["", "", ""])
                call[0] = call[0] or d.get("id", "")
                fn = d.get("function") or {}
                call[1] = call[1] or fn.get("name", "")
                call[2] += fn.get("arguments", "")
        return [tuple(out[k]) for k in sorted(out)]

    @property
    def message(self):
        """The assistant message that a client would keep."""
        m = {"role": "assistant", "content": self.text or None}
        if self.calls:
            m["tool_calls"] = [
                {"id": i, "type": "function",
                 "function": {"name": n, "arguments": a}}
                for i, n, a in self.calls]
        return m

    @property
    def finish(self):
        if not self.streamed:
            return self.json["choices"][0]["finish_reason"]
        found = [c["finish_reason"] for c in self.choices
                 if c.get("finish_reason")]
        return found[0] if len(found) == 1 else (found or None)

    @property
    def error(self):
        """The error object, of the body or of an event."""
        if not self.streamed:
            try:
                return self.json.get("error")
            except ValueError:
                return None
        for e in self.events:
            if isinstance(e, dict) and e.get("error"):
                return e["error"]
        return None

    def __repr__(self):
        return "<%s %s end=%s headers=%r body=%r>" % (
            self.status, self.reason, self.end, self.header_list,
            self.body[:2000])


class Connection:
    """One connection; requests one after the other."""

    def __init__(self, addr, timeout=15.0):
        self.addr = addr
        self.timeout = timeout
        self.sock = socket.create_connection(addr, timeout)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buf = b""

    def close(self):
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.close()

    def send(self, data):
        self.sock.sendall(data)

    def request(self, method, path, headers=(), body=None, host=True,
                length=True):
        lines = ["%s %s HTTP/1.1" % (method, path)]
        if host:
            lines.append("Host: %s:%d" % self.addr)
        if body is not None and length:
            lines.append("Content-Length: %d" % len(body))
        lines += ["%s: %s" % (k, v) for k, v in headers]
        head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
        self.send(head + (body or b""))

    def _more(self):
        data = self.sock.recv(65536)
        self.buf += data
        return bool(data)

    def read_head(self, r, method):
        while b"\r\n\r\n" not in self.buf:
            if not self._more():
                r.end = "cut"
                return False
        head, self.buf = self.buf.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        parts = lines[0].split(" ", 2)
        r.status = int(parts[1])
        r.reason = parts[2] if len(parts) > 2 else ""
        for line in lines[1:]:
            name, _, value = line.partition(":")
            r.header_list.append((name, value.strip()))
            r.headers[name.lower()] = value.strip()
        if r.status == 100:
            r.header_list, r.headers = [], {}
            return self.read_head(r, method)
        r.head_at = time.monotonic()
        return True

    def response(self, method="GET", on_event=None, sent_at=None):
        """Read one response; on_event(r) is called after each SSE event and
        may return True to stop reading (end stays None)."""
        r = Response()
        r.sent_at = sent_at or time.monotonic()
        try:
            if self.read_head(r, method):
                self._body(r, method, Sse(r, on_event))
        except socket.timeout:
            r.end = "timeout"
        except (ConnectionResetError, BrokenPipeError):
            r.end = "reset"
        except StopReading:
            pass
        r.ended_at = time.monotonic()
        return r

    def _body(self, r, method, sse):
        def got(data):
            r.body += data
            if r.streamed:
                sse.feed(data)
        if method == "HEAD" or r.status in (204, 304):
            r.end = "length"
        elif "chunked" in r.headers.get("transfer-encoding", ""):
            self._chunks(r, got)
        elif "content-length" in r.headers:
            left = int(r.headers["content-length"])
            while left > 0:
                if not self.buf and not self._more():
                    r.end = "cut"
                    return
                data, self.buf = self.buf[:left], self.buf[left:]
                left -= len(data)
                got(data)
            r.end = "length"
        else:
            while True:
                data, self.buf = self.buf, b""
                got(data)
                if not self._more():
                    r.end = "close"
                    return

    def _chunks(self, r, got):
        while True:
            while b"\r\n" not in self.buf:
                if not self._more():
                    r.end = "cut"
                    return
            line, self.buf = self.buf.split(b"\r\n", 1)
            size = int(line.split(b";")[0], 16)
            while len(self.buf) < size + 2:
                if not self._more():
                    # What came of the chunk was seen by a client too.
                    got(self.buf[:size])
                    r.end = "cut"
                    return
            data, self.buf = self.buf[:size], self.buf[size + 2:]
            if size == 0:
                r.end = "chunked"
                return
            got(data)


class StopReading(Exception):
    pass


class Sse:
    """Server-sent events as the WHATWG rules have it (LF, CRLF)."""

    def __init__(self, r, on_event):
        self.r = r
        self.on_event = on_event
        self.buf = b""
        self.data = []
        self.name = None

    def feed(self, data):
        self.buf += data
        while b"\n" in self.buf:
            line, self.buf = self.buf.split(b"\n", 1)
            self._line(line.rstrip(b"\r").decode("utf-8"))

    def _line(self, line):
        if line == "":
            self._dispatch()
        elif line.startswith(":"):
            self.r.comments.append(line[1:].strip())
        else:
            field, _, value = line.partition(":")
            if value.startswith(" "):
                value = value[1:]
            if field == "data":
                self.data.append(value)
            elif field == "event":
                self.name = value

    def _dispatch(self):
        if self.data:
            text = "\n".join(self.data)
            self.r.event_times.append(time.monotonic())
            self.r.event_names.append(self.name)
            if text == "[DONE]":
                self.r.done = True
                self.r.events.append(text)
            else:
                self.r.events.append(json.loads(text))
            if self.on_event is not None and self.on_event(self.r):
                raise StopReading
        self.data, self.name = [], None


# --- calls ----------------------------------------------------------------

def _addr(target):
    return target.addr if hasattr(target, "addr") else target


def request(target, method, path, headers=(), body=None, timeout=15.0,
            on_event=None):
    """One request on a connection of its own."""
    sent = time.monotonic()
    with Connection(_addr(target), timeout) as c:
        try:
            c.request(method, path, headers, body)
        except (ConnectionResetError, BrokenPipeError):
            pass	# refused early; the answer may still be readable
        return c.response(method, on_event, sent)


def get(target, path, **more):
    return request(target, "GET", path, **more)


def body_of(messages, model=MODEL, stream=False, **fields):
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    value = {"model": model, "messages": messages}
    if stream:
        value["stream"] = True
    value.update(fields)
    return value


def headers_of(session=None, key=None, headers=()):
    out = [("Content-Type", "application/json")]
    if session is not None:
        out.append(("X-Holdfast-Session", session))
    if key is not None:
        out.append(("Authorization", "Bearer " + key))
    if isinstance(headers, dict):
        headers = list(headers.items())
    return out + list(headers)


def chat(target, messages, session=None, stream=False, model=MODEL, key=None,
         headers=(), timeout=15.0, on_event=None, raw=None, connection=None,
         **fields):
    """POST /v1/chat/completions.  'messages' may be one user text; 'raw'
    sends these bytes instead; on 'connection' instead of a fresh one."""
    data = raw
    if data is None:
        data = json.dumps(body_of(messages, model, stream, **fields)).encode()
    all_headers = headers_of(session, key, headers)
    if connection is not None:
        sent = time.monotonic()
        connection.request("POST", "/v1/chat/completions", all_headers, data)
        return connection.response("POST", on_event, sent)
    return request(target, "POST", "/v1/chat/completions", all_headers, data,
                   timeout, on_event)


class Background(threading.Thread):
    """Run a call in a thread; join() gives its result or raises."""

    def __init__(self, fn, *args, **kwargs):
        super().__init__(daemon=True)
        self._call = (fn, args, kwargs)
        self._error = None
        self.result = None
        self.start()

    def run(self):
        fn, args, kwargs = self._call
        try:
            self.result = fn(*args, **kwargs)
        except BaseException as e:
            self._error = e

    def get(self, timeout=30):
        self.join(timeout)
        if self.is_alive():
            raise AssertionError("a call did not end in %g s" % timeout)
        if self._error is not None:
            raise self._error
        return self.result


def background(fn, *args, **kwargs):
    return Background(fn, *args, **kwargs)


def together(calls, timeout=60):
    """Run functions at once (released together); their results in order."""
    gate = threading.Barrier(len(calls))

    def one(fn):
        gate.wait(30)
        return fn()
    threads = [Background(one, fn) for fn in calls]
    end = time.monotonic() + timeout
    return [t.get(max(0.1, end - time.monotonic())) for t in threads]
