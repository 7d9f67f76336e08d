#!/usr/bin/python3
"""Requests to a played daemon: what is asked and given back, refusals, and daemons that do not keep to the protocol."""
import array
import os
import socket
import sys
import tempfile
import time
import unittest
import unittest.mock

sys.dont_write_bytecode = True
# pylint: disable=wrong-import-position
from played import Played, pb, perfd, response


def yes(**content):
    """An answer with this content."""
    return lambda request: [response(request, **content)]


def open_fds():
    return len(os.listdir("/proc/self/fd"))


class Good(unittest.TestCase):
    # (call, the request, the content of the response, what it gives of that)
    CALLS = [
        (lambda c: c.status(), {"status": pb.Empty()}, {"daemon": pb.StatusReply(pid=5)}),
        (lambda c: c.list("a*", fields=True), {"list": pb.ListRequest(glob="a*", fields=True)},
         {"list": pb.ListReply(events=[pb.EventState(id=3)])}),
        (lambda c: c.available("b*"), {"available": pb.AvailableRequest(glob="b*")},
         {"available": pb.AvailableReply(truncated=True)}),
        (lambda c: c.ledger("a", "b"), {"ledger": pb.LedgerRequest(events=["a", "b"])}, {"ledger": pb.Ledger(loss_exact=True)}),
        (lambda c: c.doctor(), {"doctor": pb.Empty()}, {"doctor": pb.DoctorReply(rows=[pb.DoctorRow(what="x")])}),
        (lambda c: c.add("a", {"event": "b", "period": 2}, pb.EventSpec(event="c"), while_connected=True),
         {"add": pb.AddRequest(events=[pb.EventSpec(event="a"), pb.EventSpec(event="b", period=2), pb.EventSpec(event="c")],
                               while_connected=True)}, {"added": pb.AddReply(notes=["n"])}),
        (lambda c: c.add("a", keep=True), {"add": pb.AddRequest(events=[pb.EventSpec(event="a")], keep=True)},
         {"added": pb.AddReply()}),
        (lambda c: c.add("a", while_connected=True, share=True),
         {"add": pb.AddRequest(events=[pb.EventSpec(event="a")], while_connected=True, share=True)}, {"added": pb.AddReply()}),
        (lambda c: c.remove("a", "@g"), {"remove": pb.SelectRequest(names=["a", "@g"])}, {"selected": pb.SelectReply()}),
        (lambda c: c.enable("a"), {"enable": pb.SelectRequest(names=["a"])}, {"selected": pb.SelectReply()}),
        (lambda c: c.disable("a"), {"disable": pb.SelectRequest(names=["a"])},
         {"selected": pb.SelectReply(events=[pb.EventRef(id=1, name="a")])}),
        (lambda c: c.set_filter("a", "x == 1"), {"set_filter": pb.SetFilterRequest(name="a", filter="x == 1")}, {}),
        (lambda c: c.set_period("a", frequency=99), {"set_period": pb.SetPeriodRequest(name="a", frequency=99)}, {}),
        (lambda c: c.validate("v"), {"validate": pb.ValidateRequest(yaml="v")},
         {"validated": pb.ValidateReply(errors=[pb.ConfigDiagnostic(line=2)])}),
        (lambda c: c.plan("v", "p"), {"plan": pb.PlanRequest(yaml="v", path="p")}, {"plan": pb.PlanReply()}),
        (lambda c: c.apply("v", "p", may_wait=True), {"apply": pb.ApplyRequest(yaml="v", path="p", may_wait=True)},
         {"reloaded": pb.ReloadReply(added=2)}),
        (lambda c: c.kernel_names([1, 2]), {"kernel_names": pb.KernelNamesRequest(addresses=[1, 2])},
         {"kernel_names": pb.KernelNamesReply(names=[pb.KernelName(symbol=b"a", offset=1), pb.KernelName()])}),
        (lambda c: c.formats([3, 4]), {"event_formats": pb.EventFormatsRequest(ids=[3, 4])},
         {"event_formats": pb.EventFormatsReply(events=[pb.EventFormat(id=3, has_attr=True, type=2, config=7, format=b"f")], machine="m")}),
        (lambda c: c.reload(), {"reload": pb.Empty()}, {"reloaded": pb.ReloadReply(kept=2)}),
        (lambda c: c.emit({"event": "e", "time": 7, "pid": 1, "values": [True, 5, -5, "t\udcff", b"\0"]}),
         {"emit": pb.EmitRequest(samples=[pb.ExternalSample(event="e", time=7, pid=1, values=[
             pb.ExternalValue(number=1), pb.ExternalValue(number=5), pb.ExternalValue(signed_number=-5),
             pb.ExternalValue(text=b"t\xff"), pb.ExternalValue(text=b"\0")])])}, {"emitted": pb.EmitReply(taken=1)}),
    ]

    def test_each_request(self):
        with Played(*(yes(**content) for _, _, content in self.CALLS)) as played, played.client() as client:
            self.assertEqual((client.hello.protocol, client.hello.version), (1, "0"))
            for call, request, content in self.CALLS:
                given = call(client)
                self.assertEqual(given, next(iter(content.values()), None))
                self.assertEqual(played.requests[-1], pb.Request(id=client.last_id, **request))
        bodies = {request.WhichOneof("body") for request in played.requests}
        of_streams = {"hello", "subscribe", "stop", "room"}
        self.assertEqual(bodies | of_streams, {field.name for field in pb.Request.DESCRIPTOR.oneofs[0].fields})

    def test_time_of_a_sample(self):
        """By the daemon's clock, which is asked for once."""
        emitted = yes(emitted=pb.EmitReply())
        with Played(yes(daemon=pb.StatusReply(clock="boottime")), emitted, emitted) as played:
            with played.client() as client:
                begin = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
                client.emit({"event": "e"})
                client.emit({"event": "e"}, pb.ExternalSample(event="e", time=3))
                end = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        _, first, second = played.requests
        times = [sample.time for request in (first, second) for sample in request.emit.samples]
        self.assertTrue(begin <= times[0] <= times[1] <= end and times[2] == 3, (begin, times, end))

    def test_values_that_are_none(self):
        with Played() as played, played.client() as client:
            for value in (1.5, None, [1]):
                with self.assertRaises(TypeError):
                    client.emit({"event": "e", "time": 1, "values": [value]})
        self.assertEqual(played.requests, [])

    def test_refused(self):
        """The connection goes on."""
        no = {"status": pb.STATUS_INVALID, "message": "where: no field x", "reason": "bad-expression", "position": 5}
        with Played(yes(**no), yes(daemon=pb.StatusReply(pid=5))) as played, played.client() as client:
            with self.assertRaises(perfd.Refused) as caught:
                client.subscribe("a", where="1 == x")
            self.assertEqual(client.status().pid, 5)
        error = caught.exception
        self.assertEqual((str(error), error.reason, error.status, error.position),
                         ("where: no field x (bad-expression)", "bad-expression", pb.STATUS_INVALID, 4))

    def test_one_byte_at_a_time(self):
        def trickle(request):
            message = response(request, daemon=pb.StatusReply(pid=5)).SerializeToString()
            return [bytes([byte]) for byte in len(message).to_bytes(4, "little") + message]
        with Played(trickle) as played, played.client(timeout=40) as client:
            self.assertEqual(client.status().pid, 5)


