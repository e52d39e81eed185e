"""Storage trouble is loud and harmless: a locked database, an altered row, a
full disk, a lost or foreign key, a newer database: a typed error, other
sessions served, nothing half-written."""
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import client
import provider
import tap
from daemon import Config, Daemon

A = provider.Provider("openai")


def make(t, path=None, **gateway):
    conf = Config(**gateway)
    conf.provider("a", A)
    conf.route("m", ["a/model-a"])
    d = Daemon(conf, path=path)
    t.cleanup(d.destroy)
    A.behave(provider.echo())
    A.take()
    return d


def database(d):
    """The database from outside; only while no test asks for more."""
    db = sqlite3.connect(d.db_path, timeout=10, isolation_level=None)
    db.execute("PRAGMA wal_autocheckpoint = 0")
    return db


def typed(t, r, what):
    t.ok(r.status >= 500, "%s: %r" % (what, r))
    t.ok(r.error and r.error["message"] and r.error["code"], what)
    t.eq(r.error["type"], "server_error", what)


@tap.case("a foreign writer that holds the lock for 2 s costs no turn", 40)
def locked(t):
    d = make(t).start()
    t.eq(client.chat(d, "one", session="s-0").status, 200, "before")
    db = database(d)
    db.execute("BEGIN IMMEDIATE")
    waiting = [client.background(client.chat, d, "two", session="s-%d" % i,
                                 timeout=30) for i in range(30)]
    time.sleep(2.0)	# the lock is held that long: that is the test
    t.eq(client.get(d, "/livez", timeout=2).status, 200, "alive meanwhile")
    db.execute("ROLLBACK")
    db.close()
    for w in waiting:
        t.eq(w.get().status, 200, "answered")
    for i in range(30):
        shown = d.session("s-%d" % i)
        t.eq({x["state"] for x in shown["turns"]}, {"complete"}, "states")
    d.stop()


@tap.case("a lock held too long is a typed error; later turns are served", 60)
def locked_long(t):
    d = make(t).start()
    db = database(d)
    db.execute("BEGIN IMMEDIATE")
    r = client.chat(d, "one", session="s", timeout=30)
    db.execute("ROLLBACK")
    db.close()
    typed(t, r, "locked")
    t.isin(r.status, (503,), "status")
    t.ok("retry-after" in r.headers, "Retry-After")
    t.eq(A.requests, [], "no provider was called for it")
    r = client.chat(d, "two", session="s")
    t.eq((r.status, r.text), (200, "heard 1: two"), repr(r))
    d.stop()


@tap.case("no provider is called before the turn's input is on disk", 40)
def input_first(t):
    d = make(t).start()
    t.eq(client.chat(d, "one", session="s").status, 200, "turn 1")
    A.take()
    db = database(d)
    db.execute("BEGIN IMMEDIATE")
    call = client.background(client.chat, d, "two", session="s")
    time.sleep(0.4)	# nothing may happen in this time
    t.eq(A.requests, [], "no call while the commit cannot be made")
    db.execute("ROLLBACK")
    db.close()
    t.eq(call.get().text, "heard 2: two", "then it is answered")
    d.stop()


@tap.case("no end is told before the answer is on disk", 40)
def answer_first(t):
    d = make(t).start()
    for stream in (False, True):
        gate = provider.Barrier()
        t.cleanup(gate.release)
        A.script(provider.hold(gate, provider.answer("the whole answer")))
        seen = []
        call = client.background(
            client.chat, d, "hi", session="s", stream=stream,
            on_event=lambda r: seen.append((r.finish, r.done)) and False)
        gate.wait_for(1)
        db = database(d)
        db.execute("BEGIN IMMEDIATE")
        gate.release()
        time.sleep(0.4)	# nothing may happen in this time
        t.ok(call.result is None, "no end while the commit cannot be made")
        t.eq([x for x in seen if x != (None, False)], [],
             "no finish and no [DONE] either")
        db.execute("ROLLBACK")
        db.close()
        r = call.get()
        t.eq((r.text, r.finish), ("the whole answer", "stop"), "then it is")
    d.stop()


