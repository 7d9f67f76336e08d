"""What is measured, and what it is to reach: one row of these tables is one row of the result."""
import functools

import bare
import machine
import measure
import perf_tools
import relayed
import served
import tracers
from goals import UNLIMITED, CallTime, Figure, More, NoLoss, Times, TimesBoth, TimesPerByte
from subscriber import pb

FLAT_OUT = 0
IDLE = (measure.NOTHING, 10)
IDLE_SECONDS = 3  # at least, so that a latency of a second comes round
QUIET = (1_000, 10_000)  # most hosts
PACED = (100_000, 300_000, 1_000_000)
ALL = (*PACED, FLAT_OUT)
EVERY = (*IDLE, *QUIET, *ALL)
SELDOM = (*IDLE, *QUIET, 100_000)
ON_TWO = (10, *QUIET, 100_000)  # a second, on each of two CPUs
BOTH = (100_000, 1_000_000)
QUICK = (*BOTH, FLAT_OUT)
REAL_TIME = (300_000, 1_000_000)
WHERE = "id == 110 && args[0] == 7"  # getppid on x86-64, and one in a hundred of flood.c
SOCKET, COPY, TIME, PERF, BY_SOCKET = "bare-socket", "bare-copy", "time", "perf-record", "time-socket"
PERF_FILE = "perf-file"
COPIED, PERF_SSH, RELAY = "relay-bare", "perf-ssh", "relay"
TWO = "-2"  # the same with a flood on each of two CPUs
TIME_WHERE = "where-time"
ENCODINGS = [served.fields(), served.fields(fields=["id"]), served.fields(payload=pb.PAYLOAD_RAW),
             served.fields(payload=pb.PAYLOAD_BOTH)]


class Case:
    """program: another one, which it measures; missing: why that is not possible here; quick: part of --quick; fifo: the
    real-time priority of what is traced; n_floods: on so many CPUs, the last ones."""

    def __init__(self, name, text, consumer, rates=ALL, goals=(), program=None, quick=False, fifo=None, n_floods=1):
        self.name, self.text, self.consumer, self.rates, self.goals = name, text, consumer, rates, goals
        self.program, self.missing, self.quick, self.fifo = program, machine.missing(program, n_floods), quick, fifo
        self.n_floods = n_floods

    def run(self, rate, seconds, cpus):
        if rate in IDLE:
            seconds = max(seconds, IDLE_SECONDS)
        return measure.run(self.consumer, rate, seconds, cpus[-self.n_floods:], self.fifo)

    def tables(self, rate):
        """In which it is a row: what it costs; how much it wakes."""
        is_load = rate in IDLE or self.n_floods > 1
        return [*["costs"] * (not is_load), *["loads"] * (is_load or (rate in SELDOM and IDLE[0] in self.rates))]

    def needs(self, rate=None):
        """The names of the cases that its goals compare it with, at this rate."""
        return [goal.beside for goal in self.goals if goal.beside and (rate is None or goal.limit(rate) is not None)]


def loop(kind, tick=0):
    return functools.partial(bare.Bare, kind=kind, tick=tick)


def perfd(*subscriptions, **more):
    return functools.partial(served.Served, subscriptions=subscriptions, **more)


def by_tls(latency):
    """Whose reader looks at the clock."""
    return functools.partial(relayed.Relayed, latency=latency, kind="latency")


def decoded(latency, *columns):
    return functools.partial(served.Decoded, latency=latency, columns=columns)


def at(m1, k100):
    """Limits at 1 M and 100 k events a second."""
    return {1_000_000: m1, 100_000: k100}


def never(n):
    """As many predicates on two fields, all different, that let nothing pass."""
    return [served.fields(where=f"id == 110 && args[0] == {1000 + i}", queue_bytes=1 << 20) for i in range(n)]


def silent(n):
    """As many events, enabled on each CPU and in its ring, that no x86 ever has."""
    return [{"event": "alignment-faults", "name": f"silent-{i}", "period": 1} for i in range(n)]


MS = 1_000_000
LATENCY = (("1ms", MS), ("3ms", 3 * MS), ("20ms", 20 * MS), ("100ms", 100 * MS), ("1s", 1000 * MS))
FLAT_OUT_GOALS = [NoLoss(FLAT_OUT), CallTime({FLAT_OUT: 1}, PERF)]
DECODED_GOALS = [TimesBoth({1_000: 1, 10_000: 1}, PERF), TimesBoth({100_000: 1}, PERF_FILE),
                 TimesBoth({100_000: 1, 1_000_000: 1, FLAT_OUT: 1}, SOCKET)]

