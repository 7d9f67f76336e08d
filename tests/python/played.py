"""A daemon that is played, for tests of the package of client/python, and what it can say."""
import os
import socket
import struct
import sys
import threading

BUILD = os.environ.get("PERFD_BUILD", os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "build"))
sys.path.insert(0, os.path.join(BUILD, "client", "python"))
# pylint: disable=wrong-import-position
import perfd
from perfd import pb

PATIENCE = 40  # seconds


def frame(message):
    """A message as it is on the wire; bytes are one already."""
    if isinstance(message, bytes):
        return message
    message = message.SerializeToString()
    return struct.pack("<I", len(message)) + message


def response(request, **content):
    return pb.ServerMessage(response=pb.Response(id=request.id, **content))


def packet(sequence, **content):
    return pb.ServerMessage(packet=pb.Packet(sequence=sequence, **content))


class Played:
    """Says hello, and then for each request what its answer is: a list, or a function of the request that gives one.

    Elements of a list are messages, bytes as they are on the wire, or functions of the socket. Behind the last answer it takes
    what comes until the client has enough. `requests` are those that came behind hello.
    """

    def __init__(self, *answers, hello=None):
        self.socket, self.theirs = socket.socketpair()
        self.theirs.settimeout(PATIENCE)
        self.answers = [hello or (lambda request: [response(request, hello=pb.HelloReply(protocol=1, version="0"))]), *answers]
        self.requests, self.failed = [], None
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.socket.close()
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive() and not self.failed, self.failed

    def client(self, **options):
        return perfd.Client(self.socket, **options)

    def run(self):
        try:
            self.play()
        except (BrokenPipeError, ConnectionResetError):
            pass  # the client has enough
        except Exception as error:  # pylint: disable=broad-except
            self.failed = error
        finally:
            self.theirs.close()

    def play(self):
        for i, answer in enumerate(self.answers):
            request = self.take()
            if not request:
                return
            if i:
                self.requests.append(request)
            for one in answer(request) if callable(answer) else answer:
                if callable(one):
                    one(self.theirs)
                else:
                    self.theirs.sendall(frame(one))
        self.theirs.shutdown(socket.SHUT_WR)
        while request := self.take():
            self.requests.append(request)

    def take(self):
        header = self.theirs.recv(4, socket.MSG_WAITALL)
        if len(header) < 4:
            return None
        return pb.Request.FromString(self.theirs.recv(struct.unpack("<I", header)[0], socket.MSG_WAITALL))


# ---- a stream --------------------------------------------------------------------------------------------------------

M64 = (1 << 64) - 1


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
    values = dict(event=7, cpu=1, pid=10, tid=11, texts=[b"you\xff", b"\0\1"], numbers=[M64, 1, 2, 3, 2, M64 - 1, 5, 1])
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
        packet(3, tasks=[task(10, 11, b"cut\x1b[2Jer", executable=b"/bin/cutter", uid=0)],
               items=[item(100), item(100, kernel_callchain=[M64], period=3)]),
        packet(6, gap=[gap(4, 5, 5, 101, 105)]),
        packet(7, items=[pb.Item(time=105, cpu=1, fork=pb.TaskRecord(pid=12, ppid=10, tid=12, ptid=11))],
               removed=[pb.EventRef(id=7, name="paper")]),
        packet(8, end=pb.StreamEnd(reason="stopped", ledger=ledger())),
    ]


def subscribed(stream):
    """The answer to a subscribe request."""
    return lambda request: [response(request), *stream]
