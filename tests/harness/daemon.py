"""Run the built daemon in a private directory and watch how it ends.

    conf = Config(workers=2)
    conf.provider("a", provider)          # a harness Provider
    conf.route("m", ["a/model-a"])
    d = Daemon(conf).start()              # ready when this returns
    ... d.addr, d.ctl("status"), d.workers() ...
    d.stop()                              # TERM; must end with 0

Only processes that were started here are ever killed.  The whole stderr of
the tree is kept; a sanitizer report or a failed check in it fails the test.
What the daemon leaves on disk must verify (expect_damage: it need not).
"""
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import client
import ctl
import tap
import wait

KEY = "sk-test-0123456789"
READY = 15.0		# seconds until a started daemon must be ready
_BAD = re.compile(r"AddressSanitizer|LeakSanitizer|runtime error:|"
                  r"UndefinedBehaviorSanitizer|check failed|panic")
_lives = []
_SETPRIV = shutil.which("setpriv") is not None


def program():
    return os.path.join(os.environ["HF_BUILDDIR"], "holdfast")


def source(*path):
    return os.path.join(os.environ["HF_SRCDIR"], *path)


def quote(text):
    return '"%s"' % str(text).replace("\\", "\\\\").replace('"', '\\"')


def _value(v):
    if isinstance(v, (list, tuple)):
        return "{%s}" % ", ".join(quote(x) for x in v)
    if isinstance(v, int):
        return str(v)
    return quote(v)


class Config:
    """The text of a holdfast.conf; keys are given as keyword arguments."""

    def __init__(self, **gateway):
        self.gateway = {"listen": ["127.0.0.1:0"], "workers": 2,
                        "log_level": "debug"}
        self.gateway.update(gateway)
        self.providers = {}
        self.routes = {}
        self.targets = {}
        self.extra = ""

    def provider(self, name, provider, **keys):
        value = {"dialect": provider.dialect, "base_url": provider.base_url,
                 "api_key_env": "HF_TEST_KEY", "connect_ms": 2000,
                 "first_token_ms": 5000, "total_ms": 20000,
                 # Scripted providers fail in a row on purpose, and hold
                 # many calls at a time.
                 "breaker_failures": 0, "slow_start": 0}
        value.update(keys)
        self.providers[name] = value
        return self

    def route(self, name, targets, **keys):
        value = {"targets": targets, "deadline_ms": 30000, "max_retries": 0,
                 "backoff_unit_ms": 50}
        value.update(keys)
        self.routes[name] = value
        return self

    def target(self, name, **keys):
        self.targets[name] = keys
        return self

    def text(self, **paths):
        gateway = dict(self.gateway)
        gateway.update(paths)
        out = ["# written by a test", _block("gateway", None, gateway)]
        for name, keys in self.providers.items():
            out.append(_block("provider", name, keys))
        for name, keys in self.targets.items():
            out.append(_block("target", name, keys))
        for name, keys in self.routes.items():
            out.append(_block("route", name, keys))
        return "\n".join(out) + "\n" + self.extra


def _block(kind, title, keys):
    head = kind if title is None else "%s %s" % (kind, quote(title))
    lines = ["\t%s = %s" % (k, _value(v)) for k, v in keys.items()
             if v is not None]
    return "%s {\n%s\n}\n" % (head, "\n".join(lines))