# In the order of the tables; those that are compared with the same one are also measured in this order.
COSTS = [
    Case("nobody", "not traced", measure.Nobody),
    Case("bare-tail", "advance data_tail", loop("tail")),
    Case(COPY, "copy to 64 KiB blocks, drop", loop("copy"), quick=True),
    Case(SOCKET, "copy, write to a socket", loop("socket"), EVERY, quick=True),
    Case("bare-encode", "encode fields, write to a socket", loop("encode")),
    Case("bare-threads", "copy, hand over, write", loop("threads")),
    Case(PERF, "perf record -o -", perf_tools.Perf, EVERY, program="perf", quick=True),
    Case(PERF_FILE, "perf record", perf_tools.PerfFile, EVERY, program="perf"),
    Case("perf-script", "perf record -o - | perf script", perf_tools.PerfScript, BOTH, program="perf"),
    Case("perf-trace", "perf trace", perf_tools.PerfTrace, BOTH, program="perf"),
    Case("trace-cmd-record", "trace-cmd record", functools.partial(tracers.TraceCmd, kind="record"),
         program="trace-cmd"),
    Case("trace-cmd-stream", "trace-cmd stream", functools.partial(tracers.TraceCmd, kind="stream"), BOTH,
         program="trace-cmd"),
    Case("bpftrace", "bpftrace, printf", tracers.BpfTrace, BOTH, program="bpftrace"),
    Case("raw", "perfd: raw, order of each CPU", perfd(served.by_cpu(pb.PAYLOAD_RAW)), quick=True,
         goals=[Times(at(1.5, 2), SOCKET)]),
    Case("fields", "perfd: fields, order of each CPU", perfd(served.by_cpu()), quick=True,
         goals=[Times(at(2, 2.5), SOCKET), *FLAT_OUT_GOALS]),
    Case(TIME, "perfd: fields, order of time", perfd(served.fields()), quick=True,
         goals=[Times(at(2.5, 3), SOCKET), *FLAT_OUT_GOALS]),
    Case("decoded", "perfd: a subscriber by libperfd that reads every field, in the order of time", decoded(0), EVERY,
         quick=True, goals=DECODED_GOALS),
    Case("columns", "the same by columns of batches", decoded(0, "id", "args"), EVERY, goals=DECODED_GOALS),
    *[Case(f"bare-socket-{text}", f"copy, write to a socket, each {text}", loop("socket", ns), SELDOM) for text, ns in LATENCY],
    *[Case(f"decoded-{text}", f"perfd, libperfd that reads every field, with a latency of {text}", decoded(ns), SELDOM)
      for text, ns in LATENCY],
    Case(SOCKET + TWO, "copy, write to a socket, one loop for each of two CPUs", loop("socket"), ON_TWO, n_floods=2),
    Case(PERF + TWO, "perf record -o -, two CPUs", perf_tools.Perf, ON_TWO, program="perf", n_floods=2),
    Case(PERF_FILE + TWO, "perf record, two CPUs", perf_tools.PerfFile, ON_TWO, program="perf", n_floods=2),
    Case("decoded" + TWO, "perfd, libperfd that reads every field, two CPUs", decoded(0), ON_TWO, n_floods=2,
         goals=[TimesBoth({1_000: 1, 10_000: 1}, PERF + TWO), TimesBoth({100_000: 1}, PERF_FILE + TWO),
                TimesBoth({100_000: 1}, SOCKET + TWO)]),
    Case("elsewhere", "perfd: fields, order of each CPU, read from another CPU", perfd(served.by_cpu(), elsewhere=True),
         goals=FLAT_OUT_GOALS),
    Case("fifo-perf-record", "perf record -a -o -, of a program at FIFO 50, which no reader of its CPU can interrupt",
         perf_tools.PerfAll, REAL_TIME, program="perf", fifo=50),
    Case("fifo-time", "perfd: fields, order of time, of a program at FIFO 50", perfd(served.fields()), REAL_TIME, fifo=50,
         goals=[NoLoss(REAL_TIME[0])]),
    Case("where", "perfd: a predicate on two fields, 1 % passes, order of each CPU", perfd(served.by_cpu(where=WHERE)),
         quick=True, goals=[Times(at(1, 2), COPY)]),
    Case(TIME_WHERE, "perfd: a predicate on two fields, 1 % passes, order of time", perfd(served.fields(where=WHERE)),
         goals=[Times(at(1, 2), COPY)]),
    Case("events-1000", "perfd: 999 more events in the ring", perfd(served.fields(), events=silent(999)), BOTH,
         goals=[Times(at(1.1, 1.1), TIME)]),
    Case("subscribers-2", "perfd: 2 subscribers, same encoding", perfd(*2 * [served.fields()]), BOTH,
         goals=[More(at(15, 30), TIME, 1, "subscriber")]),
    Case("subscribers-4", "perfd: 4 subscribers, same encoding", perfd(*4 * [served.fields()]), BOTH, quick=True,
         goals=[More(at(15, 30), TIME, 3, "subscriber")]),
    Case(BY_SOCKET, "perfd: fields, order of time, by socket", perfd(served.by_socket(served.fields())),
         goals=[Times(at(2.5, 3), SOCKET)]),
    Case("subscribers-4-socket", "perfd: 4 subscribers, same encoding, by socket",
         perfd(*4 * [served.by_socket(served.fields())]), BOTH, goals=[More(at(15, 30), BY_SOCKET, 3, "subscriber")]),
    Case("subscribers-16", "perfd: 16 subscribers, 4 encodings", perfd(*4 * ENCODINGS), BOTH, quick=True,
         goals=[Times(at(8, 8), TIME)]),
    Case("wheres-64", "perfd: 63 more predicates, nothing passes", perfd(served.fields(where=WHERE), *never(63)), BOTH,
         goals=[More(at(UNLIMITED, UNLIMITED), TIME_WHERE, 63, "predicate")]),
    Case(PERF_SSH, "perf record -o - | ssh localhost cat, without what is behind sshd", perf_tools.PerfSsh, BOTH, program="sshd"),
    Case(COPIED, "perfd: fields, order of time, by TLS through a loop that copies", relayed.Copied, BOTH),
    Case(RELAY, "perfd and perfd-relay: fields, order of time, by TLS", relayed.Relayed, BOTH,
         goals=[TimesPerByte({1_000_000: 1.5}, COPIED), Times(at(1, 1), PERF_SSH)]),
    Case("publish", "perfd and perfd-relay: fields, order of time, published to NATS", relayed.Published, BOTH, program="nats-server",
         goals=[TimesPerByte({1_000_000: 2}, RELAY)]),
]


