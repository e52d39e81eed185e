"""continuitybench's reports: the JSON is as its schema says, its figures are
what the plays in it give when they are counted another way, and the page made
of it loads nothing, shows hostile text as text, and is whole and legible in a
browser, wide and narrow, light and dark."""
import csv
import html.parser
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import chromium
import schema
import tap

BENCH = os.path.join(os.environ["HF_BUILDDIR"], "continuitybench")
DOCS = os.path.join(os.environ["HF_SRCDIR"], "docs")
DIR = tempfile.mkdtemp(prefix="hf-")
tap.at_exit(lambda: shutil.rmtree(DIR, True))


def path(name):
    return os.path.join(DIR, name)


def bench(t, *args, status=0):
    p = call(args)
    t.eq(p.returncode, status, (p.stdout + p.stderr)[-2000:])
    return p.stdout


def call(args):
    return subprocess.run([BENCH] + list(args), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True,
                          timeout=150 * tap.SCALE)


_reports = {}


def report(t, name, *args):
    """The report of a run, played once.  Whether the run is a good one is
    21-suites.t's question."""
    if name not in _reports:
        p = call(("run", "--quiet", "--concurrency", "25",
                  "--first-token-ms", "1500", "--json",
                  path(name + ".json")) + args)
        t.isin(p.returncode, (0, 1), p.stderr[-2000:])
        if p.returncode == 1 and "--bug" not in args:
            t.diag(p.stderr[-2000:])
        with open(path(name + ".json"), encoding="utf-8") as f:
            _reports[name] = json.load(f)
    return _reports[name]


def paper(t):
    return report(t, "paper", "--suite", "paper", "--runs", "2", "--systems",
                  "baseline,holdfast,control")


def streams(t):
    return report(t, "midstream", "--suite", "midstream", "--size", "54")


def suites(t):
    return report(t, "all", "--suite", "all", "--size", "6", "--runs", "1")


@tap.case("reports are as their schema says", 300)
def as_schema(t):
    with open(os.path.join(DOCS, "report.schema.json"),
              encoding="utf-8") as f:
        s = json.load(f)
    for r in (paper(t), streams(t), suites(t)):
        t.eq(schema.errors(r, s), [], "errors")
    # It says no where it should.
    for name, breaking in (
            ("surplus", lambda r: r.update(more=1)),
            ("lack", lambda r: r.pop("plays")),
            ("kind", lambda r: r["counts"].update(bleed="0")),
            ("bound", lambda r: r["systems"]["holdfast"]["cpr"].update(p=2)),
            ("deep", lambda r: r["plays"][7]["probes"][0].pop("right"))):
        r = json.loads(json.dumps(paper(t)))
        breaking(r)
        t.eq(len(schema.errors(r, s)), 1, name)


@tap.case("what the plays give is what is told", 120)
def recount(t):
    r = paper(t)
    plays = {}
    for p in r["plays"]:
        t.eq(p["preserved"], all(q["right"] for q in p["probes"]), p["id"])
        t.eq(p["probes"][-1]["right"],
             p["probes"][-1]["expected"] in p["probes"][-1]["answer"],
             p["id"])
        plays[p["system"], p["run"], p["conversation"]] = p
    t.eq(len(plays), 900, "plays")
    for name, s in r["systems"].items():
        mine = [p for p in plays.values() if p["system"] == name]
        t.eq((s["cpr"]["k"], s["cpr"]["n"]),
             (sum(p["preserved"] for p in mine), len(mine)), name)
        times = [p["probe_ms"] for p in mine]
        t.ok(abs(statistics.fmean(times) - s["latency_ms"]["mean"]) < 0.01,
             "mean of %s" % name)
        q = statistics.quantiles(times, n=20, method="inclusive")
        t.ok(abs(q[-1] - s["latency_ms"]["p95"]) < 0.01, "P95 of %s" % name)
        wilson(t, s["cpr"])
    t.eq(set(r["conditional"]), {"baseline", "holdfast"}, "conditional")
    t.eq(r["conditional"]["holdfast"]["n"], 300, "the control has all right")
    t.eq(r["conditional"]["holdfast"]["k"], 300, "so has holdfast")
    t.eq(r["conditional"]["baseline"]["k"], 0, "the baseline has none")
    for b in r["bounds"].values():
        t.ok(b["k"] > 0 or abs(b["hi"] - min(1, 3 / b["n"])) < 1e-9, b)
    bootstrap(t, r, plays)


