#!/usr/bin/python3
"""Subscribes to perfd and prints every item as a line of JSON: the protocol in Python, and a check of the daemon.

It is made from proto/perfd.proto and proto/PROTOCOL.md alone and shares no code with perfd, so it proves that these two
are enough. Whatever the protocol promises is verified on the way; a broken promise is an exception, and status 1.

    subscriber.py --socket /run/perfd/stream.sock --where 'prev_comm == "bash"' --count 10 sched:sched_switch

As a module:

    with Client("/run/perfd/stream.sock") as client:
        for item in client.subscribe(events=["sched:*"]):
            print(item["time"], item["event"], item["fields"])
            if enough:
                client.stop()                   # what is on its way and the closing ledger still come
        print(client.end["ledger"])

Needs protoc (protobuf-compiler) and Google's protobuf package (python3-protobuf).
"""
import argparse
import collections
import importlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile

from promise import Broken, require
from stream_ledger import check_ledger
from stream_ring import Ring

PROTO = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "proto", "perfd.proto")
VERSION = 1
MAX_FRAME = 16 << 20


def load_messages(proto=PROTO):
    """perfd.proto as a Python module, compiled now."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["protoc", f"--python_out={folder}", "-I", os.path.dirname(proto), proto], check=True)
        sys.path.insert(0, folder)
        try:
            return importlib.import_module("perfd_pb2")
        finally:
            sys.path.remove(folder)


pb = load_messages()


class Refused(Exception):
    """The daemon says no; .response has status, reason and position."""

    def __init__(self, response):
        super().__init__(f"{response.message} ({response.reason})")
        self.response = response


# ---- events and their fields -----------------------------------------------------------------------------------------


class Event:
    """A descriptor, made ready to read items with it."""

    def __init__(self, descriptor):
        self.name, self.period = descriptor.name, descriptor.period
        self.is_external = descriptor.event.startswith("external:")
        self.fields = [(f.name, f.kind in (pb.FIELD_KIND_TEXT, pb.FIELD_KIND_BYTES), f.count,
                        f.kind == pb.FIELD_KIND_SIGNED) for f in descriptor.fields]
        self.named = [f for f in descriptor.fields if f.values]

    def decode(self, item):
        """{name: value} of one item: numbers as int, arrays as lists, texts as bytes."""
        numbers, texts, fields = iter(item.numbers), iter(item.texts), {}

        def number(signed):
            value = next(numbers)
            return value - (1 << 64) if signed and value >> 63 else value

        try:
            for name, is_text, count, signed in self.fields:
                if is_text:
                    fields[name] = next(texts)
                elif count == 1:
                    fields[name] = number(signed)
                else:
                    length = count or next(numbers)
                    require(length <= len(item.numbers), f"an array of {length} in an item of {self.name}")
                    fields[name] = [number(signed) for _ in range(length)]
        except StopIteration:
            raise Broken(f"an item of {self.name} is shorter than its descriptor") from None
        require(next(numbers, None) is None and next(texts, None) is None,
                f"an item of {self.name} is longer than its descriptor")
        return fields

    def names(self, fields):
        """{name: text} of the values that have names, a list for an array."""
        named = {f.name: [render(f, n) for n in fields[f.name]] if f.count != 1 else render(f, fields[f.name])
                 for f in self.named}
        return {name: text for name, text in named.items() if text}


# what every item has, or what is read by its descriptor
COMMON = ("time", "event", "cpu", "pid", "tid", "comm", "numbers", "texts", "period")


def plain(value):
    """A field as numbers, bytes, lists and dicts; a message has all of its fields, also those that are 0."""
    if hasattr(value, "DESCRIPTOR"):
        return {field.name: plain(getattr(value, field.name)) for field in value.DESCRIPTOR.fields}
    return value if isinstance(value, (int, float, str, bytes)) else [plain(element) for element in value]


def render(field, number):
    """The name of a number, or of its flags, as the kernel's own format has it; None if there is none."""
    names = {value.value: value.name for value in reversed(field.values)}
    own = number & ((1 << 8 * field.size) - 1)
    for value in (number & ((1 << 64) - 1), own):
        if value in names:
            return names[value]
    if not field.flags:
        return None
    left, words = own, []
    for value in field.values:
        if value.value and left & value.value == value.value:
            words.append(value.name)
            left &= ~value.value
    return (field.delimiter or "|").join(words + [hex(left)] * (left > 0)) if words else None


# ---- the connection --------------------------------------------------------------------------------------------------


