"""One measurement: a flood, traced by one consumer."""
import contextlib
import json
import os
import signal
import subprocess

import host
import machine
import perfd

EVENT = "raw_syscalls:sys_enter"
HERE = os.path.join(perfd.BUILD, "tests", "bench", "live")
ENDING = 5  # seconds
DISCARD = os.path.join(HERE, "discard")


class Flood(perfd.Line):
    """flood.c: .pid is stopped before and after run(), which gives (calls, ns in calls, ns of CPU)."""

    def __init__(self, rate, seconds, cpu):
        super().__init__([os.path.join(HERE, "flood"), str(seconds), str(rate), str(cpu)])
        self.seconds = seconds
        word, pid = self.hear()
        perfd.equal(word, "ready", "the first word of the flood")
        self.pid = int(pid)

    def run(self):
        before = machine.cpu_time(self.pid)
        self.say("go")
        word, calls, busy = self.hear(self.seconds + perfd.PATIENCE)
        perfd.equal(word, "done", "the last word of the flood")
        return int(calls), int(busy), machine.cpu_time(self.pid) - before


class Reader:
    """discard.c at the end of a pipe or socket, which is closed here; what it spends is not its consumer's."""

    def __init__(self, kind, source, ring=None):
        """ring: StreamRing and its fds, which are closed here too."""
        files, fds = [], []
        if ring:
            (reply, fds) = ring
            files = [str(n) for n in (fds[0], fds[1], reply.bytes, reply.offset, *fds[2:], *[reply.pool_bytes] * len(fds[2:]))]
        self.process = subprocess.Popen([DISCARD, kind, *files], stdin=source, stdout=subprocess.PIPE, pass_fds=fds)
        source.close()
        for fd in fds:
            os.close(fd)

    def spent(self):
        """ns of its CPU so far."""
        return machine.cpu_time(self.process.pid)

    def finish(self):
        """What it says at the end of what it reads."""
        said = json.load(self.process.stdout)
        perfd.equal(self.process.wait(perfd.PATIENCE), 0, "the status of the reader")
        return said

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Consumer:
    """Who traces a process: use it in a `with`, from before the flood.

    .pids are its processes, quiet when all is done; finish(n_calls, seconds) gives

        occurred    events that there were
        taken       events that it got from the kernel and went on with
        lost        of these, and of what several readers wanted of them, what they did not get
        wanted      what `lost` is a part of, if that is not `occurred`
        reasons     {why lost: how many}, where that is known
        cpu_ns      of all its threads, but not of who reads its output: .readers
        parts       {what: ns}, of which cpu_ns is the sum
        wakeups     {what: times that it slept}
        rss         bytes without rings, where that is asked for
    """

    pids, readers = (), ()

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        with self.stack:
            self.start()
            self.stack = self.stack.pop_all()
        return self

    def __exit__(self, *_):
        self.stack.close()

    def start(self):
        pass

    def finish(self, n_calls, seconds):
        return {"occurred": n_calls + 1, "taken": n_calls + 1, "lost": 0, "cpu_ns": 0, "parts": {}, "wakeups": {}}


def interrupt(process):
    """Ends it by SIGINT; ns of CPU that it and its children have spent in all their life."""
    process.send_signal(signal.SIGINT)
    try:
        perfd.wait_until(lambda: os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT), "its end",
                         ENDING)
    except AssertionError:
        process.kill()  # bpftrace 0.17 does not always hear it; all that is asked of it has been printed
    _, process.returncode, usage = os.wait4(process.pid, 0)
    return int((usage.ru_utime + usage.ru_stime) * 1e9)


def cpu_ns(threads):
    return sum(thread["cpu_ns"] for thread in threads.values())


def text_result(spent, ns, said, n_calls):
    """Of a program that prints a line for each call, and few others."""
    taken = min(said["lines"], n_calls)
    return {"occurred": n_calls, "taken": taken, "lost": n_calls - taken, "cpu_ns": ns, "parts": {"all": ns},
            "wakeups": {"all": sum(thread["wakeups"] for thread in spent.values())}, **said}


class Nobody(Consumer):
    """Nobody traces: what a call takes then."""

    def __init__(self, pid, cpu):
        pass


def run(consumer, rate, seconds, cpu, fifo=None):
    """consumer(pid, cpu) makes it; what finish() gave, and what the traced program felt of it. fifo: its real-time priority."""
    with Flood(rate, seconds, cpu) as flood, consumer(flood.pid, cpu) as c:
        if fifo is not None:
            os.sched_setscheduler(flood.pid, os.SCHED_FIFO, os.sched_param(fifo))
        before, stolen = sum(reader.spent() for reader in c.readers), host.stolen()
        n_calls, busy, own = flood.run()
        stolen = host.stolen() - stolen
        machine.wait_quiet(c.pids)
        reader_ns = sum(reader.spent() for reader in c.readers) - before
        found = c.finish(n_calls, seconds)
        flood.say("exit")
        perfd.equal(flood.process.wait(perfd.PATIENCE), 0, "the status of the flood")
    return {**found, "reader_ns": reader_ns, "calls": n_calls, "call_ns": busy / n_calls, "call_cpu_ns": own / n_calls,
            "calls_per_second": n_calls / seconds, "stolen_ns": stolen}
