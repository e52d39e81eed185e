"""Who tests the test: a little of each suite against the reference proxy.
Without a bug it loses nothing; each of its twelve seeded bugs is caught, and
named as the table of them says; and each suite catches one."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import tap

BENCH = os.path.join(os.environ["HF_BUILDDIR"], "continuitybench")


def call(*args, timeout=120):
    return subprocess.run([BENCH] + list(args), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True,
                          timeout=timeout * tap.SCALE)


def scratch(t):
    d = tempfile.mkdtemp(prefix="hf-")
    t.cleanup(shutil.rmtree, d, True)
    return d


@tap.case("twelve of twelve", 300)
def twelve(t):
    d = scratch(t)
    # Some suites mostly wait.
    p = call("selftest", "--quick", "--jobs", "3", "--json",
             os.path.join(d, "out.json"), "--keep", os.path.join(d, "kept"),
             timeout=280)
    for line in p.stdout.splitlines():
        t.diag(line)
    t.eq(p.returncode, 0, p.stdout[-3000:])
    with open(os.path.join(d, "out.json"), encoding="utf-8") as f:
        out = json.load(f)
    t.eq((out["passed"], out["bugs"], out["caught"]), (True, 12, 12), "bugs")
    cells = out["cells"]
    listed = {line.split()[0] for line in call("suites").stdout.splitlines()
              if line[:1].strip()}
    none = {c["suite"]: c for c in cells if c["bug"] == "none"}
    t.eq(set(none), listed, "every suite is played")
    for c in none.values():
        t.eq((c["exit"], list(c["blame"])), (0, ["nobody"]), c["suite"])
    bugs = [c for c in cells if c["bug"] != "none"]
    t.eq(len({c["bug"] for c in bugs}), 12, "all are played")
    t.eq({c["suite"] for c in bugs}, set(none), "each suite catches one")
    for c in bugs:
        what = "%s on %s: %r" % (c["bug"], c["suite"], c["blame"])
        t.eq(c["exit"], 1, what)
        t.ok(c["blame"].get(c["expected"], 0) > 0, what)


@tap.case("a bug that is not named as expected fails", 60)
def unnamed(t):
    """The check can fail: a proxy without a bug has nobody to blame."""
    d = scratch(t)
    out = os.path.join(d, "out.json")
    p = call("run", "--proxy", "--suite", "updates", "--size", "16", "--quiet",
             "--first-token-ms", "700", "--json", out)
    t.eq(p.returncode, 0, p.stdout[-2000:])
    p = call("run", "--proxy", "--bug", "stale-update", "--suite", "updates",
             "--size", "16", "--quiet", "--first-token-ms", "700",
             "--json", out)
    t.eq(p.returncode, 1, p.stdout[-2000:])
    with open(out, encoding="utf-8") as f:
        report = json.load(f)
    t.ok(report["systems"]["proxy"]["blame"]["store"] > 0, "store")
    miss = report["misses"][0]
    t.eq((miss["system"], miss["blame"]), ("proxy", "store"), "the miss")
    t.ok(miss["requests"], "with what providers were sent")


@tap.case("usage")
def usage(t):
    for args in (("selftest", "--bug", "other"), ("selftest", "--jobs", "0"),
                 ("proxy", "--bug", "other"), ("proxy",),
                 ("run", "--bug", "reorder"),
                 ("run", "--proxy", "--bug", "other"),
                 ("run", "--proxy", "--target", "http://127.0.0.1:1/v1"),
                 ("run", "--proxy", "--kill-workers", "100")):
        t.eq(call(*args).returncode, 2, repr(args))
    t.isin("drop-last-turn", call("proxy", "--help").stdout, "bugs are listed")


tap.main()
