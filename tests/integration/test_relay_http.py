#!/usr/bin/python3
"""What comes by HTTP to perfd-relay can be anything: it neither ends the relay nor holds it up, and is over in its time. Needs root."""
import contextlib
import os
import select
import socket
import ssl
import threading

import perfd
from perfd import Daemon, Workload, add, check, equal, pb, wait_until
from relay import readable
from test_metrics import of
from test_perfctl import GETPPID
from test_promises import CPUS
from test_relay import Reader, sent_to
from test_relay_hostile import is_closed, rss
from test_relay_metrics import ask, ask_by_tls, scrape, serve, settled

CALLS = 50_000
CROWD = 500
REQUEST = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n"
GARBAGE = {
    "nothing": b"",
    "zeros": bytes(5000),
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
    "a frame of perfd": b"\x08\x00\x00\x00\x08\x01\x12\x04\x08\x01\x12\x00",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a line without an end": b"GET /metrics" + b"x" * 1_000_000,
    "a header without an end": b"GET /metrics HTTP/1.1\r\nAccept: " + b"a" * 1_000_000,
    "headers without an end": b"GET /metrics HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % i for i in range(20_000)),
    "a length below 0": b"POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
    "a length that is none": b"GET /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999999\r\n\r\n",
    "a chunk of 16 EiB": b"POST /metrics HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n" + b"x" * 9000,
    "a body that goes on": b"GET /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 4294967296\r\n\r\n" + b"x" * 200_000,
    "another version": b"GET /metrics HTTP/9.9\r\nHost: a\r\n\r\n",
    "no version": b"GET /metrics\r\n\r\n",
    "line breaks": b"\r\n" * 50_000,
    "zeros in a path": b"GET /metrics\0/x HTTP/1.1\r\nHost: a\r\n\r\n",
    "an escape in a header": b"GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: \x1b[31m\xff\xfe;q=\xff\r\n\r\n",
    "a folded header": b"GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: text/plain\r\n  ; q=1\r\n\r\n",
}


def connect(relay):
    return socket.create_connection(("127.0.0.1", relay.metrics), perfd.PATIENCE)


def read_to_end(s):
    text = b""
    with contextlib.suppress(ConnectionResetError):
        while more := s.recv(1 << 16):
            text += more
    return text


def test_garbage():
    """Each of it gets an error or the metrics, or nothing, and then the end; TLS and the next scrape are served beside it."""
    with Daemon() as daemon, serve(daemon, ", request-timeout: 2s") as relay, relay.client() as quiet:
        for n in 1, 10, 100_000:
            GARBAGE[f"{n} random bytes"] = os.urandom(n)
        for name, garbage in GARBAGE.items():
            with connect(relay) as s:
                with contextlib.suppress(ConnectionError):
                    s.sendall(garbage)
                answer = read_to_end(s)
            check(answer[:9] in (b"", b"HTTP/1.1 ", b"HTTP/1.0 "), f"{name}: {answer[:200]}")
            status = answer[9:12]
            check(status in (b"", b"200", b"400", b"404", b"405", b"411", b"413", b"414", b"417", b"431", b"501", b"505"), f"{name}: {answer[:200]}")
            print(f"  {name}: {status.decode() or 'closed'}")
            equal(ask(relay.metrics)[0], 200, f"a scrape behind {name}")
        equal(quiet.request(status=pb.Empty()).daemon.pid, daemon.pid, "who was there before is served")
        check(rss(relay) < 64 << 20 or perfd.SANITIZER != "none", f"{rss(relay)} bytes of memory")


def test_garbage_by_tls():
    """The same of a client that may read metrics by TLS; one that asks, and then reads nothing, is over in its time."""
    rules = "[{ name: client, events: ['*'] }, { name: scraper, metrics: true }]"
    with Daemon() as daemon, serve(daemon, ", request-timeout: 2s, connections: 4", clients=rules) as relay, relay.client() as quiet:
        relay.ca.issue("scraper")
        for name, garbage in GARBAGE.items():
            with relay.connect("scraper", alpn=["http/1.1"]) as s:
                with contextlib.suppress(ConnectionError, ssl.SSLError):
                    s.sendall(garbage)
                answer = b""
                with contextlib.suppress(ConnectionError, ssl.SSLError):
                    answer = read_to_end(s)
            check(answer[:9] in (b"", b"HTTP/1.1 ", b"HTTP/1.0 "), f"{name}: {answer[:200]}")
            equal(ask_by_tls(relay, "scraper")[0], 200, f"a scrape behind {name}")
        with contextlib.ExitStack() as stack:
            crowd = [stack.enter_context(relay.connect("scraper", alpn=["http/1.1"])) for _ in range(8)]
            for s in crowd:
                s.sendall(REQUEST[:30])
            equal([read_to_end(s) for s in crowd], [b""] * 8, "answers to halves, above and below the limit of connections")
        equal(ask_by_tls(relay, "scraper")[0], 200, "a scrape behind them")
        equal(quiet.request(status=pb.Empty()).daemon.pid, daemon.pid, "who reads streams is served")