class Sockets(unittest.TestCase):
    def test_none_there(self):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.dict(os.environ):
            control, stream = (os.path.join(folder, name) for name in ("control", "stream"))
            with self.assertRaisesRegex(perfd.Disconnected, control) as caught:
                perfd.Client(control)
            self.assertIsInstance(caught.exception.__cause__, FileNotFoundError)
            with unittest.mock.patch.multiple(perfd.client, CONTROL=control, STREAM=stream):
                os.environ.pop("PERFD_SOCKET", None)
                with self.assertRaises(perfd.Disconnected) as caught:
                    perfd.Client()
                self.assertTrue(control in str(caught.exception) and stream in str(caught.exception), caught.exception)
                os.environ["PERFD_SOCKET"] = folder + "/own"
                with self.assertRaisesRegex(perfd.Disconnected, folder + "/own"):
                    perfd.Client()

    def test_the_stream_socket_where_the_other_can_not_be_used(self):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.dict(os.environ), \
                socket.socket(socket.AF_UNIX) as listener:
            os.environ.pop("PERFD_SOCKET", None)
            listener.bind(folder + "/stream")
            listener.listen()
            with unittest.mock.patch.multiple(perfd.client, CONTROL=folder + "/control", STREAM=folder + "/stream"):
                with self.assertRaises(TimeoutError):
                    perfd.Client(timeout=0.05)
            peer, _ = listener.accept()
            with peer:
                self.assertIn(b"test_requests", peer.recv(1 << 10))  # its hello names the program


