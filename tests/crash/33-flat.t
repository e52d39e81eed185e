"""What deaths leave behind: nothing.  Descriptors, memory, slots of the hold and
the write-ahead log are the same after hundreds of kills as after a few.

HF_TEST_LONG plays 10,000 turns with 1,000 kills."""
import os
import sys

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import campaign as tool
import tap
import wait

LONG = bool(os.environ.get("HF_TEST_LONG"))
ROUNDS = 4
TURNS = (10000 if LONG else 400) // ROUNDS
KILLS = (1000 if LONG else 120) // ROUNDS
LIMIT = tool.limit(KILLS, TURNS)
SANITIZED = "__asan" in open(
    os.path.join(os.environ["HF_BUILDDIR"], "holdfast"), "rb").read(
        ).decode("latin-1")


def resident(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as f:
        return [int(line.split()[1]) for line in f
                if line.startswith("VmRSS")][0]


def descriptors(pid):
    return len(os.listdir("/proc/%d/fd" % pid))


def shared_memory(pid):
    """Kilobytes of the memory files that it has open: {name: kB}."""
    out = {}
    for fd in os.listdir("/proc/%d/fd" % pid):
        path = "/proc/%d/fd/%s" % (pid, fd)
        name = os.readlink(path)
        if name.startswith("/memfd:"):
            out[name] = os.stat(path).st_blocks // 2
    return out


def settled(d):
    """The figures of a daemon that has nothing to do."""
    def quiet():
        m = d.metrics()
        # The connection that asks is held, too.
        return (m["holdfast_turns_in_flight"] == 0 and
                m["holdfast_connections_held"] <= 1 and
                m["holdfast_connections"] <= 1 and len(d.workers()) == 4)
    wait.until(quiet, 30, "nothing in flight", step=0.05)
    status = d.ctl("status")["processes"]
    keeper = [p["pid"] for p in status if p["role"] == "keeper"][0]
    workers = list(d.workers().values())
    master = d.proc.pid
    return {
        "master fds": descriptors(master),
        "keeper fds": descriptors(keeper),
        "worker fds": max(descriptors(p) for p in workers),
        "master kB": resident(master), "keeper kB": resident(keeper),
        "workers kB": max(resident(p) for p in workers),
        "shared kB": sum(shared_memory(master).values()),
        "log kB": os.path.getsize(d.db_path + "-wal") // 1024,
        "processes": len(d.pids()),
    }


# What may be more at the end than after the first round: a worker has as many
# descriptors as it served connections and providers lately.
MORE = {
    "master fds": 0, "keeper fds": 2, "worker fds": 60, "master kB": 1024,
    "keeper kB": 4096, "workers kB": 24 * 1024, "shared kB": 4096,
    "log kB": 4096, "processes": 0,
}


@tap.case("%d turns, %d kills: nothing grows" % (
    ROUNDS * TURNS, ROUNDS * KILLS), ROUNDS * LIMIT)
def flat(t):
    d, p = tool.make(t, handover="on")
    tool.play(d, "warm", LIMIT * tap.SCALE, t=TURNS, k=KILLS, c=40)
    seen = [settled(d)]
    turns = kills = 0
    for i in range(ROUNDS):
        r, _ = tool.play(d, "round%d" % i, LIMIT * tap.SCALE,
                         t=TURNS, k=KILLS, c=40)
        turns += r["turns"]
        kills += r["kills"]
        t.eq((r["corrupt"], r["truncated"]), (0, 0), "answers")
        seen.append(settled(d))
    for what in MORE:
        t.diag("%-12s %s" % (what, " ".join(
            "%7d" % s[what] for s in seen)))
    t.diag("%d turns, %d kills" % (turns, kills))
    t.ok(turns >= ROUNDS * TURNS and kills >= ROUNDS * KILLS, "all was played")
    for what, more in MORE.items():
        if SANITIZED and what in ("master kB", "keeper kB", "workers kB"):
            continue	# which keeps what is freed for a while
        t.between(seen[-1][what] - seen[0][what], -1 << 30, more,
                  "growth of " + what)
    d.stop(timeout=60)	# verifies every session
    t.eq(p.end()["violations"], 0, "requests that were not the conversation")


if __name__ == "__main__":
    tap.main()