def wilson(t, ratio):
    """Its ends are where a test of the true rate gives 1.96 exactly."""
    n, p = ratio["n"], ratio["p"]
    for end in (ratio["lo"], ratio["hi"]):
        if 0 < end < 1:
            z = abs(p - end) / (end * (1 - end) / n) ** .5
            t.ok(abs(z - 1.959964) < 1e-4, ratio)


def bootstrap(t, r, plays):
    """Once more with another generator: conversations, not turns, are drawn."""
    pairs = {}
    for (system, run, conv), p in plays.items():
        if system == "holdfast":
            pairs.setdefault(conv, []).append(
                p["probe_ms"] - plays["baseline", run, conv]["probe_ms"])
    convs = list(pairs.values())
    rng = random.Random(5)
    means = sorted(
        statistics.fmean(d for c in rng.choices(convs, k=len(convs))
                         for d in c) for _ in range(2000))
    t.eq(r["clo_ms"]["of"], ["holdfast", "baseline"], "of")
    t.ok(abs(statistics.fmean(d for c in convs for d in c) -
             r["clo_ms"]["mean"]) < 0.01, "mean")
    lo, hi = r["clo_ms"]["ci"]["mean"]
    width = means[1949] - means[49]
    t.ok(abs(lo - means[49]) < 0.15 * width, (lo, means[49], width))
    t.ok(abs(hi - means[1949]) < 0.15 * width, (hi, means[1949], width))


