#!/usr/bin/python3
"""What perfd(8), Operation, says of sizes holds: how many samples a ring takes while its reader does not run, and how many a
queue keeps for who does not read. Needs root."""
import os
import re

import perfd
from perfd import check, equal, pb
from test_stalled import GETPPID, answers_again, call, rows, stopped

RING, QUEUE = 256 << 10, 1 << 20
QUEUED_SAMPLE = 41  # bytes of a call of getppid(2) in a queue, of which the page has this figure


def format_size(event):
    """Bytes of an event's record in tracefs: where the last of its fields of a fixed size ends."""
    with open(f"/sys/kernel/tracing/events/{event.replace(':', '/')}/format", encoding="utf-8") as f:
        return max(int(offset) + int(size) for offset, size in re.findall(r"offset:(\d+);\s*size:(\d+);", f.read()))


def sample_size(event):
    """By the formula of the page; some events of the kernel have 8 more."""
    return 32 + (4 + format_size(event) + 7) // 8 * 8


def test_ring():
    """While its reader is stopped a ring takes as many samples as the formula says, and the rest is lost and said."""
    cpu = perfd.online_cpus()[-1]
    with perfd.Daemon(config=f"version: 1\nrings: {{ size: {RING} }}\n") as daemon, daemon.client() as control:
        perfd.add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=[os.getpid()], no_inherit=True)})
        daemon.ledger()
        calls = 2 * RING // sample_size(GETPPID)
        with stopped(daemon, cpu):
            call(cpu, calls)
        answers_again(daemon)
        row = rows(daemon, "calls")[cpu]
        lost = next(count.count for count in row.lost if count.reason == "kernel_ring")
        equal((row.balanced, row.delivered + row.filtered + lost), (True, calls), f"the sum of {row}")
        least, most = RING // (sample_size(GETPPID) + 8), RING // sample_size(GETPPID)
        # a tenth: what others on this CPU do is in the ring too, as side records
        check(0.9 * least <= calls - lost <= most, f"{calls - lost} samples fit, which should be {least} to {most}")


def test_queue():
    """Who does not read has as many samples as fit in its queue; the rest is dropped, and told by a gap."""
    cpu = perfd.online_cpus()[-1]
    with perfd.Daemon(config="version: 1\n") as daemon, daemon.client() as control, daemon.client(stream=True) as client:
        perfd.add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=[os.getpid()], no_inherit=True)})
        items = client.subscribe(events=["calls"], order=pb.ORDER_CPU, queue_bytes=QUEUE, overflow=pb.OVERFLOW_DROP_NEWEST)
        calls = 3 * QUEUE // QUEUED_SAMPLE
        call(cpu, calls)
        daemon.ledger()
        client.stop()
        came = sum(1 for _ in items)
        missed = client.stream.missing_for["outbox"]
        equal(came + missed, calls, "samples that came, and that the gap tells of")
        least, most = 0.9 * QUEUE / QUEUED_SAMPLE, 2 * QUEUE / QUEUED_SAMPLE  # beside the queue there is what the socket holds
        check(least <= came <= most, f"{came} samples came, which should be {least:.0f} to {most:.0f}")


if __name__ == "__main__":
    perfd.need_root()
    perfd.main(globals())
