"""The benchmark against gateways of others: one that runs already, told its
sessions by a header of our choice; and profiles, side by side."""
import json
import os
import shutil
import socket
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


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def kept_port(t):
    """A port that stays ours until somebody with the same right listens."""
    s = socket.socket()
    t.cleanup(s.close)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("127.0.0.1", 0))
    return s.getsockname()[1]


def running_proxy(t, ports, suite, size):
    """A gateway that runs already: where it is."""
    p = subprocess.Popen(
        [BENCH, "proxy", "--with-parent", "--suite", suite, "--size", size,
         "--patience-ms", "1000"] + sum(
             (["--provider", "%s=http://127.0.0.1:%d" % x]
              for x in ports.items()), []),
        stdout=subprocess.PIPE, text=True)
    t.cleanup(p.wait)
    t.cleanup(p.kill)
    url = p.stdout.readline().split()[1]
    t.eq(p.stdout.readline(), "ready\n", "ready")
    return url


def target(t, url, ports, *more, status=0):
    out = os.path.join(scratch(t), "out.json")
    p = call("run", "--target", url, "--dialect", "openai", "--suite",
             "updates", "--size", "16", "--concurrency", "8", "--quiet",
             "--json", out, "--require", "1",
             *(x for name, port in ports.items() for x in (
                 "--listen", "%s=127.0.0.1:%d" % (name, port))), *more)
    t.eq(p.returncode, status, p.stdout[-3000:])
    return load(out) if os.path.exists(out) else p.stdout


@tap.case("one that runs already, with our providers where it looks", 120)
def runs_already(t):
    ports = {"primary": kept_port(t), "fallback": kept_port(t)}
    url = running_proxy(t, ports, "updates", "16")
    header = ("--header", "X-Holdfast-Session: call-{session}-{conversation}",
              "--header", "X-Other: {turn} of {play}")
    # Directions of routes are the gateway's business: it has two.
    report = target(t, url, ports, "--model", "any-{route}", *header)
    s = report["systems"]["target"]
    t.eq((s["cpr"]["k"], s["cpr"]["n"]), (16, 16), "kept")
    t.eq(report["counts"]["bad_payloads"], 0, "payloads are judged")
    t.ok(report["counts"]["payloads"] > 64, "and seen")


@tap.case("a header without the session's name loses all", 120)
def one_session(t):
    ports = {"primary": kept_port(t), "fallback": kept_port(t)}
    url = running_proxy(t, ports, "updates", "16")
    report = target(t, url, ports, "--model", "any-{route}", "--header",
                    "X-Holdfast-Session: everybody", status=1)
    t.ok(report["counts"]["bleed"] > 0, "mixed")
    t.ok(report["systems"]["target"]["blame"]["foreign"] > 0, "foreign")


@tap.case("side by side: this gateway and a plain nginx", 300)
def side_by_side(t):
    if shutil.which("nginx") is None:
        raise tap.Skip("no nginx in PATH")
    d = scratch(t)
    out = os.path.join(d, "out.json")
    page = os.path.join(d, "out.md")
    unit = str(int(100 * tap.SCALE))
    p = call("compare", "--targets", "holdfast,nginx,holdfast:full",
             "--suites", "wall,midstream", "--size", "54", "--wall-ms", unit,
             "--json", out, "--markdown", page, "--keep",
             os.path.join(d, "kept"), timeout=280)
    t.eq(p.returncode, 0, p.stdout[-3000:])
    suites = load(out)["suites"]
    t.eq({s: list(suites[s]) for s in suites},
         dict.fromkeys(("wall", "midstream"),
                       ["holdfast", "nginx", "holdfast:full"]), "all of them")
    for name in ("holdfast", "holdfast:full"):
        r = suites["midstream"][name]
        t.eq(r["systems"]["holdfast"]["cpr"]["k"], 54, name)
        t.eq(r["counts"]["bad_payloads"], 0, name)
        t.eq([(x["scenario"], x["why"]) for x in suites["wall"][name]["wall"]
              if x["verdict"] != "pass"], [], name + ": the wall")
    t.eq(suites["midstream"]["holdfast"]["run"]["history"], "thin", "thin")
    t.eq(suites["midstream"]["holdfast:full"]["run"]["history"], "full",
         "full")
    r = suites["midstream"]["nginx"]
    t.eq(r["systems"]["nginx"]["cpr"]["k"], 0, "nginx goes on with nothing")
    t.ok(r["counts"]["silent"] > 0, "and says nothing of some")
    t.isin("nginx", r["gateway"]["version"], "version")
    wall = {x["scenario"]: x["verdict"]
            for x in suites["wall"]["nginx"]["wall"]}
    t.eq(len(wall), 16, "scenarios")
    t.eq((wall["s02"], wall["s08"]), ("pass", "safe"), repr(wall))
    with open(page, encoding="utf-8") as f:
        text = f.read()
    t.isin("| conversations preserved", text, "the table")
    t.isin("54/54 100.0 %", text, "the table")
    t.isin("s16 who answered is told", text, "the wall")


@tap.case("profiles that are wrong", 60)
def wrong(t):
    d = scratch(t)

    def profile(**change):
        o = {"name": "x", "history": "full", "start": ["false"],
             "ready": "/", "url": "http://127.0.0.1:{port}/v1"}
        o.update(change)
        path = os.path.join(d, "x.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump({k: v for k, v in o.items() if v is not None}, f)
        return call("run", "--profile", path, "--suite", "updates", "--size",
                    "4", "--quiet", "--keep", os.path.join(d, "kept"))

    for what, change in (("history", {"history": "some"}),
                         ("url", {"url": None}), ("start", {"start": []}),
                         ("start", {"start": [1]}),
                         ("headers", {"headers": "X: y"}),
                         ("more", {"more": 1})):
        p = profile(**change)
        t.eq(p.returncode, 2, p.stdout)
        t.isin("x.json: ", p.stdout, what)
    p = profile()
    t.eq(p.returncode, 4, p.stdout)
    t.isin("ended at its start", p.stdout, "told")
    p = profile(install=["sh", "-c", "echo no network; exit 1"])
    t.eq(p.returncode, 4, p.stdout)
    t.isin("install.log", p.stdout, "told where")
    t.eq(call("run", "--profile", "nobody").returncode, 2, "no such profile")
    for args in (("run", "--header", "X: {session}"), ("run", "--no-user"),
                 ("run", "--target", "http://127.0.0.1:1/v1", "--header",
                  "nothing"),
                 ("run", "--target", "http://127.0.0.1:1/v1", "--dialect",
                  "gemini"), ("compare", "--targets", ","),
                 ("compare", "more")):
        t.eq(call(*args).returncode, 2, repr(args))


tap.main()