@tap.case("the CSV has the same figures", 120)
def as_csv(t):
    r = paper(t)
    bench(t, "report", path("paper.json"), "--csv", path("paper.csv"))
    with open(path("paper.csv"), newline="", encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    at = {(x["system"], x["table"], x["axis"], x["label"]): x for x in rows}
    t.eq(len(at), len(rows), "no line twice")
    for name, s in r["systems"].items():
        t.eq(int(at[name, "cpr", "", ""]["k"]), s["cpr"]["k"], name)
        t.eq(int(at[name, "cpr", "length", "7"]["n"]),
             s["by"]["length"]["7"]["n"], name)
        t.ok(abs(float(at[name, "latency_ms", "", ""]["median"]) -
                 s["latency_ms"]["median"]) < 0.01, name)
    t.eq(int(at["", "bound", "", "bleed"]["k"]), 0, "bleed")
    t.ok(abs(float(at["holdfast", "clo_ms", "ci", "mean"]["lo"]) -
             r["clo_ms"]["ci"]["mean"][0]) < 0.01, "interval")
    bench(t, "report", path("all.json"), "--csv", path("all.csv"))
    with open(path("all.csv"), newline="", encoding="utf-8") as f:
        t.eq({x["suite"] for x in csv.DictReader(f)},
             set(suites(t)["suites"]), "suites")


@tap.case("the tables can be had again from the JSON", 60)
def as_tables(t):
    paper(t)
    out = bench(t, "report", path("paper.json"))
    t.isin("context preserved", out, "tables")
    t.isin("95 % by bootstrap: mean [", out, "bootstrap")
    t.isin("at most ", out, "bounds")


@tap.case("what is no report is refused", 60)
def refused(t):
    for name, text in (("none", None), ("broken", "{"), ("other", "{}"),
                       ("newer", '{"schema": 2}')):
        if text is not None:
            with open(path(name), "w", encoding="utf-8") as f:
                f.write(text)
        bench(t, "report", path(name), status=2)
    bench(t, "report", status=2)
    paper(t)
    bench(t, "report", path("paper.json"), "--html", DIR, status=1)


@tap.case("ghosts and tools that are called again are counted", 120)
def counted(t):
    for bug, suite, size, count in (("keep-ghosts", "retries", 18, "ghosts"),
                                    ("rerun-tool", "carriers", 18,
                                     "reexecuted")):
        r = report(t, bug, "--suite", suite, "--size", str(size), "--proxy",
                   "--bug", bug)
        t.ok(r["counts"][count] > 0, (bug, r["counts"]))
        t.eq(r["bounds"][count]["k"], r["counts"][count], bug)
        t.eq(r["bounds"][count]["rule"], "wilson", bug)
    for r in (streams(t), *suites(t)["suites"].values()):
        for count in ("ghosts", "reexecuted"):
            t.eq(r["counts"][count], 0, count)


# --- the page ---------------------------------------------------------------

HOSTILE = ("<script>document.title='owned'</script>\"'><img src=x "
           "onerror=alert(1)></style></details></section><!-- "
           "&lt;\u202egnol\u202c \x01 {{x}} ")


def poison(v, keep=("paper", "midstream")):
    """Every text and every name that may be anybody's, made hostile."""
    if isinstance(v, str):
        return HOSTILE + v
    if isinstance(v, list):
        return [poison(x) for x in v]
    if isinstance(v, dict):
        return {k: poison(x) for k, x in v.items()}
    return v


def poisoned(r):
    r = json.loads(json.dumps(r))
    out = {k: poison(v) for k, v in r.items()}
    out["systems"] = {HOSTILE + k: v for k, v in out["systems"].items()}
    for s in out["systems"].values():
        s["by"] = {HOSTILE + k: {HOSTILE + x: y for x, y in v.items()}
                   for k, v in s["by"].items()}
        s["blame"] = {HOSTILE + k: v for k, v in s["blame"].items()}
    out["bounds"] = {HOSTILE + k: v for k, v in out["bounds"].items()}
    out["judge"] = {"url": HOSTILE, "model": HOSTILE, "calibration": {
        "n": 1, "k": 1, "p": 1, "lo": 0, "hi": 1, "needed": 1,
        "passed": True, "cases": [{"id": HOSTILE, "kind": HOSTILE,
                                   "preserved": True, "verdict": HOSTILE,
                                   "agrees": True, "reason": HOSTILE}]}}
    out["conditional"] = {HOSTILE: {"n": 1, "k": 1, "p": 1, "lo": 0, "hi": 1,
                                    "given": HOSTILE, "right_only_with": 0}}
    return out


class Page(html.parser.HTMLParser):
    """Elements, attributes and text of a page; what is not balanced."""
    VOID = {"meta", "rect", "line", "br", "input"}
    KNOWN = {"html", "head", "meta", "title", "style", "body", "main", "h1",
             "h2", "h3", "h4", "p", "b", "a", "section", "figure",
             "figcaption", "div", "span", "svg", "rect", "line", "table",
             "caption", "tr", "th", "td", "details", "summary", "mark", "br"}
    ATTRS = {"lang", "charset", "name", "content", "http-equiv", "class",
             "style", "id", "href", "viewbox", "preserveaspectratio", "role",
             "aria-label", "aria-hidden", "x", "y", "width", "height", "x1",
             "x2", "y1", "y2"}

    def __init__(self, t, text):
        super().__init__()
        self.t, self.open, self.text = t, [], []
        self.feed(text)
        self.close()
        t.eq(self.open, [], "elements that are not closed")

    def handle_starttag(self, tag, attrs):
        self.t.isin(tag, self.KNOWN, "element")
        for name, value in attrs:
            self.t.isin(name, self.ATTRS, "attribute of " + tag)
            if name == "href":
                self.t.ok(value.startswith("#suite-"), value)
            if name == "style":
                self.t.notin("(", value, "style")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag):
        self.t.eq(self.open.pop(), tag, "closed")

    def handle_comment(self, data):
        raise AssertionError("a comment: " + data)

    def handle_data(self, data):
        if "style" not in self.open:
            self.text.append(data)


def page(t, name):
    bench(t, "report", path(name + ".json"), "--html", path(name + ".html"))
    with open(path(name + ".html"), encoding="utf-8") as f:
        return f.read()


@tap.case("the page holds what it must, and loads nothing", 120)
def as_page(t):
    paper(t), streams(t), suites(t)
    for name in ("paper", "midstream", "all"):
        text = page(t, name)
        for word in ("url(", "@import", "http://", "https://", "<script",
                     "<link", "<iframe", "javascript:"):
            t.notin(word, text, name)
        t.isin("default-src 'none'", text, "policy")
        said = "".join(Page(t, text).text)
        for word in ("Context preserved", "pair by pair", "By axis",
                     "Checks", "Misses"):
            t.isin(word, said, name)
    t.isin("Seams", "".join(Page(t, page(t, "midstream")).text), "seams")
    for name in suites(t)["suites"]:
        t.isin("Suite " + name, page(t, "all"), "suites")


