"""A small runner for tests that print TAP.

A test file declares cases and ends with tap.main():

    @tap.case("plain call is answered", deadline=10)
    def plain(t):
        t.eq(status, 200, "status")

Cases run one after the other in the main thread.  A case fails when it raises
or passes its deadline (SIGALRM); t.cleanup() functions run in reverse order
either way, and t.reporter() functions are asked for diagnostics when it
failed.  tap.at_end() adds a case that runs after all others (a daemon that
must end well).  A watchdog ends the whole file should the main thread hang.
"""
import os
import signal
import sys
import threading
import time
import traceback

_cases = []
_ends = []
_lasts = []
_reporters = []
SCALE = float(os.environ.get("HF_TIME_SCALE", "1") or "1")


class Failed(AssertionError):
    """A check that did not hold."""


class Skip(Exception):
    """Raised by a case that cannot run here; the reason is shown."""


class Deadline(BaseException):
    """The case took too long.  Not an Exception, so that no test eats it."""


def case(name, deadline=20):
    def wrap(fn):
        _cases.append((name, deadline, fn))
        return fn
    return wrap


def at_end(name, fn, deadline=30):
    _ends.append((name, deadline, lambda t: fn()))


def at_exit(fn):
    """fn() runs last of all, whatever happened."""
    _lasts.append(fn)


def reporter(fn):
    """fn() returns text that is shown when any case of this file fails."""
    _reporters.append(fn)


class Case:
    def __init__(self, name):
        self.name = name
        self._cleanups = []
        self._reporters = []

    def cleanup(self, fn, *args):
        self._cleanups.append((fn, args))

    def reporter(self, fn):
        self._reporters.append(fn)

    def diag(self, text):
        diag(text)

    def ok(self, cond, what):
        if not cond:
            raise Failed(what)

    def eq(self, got, want, what):
        if got != want:
            raise Failed("%s:\n   got %s\n  want %s" % (
                what, _short(got), _short(want)))

    def ne(self, got, unwanted, what):
        if got == unwanted:
            raise Failed("%s: is %s" % (what, _short(got)))

    def isin(self, part, whole, what):
        if part not in whole:
            raise Failed("%s: no %s in %s" % (
                what, _short(part), _short(whole)))

    def notin(self, part, whole, what):
        if part in whole:
            raise Failed("%s: %s in %s" % (what, _short(part), _short(whole)))

    def between(self, got, low, high, what):
        if got is None or not low <= got <= high:
            raise Failed("%s: %r is not in [%r, %r]" % (what, got, low, high))


def _short(value, limit=4000):
    text = repr(value)
    return text if len(text) <= limit else text[:limit] + "... (%d)" % len(
        text)


_out_lock = threading.Lock()


def _print(line):
    with _out_lock:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def diag(text):
    for line in str(text).splitlines() or [""]:
        _print("# " + line)


def _alarm(signum, frame):
    raise Deadline()


def _watch(state):
    """The last resort: the alarm did not get through."""
    while True:
        time.sleep(1)
        end = state["hard"]
        if end is not None and time.monotonic() > end:
            _print("Bail out! hung in: " + state["name"])
            for ident, frame in sys._current_frames().items():
                for line in traceback.format_stack(frame):
                    diag(line.rstrip())
            os._exit(1)


def _run_cleanups(c):
    errors = []
    for fn, args in reversed(c._cleanups):
        try:
            signal.setitimer(signal.ITIMER_REAL, 20 * SCALE)
            fn(*args)
        except (Exception, Deadline):
            errors.append(traceback.format_exc())
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    return errors


def _run_one(n, name, deadline, fn, state):
    c = Case(name)
    state["name"] = name
    state["hard"] = time.monotonic() + (deadline + 60) * SCALE
    began = time.monotonic()
    error, skip = None, None
    try:
        signal.setitimer(signal.ITIMER_REAL, deadline * SCALE)
        fn(c)
    except Skip as e:
        skip = str(e)
    except Deadline:
        error = "passed its deadline of %g s\n%s" % (
            deadline * SCALE, traceback.format_exc())
    except Exception:
        error = traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    took = time.monotonic() - began
    reports = []
    if error is not None:
        for report in _reporters + c._reporters:
            try:
                reports.append(str(report()))
            except Exception:
                reports.append(traceback.format_exc())
    errors = _run_cleanups(c)
    if error is None and errors:
        error = "cleanup failed\n" + "\n".join(errors)
    state["hard"] = None
    if error is not None:
        _print("not ok %d - %s" % (n, name))
        diag("after %.3f s" % took)
        diag(error)
        for text in reports:
            diag(text)
        return False
    if skip is not None:
        _print("ok %d - %s # SKIP %s" % (n, name, skip))
    else:
        _print("ok %d - %s" % (n, name))
    return True


def main():
    """Run the declared cases (those named on the command line, if any)."""
    signal.signal(signal.SIGALRM, _alarm)
    # A TERM (a user's ^C through make, a time limit) must still clean up.
    signal.signal(signal.SIGTERM, lambda s, f: sys.exit(1))
    words = sys.argv[1:]
    chosen = [c for c in _cases
              if not words or any(w in c[0] for w in words)]
    state = {"name": "start", "hard": None}
    threading.Thread(target=_watch, args=(state,), daemon=True).start()
    n, good = 0, True
    try:
        for name, deadline, fn in chosen:
            n += 1
            good = _run_one(n, name, deadline, fn, state) and good
    finally:
        while _ends:
            name, deadline, fn = _ends.pop()
            n += 1
            good = _run_one(n, name, deadline, fn, state) and good
        for fn in _lasts:
            fn()
    _print("1..%d" % n)
    sys.stdout.flush()
    os._exit(0 if good and n > 0 else 1)
