"""The campaign tool of the crash tests: callers that know each byte they must
get, a provider that knows what it must be told, and kill -9 of workers."""
import json
import os
import sqlite3
import subprocess

import tap
from daemon import Config, Daemon

TOOL = os.path.join(os.environ["HF_BUILDDIR"], "tests", "crash", "campaign")
# Milliseconds between kills; a slower build's workers need longer to start.
FROM, TO = (int(ms * tap.SCALE) for ms in (8, 100))


def limit(kills, turns):
    """Seconds that it may take."""
    return 60 + 2 * kills * (FROM + TO) / 2000 / tap.SCALE + turns / 50


class Provider:
    dialect = "openai"

    def __init__(self):
        self.proc = subprocess.Popen([TOOL, "provider"],
                                     stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE)
        self.base_url = "http://127.0.0.1:%d/v1" % int(
            self.proc.stdout.readline())

    def end(self):
        """What it saw."""
        out, _ = self.proc.communicate(timeout=20)
        return json.loads(out)

    def close(self):
        if self.proc.poll() is None:
            self.proc.kill()
            self.proc.wait()


def make(t, **gateway):
    p = Provider()
    t.cleanup(p.close)
    conf = Config(workers=4, log_level="info", **gateway)
    conf.provider("a", p, first_token_ms=30000, idle_ms=30000,
                  total_ms=110000, prefill="plain")
    conf.route("m", ["a/m"], deadline_ms=120000, max_retries=5)
    d = Daemon(conf)
    t.cleanup(d.destroy)
    return d.start(), p


def play(d, name, limit, **options):
    """Run the callers; what they report, and their turns: {session: [fate]}.
    'limit' in seconds."""
    out = os.path.join(d.dir, name + ".tsv")
    words = [TOOL, "play", "-p", str(d.addr[1]), "-m", str(d.proc.pid),
             "-n", name, "-o", out, "-K", "%d-%d" % (FROM, TO)]
    for key, value in options.items():
        words += ["-" + key, str(value)]
    got = json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=True,
                                    timeout=limit).stdout)
    turns = {}
    with open(out, encoding="ascii") as f:
        for line in f:
            session, number, fate, stage = line.split()
            turns.setdefault(session, []).append(fate)
    return got, turns


def stored(d):
    """{session: [state of each turn, in order]}"""
    db = sqlite3.connect("file:%s?mode=ro" % d.db_path, uri=True)
    out = {}
    for name, state in db.execute(
            "SELECT s.name, t.state FROM session s JOIN turn t"
            " ON t.session = s.id ORDER BY s.id, t.seq"):
        out.setdefault(name, []).append(state)
    db.close()
    return out
