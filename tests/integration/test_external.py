#!/usr/bin/python3
"""External events in numbers that no single client of the other tests makes: many requests, long samples, more than there is
room for. Needs root."""
import contextlib
import json
import os
import select
import subprocess
import time

import perfd
from perfd import add, check, equal
from subscriber import pb
from test_operations import CPU_BOUND, others_are_served

EVENT = "external:flood"
PERFCTL = os.path.join(perfd.BUILD, "client", "perfctl", "perfctl")


def perfctl(daemon, *arguments):
    return subprocess.run([PERFCTL, "--socket", daemon.control, *arguments], capture_output=True, text=True,
                          timeout=perfd.PATIENCE, check=True).stdout


def of_event(ledger):
    row, = [row for row in ledger.events if row.name == EVENT]
    lost = {count.reason: count.count for count in row.lost if count.count}
    return row.occurred, row.delivered, row.filtered, lost, row.balanced


def sample(number, text=b"", ahead=0):
    return pb.ExternalSample(event=EVENT, time=time.monotonic_ns() + ahead, tid=7, cpu=0,
                             values=[pb.ExternalValue(number=number), pb.ExternalValue(text=text)])


def add_flood(client):
    add(client, {"event": EVENT, "fields": [pb.ExternalField(name="number", type="u64"), pb.ExternalField(name="text", type="bytes")]})


def test_many_requests():
    """20,000 requests of one sample each, as fast as they can be sent, by four clients: each sample reaches both encodings.

    They are of the near future, so that none is late however busy the machine is, and that thousands wait in the merge.
    """
    each, n_clients = 5000, 4
    with perfd.Daemon() as daemon, daemon.client() as client:
        add_flood(client)
        with perfd.Subscriber(daemon, "--payload", "both", "--queue-bytes", str(1 << 26), "--count", str(each * n_clients), EVENT) as one, \
             perfd.Subscriber(daemon, "--quiet", "--queue-bytes", str(1 << 26), "--count", str(each * n_clients), EVENT) as two:
            emitters = [daemon.client() for _ in range(n_clients)]
            replies = []
            for begin in range(0, each, 50):
                for k, emitter in enumerate(emitters):
                    for i in range(begin, begin + 50):
                        emitter.send(emit=pb.EmitRequest(samples=[sample(k * each + i, ahead=300_000_000)]))
                for emitter in emitters:
                    replies += [emitter.receive().response.emitted for _ in range(50)]
            for emitter in emitters:
                emitter.socket.close()
            equal({(reply.taken, reply.lost) for reply in replies}, {(1, 0)}, "what became of the samples")
            rows = [one.finish(signal_number=None), two.finish(signal_number=None)]
            late = {row["dropped"]["late"] for both in rows for row in both if row.get("kind") == "subscriber"}
            items = [row for row in rows[0] if "fields" in row]
        equal(late, {0}, "samples that came too late")
        equal(sorted(item["fields"]["number"] for item in items), list(range(each * n_clients)), "what came")
        equal(of_event(daemon.ledger()), (each * n_clients, each * n_clients, 0, {}, True), "the ledger")


def test_removed_ahead():
    """What was emitted for a time to come reaches those who were there, also if the event is removed by then, and nobody else."""
    with perfd.Daemon() as daemon, daemon.client() as client:
        add_flood(client)
        was_there, comes = daemon.client(stream=True), daemon.client(stream=True)
        items = was_there.subscribe(order=pb.ORDER_TIME)
        equal(client.request(emit=pb.EmitRequest(samples=[sample(1, ahead=300_000_000)])).emitted.taken, 1, "taken")
        client.request(remove=pb.SelectRequest(names=[EVENT]))
        others = comes.subscribe(order=pb.ORDER_TIME)
        equal(next(items)["fields"]["number"], 1, "what came")
        for stream, rest, n_removed in (was_there, items, 1), (comes, others, 0):
            stream.stop()
            equal(list(rest), [], "what follows")
            equal(len(stream.stream.removed), n_removed, "events that it hears to be removed")
            stream.socket.close()


def test_longest_samples():
    """As long as a sample may be, in three encodings, which are longer than a batch together; and one byte more."""
    most = 30 * 1024 - 12
    with perfd.Daemon() as daemon, daemon.client() as client:
        add_flood(client)
        streams = [daemon.client(stream=True) for _ in range(3)]
        items = [stream.subscribe(payload=payload, queue_bytes=1 << 26) for payload, stream in enumerate(streams)]
        perfd.refused(client, "bad-value", emit=pb.EmitRequest(samples=[sample(1, bytes(most + 1))]))
        reply = client.request(emit=pb.EmitRequest(samples=[sample(i, bytes([i]) * most) for i in range(20)])).emitted
        equal((reply.taken, reply.lost), (20, 0), "taken")
        for payload, (stream, some) in enumerate(zip(streams, items)):
            for i in range(20):
                item = next(some)
                if payload != pb.PAYLOAD_RAW:
                    equal((item["fields"]["number"], item["fields"]["text"]), (i, bytes([i]) * most), "a sample")
                if payload != pb.PAYLOAD_FIELDS:
                    equal(item["raw"][-most:], bytes([i]) * most, "the end of its raw bytes")
            stream.stop()
            equal(list(some), [], "what follows")
        equal(of_event(daemon.ledger()), (20, 20, 0, {}, True), "the ledger")


