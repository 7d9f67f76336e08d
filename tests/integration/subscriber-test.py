#!/usr/bin/python3
"""The Python subscriber against a daemon of paper: what it prints of a good stream, and what it says of bad ones."""
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from subscriber import Broken, Client, Refused, pb  # noqa: E402
from package.event import render  # noqa: E402

PROGRAM = os.path.join(os.path.dirname(os.path.realpath(__file__)), "subscriber.py")
M64 = (1 << 64) - 1


def packet(sequence, **content):
    return pb.ServerMessage(packet=pb.Packet(sequence=sequence, **content))


def response(request, **content):
    return pb.ServerMessage(response=pb.Response(id=request.id, **content))


def descriptor():
    field = pb.FieldDescriptor
    return pb.EventDescriptor(id=7, name="paper", event="paper:cut", period=1, unit="events", fields=[
        field(name="nr", kind=pb.FIELD_KIND_SIGNED, size=8, count=1),
        field(name="who", kind=pb.FIELD_KIND_TEXT, size=1, count=16),
        field(name="args", kind=pb.FIELD_KIND_UNSIGNED, size=8, count=3),
        field(name="list", kind=pb.FIELD_KIND_SIGNED, size=4),
        field(name="blob", kind=pb.FIELD_KIND_BYTES, size=1),
        field(name="flags", kind=pb.FIELD_KIND_UNSIGNED, size=4, count=1, flags=True, delimiter="|",
              values=[pb.FieldValue(value=1, name="READ"), pb.FieldValue(value=2, name="WRITE")])])


def item(time, **content):
    values = dict(event=7, cpu=1, pid=10, tid=11, texts=[b"you\xff", b"\0\1"],
                  numbers=[M64, 1, 2, 3, 2, M64 - 1, 5, 1])
    return pb.Item(time=time, **{**values, **content})


def task(pid, tid, comm, **process):
    return pb.Task(pid=pid, tid=tid, comm=comm, process=pb.Process(**process) if process else None)


def gap(first, last, items, begin, end):
    return pb.Gap(reason="outbox", first_sequence=first, last_sequence=last, items=items, to=end,
                  events=[pb.GapEvent(event=7, items=items)], **{"from": begin})


def ledger(sent=3, outbox=5, **row):
    own = dict(id=4, peer="python", order="time", matched=sent + outbox, sent=sent, balanced=True,
               dropped=[pb.Count(reason="outbox", count=outbox), pb.Count(reason="late", count=0)])
    return pb.Ledger(loss_exact=True, subscribers=[pb.SubscriberLedger(**{**own, **row})], events=[
        pb.EventLedger(id=7, name="paper", cpu=1, occurred=10, delivered=8, filtered=1, exact=True, balanced=True,
                       count=10, lost=[pb.Count(reason="kernel_ring", count=1)])], rings=[
        pb.RingLedger(cpu=1, records=11, samples=9, side_records=1, balanced=True,
                      lost=[pb.Count(reason="kernel_ring", count=5), pb.Count(reason="undecodable", count=1)])])


def good_stream():
    return [
        packet(1, start=pb.StreamStart(clock="monotonic", n_cpus=2)),
        packet(2, events=[descriptor()]),
        packet(3, tasks=[task(10, 11, b"cutter", executable=b"/bin/cutter", uid=0)], items=[item(100), item(100, kernel_callchain=[M64], period=3)]),
        packet(6, gap=[gap(4, 5, 5, 101, 105)]),
        packet(7, items=[pb.Item(time=105, cpu=1, fork=pb.TaskRecord(pid=12, ppid=10, tid=12, ptid=11))],
               removed=[pb.EventRef(id=7, name="paper")]),
        packet(8, end=pb.StreamEnd(reason="stopped", ledger=ledger())),
    ]


class Paper:
    """Says yes to hello and subscribe, sends a stream in pieces of 7 bytes, and keeps what it was asked."""

    def __init__(self, stream, answer=None):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "socket")
        self.stream, self.answer, self.requests = stream, answer or {}, []
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.path)
        self.listener.listen()
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.thread.join()
        self.listener.close()
        self.folder.cleanup()

    def run(self):
        peer, _ = self.listener.accept()
        with peer:
            hello = self.take(peer)
            self.put(peer, response(hello, hello=pb.HelloReply(protocol=1, version="paper")))
            subscribe = self.take(peer)
            if subscribe:
                self.put(peer, response(subscribe, **self.answer))
                for message in self.stream:
                    self.put(peer, message)
                peer.shutdown(socket.SHUT_WR)
                while self.take(peer):
                    pass

    def take(self, peer):
        header = peer.recv(4, socket.MSG_WAITALL)
        if len(header) < 4:
            return None
        self.requests.append(pb.Request.FromString(peer.recv(struct.unpack("<I", header)[0], socket.MSG_WAITALL)))
        return self.requests[-1]

    def put(self, peer, message):
        message = message if isinstance(message, bytes) else message.SerializeToString()
        message = struct.pack("<I", len(message)) + message
        try:
            for at in range(0, len(message), 7):
                peer.send(message[at:at + 7], socket.MSG_NOSIGNAL)
        except OSError:
            pass  # the subscriber has seen enough


