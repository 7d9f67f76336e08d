#!/usr/bin/python3
"""perfd-relay on sockets that systemd has opened, which is played here: they are matched with relay.yaml, and who connects while the relay
is away waits. Needs root."""
import contextlib
import fcntl
import os
import re
import socket
import subprocess
import sys

import perfd
from perfd import Daemon, check, equal, pb
from relay import RELAY, Relay, free_port
from test_relay_metrics import ask

# what systemd does between fork(2) and execve(2): fds from 3 on, and what sd_listen_fds(3) reads
GIVE = """import os, sys
names, fds, command = sys.argv[1], [int(fd) for fd in sys.argv[2].split(",")], sys.argv[3:]
for i, fd in enumerate(fds):
    os.dup2(fd, 3 + i)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(fds)))
if names:
    os.environ["LISTEN_FDNAMES"] = names
os.execv(command[0], command)"""
FAR = 100  # fds above those that are given
CLIENTS = "[{ name: client, events: ['*'] }]"


class Given(Relay):
    """One with these sockets: [(name, socket)]; .tls and .metrics are what relay.yaml lists."""

    def __init__(self, daemon, sockets, tls, metrics=()):
        self.sockets, self.tls, self.metrics = sockets, tls, metrics
        super().__init__(daemon, CLIENTS)

    def configure(self, clients=CLIENTS):
        self.tail = f"metrics: {{ listen: {list(self.metrics)} }}\n" if self.metrics else ""
        super().configure(clients)
        with open(self.at("relay.yaml"), encoding="utf-8") as f:
            text = f.read().replace(f"tls: ['127.0.0.1:{self.port}'], ", f"tls: {list(self.tls)}, " if self.tls else "")
        with open(self.at("relay.yaml"), "w", encoding="utf-8") as f:
            f.write(text)

    @contextlib.contextmanager
    def given(self):
        """(what stands in front of the command, and the fds for it)."""
        with contextlib.ExitStack() as stack:
            fds = []
            for _, given in self.sockets:
                fds.append(fcntl.fcntl(given.fileno(), fcntl.F_DUPFD, FAR))
                stack.callback(os.close, fds[-1])
            names = ":".join(name for name, _ in self.sockets)
            yield [sys.executable, "-c", GIVE, names, ",".join(map(str, fds))], fds

    def start(self, prefix=(), **popen):
        with self.given() as (command, fds):
            super().start([*prefix, *command], pass_fds=fds, **popen)

    def start_in_vain(self, pattern):
        """It ends with status 1, and says why."""
        with self.given() as (command, fds):
            done = subprocess.run([*command, RELAY, "--config", self.at("relay.yaml")], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True, pass_fds=fds, timeout=perfd.PATIENCE, check=False)
        equal(done.returncode, 1, "its status")
        check(re.search(pattern, done.stderr), f"no {pattern!r} in {done.stderr!r}")

    def is_served(self, port, host="127.0.0.1"):
        with socket.create_connection((host, port), perfd.PATIENCE) as raw, \
                self.context().wrap_socket(raw, server_hostname="localhost") as s:
            return s.version() == "TLSv1.3"


def listening(address="127.0.0.1", family=socket.AF_INET, is_dual=False):
    s = socket.socket(family)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, not is_dual)
    s.bind((address, 0))
    s.listen(16)
    return s


def port_of(s):
    return s.getsockname()[1]


def is_refused(port):
    try:
        socket.create_connection(("127.0.0.1", port), perfd.PATIENCE).close()
    except ConnectionRefusedError:
        return True
    return False