class Client:
    """One connection: requests first, then perhaps one stream."""

    def __init__(self, path, program="subscriber.py"):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(path)
        self.received, self.last_id = bytearray(), 0
        self.messages = collections.deque()  # that were received
        self.pooled = 0  # of these, packets that came in a pool
        self.ring, self.fds = None, []
        self.stream, self.enough, self.stopped = None, False, False
        self.wakes = None  # what a handler of signals makes readable, so that none is overlooked
        self.hello = self.request(hello=pb.Hello(protocol=VERSION, program=program)).hello

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, **body):
        self.last_id += 1
        message = pb.Request(id=self.last_id, **body).SerializeToString()
        self.socket.sendall(struct.pack("<I", len(message)) + message)

    def take_frame(self):
        """One whole message out of what was received, or None."""
        if len(self.received) < 4:
            return None
        length, = struct.unpack_from("<I", self.received)
        require(length <= MAX_FRAME, f"a frame of {length} bytes")
        if len(self.received) < 4 + length:
            return None
        message = pb.ServerMessage.FromString(bytes(self.received[4:4 + length]))
        del self.received[:4 + length]
        if message.HasField("pooled"):
            require(self.ring, "a packet in a pool, and no pool")
            packet = pb.Packet.FromString(self.ring.packet(message.pooled))
            require(not packet.sequence, "a packet in a pool has a number of its own")
            packet.sequence = message.pooled.sequence
            message = pb.ServerMessage(packet=packet)
            self.pooled += 1
        return message

    def take_frames(self, got):
        self.received += got
        while message := self.take_frame():
            self.messages.append(message)

    def receive(self):
        """The next message; None at the end of the connection."""
        while not self.messages:
            got = self.receive_shared() if self.ring else self.receive_bytes()
            if not got:
                require(not self.received, "the connection ends in the middle of a frame")
                return None
            if not self.ring:
                self.take_frames(got)
        return self.messages.popleft()

    def wait(self):
        """Until the socket has something. A signal that comes between two calls would not end the second one by itself."""
        while self.wakes and self.socket not in select.select([self.socket, self.wakes], [], [])[0]:
            self.wakes.recv(1 << 12)

    def receive_bytes(self):
        """Some bytes from the socket, b"" at its end; fds that come with them are in .fds."""
        self.wait()
        got, fds, _, _ = socket.recv_fds(self.socket, 1 << 16, 3)
        self.fds += fds
        return got

    def receive_bells(self):
        """b"" at the end of the connection, also where the daemon has ended it before it read all that was said of room."""
        self.wait()
        try:
            bells = self.socket.recv(1 << 16)
        except ConnectionResetError:
            return b""
        require(not any(bells), "something else than bells beside a ring")
        return bells

    def take_shared(self):
        """What is in the ring, whose messages are taken before it is given back."""
        got = self.ring.look()
        self.take_frames(got)
        if self.ring.give_back(len(got)):
            self.tell()
        return got

    def receive_shared(self):
        """The same from the ring. Where there is nothing, bells by the socket say when to look again."""
        while not (got := self.take_shared()):
            self.ring.sleep()
            got = self.take_shared()
            if not got:
                bells = self.receive_bells()
                self.ring.wake()
                got = self.take_shared()
                if not bells:
                    return got  # what is in the ring is the end of the stream
            if got:
                break
        self.ring.wake()
        return got

    def tell(self):
        """The ring has room again."""
        try:
            self.send(room=pb.Empty())
        except ConnectionError:
            pass  # the stream has ended: the rest of it is in the ring

    def request(self, **body):
        """Sends a request, e.g. request(list=pb.ListRequest()), and gives its response. Refused if it was refused."""
        self.send(**body)
        message = self.receive()
        require(message and message.WhichOneof("body") == "response", "no response came")
        if message.response.status != pb.STATUS_OK:
            raise Refused(message.response)
        require(message.response.id == self.last_id, "the response belongs to another request")
        return message.response

    def subscribe(self, **subscription):
        """Begins a stream; gives its items as dicts until it ends. Arguments are the fields of SubscribeRequest."""
        ring = self.request(subscribe=pb.SubscribeRequest(**subscription)).ring
        require(bool(ring.bytes) == bool(subscription.get("ring_bytes")), "a ring that nobody asked for, or none")
        if ring.bytes:
            require(len(self.fds) == 2 + bool(ring.pool_bytes),
                    "no fds came: this socket is forwarded, subscribe anew without ring_bytes")
            fds, self.fds = self.fds, []
            self.ring = Ring(fds, ring.bytes, ring.offset, ring.pool_bytes)
            require(not any(self.received) and not any(message.WhichOneof("body") for message in self.messages),
                    "something else than bells beside a ring")
            self.received.clear()
            self.messages.clear()
        self.stream = Stream()
        if self.enough:
            self.stop()
        return self.items()

    def items(self):
        while not self.stream.end:
            message = self.receive()
            require(message, "the stream closed without its end")
            require(message.WhichOneof("body") == "packet", "something else than a packet in the stream")
            yield from self.stream.take(message.packet)
        require(self.receive() is None, "something follows the end of the stream")

    def stop(self):
        """Asks for the end of the stream, once; of one that is only asked for yet, as soon as it is there."""
        self.enough = True
        if self.stream and not self.stopped:
            self.stopped = True
            try:
                self.send(stop=pb.Empty())
            except ConnectionError:
                pass  # it ends already: what is to be received says how

    @property
    def end(self):
        """{"reason": ..., "ledger": [row, ...]} when the stream has ended."""
        return self.stream.end


