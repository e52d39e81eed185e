"""Run holdfastctl against a daemon's control socket."""
import json
import os
import subprocess


class Result:
    def __init__(self, code, out, err):
        self.code = code
        self.out = out
        self.err = err

    @property
    def json(self):
        return json.loads(self.out)

    def __repr__(self):
        return "<exit %d out=%r err=%r>" % (self.code, self.out[:2000],
                                            self.err[:2000])


def path():
    return os.path.join(os.environ["HF_BUILDDIR"], "holdfastctl")


def run(control, *words, timeout=20):
    p = subprocess.run([path(), "-s", control] + list(words),
                       stdin=subprocess.DEVNULL, capture_output=True,
                       text=True, timeout=timeout)
    return Result(p.returncode, p.stdout, p.stderr)


def call(control, *words, timeout=20):
    """With -o json; must succeed; returns the parsed output."""
    r = run(control, "-o", "json", *words, timeout=timeout)
    if r.code != 0:
        raise AssertionError("holdfastctl %s: %r" % (" ".join(words), r))
    return r.json
