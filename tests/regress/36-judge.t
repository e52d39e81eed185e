"""A model as judge, played by a script: it is told three things only, must
pass the gate, is asked no more than it must be, and again when nothing useful
came; what it said is in the report, and a person can check a sample of it.
Also the progress of a run, on a terminal and elsewhere."""
import http.server
import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import chromium
import schema
import tap
import wait

SRC = os.environ["HF_SRCDIR"]
BENCH = os.path.join(os.environ["HF_BUILDDIR"], "continuitybench")
DIR = tempfile.mkdtemp(prefix="hf-")
tap.at_exit(lambda: shutil.rmtree(DIR, True))
with open(os.path.join(SRC, "bench", "calibration.json"),
          encoding="utf-8") as f:
    CASES = json.load(f)
LABEL = {(c["expected_fact"], c["probe"], c["answer"]): c for c in CASES}


def path(name):
    return os.path.join(DIR, name)


def bench(t, *args, status=0, key=None):
    env = dict(os.environ)
    env.pop("JUDGE_KEY", None)
    if key:
        env["JUDGE_KEY"] = key
    p = subprocess.run([BENCH] + list(args), stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, text=True, env=env,
                       timeout=120 * tap.SCALE)
    t.eq(p.returncode, status, (p.stdout + p.stderr)[-3000:])
    return p


# --- a scripted endpoint ----------------------------------------------------

class Endpoint:
    """Chat completions by fn(body, headers): a text, (status, headers), or
    bytes that are the whole body."""

    def __init__(self, t, fn):
        self.fn = fn
        self.bodies, self.paths, self.headers = [], [], []
        self.now = self.most = 0
        self.lock = threading.Lock()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def do_POST(self):
                size = int(self.headers["Content-Length"])
                outer.answer(self, json.loads(self.rfile.read(size)))

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 256

        self.server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever,
                         daemon=True).start()
        t.cleanup(self.server.server_close)
        t.cleanup(self.server.shutdown)
        self.url = "http://127.0.0.1:%d/v1" % self.server.server_port

    def answer(self, h, body):
        with self.lock:
            self.bodies.append(body)
            self.paths.append(h.path)
            self.headers.append(dict(h.headers))
            self.now += 1
            self.most = max(self.most, self.now)
        try:
            said = self.fn(body, h.headers)
        finally:
            with self.lock:
                self.now -= 1
        status, more = 200, {}
        if isinstance(said, tuple):
            status, more = said
            out = json.dumps({"error": {"message": "no: %d" % status}})
        elif isinstance(said, bytes):
            out = said.decode()
        else:
            out = json.dumps({
                "id": "x", "object": "chat.completion", "model": "m",
                "choices": [{"index": 0, "finish_reason": "stop", "message": {
                    "role": "assistant", "content": said}}]})
        h.send_response(status)
        h.send_header("Content-Type", "application/json")
        for name, value in more.items():
            h.send_header(name, value)
        h.send_header("Content-Length", str(len(out)))
        h.end_headers()
        h.wfile.write(out.encode())


def question(body):
    return json.loads(body["messages"][-1]["content"])


def case_of(body):
    q = question(body)
    return LABEL.get((q["expected_fact"], q["probe"], q["answer"]))


def verdict(yes, reason="because"):
    return json.dumps({"reason": reason, "preserved": yes})


def loose(body):
    """Says of answers that are none of the cases: the fact is there, but for
    case and marks."""
    q = question(body)

    def bare(s):
        return re.sub(r"[^a-z0-9]", "", s.lower())
    return bare(q["expected_fact"]) in bare(q["answer"])


def judge(wrong=0):
    """One that misses the first so many labels."""
    missed = {c["id"] for c in CASES[:wrong]}

    def fn(body, headers):
        c = case_of(body)
        if c is None:
            return verdict(loose(body))
        return verdict(c["preserved"] != (c["id"] in missed))
    return fn


