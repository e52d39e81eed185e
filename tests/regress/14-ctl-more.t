"""holdfastctl: check, verification, locks, configuration, reload, drain; and
without a daemon."""
import json
import os
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import client
import ctl
import provider
import tap
import wait
from daemon import KEY, Config, Daemon, shared

A = provider.Provider("openai")
B = provider.Provider("openai")


def config(**gateway):
    conf = Config(workers=2, **gateway)
    conf.provider("a", A)
    conf.provider("b", B)
    conf.route("m", ["a/model-a", "b/model-b"])
    conf.route("finish", ["a/model-a"], on_disconnect="finish")
    return conf


get_daemon = shared(lambda: Daemon(config()).start())


def offline(db, *words, key=None, timeout=30):
    p = subprocess.run([ctl.path(), "--offline", "--database", db,
                        "--key-file", key or db + ".key"] + list(words),
                       stdin=subprocess.DEVNULL, capture_output=True,
                       text=True, timeout=timeout)
    return ctl.Result(p.returncode, p.stdout, p.stderr)


def say(d, session, *texts):
    for text in texts:
        r = client.chat(d, text, session=session)
        if r.status != 200:
            raise AssertionError(repr(r))


# -- check ------------------------------------------------------------------

@tap.case("check: all is well")
def check_well(t):
    d = get_daemon()
    v = d.ctl("check")
    t.eq(v["ok"], True, "verdict")
    t.eq({c["name"] for c in v["checks"]},
         {"workers", "readable", "writable", "config", "version"}, "checks")
    t.ok(all(c["ok"] for c in v["checks"]), repr(v))
    t.eq(v["daemon"]["pid"], d.proc.pid, "pid")
    r = d.ctl_run("check")
    t.eq(r.code, 0, "exit")
    t.eq(len(r.out.splitlines()), 5, "a line each")
    t.notin("FAIL", r.out, "failures")


