#!/usr/bin/env python3
"""Who may include whom: base <- store <- gateway <- workers; ctl and bench
stand aside.  Libraries stay in their rooms, headers make no circle, every
source begins with config.h."""
import os
import re

import common

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)
MAX_HEADERS = 8		# project headers that one header may include

# Project headers that a room may name: whole rooms, or single headers.
MAY = {
    "base": ["base/"],
    "store": ["base/", "store/"],
    "gateway": ["base/", "store/store.h", "gateway/"],
    "workers": ["base/", "store/store.h", "store/keep.h", "store/inspect.h",
                "gateway/gateway.h", "workers/"],
    "ctl": ["base/", "store/inspect.h", "ctl/"],
    "bench": ["base/", "bench/"],
}
# Library headers and the folders that may include them.
ONLY = [
    (r"sqlite3.*\.h$", ["store/"]),
    (r"event2/http.*", ["gateway/front/"]),
    (r"event2/.*", ["gateway/", "workers/", "bench/"]),
    (r"curl/.*", ["gateway/upstream/", "bench/"]),
    (r"jansson.*", ["gateway/", "workers/", "ctl/", "bench/"]),
    (r"confuse\.h$", ["base/"]),
    (r"sodium.*", ["base/", "store/", "gateway/", "bench/"]),
]
# The master parses nothing and runs no event loop.
MASTER = re.compile(r"^workers/(main|master|spawn|supervise|listen)[^/]*$")
MASTER_NOT = re.compile(r"^(event2/|curl/|jansson|sqlite3)")
# What the store shows to others names no database library.
STORE_FACE = ["store/store.h", "store/keep.h", "store/inspect.h"]


def sources(top):
    return common.files(top, common.ROOMS, [".c", ".h", ".def"])


def includes(top, path):
    text = common.without_comments(common.read(top, path))
    return [(common.line_of(text, m.start()), m.group(1), m.group(2))
            for m in INCLUDE.finditer(text)]


def direction(top):
    found = []
    for path in sources(top):
        room = path.split("/")[0]
        for line, mark, name in includes(top, path):
            if mark == "<":
                if name.split("/")[0] in common.ROOMS:
                    found.append("%s:%d: project header %s in <>" % (
                        path, line, name))
                continue
            if "/" not in name:
                found.append("%s:%d: \"%s\" is not a path from the root" % (
                    path, line, name))
            elif not any(name == a or (a.endswith("/") and
                                       name.startswith(a))
                         for a in MAY[room]):
                found.append("%s:%d: %s must not include %s" % (
                    path, line, room, name))
    return found


def libraries(top):
    found = []
    for path in sources(top):
        for line, mark, name in includes(top, path):
            for pattern, rooms in ONLY:
                if not re.match(pattern, name):
                    continue
                if not path.startswith(tuple(rooms)):
                    found.append("%s:%d: <%s> belongs to %s" % (
                        path, line, name, " ".join(rooms)))
                break
            if MASTER.match(path) and MASTER_NOT.match(name):
                found.append("%s:%d: the master must not use <%s>" % (
                    path, line, name))
    return found


def reachable(top, path, seen=None):
    seen = set() if seen is None else seen
    for _, mark, name in includes(top, path):
        if mark == "\"" and os.path.exists(os.path.join(top, name)):
            if name not in seen:
                seen.add(name)
                reachable(top, name, seen)
    return seen


def store_face(top):
    found = []
    for face in STORE_FACE:
        if not os.path.exists(os.path.join(top, face)):
            continue
        for path in [face] + sorted(reachable(top, face)):
            for line, _, name in includes(top, path):
                if re.match(r"sqlite3|jansson|event2/", name):
                    found.append("%s:%d: reached from %s, includes <%s>" % (
                        path, line, face, name))
            text = common.code(common.read(top, path))
            m = re.search(r"\bsqlite3\w*", text)
            if m:
                found.append("%s:%d: reached from %s, names %s" % (
                    path, common.line_of(text, m.start()), face, m.group(0)))
    return found


def circles(top):
    graph = {p: [n for _, mark, n in includes(top, p) if mark == "\""]
             for p in sources(top) if not p.endswith(".c")}
    found, state = [], {}

    def visit(path, trail):
        if state.get(path) == "done" or path not in graph:
            return
        if path in trail:
            found.append(" -> ".join(trail[trail.index(path):] + [path]))
            return
        for name in graph[path]:
            visit(name, trail + [path])
        state[path] = "done"
    for path in sorted(graph):
        visit(path, [])
    return found


