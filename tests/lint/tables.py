#!/usr/bin/env python3
"""Tables and their documentation agree: every configuration key, metric,
verb and fault point is described (and tested) and nothing else is."""
import os
import re

import common

STRING = r'"((?:\\.|[^"\\])*)"'


def rows(top, path, macro):
    """The argument texts of each MACRO(...) row."""
    text = common.without_comments(common.read(top, path))
    return re.findall(r"^%s\(([^\n]*)\)\s*$" % macro, text, re.M)


def cat(top, folder, endings):
    return "\n".join(common.read(top, p)
                     for p in common.files(top, [folder], endings))


def missing_file(top, path):
    if os.path.exists(os.path.join(top, path)):
        return []
    return ["%s does not exist" % path]


def params(top):
    out = []
    for row in rows(top, "base/params.def", "HF_PARAM"):
        block, key = [x.strip() for x in row.split(",")[:2]]
        out.append((block, key))
    return out


def plain(roff):
    """mdoc text with its escapes undone."""
    return roff.replace("\\-", "-").replace("\\&", "").replace("\\_", "_")


def keys_in_manual(top):
    path = "docs/man/holdfast.conf.5"
    found = missing_file(top, path)
    if found:
        return found
    text = plain(common.read(top, path))
    known = params(top)
    if not known:
        return ["base/params.def has no rows"]
    for block, key in known:
        if not re.search(r"(?<![\w])%s(?![\w])" % re.escape(key), text):
            found.append("%s: %s (%s) is not described" % (path, key, block))
    names = {k for _, k in known} | {b for b, _ in known}
    for word in re.findall(r"^\.It (?:Ic|Va|Cm) (\w+)", text, re.M):
        if word not in names:
            found.append("%s: describes %s, which is no key" % (path, word))
    return found


def keys_in_sample(top):
    path = "docs/examples/holdfast.conf"
    found = missing_file(top, path)
    if found:
        return found
    text = common.read(top, path)
    known = params(top)
    for block, key in known:
        if not re.search(r"^\s*#?\s*%s\s*=" % re.escape(key), text, re.M):
            found.append("%s: no line for %s (%s)" % (path, key, block))
    names = {k for _, k in known}
    for word in re.findall(r"^\s*#?\s*(\w+)\s*=", text, re.M):
        if word not in names:
            found.append("%s: sets %s, which is no key" % (path, word))
    return found


def metrics(top):
    known = set()
    for row in rows(top, "base/counters.def", "HF_COUNTER"):
        known.add(re.findall(STRING, row)[0])
    text = plain(cat(top, "docs/man", [".1", ".5", ".7", ".8"]))
    if not known:
        return ["base/counters.def has no rows"]
    found = ["%s is in no manual" % n for n in sorted(known)
             if not re.search(r"\b%s\b" % n, text)]
    for word in sorted(set(re.findall(r"\bholdfast_\w+", text))):
        if word not in known:
            found.append("a manual names %s, which is no metric" % word)
    return found


def verbs(top):
    path = "docs/man/holdfastctl.1"
    found = missing_file(top, path)
    if found:
        return found
    text = plain(common.read(top, path))
    known = [re.findall(STRING, row)[1]
             for row in rows(top, "base/verbs.def", "HF_VERB")]
    if not known:
        return ["base/verbs.def has no rows"]
    for words in known:
        # "sessions list" may be spread over mdoc macros.
        spread = r"\b" + r"\s+(?:Cm\s+)?".join(words.split()) + r"\b"
        if not re.search(spread, text):
            found.append("%s: %s is not described" % (path, words))
    return found


def verbs_tested(top):
    text = cat(top, "tests/regress", [".t"]) + cat(top, "tests/harness",
                                                   [".py"])
    found = []
    for row in rows(top, "base/verbs.def", "HF_VERB"):
        words = re.findall(STRING, row)[1].split()
        want = r"\W+".join(re.escape(w) for w in words)
        if not re.search(r"[\"']%s[\"']" % want, text):
            found.append("no regress test uses: %s" % " ".join(words))
    return found


