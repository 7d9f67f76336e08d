"""One measurement: a flood, traced by one consumer."""
import contextlib
import json
import os
import select
import signal
import subprocess
import time

import host
import machine
import perfd

EVENT = "raw_syscalls:sys_enter"
HERE = os.path.join(perfd.BUILD, "tests", "bench", "live")
ENDING = 5  # seconds
DISCARD = os.path.join(HERE, "discard")
NOTHING = "nothing"  # instead of a rate: the process that is traced never runs
SETTLING = 0.5  # seconds: a reader looks ever more seldom, up to each 128 ms


class Flood(perfd.Line):
    """flood.c on one CPU: .pid is stopped before begin(), and again behind end(), which gives (calls, ns in calls, ns of CPU)."""

    n_stops = 1  # kill(2)s by which it stops itself, and which are traced

    def __init__(self, rate, seconds, cpu):
        super().__init__([os.path.join(HERE, "flood"), str(seconds), str(rate), str(cpu)])
        self.seconds, self.cpu = seconds, cpu
        word, pid = self.hear()
        perfd.equal(word, "ready", "the first word of the flood")
        self.pid = int(pid)

    def begin(self):
        self.before = machine.cpu_time(self.pid)
        self.say("go")

    def end(self):
        word, calls, busy = self.hear(self.seconds + perfd.PATIENCE)
        perfd.equal(word, "done", "the last word of the flood")
        return int(calls), int(busy), machine.cpu_time(self.pid) - self.before

    def exit(self):
        self.say("exit")
        perfd.equal(self.process.wait(perfd.PATIENCE), 0, "the status of the flood")


class Nothing(Flood):
    """The same process, which stays stopped all the time."""

    n_stops = 0

    def __init__(self, seconds, cpu):
        super().__init__(0, seconds, cpu)

    def begin(self):
        pass

    def end(self):
        select.select([], [], [], self.seconds)
        return 0, 0, 0

    def exit(self):
        pass  # it is killed, without a call


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
    """Who traces the processes of floods: use it in a `with`, from before they run.

    .pids are its processes, quiet when all is done, and .linger seconds pass before, in which it may leave something unread;
    .watched are the processes whose threads are seen while the floods run, and whose readers' are, by their names: [(name,
    pid)], where a name of None is that of each thread; finish(n_calls, n_stops) gives

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

    pids, readers, linger, watched = (), (), 0, ()

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

    def look(self):
        """{name: {cpu_ns, wakeups}} of the watched so far."""
        return {**{name: thread for own, pid in self.watched if own is None for name, thread in machine.threads(pid).items()},
                **{own: machine.together(machine.threads(pid)) for own, pid in self.watched if own is not None}}

    def finish(self, n_calls, n_stops):
        return {"occurred": n_calls + n_stops, "taken": n_calls + n_stops, "lost": 0, "cpu_ns": 0, "parts": {}, "wakeups": {}}


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

    def __init__(self, floods):
        pass


def watch(c, floods):
    """Runs them; what they said, and what each watched thread did in a second of it: {name: {cpu_ns, wakeups}}."""
    began, before = time.monotonic(), c.look()
    for flood in floods:
        flood.begin()
    said = [flood.end() for flood in floods]
    took, after = time.monotonic() - began, c.look()
    return said, {name: {key: n / took for key, n in thread.items()} for name, thread in machine.difference(before, after).items()}


def run(consumer, rate, seconds, cpus, fifo=None):
    """
    A flood on each of these CPUs, whose events consumer(floods) takes; what its finish() gave, and what the traced programs felt
    of it. fifo: their real-time priority.
    """
    with contextlib.ExitStack() as stack:
        floods = [stack.enter_context(Nothing(seconds, cpu) if rate == NOTHING else Flood(rate, seconds, cpu)) for cpu in cpus]
        c = stack.enter_context(consumer(floods))
        for flood in floods if fifo is not None else ():
            os.sched_setscheduler(flood.pid, os.SCHED_FIFO, os.sched_param(fifo))
        select.select([], [], [], SETTLING if rate == NOTHING else 0)
        before, stolen = sum(reader.spent() for reader in c.readers), host.stolen()
        said, load = watch(c, floods)
        stolen = host.stolen() - stolen
        select.select([], [], [], c.linger)
        machine.wait_quiet(c.pids)
        reader_ns = sum(reader.spent() for reader in c.readers) - before
        n_calls, busy, own = (sum(column) for column in zip(*said))
        found = c.finish(n_calls, sum(flood.n_stops for flood in floods))
        for flood in floods:
            flood.exit()
    return {**found, "load": load, "reader_ns": reader_ns, "calls": n_calls, "call_ns": busy / max(1, n_calls),
            "call_cpu_ns": own / max(1, n_calls), "calls_per_second": n_calls / len(floods) / seconds, "stolen_ns": stolen}
