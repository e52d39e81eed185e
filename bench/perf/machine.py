"""What the machine is and does: processor time by process, memory, versions.

All of it from /proc.  Processor time of a tree of processes is the sum of
/proc/PID/task/*/schedstat, in nanoseconds, so that short samples count.
"""
import os
import platform
import subprocess
import time

TICKS = os.sysconf("SC_CLK_TCK")


def _stat(pid):
    """(parent, session, processor ticks) of a process, or None."""
    try:
        with open("/proc/%d/stat" % pid) as f:
            text = f.read()
    except OSError:
        return None
    f = text[text.rindex(")") + 2:].split()
    return int(f[1]), int(f[3]), int(f[11]) + int(f[12])


def tree(leader):
    """The processes of the session that "leader" leads."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            stat = _stat(int(name))
            if stat is not None and stat[1] == leader:
                found.append(int(name))
    return found


def cpu_ns(pids):
    total = 0
    for pid in pids:
        try:
            for task in os.listdir("/proc/%d/task" % pid):
                with open("/proc/%d/task/%s/schedstat" % (pid, task)) as f:
                    total += int(f.read().split()[0])
        except OSError:
            pass
    return total


def ticks_s(pids):
    """Seconds, in the coarse unit in which /proc/stat counts too."""
    stats = [_stat(pid) for pid in pids]
    return sum(s[2] for s in stats if s is not None) / TICKS


def busy_s():
    """Seconds that all processors together have worked."""
    with open("/proc/stat") as f:
        v = [int(x) for x in f.readline().split()[1:]]
    user, nice, system, _idle, _wait, irq, softirq = v[:7]
    return (user + nice + system + irq + softirq) / TICKS


def memory_mb(pids):
    """(resident, proportional) sizes, summed."""
    rss = pss = 0
    for pid in pids:
        try:
            with open("/proc/%d/smaps_rollup" % pid) as f:
                for line in f:
                    if line.startswith("Rss:"):
                        rss += int(line.split()[1])
                    elif line.startswith("Pss:"):
                        pss += int(line.split()[1])
        except OSError:
            pass
    return rss / 1024, pss / 1024


def wait_quiet(limit, tries=40):
    """Waits until other processes take little; False if they never do."""
    for _ in range(tries):
        before = busy_s()
        time.sleep(0.25)
        if (busy_s() - before) / 0.25 <= limit:
            return True
    return False


def _first_line(command):
    try:
        p = subprocess.run(command, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True)
        return p.stdout.split("\n")[0].strip()
    except OSError:
        return "?"


def _model():
    with open("/proc/cpuinfo") as f:
        for line in f:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def _memory_gb():
    with open("/proc/meminfo") as f:
        return int(f.readline().split()[1]) / 1024 / 1024


def _system():
    try:
        with open("/etc/os-release") as f:
            for line in f:
                if line.startswith("PRETTY_NAME="):
                    return line.split("=", 1)[1].strip().strip('"')
    except OSError:
        pass
    return platform.system()


def _file_system(path):
    best = ("", "?")
    with open("/proc/mounts") as f:
        for line in f:
            _dev, where, kind = line.split()[:3]
            if path.startswith(where) and len(where) > len(best[0]):
                best = (where, kind)
    return best[1]


def description(nginx, holdfast, database_dir):
    """Lines of (what, value)."""
    return [
        ("processor", "%d x %s" % (os.cpu_count(), _model())),
        ("memory", "%.0f GB" % _memory_gb()),
        ("system", "%s, Linux %s" % (_system(), platform.release())),
        ("database on", _file_system(os.path.realpath(database_dir))),
        ("nginx", _first_line([nginx, "-v"])),
        ("holdfast", _first_line([holdfast, "-v"])),
    ]
