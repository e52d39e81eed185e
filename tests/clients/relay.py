"""A relay between a client and the daemon that counts requests and breaks
connections as scripted.

    r = Relay(daemon.addr)
    r.script("lose")          # for the next requests; then they pass
    r.base_url, r.requests    # [(method, path, headers, body)]

Faults: "refuse" ends the connection before the request is passed on,
"lose" passes it on, waits for the answer's first byte and resets, "cut:TEXT"
resets once the answer has come as far as TEXT.
"""
import socket
import struct
import threading

import provider


def reset(sock):
    # A thread that reads would keep the socket open: wake it first.
    sock.shutdown(socket.SHUT_RD)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                    struct.pack("ii", 1, 0))
    sock.close()


class Relay:
    def __init__(self, addr):
        self.addr = addr
        self.requests = []
        self._script = []
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def base_url(self):
        return "http://127.0.0.1:%d/v1" % self.port

    def script(self, *faults):
        with self._lock:
            self._script.extend(faults)

    def posts(self):
        return [r for r in self.requests if r[0] == "POST"]

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self):
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(sock,),
                             daemon=True).start()

    def _serve(self, sock):
        try:
            with socket.create_connection(self.addr, 30) as up:
                self._pass(sock, up)
        except OSError:
            pass
        finally:
            sock.close()

    def _pass(self, sock, up):
        reader = provider.Reader(sock)
        state = {"fault": None}
        back = threading.Thread(target=self._back, args=(sock, up, state),
                                daemon=True)
        back.start()
        while True:
            got = reader.request()
            if got is None:
                up.shutdown(socket.SHUT_WR)
                back.join(30)
                return
            method, path, headers, body = got
            with self._lock:
                self.requests.append(got)
                fault = self._script.pop(0) if self._script else None
            if fault == "refuse":
                reset(sock)
                return
            state["fault"] = fault
            lines = ["%s %s HTTP/1.1" % (method, path)]
            lines += ["%s: %s" % h for h in headers
                      if h[0].lower() not in ("transfer-encoding",
                                              "content-length")]
            if body or method == "POST":
                lines.append("Content-Length: %d" % len(body))
            up.sendall(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") +
                       body)

    def _back(self, sock, up, state):
        seen = b""
        try:
            while True:
                data = up.recv(65536)
                if not data:
                    sock.shutdown(socket.SHUT_WR)
                    return
                fault = state["fault"]
                if fault == "lose":
                    reset(sock)
                    return
                seen += data
                sock.sendall(data)
                if fault and fault[4:].encode() in seen:
                    # The client must have it before the reset discards it.
                    threading.Event().wait(0.05)
                    reset(sock)
                    return
        except OSError:
            pass
