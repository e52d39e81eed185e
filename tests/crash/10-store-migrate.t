"""Migrations by several processes at once, and killed at every step."""
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import tap

PROGRAM = os.path.join(os.environ["HF_BUILDDIR"], "tests", "crash",
                       "store_crash")
KILLS = 60
STEPS = len([f for f in os.listdir(os.path.join(os.environ["HF_SRCDIR"],
                                                "migrations"))
             if f.endswith(".sql")])


def folder(t):
    path = tempfile.mkdtemp(prefix="hfmigrate")
    t.cleanup(shutil.rmtree, path)
    return path


def migrate(path, fault=None):
    env = dict(os.environ)
    env.pop("HF_FAULT", None)
    if fault:
        env["HF_FAULT"] = fault
    return subprocess.Popen([PROGRAM, "migrate", path], env=env,
                            stderr=subprocess.PIPE)


def end(p):
    err = p.communicate(timeout=30)[1]
    return p.returncode, err.decode()


def state(path):
    """(version, tables, steps recorded, keys recorded)"""
    db = os.path.join(path, "db")
    if not os.path.exists(db):
        return 0, 0, 0, 0
    # Read-only: closing it must not tidy up what the kill left.
    con = sqlite3.connect("file:%s?mode=ro" % db, uri=True)
    try:
        version = con.execute("PRAGMA user_version").fetchone()[0]
        tables = con.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if tables[0] == 0:
            return version, 0, 0, 0
        steps = con.execute("SELECT count(*) FROM migration").fetchone()[0]
        keys = con.execute("SELECT count(*) FROM master_key").fetchone()[0]
        return version, tables[0], steps, keys
    finally:
        con.close()


@tap.case("eight first starts at once", deadline=60)
def eight(t):
    path = folder(t)
    for p in [migrate(path) for _ in range(8)]:
        code, err = end(p)
        t.eq(code, 0, "exit code (%s)" % err)
    version, tables, steps, keys = state(path)
    t.eq((version, steps, keys), (STEPS, STEPS, 1), "version, steps, keys")
    t.ok(tables > 10, "tables")
    left = sorted(f for f in os.listdir(path) if ".new" in f)
    t.eq(left, [], "unfinished key files")


@tap.case("killed 60 times inside: never half-applied", deadline=120)
def killed(t):
    if subprocess.call([PROGRAM, "faults"]) != 0:
        raise tap.Skip("built without --enable-faults")
    whole = folder(t)
    t.eq(end(migrate(whole))[0], 0, "a quiet start")
    # Tables of a database of each version; those between are learnt.
    tables = {0: 0, STEPS: state(whole)[1]}
    kills, n, rounds, seen = 0, 0, 0, set()
    path = folder(t)
    while kills < KILLS:
        n += 1
        code, err = end(migrate(path, "store.migrate.step=kill@%d" % n))
        if code == -9:
            kills += 1
        else:
            t.eq(code, 0, "neither killed nor well (%s)" % err)
            t.ok(n > 10, "only %d points were reached" % n)
        version, found, steps, _ = state(path)
        seen.add(version)
        t.eq((found, steps), (tables.setdefault(version, found), version),
             "half-applied: tables and steps of version %d" % version)
        if version == STEPS or rounds % 2 == 1:
            # What was begun can be finished, and is then whole.
            t.eq(end(migrate(path))[0], 0, "the start after the kill")
            t.eq(state(path), (STEPS, tables[STEPS], STEPS, 1), "after it")
            path = folder(t)
        if code == 0:
            n, rounds = 0, rounds + 1
    t.isin(0, seen, "kills before the first commit")
    t.ok(len(seen) > 1, "kills after a commit")


@tap.case("an error in a step leaves nothing", deadline=60)
def failed(t):
    if subprocess.call([PROGRAM, "faults"]) != 0:
        raise tap.Skip("built without --enable-faults")
    path = folder(t)
    for n in (1, 5, 12):
        code, err = end(migrate(path, "store.migrate.step=fail@%d" % n))
        t.eq(code, 1, "exit code")
        t.eq(state(path)[:2], (0, 0), "version and tables")
    t.eq(end(migrate(path))[0], 0, "the next start")
    t.eq(state(path)[0], STEPS, "version")


tap.main()
