"""Kill campaigns: callers that know each byte they must get, a provider that
knows what it must be told, kill -9 of a random worker every few milliseconds.
Nothing is corrupt, truncated, doubled or lost, hardly a request is broken, and
what clients notice is a pause of some milliseconds.

HF_CAMPAIGN_TURNS, HF_CAMPAIGN_KILLS and HF_CAMPAIGN_CONNECTIONS set other
sizes, HF_CAMPAIGN_HANDOVER=off shows what it is like without; HF_TEST_LONG
plays 100,000 turns with 20,000 kills, at 40 and at 120 connections."""
import os
import sys

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import campaign as tool
import tap

LONG = bool(os.environ.get("HF_TEST_LONG"))
TURNS = int(os.environ.get("HF_CAMPAIGN_TURNS", 100000 if LONG else 1000))
KILLS = int(os.environ.get("HF_CAMPAIGN_KILLS", 20000 if LONG else 500))
CONNECTIONS = [int(x) for x in os.environ.get(
    "HF_CAMPAIGN_CONNECTIONS", "40 120" if LONG else "40").split()]
LIMIT = tool.limit(KILLS, TURNS)


def play(d, name, **options):
    return tool.play(d, name, LIMIT * tap.SCALE, **options)


COMPLETE = 3	# store/store.h


def compare(t, turns, disk):
    """Clients' memory against the disk."""
    lost = doubled = 0
    for session, fates in turns.items():
        states = disk.get(session, [])
        doubled += max(0, len(states) - len(fates))
        for i, fate in enumerate(fates):
            if fate == "exact" and (i >= len(states) or
                                    states[i] != COMPLETE):
                lost += 1
                t.diag("lost: turn %d of %s: %r" % (i + 1, session, states))
    t.eq(lost, 0, "acknowledged turns that are not on the disk")
    t.eq(doubled, 0, "turns that are there twice")


def say(t, name, r):
    t.diag("%s: %d turns on %d connections in %.0f s, %d kills: %d exact, "
           "%d corrupt, %d truncated, %d errors, %d broken, at %s" % (
               name, r["turns"], r["connections"], r["seconds"], r["kills"],
               r["exact"], r["corrupt"], r["truncated"], r["error"],
               r["broken"], {k: v for k, v in r["at"].items() if v}))
    for what in ("first", "gap", "silence"):
        if what in r:
            t.diag("  %s ms: %s" % (what, r[what]))


def campaign(t, connections):
    # What others do here meanwhile stretches what we measure.
    busy = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    d, p = tool.make(t, handover=os.environ.get("HF_CAMPAIGN_HANDOVER", "on"))
    calm, turns = play(d, "calm", t=5 * connections, c=connections)
    say(t, "without kills", calm)
    t.eq(calm["exact"], calm["turns"], "turns that are exact without kills")
    r, more = play(d, "kill", t=TURNS, k=KILLS, c=connections)
    say(t, "with kills", r)
    turns.update(more)
    # How long a client waits, where no provider makes it wait.
    fast = dict(t=15 * connections, c=connections, w=200, P=0)
    before, more = play(d, "fast", **fast)
    say(t, "fast, without kills", before)
    turns.update(more)
    after, more = play(d, "fastkill", k=KILLS // 10, **fast)
    say(t, "fast, with kills", after)
    turns.update(more)
    for key, value in sorted(d.metrics().items()):
        if "handover" in key or "_held" in key or "fenced" in key:
            t.diag("  %s %d" % (key, value))
    d.stop(timeout=60)	# verifies every session
    saw = p.end()
    t.diag("  provider: %s" % saw)
    t.ok(r["turns"] >= TURNS and r["kills"] >= KILLS, "all was played")
    for x in (r, before, after):
        t.eq(x["corrupt"], 0, "corrupt answers")
        t.eq(x["truncated"], 0, "truncated answers")
    t.eq(saw["violations"], 0, "requests that were not the conversation")
    compare(t, turns, tool.stored(d))
    kills = r["kills"] + after["kills"]
    bad = sum(x[what] for x in (r, after) for what in ("error", "broken"))
    t.diag("errors and broken connections: %d, %.1f per 1,000 kills" % (
        bad, 1000 * bad / kills))
    t.ok(bad <= max(2, kills / 100),
         "at most 10 errors and broken connections per 1,000 kills")
    if connections == 40:
        grown = after["silence"]["p50"] - before["silence"]["p50"]
        t.diag("the median longest silence grew by %.1f ms, with %.1f "
               "others waiting for each processor" % (grown, busy))
        t.between(grown, -1000, 10 * tap.SCALE * busy,
                  "growth of the median longest silence, ms")


for n in CONNECTIONS:
    tap.case("%d turns on %d connections at a time, %d kills" % (
        TURNS, n, KILLS), LIMIT)(lambda t, n=n: campaign(t, n))

if __name__ == "__main__":
    tap.main()
