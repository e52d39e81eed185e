"""kill -9 of the whole process tree in the middle of 100 turns: after a start
every acknowledged turn is there, open ones are marked interrupted, the next
turn on each session is accepted; ready in under two seconds, with a large
database too (HF_TEST_LONG: 1 GB)."""
import itertools
import json
import os
import sqlite3
import sys
import time

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import client
import provider
import tap
import wait
from daemon import Config, Daemon

TURNS = 100
LONG = bool(os.environ.get("HF_TEST_LONG"))
ROUNDS = 5 if LONG else 1
BALLAST_MB = 1024 if LONG else 16


def make(t, p, **gateway):
    conf = Config(workers=4, flush_ms=20, **gateway)
    conf.provider("a", p, first_token_ms=30000, total_ms=60000)
    conf.route("m", ["a/model-a"], deadline_ms=60000)
    d = Daemon(conf)
    t.cleanup(d.destroy)
    return d


def texts(shown):
    return [(x["role"], json.loads(x["body"])["content"])
            for x in shown["items"]]


def ballast(t, d):
    """A table beside ours makes the file as large as years would."""
    d.stop()
    db = sqlite3.connect(d.db_path)
    db.execute("CREATE TABLE ballast (b BLOB)")
    db.execute("WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c "
               "WHERE i < ?) INSERT INTO ballast SELECT randomblob(4000) FROM c",
               (BALLAST_MB * 256,))
    db.commit()
    db.close()
    size = os.path.getsize(d.db_path) >> 20
    t.ok(size >= BALLAST_MB, "the database has %d MB" % size)
    t.diag("database of %d MB" % size)
    d.start()


@tap.case("kill -9 of the tree with %d turns in flight" % TURNS, 180)
def kill_tree(t):
    p = provider.Provider("openai")
    t.cleanup(p.close)
    p.behave(provider.echo())
    d = make(t, p).start()
    acked = [[] for _ in range(TURNS)]	# what each session was answered

    def one(i, text, **more):
        r = client.chat(d, text, session="s-%d" % i, timeout=40, **more)
        if r.status == 200 and (r.done or not r.streamed):
            acked[i] += [("user", text), ("assistant", r.text)]
        return r

    for r in client.together([lambda i=i: one(i, "first of %d" % i)
                              for i in range(TURNS)]):
        t.eq(r.status, 200, repr(r))
    ballast(t, d)
    for round_ in range(ROUNDS):
        # A third waits for its first token, a third is in mid-stream, a
        # third is queued behind a turn of its own session.
        gate = provider.Barrier()
        t.cleanup(gate.release)
        held = provider.hold(gate, provider.echo())
        trickle = provider.trickle("part one and the rest", gate, before=2)
        p.behave(lambda ex: (trickle if ex.request.last_user().startswith(
            "stream") else held)(ex))
        seen = [0] * TURNS
        waiting = []

        def saw(i):
            def on_event(r):
                seen[i] += 1
            return on_event
        for i in range(TURNS):
            kind = ("hold", "stream", "hold")[i % 3]
            waiting.append(client.background(
                one, i, "%s %d of %d" % (kind, round_, i),
                stream=kind == "stream", on_event=saw(i)))
        gate.wait_for(TURNS, 60)
        queued = [client.background(one, i, "queued %d of %d" % (round_, i))
                  for i in range(2, TURNS, 3)]
        wait.until(lambda: d.ctl("status")["store"]["queued_turns"] ==
                   len(queued), 30, "the queued turns", step=0.05)
        wait.until(lambda: all(seen[i] >= 3 for i in range(1, TURNS, 3)), 30,
                   "the streams' first text")
        # Durable at most flush_ms after it was received, and a commit.
        time.sleep(0.02 + 0.3 * tap.SCALE)
        before = [len(a) for a in acked]
        d.kill_tree()
        gate.release()
        for w in waiting + queued:
            try:
                r = w.get(30)
                t.ok(r.end in ("cut", "reset") or r.status is None,
                     "a client was told of an end that did not come: %r" % r)
                t.eq(r.done, False, "no [DONE]")
            except OSError:
                pass
        t.eq([len(a) for a in acked], before, "nobody was acknowledged")

        p.behave(provider.echo())
        p.take()
        d.start()
        t.diag("ready %.3f s after the start" % d.ready_in)
        t.between(d.ready_in, 0, 2.0 * tap.SCALE, "seconds until ready")
        st = d.ctl("status")["store"]
        t.eq((st["open_turns"], st["queued_turns"]), (0, 0),
             "no turn is open or queued")
        for i in range(TURNS):
            shown = d.session("s-%d" % i)
            got = texts(shown)
            for x in acked[i]:
                t.isin(x, got, "session %d: an acknowledged turn" % i)
            t.eq(got[:2], [("user", "first of %d" % i),
                           ("assistant", "heard 1: first of %d" % i)],
                 "session %d" % i)
            states = [x["state"] for x in shown["turns"]]
            t.eq([s for s in states if s not in
                  ("complete", "interrupted")], [], "states of %d" % i)
            t.eq(shown["turns"][-1]["state"], "interrupted",
                 "the open turn of %d" % i)
            t.eq(shown["session"]["locked"], False, "lease of %d" % i)
            t.eq({a["cls"] for a in shown["attempts"]} - {"ok", "lost"},
                 set(), "attempts of %d" % i)
            if i % 3 == 1:
                t.isin(("assistant", "part one"), got,
                       "text of the broken stream of %d is kept" % i)
        next_ = client.together([
            lambda i=i: one(i, "next %d of %d" % (round_, i))
            for i in range(TURNS)])
        for i, r in enumerate(next_):
            t.eq(r.status, 200, repr(r))
        by = {q.last_user(): q for q in p.requests}
        for i in range(TURNS):
            told = p.history(by["next %d of %d" % (round_, i)])
            for x in acked[i][:-2]:
                t.isin(x, told, "session %d hears what was acknowledged" % i)
            t.eq(told[-1], ("user", "next %d of %d" % (round_, i)),
                 "session %d" % i)
            t.isin(("user", "%s %d of %d" % (
                ("hold", "stream", "hold")[i % 3], round_, i)), told,
                "session %d: the input that was accepted" % i)
        t.eq(p.violations, [], "violations")
    d.stop()


