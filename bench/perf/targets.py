"""The processes of a measurement: perfmock, nginx, holdfast, perfload.

Every one leads a session of its own, so that its whole tree can be found and
ended.  Ports come from the kernel; everything is written below one private
directory.
"""
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import time
import urllib.request

import machine

PROXY_CPU = {0}		# the proxy alone
LOAD_CPU = {1}		# perfload and perfmock
READY_S = 15
NICE = 0		# of all that is measured; set by the driver

NGINX = """worker_processes %(workers)d;
daemon off;
pid %(dir)s/nginx.pid;
error_log %(dir)s/nginx-error.log;
events { worker_connections 8192; }
http {
	access_log off;
	keepalive_requests 100000000;
	keepalive_timeout 300s;
	client_body_buffer_size 1m;
	client_max_body_size 64m;
	client_body_temp_path %(dir)s/body;
	proxy_temp_path %(dir)s/proxy;
	fastcgi_temp_path %(dir)s/fastcgi;
	uwsgi_temp_path %(dir)s/uwsgi;
	scgi_temp_path %(dir)s/scgi;
	upstream mock {
		server 127.0.0.1:%(upstream)d;
		keepalive 1024;
		keepalive_requests 100000000;
		keepalive_timeout 300s;
	}
	server {
		listen 127.0.0.1:%(port)d backlog=4096;
		location / {
			proxy_pass http://mock;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_buffering off;
			proxy_read_timeout 300s;
		}
	}
}
"""

HOLDFAST = """gateway {
	listen = "127.0.0.1:%(port)d"
	database = "%(dir)s/holdfast.db"
	control = "%(dir)s/control.sock"
	workers = %(workers)d
	stateless = "memory"
	synchronous = "%(synchronous)s"
	handover = "%(handover)s"
	log_level = "warn"
}
provider "mock" {
	dialect = "openai"
	base_url = "http://127.0.0.1:%(upstream)d/v1"
	upstream_stream = "%(upstream_stream)s"
}
route "perf" {
	targets = {"mock/perf"}
}
%(extra)s
"""


class Failure(Exception):
    pass


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def prefer():
    """Gives this process the priority of what is measured."""
    if NICE:
        os.setpriority(os.PRIO_PROCESS, 0, NICE)
        try:	# where each session is a group of its own
            with open("/proc/self/autogroup", "w") as f:
                f.write(str(NICE))
        except OSError:
            pass


def pin(cpus):
    """What a child does before it becomes a program of the measurement."""
    def before():
        if cpus:
            os.sched_setaffinity(0, cpus)
        prefer()
    return before


class Process:
    """A program that runs until stop()."""

    def __init__(self, command, cpus, log):
        self.log = log
        with open(log, "ab") as f:
            self.popen = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=f, stderr=f,
                preexec_fn=pin(cpus), start_new_session=True)

    def pids(self):
        return machine.tree(self.popen.pid)

    def said(self):
        """The end of what it wrote."""
        with open(self.log) as f:
            return f.read()[-2000:]

    def wait_port(self, port):
        end = time.monotonic() + READY_S
        while time.monotonic() < end:
            if self.popen.poll() is not None:
                break
            try:
                socket.create_connection(("127.0.0.1", port), 0.2).close()
                return
            except OSError:
                time.sleep(0.01)
        raise Failure("%s did not start: %s" % (
            os.path.basename(self.popen.args[0]), self.said()))

    def stop(self):
        """Ends the tree: in order, and after a while by force."""
        pids = self.pids()
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGTERM)
            try:
                self.popen.wait(10)
            except subprocess.TimeoutExpired:
                self.popen.kill()
                self.popen.wait()
        for pid in set(pids) & set(self.pids()):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


class Mock(Process):
    def __init__(self, program, behaviour, directory, cpus=LOAD_CPU):
        log = os.path.join(directory, "mock.%d.log" % time.monotonic_ns())
        super().__init__([program, behaviour], cpus, log)
        end = time.monotonic() + READY_S
        text = ""
        while not text.endswith("\n") and time.monotonic() < end:
            time.sleep(0.01)
            with open(log) as f:
                text = f.read()
        if not text.endswith("\n"):
            raise Failure("perfmock did not start: " + text)
        self.port = int(text)

    def requests(self):
        url = "http://127.0.0.1:%d/stats" % self.port
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(url, timeout=10) as f:
            return json.load(f)["requests"]


class Direct:
    """No proxy at all: what the client and the mock cost by themselves."""

    def __init__(self, mock):
        self.port = mock.port

    def pids(self):
        return []

    def stop(self):
        pass


class Nginx(Process):
    def __init__(self, program, upstream, directory, workers=1,
                 cpus=PROXY_CPU):
        self.dir = os.path.join(directory, "nginx.%d" % time.monotonic_ns())
        os.mkdir(self.dir)
        self.port = free_port()
        conf = os.path.join(self.dir, "nginx.conf")
        with open(conf, "w") as f:
            f.write(NGINX % {"workers": workers, "dir": self.dir,
                             "port": self.port, "upstream": upstream})
        super().__init__([program, "-c", conf, "-e", self.dir + "/log"],
                         cpus, self.dir + "/out")
        self.wait_port(self.port)

    def stop(self):
        super().stop()
        shutil.rmtree(self.dir)


class Holdfast(Process):
    def __init__(self, program, upstream, directory, workers=1,
                 cpus=PROXY_CPU, synchronous="full",
                 upstream_stream="client", extra="", handover="auto"):
        self.dir = os.path.join(directory, "hf.%d" % time.monotonic_ns())
        os.mkdir(self.dir)
        self.port = free_port()
        conf = os.path.join(self.dir, "holdfast.conf")
        with open(conf, "w") as f:
            f.write(HOLDFAST % {
                "workers": workers, "dir": self.dir, "port": self.port,
                "upstream": upstream, "synchronous": synchronous,
                "upstream_stream": upstream_stream, "extra": extra,
                "handover": handover})
        super().__init__([program, "-c", conf], cpus, self.dir + "/out")
        self.wait_port(self.port)
        self._wait_ready(workers)

    def _wait_ready(self, workers):
        """Connections wait in the kernel; workers may still be coming."""
        end = time.monotonic() + READY_S
        while len(self.pids()) < 2 + workers:
            if time.monotonic() > end:
                raise Failure("holdfast has not all its processes")
            time.sleep(0.01)

    def stop(self):
        super().stop()
        shutil.rmtree(self.dir)


class Load:
    """Runs perfload once; result is its JSON, load_s its processor time."""

    def __init__(self, program, args, cpus=LOAD_CPU):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        p = subprocess.run([program] + [str(a) for a in args],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           text=True, preexec_fn=pin(cpus),
                           start_new_session=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if p.returncode != 0:
            raise Failure("perfload: " + p.stderr.strip())
        self.result = json.loads(p.stdout)
        self.load_s = (after.ru_utime + after.ru_stime -
                       before.ru_utime - before.ru_stime)