def flags(e, *more):
    return ("--judge", e.url, "--judge-model", "m", "--quiet") + more


# --- the gate ---------------------------------------------------------------

@tap.case("the gate refuses 17 of 20 and passes 18", 60)
def gate(t):
    for wrong, status in ((0, 0), (1, 0), (2, 0), (3, 1), (4, 1), (20, 1)):
        e = Endpoint(t, judge(wrong))
        p = bench(t, "calibrate", *flags(e), "--json", path("c.json"),
                  status=status)
        t.isin("agrees with %d of 20" % (20 - wrong), p.stdout, "agreement")
        t.isin("18 are needed: " + ("refused" if status else "passed"),
               p.stdout, "verdict")
        with open(path("c.json"), encoding="utf-8") as f:
            c = json.load(f)
        t.eq((c["k"], c["n"], c["needed"], c["passed"]),
             (20 - wrong, 20, 18, not status), "JSON")
        t.eq([x["id"] for x in c["cases"] if not x["agrees"]],
             [x["id"] for x in CASES[:wrong]], "which")
        t.eq(len(e.bodies), 20, "each was asked, once")


@tap.case("a refused judge judges nothing", 60)
def gated_run(t):
    e = Endpoint(t, judge(3))
    target = Endpoint(t, lambda body, headers: "nothing")
    p = bench(t, "run", "--target", target.url, *flags(e), "--json",
              path("none.json"), status=1)
    t.isin("agrees with 17 of 20 labels; 18 are needed", p.stderr, "why")
    t.isin(CASES[0]["id"], p.stderr, "which")
    t.eq(len(target.bodies), 0, "played")
    t.ok(not os.path.exists(path("none.json")), "no report")


@tap.case("it is told fact, probe and answer only, with its key", 30)
def told(t):
    e = Endpoint(t, judge())
    bench(t, "calibrate", *flags(e, "--judge-key-env", "JUDGE_KEY"),
          key="sk-secret")
    t.eq({tuple(sorted(question(b))) for b in e.bodies},
         {("answer", "expected_fact", "probe")}, "told")
    t.eq({len(b["messages"]) for b in e.bodies}, {2}, "messages")
    t.eq({b["model"] for b in e.bodies}, {"m"}, "model")
    t.eq(set(e.paths), {"/v1/chat/completions"}, "path")
    t.eq({h["Authorization"] for h in e.headers}, {"Bearer sk-secret"}, "key")
    t.eq({b["response_format"]["type"] for b in e.bodies}, {"json_schema"},
         "form")


@tap.case("so many at once, not more", 60)
def at_once(t):
    for limit in (1, 3):
        def fn(body, headers, n=limit):
            # Nobody is answered until as many ask as may.
            wait.until(lambda: e.most >= n, 20 * tap.SCALE, "%d at once" % n)
            return judge()(body, headers)
        e = Endpoint(t, fn)
        bench(t, "calibrate", *flags(e, "--judge-concurrency", str(limit)))
        t.eq(e.most, limit, "at once")


@tap.case("it is asked again when nothing useful came", 60)
def again(t):
    tries = {}

    def fn(body, headers):
        c = case_of(body)
        n = tries[c["id"]] = tries.get(c["id"], 0) + 1
        i = CASES.index(c)
        if n == 1 and i < 5:
            return [(429, {"Retry-After": "1"}), (503, {}), "no idea",
                    b"{", verdict(True) + verdict(False)][i]
        return judge()(body, headers)
    e = Endpoint(t, fn)
    bench(t, "calibrate", *flags(e))
    t.eq(len(e.bodies), 25, "calls")
    t.eq(sorted(tries.values()), [1] * 15 + [2] * 5, "tries")


