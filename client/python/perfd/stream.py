"""A stream: what it has said so far, checked packet by packet, and what it says next."""
import collections
import os
import signal
import socket

from . import ledger
from . import perfd_pb2 as pb
from .connection import deadline_in
from .errors import Disconnected, ProtocolError, Refused, require
from .event import Event
from .items import Gap, Record, Sample, plain, zero_tid_of
from .wall import WallTimes

MAX_TASKS = 1 << 20  # that a client has to remember
OWN_GAPS = ("outbox", "relay_queue", "memory")  # reasons that gaps and the ledger's `dropped` have in common


class End:
    """Why a stream ended, and its closing ledger."""

    def __init__(self, message):
        self.reason, self.ledger = message.reason, message.ledger
        self.lost = ledger.losses(message.ledger)  # {reason: count}; empty: nothing that it asked for is missing
        self.balanced = ledger.balanced(message.ledger)
        self.limited = message.ledger.limited  # a rule's predicate limits the samples: the ledger has only what was lost


class Stream:
    """What Client.subscribe() gives: iterate over it, or call read(). Behind its last item it has `end`."""

    def __init__(self, client):
        self.client = client
        self.start = self.end = None
        self.walls = None  # WallTimes, from the first packet on
        self.events, self.removed = {}, set()
        self.tasks, self.processes = {}, {}
        self.sequence = self.items = self.last_time = 0
        self.missing_for = {}  # items, by the reason of their gaps
        self.stopped = False
        self.handlers, self.woken = {}, None  # of signals, and the fd that they wake, as they were before

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Ends the connection at once, without what is on its way and the ledger: see stop()."""
        self.client.close()
        for number, handler in self.handlers.items():
            signal.signal(number, handler)
        if self.woken is not None:
            os.close(signal.set_wakeup_fd(self.woken))
            self.client.wakes.close()
        self.handlers, self.woken = {}, None

    def fileno(self):
        """To wait for with others: when it is readable, read(0) until that gives nothing."""
        return self.client.fileno()

    # ---- what comes next ----

    def __iter__(self):
        """Everything in its order: Sample, Record and Gap."""
        while (items := self.read()) is not None:
            yield from items

    def samples(self):
        """Samples alone. What is missing between them is in `missing`, and at last in `end`."""
        return (item for item in self if isinstance(item, Sample))

    def read(self, timeout=None):
        """What comes next, in a list: of one packet. [] when these seconds are over, None behind the end."""
        deadline = deadline_in(timeout)
        try:
            while not self.end:
                message = self.client.receive(deadline)
                if not message:
                    raise Disconnected("the stream closed without its end")
                if message.WhichOneof("body") == "response" and not message.response.id and message.response.status:
                    raise Refused(message.response)  # why the daemon, or a relay, closes the connection
                require(message.WhichOneof("body") == "packet", "something else than a packet in the stream")
                items = list(self.take(message.packet))
                if self.end:
                    require(self.client.receive() is None, "something follows the end of the stream")
                if items:
                    return items
        except TimeoutError:
            if deadline is None:
                raise
            return []
        except (ProtocolError, Disconnected, Refused):
            self.close()
            raise
        return None

    def stop(self):
        """Asks for the end of the stream, once: what is on its way and the closing ledger still come.

        May be called by a handler of signals, and by another thread.
        """
        if not self.stopped:
            self.stopped = True
            try:
                self.client.send(stop=pb.Empty())
            except ConnectionError:
                pass  # it ends already: what is to be received says how

    def stop_at_signals(self, *numbers):
        """From now on, until the stream is closed, these signals stop() it. For the main thread; once for each stream."""
        self.client.wakes, theirs = socket.socketpair()
        theirs.setblocking(False)
        self.woken = signal.set_wakeup_fd(theirs.detach(), warn_on_full_buffer=False)
        for number in numbers:
            self.handlers[number] = signal.signal(number, lambda *_: self.stop())

    @property
    def missing(self):
        """How many items gaps stand for so far."""
        return sum(self.missing_for.values())

    def wall(self, time):
        """Wall time at the time of an item that came: (ns since 1970, the error in ns, or None if that is not known)."""
        return self.walls.at(time)

    # ---- what came ----

    def take(self, packet):
        """The items of a Packet, in their order. Goes on with the stream only as far as they are taken."""
        for gap in packet.gap:
            yield self._take_gap(gap)
        require(packet.sequence == self.sequence + 1,
                f"packet {packet.sequence} follows {self.sequence}, and no gap says why")
        self.sequence = packet.sequence
        require(packet.HasField("start") == (packet.sequence == 1), "start is in the first packet, and only there")
        if packet.HasField("start"):
            self.start = packet.start
            self.walls = WallTimes(packet.start)
        if packet.HasField("wall"):
            self.walls.add(packet.wall)
        self.events.update((descriptor.id, Event(descriptor)) for descriptor in packet.events)
        for tid in packet.forgotten_tasks:
            require(tid in self.tasks, f"task {tid} is forgotten, and was never described")
            self._forget_task(tid)
        for task in packet.tasks:
            self._take_task(task)
        for item in packet.items:
            yield self._take_item(item)
        for ref in packet.removed:
            self.removed.add(ref.id)
            self.events.pop(ref.id, None)
        if packet.HasField("end"):
            self._take_end(packet.end)

    def _take_gap(self, gap):
        require(self.start and gap.first_sequence == self.sequence + 1 and gap.last_sequence >= gap.first_sequence,
                f"a gap from {gap.first_sequence} to {gap.last_sequence} behind packet {self.sequence}")
        require(gap.items == sum(e.items for e in gap.events), "the events of a gap are not its items")
        self.sequence = gap.last_sequence
        self.missing_for[gap.reason] = self.missing_for.get(gap.reason, 0) + gap.items
        if self.start.order == pb.ORDER_TIME and gap.items:
            require(self.last_time <= getattr(gap, "from") <= gap.to, "a gap older than the item before it")
            self.last_time = gap.to
        events = collections.Counter()
        for e in gap.events:
            events[self.events[e.event].name if e.event in self.events else None] += e.items
        return Gap(gap, dict(events))

    def _forget_task(self, tid):
        """Its process stays as long as one of its tasks is known."""
        if gone := self.tasks.pop(tid, None):
            tids = self.processes[gone.pid][1]
            tids.remove(tid)
            if not tids:
                del self.processes[gone.pid]

    def _take_task(self, task):
        if task.tid in self.tasks and self.tasks[task.tid].pid != task.pid:
            self._forget_task(task.tid)
        if task.HasField("process"):
            self.processes[task.pid] = task.process, self.processes.get(task.pid, (None, set()))[1]
        require(task.pid in self.processes, f"task {task.tid} comes without its process {task.pid}")
        self.processes[task.pid][1].add(task.tid)
        self.tasks[task.tid] = task
        require(len(self.tasks) <= MAX_TASKS, f"more than {MAX_TASKS} tasks to be remembered")

    def _who(self, item):
        """comm of an item's thread, and its Process; b"" and None if that is not known."""
        if item.tid == 0:
            event = self.events.get(item.event)
            if item.WhichOneof("record") == "read" or (event and event.is_external):
                return b"", None  # of nobody
            zero_tid = zero_tid_of(item)
            if zero_tid == "outside":
                return b"outside", None
            if zero_tid == "idle" or (zero_tid is None and 0 not in self.tasks):
                return b"swapper/%d" % item.cpu, None
        task = self.tasks.get(item.tid)
        return (task.comm, self.processes[task.pid][0]) if task else (b"", None)

    def _take_item(self, item):
        self.items += 1
        require(self.start.order != pb.ORDER_TIME or item.time >= self.last_time,
                f"an item at {item.time} follows one at {self.last_time}")
        self.last_time = item.time
        event, record = self.events.get(item.event), item.WhichOneof("record")
        require(item.event not in self.removed, f"an item of event {item.event}, which is removed")
        require(event or record, "an item that is neither a sample nor a side record, or comes before its descriptor")
        require(event or item.event == 0, f"a record of event {item.event}, which has no descriptor")
        comm, process = self._who(item)
        if record:
            return Record(record, item, event, comm, process, plain(getattr(item, record)))
        return Sample(item, event, comm, process, event.decode(item))

    def _take_end(self, end):
        subscribers = end.ledger.subscribers
        require(len(subscribers) == 1, "the closing ledger has not just this subscriber's row")
        own, dropped = subscribers[0], ledger.counts(subscribers[0].dropped)
        require(own.sent == self.items, f"{self.items} items came, and the daemon says that it sent {own.sent}")
        require(own.queued == 0, f"{own.queued} items lie between the stream and its end")
        for reason in OWN_GAPS:
            missing = self.missing_for.get(reason, 0)
            require(dropped.get(reason, 0) == missing, f"gaps of {missing} items for {reason}, and {dropped} dropped")
        self.end = End(end)