@tap.case("kill -9 of the tree again and again under load", 180)
def again(t):
    """Clients go on through kills; whatever was acknowledged stays."""
    p = provider.Provider("openai")
    t.cleanup(p.close)
    p.behave(provider.echo())
    d = make(t, p).start()
    kills = 10 if LONG else 3
    acked = [[] for _ in range(8)]

    for k in range(kills):
        stop = []

        def load(i, k=k):
            for n in itertools.count():
                if stop:
                    return
                text = "k%d n%d of %d" % (k, n, i)
                try:
                    r = client.chat(d, text, session="s-%d" % i,
                                    stream=n % 2 == 1, timeout=20)
                except OSError:
                    return
                if r.status != 200 or (r.streamed and not r.done) or (
                        r.end in ("cut", "reset", "timeout")):
                    return
                acked[i].append((text, r.text))
        before = sum(map(len, acked))
        threads = [client.background(load, i) for i in range(8)]
        wait.until(lambda: sum(map(len, acked)) - before >= 60, 30,
                   "turns to be answered")
        d.kill_tree()
        stop.append(1)
        for x in threads:
            x.get()
        d.start()
        t.between(d.ready_in, 0, 2.0 * tap.SCALE, "seconds until ready")
        for i in range(8):
            got = texts(d.session("s-%d" % i))
            for said, heard in acked[i]:
                t.eq(got.count(("user", said)), 1, "kill %d: %s" % (k, said))
                at = got.index(("user", said))
                t.eq(got[at + 1], ("assistant", heard), "its answer")
    t.eq(p.violations, [], "violations")
    d.stop()


if __name__ == "__main__":
    tap.main()