@tap.case("it is given up after the retries, and that is no agreement", 60)
def given_up(t):
    def fn(body, headers):
        if CASES.index(case_of(body)) < 3:
            return (500, {})
        return judge()(body, headers)
    e = Endpoint(t, fn)
    p = bench(t, "calibrate", *flags(e, "--judge-retries", "1"), status=1)
    t.eq(len(e.bodies), 23, "calls")
    t.eq(p.stdout.count("undecided"), 3, "undecided")
    t.isin("HTTP 500", p.stdout, "why")


@tap.case("an endpoint that takes no schema is asked otherwise", 60)
def otherwise(t):
    for takes in ("json_object", None):
        def fn(body, headers, takes=takes):
            form = body.get("response_format", {}).get("type")
            if form != takes:
                return (400, {})
            text = judge()(body, headers)
            return text if form else "I think:\n```json\n%s\n```" % text
        e = Endpoint(t, fn)
        bench(t, "calibrate", *flags(e, "--judge-concurrency", "2"))
        t.ok(20 < len(e.bodies) <= 26, "calls: %d" % len(e.bodies))


@tap.case("a wrong key, or nobody there, is told at once", 60)
def nobody(t):
    e = Endpoint(t, lambda body, headers: (401, {}))
    p = bench(t, "calibrate", *flags(e, "--judge-concurrency", "1"), status=4)
    t.isin("HTTP 401", p.stderr, "why")
    t.eq(len(e.bodies), 1, "calls")
    e.server.shutdown()
    e.server.server_close()
    p = bench(t, "calibrate", *flags(e, "--judge-retries", "0"), status=4)
    t.isin("no verdict at all", p.stderr, "nobody")


@tap.case("bad options and bad sets are refused", 60)
def refused(t):
    for args in ((), ("--judge", "http://x/v1"),
                 ("--judge-model", "m"), ("--frobnicate",),
                 ("--judge", "http://x/v1", "--judge-model", "m",
                  "--judge-concurrency", "0"),
                 ("--judge", "http://x/v1", "--judge-model", "m",
                  "--judge-key-env", "NO_SUCH_VARIABLE")):
        bench(t, "calibrate", *args, status=2)
    bench(t, "run", "--judge", "http://x/v1", status=2)
    bench(t, "run", "--judge-key-env", "X", status=2)
    e = Endpoint(t, judge())
    for name, text in (("none", None), ("broken", "["), ("empty", "[]"),
                       ("part", '[{"id": "a"}]')):
        if text is not None:
            with open(path(name), "w", encoding="utf-8") as f:
                f.write(text)
        p = bench(t, "calibrate", *flags(e, "--calibration", path(name)),
                  status=2)
        t.isin(name, p.stderr, "which file")
    t.eq(e.bodies, [], "asked")


# --- a judged run -----------------------------------------------------------

def speaker(modes):
    """Answers the probe with the fact as it was said, in capitals without
    marks, with what only a person would take for it, or not at all: by the
    conversation's number."""
    def fn(body, headers):
        users = [m["content"] for m in body["messages"]
                 if m["role"] == "user"]
        m = re.search(r"p(\d+)\.r", body.get("user") or "")
        mode = modes[int(m.group(1)) % len(modes)]
        if "control" in (body.get("user") or "") or body["model"] == "sure":
            mode = "said"
        if mode == "said":
            return "You said: " + users[0]
        if mode == "loud":
            return re.sub(r"[^A-Z0-9 ]", "", users[0].upper())
        return "I cannot say."
    return fn


_judged = {}


def judged(t):
    """A report of a run with a judge: 50 conversations of each mode."""
    if not _judged:
        target = Endpoint(t, speaker(("said", "loud", "lost")))
        e = Endpoint(t, judge())
        p = bench(t, "run", "--target", target.url, "--model", "any",
                  "--history", "full", "--runs", "2", *flags(e), "--json",
                  path("judged.json"))
        with open(path("judged.json"), encoding="utf-8") as f:
            _judged.update(report=json.load(f), out=p.stdout,
                           bodies=e.bodies)
    return _judged["report"]


