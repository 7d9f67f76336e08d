#!/usr/bin/python3
"""Thousands of subscriptions that all differ: each gets exactly what it asked for, whoever comes and goes. Needs root."""
import collections
import mmap
import os
import random
import resource
import sys
import time

import perfd
from perfd import Daemon, add, check, equal, pb, refused
from stream_ledger import check_ledger

MOST = 4096  # SUBSCRIPTIONS_MAX
SLOW = perfd.SANITIZER != "none"
QUEUE = 64 << 10
CONFIG = """version: 1
subscribers: {{max: {most}}}
connections: {{max: 10000, per-uid: 10000}}
"""
EVENTS = ("syscalls:sys_enter_lseek", "syscalls:sys_exit_lseek", "raw_syscalls:sys_enter", "raw_syscalls:sys_exit")
FIELDS = {"syscalls:sys_enter_lseek": "offset", "syscalls:sys_exit_lseek": "ret",
          "raw_syscalls:sys_enter": "args[1]", "raw_syscalls:sys_exit": "ret"}
TURNS = 200  # of a seeker, for each word
BASE = 1 << 40  # of offsets: no other call has such an argument, or gives such a number

# Moves to one offset after the other: those of a list, or from one on until a word comes; or so many for each word until "stop",
# so that there are never more than queues have places for, as long as a test may take.
SEEKER = f"""
import os, select, sys
fd = os.memfd_create("seeker")
print("ready", flush=True)
sys.stdin.readline()
offset, how = int(sys.argv[1]), sys.argv[2]
if how == "list":
    for offset, times in (map(int, word.split(":")) for word in sys.stdin.readline().split()):
        for _ in range(times):
            os.lseek(fd, offset, os.SEEK_SET)
else:
    while sys.stdin.readline() != "stop\\n" if how == "turns" else not select.select([sys.stdin], [], [], 0.001)[0]:
        for _ in range({TURNS} if how == "turns" else 20):
            os.lseek(fd, offset, os.SEEK_SET)
            offset += 1
    print(offset, flush=True)
sys.stdin.readline()
"""


class Seeker(perfd.Line):
    """A process that moves in a file to offsets that are known; .pid is traced."""

    def __init__(self, *arguments):
        super().__init__([sys.executable, "-c", SEEKER, *map(str, arguments)])
        self.pid = self.process.pid
        equal(self.hear(), ["ready"], "the first word of the seeker")