@tap.case("hostile text is text", 120)
def hostile(t):
    for name, r in (("paper", paper(t)), ("midstream", streams(t))):
        with open(path("hostile.json"), "w", encoding="utf-8") as f:
            json.dump(poisoned(r), f)
        seen = "".join(Page(t, page(t, "hostile")).text)
        t.ok(seen.count(HOSTILE.replace("\x01", "\ufffd")) > 50, name)
    if not browser_missing():
        with chromium.Browser(60 * tap.SCALE) as b:
            b.open(path("hostile.html"), 1280)
            t.eq(b.js("document.title"), "ContinuityBench report", "title")
            t.eq(b.js("document.images.length + document.scripts.length"),
                 0, "foreign elements")
            t.eq(len(b.requests), 1, "requests")


def browser_missing():
    try:
        chromium.find()
        return None
    except chromium.Missing as e:
        return str(e)


# What is wider than the page, though it does not scroll by itself.
WIDE = """
[...document.querySelectorAll('main *')].filter(e => {
  const r = e.getBoundingClientRect();
  return r.width > 0 && r.right > innerWidth + 1 && !e.closest('.scroll');
}).map(e => e.tagName + '.' + e.className + ' ' +
       e.textContent.slice(0, 40)).slice(0, 5)"""
# Ticks of one axis that run into each other.
TICKS = """
[...document.querySelectorAll('.axis')].flatMap(a => {
  const r = [...a.children].map(c => c.getBoundingClientRect())
      .filter(c => c.width).sort((x, y) => x.left - y.left);
  return r.slice(1).filter((c, i) => c.left < r[i].right - 1).map(
      (c, i) => a.textContent);
})"""
# Words whose colour is too near that of what they stand on (WCAG AA: 4.5).
FAINT = """
(() => {
  const rgb = s => s.match(/[0-9.]+/g).map(Number);
  const light = c => {
    const [r, g, b] = c.slice(0, 3).map(v => (v /= 255) <= .03928 ?
        v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const ground = e => {
    for (; e; e = e.parentElement) {
      const c = rgb(getComputedStyle(e).backgroundColor);
      if (c.length < 4 || c[3] > 0) return c;
    }
    return [255, 255, 255];
  };
  const out = new Set();
  for (const e of document.querySelectorAll('main *')) {
    if (![...e.childNodes].some(n => n.nodeType == 3 && n.data.trim()))
      continue;
    const a = light(rgb(getComputedStyle(e).color)), b = light(ground(e));
    const k = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (k < 4.5) out.add(e.tagName + '.' + e.className + ' ' + k.toFixed(2));
  }
  return [...out];
})()"""
# A bar's share of its track, and the figure beside it.
BARS = """
[...document.querySelectorAll('.bar')].filter(b => b.querySelector('.fill'))
.map(b => [100 * b.querySelector('.fill').getBoundingClientRect().width /
           b.querySelector('.track').getBoundingClientRect().width,
           parseFloat(b.querySelector('.figures').textContent
                      .match(/([0-9.]+)\\u00a0%/)[1])])"""


@tap.case("a browser shows it whole, wide and narrow, light and dark", 240)
def in_browser(t):
    why = browser_missing()
    if why:
        raise tap.Skip(why)
    paper(t), streams(t), suites(t)
    try:
        b = chromium.Browser(60 * tap.SCALE)
    except chromium.Missing as e:
        raise tap.Skip(str(e))
    t.cleanup(b.close)
    for name in ("paper", "midstream", "all"):
        page(t, name)
        for width, phone in ((1280, False), (390, True), (320, True)):
            for dark in (False, True):
                look(t, b, name, width, phone, dark)


def look(t, b, name, width, phone, dark):
    at = "%s at %d, %s" % (name, width, "dark" if dark else "light")
    b.open(path(name + ".html"), width, 844, dark, phone)
    t.eq(b.requests, ["file://" + path(name + ".html")], at)
    b.js("document.querySelectorAll('details').forEach(d => d.open = true)")
    t.eq(b.complaints, [], at)
    t.eq(b.js("document.documentElement.scrollWidth"), width, at)
    t.eq(b.js(WIDE), [], at)
    t.eq(b.js(TICKS), [], at)
    t.eq(b.js(FAINT), [], at)
    ground = b.js("getComputedStyle(document.body).backgroundColor")
    t.eq(ground == "rgb(255, 255, 255)", not dark, at)
    bars = b.js(BARS)
    t.ok(len(bars) >= 2, at)
    for share, figure in bars:
        t.ok(abs(share - figure) < 0.5, (at, share, figure))
    if width == 1280 and not dark:
        t.eq(b.screenshot(0, 400)[:4], b"\x89PNG", "a picture")


tap.main()