@tap.case("a judged run: words first, then the judge, each question once", 90)
def judged_run(t):
    r = judged(t)
    with open(os.path.join(SRC, "docs", "report.schema.json"),
              encoding="utf-8") as f:
        t.eq(schema.errors(r, json.load(f)), [], "schema")
    by = {}
    for p in r["plays"]:
        for q in p["probes"]:
            key = q["by"], q["right"]
            by[key] = by.get(key, 0) + 1
            t.eq(q["by"] == "model", "reason" in q, "a reason")
    t.eq(by.get(("substring", True)), 100, by)
    t.eq(by.get(("model", True), 0) + by.get(("substring", True)),
         r["systems"]["target"]["cpr"]["k"], "preserved")
    t.eq(by.get(("model", False)), 100, by)
    t.eq(by.get(("model", True)), 100, by)
    j = r["judge"]
    t.eq((j["substring"], j["right"], j["wrong"], j["undecided"]),
         (100, 100, 100, 0), "counts")
    # Two runs ask the same.
    t.eq((j["asked"], j["calls"], len(_judged["bodies"])), (100, 100, 120),
         "questions")
    t.eq((j["calibration"]["k"], j["calibration"]["passed"]), (20, True),
         "calibration")
    t.isin("judge m: agrees with 20 of 20 labels", _judged["out"], "table")


@tap.case("without a judge the words alone decide", 60)
def exact(t):
    target = Endpoint(t, speaker(("said", "loud", "lost")))
    bench(t, "run", "--target", target.url, "--history", "full", "--runs",
          "1", "--quiet", "--json", path("exact.json"))
    with open(path("exact.json"), encoding="utf-8") as f:
        r = json.load(f)
    t.eq(r["judge"], None, "judge")
    t.eq(r["systems"]["target"]["cpr"]["k"], 50, "preserved")


@tap.case("what the judge says nothing of fails the run", 90)
def undecided(t):
    target = Endpoint(t, speaker(("said", "loud", "lost")))

    def fn(body, headers):
        return judge()(body, headers) if case_of(body) else "hm"
    e = Endpoint(t, fn)
    p = bench(t, "run", "--target", target.url, "--history", "full", "--runs",
              "1", *flags(e, "--judge-retries", "0"), status=1)
    t.isin("failed: 100 answers without a verdict of the judge", p.stderr,
           "why")


@tap.case("a judge that fails after its calibration loses no report", 90)
def fails_later(t):
    target = Endpoint(t, speaker(("said", "loud", "lost")))

    def fn(body, headers):
        return judge()(body, headers) if case_of(body) else (401, {})
    e = Endpoint(t, fn)
    p = bench(t, "run", "--target", target.url, "--history", "full", "--runs",
              "1", *flags(e, "--judge-concurrency", "1"), "--json",
              path("later.json"), status=1)
    t.isin("HTTP 401", p.stderr, "why")
    t.isin("failed: 100 answers without a verdict", p.stderr, "why")
    t.eq(len(e.bodies), 21, "it is asked no more")
    with open(path("later.json"), encoding="utf-8") as f:
        r = json.load(f)
    t.eq(r["systems"]["target"]["cpr"]["k"], 50, "the words alone")
    t.eq(r["judge"]["undecided"], 100, "undecided")
    by = [q for p in r["plays"] for q in p["probes"] if q["by"] == "undecided"]
    t.isin("HTTP 401", by[0]["reason"], "reason")


@tap.case("given that the model is right without a failure", 60)
def conditional(t):
    # Without failures all is right; with, a third is lost.
    target = Endpoint(t, speaker(("said", "said", "lost")))
    bench(t, "run", "--target", target.url, "--model", "any",
          "--control-model", "sure", "--history", "full", "--runs", "1",
          "--quiet", "--json", path("given.json"))
    with open(path("given.json"), encoding="utf-8") as f:
        r = json.load(f)
    t.eq(r["systems"]["control"]["cpr"]["k"], 150, "control")
    c = r["conditional"]["target"]
    t.eq((c["k"], c["n"]), (100, 150), "given")
    t.eq(r["clo_ms"]["of"], ["target", "control"], "what a failure costs")


