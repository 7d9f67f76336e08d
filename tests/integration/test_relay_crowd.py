#!/usr/bin/python3
"""Ten thousand connections to perfd-relay, at once and one behind the other: those that may be are bounded, so is memory, and who is
connected already loses nothing. Needs root."""
import contextlib
import itertools
import os
import resource
import socket

import perfd
from perfd import Daemon, Workload, add, check, equal, pb, wait_until
from relay import Relay
from test_perfctl import GETPPID
from test_promises import CPUS
from test_relay import Reader, sent_to
from test_relay_hostile import rss

CROWD = 10_000
RATE = 2_000  # a second, of what neighbours read
ADDRESSES = [f"127.0.0.{i}" for i in range(2, 42)]
KIB = 1024
SILENT, HALF = 24 * KIB, 96 * KIB  # bytes of the relay for one that has sent nothing, and for one in the middle of its handshake
HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"  # the beginning of a ClientHello
IS_MEASURED = perfd.SANITIZER == "none"


def permit_fds():
    """For this process and those that it starts."""
    n = max(CROWD + 1000, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (n, n))


def connect_from(address, relay):
    s = socket.socket()
    try:
        s.settimeout(perfd.PATIENCE)
        s.bind((address, 0))
        s.connect(("127.0.0.1", relay.port))
        s.setblocking(False)
    except BaseException:
        s.close()
        raise
    return s


def is_closed(s):
    """Without select(2), which has room for 1,024."""
    try:
        return s.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def greet(relay):
    """A client that comes and goes: until the relay has seen both, so that what it has then is what it needs."""
    before = relay.said().count("has ended")
    relay.client().close()
    wait_until(lambda: relay.said().count("has ended") > before, "the relay to see that it is gone")


def n_fds(relay):
    return len(os.listdir(f"/proc/{relay.process.pid}/fd"))


@contextlib.contextmanager
def neighbours(daemon, relay):
    """A stream by TLS and one by the socket, of what happens all the time meanwhile: each gets all of it, without a gap."""
    with daemon.client() as control, Workload("flood", 0, RATE, cpus=CPUS[:1]) as load, relay.client() as remote, \
            daemon.client(stream=True) as local:
        add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=[*load.pids, os.getpid()])})
        readers = [Reader(c, None, events=["calls"], queue_bytes=64 << 20) for c in (remote, local)]
        wait_until(lambda: daemon.status().n_subscribers == 2, "both to subscribe")
        load.go()
        yield
        n = sum(load.done(stop=True)) + 1
        for reader in readers:
            reader.enough = n
        os.getppid()  # the last one, behind which they stop
        for reader in readers:
            equal((reader.end()["reason"], reader.n), ("stopped", n), "what a neighbour got")
            equal(sent_to(reader.client.end)[0][:2], (n, n), "its ledger")


def test_at_once():
    """As many as may authenticate stay, 16 of an address, and the others are closed at once. When their time is over, there is room."""
    permit_fds()
    with Daemon() as daemon, contextlib.ExitStack() as stack, Relay(daemon, listen=", handshake-timeout: 10s") as relay:
        with neighbours(daemon, relay):
            before = rss(relay)
            crowd = [stack.enter_context(connect_from(address, relay)) for _, address in zip(range(CROWD), itertools.cycle(ADDRESSES))]
            wait_until(lambda: sum(map(is_closed, crowd)) >= CROWD - 256, "those above the limit to be closed")
            for s in crowd:
                with contextlib.suppress(OSError):
                    s.sendall(HELLO)
            grown = rss(relay) - before
            check(grown < 256 * HALF or not IS_MEASURED, f"{grown} bytes for 256 that authenticate")
        wait_until(lambda: all(map(is_closed, crowd)), "the others to be closed")
        check(len(relay.said()) < 100_000, f"{len(relay.said())} bytes of log")
        relay.client().close()


