"""A headless Chromium, if the machine has one, driven through the pipe of its
own debugging protocol.

    with Browser() as b:                     # Missing says why there is none
        b.open(path, width=390, height=844, dark=True)
        b.js("document.title")
        png = b.screenshot()                 # the whole page
        b.requests, b.complaints             # what it loaded, and said
"""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome",
         "google-chrome-stable")
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic",
         "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--hide-scrollbars",
         "--force-device-scale-factor=1")


class Missing(Exception):
    """There is no browser here, or it does not start."""


def find():
    for name in NAMES:
        path = shutil.which(name)
        if path:
            return path
    raise Missing("no " + " or ".join(NAMES) + " on this machine")


class Browser:
    def __init__(self, limit=60):
        program = find()
        self.limit = limit
        self.requests = []
        self.complaints = []
        self._n = 0
        self._in = b""
        self._loaded = False
        self._dir = tempfile.mkdtemp(prefix="hf-chromium-")
        to_read, self._to = os.pipe()
        self._from, from_write = os.pipe()
        # The browser reads 3 and writes 4.
        os.set_inheritable(to_read, True)
        os.set_inheritable(from_write, True)
        self._err = open(os.path.join(self._dir, "stderr"), "wb")
        self._p = subprocess.Popen(
            ["sh", "-c", 'r=$1 w=$2; shift 2; eval "exec \\"\\$@\\" '
             '3<&$r 4>&$w"', "sh", str(to_read), str(from_write), program,
             *FLAGS, "--remote-debugging-pipe",
             "--user-data-dir=" + os.path.join(self._dir, "data"),
             "about:blank"],
            close_fds=True, pass_fds=(to_read, from_write),
            stdin=subprocess.DEVNULL, stdout=self._err, stderr=self._err)
        os.close(to_read)
        os.close(from_write)
        self._session = None
        try:
            pages = [t for t in self._call("Target.getTargets")["targetInfos"]
                     if t["type"] == "page"]
            target = (pages[0]["targetId"] if pages else self._call(
                "Target.createTarget", url="about:blank")["targetId"])
            self._session = self._call("Target.attachToTarget",
                                       targetId=target,
                                       flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Network", "Log"):
                self._call(domain + ".enable")
        except (OSError, EOFError, TimeoutError) as e:
            said = self._said()
            self.close()
            raise Missing("%s does not start: %s: %s" % (program, e, said))

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.close()

    def close(self):
        for fd in (self._to, self._from):
            try:
                os.close(fd)
            except OSError:
                pass
        self._p.terminate()
        try:
            self._p.wait(10)
        except subprocess.TimeoutExpired:
            self._p.kill()
            self._p.wait()
        self._err.close()
        # What it started may still write there for a moment.
        for _ in range(20):
            shutil.rmtree(self._dir, ignore_errors=True)
            if not os.path.exists(self._dir):
                break
            time.sleep(0.1)

    def _said(self):
        with open(os.path.join(self._dir, "stderr"), errors="replace") as f:
            return f.read()[-500:]

    # --- the protocol ------------------------------------------------------

    def _read(self, until):
        while b"\0" not in self._in:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._from], [], [], left)[0]:
                raise TimeoutError("the browser says nothing")
            data = os.read(self._from, 1 << 20)
            if not data:
                raise EOFError("the browser ended")
            self._in += data
        line, self._in = self._in.split(b"\0", 1)
        return json.loads(line)

    def _hear(self, m):
        p = m.get("params", {})
        if m.get("method") == "Network.requestWillBeSent":
            self.requests.append(p["request"]["url"])
        elif m.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(p["exceptionDetails"]["text"])
        elif m.get("method") == "Log.entryAdded":
            self.complaints.append(p["entry"]["text"])
        elif m.get("method") == "Page.loadEventFired":
            self._loaded = True

    def _call(self, method, **params):
        self._n += 1
        m = {"id": self._n, "method": method, "params": params}
        if self._session:
            m["sessionId"] = self._session
        os.write(self._to, json.dumps(m).encode() + b"\0")
        until = time.monotonic() + self.limit
        while True:
            m = self._read(until)
            if m.get("id") == self._n:
                if "error" in m:
                    raise OSError("%s: %s" % (method, m["error"]))
                return m["result"]
            self._hear(m)

    # --- what tests use ----------------------------------------------------

    def open(self, path, width, height=900, dark=False, phone=False):
        self.requests, self.complaints, self._loaded = [], [], False
        self._call("Emulation.setDeviceMetricsOverride", width=width,
                   height=height, deviceScaleFactor=1, mobile=phone)
        self._call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme",
             "value": "dark" if dark else "light"}])
        self._call("Page.navigate", url="file://" + os.path.abspath(path))
        until = time.monotonic() + self.limit
        while not self._loaded:
            self._hear(self._read(until))

    def js(self, text):
        r = self._call("Runtime.evaluate", expression=text,
                       returnByValue=True)
        if "exceptionDetails" in r:
            raise AssertionError(r["exceptionDetails"])
        return r["result"].get("value")

    def screenshot(self, top=0, height=None):
        size = self._call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": top, "width": size["width"], "scale": 1,
                "height": height or size["height"] - top}
        return base64.b64decode(self._call(
            "Page.captureScreenshot", clip=clip,
            captureBeyondViewport=True)["data"])
