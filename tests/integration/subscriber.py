#!/usr/bin/python3
"""Subscribes to perfd and prints every item as a line of JSON: the client of client/python, and a check of the daemon.

That client shares no code with perfd and verifies what the protocol promises on the way; here every row of the closing ledger
has to add up too. A broken promise is an exception, and status 1.

    subscriber.py --socket /run/perfd/stream.sock --where 'prev_comm == "bash"' --count 10 sched:sched_switch

As a module:

    with Client("/run/perfd/stream.sock") as client:
        for item in client.subscribe(events=["sched:*"]):
            print(item["time"], item["event"], item["fields"])
            if enough:
                client.stop()                   # what is on its way and the closing ledger still come
        print(client.end["ledger"])
"""
import argparse
import json
import os
import signal
import sys

import package
from package import pb
from package.errors import require
from stream_ledger import check_ledger

Broken, Refused = package.ProtocolError, package.Refused
# what a process has that is told of only if it is there
KNOWN = ("executable", "parent", "start", "cgroup", "cgroup_id", "container", "runtime", "pod_uid", "unit")


def as_dict(item):
    """A Sample or Record, to be compared and printed."""
    result = {"time": item.time, "event": item.event and item.event.name, "cpu": item.cpu, "pid": item.pid, "tid": item.tid,
              "comm": item.comm, "fields": item.fields}
    if item.process:
        result["process"] = {name: value for name in KNOWN if (value := getattr(item.process, name))}
        if item.process.HasField("uid"):
            result["process"]["uid"] = item.process.uid
    elif item.tid and item.comm:
        result["process"] = {}
    if item.zero_tid:
        result["zero_tid"] = item.zero_tid
    if isinstance(item, package.Record):
        result["record"] = item.kind
    else:
        result["period"] = item.period
        if item.names:
            result["names"] = item.names
    return {**result, **item.parts}


class Checked(package.Stream):
    """Gives dicts, and no gaps: these are in .missing. Its ledger has to balance, in every row."""

    def take(self, packet):
        for item in super().take(packet):
            if not isinstance(item, package.Gap):
                yield as_dict(item)

    def _take_gap(self, gap):
        require(gap.reason in ("outbox", "relay_queue", "memory"), f"a gap for {gap.reason}")
        return super()._take_gap(gap)

    def _take_end(self, end):
        self.truncated, self.limited = end.ledger.truncated, end.ledger.limited
        rows = check_ledger(end.ledger)
        super()._take_end(end)
        self.end = {"reason": end.reason, "ledger": rows}


class Client(package.Client):
    """.subscribe() gives the items of its stream one by one, as they are read, and .end what Checked has of it."""
    stream_type = Checked

    def __init__(self, path, program="subscriber.py"):
        self.enough = False
        super().__init__(path, program=program)

    def subscribe(self, events=(), **subscription):  # pylint: disable=arguments-differ
        super().subscribe(*events, **subscription)
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
        """Asks for the end of the stream; of one that is only asked for yet, as soon as it is there."""
        self.enough = True
        if self.stream:
            self.stream.stop()

    @property
    def end(self):
        """{"reason": ..., "ledger": [row, ...]} when the stream has ended."""
        return self.stream.end


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
    """They end the stream, from now on, also one that is only asked for yet."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, lambda *_: client.stop())


def main():
    a = arguments()
    with Client(a.socket) as client:
        catch_signals(client)
        items = client.subscribe(
            events=a.events, where=a.where, fields=a.fields.split(",") if a.fields else [], order=a.order, payload=a.payload,
            overflow=a.overflow, queue_bytes=a.queue_bytes, ring_bytes=a.ring,
            pool=a.ring > 0, records=sum({1 << pb.RecordKind.Value(kind) for kind in a.kinds or ()}) | a.records)
        client.stream.stop_at_signals(signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
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
    except (package.Error, Broken, OSError) as error:
        sys.exit(f"subscriber.py: {error}")
