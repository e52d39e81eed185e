"""Health, metrics and models; unknown paths and methods; HEAD."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import client
import provider
import tap
import wait
from daemon import Config, Daemon, shared, source

A = provider.Provider("openai")


def make():
    conf = Config(workers=2)
    conf.provider("a", A)
    conf.route("m", ["a/model-a"])
    conf.route("second", ["a/model-b"])
    return Daemon(conf).start()


get_daemon = shared(make)


@tap.case("the daemon is ready within 5 seconds of its start")
def ready(t):
    t.between(get_daemon().ready_in, 0, 5, "seconds until ready")


@tap.case("/livez and /readyz answer 200")
def health(t):
    d = get_daemon()
    for path in ("/livez", "/readyz"):
        r = client.get(d, path)
        t.eq((r.status, r.end), (200, "length"), path)


@tap.case("HEAD sends no body and keeps the connection in step")
def head(t):
    d = get_daemon()
    with client.Connection(d.addr) as c:
        for path in ("/livez", "/readyz", "/metrics"):
            c.request("HEAD", path)
            r = c.response("HEAD")
            t.eq(r.status, 200, "HEAD " + path)
            c.request("GET", "/livez")
            r = c.response()
            t.eq(r.status, 200, "GET after HEAD " + path)
            t.eq(c.buf, b"", "bytes left over")


@tap.case("a connection serves one request after the other")
def keep_alive(t):
    d = get_daemon()
    with client.Connection(d.addr) as c:
        for i in range(5):
            r = client.chat(d, "hello %d" % i, connection=c)
            t.eq((r.status, r.text), (200, "ok"), "request %d" % i)


@tap.case("/v1/models lists the routes")
def models(t):
    d = get_daemon()
    for path in ("/v1/models", "/models"):
        r = client.get(d, path)
        t.eq(r.status, 200, path)
        t.eq(r.json["object"], "list", "object")
        t.eq([m["id"] for m in r.json["data"]], ["m", "second"], "ids")
        for m in r.json["data"]:
            t.eq(m["object"], "model", "object of a model")
            t.ok(isinstance(m["created"], int), "created")
            t.ok(isinstance(m["owned_by"], str), "owned_by")


@tap.case("/v1/models/{id} is one model or 404")
def one_model(t):
    d = get_daemon()
    r = client.get(d, "/v1/models/second")
    t.eq((r.status, r.json["id"]), (200, "second"), "known model")
    r = client.get(d, "/v1/models/nothing")
    t.eq(r.status, 404, "unknown model")
    t.eq(r.error["code"], "model_not_found", "code")


@tap.case("an unknown path is a typed 404")
def unknown_path(t):
    d = get_daemon()
    for method, path in [("GET", "/nothing"), ("POST", "/v1/nothing"),
                         ("GET", "/v1/chat/completions/x/y")]:
        r = client.request(d, method, path,
                           body=b"{}" if method == "POST" else None)
        t.eq(r.status, 404, path)
        t.ok(isinstance(r.error["message"], str), "message")
        t.eq(r.error["type"], "invalid_request_error", "type")


@tap.case("a wrong method is a typed 405 that says what is allowed")
def wrong_method(t):
    d = get_daemon()
    for method, path, allowed in [
            ("GET", "/v1/chat/completions", "POST"),
            ("POST", "/v1/models", "GET"), ("DELETE", "/livez", "GET")]:
        r = client.request(d, method, path,
                           body=b"{}" if method == "POST" else None)
        t.eq(r.status, 405, "%s %s" % (method, path))
        t.isin(allowed, r.headers.get("allow", ""), "Allow")
        t.ok(r.error is not None, "an error body")


def check_metrics(t, text):
    """Prometheus text: each sample after its HELP and TYPE, no family
    twice."""
    kinds, seen, last = {}, set(), None
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ", 3)
            t.notin(name, kinds, "a family is declared once")
            kinds[name] = kind
        elif line.startswith("#") or not line:
            continue
        else:
            m = re.match(r"^([a-z_:][a-z0-9_:]*)(\{[^}]*\})? (-?[0-9.e+]+)$",
                         line)
            t.ok(m, "a sample line: %r" % line)
            t.isin(m.group(1), kinds, "declared before its samples")
            t.notin(m.group(1) + (m.group(2) or ""), seen, "sample twice")
            if m.group(1) != last:
                t.notin(m.group(1), {s.split("{")[0] for s in seen},
                        "samples of a family stand together")
            seen.add(m.group(1) + (m.group(2) or ""))
            last = m.group(1)
    return kinds


@tap.case("/metrics has every counter, in Prometheus text")
def metrics(t):
    d = get_daemon()
    r = client.get(d, "/metrics")
    t.eq(r.status, 200, "status")
    t.ok(r.headers["content-type"].startswith("text/plain"), "type")
    kinds = check_metrics(t, r.body.decode())
    with open(source("base", "counters.def"), encoding="utf-8") as f:
        rows = re.findall(r'^HF_COUNTER\(\w+, (\w+), "(\w+)"', f.read(), re.M)
    t.ok(len(rows) > 20, "counters.def has rows")
    for kind, name in rows:
        t.eq(kinds.get(name), kind, name)


@tap.case("/metrics is the sum over all workers")
def summed(t):
    d = get_daemon()
    name = 'holdfast_turns_total{state="complete"}'
    before = d.metrics()
    for i in range(12):	# each on a connection of its own
        t.eq(client.chat(d, "count me").status, 200, "a call")

    def counted():
        after = d.metrics()
        return (after[name] - before[name] == 12 and
                after["holdfast_turns_in_flight"] == 0 and
                after["holdfast_attempts_total"] -
                before["holdfast_attempts_total"] == 12)
    wait.until(counted, 5, "12 complete turns in the metrics")


if __name__ == "__main__":
    tap.main()