def test_matched():
    """What relay.yaml lists is served by the socket of it where there is one, and opened where there is none; a reload closes what the relay
    has opened, and never what it was given."""
    with Daemon() as daemon, listening() as tls, listening() as metrics:
        own, address = free_port(), f"127.0.0.1:{port_of(tls)}"
        with Given(daemon, [("tls", tls), ("metrics", metrics)], [address, f"127.0.0.1:{own}"], [f"127.0.0.1:{port_of(metrics)}"]) as relay:
            check(relay.is_served(port_of(tls)) and relay.is_served(own), "who connects is served")
            equal(ask(port_of(metrics))[0], 200, "metrics")
            check("listen.tls" not in relay.said(), relay.said())
            relay.tls = [f"127.0.0.1:{own}"]
            relay.configure()
            relay.reload()
            relay.wait_for(rf"listen\.tls: it does not name {address}, on which systemd listens: clients are served there too")
            check(relay.is_served(port_of(tls)) and relay.is_served(own), "who connects is served")
            relay.tls = [address]
            relay.metrics = ()
            relay.configure()
            relay.reload()
            relay.wait_for(rf"metrics\.listen: it does not name 127\.0\.0\.1:{port_of(metrics)}, on which systemd listens: nobody")
            check(is_refused(own) and relay.is_served(port_of(tls)), "only what was given is left")
            relay.metrics = [f"127.0.0.1:{port_of(metrics)}"]
            relay.configure()
            relay.reload()
            equal(ask(port_of(metrics))[0], 200, "metrics on the same socket again")


def test_all_addresses():
    """A socket of all addresses is that of each; without listen.tls it is all that there is, whatever its name is."""
    with Daemon() as daemon, listening("::", socket.AF_INET6, is_dual=True) as both, listening("0.0.0.0") as four:
        addresses = [f"0.0.0.0:{port_of(both)}", f"127.0.0.1:{port_of(both)}", f"[::]:{port_of(both)}", f"127.0.0.1:{port_of(four)}"]
        with Given(daemon, [("perfd-relay.socket", both), ("tls", four)], addresses) as relay:
            check(relay.is_served(port_of(both)) and relay.is_served(port_of(both), "::1") and relay.is_served(port_of(four)), "by each")
            relay.wait_for(rf"listen\.tls: it does not name 0\.0\.0\.0:{port_of(four)}")
            relay.stop()
            relay.sockets, relay.tls = [("", both)], []
            relay.configure()
            relay.start()
            check(relay.is_served(port_of(both)), "without a name and without listen.tls")


def test_refused():
    """What the relay cannot listen on, and a name that says nothing, end it with the reason."""
    with contextlib.ExitStack() as stack, Daemon() as daemon, listening() as good:
        local, datagrams, silent = (stack.enter_context(socket.socket(*kind)) for kind in (
            (socket.AF_UNIX,), (socket.AF_INET, socket.SOCK_DGRAM), (socket.AF_INET,)))
        with Given(daemon, [("tls", good)], [f"127.0.0.1:{port_of(good)}"]) as relay:
            relay.stop()
            for name, given, reason in (("tls", local, "is not a socket of IPv4 or IPv6"), ("tls", datagrams, "is not a socket of TCP"),
                                        ("tls", silent, "does not listen: a unit with Accept=yes"),
                                        ("control", good, "a socket is for 'tls' or for 'metrics': set FileDescriptorName=")):
                relay.sockets = [("tls", good), (name, given)]
                relay.start_in_vain(rf"fd 4[^\n]* '{name}'[^\n]*{reason}")
            relay.sockets, relay.tls = [("metrics", good)], []
            relay.configure()
            relay.start_in_vain("listen.tls names no address, and systemd has given no socket for TLS: nobody could connect")
            relay.sockets, relay.tls = [("tls", good)], [f"127.0.0.1:{port_of(good)}"]
            relay.configure()
            relay.start()


def test_restart():
    """Who connects while the relay is started again is served by the next one."""
    with Daemon() as daemon, listening() as tls, Given(daemon, [("tls", tls)], []) as relay:
        relay.port = port_of(tls)
        relay.client().close()
        relay.stop()
        with socket.create_connection(("127.0.0.1", relay.port), perfd.PATIENCE) as raw:
            relay.start()
            with relay.context().wrap_socket(raw, server_hostname="localhost") as s:
                equal(s.version(), "TLSv1.3", "what was waiting")
        with relay.client() as client:
            equal(client.request(status=pb.Empty()).daemon.pid, daemon.pid, "who is behind it")


if __name__ == "__main__":
    perfd.main(globals())
