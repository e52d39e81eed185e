"""The benchmark's profile of Portkey's gateway, from npm: it installs, starts,
is played against and stopped, beside holdfast, by one command."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "harness"))
import tap

BUILD = os.environ["HF_BUILDDIR"]
BENCH = os.path.join(BUILD, "continuitybench")
CACHE = os.path.join(BUILD, "tests", "clients")


@tap.case("portkey beside holdfast", 400)
def beside(t):
    installed = subprocess.run(
        ["sh", os.path.join(HERE, "..", "..", "bench", "profiles",
                            "portkey.sh"), "install",
         os.path.join(CACHE, "portkey")], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if installed.returncode != 0:
        lines = installed.stdout.strip().splitlines()
        raise tap.Skip(lines[-1] if lines else "portkey.sh failed")
    d = tempfile.mkdtemp(prefix="hf-")
    t.cleanup(shutil.rmtree, d, True)
    out = os.path.join(d, "out.json")
    p = subprocess.run(
        [BENCH, "compare", "--targets", "holdfast,portkey", "--suites",
         "paper,midstream,wall", "--size", "54", "--wall-ms",
         str(int(200 * tap.SCALE)), "--json", out, "--keep",
         os.path.join(d, "kept")],
        env=dict(os.environ, HF_BENCH_CACHE=CACHE), stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=380 * tap.SCALE)
    t.eq(p.returncode, 0, p.stdout[-3000:])
    for line in p.stdout.splitlines():
        t.diag(line)
    with open(out, encoding="utf-8") as f:
        suites = json.load(f)["suites"]
    r = suites["paper"]["portkey"]
    t.isin("@portkey-ai/gateway", r["gateway"]["version"], "version")
    t.eq(r["run"]["history"], "full", "it keeps none")
    t.eq((r["systems"]["portkey"]["cpr"]["n"], r["counts"]["unattributed"]),
         (150, 0), "whose is known by the model's name")
    t.eq((r["counts"]["refused"], r["counts"]["bleed"]), (0, 0),
         "it is configured rightly")
    # Its clients sent all there is to know, so that it need not remember.
    t.ok(r["systems"]["portkey"]["cpr"]["k"] > 140, "kept")
    r = suites["midstream"]["portkey"]
    t.ok(r["systems"]["portkey"]["cpr"]["k"] < 27, "it goes on with no stream")
    t.ok(r["counts"]["silent"] > 20, "and ends them as if they were whole")
    t.eq(suites["midstream"]["holdfast"]["systems"]["holdfast"]["cpr"]["k"],
         54, "holdfast loses none")
    wall = {x["scenario"]: x["verdict"]
            for x in suites["wall"]["portkey"]["wall"]}
    t.eq((wall["s08"], wall["s14"]), ("fail", "fail"), repr(wall))


tap.main()