def test_one_request():
    """What stands behind a request is not one more; halves that come one by one are a request."""
    with Daemon() as daemon, serve(daemon) as relay:
        with connect(relay) as s:
            s.sendall(REQUEST * 3)
            equal(read_to_end(s).count(b"HTTP/1.1 200 OK\r\n"), 1, "answers to three requests at once")
        with connect(relay) as s:
            for i in range(len(REQUEST)):
                s.sendall(REQUEST[i:i + 1])
            equal(read_to_end(s).count(b"HTTP/1.1 200 OK\r\n"), 1, "answers to one that came byte by byte")


def test_crowd():
    """More connections than may be: those above that are closed at once, the others after their time, and each is counted."""
    with Daemon() as daemon, contextlib.ExitStack() as stack, serve(daemon, ", connections: 20, request-timeout: 15s") as relay:
        crowd = [stack.enter_context(connect(relay)) for _ in range(CROWD)]
        wait_until(lambda: sum(map(is_closed, crowd)) >= CROWD - 20, "those above the limit to be closed")
        equal([is_closed(s) for s in crowd[:20]], [False] * 20, "the first ones")
        for s in crowd[:20]:
            s.sendall(REQUEST[:30])
        wait_until(lambda: all(map(is_closed, crowd)), "the others to be closed")
        values = settled(relay)
        equal([of(values, "perfd_relay_http_closed_total", reason=reason) for reason in ("connections", "timeout")], [CROWD - 20, 20], "counted")


def test_dribble():
    """A request of one byte a while is not over in its time, although something always comes."""
    with Daemon() as daemon, serve(daemon, ", request-timeout: 1s") as relay, connect(relay) as s:
        n = 0
        with contextlib.suppress(ConnectionError):
            while n < len(REQUEST) - 1 and not readable(s, 0.1):  # at this pace it is what is tested
                s.sendall(REQUEST[n:n + 1])
                n += 1
        check(n < len(REQUEST) - 1 or perfd.SANITIZER != "none", "a whole request has passed")
        equal(read_to_end(s), b"", "the answer")
        equal(of(settled(relay), "perfd_relay_http_closed_total", reason="timeout"), 1, "counted")


def test_slow_reader():
    """An answer that is not read is over in its time, too."""
    with Daemon() as daemon, daemon.client() as control, serve(daemon, ", request-timeout: 2s") as relay, socket.socket() as s:
        add(control, *({"event": "cpu-clock", "name": f"clock{i}", "period": 1_000_000_000} for i in range(200)))
        length = int(ask(relay.metrics, "HEAD")[1]["Content-Length"])
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.settimeout(perfd.PATIENCE)
        s.connect(("127.0.0.1", relay.metrics))
        s.sendall(REQUEST)
        wait_until(lambda: of(scrape(relay), "perfd_relay_http_closed_total", reason="timeout") == 1, "it to be counted")
        equal(of(scrape(relay), "perfd_omitted_series"), 0, "omitted")
        n = len(read_to_end(s))
        check(0 < n < length, f"{n} of {length} bytes came")
        print(f"  {n} of {length} bytes came to who did not read")


class Crowd(threading.Thread):
    """Keeps so many connections that send a byte now and then, and opens new ones for those that are closed."""

    def __init__(self, relay, n):
        super().__init__(daemon=True)
        self.relay, self.n, self.n_opened, self.error, self.is_over = relay, n, 0, None, threading.Event()
        self.start()

    def run(self):
        crowd = []
        try:
            while not self.is_over.is_set():
                while len(crowd) < self.n:
                    crowd.append(connect(self.relay))
                    self.n_opened += 1
                for s in crowd:
                    with contextlib.suppress(OSError):
                        s.sendall(b"G")
                closed = set(select.select(crowd, [], [], 0.01)[0])
                for s in closed:
                    s.close()
                crowd = [s for s in crowd if s not in closed]
        except Exception as error:  # pylint: disable=broad-except
            self.error = error
        finally:
            for s in crowd:
                s.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.join(perfd.PATIENCE)
        check(not self.is_alive() and not self.error, f"the crowd: {self.error}")


def test_streams_beside():
    """A crowd at the door of metrics: a stream by TLS beside it has every call, and nothing is dropped."""
    with Daemon() as daemon, daemon.client() as control, Workload("syscalls", CALLS, cpus=CPUS) as load, \
            serve(daemon, ", request-timeout: 300ms") as relay:
        add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
        with relay.client() as remote, Crowd(relay, 100) as crowd:
            reader = Reader(remote, CALLS * len(CPUS), events=["calls"], queue_bytes=64 << 20)
            wait_until(lambda: daemon.status().n_subscribers == 1, "it to subscribe")
            before = crowd.n_opened
            load.go()
            counts = load.done()
            end = reader.end()
            wait_until(lambda: crowd.n_opened > before, "the crowd to come again")
            equal((reader.n, sent_to(end)[0][:2]), (sum(counts), (sum(counts),) * 2), "samples, and what the ledger says")
            check(not any(sent_to(end)[0][2].values()), f"dropped: {end}")
        print(f"  {sum(counts)} samples beside {crowd.n_opened} connections")


if __name__ == "__main__":
    perfd.main(globals())