class Good(unittest.TestCase):
    def test_program(self):
        with Paper(good_stream()) as paper:
            done = subprocess.run(
                [PROGRAM, "--socket", paper.path, "--where", "nr < 0", "--fields", "nr,who", "--count", "3",
                 "--overflow", "drop-newest", "--records", "paper*"], capture_output=True, text=True)
        self.assertEqual((done.stderr, done.returncode), ("", 0))
        hello, subscribe, stop = paper.requests
        self.assertEqual(hello.hello.protocol, 1)
        self.assertEqual(subscribe.subscribe, pb.SubscribeRequest(
            events=["paper*"], where="nr < 0", fields=["nr", "who"], overflow=pb.OVERFLOW_DROP_NEWEST, records=15))
        self.assertEqual(stop.WhichOneof("body"), "stop")

        first, second, fork, *rows = map(json.loads, done.stdout.splitlines())
        self.assertEqual(first, {
            "time": 100, "event": "paper", "cpu": 1, "pid": 10, "tid": 11, "comm": "cutter", "period": 1,
            "process": {"executable": "/bin/cutter", "uid": 0},
            "fields": {"nr": -1, "who": "you\\xff", "args": [1, 2, 3], "list": [-2, 5], "blob": "\0\1", "flags": 1},
            "names": {"flags": "READ"}})
        self.assertEqual(second, {**first, "period": 3, "kernel_callchain": [M64]})
        self.assertEqual(fork, {"time": 105, "event": None, "cpu": 1, "pid": 0, "tid": 0, "comm": "swapper/1",
                                "record": "fork", "fields": {"pid": 12, "ppid": 10, "tid": 12, "ptid": 11}})
        self.assertEqual([(row["kind"], row["balanced"]) for row in rows],
                         [("event", True), ("ring", True), ("subscriber", True)])
        self.assertEqual(rows[2], {"kind": "subscriber", "id": 4, "peer": "python", "order": "time", "matched": 8,
                                   "sent": 3, "dropped": {"outbox": 5, "late": 0}, "queued": 0, "balanced": True})

    def test_refused(self):
        answer = dict(status=pb.STATUS_NOT_FOUND, message="no running event matches x", reason="unknown-event")
        with Paper([], answer) as paper, Client(paper.path) as client:
            with self.assertRaises(Refused) as caught:
                client.subscribe(events=["x"])
        self.assertEqual(str(caught.exception), "no running event matches x (unknown-event)")

    def test_flags(self):
        field = descriptor().fields[5]
        field.values.add(value=3, name="BOTH")
        self.assertEqual([render(field, n) for n in (0, 1, 3, 6, 8)], [None, "READ", "BOTH", "WRITE|0x4", None])
        field.values.add(value=0xffffffff, name="ALL")
        self.assertEqual(render(field, -1), "ALL")


class Bad(unittest.TestCase):
    """What it is stricter in than the package, whose own tests are in tests/python."""

    def expect(self, text, change):
        stream = good_stream()
        stream = change(stream) or stream
        with Paper(stream) as paper, Client(paper.path) as client:
            with self.assertRaises(Broken) as caught:
                for _ in client.subscribe():
                    pass
        self.assertIn(text, str(caught.exception))

    def test_sum(self):
        self.expect("does not add up", lambda s: setattr(s[5].packet.end.ledger.events[0], "filtered", 2))

    def test_ring_sum(self):
        self.expect("does not add up", lambda s: setattr(s[5].packet.end.ledger.rings[0], "records", 10))

    def test_honest_imbalance(self):
        self.expect("the daemon says that it does not",
                    lambda s: setattr(s[5].packet.end.ledger.events[0], "balanced", False))

    def test_reason(self):
        self.expect("a gap for weather", lambda s: setattr(s[3].packet.gap[0], "reason", "weather"))


if __name__ == "__main__":
    unittest.main()
