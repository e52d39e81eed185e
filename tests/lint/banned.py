#!/usr/bin/env python3
"""Calls that are never right here, transactions that could end in
BUSY_SNAPSHOT, foreign opens of the database files, and paths of one
machine."""
import os
import re

import common

CALLS = re.compile(
    r"\b(strcpy|strcat|stpcpy|sprintf|vsprintf|gets|strtok|system|popen|"
    r"alloca|tmpnam|mktemp|tempnam|rand|srand|"
    r"setjmp|longjmp|vfork)\s*\(")
# BEGIN that is not IMMEDIATE fails with BUSY_SNAPSHOT once it writes.  A
# transaction that only reads says so: BEGIN DEFERRED,
# or has a name that ends in _READ.
BEGIN = re.compile(r'(?<!_READ, )"\s*BEGIN\b(?!\s+(IMMEDIATE|DEFERRED))'
                   r'[^"]*"')
OPENS = re.compile(r"\b(open|open64|openat|creat|fopen|freopen)\s*\(([^;]*);",
                   re.S)
DATABASE = re.compile(r'database|db_path|-wal"|-shm"|\.db"')
MACHINE = re.compile(r"/(?:%s)/[a-z]" % "|".join(
    ["w" + "ork", "root/[.]pyenv", "home/[a-z]"]))
TEXT = [".c", ".h", ".def", ".mk", ".am", ".ac", ".py", ".t", ".sh", ".md",
        ".sql", ".conf", ".service", ".socket", ".json", ".js", ".ts", ".1",
        ".5", ".7", ".8", ".txt", ".yml"]
PLACES = common.ROOMS + ["migrations", "docs", "tests", ".ci"]


def c_sources(top):
    return common.files(top, common.ROOMS + ["tests/unit", "tests/fuzz"],
                        [".c", ".h"])


def calls(top):
    found = []
    for path in c_sources(top):
        text = common.code(common.read(top, path))
        for m in CALLS.finditer(text):
            found.append("%s:%d: %s()" % (
                path, common.line_of(text, m.start()), m.group(1)))
    return found


def begins(top):
    found = []
    for path in common.files(top, common.ROOMS, [".c", ".h", ".def"]):
        text = common.without_comments(common.read(top, path))
        for m in BEGIN.finditer(text):
            found.append("%s:%d: plain %s" % (
                path, common.line_of(text, m.start()), m.group(0)))
    return found


def opens(top):
    """Closing any descriptor of these files drops SQLite's locks."""
    found = []
    rooms = [r for r in common.ROOMS if r != "store"]
    for path in common.files(top, rooms, [".c"]):
        text = common.without_comments(common.read(top, path))
        for m in OPENS.finditer(text):
            if DATABASE.search(m.group(2)) and ".lock" not in m.group(2):
                found.append("%s:%d: opens a database file" % (
                    path, common.line_of(text, m.start())))
    return found


def machine_paths(top):
    found = []
    paths = common.files(top, PLACES, TEXT)
    paths += [n for n in sorted(os.listdir(top))
              if os.path.isfile(os.path.join(top, n)) and
              (n.endswith((".md", ".am", ".ac")) or n == "autogen.sh")]
    for path in paths:
        with open(os.path.join(top, path), encoding="utf-8",
                  errors="replace") as f:
            for n, line in enumerate(f, 1):
                if MACHINE.search(line):
                    found.append("%s:%d: %s" % (path, n, line.strip()))
    return found


CONFLICT = re.compile(r"^(?:<{7}|>{7}) ")


def conflicts(top):
    """Marks of a merge that nobody finished."""
    found = []
    for path in common.files(top, PLACES, TEXT):
        with open(os.path.join(top, path), encoding="utf-8",
                  errors="replace") as f:
            for n, line in enumerate(f, 1):
                if CONFLICT.match(line):
                    found.append("%s:%d: %s" % (path, n, line.strip()))
    return found


CHECKS = [
    ("no banned calls", calls),
    ("no plain BEGIN", begins),
    ("nobody but the store opens database files", opens),
    ("no paths of one machine", machine_paths),
    ("no marks of an unfinished merge", conflicts),
]
A, B, O, M, C = [name for name, _ in CHECKS]
PLANTED = [
    (A, {"base/a.c": "void f(void) { strcpy(a, b); }\n"}, "strcpy"),
    (A, {"store/a.c": "int x = system (cmd);\n"}, "system"),
    (A, {"ctl/a.c": "char *p = strtok(s, d);\n"}, "strtok"),
    (A, {"tests/unit/a.c": "sprintf(b, f);\n"}, "sprintf"),
    (B, {"store/a.c": 'exec(db, "BEGIN");\n'}, "plain"),
    (B, {"store/sql.def": 'SQL(begin, "BEGIN EXCLUSIVE")\n'}, "plain"),
    (O, {"workers/a.c": "fd = open(c->database, O_RDONLY);\n"}, "a.c:1"),
    (O, {"ctl/a.c": 'f = fopen(join(p, "-wal"), "r");\n'}, "a.c:1"),
    (M, {"docs/a.md": "see /" + "work/main/x\n"}, "a.md:1"),
    (C, {"tests/regress/a.t": "x\n" + ">" * 7 + " 4acac99 (x)\n"},
     "a.t:2"),
]

if __name__ == "__main__":
    # The same words in comments, strings and longer names are fine.
    with common.Planted({"base/a.c": "/* strcpy() */ x_sprintf(\"gets(\");\n"
                         "exec(\"BEGIN IMMEDIATE\");\n"}) as good:
        assert not calls(good) and not begins(good)
    common.run(CHECKS, PLANTED)
