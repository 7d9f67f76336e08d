"""trace-cmd and bpftrace as the consumer. trace-cmd gets an instance of tracefs of its own; it also wants the files of the
function tracer, which some containers forbid: then it ends at once, and is left out."""
import contextlib
import os
import signal
import subprocess
import tempfile

import machine
import measure
import perfd

PROGRAM = 'tracepoint:raw_syscalls:sys_enter /pid == %d/ { printf("%%ld %%lx\\n", args->id, args->args[0]); }'


class Tracer(measure.Consumer):
    """A process, and its children, that print what they trace; ended by SIGINT."""

    def start(self):
        self.process = subprocess.Popen(self.command(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.stack.callback(self.kill)
        self.readers = (measure.Reader("lines", self.process.stdout),)
        self.stack.callback(self.readers[0].close)
        perfd.wait_until(self.is_tracing, f"this to trace: {' '.join(self.command())}")
        machine.wait_quiet((self.process.pid,), looks=10)
        self.pids = (self.process.pid, *machine.children(self.process.pid))
        self.before = self.look()

    def is_tracing(self):
        perfd.check(self.process.poll() is None, f"this ends at once: {' '.join(self.command())}")
        return self.is_attached()

    def look(self):
        return {f"{i} {name}": thread for i, pid in enumerate(self.pids)
                for name, thread in machine.threads(pid).items()}

    def finish(self, n_calls, n_stops):
        spent = machine.difference(self.before, self.look())
        ns = measure.interrupt(self.process) - measure.cpu_ns(self.before)
        return measure.text_result(spent, ns, self.readers[0].finish(), n_calls)

    def kill(self):
        for pid in machine.children(self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()


class BpfTrace(Tracer):
    """A line of text for each call."""

    def __init__(self, floods):
        self.pid = floods[0].pid

    def command(self):
        return ["bpftrace", "-e", PROGRAM % self.pid]

    def is_attached(self):
        n_buffers = len(perfd.online_cpus())
        return machine.count_perf_events(self.process.pid) > n_buffers  # and the probe


class TraceCmd(Tracer):
    """kind: record, to a file; stream, as text. What is lost the kernel says."""

    def __init__(self, floods, kind):
        self.pid, self.kind = floods[0].pid, kind

    def start(self):
        self.name = f"perfd-live-{os.getpid()}"
        self.instance = os.path.join(perfd.TRACING, "instances", self.name)
        self.folder = self.stack.enter_context(tempfile.TemporaryDirectory(prefix="perfd-live."))
        os.mkdir(self.instance)
        self.stack.callback(self.remove_instance)
        super().start()

    def remove_instance(self):
        """trace-cmd does so itself when nothing goes wrong; else what it left has to end first."""
        def is_gone():
            with contextlib.suppress(OSError):
                os.rmdir(self.instance)
            return not os.path.exists(self.instance)

        perfd.wait_until(is_gone, f"{self.instance} to be removed")

    def command(self):
        output = ["-o", os.path.join(self.folder, "trace.dat")] if self.kind == "record" else []
        return ["trace-cmd", self.kind, "-B", self.name, "-e", measure.EVENT, "-f", f"common_pid == {self.pid}",
                "-b", "2048", *output]

    def is_attached(self):
        with open(f"{self.instance}/events/{measure.EVENT.replace(':', '/')}/enable", encoding="ascii") as f:
            return f.read(1) == "1" and len(machine.children(self.process.pid)) >= len(perfd.online_cpus())

    def overrun(self):
        lost = 0
        for cpu in perfd.online_cpus():
            with open(f"{self.instance}/per_cpu/cpu{cpu}/stats", encoding="ascii") as f:
                counts = dict(line.strip().split(": ") for line in f)
            lost += int(counts["overrun"]) + int(counts["dropped events"])
        return lost

    def finish(self, n_calls, n_stops):
        lost = min(self.overrun(), n_calls)
        ns = measure.cpu_ns(machine.difference(self.before, self.look()))
        found = super().finish(n_calls, n_stops)
        if self.kind == "record":  # at its end it packs what it has recorded, which is not what is asked for here
            found.update(cpu_ns=ns, parts={"all": ns})
        return {**found, "lost": lost, "taken": n_calls - lost}
