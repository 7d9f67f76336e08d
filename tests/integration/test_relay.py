#!/usr/bin/python3
"""perfd-relay: what comes by TLS is what comes by the socket, to the last sample; a client gets what relay.yaml permits, and one that is
refused hears why. Needs root."""
import contextlib
import os
import signal
import ssl
import threading
import time

import certificates
import perfd
from perfd import Daemon, Workload, add, check, equal, pb, wait_until
from relay import Relay, frame, read_message
from test_perfctl import GETPPID
from test_promises import CPUS

CALLS = 50_000
RATE = 50_000
SILENCE = 45  # s; perfd-relay(8): a host that does not answer is gone after 40 at most


def event_rows(end):
    """What the closing ledger says of events: the same for everybody whose stream began and ended while nothing happened."""
    return [{**row, "since": None} for row in end["ledger"] if row["kind"] == "event"]


def sent_to(end):
    """What it says of the subscriber itself, whose full queue has another name if it is behind a relay."""
    return [(row["matched"], row["sent"], {name.replace("relay_queue", "outbox"): n for name, n in row["dropped"].items()}, row["queued"])
            for row in end["ledger"] if row["kind"] == "subscriber"]


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


def test_stopped_reader():
    """One that takes nothing for longer than a peer may be silent is still there: it has a gap, and the sums close."""
    with Daemon() as daemon, daemon.client() as control, Workload("flood", 0, RATE, cpus=CPUS[:1]) as load, Relay(daemon) as relay:
        add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
        with relay.client() as remote:
            items = remote.subscribe(events=["calls"], queue_bytes=1 << 20)
            load.go()
            wait_until(lambda: any(s.dropped and s.dropped[0].count for s in daemon.ledger().subscribers), "its queue to overflow")
            end = time.monotonic() + SILENCE
            while time.monotonic() < end:  # that long is what is tested
                equal(daemon.status().n_subscribers, 1, "its stream")
                time.sleep(1)
            remote.stop()
            n = sum(1 for _ in items)
            row, = [row for row in remote.end["ledger"] if row["kind"] == "subscriber"]
            equal((row["sent"], row["queued"]), (n, 0), "what it got")
            equal(row["matched"], n + sum(row["dropped"].values()), f"what matched: {row}")
            check(row["dropped"]["relay_queue"] > 0 and "outbox" not in row["dropped"], f"what was dropped: {row}")
            equal(remote.stream.missing_for["relay_queue"], row["dropped"]["relay_queue"], "what gaps say of it")
        load.done(stop=True)


def ended_with(client, seconds=1.5):
    """The reason with which the relay ends the stream of a client between two frames, within so long; nothing follows it."""
    began = time.monotonic()
    while True:
        message = client.receive(began + perfd.PATIENCE)
        check(message, "the end without a reason")
        if message.WhichOneof("body") == "response":
            break
    check(time.monotonic() - began < seconds or perfd.SANITIZER != "none", f"the end took {time.monotonic() - began:.1f} s")
    equal((message.response.id, client.receive()), (0, None), "what the response belongs to, and what is behind it")
    return message.response.reason


@contextlib.contextmanager
def flooded(relay, daemon, names):
    """Streams of these clients while one event happens all the time."""
    with daemon.client() as control, Workload("flood", 0, RATE, cpus=CPUS[:1]) as load, contextlib.ExitStack() as stack:
        add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
        clients = [stack.enter_context(relay.client(name)) for name in names]
        for client in clients:
            client.subscribe(["calls"])
        wait_until(lambda: daemon.status().n_subscribers == len(names), "all to subscribe")
        load.go()
        yield clients
        load.done(stop=True)


def test_reload():
    """A certificate that is revoked ends its stream within a second, with the reason, in the middle of a flood; others notice nothing. So
    does a name that is not permitted any more, and one whose rights have changed."""
    rules = "[{ name: client, events: [calls] }, { name: gone, events: [calls] }, { name: less, events: ['*'] }, { name: other, events: [calls] }]"
    with Daemon() as daemon, Relay(daemon, rules) as relay:
        for name in "gone", "less", "other":
            relay.ca.issue(name)
        with flooded(relay, daemon, ["client", "gone", "less", "other"]) as (stays, gone, less, other):
            relay.reload()
            equal(daemon.status().n_subscribers, 4, "streams behind a reload that changes nothing")
            relay.ca.revoke("gone")
            relay.process.send_signal(signal.SIGHUP)
            equal(ended_with(gone), "revoked", "the reason")
            relay.configure("[{ name: client, events: [calls] }, { name: less, events: [calls] }]")
            relay.process.send_signal(signal.SIGHUP)
            equal(ended_with(less), "rights-changed", "the reason")
            equal(ended_with(other), "not-permitted", "the reason")
            wait_until(lambda: daemon.status().n_subscribers == 1, "only one stream to be left")
            stays.stop()
            check(sum(1 for _ in stays.items()) > 0, "nothing came")
            equal((stays.end["reason"], sent_to(stays.end)[0][2].get("late")), ("stopped", 0), "the end of the stream that stayed")
        relay.wait_for(r"CN:gone, [^\n]*has ended after \d+ bytes: certificate revoked")
        check("gone" not in relay.refused_by_tls("gone") and "revoked" in relay.refused_by_tls("gone").lower(), "it can come back")