def timed(name, text, rate, p50, p99, quick=False, consumer=None, **subscription):
    """One subscriber whose reader looks at the clock, if there is no other consumer that does; limits in ms."""
    return Case(name, text, consumer or perfd(served.fields(**subscription), kind="latency"), (rate,), quick=quick,
                goals=[Figure({rate: p50}, "p50_ns", 1e6, "ms p50"), Figure({rate: p99}, "p99_ns", 1e6, "ms p99"),
                       Figure({rate: UNLIMITED}, "max_ns", 1e6, "ms at most"),
                       Figure({rate: UNLIMITED}, "begin_max_ns", 1e6, "ms at most where it begins, out of quiet")])


LATENCIES = [
    timed("bare-latency-10k", "a loop at the same ticks: age when it looks", 10_000, UNLIMITED, UNLIMITED, quick=True,
          consumer=loop("latency")),
    timed("bare-latency-300k", "a loop at the same ticks: age when it looks", 300_000, UNLIMITED, UNLIMITED,
          consumer=loop("latency")),
    timed("latency-10k", "perfd: latency by default, 100 ms", 10_000, UNLIMITED, 100),
    timed("latency-300k", "perfd: latency by default, 100 ms", 300_000, UNLIMITED, 100),
    timed("latency-3ms-10k", "perfd: latency of 3 ms asked for", 10_000, 2, 5, quick=True, latency=3 * MS),
    timed("latency-3ms-300k", "perfd: latency of 3 ms asked for", 300_000, UNLIMITED, 5, latency=3 * MS),
    timed("latency-relay-10k", "perfd and perfd-relay, by TLS: latency of 3 ms asked for", 10_000, UNLIMITED, 10, consumer=by_tls(3 * MS)),
    timed("latency-relay-300k", "perfd and perfd-relay, by TLS: latency of 3 ms asked for", 300_000, UNLIMITED, 10, consumer=by_tls(3 * MS)),
    timed("latency-200us", "perfd: latency of 200 us asked for", 10_000, UNLIMITED, 0.4, quick=True, latency=200_000),
]
