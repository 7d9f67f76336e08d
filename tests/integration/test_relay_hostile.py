#!/usr/bin/python3
"""What comes from a network to perfd-relay can be anything: others do not notice, and memory is bounded. Needs root."""
import contextlib
import os
import resource
import socket
import ssl

import perfd
from perfd import Daemon, Workload, add, check, equal, pb, wait_until
from relay import Relay, frame, read_exactly, read_message, readable
from test_perfctl import GETPPID
from test_promises import CPUS
from test_relay import Reader, sent_to

CALLS = 100_000


def rss(relay):
    with open(f"/proc/{relay.process.pid}/statm", encoding="ascii") as f:
        return int(f.read().split()[1]) * resource.getpagesize()


def is_closed(s):
    try:
        return readable(s) and s.recv(1) == b""
    except ConnectionResetError:
        return True


def test_half_handshakes():
    """More connections than may authenticate at a time: those above are closed at once, the others after their time, and then there is
    room again."""
    with Daemon() as daemon, contextlib.ExitStack() as stack, \
            Relay(daemon, listen=", handshakes: 20, handshakes-per-address: 8, handshake-timeout: 2s") as relay:
        raws = [stack.enter_context(socket.create_connection(("127.0.0.1", relay.port), perfd.PATIENCE)) for _ in range(50)]
        for raw in raws[:4]:
            with contextlib.suppress(OSError):
                raw.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")  # the beginning of a ClientHello
        wait_until(lambda: sum(map(is_closed, raws)) >= 42, "those above the limit to be closed")
        equal(sum(map(is_closed, raws)), 42, "those that are closed at once")
        wait_until(lambda: all(map(is_closed, raws)), "the others to be closed")
        check(relay.said().count("is closed at once") <= 3, f"a line for each:\n{relay.said()}")
        equal(relay.said().count("it has not authenticated in time"), 8, "lines about those that took too long")
        relay.client().close()


def test_garbage():
    """Before, in and behind the handshake; nothing of it harms the stream of another."""
    with Daemon() as daemon, Relay(daemon) as relay, relay.client() as quiet:
        for n in 1, 5, 1000, 100_000:
            with contextlib.suppress(ConnectionError), socket.create_connection(("127.0.0.1", relay.port), perfd.PATIENCE) as raw:
                raw.sendall(os.urandom(n))
        for garbage in b"\xff\xff\xff\xff", os.urandom(100_000), frame(hello=pb.Hello(protocol=1))[:-1] + b"\xff" * 5:
            with contextlib.suppress(ConnectionError, ssl.SSLError, AssertionError), relay.connect() as s:
                s.sendall(garbage)  # of frames: perfd says no, or waits for the rest
                if readable(s, 1):
                    check(read_message(s).response.status != pb.STATUS_OK or garbage[0] != 0xff, "garbage is accepted")
        with relay.connect() as s:  # a record that is none, under TLS
            raw = socket.socket(fileno=os.dup(s.fileno()))
            raw.settimeout(perfd.PATIENCE)
            raw.sendall(b"\x17\x03\x03\x00\x20" + os.urandom(32))
            check(raw.recv(1 << 16) is not None, "an alert, or the end")
            raw.close()
        relay.wait_for("has ended after 0 bytes: ")
        equal(quiet.request(status=pb.Empty()).daemon.pid, daemon.pid, "who was there before is served")
        check(rss(relay) < 64 << 20 or perfd.SANITIZER != "none", f"{rss(relay)} bytes of memory")


def test_too_long():
    """A frame of 4 GiB: perfd refuses it, and the relay holds none of it."""
    with Daemon() as daemon, Relay(daemon) as relay, relay.connect() as s:
        s.sendall(b"\xff\xff\xff\xff")
        no = read_message(s).response
        check(no.status == pb.STATUS_INVALID, f"the response {no}")
        equal(s.recv(1), b"", "behind it")
        relay.wait_for("has ended after")


def test_slow_reader():
    """A reader of one byte a wakeup is a slow subscriber of perfd: others beside it have no gap, and the relay has no memory for it."""
    with Daemon() as daemon, daemon.client() as control, Workload("syscalls", CALLS, cpus=CPUS) as load, Relay(daemon) as relay:
        add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
        with relay.connect(receive_buffer=4096) as slow, daemon.client(stream=True) as local, relay.client() as remote:
            slow.sendall(frame(hello=pb.Hello(protocol=1)))
            read_message(slow)
            slow.sendall(frame(subscribe=pb.SubscribeRequest(events=["calls"], queue_bytes=64 << 10)))
            readers = [Reader(c, CALLS * len(CPUS), events=["calls"], queue_bytes=64 << 20) for c in (local, remote)]
            wait_until(lambda: daemon.status().n_subscribers == 3, "all to subscribe")
            before = rss(relay)
            load.go()
            for _ in range(100):
                read_exactly(slow, 1)
            load.done()
            for reader in readers:
                equal((reader.end()["reason"], reader.n), ("stopped", sum(load.counts)), "the samples of another subscriber")
                equal(sent_to(reader.client.end)[0][:2], (sum(load.counts),) * 2, "its ledger")
            check(rss(relay) - before < 2 << 20 or perfd.SANITIZER != "none", f"{rss(relay) - before} bytes for one slow reader")
            dropped = next(s.dropped for s in daemon.ledger().subscribers if "CN:client" in s.peer)
            check(sum(c.count for c in dropped) > 0, "nothing was dropped, so the reader was not slow")


def test_no_fds():
    """Without a free fd accepting pauses; those that are there go on, and afterwards others come."""
    with Daemon() as daemon, contextlib.ExitStack() as stack, Relay(daemon, listen=", handshakes: 500, handshakes-per-address: 500") as relay:
        kept = stack.enter_context(relay.client())
        resource.prlimit(relay.process.pid, resource.RLIMIT_NOFILE, (40, 40))
        raws = [socket.create_connection(("127.0.0.1", relay.port), perfd.PATIENCE) for _ in range(60)]
        relay.wait_for("accepting connections pauses")
        equal(kept.request(status=pb.Empty()).daemon.pid, daemon.pid, "who was there before is served")
        for raw in raws:
            raw.close()
        wait_until(lambda: relay.client().close() is None, "another one to come")


if __name__ == "__main__":
    perfd.main(globals())
