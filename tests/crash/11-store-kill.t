"""Processes that write turns are killed, at random and at fault points."""
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import tap

PROGRAM = os.path.join(os.environ["HF_BUILDDIR"], "tests", "crash",
                       "store_crash")
ROUNDS = int(os.environ.get("HF_KILLS", "200"))
SEED = os.environ.get("HF_SEED", "1")


@tap.case("%d kills lose nothing acknowledged" % ROUNDS,
          deadline=120 + ROUNDS)
def kills(t):
    path = tempfile.mkdtemp(prefix="hfkill")
    t.cleanup(shutil.rmtree, path)
    p = subprocess.Popen([PROGRAM, "kill", path, str(ROUNDS), SEED],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = p.communicate(timeout=100 + ROUNDS)
    tap.diag(out.decode().strip())
    t.eq(p.returncode, 0, "exit code (%s)" % err.decode())
    t.isin(b"lost=0 ghosts=0 twice=0", out, "verdict")


tap.main()