def test_renewal():
    """As perfd-relay(8), Renewal, has it, under a stream: another certificate and key of the relay, another CA beside the old one, and then
    instead of it, which ends who has a certificate of the old one."""
    with Daemon() as daemon, Relay(daemon, "[{ name: '*', events: [calls] }]") as relay, flooded(relay, daemon, ["client"]) as (stays,):
        new = certificates.Authority(relay.folder.name, "new", "another CA")
        new.issue("newer")
        new.write_crl()
        before = relay.connect()
        relay.ca.issue("server", alternatives=["localhost"], usage="serverAuth", end=20)
        for name, others in ("ca.crt", "new.crt"), ("ca.crl", "new.crl"):
            with open(relay.at(others), "rb") as f, open(relay.at(name), "ab") as to:
                to.write(f.read())
        relay.reload()
        after = relay.connect("newer")
        check(before.getpeercert()["serialNumber"] != after.getpeercert()["serialNumber"], "the relay has the old certificate still")
        equal(daemon.status().n_subscribers, 1, "streams behind the reload")
        for name, others in ("ca.crt", "new.crt"), ("ca.crl", "new.crl"):
            with open(relay.at(others), "rb") as f, open(relay.at(name), "wb") as to:
                to.write(f.read())
        relay.process.send_signal(signal.SIGHUP)
        equal(ended_with(stays), "unknown-ca", "the reason")
        after.sendall(frame(hello=pb.Hello(protocol=1)))
        equal(read_message(after).response.status, pb.STATUS_OK, "who has a certificate of the new CA stays")
        before.close()
        after.close()


def test_reload_refused():
    """With an error in any file nothing changes, and each is said with its place."""
    with Daemon() as daemon, Relay(daemon) as relay, relay.client() as client:
        os.chmod(relay.at("client.key"), 0o644)
        with open(relay.at("relay.yaml"), "a", encoding="ascii") as f:
            f.write("clints: []\n")
        relay.reload()
        relay.wait_for(r"relay\.yaml:5:1: unknown key 'clints'; did you mean 'clients'\?")
        relay.wait_for("not reloaded, nothing has changed")
        relay.configure("[]")
        relay.reload()
        equal(client.request(status=pb.Empty()).daemon.pid, daemon.pid, "who is connected stays so")


def test_expiry():
    """A certificate that ends while its client is connected ends the connection."""
    with Daemon() as daemon, Relay(daemon) as relay:
        relay.ca.issue("brief", common_name="client", end=6 / certificates.DAY)
        with relay.client() as stays, relay.client("brief") as brief:
            equal(ended_with(brief, seconds=9), "expired", "the reason")
            equal(stays.request(status=pb.Empty()).daemon.pid, daemon.pid, "who has a longer one stays")


def test_stop():
    """SIGTERM tells each stream; what comes later finds nobody."""
    with Daemon() as daemon, Relay(daemon) as relay, flooded(relay, daemon, ["client", "client"]) as clients:
        relay.process.terminate()
        equal([ended_with(client) for client in clients], ["shutdown"] * 2, "the reasons")
        equal(relay.process.wait(perfd.PATIENCE), 0, "the status of the relay")
        wait_until(lambda: daemon.status().n_subscribers == 0, "perfd to see that they are gone")


def test_kill():
    """kill -9 in a flood: clients see the end, perfd too, a local subscriber loses nothing, and the next relay serves."""
    with Daemon() as daemon, Relay(daemon) as relay, daemon.client(stream=True) as local:
        with flooded(relay, daemon, ["client"]) as (remote,):
            items = local.subscribe(["calls"], queue_bytes=16 << 20)
            next(items)
            relay.process.kill()
            relay.process.wait()
            try:
                while remote.receive_bytes():
                    pass
            except (ConnectionError, ssl.SSLError):
                pass
            wait_until(lambda: daemon.status().n_subscribers == 1, "perfd to see that it is gone")
            local.stop()
            check(sum(1 for _ in items) > 0, "nothing came to the local subscriber")
            relay.start()
            with relay.client() as again:
                equal(again.request(status=pb.Empty()).daemon.pid, daemon.pid, "the next relay serves")


def test_rate():
    """bytes-per-second: what comes is not above it, and what perfd then drops is in numbered gaps."""
    rate = 200_000
    with Daemon() as daemon, Relay(daemon, f"[{{ name: client, events: ['*'], bytes-per-second: {rate}B, queue: 64KiB }}]") as relay, \
            flooded(relay, daemon, ["client"]) as (client,):
        began, n = time.monotonic(), 0
        while time.monotonic() < began + 2:
            n += len(client.receive_bytes())
        check(rate < n < 2 * rate + rate / 8 + 100_000, f"{n} bytes in two seconds, with {rate} in one")


if __name__ == "__main__":
    perfd.main(globals())