def faults_tested(top):
    points = set()
    for path in common.files(top, common.ROOMS, [".c"]):
        if path == "base/fault.c":
            continue
        text = common.without_comments(common.read(top, path))
        points |= set(re.findall(r"\bhf_fault\(\s*%s" % STRING, text))
    text = "".join(cat(top, d, [".t", ".c", ".py", ".sh"])
                   for d in ("tests/regress", "tests/crash", "tests/unit"))
    return ["no test uses fault point %s" % p for p in sorted(points)
            if p not in text]


def tests_listed(top):
    """A test that no module.mk names is never run and not shipped."""
    text = cat(top, "tests", [".mk"])
    found = []
    for path in common.files(top, ["tests"], [".t", ".c", ".h", ".py", ".sh"]):
        # automake knows the only source of a program by the program's name.
        name = path[:-2] if path.endswith(".c") else path
        if not re.search(r"(?<![\w/])%s(?![\w/])" % re.escape(name), text):
            found.append("%s is in no module.mk" % path)
    return found


def sources_listed(top):
    text = cat(top, ".", [".mk"])
    return ["%s is in no module.mk" % path
            for path in common.files(top, common.ROOMS + ["migrations"],
                                     [".c", ".h", ".def", ".sql"])
            if path not in text]


CHECKS = [
    ("every configuration key is in its manual", keys_in_manual),
    ("every configuration key is in the sample", keys_in_sample),
    ("every metric is in a manual", metrics),
    ("every verb is in its manual", verbs),
    ("every verb is used by a test", verbs_tested),
    ("every fault point is used by a test", faults_tested),
    ("every test is listed to be run and shipped", tests_listed),
    ("every source is listed", sources_listed),
]
K, S, M, V, T, F, L, C = [name for name, _ in CHECKS]
PARAMS = ('HF_PARAM(gateway, listen, LISTEN, listen, 1, 16, "x", NULL, 0, '
          '"p")\nHF_PARAM(gateway, workers, COUNT, workers, 0, 9, "0", NULL, '
          '0, "p")\n')
PLANTED = [
    (K, {"base/params.def": PARAMS}, "does not exist"),
    (K, {"base/params.def": PARAMS,
         "docs/man/holdfast.conf.5": ".It Ic listen\n"}, "workers (gateway)"),
    (K, {"base/params.def": PARAMS,
         "docs/man/holdfast.conf.5": ".It Ic listen\n.It Ic workers\n"
         ".It Ic wrokers\n"}, "which is no key"),
    (S, {"base/params.def": PARAMS,
         "docs/examples/holdfast.conf": "listen = 1\n"}, "workers"),
    (S, {"base/params.def": PARAMS, "docs/examples/holdfast.conf":
         "listen = 1\n# workers = 2\nwrokers = 2\n"}, "wrokers"),
    (M, {"base/counters.def": 'HF_COUNTER(a, counter, "holdfast_a_total", '
         '"", "h")\n', "docs/man/holdfast.8": "none\n"}, "holdfast_a_total"),
    (M, {"base/counters.def": 'HF_COUNTER(a, counter, "holdfast_a_total", '
         '"", "h")\n', "docs/man/holdfast.8":
         "holdfast_a_total holdfast_b_total\n"}, "holdfast_b_total"),
    (V, {"base/verbs.def": 'HF_VERB("keys.list", "keys list", 0, "h")\n',
         "docs/man/holdfastctl.1": ".It Cm keys create\n"}, "keys list"),
    (T, {"base/verbs.def": 'HF_VERB("keys.list", "keys list", 0, "h")\n',
         "tests/regress/01-x.t": 'd.ctl("keys", "create")\n'}, "keys list"),
    (F, {"store/a.c": 'if (hf_fault("t1-after")) return;\n',
         "tests/crash/20-x.t": "HF_FAULT=t2\n"}, "t1-after"),
    (L, {"tests/regress/01-x.t": "\n",
         "tests/regress/module.mk": "TESTS += tests/regress/02-x.t\n"},
     "01-x.t"),
    (C, {"base/a.c": "\n", "base/module.mk": "x_SOURCES = base/b.c\n"},
     "base/a.c"),
]

if __name__ == "__main__":
    common.run(CHECKS, PLANTED)