# --- the audit --------------------------------------------------------------

def page_text(html_text):
    m = re.search(r"<textarea[^>]*>(.*?)</textarea>", html_text, re.S)
    return m.group(1)


def audit(t, report, *args):
    bench(t, "audit", report, "--page", path("audit.html"), *args)
    with open(path("audit.html"), encoding="utf-8") as f:
        return f.read()


def fill(text, words):
    out = text.split("\n")
    for i, word in enumerate(words):
        t_ = "%d ?" % (i + 1)
        out[out.index(t_)] = "%d %s" % (i + 1, word)
    return "\n".join(out)


def read_back(t, text, *args, status=0):
    with open(path("verdicts.txt"), "w", encoding="utf-8") as f:
        f.write(text)
    return bench(t, "audit", path("judged.json"), "--verdicts",
                 path("verdicts.txt"), "--json", path("audit.json"),
                 *args, status=status)


@tap.case("a person checks a sample, and it is told how often they agree", 90)
def audited(t):
    judged(t)
    one = audit(t, path("judged.json"), "--cases", "12", "--seed", "3")
    t.eq(one, audit(t, path("judged.json"), "--cases", "12", "--seed", "3"),
         "the same seed, the same page")
    t.ne(one, audit(t, path("judged.json"), "--cases", "12", "--seed", "4"),
         "another seed, another page")
    t.eq(one.count("<fieldset>"), 12, "cases")
    for word in ("because", "substring", "http://", "https://", "url("):
        t.notin(word, one, "what a person must not be told, or not loaded")
    text = page_text(one)
    # The person agrees with all: learn from a first reading what was said.
    read_back(t, fill(text, ["right"] * 12))
    with open(path("audit.json"), encoding="utf-8") as f:
        said = [c["right"] for c in json.load(f)["cases"]]
    t.ok(True in said and False in said, "both kinds are in the sample")
    words = ["right" if r else "wrong" for r in said]
    p = read_back(t, fill(text, words))
    t.isin("agreement 12 of 12: 100.0 % [75.8, 100.0]; 0 unsure, 0 not",
           p.stdout, "agreement")
    # One disagrees, with a note; one is unsure; one is left open.
    words[0] = "wrong  not so: 5 < 6" if said[0] else "right  it is"
    words[1] = "unsure"
    p = read_back(t, fill(text, words[:11]), status=1)
    t.isin("agreement 9 of 10: 90.0 % [59.6, 98.2]; 1 unsure, 1 not",
           p.stdout, "agreement")
    t.isin("case 1: ", p.stdout, "the one that differs")
    with open(path("audit.json"), encoding="utf-8") as f:
        r = json.load(f)
    t.eq(r["agreement"]["k"], 9, "recorded")
    t.eq([c.get("person") for c in r["cases"]],
         [w.split()[0] for w in words[:11]] + [None], "recorded")
    t.eq(r["cases"][0]["note"], words[0].split("  ")[1], "note")


