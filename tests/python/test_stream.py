#!/usr/bin/python3
"""Streams of a played daemon: what becomes of a good one, and what is said of those that break one promise."""
import os
import signal
import sys
import unittest
import unittest.mock

sys.dont_write_bytecode = True
# pylint: disable=wrong-import-position
from played import M64, Played, frame, good_stream, item, ledger, packet, pb, perfd, response, subscribed, task


class Good(unittest.TestCase):
    def test_everything_in_its_order(self):
        with Played(subscribed(good_stream())) as played, played.client().subscribe("paper*", where="nr < 0") as stream:
            first, second, gap, fork = stream
            self.assertIs(stream.read(), None)
        self.assertEqual(played.requests[0].subscribe, pb.SubscribeRequest(events=["paper*"], where="nr < 0"))
        self.assertEqual([type(i) for i in (first, second, gap, fork)], [perfd.Sample, perfd.Sample, perfd.Gap, perfd.Record])
        self.assertEqual(first.fields, {"nr": -1, "who": b"you\xff", "args": [1, 2, 3], "list": [-2, 5], "blob": b"\0\1",
                                        "flags": 1})
        self.assertEqual((first.names, first.period, first.parts), ({"flags": "READ"}, 1, {}))
        self.assertEqual((first.event.name, first.time, first.cpu, first.pid, first.tid), ("paper", 100, 1, 10, 11))
        self.assertEqual((first.comm, first.process.executable, first.process.uid), (b"cut\x1b[2Jer", b"/bin/cutter", 0))
        self.assertEqual((second.period, second.parts), (3, {"kernel_callchain": [M64]}))
        self.assertEqual((gap.n_items, gap.events, gap.begin, gap.end, gap.reason), (5, {"paper": 5}, 101, 105, "outbox"))
        self.assertEqual((fork.kind, fork.event, fork.comm, fork.process), ("fork", None, b"swapper/1", None))
        self.assertEqual(fork.fields, {"pid": 12, "ppid": 10, "tid": 12, "ptid": 11})
        self.assertEqual((stream.items, stream.missing, stream.start.clock), (3, 5, "monotonic"))
        self.assertEqual((stream.end.reason, stream.end.balanced), ("stopped", True))
        self.assertEqual(stream.end.lost, {"kernel_ring": 1, "outbox": 5})

    def test_zero_tid(self):
        packets = good_stream()
        fork = [i for p in packets for i in p.packet.items if i.WhichOneof("record") == "fork"][0]
        expected = {pb.ZERO_TID_NONE: (None, b"swapper/1"), pb.ZERO_TID_IDLE: ("idle", b"swapper/1"),
                    pb.ZERO_TID_OUTSIDE: ("outside", b"outside"), pb.ZERO_TID_UNKNOWN: ("unknown", b"idle-or-outside"), 4: ("unknown", b"idle-or-outside")}
        for said, (zero_tid, comm) in expected.items():
            fork.zero_tid = said
            with Played(subscribed(packets)) as played, played.client().subscribe() as stream:
                if zero_tid == "unknown":
                    stream.processes[0], stream.tasks[0] = (pb.Process(), {0}), pb.Task(comm=comm)
                record = list(stream)[-1]
            self.assertEqual((record.zero_tid, record.comm, "zero_tid" in record.parts), (zero_tid, comm, False))

    def test_samples_alone(self):
        with Played(subscribed(good_stream())) as played, played.client().subscribe() as stream:
            self.assertEqual([sample.time for sample in stream.samples()], [100, 100])
            self.assertEqual(stream.missing, 5)

    def test_what_is_printed_is_safe(self):
        with Played(subscribed(good_stream())) as played, played.client().subscribe() as stream:
            first, _, gap, fork = map(str, stream)
        self.assertEqual(first, r'0.000000100 [001] cut\x1b[2Jer/11 paper nr=-1 who="you\xff" args=[1,2,3] list=[-2,5] '
                                r'blob="\x00\x01" flags=READ')
        self.assertEqual(gap, "5 items are missing here: outbox")
        self.assertEqual(fork, "0.000000105 [001] swapper/1/0 fork pid=12 ppid=10 tid=12 ptid=11")
        self.assertEqual(perfd.printable("a b\u202e\u3164é\n"), r"a b\xe2\x80\xae\xe3\x85\xa4é\x0a")
        self.assertEqual(perfd.printable("\ud800\udcff"), r"\xed\xa0\x80\xff")

    def test_options(self):
        with Played(subscribed(good_stream())) as played, played.client() as client:
            client.subscribe("a", "b*", fields=["x"], order="cpu", payload="both", overflow="drop-newest",
                             records=["comm", "fork", "comm"], queue_bytes=1 << 20, latency=5)
        self.assertEqual(played.requests[0].subscribe, pb.SubscribeRequest(
            events=["a", "b*"], fields=["x"], order=pb.ORDER_CPU, payload=pb.PAYLOAD_BOTH, overflow=pb.OVERFLOW_DROP_NEWEST,
            records=0b11, queue_bytes=1 << 20, latency=5))
        for wrong in {"order": "size"}, {"records": ["nonsense"]}, {"nonsense": 1}:
            with Played(subscribed([])) as played, played.client() as client:
                with self.assertRaises(ValueError):
                    client.subscribe(**wrong)
            self.assertEqual(played.requests, [])
        for wrong, said in (({"fields": "id"}, "fields: a list of names such as \\['id'\\]"), ({"records": "fork"}, "records: a list"),
                            ({"latency": "1ms"}, "latency: a whole number of ns, .* not '1ms'"), ({"latency": 1.5}, "not 1.5")):
            with Played(subscribed([])) as played, played.client() as client:
                with self.assertRaisesRegex(TypeError, said):
                    client.subscribe(**wrong)
            self.assertEqual(played.requests, [])

    def test_read_in_time(self):
        """What has not come by then comes later, also if half of it was there."""
        *begin, end = map(frame, good_stream())
        script = [*begin, end[:9]]
        with Played(subscribed(script), lambda _: [end[9:]]) as played, played.client().subscribe() as stream:
            found = []
            while len(found) < 4:
                found += stream.read(0.01)
            self.assertEqual((stream.read(0), stream.end), ([], None))
            stream.stop()
            stream.stop()
            self.assertEqual(([*stream], stream.end.reason), ([], "stopped"))
        self.assertEqual([request.WhichOneof("body") for request in played.requests], ["subscribe", "stop"])

    def test_signals_stop_it(self):
        before = signal.getsignal(signal.SIGUSR1)
        *begin, end = good_stream()
        with Played(subscribed(begin), [end]) as played:
            with played.client().subscribe() as stream:
                stream.stop_at_signals(signal.SIGUSR1)
                items = iter(stream)
                for _ in range(4):
                    next(items)
                signal.setitimer(signal.ITIMER_REAL, 0)
                os.kill(os.getpid(), signal.SIGUSR1)
                self.assertEqual(([*items], stream.end.reason), ([], "stopped"))
        self.assertEqual((signal.getsignal(signal.SIGUSR1), signal.set_wakeup_fd(-1)), (before, -1))

    def test_no_requests_on_it(self):
        with Played(subscribed(good_stream())) as played, played.client() as client:
            client.subscribe()
            with self.assertRaisesRegex(perfd.Error, "this connection is a stream"):
                client.status()

    def test_new_reasons(self):
        """What a later version says is no fault."""
        stream = good_stream()
        stream[3].packet.gap[0].reason = "weather"
        stream[5].packet.end.ledger.CopyFrom(ledger(dropped=[pb.Count(reason="weather", count=5)]))
        with Played(subscribed(stream)) as played, played.client().subscribe() as good:
            self.assertEqual(len(list(good)), 4)
            self.assertEqual(good.end.lost, {"kernel_ring": 1, "weather": 5})

    def test_imbalance(self):
        """By its numbers, or by the daemon's word."""
        for field, value in ("filtered", 2), ("balanced", False):
            stream = good_stream()
            setattr(stream[5].packet.end.ledger.events[0], field, value)
            with Played(subscribed(stream)) as played, played.client().subscribe() as good:
                _ = list(good)
                self.assertFalse(good.end.balanced)


