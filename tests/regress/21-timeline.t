"""holdfastctl timeline: what happened in a turn, in order, with its times."""
import itertools
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import client
import ctl
import dialect as words
import provider
import tap
import wait
from daemon import Config, Daemon, shared

A = provider.Provider("openai")
B = provider.Provider("anthropic")
FULL = "The quick brown fox jumps over the lazy dog, and then it runs away."
_n = itertools.count(1)


def make():
    conf = Config(workers=2, flush_ms=20)
    conf.provider("a", A)
    conf.target("a/stalls", idle_ms=250)
    conf.provider("b", B)
    conf.route("m", ["a/x", "b/y"])
    conf.route("stalls", ["a/stalls", "b/y"])
    conf.target("a/late", hedge_after_ms=150)
    conf.route("late", ["a/late", "b/y"], hedge_budget_percent=100)
    conf.route("alone", ["a/x"])
    conf.route("finish", ["a/x"], on_disconnect="finish")
    return Daemon(conf).start()


get_daemon = shared(make)


def name():
    for p in (A, B):
        p.take()
        p.behave(provider.echo())
    return "line-%d" % next(_n)


def offline(d, *args):
    p = subprocess.run([ctl.path(), "--offline", "--database", d.db_path] +
                       list(args), capture_output=True, text=True, timeout=30)
    return ctl.Result(p.returncode, p.stdout, p.stderr)


def line(t, d, s, *turn):
    """The events, checked for what is always so."""
    events = d.ctl("timeline", s, *turn)
    t.eq(offline(d, "-o", "json", "timeline", s, *turn).json, events,
         "without the daemon")
    table = d.ctl_run("timeline", s, *turn)
    rows = [r.split() for r in table.out.splitlines()]
    t.eq([r[2] for r in rows[1:]], [e["event"] for e in events], "the table")
    t.eq(rows[0], ["TURN", "MS", "EVENT", "ATTEMPT", "TARGET", "DETAIL"],
         "its head")
    for seq in {e["turn_seq"] for e in events}:
        mine = [e for e in events if e["turn_seq"] == seq]
        t.eq(mine[0]["event"], "received", "the first")
        t.eq([e["after_us"] for e in mine],
             [e["at_us"] - mine[0]["at_us"] for e in mine], "from there")
        t.eq(sorted(e["at_us"] for e in mine), [e["at_us"] for e in mine],
             "in order of time")
    return events


def names(events):
    return [e["event"] for e in events]


def when(events, event):
    return [e for e in events if e["event"] == event][0]["after_us"]


def delivered(d, s, n=1):
    wait.until(lambda: d.session(s)["turns"][n - 1]["delivered_us"], 10,
               "the delivery to be noted")


@tap.case("a quiet turn, plain and streamed")
def quiet(t):
    d = get_daemon()
    s = name()
    for n, stream in enumerate((False, True), 1):
        t.eq(client.chat(d, "hi", session=s, stream=stream).status, 200, "ok")
        delivered(d, s, n)
    got = line(t, d, s)
    t.eq(names(got), ["received", "stored", "called", "first_token",
                      "answered", "finished", "delivered"] * 2, "events")
    t.eq(line(t, d, s, "2"), got[7:], "one turn")
    ident = d.session(s)["turns"][1]["id"]
    t.eq(line(t, d, s, ident), got[7:], "by its id")
    end = got[5]
    t.eq((end["state"], end["reason"], end["status"], end["bytes"]),
         ("complete", "stop", 200, len("heard 1: hi")), "finished")
    t.eq((got[6]["bytes"], got[6]["of"]), (11, 11), "delivered")
    t.eq((got[2]["attempt"], got[2]["target"]), (1, "a/x"), "called")
    for words_, code in (((s, "3"), 3), ((s, "turn_"), 3), ((s, "x"), 3),
                         (("nobody",), 3), ((), 2), ((s, "1", "2"), 2)):
        t.eq(d.ctl_run("timeline", *words_).code, code, repr(words_))
        t.eq(offline(d, "timeline", *words_).code, code, repr(words_))


@tap.case("attempts that fail: why, when, and where the next one goes on")
def continued(t):
    d = get_daemon()
    s = name()

    def stall(ex):
        events = ex.events(words.Said(FULL))
        ex.start()
        for event in events[:words.first_useful(ex.dialect) + 8]:
            ex.chunk(event)
        ex.wait_gone(10)
        ex.close()
    A.script(stall)
    had = "The quick brown fox jumps over the "
    B.script(provider.answer(FULL[len(had):]))
    r = client.chat(d, "tell me", session=s, stream=True, model="stalls")
    t.eq((r.text, r.done), (FULL, True), repr(r))
    delivered(d, s)
    got = line(t, d, s)
    t.eq(names(got), ["received", "stored", "called", "first_token", "failed",
                      "continued", "first_token", "answered", "finished",
                      "delivered"], "events")
    failed, went_on = got[4], got[5]
    t.eq((failed["attempt"], failed["target"], failed["cls"],
          failed["reason"]), (1, "a/stalls", "network", "idle_timeout"), "failed")
    t.eq((went_on["attempt"], went_on["target"]), (2, "b/y"), "continued")
    t.ok(FULL[:went_on["bytes"]] in (had, had.rstrip(), had[:-4]),
         "at byte %d" % went_on["bytes"])
    t.between(failed["after_us"] - got[3]["after_us"], 240000,
              1500000 * tap.SCALE, "us from the first token")
    # What the turn's row calls its first token is the client's.
    turn = d.session(s)["turns"][0]
    t.eq(turn["first_token_us"], got[3]["after_us"], "first token")
    a = d.session(s)["attempts"]
    t.eq([x["from_bytes"] for x in a], [0, went_on["bytes"]], "from")