class Stream:
    """What a stream has said so far, checked packet by packet."""

    def __init__(self):
        self.start = self.end = None
        self.events, self.removed = {}, set()
        self.tasks, self.processes = {}, {}
        self.sequence = self.items = self.last_time = 0
        self.missing_for = {"outbox": 0, "memory": 0}  # by the reason of their gaps

    def take(self, packet):
        for gap in packet.gap:
            self.take_gap(gap)
        require(packet.sequence == self.sequence + 1,
                f"packet {packet.sequence} follows {self.sequence}, and no gap says why")
        self.sequence = packet.sequence
        require(packet.HasField("start") == (packet.sequence == 1), "start is in the first packet, and only there")
        if packet.HasField("start"):
            self.start = packet.start
        self.events.update((descriptor.id, Event(descriptor)) for descriptor in packet.events)
        for tid in packet.forgotten_tasks:
            require(tid in self.tasks, f"task {tid} is forgotten, and was never described")
            self.forget_task(tid)
        for task in packet.tasks:
            self.take_task(task)
        for item in packet.items:
            yield self.take_item(item)
        self.removed.update(ref.id for ref in packet.removed)
        if packet.HasField("end"):
            self.take_end(packet.end)

    @property
    def missing(self):
        return sum(self.missing_for.values())

    def take_gap(self, gap):
        require(gap.first_sequence == self.sequence + 1 and gap.last_sequence >= gap.first_sequence,
                f"a gap from {gap.first_sequence} to {gap.last_sequence} behind packet {self.sequence}")
        require(gap.items == sum(e.items for e in gap.events), "the events of a gap are not its items")
        self.sequence = gap.last_sequence
        require(gap.reason in self.missing_for, f"a gap for {gap.reason}")
        self.missing_for[gap.reason] += gap.items
        if self.start.order == pb.ORDER_TIME and gap.items:
            require(self.last_time <= getattr(gap, "from") <= gap.to, "a gap older than the item before it")
            self.last_time = gap.to

    def forget_task(self, tid):
        """Its process stays as long as one of its tasks is known."""
        if gone := self.tasks.pop(tid, None):
            tids = self.processes[gone.pid][1]
            tids.remove(tid)
            if not tids:
                del self.processes[gone.pid]

    def take_task(self, task):
        if task.tid in self.tasks and self.tasks[task.tid].pid != task.pid:
            self.forget_task(task.tid)
        if task.HasField("process"):
            self.processes[task.pid] = task.process, self.processes.get(task.pid, (None, set()))[1]
        require(task.pid in self.processes, f"task {task.tid} comes without its process {task.pid}")
        self.processes[task.pid][1].add(task.tid)
        self.tasks[task.tid] = task

    def who(self, item):
        """Names of the thread and the process of an item; what is not known is not there."""
        if item.tid == 0:
            event = self.events.get(item.event)
            is_of_nobody = item.WhichOneof("record") == "read" or (event and event.is_external)
            return {"comm": b"" if is_of_nobody else b"swapper/%d" % item.cpu}
        task = self.tasks.get(item.tid)
        if not task:
            return {"comm": b""}
        process = self.processes[task.pid][0]
        known = {name: getattr(process, name) for name in
                 ("executable", "parent", "start", "cgroup", "cgroup_id", "container", "runtime", "pod_uid", "unit")}
        if process.HasField("uid"):
            known["uid"] = process.uid
        return {"comm": task.comm, "process": {n: v for n, v in known.items() if v or n == "uid"}}

    def take_item(self, item):
        self.items += 1
        require(self.start.order != pb.ORDER_TIME or item.time >= self.last_time,
                f"an item at {item.time} follows one at {self.last_time}")
        self.last_time = item.time
        event, record = self.events.get(item.event), item.WhichOneof("record")
        require(event or record, "an item that is neither a sample nor a side record, or comes before its descriptor")
        require(event or item.event == 0, f"a record of event {item.event}, which has no descriptor")
        require(item.event not in self.removed, f"an item of event {item.event}, which is removed")
        result = {"time": item.time, "event": event and event.name, "cpu": item.cpu, "pid": item.pid, "tid": item.tid,
                  **self.who(item), "fields": {}}
        if record:
            content = getattr(item, record)
            result["record"] = record
            result["fields"] = plain(content)
        else:
            result["fields"] = event.decode(item)
            if names := event.names(result["fields"]):
                result["names"] = names
            result["period"] = item.period or 1
        for field, value in item.ListFields():
            if field.containing_oneof is None and field.name not in COMMON:
                result[field.name] = plain(value)
        return result

    def take_end(self, end):
        self.truncated = end.ledger.truncated
        rows = check_ledger(end.ledger)
        require(len(end.ledger.subscribers) == 1, "the closing ledger has not just this subscriber's row")
        own = rows[-1]
        require(own["sent"] == self.items, f"{self.items} items came, and the daemon says that it sent {own['sent']}")
        require(own["queued"] == 0, f"{own['queued']} items lie between the stream and its end")
        for reason, missing in self.missing_for.items():
            require(own["dropped"].get(reason, 0) == missing, f"gaps of {missing} items, and {own['dropped']} dropped")
        self.end = {"reason": end.reason, "ledger": rows}