def alter(d, session, change):
    """Change rows while the daemon is down."""
    db = sqlite3.connect(d.db_path, isolation_level=None)
    row = db.execute("SELECT id FROM session WHERE name = ?",
                     (session,)).fetchone()[0]
    n = change(db, row)
    db.close()
    return n


def flip_body(db, session):
    """One bit of the first item's sealed body."""
    ident, body = db.execute(
        "SELECT i.id, i.body_sealed FROM item i JOIN turn t"
        " ON t.id = (i.id >> 20) WHERE t.session = ? ORDER BY i.id LIMIT 1",
        (session,)).fetchone()
    body = bytearray(body)
    body[len(body) // 2] ^= 1
    return db.execute("UPDATE item SET body_sealed = ? WHERE id = ?",
                      (bytes(body), ident)).rowcount


def drop_item(db, session):
    return db.execute(
        "DELETE FROM item WHERE id = (SELECT i.id FROM item i JOIN turn t"
        " ON t.id = (i.id >> 20) WHERE t.session = ? ORDER BY i.id LIMIT 1)",
        (session,)).rowcount


def move_body(db, session):
    """The sealed body of another session's item, in this one's row."""
    return db.execute(
        "UPDATE item SET body_sealed = (SELECT i.body_sealed FROM item i JOIN"
        " turn t ON t.id = (i.id >> 20) JOIN session s ON s.id = t.session"
        " WHERE s.name = 'donor' ORDER BY i.id LIMIT 1) WHERE id = (SELECT"
        " i.id FROM item i JOIN turn t ON t.id = (i.id >> 20)"
        " WHERE t.session = ? ORDER BY i.id LIMIT 1)", (session,)).rowcount


@tap.case("an altered, a missing and a moved row: an error, never a shorter "
          "history", 60)
def corrupt(t):
    d = make(t).start()
    for name in ("flip", "drop", "move", "donor", "good"):
        for text in ("remember code is Q7", "two"):
            t.eq(client.chat(d, text, session=name).status, 200, name)
    d.stop()
    for name, change in (("flip", flip_body), ("drop", drop_item),
                         ("move", move_body)):
        t.eq(alter(d, name, change), 1, "one row changed")
    d.expect_damage = True
    d.start()
    A.take()
    for name in ("flip", "drop", "move"):
        for stream in (False, True):
            r = client.chat(d, "recall code", session=name, stream=stream)
            t.eq(r.status, 500, "%s: %r" % (name, r))
            typed(t, r, name)
    t.eq(A.requests, [], "no provider heard a damaged history")
    for name in ("donor", "good"):
        r = client.chat(d, "recall code", session=name)
        t.eq((r.status, r.text), (200, "code is Q7"), name)
    t.eq(d.ctl_run("sessions", "show", "flip", "--contents").code, 7,
         "holdfastctl says that it is corrupt")
    t.eq(client.get(d, "/readyz").status, 200, "ready")
    d.stop()


@tap.case("a lost or foreign master key is refused at the start", 40)
def keys(t):
    d = make(t).start()
    t.eq(client.chat(d, "one", session="s").status, 200, "a turn")
    d.stop()
    key = d.db_path + ".key"
    t.eq(os.stat(key).st_mode & 0o777, 0o600, "mode of the key file")
    with open(key, "rb") as f:
        data = f.read()
    other = make(t).start()
    other.stop()
    shutil.copy(other.db_path + ".key", key)
    for what in ("a foreign key", "no key"):
        d.start(ready=False)
        code = d.ended(30)
        d.proc = None
        t.ok(code > 0, "%s: exit code %s" % (what, code))
        t.isin("key", d.log.text(), what)
        if os.path.exists(key):
            os.unlink(key)
    t.ok(not os.path.exists(key), "no new key for an old database")
    with open(key, "wb") as f:
        f.write(data)
    os.chmod(key, 0o600)
    d.start()
    r = client.chat(d, "two", session="s")
    t.eq((r.status, r.text), (200, "heard 2: two"), "with the right key")
    d.stop()


@tap.case("a database that is newer than the program is refused, untouched",
          40)
def newer(t):
    d = make(t).start()
    d.stop()
    db = sqlite3.connect(d.db_path, isolation_level=None)
    version = db.execute("PRAGMA user_version").fetchone()[0]
    db.execute("PRAGMA user_version = %d" % (version + 1000))
    db.execute("UPDATE meta SET num = ? WHERE name = 'min_reader'",
               (version + 1000,))
    db.close()
    d.start(ready=False)
    code = d.ended(30)
    d.proc = None
    t.ok(code > 0, "exit code %s" % code)
    t.isin("newer", d.log.text(), "says why")
    db = sqlite3.connect(d.db_path, isolation_level=None)
    t.eq(db.execute("PRAGMA user_version").fetchone()[0], version + 1000,
         "untouched")
    db.close()


@tap.case("a file that is no database is refused, untouched", 40)
def no_database(t):
    d = make(t)
    with open(d.db_path, "wb") as f:
        f.write(b"these are my notes, not a database\n" * 300)
    d.start(ready=False)
    code = d.ended(30)
    d.proc = None
    t.ok(code > 0, "exit code %s" % code)
    with open(d.db_path, "rb") as f:
        t.ok(f.read().startswith(b"these are my notes"), "untouched")


@tap.case("a full disk: a typed error, then all is well again", 60)
def full(t):
    folder = tempfile.mkdtemp(prefix="hf-")
    t.cleanup(shutil.rmtree, folder, True)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "none",
                       folder], capture_output=True).returncode != 0:
        raise tap.Skip("cannot mount a small file system here")
    t.cleanup(subprocess.run, ["umount", "-l", folder])
    d = make(t, path=folder).start()
    t.eq(client.chat(d, "remember code is Q7", session="s").status, 200,
         "a turn")
    ballast = os.path.join(folder, "ballast")
    with open(ballast, "wb", buffering=0) as f:
        try:
            while True:
                f.write(b"x" * 4096)
        except OSError:
            pass
    bad = None
    for i in range(200):
        r = client.chat(d, "x" * 20000, session="fill-%d" % i)
        if r.status != 200:
            bad = r
            break
    t.ok(bad is not None, "the disk was full in the end")
    typed(t, bad, "full")
    t.isin(bad.status, (503, 507), "status")
    t.eq(client.get(d, "/livez").status, 200, "alive")
    os.unlink(ballast)
    r = client.chat(d, "recall code", session="s")
    t.eq((r.status, r.text), (200, "code is Q7"), repr(r))
    d.stop()
    d.start()
    r = client.chat(d, "recall code", session="s")
    t.eq((r.status, r.text), (200, "code is Q7"), "after a restart")
    d.stop()


@tap.case("stateless turns need no storage", 40)
def stateless(t):
    d = make(t).start()
    db = database(d)
    db.execute("BEGIN IMMEDIATE")
    r = client.chat(d, "hi", timeout=2)
    t.eq((r.status, r.text), (200, "heard 1: hi"), repr(r))
    db.execute("ROLLBACK")
    db.close()
    d.stop()


@tap.case("stateless = keep stores them, nameless", 40)
def kept(t):
    d = make(t, stateless="keep").start()
    r = client.chat(d, "hi")
    t.eq(r.status, 200, repr(r))
    shown = d.ctl("sessions", "list")
    t.eq([(s["name"], s["turns"]) for s in shown], [(None, 1)], "kept")
    d.stop()
    d = make(t).start()
    t.eq(client.chat(d, "hi").status, 200, "a turn")
    t.eq(d.ctl_run("-o", "json", "sessions", "list").json, [], "not kept")
    d.stop()


if __name__ == "__main__":
    tap.main()