class Log:
    """The daemon's stderr: kept whole, and waited for without polling."""

    def __init__(self, pipe):
        self.lines = []
        self.closed = False
        self._cond = threading.Condition()
        self._thread = threading.Thread(target=self._read, args=(pipe,),
                                        daemon=True)
        self._thread.start()

    def _read(self, pipe):
        for line in pipe:
            with self._cond:
                self.lines.append(line.decode("utf-8", "replace").rstrip())
                self._cond.notify_all()
        with self._cond:
            self.closed = True
            self._cond.notify_all()
        pipe.close()

    def text(self):
        with self._cond:
            return "\n".join(self.lines)

    def find(self, pattern):
        rx = re.compile(pattern)
        with self._cond:
            return [m for m in map(rx.search, self.lines) if m]

    def wait(self, pattern, timeout=10, count=1, since=0):
        """The match of the count-th line like this after line 'since'."""
        rx = re.compile(pattern)
        end = time.monotonic() + timeout
        with self._cond:
            while True:
                found = [m for m in map(rx.search, self.lines[since:]) if m]
                if len(found) >= count:
                    return found[count - 1]
                left = end - time.monotonic()
                if self.closed or left <= 0:
                    raise AssertionError(
                        "no log line like %r%s; the last ones:\n%s" % (
                            pattern, " (log ended)" if self.closed else "",
                            "\n".join(self.lines[-40:])))
                self._cond.wait(left)

    def wait_closed(self, timeout):
        with self._cond:
            return self._cond.wait_for(lambda: self.closed, timeout)


