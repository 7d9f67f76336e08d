"""perf(1) as the consumer: record to a pipe or a file, record and script, trace. Rings have the size of perfd's."""
import contextlib
import fcntl
import functools
import json
import os
import select
import statistics
import subprocess
import tempfile

import machine
import measure
import perfd
import test_remote

RING = "2M"  # rings.size by default
PIPE = 1 << 20
N_ENDINGS = 3


class Perf(measure.Consumer):
    """perf record, enabled when it is ready.

    What it spends at its end, however many events it had, is measured once and left out; what was still in the ring
    then cannot be told apart from it, and is little.
    """

    reader_kind, names, output = "perf", ("record", "script"), "-"  # of its processes

    def __init__(self, floods, is_ending=False):
        self.floods, self.is_ending = floods, is_ending

    def start(self):
        if not self.is_ending:
            self.ending = ending(type(self))
        self.processes = []
        self.stack.callback(self.kill)
        theirs, self.control = self.pipe()
        self.acknowledged, acknowledge = self.pipe()
        command = ["perf", "record", "-q", "-B", "-N", "-e", measure.EVENT, *self.traced(), "-D", "-1",
                   "--control", f"fd:{theirs},{acknowledge}", "-o", self.output]
        self.add(command, pass_fds=[theirs, acknowledge])
        self.add_others()
        self.end_pipe()
        os.write(self.control, b"enable\n")
        ready, _, _ = select.select([self.acknowledged], [], [], perfd.PATIENCE)
        perfd.check(ready and os.read(self.acknowledged, 16).startswith(b"ack"), "perf record does not begin")
        self.pids = tuple(process.pid for process in self.processes)
        self.watched = [*zip(self.names, self.pids), *(("its reader", reader.process.pid) for reader in self.readers)]
        machine.wait_quiet(self.pids)
        self.before = [machine.threads(pid) for pid in self.pids]

    def traced(self):
        return ["-m", RING, "-p", ",".join(str(flood.pid) for flood in self.floods)]

    def add_others(self):
        """What its output goes through."""

    def end_pipe(self):
        self.readers = (measure.Reader(self.reader_kind, self.processes[-1].stdout),)
        self.stack.callback(self.readers[0].close)

    def pipe(self):
        fds = os.pipe()
        for fd in fds:
            self.stack.callback(os.close, fd)
        return fds

    def add(self, command, **popen):
        source = self.processes[-1].stdout if self.processes else subprocess.DEVNULL
        self.processes.append(subprocess.Popen(command, stdin=source, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                               **popen))
        with contextlib.suppress(OSError):
            fcntl.fcntl(self.processes[-1].stdout, fcntl.F_SETPIPE_SZ, PIPE)
        if len(self.processes) > 1:
            source.close()

    def spend(self):
        """Ends it; ns of CPU of each process since it was ready."""
        spent = [measure.interrupt(self.processes[0])]
        for process in self.processes[1:]:
            _, process.returncode, usage = os.wait4(process.pid, 0)
            spent.append(int((usage.ru_utime + usage.ru_stime) * 1e9))
        return [ns - measure.cpu_ns(before) for ns, before in zip(spent, self.before)]

    def finish(self, n_calls, n_stops):
        slept = [sum(t["wakeups"] for t in machine.difference(before, machine.threads(pid)).values())
                 for pid, before in zip(self.pids, self.before)]
        memory = sum(machine.rss(pid) for pid in self.pids)
        spent = [max(0, ns - end) for ns, end in zip(self.spend(), self.ending)]
        said = self.read()
        taken = said.get("lines", said.get("samples"))
        occurred = max(taken, n_calls + n_stops)
        return {"occurred": occurred, "taken": taken, "lost": occurred - taken, "cpu_ns": sum(spent),
                "parts": dict(zip(self.names, spent)), "wakeups": dict(zip(self.names, slept)), "rss": memory,
                **said}

    def read(self):
        return self.readers[0].finish()

    def kill(self):
        for process in self.processes:
            if process.returncode is None:
                process.kill()
                with contextlib.suppress(ChildProcessError):
                    process.wait()
            process.stdout.close()


@functools.lru_cache(maxsize=None)
def ending(kind):
    """ns of CPU that each process of this kind of consumer spends at its end: the median of some."""
    ends = []
    for _ in range(N_ENDINGS):
        with measure.Flood(1, 0.1, perfd.online_cpus()[-1]) as flood, kind([flood], is_ending=True) as perf:
            ends.append(perf.spend())
            perf.read()
    return [statistics.median(of_process) for of_process in zip(*ends)]


class PerfAll(Perf):
    """perf record -a, in rings of the size that perfd's have now."""

    def traced(self):
        return ["--filter", f"common_pid == {self.floods[0].pid}", "-m", "4M", "-a"]


class PerfScript(Perf):
    """perf record -o - | perf script -i -: text, whose lines are counted."""

    reader_kind = "lines"

    def add_others(self):
        self.add(["perf", "script", "-i", "-"])


class Remote:
    """The other side of an ssh as a reader: sshd, and what it has started."""

    def __init__(self, host):
        self.process = host.process

    def spent(self):
        return sum(machine.cpu_time(pid) for pid in (self.process.pid, *machine.children(self.process.pid)))


class PerfSsh(Perf):
    """perf record -o - | ssh localhost 'cat >/dev/null', but that the cat counts, by a sshd of its own."""

    names = ("record", "ssh")

    def add_others(self):
        host = self.stack.enter_context(test_remote.Host())
        self.add(["ssh", "-F", host.at("ssh_config"), "web1", f"exec {measure.DISCARD} perf"])
        perfd.wait_until(lambda: any(machine.name(pid) == "discard" for pid in machine.children(host.process.pid)), "ssh to connect")
        self.remote = Remote(host)

    def end_pipe(self):
        self.readers = (self.remote,)

    def read(self):
        return json.load(self.processes[-1].stdout)


class PerfFile(Perf):
    """perf record to a file, whose samples are counted afterwards."""

    def start(self):
        folder = self.stack.enter_context(tempfile.TemporaryDirectory(prefix="perfd-live."))
        self.output = os.path.join(folder, "perf.data")
        super().start()

    def end_pipe(self):
        pass

    def read(self):
        with contextlib.closing(measure.Reader("perf", open(self.output, "rb"))) as reader:
            return reader.finish()


class PerfTrace(measure.Consumer):
    """perf trace: text for each call, of its entry and its exit."""

    def __init__(self, floods):
        self.command = ["perf", "trace", "-m", RING, "-p", str(floods[0].pid)]

    def start(self):
        self.process = subprocess.Popen(self.command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        self.stack.callback(self.process.wait)
        self.stack.callback(self.process.kill)
        self.readers = (measure.Reader("lines", self.process.stderr),)
        self.stack.callback(self.readers[0].close)
        self.pids = (self.process.pid,)
        perfd.wait_until(lambda: machine.count_perf_events(self.process.pid) > 1, "perf trace to trace")
        machine.wait_quiet(self.pids, looks=10)
        self.before = machine.threads(self.process.pid)

    def finish(self, n_calls, n_stops):
        spent = machine.difference(self.before, machine.threads(self.process.pid))
        ns = measure.interrupt(self.process) - measure.cpu_ns(self.before)
        return measure.text_result(spent, ns, self.readers[0].finish(), n_calls)