def many_files():
    """For both ends of thousands of streams."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    check(most > 4 * MOST, f"a limit of {most} files")


def subscribe(daemon, **subscription):
    client = daemon.client(stream=True)
    return client, client.subscribe(queue_bytes=QUEUE, **subscription)


def finish(client, items):
    """All that came, in what subscriber.py has checked with the closing ledger."""
    client.stop()
    found = list(items)
    client.socket.close()
    return found


def balanced(daemon):
    check_ledger(daemon.ledger())


def test_distinct():
    """Each of them wants something else of one of four events, in either order: exact counts, and no other one."""
    many_files()
    n = 600 if SLOW else MOST
    with Daemon(CONFIG.format(most=MOST + 1)) as daemon, daemon.client() as control, Seeker(0, "list") as seeker:
        add(control, *({"event": event, "target": pb.Target(pids=[seeker.pid])} for event in EVENTS))
        streams, slowest = [], 0
        for i in range(n):
            begin = time.monotonic()
            event = EVENTS[i % len(EVENTS)]
            streams.append(subscribe(daemon, events=[event], where=f"{FIELDS[event]} == {BASE + i // len(EVENTS)}",
                                     order=i // len(EVENTS) % 2, payload=pb.PAYLOAD_FIELDS))
            slowest = max(slowest, time.monotonic() - begin)
        if n == MOST:
            with daemon.client(stream=True) as one_more:
                no = refused(one_more, "too-many-subscribers", "STATUS_EXHAUSTED",
                             subscribe=pb.SubscribeRequest(events=[EVENTS[0]]))
                check(f"{MOST} different subscriptions" in no.message, no.message)
            with daemon.client(stream=True) as equal_one:  # which shares, and is not one more
                equal_one.subscribe(events=[EVENTS[0]], where=f"{FIELDS[EVENTS[0]]} == {BASE}", queue_bytes=QUEUE)
        print(f"  {n} subscriptions, the slowest took {slowest * 1000:.1f} ms, perfd holds {daemon.rss() >> 20} MiB")
        times = {BASE + k: 1 + k % 5 for k in range(n // len(EVENTS))}
        order = [*times]
        random.Random(11).shuffle(order)
        seeker.say("go")
        seeker.say(" ".join(f"{offset}:{times[offset]}" for offset in order))
        seeker.say("end")
        equal(seeker.process.wait(perfd.PATIENCE), 0, "the status of the seeker")
        balanced(daemon)
        for i, (client, items) in enumerate(streams):
            event, offset = EVENTS[i % len(EVENTS)], BASE + i // len(EVENTS)
            found = finish(client, items)
            equal([item["event"] for item in found], [event] * times[offset], f"what subscription {i} got")
            field = FIELDS[event].split("[")[0]
            values = {item["fields"][field][1] if "args" in FIELDS[event] else item["fields"][field] for item in found}
            equal(values, {offset}, f"what subscription {i} got")
            if i % 100 == 0:
                rows = [row for row in client.end["ledger"] if row["kind"] == "subscriber"]
                equal([(row["matched"], row["sent"]) for row in rows], [(len(found), len(found))], "its row")
        perfd.wait_until(lambda: daemon.status().n_subscribers == 0, "all streams to end")
        balanced(daemon)


def test_one_sample_for_all():
    """One sample in 63 encodings for more subscriptions than a batch has entries: each gets it, and no other one."""
    many_files()
    n, event, length, times = 1700, "syscalls:sys_enter_mmap", 12345 * mmap.PAGESIZE, 3
    names = ["addr", "len", "prot", "flags", "fd", "off"]
    chosen = [{name for bit, name in enumerate(names) if 1 + i % 63 >> bit & 1} for i in range(n)]
    with Daemon(CONFIG.format(most=MOST + 1)) as daemon, daemon.client() as control:
        add(control, {"event": event, "target": pb.Target(pids=[os.getpid()])},
            {"event": "external:one", "fields": [pb.ExternalField(name=name, type="u64") for name in names]})
        streams = [subscribe(daemon, events=[event, "external:one"], where=f"len == {length} && off != {i + 1}", order=i % 2,
                             payload=pb.PAYLOAD_FIELDS, fields=sorted(chosen[i])) for i in range(n)]
        for _ in range(times):
            mmap.mmap(-1, length).close()
        values = [pb.ExternalValue(number=length if name == "len" else 0) for name in names]
        one = pb.ExternalSample(event="external:one", time=time.monotonic_ns() + 10 ** 9, tid=7, values=values)
        reply = control.request(emit=pb.EmitRequest(samples=[one])).emitted
        equal((reply.taken, reply.late, reply.lost), (1, 0, 0), "what is emitted")
        lost = {count.reason for row in daemon.ledger().events for count in row.lost if count.count}
        equal(lost - {"kernel_unwritten"}, set(), "losses")
        print(f"  {n} subscriptions, perfd holds {daemon.rss() >> 20} MiB")
        for i, (client, items) in enumerate(streams):
            found = [(item["event"], set(item["fields"])) for item in finish(client, items)]
            if i % 2 == pb.ORDER_CPU:  # what is emitted has a batch of its own, which no CPU's waits for
                found.sort(key=lambda item: item[0] != event)
            equal(found, [(event, chosen[i])] * times + [("external:one", chosen[i])], f"what subscription {i} got")
        perfd.wait_until(lambda: daemon.status().n_subscribers == 0, "all streams to end")
        balanced(daemon)


def check_progress(found, order, step, rest, until):
    """Each of its turns, without a hole, from some on, until the end if it stayed so long. By CPU in the order of each CPU: the seeker
    may have moved."""
    offsets = [item["fields"]["offset"] for item in found]
    if order == pb.ORDER_CPU:
        for cpu in {item["cpu"] for item in found}:
            of_cpu = [item["fields"]["offset"] for item in found if item["cpu"] == cpu]
            equal(of_cpu, sorted(of_cpu), f"one turn behind the other on CPU {cpu}")
        offsets.sort()
    equal([o for o in offsets if (o - BASE) % step != rest], [], "what others wanted")
    equal(offsets, [*range(offsets[0], offsets[0] + step * len(offsets), step)] if offsets else [], "one turn behind the other")
    if until is not None and offsets:
        check(offsets[-1] + step >= until, f"the last one is {offsets[-1]}, of {until}")


def test_come_and_go():
    """While samples flow: subscriptions of all groups end and others begin with their numbers, and nobody has a hole."""
    many_files()
    n, step = (200, 256) if SLOW else (900, 1024)
    dice = random.Random(64)
    event = "syscalls:sys_enter_lseek"
    with Daemon(CONFIG.format(most=MOST)) as daemon, daemon.client() as control, Seeker(BASE, "turns") as seeker:
        add(control, {"event": event, "target": pb.Target(pids=[seeker.pid])})
        live, rounds = {}, collections.Counter()

        def begin(rest):
            rounds[rest] += 1  # which is in the condition, so that each time it is another one
            order = dice.randrange(2)
            live[rest] = *subscribe(daemon, events=[event], order=order,
                                    where=f"offset & {step - 1} == {rest} && offset >= {rounds[rest]}"), order

        for rest in range(n):
            begin(rest)
        seeker.say("begin")
        for _ in range(100 if SLOW else 400):
            seeker.say("go on")
            rest = dice.randrange(n)
            client, items, order = live.pop(rest)
            check_progress(finish(client, items), order, step, rest, None)
            begin(rest)
        seeker.say("stop")
        last = int(seeker.hear()[0])
        seeker.say("end")
        equal(seeker.process.wait(perfd.PATIENCE), 0, "the status of the seeker")
        total = 0
        for rest, (client, items, order) in live.items():
            found = finish(client, items)
            check_progress(found, order, step, rest, last)
            total += len(found)
        print(f"  {last - BASE} samples, {sum(rounds.values())} subscriptions, {total} items of those that stayed")
        perfd.wait_until(lambda: daemon.status().n_subscribers == 0, "all streams to end")
        balanced(daemon)


def test_charged():
    """What a subscription holds for each event that it selects counts for its uid, until it ends."""
    config = CONFIG.format(most=100).replace("max: 100}", "max: 100, memory-per-uid: 8MiB}")
    with Daemon(config) as daemon, daemon.client() as control:
        for first in range(0, 1000, 100):
            add(control, *({"event": f"external:e{i}", "fields": [pb.ExternalField(name="v", type="u64")]}
                           for i in range(first, first + 100)))
        for _ in range(3):
            streams, no = [], None
            while not no:
                client = daemon.client(stream=True)
                try:
                    streams.append((client, client.subscribe(where=f"v == {len(streams)}", queue_bytes=QUEUE)))
                except perfd.Refused as refusal:
                    no = refusal.response
                    client.socket.close()
            equal((no.reason, pb.Status.Name(no.status)), ("queue-memory", "STATUS_EXHAUSTED"), no.message)
            equal(len(streams), 7, "subscriptions of 1,000 events each, of 1 KiB and 72 KiB beside, that 8 MiB are enough for")
            subscribe(daemon, events=["external:e1"], where="v == 1")[0].socket.close()
            for stream in streams:
                equal(finish(*stream), [], "what nobody emits")
            perfd.wait_until(lambda: daemon.status().n_subscribers == 0, "all streams to end")


def test_charged_for_conditions():
    """A long condition takes more for each event, and as much more is charged: 8 MiB are soon used up, and perfd stays small."""
    config = CONFIG.format(most=100).replace("max: 100}", "max: 100, memory-per-uid: 8MiB}")
    with Daemon(config) as daemon, daemon.client() as control:
        add(control, *({"event": f"external:e{i}", "fields": [pb.ExternalField(name="v", type="text")]} for i in range(100)))
        streams, no, before = [], None, daemon.rss()
        while not no:
            client = daemon.client(stream=True)
            try:
                pattern = "*".join("abcdefghij" * 60)
                streams.append((client, client.subscribe(where=f'v ~ "{pattern}*{len(streams)}"', queue_bytes=QUEUE)))
            except perfd.Refused as refusal:
                no = refusal.response
                client.socket.close()
        equal((no.reason, pb.Status.Name(no.status)), ("queue-memory", "STATUS_EXHAUSTED"), no.message)
        check(len(streams) <= 8, f"{len(streams)} subscriptions of 100 events, of some 12 KiB each")
        print(f"  {len(streams)} subscriptions, {(daemon.rss() - before) >> 10} KiB")
        for stream in streams:
            equal(finish(*stream), [], "what nobody emits")


def test_removed_before():
    """Who subscribes as somebody else did gets no samples of an event that was removed before, which it was never told of."""
    event, other = "syscalls:sys_enter_lseek", "syscalls:sys_exit_lseek"
    wishes = {"where": "pid > 1", "payload": pb.PAYLOAD_FIELDS}
    with Daemon(CONFIG.format(most=100)) as daemon, daemon.client() as control, Seeker(BASE, "flow") as seeker:
        target = pb.Target(pids=[seeker.pid])
        # samples of clients are waited for, so that others are on their way for a while
        add(control, {"event": other, "target": target}, {"event": "external:seldom", "fields": [pb.ExternalField(name="n", type="u8")]})
        seeker.say("go")
        for i in range(20 if SLOW else 100):
            add(control, {"event": event, "target": target})
            first = subscribe(daemon, order=pb.ORDER_TIME, **wishes)
            # behind all that happened until now, and the stream began before: what is delivered after is in it
            before = sum(row.occurred for row in daemon.ledger(event).events)
            perfd.wait_until(lambda: sum(row.delivered for row in daemon.ledger(event).events) > before, "samples")
            control.request(remove=pb.SelectRequest(names=[event]))
            second = subscribe(daemon, order=i % 2, **wishes)
            found = finish(*first)
            check(any(item["event"] == event for item in found), "what is on its way comes to who was there before")
            equal({item["event"] for item in finish(*second)} - {other}, set(), "what comes to who was not")
            equal(second[0].stream.removed, set(), "events that it hears to be removed")
        seeker.say("stop")
        seeker.hear()
        seeker.say("end")
        equal(seeker.process.wait(perfd.PATIENCE), 0, "the status of the seeker")
        perfd.wait_until(lambda: daemon.status().n_subscribers == 0, "all streams to end")
        balanced(daemon)


if __name__ == "__main__":
    perfd.need_root()
    perfd.main(globals())