class Bad(unittest.TestCase):
    """After each of these the connection is closed, and no later response is taken for another one."""

    def expect(self, error, text, answer, **options):
        before = open_fds()
        with Played(answer) as played, played.client(**options) as client:
            with self.assertRaisesRegex(error, text):
                client.status()
            self.assertEqual(client.fileno(), -1)
            with self.assertRaisesRegex(perfd.Disconnected, "closed"):
                client.status()
            self.assertLess(len(client.received), 1 << 20)
        self.assertEqual(open_fds(), before)

    def test_responses(self):
        self.expect(perfd.ProtocolError, "belongs to another request", lambda _: [response(pb.Request(id=77))])
        self.expect(perfd.ProtocolError, "belongs to no request", lambda _: [response(pb.Request())])
        self.expect(perfd.ProtocolError, "else than a response", lambda _: [pb.ServerMessage(packet=pb.Packet(sequence=1))])
        self.expect(perfd.ProtocolError, "else than a response", lambda _: [b"\0\0\0\0"])
        self.expect(perfd.ProtocolError, "a frame of 4294967295 bytes", lambda _: [b"\xff" * 4 + b"x" * 999])
        self.expect(perfd.ProtocolError, "5 bytes that are no ServerMessage", lambda _: [b"\5\0\0\0" + b"\xff" * 5])
        self.expect(perfd.Disconnected, "gave no response", lambda _: [])
        self.expect(perfd.ProtocolError, "in the middle of a frame", lambda _: [b"\5\0\0\0hell"])

    def test_goodbye(self):
        """A response to no request says why the daemon closes, also one that is closed before it is asked."""
        no = pb.Response(status=pb.STATUS_EXHAUSTED, message="too many", reason="too-many-connections")
        self.expect(perfd.Refused, "too many", lambda _: [pb.ServerMessage(response=no)])
        ours, theirs = socket.socketpair()
        message = pb.ServerMessage(response=no).SerializeToString()
        theirs.sendall(len(message).to_bytes(4, "little") + message)
        theirs.close()
        with self.assertRaisesRegex(perfd.Refused, "too many"):
            perfd.Client(ours)
        self.assertEqual(ours.fileno(), -1)

    def test_silence(self):
        self.expect(TimeoutError, "not answered", lambda _: [lambda peer: peer.recv(1)], timeout=0.05)

    def test_trickle(self):
        """What comes byte by byte for ever takes no longer."""
        def for_ever(peer):
            peer.sendall(b"\0\0\x10\0")
            while True:
                peer.sendall(b"x")
                time.sleep(0.001)
        self.expect(TimeoutError, "not answered", lambda _: [for_ever], timeout=0.05)

    def test_no_reader(self):
        """A daemon that reads nothing any more takes no longer either."""
        ours, theirs = socket.socketpair()
        with theirs, self.assertRaises(TimeoutError):
            ours.setblocking(False)
            with self.assertRaises(BlockingIOError):
                while True:
                    ours.send(b"\0" * (1 << 16))
            ours.setblocking(True)
            perfd.Client(ours, timeout=0.05)

    def test_fds_that_nobody_wants(self):
        def give(peer):
            null = os.open("/dev/null", os.O_RDONLY)
            for _ in range(4):
                peer.sendmsg([b"\xff"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [null]))])
            os.close(null)
        self.expect(perfd.ProtocolError, "fds came|a frame of", lambda _: [b"\0\0\x10\0", give])

    def test_too_long(self):
        """Is not sent, and the connection goes on."""
        hello = yes(hello=pb.HelloReply(protocol=1, max_request=100))
        with Played(yes(validated=pb.ValidateReply()), hello=hello) as played, played.client() as client:
            with self.assertRaisesRegex(ValueError, "perfd reads 100 at most"):
                client.validate("x" * 100)
            client.validate("x" * 50)
        self.assertEqual([request.validate.yaml for request in played.requests], ["x" * 50])


if __name__ == "__main__":
    unittest.main()