def test_late_once():
    """A sample that comes too late is late once, in however many encodings; and not if nobody wants it, or a stream still gets it."""
    with perfd.Daemon() as daemon, daemon.client() as client:
        add_flood(client)
        kinds = [{"payload": pb.PAYLOAD_FIELDS}, {"payload": pb.PAYLOAD_BOTH}, {"fields": ["number"]}]
        streams = [daemon.client(stream=True) for _ in kinds]
        items = [stream.subscribe(where="number < 1000", **kind) for stream, kind in zip(streams, kinds)]
        client.request(emit=pb.EmitRequest(samples=[sample(0)]))
        equal([next(some)["fields"]["number"] for some in items if some is not items[1]], [0, 0], "what is in its place")
        next(items[1])
        old = [sample(i, ahead=-5_000_000_000) for i in range(1, 501)]
        reply = client.request(emit=pb.EmitRequest(samples=old)).emitted
        equal((reply.taken, reply.late, reply.lost), (500, 500, 0), "what comes too late")
        perfd.wait_until(lambda: of_event(daemon.ledger())[3].get("late", 0) >= 500, "they are late")
        equal(of_event(daemon.ledger()), (501, 1, 0, {"late": 500}, True), "the ledger has them once")
        reply = client.request(emit=pb.EmitRequest(samples=[sample(1000 + i, ahead=-5_000_000_000) for i in range(100)])).emitted
        equal((reply.taken, reply.late, reply.lost), (100, 0, 0), "what nobody wants")
        equal(of_event(daemon.ledger()), (601, 1, 100, {"late": 500}, True), "the ledger, with what nobody wants")
        rows = [(row.matched, sum(count.count for count in row.dropped if count.reason == "late")) for row in daemon.ledger().subscribers]
        equal(rows, [(501, 500)] * 3, "each stream's own row")
        with daemon.client(stream=True) as other:
            by_cpu = other.subscribe(order=pb.ORDER_CPU, fields=["text"])
            client.request(emit=pb.EmitRequest(samples=old))
            for _ in old:
                next(by_cpu)
            perfd.wait_until(lambda: of_event(daemon.ledger()) == (1101, 501, 100, {"late": 500}, True), "the other stream got the rest")
        for stream, some in zip(streams, items):
            stream.stop()
            equal(list(some), [], "what follows")


def test_more_than_there_is_room_for():
    """Samples of the near future stay in the merge: when no batch is left they are lost, for all encodings or for none."""
    with perfd.Daemon() as daemon, daemon.client() as client:
        add_flood(client)
        streams = [daemon.client(stream=True) for _ in range(2)]
        items = [stream.subscribe(payload=payload, queue_bytes=1 << 26) for payload, stream in
                 ((pb.PAYLOAD_FIELDS, streams[0]), (pb.PAYLOAD_BOTH, streams[1]))]
        taken = lost = 0
        for begin in range(0, 96, 24):
            samples = [sample(i, bytes(29 * 1024), 900_000_000) for i in range(begin, begin + 24)]
            reply = client.request(emit=pb.EmitRequest(samples=samples)).emitted
            equal(reply.taken + reply.lost, 24, "each of them is taken, or lost")
            taken, lost = taken + reply.taken, lost + reply.lost
        equal((taken, lost), (32, 64), "64 batches, two for each sample")
        seen = [[next(some)["fields"]["number"] for _ in range(taken)] for some in items]
        equal(seen, [list(range(32))] * 2, "what came")
        equal(of_event(daemon.ledger()), (96, 32, 0, {"batch_pool": 64}, True), "the ledger")
        for stream, some in zip(streams, items):
            stream.stop()
            equal(list(some), [], "what follows")
        equal(client.request(emit=pb.EmitRequest(samples=[sample(96)])).emitted.taken, 1, "there is room again")


def test_what_was_taken_is_delivered_before_anything_else():
    """A stream that ends, and a subscription that comes, behind samples that still wait for others to share their batch."""
    with perfd.Daemon() as daemon, daemon.client() as client, daemon.client(stream=True) as stream:
        add_flood(client)
        items = stream.subscribe(order=pb.ORDER_CPU, queue_bytes=1 << 26)
        waiting = daemon.client(stream=True)
        others = waiting.subscribe(queue_bytes=1 << 26)
        for begin in range(0, 400, 100):
            for i in range(begin, begin + 100):
                client.send(emit=pb.EmitRequest(samples=[sample(i, ahead=300_000_000)]))
            if begin == 300:
                client.send(disable=pb.SelectRequest(names=[EVENT]))
            equal(sum(client.receive().response.emitted.taken for _ in range(100)), 100, "taken")
        equal(client.receive().response.selected.events[0].name, EVENT, "what is disabled")
        stream.stop()
        equal([item["fields"]["number"] for item in items], list(range(400)), "what came")
        equal([next(others)["fields"]["number"] for _ in range(400)], list(range(400)), "what came in the order of time")
        waiting.stop()
        equal(list(others), [], "what follows")


