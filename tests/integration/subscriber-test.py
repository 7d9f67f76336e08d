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
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)
import package  # noqa: E402
from package.event import render  # noqa: E402
from subscriber import Broken, Client, Refused, pb  # noqa: E402

# what the daemon says is that of tests/python, where the package has its own name, which here is of the module that starts daemons
sys.modules["perfd"] = package
sys.path.append(os.path.join(HERE, "..", "python"))
from played import M64, descriptor, frame, good_stream, response  # noqa: E402

PROGRAM = os.path.join(HERE, "subscriber.py")


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
        message = frame(message)
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
        self.assertNotIn("\x1b", done.stdout)
        hello, subscribe, stop = paper.requests
        self.assertEqual(hello.hello.protocol, 1)
        self.assertEqual(subscribe.subscribe, pb.SubscribeRequest(
            events=["paper*"], where="nr < 0", fields=["nr", "who"], overflow=pb.OVERFLOW_DROP_NEWEST, records=15))
        self.assertEqual(stop.WhichOneof("body"), "stop")

        first, second, fork, *rows = map(json.loads, done.stdout.splitlines())
        self.assertEqual(first, {
            "time": 100, "event": "paper", "cpu": 1, "pid": 10, "tid": 11, "comm": "cut\x1b[2Jer", "period": 1,
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
