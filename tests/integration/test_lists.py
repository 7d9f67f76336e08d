#!/usr/bin/python3
"""Requests that are answered with every event, of which there are thousands: all others are served meanwhile. Needs root."""
import threading

import perfd
from perfd import Daemon, add, check, equal
from subscriber import Client, pb
from test_operations import others_are_served

N = 3000 if perfd.SANITIZER == "none" else 300
FIELDS = [pb.ExternalField(name=f"f{i}", type="u64") for i in range(64)]
CHANGING = [f"external:changes{i}" for i in range(50)]
CONFIG = "version: 1\nsubscribers: {memory: 1GiB, memory-per-uid: 1GiB}\n"


def add_many(root):
    names = [f"external:e{i:04}" for i in range(N)]
    for i in range(0, N, 300):
        add(root, *({"event": name, "fields": FIELDS} for name in names[i:i + 300]))
    return names


class Changing:
    """Adds the same events, all at once, and removes them, all at once, for as long as its body runs."""

    def __init__(self, daemon):
        self.daemon, self.enough, self.n, self.error = daemon, threading.Event(), 0, None
        self.thread = threading.Thread(target=self.run)

    def run(self):
        try:
            with self.daemon.client() as client:
                while not self.enough.is_set():
                    add(client, *({"event": name, "fields": FIELDS[:1]} for name in CHANGING))
                    client.request(remove=pb.SelectRequest(names=["external:changes*"]))
                    self.n += 1
        except Exception as error:  # pylint: disable=broad-exception-caught
            self.error = error

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.enough.set()
        self.thread.join()
        equal(self.error, None, "who adds and removes")
        check(self.n > 0, "nothing was added and removed")


def names_of(reply):
    return [event.spec.name for event in reply.list.events]


def test_lists():
    """A list is of one moment: of a change that is made as a whole it has all, or nothing, and each event once."""
    with Daemon(CONFIG) as daemon, daemon.client() as root:
        names = add_many(root)
        with others_are_served(daemon, f"a list of {N} events with their fields"):
            reply = root.request(list=pb.ListRequest(fields=True))
        equal(names_of(reply), names, "the events of a list")
        equal({len(event.fields) for event in reply.list.events}, {64}, "their fields")
        with Changing(daemon) as changing:
            seen = set()
            while len(seen) < 2 and changing.error is None:
                found = names_of(root.request(list=pb.ListRequest(glob="external:*")))
                equal(found[:N], names, "the events that stay")
                check(found[N:] in ([], CHANGING), f"a part of a change: {found[N:]}")
                seen.add(len(found))
        with others_are_served(daemon, f"a ledger of {N} events"):
            equal(len(root.request(ledger=pb.LedgerRequest()).ledger.events), N, "rows")


def test_streams():
    """A stream begins with the descriptors of all that there is."""
    with Daemon(CONFIG) as daemon, daemon.client() as root:
        names = add_many(root)
        with others_are_served(daemon, f"a stream of {N} events"), Client(daemon.stream) as client:
            items = client.subscribe()
            client.stop()
            equal(list(items), [], "items")
            equal([event.name for event in client.stream.events.values()], names, "descriptors")
        with Client(daemon.stream) as client:
            client.send(subscribe=pb.SubscribeRequest())
        equal(len(root.request(list=pb.ListRequest()).list.events), N, "events, behind a client that went")


if __name__ == "__main__":
    perfd.main(globals())