class Daemon:
    def __init__(self, conf, env=None, path=None):
        self.conf = conf
        self.env = dict(env or {})
        self.dir = path or tempfile.mkdtemp(prefix="hf-")
        self.conf_path = os.path.join(self.dir, "holdfast.conf")
        self.db_path = os.path.join(self.dir, "db")
        self.control = os.path.join(self.dir, "ctl")
        self.proc = None
        self.log = None
        self.old_logs = []
        self.addr = None
        self.ready_in = None
        self.expect_panic = False
        self.expect_damage = False
        self._known = {}
        _lives.append(self)
        tap.reporter(self.tail)

    # -- life -------------------------------------------------------------

    def write_config(self, text=None):
        if text is None:
            text = self.conf.text(database=self.db_path, control=self.control)
        with open(self.conf_path, "w", encoding="utf-8") as f:
            f.write(text)

    def _environ(self):
        env = {k: v for k, v in os.environ.items()
               if not k.startswith(("NOTIFY_", "LISTEN_", "HF_FAULT"))}
        env["HF_TEST_KEY"] = KEY
        env.setdefault("ASAN_OPTIONS",
                       "abort_on_error=1:detect_leaks=1:disable_coredump=1")
        env.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
        env.update(self.env)
        return env

    def start(self, ready=True):
        self.write_config()
        if self.log is not None:
            self.old_logs.append(self.log)
        began = time.monotonic()
        # A process group of its own: kill_tree() can reach all of it at once.
        # Should this test be killed, the master goes with it.
        wrap = ["setpriv", "--pdeathsig", "KILL"] if _SETPRIV else []
        self.proc = subprocess.Popen(
            wrap + [program(), "-c", self.conf_path],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            cwd=self.dir, env=self._environ(), start_new_session=True)
        self.log = Log(self.proc.stderr)
        if ready:
            self.wait_ready(began)
        return self

    def wait_ready(self, began=None):
        began = began or time.monotonic()
        m = self.log.wait(r"listen: ready addr=(\S+)", READY)
        host, port = m.group(1).rsplit(":", 1)
        self.addr = (host.strip("[]"), int(port))
        self.log.wait(r"master: ready", READY)
        wait.until(lambda: self._readyz() == 200, READY, "/readyz")
        self.ready_in = time.monotonic() - began

    def _readyz(self):
        try:
            return client.get(self, "/readyz", timeout=5).status
        except OSError:
            return None

    def pids(self):
        """The master and its descendants that live, from /proc."""
        if self.proc is None or self.proc.poll() is not None:
            return []
        parents = {}
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            try:
                with open("/proc/%s/stat" % name, encoding="latin-1") as f:
                    rest = f.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if rest[0] != "Z":
                parents[int(name)] = int(rest[1])
        out = [self.proc.pid]
        for pid in out:
            out += [p for p, parent in parents.items() if parent == pid]
        return out

    def ended(self, timeout=20):
        """Wait for the master and everything that held its stderr."""
        try:
            code = self.proc.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError("the daemon did not end in %g s" % timeout)
        if not self.log.wait_closed(timeout):
            raise AssertionError("a child outlived the daemon")
        return code

    def stop(self, sig=signal.SIGTERM, code=0, timeout=20):
        """End it by a signal and check how it ended."""
        if self.proc is None:
            return
        if self.proc.poll() is None:
            self.proc.send_signal(sig)
        got = self.ended(timeout)
        self.proc = None
        if got != code:
            raise AssertionError("the daemon ended with %s, not %s" % (
                got, code))
        self.check_log()
        if not self.expect_damage:
            self.verify()

    def verify(self):
        """What it left on disk is whole."""
        p = subprocess.run([ctl.path(), "--offline", "--database",
                            self.db_path, "sessions", "verify", "--all"],
                           capture_output=True, text=True, timeout=60)
        if p.returncode != 0:
            raise AssertionError("the store does not verify: exit %d\n%s%s"
                                 % (p.returncode, p.stdout, p.stderr))

    def kill_tree(self):
        """kill -9 of every process of the tree at once."""
        pids = self.pids()
        os.killpg(self.proc.pid, signal.SIGKILL)
        for pid in pids[1:]:	# should one have left the group
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        code = self.ended(10)
        self.proc = None
        if code != -signal.SIGKILL:
            raise AssertionError("the daemon had ended before: %s" % code)
        self.check_log()

    def destroy(self):
        """Whatever happened: nothing of it is left."""
        if self.proc is not None and self.proc.poll() is None:
            try:
                os.killpg(self.proc.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.proc.wait(10)
        self.proc = None
        if not os.environ.get("HF_KEEP"):
            shutil.rmtree(self.dir, ignore_errors=True)

    def close(self):
        """The good end of a daemon that a test file shares."""
        try:
            self.stop()
        finally:
            self.destroy()

    # -- looking at it ----------------------------------------------------

    def check_log(self):
        text = self.log.text()
        m = _BAD.search(text)
        if m and not self.expect_panic:
            at = text.rfind("\n", 0, m.start()) + 1
            raise AssertionError("in the log: " + text[at:at + 4000])
        if KEY in text:
            raise AssertionError("a provider's key is in the log")

    def tail(self, n=60):
        if self.log is None:
            return "daemon was not started"
        lines = self.log.lines[-n:]
        alive = self.proc is not None and self.proc.poll() is None
        return "daemon %s; log:\n%s" % ("lives" if alive else "is gone",
                                        "\n".join("  | " + x for x in lines))

    def ctl(self, *words):
        return ctl.call(self.control, *words)

    def ctl_run(self, *words, **more):
        return ctl.run(self.control, *words, **more)

    def workers(self):
        """{slot: pid} of the workers that serve, from holdfastctl."""
        return {p["slot"]: p["pid"] for p in self.ctl("status")["processes"]
                if p["role"] == "worker" and p["pid"] > 0}

    def connect_to(self, pid, timeout=30):
        """A connection that this worker has accepted: the others stand
        still for a moment (far less than the heartbeat's limit)."""
        others = [p for p in self.workers().values() if p != pid]
        for p in others:
            os.kill(p, signal.SIGSTOP)
        try:
            c = client.Connection(self.addr, timeout)
            c.request("GET", "/livez")
            if c.response().status != 200:
                raise AssertionError("worker %d does not serve" % pid)
        finally:
            for p in others:
                os.kill(p, signal.SIGCONT)
        return c

    def session(self, key, tenant=None):
        """sessions show: {"session":..., "turns":[], "items":[],
        "attempts":[]}."""
        words = ["sessions", "show", key, "--contents", "--attempts"]
        if tenant is not None:
            words += ["--tenant", tenant]
        return self.ctl(*words)

    def metrics(self):
        """{"name{labels}": value} from /metrics."""
        out = {}
        for line in client.get(self, "/metrics").body.decode().splitlines():
            if line and not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                out[name] = float(value)
        return out


def shared(make):
    """A daemon for all cases of a file: made by the first that asks, ended
    (and checked) by a case of its own at the end.  make() returns it
    started."""
    state = []

    def get():
        if not state:
            d = make()
            state.append(d)
            tap.at_end("the daemon ends well on TERM", d.close)
        return state[0]
    return get


def destroy_all():
    for d in _lives:
        d.destroy()


tap.at_exit(destroy_all)
