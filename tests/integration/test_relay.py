#!/usr/bin/python3
"""perfd-relay: what comes by TLS is what comes by the socket, to the last sample; a client gets what relay.yaml permits, and one that is
refused hears why. Needs root."""
import threading

import perfd
from perfd import Daemon, Workload, add, check, equal, pb, wait_until
from relay import Relay
from test_perfctl import GETPPID
from test_promises import CPUS

CALLS = 200_000


def event_rows(end):
    """What the closing ledger says of events: the same for everybody whose stream began and ended while nothing happened."""
    return [{**row, "since": None} for row in end["ledger"] if row["kind"] == "event"]


def sent_to(end):
    """What it says of the subscriber itself."""
    return [(row["matched"], row["sent"], row["dropped"], row["queued"]) for row in end["ledger"] if row["kind"] == "subscriber"]


class Reader(threading.Thread):
    """Reads the stream of a client in a thread, asks for its end after so many items, and has counted them when it is joined."""

    def __init__(self, client, enough, **subscription):
        super().__init__(daemon=True)
        self.client, self.enough, self.items, self.n, self.error = client, enough, client.subscribe(**subscription), 0, None
        self.start()

    def run(self):
        try:
            for _ in self.items:
                self.n += 1
                if self.n == self.enough:
                    self.client.stop()
        except Exception as error:  # pylint: disable=broad-except
            self.error = error

    def end(self):
        self.join(perfd.PATIENCE)
        check(not self.is_alive(), f"{self.n} of {self.enough} items, and no end")
        if self.error:
            raise self.error
        return self.client.end


def test_every_call():
    """Two programs of a known number of calls, read by TLS and by the socket at once: each gets all of them, and the same ledger."""
    with Daemon() as daemon, daemon.client() as control, Workload("syscalls", CALLS, cpus=CPUS) as load, Relay(daemon) as relay:
        event, = add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
        with relay.client() as remote, daemon.client(stream=True) as local:
            equal(remote.hello.may_change, False, "what a client by the stream socket may change")
            readers = [Reader(c, CALLS * len(CPUS), events=[event.name], queue_bytes=64 << 20) for c in (remote, local)]
            wait_until(lambda: daemon.status().n_subscribers == 2, "both to subscribe")
            load.go()
            load.done()
            ends = [reader.end() for reader in readers]
            equal([reader.n for reader in readers], [sum(load.counts)] * 2, "the samples by TLS and by the socket")
            equal(event_rows(ends[0]), event_rows(ends[1]), "the closing ledgers, of events")
            equal(sent_to(ends[0]), sent_to(ends[1]), "the closing ledgers, of the subscribers")
            equal(sent_to(ends[0])[0][:2], (sum(load.counts),) * 2, "what was sent")
        relay.wait_for(r"CN:client, 127\.0\.0\.1:\d+, is connected")
        relay.wait_for(r"CN:client, 127\.0\.0\.1:\d+, has ended after \d+ bytes")


if __name__ == "__main__":
    perfd.main(globals())