# ---- the program -----------------------------------------------------------------------------------------------------


def jsonable(value):
    """Bytes from the traced host: as text, with what is no UTF-8 escaped."""
    return value.decode("utf-8", "backslashreplace")


def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--socket", default=os.environ.get("PERFD_SOCKET", "/run/perfd/stream.sock"))
    p.add_argument("--where", default="", help="only items for which this expression holds")
    p.add_argument("--fields", default="", help="only these fields, separated by commas")
    p.add_argument("--order", choices=("time", "cpu"), default="time")
    p.add_argument("--payload", choices=("fields", "raw", "both"), default="fields")
    p.add_argument("--overflow", choices=("drop-oldest", "drop-newest", "disconnect"), default="drop-oldest")
    p.add_argument("--queue-bytes", type=int, default=0)
    p.add_argument("--ring", type=int, default=0, help="bytes of shared memory that the stream comes by")
    p.add_argument("--records", action="store_const", const=0b1111, default=0, help="comm, fork, exit and mmap2 too")
    p.add_argument("--kinds", action="append", choices=pb.RecordKind.keys(), help="records of this kind too")
    p.add_argument("--count", type=int, default=0, help="stop after so many items")
    p.add_argument("--for", type=float, default=0, dest="seconds", help="stop after so many seconds")
    p.add_argument("--quiet", action="store_true", help="check every item, print only the closing ledger")
    p.add_argument("events", nargs="*", metavar="EVENT", help="names or globs; none: all")
    return p.parse_args()


def catch_signals(client):
    """They end the stream, from now on."""
    client.wakes, theirs = socket.socketpair()
    theirs.setblocking(False)
    signal.set_wakeup_fd(theirs.detach(), warn_on_full_buffer=False)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, lambda *_: client.stop())


def main():
    a = arguments()
    with Client(a.socket) as client:
        catch_signals(client)
        items = client.subscribe(
            events=a.events, where=a.where, fields=a.fields.split(",") if a.fields else [],
            order=f"ORDER_{a.order.upper()}", payload=f"PAYLOAD_{a.payload.upper()}",
            overflow=f"OVERFLOW_{a.overflow.upper().replace('-', '_')}", queue_bytes=a.queue_bytes, ring_bytes=a.ring,
            pool=a.ring > 0, records=sum({1 << pb.RecordKind.Value(kind) for kind in a.kinds or ()}) | a.records)
        signal.setitimer(signal.ITIMER_REAL, a.seconds)
        for n, item in enumerate(items, 1):
            if not a.quiet and (n <= a.count or not a.count):
                print(json.dumps(item, default=jsonable), flush=True)
            if n == a.count:
                client.stop()
        for row in client.end["ledger"]:
            print(json.dumps(row))


if __name__ == "__main__":
    try:
        main()
    except (Refused, Broken, OSError) as error:
        sys.exit(f"subscriber.py: {error}")
