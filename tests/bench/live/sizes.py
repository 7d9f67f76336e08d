"""What the traced program pays: bytes of a record in the ring, and its own CPU for an occurrence, beside perf record with the same
content. A tracepoint, and a page fault as the software event whose samples perfd tells apart by what they read."""
import contextlib
import os
import signal
import statistics
import subprocess
import tempfile

import machine
import measure
import perfd
from subscriber import pb

NAME = "sizes"
RING, PERF_RING = 256 << 10, "2M"
TIMES = 3
N_OCCURRENCES = 10_000
FIRE = os.path.join(perfd.BUILD, "tests", "integration", "fire")
# the event, the word that `fire` is told, perf's options for the same content: the address is -d
CONTENTS = ((measure.EVENT, "syscalls", ()), ("page-faults", "faults", ("-c", "1", "-d")))


class Fire(perfd.Line):
    """fire.c on the last CPU: one ring."""

    def __init__(self):
        super().__init__([FIRE])
        self.pid = int(self.hear()[1])
        os.sched_setaffinity(self.pid, {perfd.online_cpus()[-1]})

    def make(self, word, n):
        """ns of its CPU for each of n."""
        before = machine.cpu_time(self.pid)
        self.say(f"{word} {n}")
        perfd.equal(self.hear()[0], "done", "the last word of what is traced")
        return (machine.cpu_time(self.pid) - before) / n


@contextlib.contextmanager
def traced(event, pid, config="version: 1\n"):
    with perfd.Daemon(config=config) as daemon, daemon.client() as client:
        perfd.add(client, {"event": event, "name": "it", "target": pb.Target(pids=[pid])})
        machine.wait_quiet((daemon.pid,))
        yield daemon, client


def bytes_of_perfd(event, word):
    """While perfd stands still its ring fills up: it holds what is not lost. Some other records are in it, of processes that come and
    go, and of what the program does behind its answer: the nearest size that a record, of whole words, can have."""
    held = []
    for _ in range(TIMES):
        with Fire() as fire, traced(event, fire.pid, f"version: 1\nrings: {{ size: {RING} }}\n") as (daemon, client):
            os.kill(daemon.pid, signal.SIGSTOP)
            try:
                perfd.wait_until(lambda pid=daemon.pid: machine.states(pid) == {"T"}, "all threads of perfd to stop")
                fire.make(word, RING // 32)
            finally:
                os.kill(daemon.pid, signal.SIGCONT)
            rows = client.request(ledger=pb.LedgerRequest(events=["it"])).ledger.events
            held.append(sum(row.occurred - sum(loss.count for loss in row.lost) for row in rows))
    return round(RING / max(held) / 8) * 8


@contextlib.contextmanager
def recorded(event, options, *what):
    """perf record of `what`, from when its ring is there; the path of its file."""
    with tempfile.TemporaryDirectory(prefix="perfd-live.") as folder:
        output = os.path.join(folder, "perf.data")
        with subprocess.Popen(["perf", "record", "-q", "-B", "-N", "-m", PERF_RING, "-o", output, "-e", event, *options, *what],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                yield process, output
            finally:
                process.send_signal(signal.SIGINT)


def bytes_of_perf(event, options):
    with recorded(event, options, "--", "true") as (process, output):
        perfd.equal(process.wait(perfd.PATIENCE), 0, "the status of perf record")
        with contextlib.closing(measure.Reader("perf", open(output, "rb"))) as reader:
            said = reader.finish()
    return said["sample_bytes"] // max(1, said["samples"])


def cpu_beside_perf(event, word, options):
    """What an occurrence costs the program itself with perfd, as a ratio to perf record in turns: the median."""
    ratios = []
    for _ in range(TIMES):
        with Fire() as fire, traced(event, fire.pid):
            ours = fire.make(word, N_OCCURRENCES)
        with Fire() as fire, recorded(event, options, "-p", str(fire.pid)) as (process, _):
            perfd.wait_until(lambda pid=process.pid: machine.count_perf_events(pid) > 0, "perf record to trace")
            machine.wait_quiet((process.pid,))
            theirs = fire.make(word, N_OCCURRENCES)
        ratios.append(ours / theirs)
    return statistics.median(ratios)


def run():
    """Figures as those of resting.py."""
    missing = machine.missing("perf", 1)
    if missing:
        print(f"not measured: {NAME}: {missing}")
        return []
    found = []
    for event, word, options in CONTENTS:
        theirs = bytes_of_perf(event, options)
        ours = bytes_of_perfd(event, word)
        cpu = cpu_beside_perf(event, word, options)
        found += [{"text": f"bytes of a sample of {event}, of perf record {theirs}", "value": ours, "limit": theirs,
                   "reached": ours <= theirs},
                  {"text": f"CPU of an occurrence of {event} in the traced program, as a multiple of perf record's", "value": cpu,
                   "limit": 1, "reached": cpu <= 1}]
    return found