@tap.case("nobody answers: each with its reason, then the failure")
def failed(t):
    d = get_daemon()
    s = name()
    A.script(provider.status(429))
    B.script(provider.status(503))
    t.eq(client.chat(d, "hi", session=s).status, 503, "failed")
    got = line(t, d, s)
    t.eq(names(got), ["received", "stored", "called", "failed", "called",
                      "failed", "finished"], "events")
    t.eq([(e["cls"], e["reason"], e["status"]) for e in got
          if e["event"] == "failed"],
         [("capacity", "http_429", 429), ("provider", "http_503", 503)],
         "reasons")
    t.eq((got[-1]["state"], got[-1]["status"]), ("failed", 503), "the end")


@tap.case("two calls beside each other")
def hedged(t):
    d = get_daemon()
    s = name()
    A.script(provider.silence(15))
    B.script(provider.answer("quick"))
    r = client.chat(d, "hi", session=s, stream=True, model="late")
    t.eq((r.text, r.done), ("quick", True), repr(r))
    delivered(d, s)
    got = line(t, d, s)
    of = {n: [e["event"] for e in got if e["attempt"] == n] for n in (1, 2)}
    t.eq(of, {1: ["called", "hedged"], 2: ["called", "first_token",
                                           "answered"]}, "of each")
    t.ok(when(got, "hedged") >= when(got, "first_token"), "who was first")
    t.eq(d.session(s)["turns"][0]["first_token_us"],
         when(got, "first_token"), "the turn's first token")


@tap.case("a client that leaves: canceled, or finished, then told again")
def gone(t):
    d = get_daemon()
    s = name()
    b = provider.Barrier()
    t.cleanup(b.release)
    A.script(provider.trickle(FULL, b))
    client.chat(d, "hi", session=s, stream=True, model="finish",
                on_event=lambda r: r.text == "The quick")
    wait.until(lambda: d.session(s)["turns"][0]["gone_us"], 10, "the leaving")
    t.eq(names(line(t, d, s)), ["received", "stored", "called", "client_gone",
                                "heard"], "while it is under way")
    b.release()
    wait.until(lambda: d.session(s)["turns"][0]["ended_us"], 10, "the end")
    got = line(t, d, s)
    t.eq(names(got), ["received", "stored", "called", "first_token",
                      "client_gone", "heard", "answered", "finished"],
         "events")
    t.eq((got[5]["bytes"], got[5]["of"]), (len("The quick"), len(FULL)),
         "heard")
    t.eq(got[7]["bytes"], len(FULL), "said")
    r = client.chat(d, "hi", session=s, stream=True, model="finish")
    t.eq((r.text, r.done), (FULL, True), "told again")
    delivered(d, s)
    got = line(t, d, s)
    t.eq(names(got)[-3:], ["answered", "finished", "delivered"], "events")
    t.notin("heard", names(got), "all was heard")
    b = provider.Barrier()
    t.cleanup(b.release)
    A.script(provider.trickle(FULL, b))
    client.chat(d, "more", session=s, stream=True, model="alone",
                on_event=lambda r: r.text == "The quick")
    wait.until(lambda: len(d.session(s)["turns"]) > 1 and
               d.session(s)["turns"][1]["ended_us"], 10, "the end")
    got = line(t, d, s, "2")
    t.eq(names(got), ["received", "stored", "called", "first_token",
                      "client_gone", "heard", "canceled", "finished"],
         "canceled")
    t.eq((got[6]["reason"], got[7]["state"]), ("client_gone", "canceled"),
         "why")


@tap.case("a turn that waits, and one that left while it waited")
def queued(t):
    d = get_daemon()
    s = name()
    b = provider.Barrier()
    t.cleanup(b.release)
    A.script(provider.hold(b, provider.answer("first")))
    one = client.background(client.chat, d, "one", session=s)
    b.wait_for(1)
    two = client.background(client.chat, d, "two", session=s)
    wait.until(lambda: len(d.session(s)["turns"]) == 2, 10, "the queue")
    t.eq(names(line(t, d, s, "2")), ["received", "queued"], "it waits")
    b.release()
    t.eq((one.get().status, two.get().status), (200, 200), "answered")
    delivered(d, s, 2)
    got = line(t, d, s)
    second = [e for e in got if e["turn_seq"] == 2]
    t.eq(names(second)[:3], ["received", "stored", "called"], "it went on")
    first = [e for e in got if e["turn_seq"] == 1]
    t.ok(second[1]["at_us"] >= first[names(first).index("finished")]["at_us"]
         - 1000, "when the first had ended")


@tap.case("hundreds of turns come whole", 60)
def many(t):
    d = get_daemon()
    s = name()
    for i in range(120):
        t.eq(client.chat(d, "turn %d" % i, session=s).status, 200, "ok")
    delivered(d, s, 120)
    got = line(t, d, s)
    t.eq([e["turn_seq"] for e in got if e["event"] == "received"],
         list(range(1, 121)), "turns")
    t.ok(len(got) >= 120 * 6, "events")


if __name__ == "__main__":
    tap.main()