def test_whom_a_sample_is_of():
    """Nobody, if the client does not say it: no sample of a client is the idle thread's."""
    with perfd.Daemon() as daemon:
        perfctl(daemon, "add", "external:who")
        command = [PERFCTL, "--socket", daemon.control, "watch", "--count", "3", "external:who"]
        watches = [subprocess.Popen([*command, *more], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
                   for more in ((), ("--json",))]
        with perfd.Subscriber(daemon, "--count", "3", "external:who") as python:
            perfd.wait_until(lambda: daemon.status().n_subscribers == 3, "the subscriptions")
            for who in ((), ("--pid", "44", "--tid", "0"), ("--pid", "4194303", "--tid", "4194302")):
                perfctl(daemon, "emit", "external:who", *who)
            text, as_json = (watch.communicate(timeout=perfd.PATIENCE)[0] for watch in watches)
            items = [row for row in python.finish(signal_number=None) if "fields" in row]
    equal([line.split("\t")[2] for line in text.splitlines()[1:]], ["-", "-44", "-4194303/4194302"], "who, in perfctl's lines")
    rows = [row for row in map(json.loads, as_json.splitlines()) if row["kind"] == "sample"]
    for found in rows, items:
        equal([(row["pid"], row["tid"], row["comm"]) for row in found], [(0, 0, ""), (44, 0, ""), (4194303, 4194302, "")], "who")


def test_many_samples_with_costly_conditions():
    """Others are answered while one request has many samples, which are taken all or none, and in their order."""
    n = 16000
    with perfd.Daemon() as daemon, daemon.client() as client, contextlib.ExitStack() as streams:
        add_flood(client)
        for i in range(40):
            conditions = " || ".join(f"(number & cpu) == {1000 + 100 * i + k}" for k in range(50))
            streams.enter_context(daemon.client(stream=True)).subscribe(where=conditions, order=pb.ORDER_CPU)
        stream = streams.enter_context(daemon.client(stream=True))
        items = stream.subscribe(order=pb.ORDER_CPU, queue_bytes=1 << 26)
        samples = [sample(i, ahead=-1_000_000_000) for i in range(n)]
        with others_are_served(daemon, f"{n} samples", CPU_BOUND):
            reply = client.request(emit=pb.EmitRequest(samples=samples)).emitted
        equal((reply.taken, reply.lost), (n, 0), "taken")
        with others_are_served(daemon, f"{n} samples, the last of which is refused", CPU_BOUND):
            perfd.refused(client, "unknown-event", "STATUS_NOT_FOUND",
                          emit=pb.EmitRequest(samples=[*samples, pb.ExternalSample(event="external:none", time=1)]))
        with daemon.client() as gone:
            gone.send(emit=pb.EmitRequest(samples=samples))
            gone.send(emit=pb.EmitRequest(samples=[sample(n)]))
        perfd.wait_until(lambda: of_event(daemon.ledger())[0] in (n, 2 * n, 2 * n + 1), "all of a request are taken, or none")
        equal([next(items)["fields"]["number"] for _ in range(n)], list(range(n)), "what came")
        equal(client.request(emit=pb.EmitRequest(samples=[sample(n + 1)])).emitted.taken, 1, "a sample that does not wait")


def test_losses_meanwhile():
    """Whoever looks while samples are taken is told of no loss that there is not: no kernel has them, and each look is of one moment."""
    with perfd.Daemon() as daemon, daemon.client() as client, daemon.client() as emitter, daemon.client() as other, \
         daemon.client(stream=True) as stream:
        add_flood(client)
        items = stream.subscribe(where="number < 2")
        client.request(emit=pb.EmitRequest(samples=[sample(0)]))
        next(items)
        old = pb.EmitRequest(samples=[sample(1, ahead=-5_000_000_000)] * 16000)
        looks, seen, taken = 0, set(), 1
        for _ in range(6):
            emitter.send(emit=old)
            while not select.select([emitter.socket], [], [], 0)[0]:
                seen |= {loss.reason for loss in client.request(status=pb.Empty()).daemon.losses if loss.count}
                other.request(emit=pb.EmitRequest(samples=[sample(1, ahead=-5_000_000_000)]))
                row = of_event(client.request(ledger=pb.LedgerRequest()).ledger)
                seen |= set(row[3]) | (set() if row[4] else {"unbalanced"})
                looks, taken = looks + 1, taken + 1
            taken += emitter.receive().response.emitted.taken
        perfd.wait_until(lambda: of_event(daemon.ledger()) == (taken, 1, 0, {"late": taken - 1}, True), "all were late")
        check(looks > 0, "nobody looked meanwhile")
        equal(seen - {"late"}, set(), f"what {looks} looks said")
        check("kernel_unwritten" not in daemon.stderr(), daemon.stderr())


if __name__ == "__main__":
    perfd.main(globals())
