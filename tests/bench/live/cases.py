"""What is measured, and what it is to reach: one row of these tables is one row of the result."""
import functools

import bare
import goals
import measure
import served
from subscriber import pb

PACED = (100_000, 300_000, 1_000_000)
FLAT_OUT = 0
ALL = (*PACED, FLAT_OUT)
BOTH = (100_000, 1_000_000)
WHERE = "id == 110 && args[0] == 7"  # getppid on x86-64, and one in a hundred of flood.c
SOCKET, COPY, TIME = "bare-socket", "bare-copy", "time"


class Case:
    def __init__(self, name, text, consumer, rates=ALL, goals=()):  # pylint: disable=redefined-outer-name
        self.name, self.text, self.consumer, self.rates, self.goals = name, text, consumer, rates, goals

    def run(self, rate, seconds, cpu):
        return measure.run(self.consumer, rate, seconds, cpu)

    def needs(self):
        """The names of the cases that its goals compare it with."""
        return [goal.beside for goal in self.goals if goal.beside]


def loop(kind):
    return functools.partial(bare.Bare, kind=kind)


def perfd(*subscriptions, **more):
    return functools.partial(served.Served, subscriptions=subscriptions, **more)


def times(beside, at_1m, at_100k):
    return goals.Times(beside, {1_000_000: at_1m, 100_000: at_100k})


NO_LOSS = goals.NoLoss(FLAT_OUT)

CASES = [
    Case("nobody", "not traced", measure.Nobody),
    Case("bare-tail", "advance data_tail", loop("tail")),
    Case(COPY, "copy to 64 KiB blocks, drop", loop("copy")),
    Case(SOCKET, "copy, write to a socket", loop("socket")),
    Case("bare-encode", "encode fields, write to a socket", loop("encode")),
    Case("bare-threads", "copy, hand over, write", loop("threads")),
    Case("raw", "perfd: raw, order of each CPU", perfd(served.by_cpu(pb.PAYLOAD_RAW)), goals=[times(SOCKET, 1.5, 2)]),
    Case("fields", "perfd: fields, order of each CPU", perfd(served.by_cpu()), goals=[times(SOCKET, 2, 2.5), NO_LOSS]),
    Case(TIME, "perfd: fields, order of time", perfd(served.fields()), goals=[times(SOCKET, 2.5, 3), NO_LOSS]),
    Case("where", "perfd: predicate, 1 % passes", perfd(served.fields(where=WHERE)), goals=[times(COPY, 1, 2)]),
]