@tap.case("only what a model decided; only verdicts of this sample", 90)
def audit_bounds(t):
    judged(t)
    text = page_text(audit(t, path("judged.json"), "--judged", "--cases",
                           "1000"))
    t.isin("cases 200 of judged", text, "all that there are")
    read_back(t, fill(text, ["right"] * 200))
    with open(path("audit.json"), encoding="utf-8") as f:
        t.eq({c["by"] for c in json.load(f)["cases"]}, {"model"}, "by")
    good = page_text(audit(t, path("judged.json"), "--cases", "3"))
    read_back(t, fill(good, ["right"] * 3) + "2 wrong\n", status=2)
    read_back(t, "1 right\n", status=2)
    read_back(t, "", status=2)
    # Another report, or a changed one, is another sample.
    with open(path("judged.json"), encoding="utf-8") as f:
        r = json.load(f)
    for p in r["plays"]:
        p["probes"][-1]["answer"] += "!"
    with open(path("other.json"), "w", encoding="utf-8") as f:
        json.dump(r, f)
    with open(path("verdicts.txt"), "w", encoding="utf-8") as f:
        f.write(fill(good, ["right"] * 3))
    p = bench(t, "audit", path("other.json"), "--verdicts",
              path("verdicts.txt"), status=2)
    t.isin("another report", p.stderr, "why")
    bench(t, "audit", path("exact.json"), "--judged", "--page", "-", status=2)
    for args in ((), ("--page", "-", "--verdicts", "x"), ("--cases", "0"),
                 ("--page", "-", "--json", "x")):
        bench(t, "audit", path("judged.json"), *args, status=2)


@tap.case("the page of an audit in a browser", 90)
def audit_browser(t):
    judged(t)
    audit(t, path("judged.json"), "--cases", "4")
    try:
        b = chromium.Browser(60 * tap.SCALE)
    except chromium.Missing as e:
        raise tap.Skip(str(e))
    t.cleanup(b.close)
    for width, dark in ((1280, False), (390, True)):
        b.open(path("audit.html"), width, 844, dark, width < 500)
        t.eq(b.complaints, [], "complaints")
        t.eq(len(b.requests), 1, "requests")
        t.eq(b.js("document.documentElement.scrollWidth"), width, "width")
    for i, word in enumerate(("right", "wrong", "unsure", "wrong")):
        b.js("document.querySelector('input[name=case-%d][value=%s]')"
             ".click()" % (i + 1, word))
    b.js("(n => { n.value = 'a note'; n.dispatchEvent(new Event('input', "
         "{bubbles: true})) })(document.querySelector('[name=note-2]'))")
    text = b.js("document.getElementById('verdicts').value")
    t.isin("\n1 right\n2 wrong  a note\n3 unsure\n4 wrong\n", text, "text")
    t.eq(b.js("document.getElementById('left').textContent"), "all done",
         "left")
    p = read_back(t, text)
    t.isin("1 unsure, 0 not answered", p.stdout, "read back")


# --- progress ---------------------------------------------------------------

def play(t, *args, tty=False):
    """What a short run says on stderr."""
    target = Endpoint(t, speaker(("said",)))
    cmd = [BENCH, "run", "--target", target.url, "--history", "full",
           "--runs", "1", "--concurrency", "5"] + list(args)
    if not tty:
        p = subprocess.run(cmd, stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, text=True,
                           timeout=60 * tap.SCALE)
        t.eq(p.returncode, 0, p.stderr)
        return p.stderr
    ours, theirs = pty.openpty()
    p = subprocess.Popen(cmd, stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    out = b""
    while True:
        try:
            data = os.read(ours, 4096)
        except OSError:
            break
        if not data:
            break
        out += data
    os.close(ours)
    t.eq(p.wait(60 * tap.SCALE), 0, out)
    return out.decode()


@tap.case("progress on a terminal, or where it is asked for", 90)
def progress(t):
    t.eq(play(t), "", "elsewhere there is none")
    lines = play(t, "--progress").splitlines()
    t.isin("playing paper: 150 of 150 conversations (100 %)", lines[-1],
           "the last line")
    t.ok(all("\r" not in x and "\033" not in x for x in lines), "plain lines")
    out = play(t, tty=True)
    t.isin("\rplaying paper: 150 of 150 conversations (100 %)", out,
           "written over")
    t.ok(out.endswith("\n"), "ends its line")
    t.eq(play(t, "--quiet", tty=True), "", "quiet")


tap.main()