class Bad(unittest.TestCase):
    """Each breaks one promise of a good stream."""

    def expect(self, text, change, error=perfd.ProtocolError):
        stream = good_stream()
        stream = change(stream) or stream
        with Played(subscribed(stream)) as played, played.client().subscribe() as bad:
            with self.assertRaises(error) as caught:
                _ = list(bad)
            self.assertIn(text, str(caught.exception))
            self.assertEqual((bad.fileno(), bad.end), (-1, None))  # nothing more is to be had of it

    def test_sequence(self):
        self.expect("packet 6 follows 3", lambda s: s[3].packet.ClearField("gap"))
        self.expect("packet 6 follows 4", lambda s: setattr(s[3].packet.gap[0], "last_sequence", 4))
        self.expect("a gap from 5 to 5", lambda s: setattr(s[3].packet.gap[0], "first_sequence", 5)
                    or setattr(s[3].packet.gap[0], "last_sequence", 5))
        self.expect("a gap from 1 to 2", lambda s: [packet(3, gap=[s[3].packet.gap[0].__class__(
            reason="outbox", first_sequence=1, last_sequence=2)])])

    def test_gaps(self):
        self.expect("the events of a gap", lambda s: setattr(s[3].packet.gap[0], "items", 6))
        self.expect("a gap older", lambda s: setattr(s[3].packet.gap[0], "from", 99))

    def test_order(self):
        self.expect("an item at 99 follows one at 100", lambda s: setattr(s[2].packet.items[1], "time", 99))

    def test_tasks(self):
        self.expect("task 11 comes without its process 10", lambda s: s[2].packet.tasks[0].ClearField("process"))
        self.expect("task 12 is forgotten, and was never described", lambda s: s[3].packet.forgotten_tasks.append(12))

    def test_flood_of_tasks(self):
        """A client has to remember so many, and no more."""
        with unittest.mock.patch.object(perfd.stream, "MAX_TASKS", 100):
            flood = packet(3, tasks=[task(1, 1 + i, b"x", uid=0) for i in range(101)])
            self.expect("more than 100 tasks", lambda s: s[:2] + [flood])
        self.assertEqual(perfd.stream.MAX_TASKS, 1 << 20)

    def test_descriptors(self):
        self.expect("before its descriptor", lambda s: s[1].packet.ClearField("events"))
        self.expect("which is removed", lambda s: s[2].packet.removed.add(id=7)
                    and s[4].packet.items.add().CopyFrom(item(106)))
        self.expect("a record of event 9", lambda s: setattr(s[4].packet.items[0], "event", 9))

    def test_items(self):
        self.expect("shorter than its descriptor", lambda s: s[2].packet.items[0].numbers.__delitem__(-1))
        self.expect("longer than its descriptor", lambda s: s[2].packet.items[0].texts.append(b"more"))
        self.expect("an array of 1152921504606846976", lambda s: s[2].packet.items[0].numbers.__setitem__(4, 1 << 60))

    def test_start(self):
        self.expect("start is in the first packet", lambda s: s[2].packet.start.SetInParent())
        self.expect("start is in the first packet", lambda s: s[0].packet.ClearField("start"))

    def test_ledger(self):
        self.expect("3 items came", lambda s: s[5].packet.end.ledger.CopyFrom(ledger(sent=4)))
        self.expect("gaps of 5 items", lambda s: s[5].packet.end.ledger.CopyFrom(ledger(outbox=4)))
        self.expect("2 items lie between", lambda s: s[5].packet.end.ledger.CopyFrom(ledger(queued=2)))
        self.expect("not just this subscriber's row", lambda s: s[5].packet.end.ledger.subscribers.add().SetInParent())

    def test_end(self):
        self.expect("closed without its end", lambda s: s[:-1], perfd.Disconnected)
        self.expect("in the middle of a frame", lambda s: s[:-1] + [b"\x64\0\0\0x"])

    def test_behind_the_end(self):
        """The end itself was good."""
        with Played(subscribed(good_stream() + [packet(9)])) as played, played.client().subscribe() as bad:
            with self.assertRaisesRegex(perfd.ProtocolError, "follows the end"):
                _ = list(bad)

    def test_other_messages(self):
        self.expect("else than a packet", lambda s: s[:3] + [response(pb.Request(id=3))])
        self.expect("else than a packet", lambda s: s[:3] + [b"\0\0\0\0"])
        self.expect("in a pool, and no pool", lambda s: s[:3] + [pb.ServerMessage(pooled=pb.PooledPacket(sequence=4, length=9))])

    def test_last_word(self):
        """Why a connection is closed belongs to no request."""
        last = pb.ServerMessage(response=pb.Response(status=pb.STATUS_DENIED, reason="revoked", message="it was revoked"))
        self.expect("it was revoked", lambda s: s[:3] + [last], perfd.Refused)

    def test_frames(self):
        self.expect("a frame of 16777217 bytes", lambda s: s[:3] + [b"\1\0\0\1"])
        self.expect("a frame of 4294967295 bytes", lambda s: s[:3] + [b"\xff" * 4])
        self.expect("3 bytes that are no ServerMessage", lambda s: s[:3] + [b"\3\0\0\0\x12\x0fx"])
        deep = b""
        for _ in range(1 << 12):  # groups that begin and never end
            deep += b"\x0b"
        self.expect("that are no ServerMessage", lambda s: s[:3] + [b"\0\x10\0\0" + deep])


if __name__ == "__main__":
    unittest.main()