def test_one_address():
    """One address has room for 16, and others come beside it."""
    with Daemon() as daemon, contextlib.ExitStack() as stack, Relay(daemon, listen=", handshake-timeout: 5m") as relay:
        crowd = [stack.enter_context(connect_from("127.0.0.9", relay)) for _ in range(500)]
        wait_until(lambda: sum(map(is_closed, crowd)) == 500 - 16, "those above the limit to be closed")
        relay.client().close()
        relay.wait_for(r"127\.0\.0\.9:\d+ is closed at once: as many clients of its address authenticate as listen\.handshakes-per-address")


def test_permitted():
    """All ten thousand, where the limits permit them: what each costs is little, others come, and the relay stops as quickly as ever."""
    permit_fds()
    with Daemon() as daemon, contextlib.ExitStack() as stack, \
            Relay(daemon, listen=", handshakes: 20000, handshakes-per-address: 20000, handshake-timeout: 5m") as relay:
        greet(relay)
        with neighbours(daemon, relay):
            fds, before = n_fds(relay), rss(relay)
            for _, address in zip(range(CROWD), itertools.cycle(ADDRESSES)):
                stack.enter_context(connect_from(address, relay))
            wait_until(lambda: n_fds(relay) == fds + CROWD, "all to be accepted")
            each = (rss(relay) - before) / CROWD
            print(f"  {each / KIB:.1f} KiB for each that is silent")
            check(each < SILENT or not IS_MEASURED, f"{each} bytes for each that is silent")
            with relay.client() as client:
                equal(client.request(status=pb.Empty()).daemon.pid, daemon.pid, "who comes behind them")


def test_in_turn():
    """Each is there for a moment, with a beginning of something: no fd stays, no memory, and the log is not theirs to fill."""
    with Daemon() as daemon, Relay(daemon) as relay:
        greet(relay)
        with neighbours(daemon, relay):
            fds, before = n_fds(relay), 0
            for i, address in zip(range(CROWD), itertools.cycle(ADDRESSES)):
                if i == CROWD // 10:
                    before = rss(relay)
                with contextlib.suppress(ConnectionError), connect_from(address, relay) as s:
                    s.sendall((b"", HELLO, b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 100)[i % 4])
            wait_until(lambda: n_fds(relay) == fds, "all to be gone")
            grown = rss(relay) - before
            check(grown < 4 << 20 or not IS_MEASURED, f"{grown} bytes are left of {CROWD} connections")
        check(len(relay.said()) < 1_000_000, f"{len(relay.said())} bytes of log")
        relay.client().close()


def test_authenticated_in_turn():
    """The same of those that are admitted, and do not say anything."""
    with Daemon() as daemon, Relay(daemon) as relay:
        greet(relay)
        fds, before = n_fds(relay), 0
        for i in range(500):
            if i == 100:
                before = rss(relay)
            relay.connect().close()
        wait_until(lambda: n_fds(relay) == fds, "all to be gone")
        check(rss(relay) - before < 4 << 20 or not IS_MEASURED, f"{rss(relay) - before} bytes are left of 400 connections")
        wait_until(lambda: daemon.status().n_connections == 1, "perfd to see that they are gone")  # but who asks


def test_never_subscribes():
    """Clients that are admitted and then say nothing: who has a stream keeps it, and each costs little."""
    n = 100
    with Daemon() as daemon, contextlib.ExitStack() as stack, \
            Relay(daemon, "[{ name: client, events: ['*'], connections: 1000 }]") as relay:
        with neighbours(daemon, relay):
            before = rss(relay)
            for _ in range(n):
                stack.enter_context(relay.connect())
            wait_until(lambda: relay.said().count("is connected") == n + 1, "all to be connected")  # and the neighbour
            each = (rss(relay) - before) / n
            print(f"  {each / KIB:.1f} KiB for each that is admitted")
            check(each < 100 * KIB or not IS_MEASURED, f"{each} bytes for each")
            check("has ended" not in relay.said(), "one was closed")


if __name__ == "__main__":
    perfd.main(globals())