@tap.case("check: a bad configuration file, no space, no daemon are exit 1")
def check_ill(t):
    d = Daemon(config())
    t.cleanup(d.destroy)
    d.start()
    with open(d.conf_path, encoding="utf-8") as f:
        good = f.read()
    d.write_config(good.replace("workers = 2", "wokers = 2"))
    r = d.ctl_run("check")
    t.eq(r.code, 1, "a bad file")
    t.isin("did you mean workers?", r.out, "the reason")
    d.write_config(good + "# more\n")
    r = d.ctl_run("check")
    t.eq(r.code, 0, "a changed file")
    t.isin("has changed", r.out, "says so")
    # Somebody holds the database's write lock.
    db = sqlite3.connect(d.db_path, isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    r = d.ctl_run("check")
    db.execute("ROLLBACK")
    db.close()
    t.eq(r.code, 1, "not writable")
    t.isin("FAIL  writable", r.out, "the reason")
    t.eq(d.ctl_run("check").code, 0, "and well again")
    d.stop()
    r = d.ctl_run("-o", "json", "check")
    t.eq(r.code, 1, "no daemon")
    t.eq([c["ok"] for c in r.json["checks"]], [False], "failed check")


# -- verification -----------------------------------------------------------

def damaged(t, d, name, *statements):
    """A copy of the daemon's database, changed by hand."""
    path = os.path.join(d.dir, "copy-" + name)
    src = sqlite3.connect("file:%s?mode=ro" % d.db_path, uri=True)
    dst = sqlite3.connect(path, isolation_level=None)
    src.backup(dst)
    src.close()
    for s in statements:
        dst.execute(s)
    dst.close()
    shutil.copy(d.db_path + ".key", path + ".key")
    return path


FLIP = ("UPDATE %s SET %s = CAST(substr(%s, 1, 30) || "
        "CASE WHEN substr(%s, 31, 1) = x'00' THEN x'01' ELSE x'00' END || "
        "substr(%s, 32) AS BLOB) WHERE id = %s")


def flip(table, column, where):
    return FLIP % (table, column, column, column, column, where)


TURN = "(SELECT t.id FROM turn t JOIN session s ON s.id = t.session " \
    "WHERE s.name = '%s' AND t.seq = %d)"
HURT2 = TURN % ("hurt", 2)
HURT3 = TURN % ("hurt", 3)
OTHER1 = TURN % ("other", 1)
CUT1 = TURN % ("cut", 1)

# What is done by hand, what must be found, of which turn.
DAMAGES = [
    ("a byte of a body", [flip("item", "body_sealed",
                               "(%s << 20) | 1" % HURT2)],
     "item_sealed", 2),
    ("a byte of a digest", [flip("item", "digest", "%s << 20" % HURT2)],
     "chain", 2),
    ("a byte of a chain", [flip("item", "chain", "%s << 20" % HURT2)],
     "chain", 2),
    ("a byte of the parameters", [flip("turn_blob", "sealed",
                                       "(%s << 20) | 1" % HURT2)],
     "params_sealed", 2),
    ("a byte of a turn's chain", [flip("turn", "chain", HURT3)],
     "turn_chain", 3),
    ("a byte of the view", [flip("turn", "view", HURT3)], "view", 3),
    ("a byte of an input digest", [flip("turn", "input_digest", HURT2)],
     "input_digest", 2),
    ("a byte of a session's key", [flip(
        "session", "wrapped", "(SELECT id FROM session WHERE name = 'hurt')")],
     "session_key", 0),
    ("an item row deleted", ["DELETE FROM item WHERE id = (%s << 20)"
                             % HURT2], "item_missing", 2),
    ("the last item row deleted", ["DELETE FROM item WHERE id = "
                                   "(%s << 20) | 1" % HURT2],
     "item_missing", 2),
    ("an answer deleted and the count set right",
     ["DELETE FROM item WHERE id = (%s << 20) | 1" % HURT2,
      "UPDATE turn SET n_items = 1 WHERE id = %s" % HURT2], "no_output", 2),
    ("a turn deleted", ["DELETE FROM turn WHERE id = %s" % HURT2],
     "turn_missing", 2),
    ("the last turn deleted", ["DELETE FROM turn WHERE id = %s" % HURT3],
     "turn_missing", 3),
    ("an index changed", ["UPDATE item SET id = id + 7 WHERE id = "
                          "(%s << 20) | 1" % HURT2], "item_missing", 2),
    ("a sequence number changed", ["UPDATE turn SET seq = 9 WHERE id = %s"
                                   % HURT2], "turn_missing", 2),
    ("an item moved to another session",
     ["UPDATE item SET id = (%s << 20) | 2 WHERE id = (%s << 20) | 1" % (
         OTHER1, HURT2)], "item_extra", 1),
    ("bodies of two items swapped",
     ["UPDATE item SET body_sealed = (SELECT body_sealed FROM item WHERE "
      "id = (%s << 20) | 1) WHERE id = (%s << 20) | 1" % (HURT2, HURT3)],
     "item_sealed", 3),
    ("a turn moved to another session",
     ["UPDATE turn SET session = (SELECT id FROM session WHERE "
      "name = 'other'), seq = 2 WHERE id = %s" % HURT3], "turn_missing", 3),
    ("the head changed", ["UPDATE session SET head = %s WHERE name = 'hurt'"
                          % HURT2], "head", 3),
    ("the head of another session", ["UPDATE session SET head = %s WHERE "
                                     "name = 'hurt'" % OTHER1], "head", 3),
    ("the parent changed", ["UPDATE turn SET parent = 0 WHERE id = %s"
                            % HURT3], "chain", 3),
    ("a stale lease", ["UPDATE session SET owner_slot = 1, owner_inc = 7, "
                       "lease_turn = head WHERE name = 'hurt'"],
     "stale_lease", 3),
    ("a turn opened again", ["UPDATE turn SET state = 2 WHERE id = %s"
                             % HURT3], "open_turn", 3),
    ("a session deleted", ["DELETE FROM session WHERE name = 'hurt'"],
     "stray", 0),
    ("a retry beside what it repeats",
     ["UPDATE turn SET retry_of = %s, input_digest = (SELECT input_digest "
      "FROM turn WHERE id = %s) WHERE id = %s" % (HURT2, HURT2, HURT3)],
     "duplicate", 3),
    ("an attempt deleted", ["DELETE FROM attempt WHERE id = (%s << 20) | 1"
                            % HURT2], "attempt_missing", 2),
    ("more heard than said", ["UPDATE turn SET heard = said + 1 WHERE "
                              "id = %s" % CUT1], "heard", 1),
    ("less than nothing heard", ["UPDATE turn SET heard = -2 WHERE id = %s"
                                 % CUT1], "heard", 1),
    ("heard whole, it is said", ["UPDATE turn SET heard = said WHERE id = %s"
                                 % CUT1], "heard", 1),
    ("not heard at all, it is said", ["UPDATE turn SET heard = 0 WHERE "
                                      "id = %s" % CUT1], "heard", 1),
    ("heard of an answer of no size", ["UPDATE turn SET said = -1 WHERE "
                                       "id = %s" % CUT1], "heard", 1),
    ("more said than there is", ["UPDATE turn SET said = 4000 WHERE id = %s"
                                 % HURT2], "heard", 2),
    ("more heard than the history has",
     ["UPDATE turn SET said = 60, heard = 50 WHERE id = %s" % CUT1],
     "heard", 1),
    ("a part heard by a client that stayed",
     ["UPDATE turn SET heard = 1 WHERE id = %s" % HURT3], "heard", 3),
    ("the mark of what was heard taken away",
     ["UPDATE item SET heard_digest = NULL, heard_sealed = NULL "
      "WHERE id = (%s << 20) | 1" % CUT1], "heard", 1),
    ("a byte of what was heard", [flip("item", "heard_sealed",
                                       "(%s << 20) | 1" % CUT1)],
     "item_sealed", 1),
    ("a byte of its digest", [flip("item", "heard_digest",
                                   "(%s << 20) | 1" % CUT1)], "view", 1),
    ("text of a stream left", ["INSERT INTO part (id, sealed) SELECT "
                               "(%s << 20), x'00'" % HURT2], "parts", 2),
]
# The same, for what does not prove that anything is lost.
ODDITIES = [
    ("an attempt that has not ended", ["UPDATE attempt SET ended_us = 0 "
                                       "WHERE id = (%s << 20) | 1" % HURT2],
     "attempt_open", 2),
    ("the same request answered twice",
     ["UPDATE turn SET request = (SELECT request FROM turn WHERE id = %s), "
      "delivered_us = 0 WHERE id = %s" % (HURT3, HURT2)], "duplicate", 3),
]


def leave_early(t, d, session):
    """A turn of which the client heard only the beginning."""
    gate = provider.Barrier()
    t.cleanup(gate.release)
    A.script(provider.trickle("the beginning and the rest of it", gate))
    client.chat(d, "tell me", session=session, model="finish", stream=True,
                on_event=lambda r: r.text == "the beginning")
    wait.until(lambda: d.session(session)["turns"][0]["gone_us"], 10,
               "the client's leaving to be noted")
    gate.release()
    wait.until(lambda: d.session(session)["turns"][0]["ended_us"], 10,
               "the end of the turn")


def prepare(t):
    d = get_daemon()
    A.behave(provider.echo())
    if not os.path.exists(os.path.join(d.dir, "prepared")):
        say(d, "hurt", "one", "two", "three")
        say(d, "other", "uno")
        leave_early(t, d, "cut")
        open(os.path.join(d.dir, "prepared"), "w").close()
    return d


@tap.case("verify: a live daemon's database is clean")
def verify_clean(t):
    d = prepare(t)
    v = d.ctl("sessions", "verify", "hurt")
    t.eq(v["findings"], [], "findings")
    t.eq((v["verified"]["sessions"], v["verified"]["turns"],
          v["verified"]["items"]), (1, 3, 6), "what was looked at")
    v = d.ctl("sessions", "verify", "--all")
    t.eq(v["findings"], [], "findings")
    t.ok(v["verified"]["sessions"] >= 2, "sessions")
    r = d.ctl_run("sessions", "verify", "--all")
    t.eq((r.code, r.out.split(":")[0]), (0, "clean"), "text")
    t.eq(offline(d.db_path, "sessions", "verify", "--all").code, 0,
         "offline, beside the daemon")
    t.eq(d.ctl_run("sessions", "verify", "nothing").code, 3, "unknown")
    for words in (("hurt", "--all"), (), ("--all", "--tenant", "x")):
        t.eq(d.ctl_run("sessions", "verify", *words).code, 2, repr(words))


def of_damage(name, statements, what, seq, code):
    @tap.case("verify: " + name)
    def run(t):
        d = prepare(t)
        path = damaged(t, d, what + str(seq), *statements)
        t.cleanup(os.unlink, path)
        r = offline(path, "-o", "json", "sessions", "verify", "--all")
        t.ok(r.out, repr(r))
        found = [(f["what"], f["turn_seq"]) for f in r.json["findings"]]
        t.isin((what, seq), found, "findings")
        t.eq(r.code, code, "exit: %r" % found)
        text = offline(path, "sessions", "verify", "--all")
        t.eq(text.code, code, "exit of the table")
        t.isin(": %s: " % what, text.out, "a line of the table")
        t.eq(len(text.out.splitlines()), len(found) + 1, "a line each")
        if what == "stray":
            return
        one = offline(path, "sessions", "verify", "other")
        t.eq(one.code, 7 if "another session" in name and
             what != "head" else 0, "the other session")


for name_, statements_, what_, seq_ in DAMAGES:
    of_damage(name_, statements_, what_, seq_, 7)
for name_, statements_, what_, seq_ in ODDITIES:
    of_damage(name_, statements_, what_, seq_, 1)


@tap.case("verify: branches, retries, drops, tools and barge-in are clean", 60)
def verify_shapes(t):
    d = get_daemon()
    A.behave(provider.echo())
    B.behave(provider.echo())
    h = [{"role": "system", "content": "rules"},
         {"role": "user", "content": "one"}]
    r = client.chat(d, h, session="shapes")
    h += [{"role": "assistant", "content": r.text[:3]},
          {"role": "user", "content": "two"}]
    t.eq(client.chat(d, h, session="shapes").status, 200, "heard in part")
    h[-1]["content"] = "two, edited"
    t.eq(client.chat(d, h, session="shapes").status, 200, "a branch")
    greeting = [{"role": "assistant", "content": "welcome"}]
    t.eq(client.chat(d, h[:1] + greeting + h[1:] +
                     [{"role": "user", "content": "more"}],
                     session="shapes").status, 200, "a greeting")
    A.behave(provider.status(400))
    B.behave(provider.status(400))
    client.chat(d, "refused", session="shapes")
    A.behave(provider.status(503))
    B.behave(provider.status(503))
    client.chat(d, "failed", session="shapes")
    A.behave(provider.echo())
    B.behave(provider.echo())
    t.eq(client.chat(d, "failed", session="shapes").status, 200, "retried")
    states = {x["state"] for x in d.session("shapes")["turns"]}
    t.isin("failed", states, "states")
    r = d.ctl_run("sessions", "verify", "shapes")
    t.eq(r.code, 0, r.out)


@tap.case("verify: clean after kill -9 of the tree, before and after a start",
          60)
def verify_killed(t):
    d = Daemon(config(flush_ms=20))
    t.cleanup(d.destroy)
    d.start()
    A.behave(provider.echo())
    for i in range(4):
        say(d, "k-%d" % i, "one", "two")
    gate = provider.Barrier()
    t.cleanup(gate.release)
    A.behave(provider.trickle("some text and the rest of it", gate,
                              before=3))
    calls = [client.background(client.chat, d, "three", session="k-%d" % i,
                               stream=True) for i in range(4)]
    gate.wait_for(4)
    wait.until(lambda: d.ctl("status")["store"]["open_turns"] == 4, 10,
               "open turns")
    d.kill_tree()
    gate.release()
    for c in calls:
        c.join(20)
    before = names_and_bytes(d)
    r = offline(d.db_path, "sessions", "verify", "--all")
    t.eq(r.code, 0, "as it was left: " + r.out + r.err)
    v = offline(d.db_path, "-o", "json", "status").json
    t.eq(v["store"]["open_turns"], 4, "open turns are seen")
    locks = offline(d.db_path, "-o", "json", "locks", "list").json
    t.eq([(x["owner"], x["turn_state"]) for x in locks],
         [("unknown", "open")] * 4, "leases")
    t.eq(names_and_bytes(d), before, "nothing was written")
    A.behave(provider.echo())
    d.start()
    t.eq(d.ctl_run("sessions", "verify", "--all").code, 0, "recovered")
    t.eq(d.ctl_run("locks", "list").code, 1, "no leases")
    for i in range(4):
        say(d, "k-%d" % i, "three")
    t.eq(d.ctl_run("sessions", "verify", "--all").code, 0, "carried on")
    d.stop()
    before = names_and_bytes(d)
    t.eq(offline(d.db_path, "sessions", "verify", "--all").code, 0,
         "stopped")
    t.eq(names_and_bytes(d), before, "nothing was written")


@tap.case("verify: clean after a campaign of worker kills with retries", 120)
def verify_campaign(t):
    d = Daemon(Config(workers=4).provider("a", A, first_token_ms=3000)
               .route("m", ["a/model-a"]))
    t.cleanup(d.destroy)
    d.start()
    A.behave(provider.delay(0.02, provider.echo()))
    retries = []

    def talk(i):
        answers = 0
        for n in range(25):
            key = [("Idempotency-Key", "campaign-%d-%d" % (i, n))]
            for _ in range(20):
                try:
                    r = client.chat(d, "turn %d" % n, session="c-%d" % i,
                                    stream=n % 2 == 1, headers=key)
                    if r.status == 200 and (r.done or not r.streamed):
                        answers += 1
                        break
                except OSError:
                    pass
                retries.append(i)
                time.sleep(0.02)
        return answers
    calls = [client.background(talk, i) for i in range(6)]
    kills = 0
    while any(c.is_alive() for c in calls) and kills < 40:
        time.sleep(0.25)
        victims = list(d.workers().values())
        os.kill(victims[kills % len(victims)], signal.SIGKILL)
        kills += 1
    t.eq([c.get(60) for c in calls], [25] * 6, "answers")
    t.diag("%d workers killed, %d requests retried" % (kills, len(retries)))
    t.ok(kills > 3, "kills")
    r = d.ctl_run("sessions", "verify", "--all", timeout=60)
    t.eq(r.code, 0, r.out + r.err)
    for i in range(6):
        v = d.session("c-%d" % i)
        said = [json.loads(x["body"])["content"] for x in v["items"]
                if x["role"] == "user" and x["turn_seq"] in
                {y["seq"] for y in v["turns"] if y["on_path"]}]
        t.eq(said, ["turn %d" % n for n in range(25)], "the history")
    d.kill_tree()
    r = offline(d.db_path, "sessions", "verify", "--all")
    t.eq(r.code, 0, r.out + r.err)


def names_and_bytes(d):
    out = {}
    for name in sorted(os.listdir(d.dir)):
        path = os.path.join(d.dir, name)
        if name.startswith("db"):
            with open(path, "rb") as f:
                out[name] = (f.read(), os.stat(path).st_mtime_ns)
    return out


# -- offline ----------------------------------------------------------------

@tap.case("offline says what the daemon says, and writes nothing")
def offline_same(t):
    d = prepare(t)
    for words in (("sessions", "list"), ("sessions", "show", "hurt",
                                         "--contents", "--attempts"),
                  ("keys", "list"), ("locks", "list")):
        r = offline(d.db_path, "-o", "json", *words)
        want = d.ctl_run("-o", "json", *words)
        t.eq(r.json, want.json, " ".join(words))
        t.eq(r.code, want.code, "exit of " + " ".join(words))
    v = offline(d.db_path, "-o", "json", "status").json
    t.eq(v["offline"], True, "status")
    now = d.ctl("status")["store"]
    t.eq(v["store"]["turns"], now["turns"], "turns")
    t.eq(client.chat(d, "still here", session="after").status, 200,
         "the daemon serves")
    r = subprocess.run([ctl.path(), "--offline", "-c", d.conf_path,
                        "sessions", "show", "hurt", "--contents"],
                       capture_output=True, text=True, timeout=20)
    t.eq(r.returncode, 0, "paths from the configuration: " + r.stderr)
    t.isin("heard", r.stdout, "contents")
    t.eq(offline(d.db_path, "sessions", "show", "nothing").code, 3,
         "unknown")
    t.eq(offline(d.db_path, "reload").code, 2, "not without a daemon")
    t.eq(offline(d.db_path + "-none", "status").code, 3, "no database")
    t.eq(offline(d.db_path, "sessions", "show", "hurt",
                 key=d.conf_path).code, 5, "another key")
    t.eq(offline(d.db_path, "sessions", "list", key=d.conf_path).code, 0,
         "a list needs no key")


@tap.case("offline beside a daemon that serves and checkpoints", 60)
def offline_busy(t):
    d = get_daemon()
    A.behave(provider.echo())
    stop = threading.Event()
    bad = []

    def talk(i):
        n = 0
        while not stop.is_set():
            r = client.chat(d, "turn %d" % n, session="busy-%d" % i)
            if r.status != 200:
                bad.append(repr(r))
            n += 1
    threads = [threading.Thread(target=talk, args=(i,)) for i in range(3)]
    for th in threads:
        th.start()
    try:
        for _ in range(8):
            r = offline(d.db_path, "sessions", "verify", "--all")
            t.eq(r.code, 0, r.out + r.err)
            r = d.ctl_run("sessions", "verify", "--all")
            t.eq(r.code, 0, r.out + r.err)
    finally:
        stop.set()
        for th in threads:
            th.join(20)
    t.eq(bad, [], "turns beside it")
    t.eq(d.ctl_run("sessions", "verify", "--all").code, 0, "afterwards")


@tap.case("offline: another user, who may read and not write, or neither")
def offline_user(t):
    if os.getuid() != 0:
        raise tap.Skip("only root can become somebody else")
    d = Daemon(config())
    t.cleanup(d.destroy)
    d.start()
    A.behave(provider.echo())
    say(d, "s", "one", "two")
    tool = os.path.join(d.dir, "tool")
    shutil.copy(ctl.path(), tool)
    key = os.path.join(d.dir, "key")
    shutil.copy(d.db_path + ".key", key)
    os.chown(key, 65534, 65534)
    os.chmod(d.dir, 0o755)

    def run(*words):
        p = subprocess.run([tool, "--offline", "--database", d.db_path,
                            "--key-file", key] + list(words), user=65534,
                           group=65534, extra_groups=[], cwd="/",
                           capture_output=True, text=True, timeout=20)
        return ctl.Result(p.returncode, p.stdout, p.stderr)
    t.eq(run("sessions", "list").code, 5, "may read nothing")
    for suffix in ("", "-wal", "-shm"):
        os.chmod(d.db_path + suffix, 0o644)
    r = run("-o", "json", "sessions", "verify", "--all")
    t.eq((r.code, r.out and r.json["verified"]["turns"]), (0, 2),
         "beside the daemon: %r" % r)
    say(d, "t", "more")
    d.kill_tree()
    before = names_and_bytes(d)
    r = run("-o", "json", "sessions", "verify", "--all")
    t.eq((r.code, r.out and r.json["verified"]["turns"]), (0, 3),
         "after kill -9: %r" % r)
    t.eq(names_and_bytes(d), before, "nothing was written")


@tap.case("offline: copies without -shm, without a log, and no database")
def offline_copies(t):
    d = Daemon(config())
    t.cleanup(d.destroy)
    d.start()
    A.behave(provider.echo())
    say(d, "s", "one", "two")
    d.kill_tree()
    t.ok(os.path.getsize(d.db_path + "-wal") > 0, "a log with frames")
    place = os.path.join(d.dir, "a place?%41#")
    os.mkdir(place)
    path = os.path.join(place, "db")
    for suffix in ("", "-wal", ".key"):
        shutil.copy(d.db_path + suffix, path + suffix)
    before = sorted(os.listdir(place))
    r = offline(path, "-o", "json", "sessions", "verify", "--all")
    t.eq((r.code, r.json["verified"]["turns"]), (0, 2), "without -shm")
    t.eq(sorted(os.listdir(place)), before, "no file was made")
    d.start()
    d.stop()
    for suffix in ("-wal",):
        os.unlink(path + suffix)
    src = sqlite3.connect(d.db_path)
    src.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    src.close()
    shutil.copy(d.db_path, path)
    before = sorted(os.listdir(place))
    r = offline(path, "-o", "json", "sessions", "verify", "--all")
    t.eq((r.code, r.json["verified"]["turns"]), (0, 2), "without a log")
    t.eq(sorted(os.listdir(place)), before, "no file was made")
    r = offline(d.conf_path, "sessions", "list", key=path + ".key")
    t.eq(r.code, 7, "not a database")


# -- locks ------------------------------------------------------------------

@tap.case("locks list: who serves what, and who waits")
def locks(t):
    d = get_daemon()
    t.eq(d.ctl_run("locks", "list").code, 1, "none")
    gate = provider.Barrier()
    t.cleanup(gate.release)
    A.behave(provider.hold(gate, provider.echo()))
    first = client.background(client.chat, d, "one", session="held")
    gate.wait_for(1)
    second = client.background(client.chat, d, "two", session="held")
    v = wait.until(lambda: [x for x in d.ctl("locks", "list")
                            if x["queued"] == 1], 10, "a queued turn")
    t.eq(len(v), 1, "leases")
    slots = {p["slot"]: p for p in d.ctl("status")["processes"]}
    x = v[0]
    t.eq((x["name"], x["owner"], x["turn_seq"], x["turn_state"]),
         ("held", "alive", 1, "open"), "the lease")
    t.eq(slots[x["owner_slot"]]["inc"], x["owner_inc"], "its owner")
    r = d.ctl_run("locks", "list")
    t.eq((r.code, len(r.out.splitlines())), (0, 2), "table")
    t.isin("alive", r.out, "table")
    t.eq(d.ctl_run("sessions", "verify", "--all").code, 0,
         "open and queued turns are in order")
    gate.release()
    for call in (first, second):
        t.eq(call.get(20).status, 200, "turn")
    A.behave(provider.echo())


# -- configuration ----------------------------------------------------------

@tap.case("config explain, offline and in JSON")
def explain(t):
    r = subprocess.run([ctl.path(), "config", "explain", "drain_ms"],
                       capture_output=True, text=True, timeout=10)
    t.eq(r.returncode, 0, r.stderr)
    for word in ("gateway.drain_ms", "milliseconds", "30000", "reload"):
        t.isin(word, r.stdout, "prose")
    r = subprocess.run([ctl.path(), "-o", "json", "config", "explain",
                        "first_token_ms"], capture_output=True, text=True,
                       timeout=10)
    t.eq([(x["block"], x["default"]) for x in json.loads(r.stdout)],
         [("provider", "15000"), ("target", None)], "two blocks have it")
    r = subprocess.run([ctl.path(), "config", "explain", "gateway.wrkers"],
                       capture_output=True, text=True, timeout=10)
    t.eq(r.returncode, 3, "unknown")
    r = subprocess.run([ctl.path(), "config", "explain", "wokers"],
                       capture_output=True, text=True, timeout=10)
    t.eq((r.returncode, "did you mean workers?" in r.stderr), (3, True),
         "a suggestion")


@tap.case("config check: errors with file and line, and warnings")
def config_check(t):
    d = get_daemon()
    env = dict(os.environ, HF_TEST_KEY=KEY)

    def run(text, *more):
        path = os.path.join(d.dir, "checked.conf")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        p = subprocess.run([ctl.path(), "config", "check", path] +
                           list(more), capture_output=True, text=True,
                           timeout=10, env=env)
        return ctl.Result(p.returncode, p.stdout, p.stderr)
    good = 'provider a { dialect = openai base_url = "http://127.0.0.1:1" ' \
        'api_key_env = HF_TEST_KEY }\nprovider b { dialect = openai ' \
        'base_url = "http://127.0.0.1:2" api_key_env = HF_TEST_KEY }\n' \
        'route m { targets = {"a/x", "b/y"} }\n'
    r = run(good)
    t.eq((r.code, len(r.out.splitlines())), (0, 1), "no warning: %r" % r)
    r = run("gateway {\n\twokers = 3\n}\n")
    t.eq(r.code, 78, "an error")
    t.isin("checked.conf:2: gateway.wokers: ", r.err, "file and line")
    r = run('gateway { listen = {"0.0.0.0:80"} }\n' + good.replace(
        ', "b/y"', "").replace("http://127.0.0.1:1", "http://far:1"), "-o",
        "json")
    t.eq(r.code, 0, "warnings only")
    text = "\n".join("%d %s" % (w["line"], w["text"])
                     for w in r.json["warnings"])
    for want in ("1 gateway.listen: 0.0.0.0:80", "2 provider a: conv",
                 "3 provider b: no route", "4 route m: there is one target"):
        t.isin(want, text, "warning")
    t.notin(KEY, r.out + r.err, "the secret")


@tap.case("config show and providers list: what runs, with sources, no secret")
def config_show(t):
    d = get_daemon()
    r = d.ctl_run("-o", "json", "config", "show")
    t.eq(r.code, 0, r.err)
    by = {(s["block"], s["title"], s["key"]): s for s in r.json["settings"]}
    s = by["gateway", "", "workers"]
    t.eq((s["value"], s["source"]), ("2", "file"), "of the file")
    with open(d.conf_path, encoding="utf-8") as f:
        line = f.read().splitlines()[s["line"] - 1]
    t.isin("workers = 2", line, "its line")
    s = by["gateway", "", "drain_ms"]
    t.eq((s["value"], s["source"], s["line"]), ("30000", "default", 0),
         "a default")
    t.eq(by["gateway", "", "master_key_file"]["value"], d.db_path + ".key",
         "a default that depends")
    t.eq(by["provider", "a", "api_key_env"]["value"], "HF_TEST_KEY",
         "where the secret is")
    p = d.ctl_run("-o", "json", "providers", "list")
    t.eq([(x["name"], x["dialect"], x["base_url"],
           [(y["name"], y["routes"]) for y in x["targets"]])
          for x in p.json],
         [("a", "openai", A.base_url, [("a/model-a", ["m", "finish"])]),
          ("b", "openai", B.base_url, [("b/model-b", ["m"])])], "providers")
    for words in (("config", "show"), ("providers", "list")):
        x = d.ctl_run(*words)
        t.eq(x.code, 0, " ".join(words))
        t.isin("a/model-a", x.out, "table")
        t.notin(KEY, x.out, "the secret")
    t.notin(KEY, r.out + p.out, "the secret")


# -- reload and drain --------------------------------------------------------

@tap.case("reload waits for the outcome: done, refused, and what needs a "
          "restart", 60)
def reload(t):
    d = Daemon(config())
    t.cleanup(d.destroy)
    d.start()
    A.behave(provider.echo())
    with open(d.conf_path, encoding="utf-8") as f:
        good = f.read()
    old = set(d.workers().values())
    d.write_config(good.replace("workers = 2", "workers = 3"))
    v = d.ctl("reload")
    t.eq(v["generation"], 2, "generation")
    t.eq(v["restart_needed"], None, "all of it")
    new = {p["pid"] for p in d.ctl("status")["processes"]
           if p["role"] == "worker" and p["state"] == "ready"}
    t.eq((len(new), new & old), (3, set()), "new workers when it returns")
    shown = {s["key"]: s for s in d.ctl("config", "show")["settings"]
             if s["block"] == "gateway"}
    t.eq(shown["workers"]["value"], "3", "config show follows")
    bad = good.replace("workers = 2", "workers = 2\n\tdrain_msx = 1")
    d.write_config(bad)
    r = d.ctl_run("reload")
    t.eq((r.code, r.out), (78, ""), "refused")
    n = bad.splitlines().index("\tdrain_msx = 1") + 1
    t.isin("%s:%d: gateway.drain_msx: " % (d.conf_path, n), r.err, "reason")
    t.eq(client.chat(d, "hi").status, 200, "serves")
    t.eq({s["key"]: s for s in d.ctl("config", "show")["settings"]
          if s["block"] == "gateway"}["workers"]["value"], "3",
         "the old one stays")
    d.write_config(good.replace(d.control, d.control + "2"))
    r = d.ctl_run("reload")
    t.eq(r.code, 0, "done")
    t.isin("control", r.out, "what needs a restart")
    shown = {s["key"]: s for s in d.ctl("config", "show")["settings"]
             if s["block"] == "gateway"}
    t.eq((shown["control"]["value"], shown["control"]["source"]),
         (d.control, "start"), "the value in force")
    d.write_config(good)
    rs = client.together([lambda: d.ctl_run("reload") for _ in range(4)])
    t.eq([r.code for r in rs], [0] * 4, "several at once")
    # The keeper that comes after a kill knows the configuration that runs.
    keeper = [p for p in d.ctl("status")["processes"]
              if p["role"] == "keeper"][0]["pid"]
    os.kill(keeper, 9)
    v = wait.until(lambda: d.ctl_run("-o", "json", "config", "show").code
                   == 0 and d.ctl("config", "show"), 15, "a new keeper")
    t.eq({s["key"]: s["value"] for s in v["settings"]
          if s["block"] == "gateway"}["workers"], "2", "workers")
    t.eq(d.ctl_run("reload").code, 0, "a reload through the new keeper")
    d.stop()


@tap.case("drain lets turns end, then the daemon stops", 60)
def drain(t):
    d = Daemon(config())
    t.cleanup(d.destroy)
    d.start()
    gate = provider.Barrier()
    t.cleanup(gate.release)
    A.behave(provider.hold(gate, provider.echo()))
    turn = client.background(client.chat, d, "long", session="s")
    gate.wait_for(1)
    r = d.ctl_run("drain", "--wait", "1")
    t.eq(r.code, 8, "a turn is under way: %r" % r)
    waiting = client.background(d.ctl_run, "-o", "json", "drain", "--wait",
                                "30", timeout=40)
    r = d.ctl_run("reload")
    t.eq(r.code, 75, "no reload any more: %r" % r)
    try:
        code = client.chat(d, "new", timeout=5).status
    except OSError:
        code = None
    t.ok(code in (None, 503), "nothing new is accepted: %r" % code)
    gate.release()
    t.eq(turn.get(20).status, 200, "the turn ended well")
    r = waiting.get(30)
    t.eq((r.code, r.json.get("state")), (0, "drained"), "drained")
    t.eq(d.ended(), 0, "the daemon ended well")
    d.proc = None
    d.check_log()
    d.start()
    A.behave(provider.echo())
    r = d.ctl_run("drain")
    t.eq((r.code, r.out), (0, "draining\n"), "at once")
    t.eq(d.ended(), 0, "the daemon ended")
    d.proc = None


# -- long replies -------------------------------------------------------------

def frame(data):
    return struct.pack(">I", len(data)) + data


def memory(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as f:
        for line in f:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024


def grow(db, name, turns, size):
    """Copies of a session's last turn behind it, without its body's seal:
    what is shown without contents does not open it."""
    c = sqlite3.connect(db, isolation_level=None)
    c.execute("BEGIN IMMEDIATE")
    (ses, head, seq) = c.execute(
        "SELECT s.id, s.head, s.n_turns FROM session s WHERE s.name = ?",
        (name,)).fetchone()
    for i in range(turns):
        c.execute("INSERT INTO turn (public, session, seq, parent, state, "
                  "route, owner_slot, owner_inc, chain, view, lead_digest, "
                  "input_digest, created_us, started_us, ended_us, status) "
                  "SELECT 'turn_' || ?, session, ?, id, 5, ?, "
                  "owner_slot, owner_inc, chain, view, lead_digest, "
                  "input_digest, created_us, started_us, ended_us, 502 "
                  "FROM turn WHERE id = ?",
                  ("%026d" % i, seq + 1 + i, "r" * size, head))
    c.execute("UPDATE session SET n_turns = n_turns + ? WHERE id = ?",
              (turns, ses))
    c.execute("COMMIT")
    c.close()


@tap.case("sessions show of 5,000 turns: whole, and the keeper stays small",
          90)
def long_show(t):
    # What was freed must not count as used under AddressSanitizer.
    d = Daemon(config(), env={"ASAN_OPTIONS": "abort_on_error=1:"
                              "detect_leaks=1:quarantine_size_mb=1:"
                              "thread_local_quarantine_size_kb=64"})
    t.cleanup(d.destroy)
    d.start()
    A.behave(provider.echo())
    say(d, "long", "one")
    d.stop()
    grow(d.db_path, "long", 4999, 8000)		# 40 MB of rows
    d.expect_damage = True
    d.start()
    keeper = [p for p in d.ctl("status")["processes"]
              if p["role"] == "keeper"][0]["pid"]
    idle = memory(keeper)
    # A client that takes nothing: others are served, nothing piles up.
    s = socket.socket(socket.AF_UNIX)
    t.cleanup(s.close)
    s.connect(d.control)
    s.sendall(frame(b'{"v":1,"id":1,"verb":"sessions.show",'
                    b'"args":{"key":"long"}}'))
    v = d.ctl("sessions", "show", "long")
    t.eq(len(v["turns"]), 5000, "turns")
    t.eq([x["seq"] for x in v["turns"]], list(range(1, 5001)), "in order")
    t.eq(len(v["items"]), 2, "items")
    t.ok(memory(keeper) - idle < 24 << 20,
         "keeper grew by %d bytes" % (memory(keeper) - idle))
    # One that leaves in the middle.
    g = socket.socket(socket.AF_UNIX)
    g.connect(d.control)
    g.sendall(frame(b'{"v":1,"id":1,"verb":"sessions.show",'
                    b'"args":{"key":"long"}}'))
    t.ok(len(g.recv(1000)) > 0, "it began")
    g.close()
    # Two requests of one client, answered one after the other.
    s2 = socket.socket(socket.AF_UNIX)
    t.cleanup(s2.close)
    s2.settimeout(20)
    s2.connect(d.control)
    s2.sendall(frame(b'{"v":1,"id":1,"verb":"sessions.list","args":{}}') +
               frame(b'{"v":1,"id":2,"verb":"locks.list","args":{}}'))
    s2.shutdown(socket.SHUT_WR)
    got = b""
    while True:
        more = s2.recv(65536)
        if not more:
            break
        got += more
    t.isin(b'"id":1,"end":true', got.replace(b" ", b""), "the first")
    t.eq(d.ctl("status")["pid"], d.proc.pid, "served")
    t.eq(len(d.ctl("sessions", "list", "--limit", "10000")), 1, "list")
    d.stop()


@tap.case("sessions list streams ten thousand sessions", 90)
def long_list(t):
    d = Daemon(config())
    t.cleanup(d.destroy)
    d.start()
    A.behave(provider.echo())
    say(d, "first", "one")
    d.stop()
    c = sqlite3.connect(d.db_path, isolation_level=None)
    c.execute("BEGIN IMMEDIATE")
    for i in range(12000):
        c.execute("INSERT INTO session (public, tenant, name, key_id, "
                  "wrapped, created_us, updated_us) SELECT 'ses_' || ?, "
                  "tenant, ?, key_id, wrapped, created_us, updated_us "
                  "FROM session WHERE name = 'first'",
                  ("%026d" % i, "n-%d" % i))
    c.execute("COMMIT")
    c.close()
    d.expect_damage = True
    d.start()
    v = d.ctl("sessions", "list", "--limit", "10000")
    t.eq([x["name"] for x in v], ["n-%d" % i for i in
                                  range(11999, 1999, -1)], "newest first")
    v = d.ctl("sessions", "list", "--limit", "10000", "--before",
              v[-1]["id"])
    t.eq(len(v), 2001, "the rest")
    # The keys of these sessions were copied: they open nowhere else.
    r = d.ctl_run("-o", "json", "sessions", "verify", "--all", timeout=60)
    t.eq(r.code, 7, "verify")
    t.eq(r.json["verified"]["corrupt"], 12000, "findings")
    d.stop()


if __name__ == "__main__":
    tap.main()
