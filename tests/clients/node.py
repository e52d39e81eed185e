"""Drive a client library: a node process that takes JSON lines.

    lib = Driver("openai.mjs")
    lib.call("say", conv="c1", text="hello", mode="plain")

Calls may overlap (client.background).  The libraries are installed into the
build directory first; where they cannot be, every case is skipped with the
reason.
"""
import json
import os
import shutil
import subprocess
import threading

import client
import tap
import wait

HERE = os.path.dirname(os.path.abspath(__file__))
PLACE = os.path.join(os.environ["HF_BUILDDIR"], "tests", "clients", "node")


def install():
    """None, or why there are no libraries."""
    p = subprocess.run(["sh", os.path.join(HERE, "install.sh"), PLACE],
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.PIPE, text=True)
    if p.returncode == 0:
        return None
    lines = p.stderr.strip().splitlines()
    return lines[-1] if lines else "install.sh failed"


def versions():
    """{package: version} as installed."""
    with open(os.path.join(HERE, "package.json"), encoding="utf-8") as f:
        names = json.load(f)["dependencies"]
    out = {}
    for name in names:
        path = os.path.join(PLACE, "node_modules", name, "package.json")
        with open(path, encoding="utf-8") as f:
            out[name] = json.load(f)["version"]
    return out


def _copy(name):
    """Modules are found beside the script, so it must be beside them."""
    to = os.path.join(PLACE, name)
    tmp = "%s.%d" % (to, os.getpid())
    shutil.copyfile(os.path.join(HERE, name), tmp)
    os.replace(tmp, to)
    return to


class Call:
    def __init__(self):
        self.events = []
        self.answer = None


class Driver:
    def __init__(self, script):
        self.script = script
        self.proc = None
        self.missing = None
        self.version = None
        self._n = 0
        self._calls = {}
        self._cond = threading.Condition()
        self._errors = []
        self._started = False

    def start(self):
        """Once; raises tap.Skip where there is no library."""
        if not self._started:
            self._started = True
            self.missing = install()
            if self.missing is None:
                self._start()
        if self.missing is not None:
            raise tap.Skip(self.missing.replace("\n", " "))

    def _start(self):
        _copy("rpc.mjs")
        env = {k: v for k, v in os.environ.items()
               if not k.startswith(("OPENAI_", "LANG", "AI_", "NODE_")) and
               not k.lower().endswith("_proxy")}
        self._calls[0] = Call()
        self.proc = subprocess.Popen(
            [os.path.join(PLACE, "bin", "node"), _copy(self.script)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env=env, cwd=PLACE)
        for fn in (self._read, self._complain):
            threading.Thread(target=fn, daemon=True).start()
        tap.at_exit(self.kill)
        tap.at_end("the library met no surprise", self.close)
        self.version = self._await(0, 30)["result"]

    def _read(self):
        for line in self.proc.stdout:
            try:
                v = json.loads(line)
            except ValueError:
                self._errors.append("on stdout: " + line)
                continue
            with self._cond:
                call = self._calls[v["n"]]
                if "event" in v:
                    call.events.append(v["event"])
                else:
                    call.answer = v
                self._cond.notify_all()
        with self._cond:
            for call in self._calls.values():
                call.answer = call.answer or {"bug": "node has ended"}
            self._cond.notify_all()

    def _complain(self):
        for line in self.proc.stderr:
            self._errors.append(line.rstrip())

    def _await(self, n, timeout):
        call = self._calls[n]
        with self._cond:
            if not self._cond.wait_for(lambda: call.answer, timeout):
                raise AssertionError("%s: call %d did not end in %g s" % (
                    self.script, n, timeout))
        if "bug" in call.answer:
            raise AssertionError("%s: %s\n%s" % (
                self.script, call.answer["bug"], "\n".join(self._errors)))
        return call.answer

    def begin(self, op, **params):
        """Start a call; events(n) and finish(n) look at it."""
        self.start()
        with self._cond:
            self._n += 1
            n = self._n
            self._calls[n] = Call()
            self.proc.stdin.write(json.dumps(dict(params, n=n, op=op)) + "\n")
            self.proc.stdin.flush()
        return n

    def events(self, n, count, timeout=10):
        """The first events of a call, once there are so many."""
        call = self._calls[n]
        with self._cond:
            if not self._cond.wait_for(lambda: len(call.events) >= count or
                                       call.answer, timeout * tap.SCALE):
                raise AssertionError("%d of %d events" % (
                    len(call.events), count))
            return call.events[:count]

    def finish(self, n, timeout=20):
        return self._await(n, timeout * tap.SCALE).get("result")

    def call(self, op, patience=20, **params):
        return self.finish(self.begin(op, **params), patience)

    def close(self):
        """Ends by itself, with nothing said and nobody else contacted."""
        foreign = self.call("foreign")
        self.proc.stdin.close()
        code = self.proc.wait(10)
        if foreign or code != 0 or self._errors:
            raise AssertionError("exit %s, foreign %r\n%s" % (
                code, foreign, "\n".join(self._errors)))

    def kill(self):
        if self.proc is not None and self.proc.poll() is None:
            self.proc.kill()
            self.proc.wait(10)