def config_first(top):
    found = []
    for path in common.files(top, common.ROOMS, [".c"]):
        names = [n for _, _, n in includes(top, path)]
        if names[:1] != ["config.h"]:
            found.append("%s: the first include is not <config.h>" % path)
            continue
        own = path[:-2] + ".h"
        quoted = [n for _, mark, n in includes(top, path) if mark == "\""]
        if own in quoted and quoted[0] != own:
            found.append("%s: its own header is not the first of ours" % path)
    return found


def guards(top):
    found = []
    for path in common.files(top, common.ROOMS, [".h"]):
        want = "HF_" + re.sub(r"[^A-Z0-9]", "_", path.upper())
        text = common.without_comments(common.read(top, path))
        if not re.match(r"\s*#ifndef %s\s*\n\s*#define %s\s*\n" % (
                want, want), text):
            found.append("%s: no include guard %s" % (path, want))
    return found


def umbrellas(top):
    found = []
    for path in common.files(top, common.ROOMS, [".h"]):
        n = sum(1 for _, mark, _ in includes(top, path) if mark == "\"")
        if n > MAX_HEADERS:
            found.append("%s: an umbrella header: includes %d others" % (
                path, n))
    return found


C = "#include <config.h>\n"
CHECKS = [
    ("includes follow the direction of the rooms", direction),
    ("libraries stay in their rooms", libraries),
    ("the store's face names no database library", store_face),
    ("headers include in no circle", circles),
    ("sources begin with config.h and their own header", config_first),
    ("headers are guarded by their path", guards),
    ("no umbrella headers", umbrellas),
]
D, L, S, O, F, G, U = [name for name, _ in CHECKS]
PLANTED = [
    (D, {"base/a.c": C + '#include "store/store.h"\n'}, "base must not"),
    (D, {"store/a.c": C + '#include "gateway/gateway.h"\n'},
     "store must not"),
    (D, {"gateway/turn/a.c": C + '#include "store/keep.h"\n'},
     "gateway must not"),
    (D, {"gateway/turn/a.h": '#include "workers/master.h"\n'},
     "gateway must not"),
    (D, {"workers/a.c": C + '#include "gateway/turn/turn.h"\n'},
     "workers must not"),
    (D, {"ctl/a.c": C + '#include "store/keep.h"\n'}, "ctl must not"),
    (D, {"bench/a.c": C + '#include "gateway/json/scan.h"\n'},
     "bench must not"),
    (D, {"base/a.c": C + '#include "arena.h"\n'}, "not a path"),
    (L, {"gateway/a.c": C + "#include <sqlite3.h>\n"}, "belongs to store"),
    (L, {"gateway/turn/a.c": C + "#include <event2/http.h>\n"},
     "belongs to gateway/front"),
    (L, {"gateway/turn/a.c": C + "#include <curl/curl.h>\n"},
     "belongs to gateway/upstream"),
    (L, {"store/a.c": C + "#  include <jansson.h>\n"}, "jansson"),
    (L, {"store/a.c": C + "#include <event2/event.h>\n"}, "event2"),
    (L, {"workers/master.c": C + "#include <event2/event.h>\n"},
     "the master must not"),
    (S, {"store/store.h": '#include "store/b.h"\n',
         "store/b.h": "#include <sqlite3.h>\n"}, "includes <sqlite3.h>"),
    (S, {"store/keep.h": "struct sqlite3;\n"}, "names sqlite3"),
    (O, {"base/a.h": '#include "base/b.h"\n',
         "base/b.h": '#include "base/c.h"\n',
         "base/c.h": '#include "base/a.h"\n'}, " -> base/a.h"),
    (F, {"base/a.c": "#include <stdio.h>\n" + C}, "first include"),
    (F, {"base/a.c": C + '#include "base/b.h"\n#include "base/a.h"\n'},
     "own header"),
    (G, {"base/a.h": "#ifndef A_H\n#define A_H\n#endif\n"}, "no include"),
    (U, {"base/all.h": "".join('#include "base/x%d.h"\n' % i
                               for i in range(9))}, "umbrella"),
]

if __name__ == "__main__":
    common.run(CHECKS, PLANTED)
