"""What the lints share: the tree's files, C text without comments and
strings, planted bad trees, and TAP."""
import os
import re
import shutil
import sys
import tempfile

ROOMS = ["base", "store", "gateway", "workers", "ctl", "bench"]


def root():
    return os.environ.get("HF_SRCDIR") or os.path.dirname(
        os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def files(top, rooms, endings):
    """Paths relative to 'top', sorted."""
    out = []
    for room in rooms:
        for folder, dirs, names in os.walk(os.path.join(top, room)):
            dirs[:] = sorted(d for d in dirs if not d.startswith(".") and
                             d not in ("__pycache__", "node_modules"))
            for name in sorted(names):
                if name.endswith(tuple(endings)):
                    out.append(os.path.relpath(os.path.join(folder, name),
                                               top))
    return out


def read(top, path):
    with open(os.path.join(top, path), encoding="utf-8") as f:
        return f.read()


_TOKEN = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|"
                    r"'(?:\\.|[^'\\\n])*'", re.S)


def _blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def code(text):
    """C without comments and string contents; line numbers stay."""
    return _TOKEN.sub(_blank, text)


def without_comments(text):
    def keep(match):
        return (_blank(match) if match.group(0).startswith("/")
                else match.group(0))
    return _TOKEN.sub(keep, text)


def line_of(text, at):
    return text.count("\n", 0, at) + 1


class Planted:
    """A small tree made of {path: text}; removed on exit."""

    def __init__(self, tree):
        self.tree = tree

    def __enter__(self):
        self.top = tempfile.mkdtemp(prefix="hf-lint-")
        for path, text in self.tree.items():
            full = os.path.join(self.top, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as f:
                f.write(text)
        return self.top

    def __exit__(self, *args):
        shutil.rmtree(self.top)


class Tap:
    def __init__(self):
        self.n = 0
        self.bad = 0

    def ok(self, good, name, details=()):
        self.n += 1
        print("%sok %d - %s" % ("" if good else "not ", self.n, name))
        if not good:
            self.bad += 1
            for d in details:
                print("#   %s" % d)

    def end(self):
        print("1..%d" % self.n)
        sys.stdout.flush()
        sys.exit(1 if self.bad else 0)


def run(checks, planted):
    """checks: [(name, fn(top) -> [findings])]; planted: [(name of the check,
    tree, part of the expected finding)] must each be found, in a tree that is
    bad in this one way only."""
    tap = Tap()
    by_name = dict(checks)
    for name, tree, expected in planted:
        with Planted(tree) as top:
            found = by_name[name](top)
        tap.ok(any(expected in f for f in found),
               "%s: finds a planted fault (%s)" % (name, expected), found)
    for name, fn in checks:
        found = fn(root())
        tap.ok(not found, name, found)
    tap.end()
