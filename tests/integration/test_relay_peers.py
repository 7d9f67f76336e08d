#!/usr/bin/python3
"""perfd-relay and the network: several addresses of both families, and peers that are gone without a word. Needs root."""
import re
import time

import perfd
from perfd import Daemon, Workload, add, check, equal, pb, wait_until
from relay import Relay, free_port
from test_perfctl import GETPPID
from test_promises import CPUS
from test_tls_client import in_own_network, set_loopback

IDLE, SENT = 30, 40  # s; perfd-relay(8), LIMITS: noticed within, if nothing is sent, and else


def connected(relay):
    """The addresses of clients, in the order in which they came."""
    return re.findall(r"CN:client, (\S+):\d+, is connected", relay.said())


def test_families():
    """IPv4 and IPv6 with one port, and another port; the log has each as relay.yaml writes it; a reload takes one away."""
    with Daemon() as daemon, Relay(daemon) as relay:
        other = free_port()
        rules = "[{ name: client, events: ['*'] }]"
        relay.more = (f"[::1]:{relay.port}", f"127.0.0.2:{other}")
        relay.configure(rules)
        relay.reload()
        for address in "127.0.0.1", "::1":
            with relay.client(address=address) as client:
                equal(client.request(status=pb.Empty()).daemon.pid, daemon.pid, address)
        port, relay.port = relay.port, other
        relay.client(address="127.0.0.2").close()
        relay.port = port
        equal(wait_until(lambda: len(c := connected(relay)) == 3 and c, "the lines"), ["127.0.0.1", "[::1]", "127.0.0.1"], "who was connected")
        relay.more = (f"[::1]:{port}",)
        relay.configure(rules)
        relay.reload()
        relay.client(address="::1").close()
        relay.port = other
        try:
            relay.client(address="127.0.0.2").close()
            raise AssertionError("the address that was taken away is still there")
        except ConnectionRefusedError:
            pass


def test_peer_that_is_gone():
    """The way to two clients is gone, and nothing says so: each is noticed in the time that the manual has, with a reason, and perfd hears
    of it; one of them is sent samples all the time, the other nothing."""
    def body():
        with Daemon() as daemon, daemon.client() as control, Workload("flood", 0, 10_000, cpus=CPUS[:1]) as load, Relay(daemon) as relay:
            add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)}, "cpu-clock")
            control.request(disable=pb.SelectRequest(names=["cpu-clock"]))
            clients = [relay.client() for _ in range(2)]
            for client, name in zip(clients, ("cpu-clock", "calls")):
                client.subscribe([name])
            wait_until(lambda: daemon.status().n_subscribers == 2, "both to subscribe")
            load.go()
            wait_until(lambda: clients[1].receive_bytes(), "samples")
            begin = time.monotonic()
            set_loopback(False)
            for n, most in (1, IDLE), (2, SENT):
                end = begin + most + 3  # of which Linux rounds its timers up
                while len(re.findall("has ended after", relay.said())) < n and (time.monotonic() < end or perfd.SANITIZER != "none"):
                    check(time.monotonic() < begin + perfd.PATIENCE, relay.said())
                    time.sleep(0.1)  # that long is what is tested
                check(len(re.findall("has ended after", relay.said())) >= n, f"{n} of 2 within {most} s:\n{relay.said()}")
            wait_until(lambda: daemon.status().n_subscribers == 0, "perfd to hear of it")
            said = re.findall(r"has ended after \d+ bytes: (.*)", relay.said())
            print(f"  {said}, after {time.monotonic() - begin:.0f} s")
            equal(set(said) - {"Connection timed out", "its host has not answered for 30 s"}, set(), "reasons")
            for client in clients:
                client.close()
            load.done(stop=True)
            set_loopback(True)

    in_own_network(body)


if __name__ == "__main__":
    perfd.main(globals())
