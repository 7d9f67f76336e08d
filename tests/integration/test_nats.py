#!/usr/bin/python3
"""perfd-relay publishes to a real nats-server: what is stored there is what perfd has sent, each packet once, whatever happens to the
server meanwhile, and the sums close. Needs root."""
import os
import re
import signal
import subprocess

import perfd
from nats import SERVER, Publisher, Server, epochs
from perfd import Daemon, Skip, Workload, add, check, equal, pb, wait_until
from relay import RELAY
from test_perfctl import GETPPID
from test_promises import CPUS

CALLS = 20_000
RATE = 25_000 if perfd.SANITIZER == "none" else 2_500  # a second
ROUTES = "{ calls: { events: [calls], queue: 256MiB } }"


def need_server():
    if not os.path.exists(SERVER):
        raise Skip("nats-server is missing: tests/packages test installs it")


def close(epoch, occurred):
    """What was stored, and what was lost with a reason, is what occurred."""
    own = epoch.own()
    lost = sum(loss.count for loss in own.dropped)
    equal(own.matched, occurred, "what matched")
    equal(epoch.n_items + lost, occurred, f"what was stored and {own.dropped}")
    equal(sum(epoch.gaps.values()), lost, "what gaps say")
    return lost


def test_every_call():
    """Two programs of a known number of calls: each is stored once, in the order of time, and can be read from the middle on."""
    need_server()
    with Daemon() as daemon, daemon.client() as control, Workload("spin", CALLS, RATE, cpus=CPUS) as load, Server() as server:
        event, = add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
        with Publisher(daemon, server, ROUTES) as relay:
            relay.wait_for(r"publishing to nats://127\.0\.0\.1:\d+")
            relay.wait_for(r"route calls has begun")
            load.go()
            load.done()
        messages = server.messages()
        equal({m.subject for m in messages}, {"perfd.web1.calls"}, "the subjects")
        epoch, = epochs(messages)
        equal(close(epoch, sum(load.counts)), 0, "what was lost")
        equal(epoch.end.reason, "stopped", "the reason of the end")
        times = [item.time for item in epoch.items]
        check(times == sorted(times), "an item is older than the one before it")
        middle, packet = next((m, p) for m, p in epoch.packets[len(epoch.packets) // 2:] if p.items)
        equal((middle.number("Perfd-First"), middle.number("Perfd-Last")), (packet.items[0].time, packet.items[-1].time), "its times")
        equal(server.descriptors(middle.headers["Perfd-Descriptors"])[event.id].name, "calls", "what a reader from the middle on finds")


def test_lost_descriptors():
    """A server that has lost descriptors has them again with the next connection, under the same digest."""
    need_server()
    with Daemon() as daemon, daemon.client() as control, Workload("spin", CALLS, RATE, cpus=CPUS) as load, Server() as server:
        event, = add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
        with Publisher(daemon, server, ROUTES) as relay:
            relay.wait_for(r"route calls has begun")
            wait_until(lambda: server.messages(), "the first message to be stored")
            server.request("$JS.API.STREAM.DELETE.perfd-descriptors")
            before = relay.said().count("publishing to nats://")
            server.kill()
            server.start()
            wait_until(lambda: relay.said().count("publishing to nats://") > before, "the relay to publish again")
            load.go()
            load.done()
        digest = server.messages()[-1].headers["Perfd-Descriptors"]
        equal(server.descriptors(digest)[event.id].name, "calls", "what a reader from the middle on finds")


def disturb(disturbance, keys=""):
    """A flood while something happens to the server: the epoch, what occurred, and the relay's log."""
    need_server()
    with Daemon() as daemon, daemon.client() as control, Workload("flood", 0, RATE, cpus=CPUS[:1]) as load, Server() as server:
        add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
        with Publisher(daemon, server, ROUTES, keys) as relay:
            relay.wait_for(r"route calls has begun")
            relay.wait_for(r"publishing to")
            load.go()
            wait_until(lambda: len(server.messages()) > 5, "something to be stored")
            disturbance(daemon, server, relay)
            load.done(stop=True)
            wait_until(lambda: sum(m.number("Perfd-Items") for m in server.messages()) == sum(load.counts), "all to be stored")
        epoch, = epochs(server.messages())
        return epoch, sum(load.counts)


def test_killed_server():
    """kill -9 of nats-server in the middle of a flood, and a new one on the same folder: nothing is lost, and nothing is there twice."""
    def kill(daemon, server, relay):
        server.kill()
        relay.wait_for(r"nothing is published now")
        server.start()
        wait_until(lambda: relay.said().count("publishing to") == 2, "the relay to publish again")

    epoch, occurred = disturb(kill)
    equal(close(epoch, occurred), 0, "what was lost")


def test_paused_server():
    """SIGSTOP for longer than the relay waits for an answer."""
    def pause(daemon, server, relay):
        server.signal(signal.SIGSTOP)
        try:
            relay.wait_for(r"nothing is published now")
        finally:
            server.signal(signal.SIGCONT)
        wait_until(lambda: relay.said().count("publishing to") == 2, "the relay to publish again")

    epoch, occurred = disturb(pause)
    equal(close(epoch, occurred), 0, "what was lost")


def test_full_spool():
    """What fits neither into the relay nor into its queue in perfd is a gap with its count, and the rest is there once."""
    def fill(daemon, server, relay):
        server.kill()
        wait_until(lambda: any(s.dropped and s.dropped[0].count for s in daemon.ledger().subscribers), "the queue to overflow")
        server.start()
        wait_until(lambda: relay.said().count("publishing to") == 2, "the relay to publish again")

    need_server()
    with Daemon() as daemon, daemon.client() as control, Workload("flood", 0, RATE, cpus=CPUS[:1]) as load, Server() as server:
        add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
        with Publisher(daemon, server, "{ calls: { events: [calls], queue: 64KiB } }", ", spool: { memory: 1MiB }") as relay:
            relay.wait_for(r"route calls has begun")
            relay.wait_for(r"publishing to")
            load.go()
            fill(daemon, server, relay)
            load.done(stop=True)
        epoch, = epochs(server.messages())
        check(close(epoch, sum(load.counts)) > 0, "nothing was lost")
        equal(set(epoch.gaps), {"outbox"}, "the reasons")


def test_killed_relay():
    """kill -9 of the relay: its successor publishes another epoch, and nothing is there twice."""
    need_server()
    with Daemon() as daemon, daemon.client() as control, Workload("flood", 0, RATE, cpus=CPUS[:1]) as load, Server() as server:
        add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
        with Publisher(daemon, server, ROUTES) as relay:
            relay.wait_for(r"route calls has begun")
            load.go()
            wait_until(lambda: len(server.messages()) > 5, "something to be stored")
            relay.kill_and_start()
            wait_until(lambda: len(epochs(server.messages())) == 2, "another epoch")
            load.done(stop=True)
        first, second = epochs(server.messages())
        equal(first.end, None, "the end of what was killed")
        equal(close(second, second.own().matched), 0, "what was lost since")
        times = [item.time for item in first.items + second.items]
        check(times == sorted(set(times)), "a sample is there twice, or in the wrong order")
        check(len(times) <= sum(load.counts), "more than occurred")


def test_end_without_server():
    """A relay whose server is killed, or stands still, ends in bounded time all the same, and says what is lost."""
    need_server()
    for number in (signal.SIGKILL, signal.SIGSTOP):
        with Daemon() as daemon, daemon.client() as control, Workload("flood", 0, RATE, cpus=CPUS[:1]) as load, Server() as server:
            add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
            with Publisher(daemon, server, ROUTES) as relay:
                relay.wait_for(r"route calls has begun")
                relay.wait_for(r"publishing to")
                server.signal(number)
                load.go()
                relay.wait_for(r"nothing is published now")
                load.done(stop=True)
            check("messages were not stored, and are lost" in relay.said_last, f"it said:\n{relay.said_last}")


def test_reload():
    """SIGHUP with another `publish` says that it needs a restart, each time, and what is published goes on as it was."""
    need_server()
    with Daemon() as daemon, daemon.client() as control, Workload("spin", CALLS, RATE, cpus=CPUS[:1]) as load, Server() as server:
        add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
        with Publisher(daemon, server, ROUTES) as relay:
            relay.wait_for(r"route calls has begun")
            relay.reload()
            check("needs a restart" not in relay.said(), "a reload without a change asks for a restart")
            for n, host in enumerate(("web2", "web3")):
                relay.publish = f"publish: {{ servers: ['{server.url}'], host: {host}, routes: {{ other: {{ events: ['*'] }} }} }}\n"
                relay.configure("[{ name: client, events: ['*'], raw: true }]")
                relay.reload()
                equal(relay.said().count("which needs a restart"), n + 1, "how often it is said")
            load.go()
            load.done()
        messages = server.messages()
        equal({m.subject for m in messages}, {"perfd.web1.calls"}, "the subjects")
        equal(close(epochs(messages)[0], sum(load.counts)), 0, "what was lost")


def statuses(server):
    return [pb.Packet.FromString(m.bytes).relay for m in server.messages("perfd-status")]


def test_status():
    """The relay says at once that it begins, that a route has a stream, and how much was published when it ends; and every ten seconds."""
    need_server()
    with Daemon() as daemon, daemon.client() as control, Workload("spin", CALLS, RATE, cpus=CPUS) as load, Server() as server:
        with Publisher(daemon, server, "{ calls: { events: [calls], where: 'pid != 0' } }") as relay:
            relay.wait_for(r"publishing to")
            first = wait_until(lambda: statuses(server), "a first word")[0]
            equal((first.host, first.reason, len(first.machine), first.routes[0].connected), ("web1", "start", 32, False), "it")
            why = wait_until(lambda: [s for s in statuses(server) if s.routes[0].text], "why there is no stream")[0]
            check("calls" in why.routes[0].text and why.reason == "route" and not why.routes[0].connected, f"why there is no stream: {why}")
            add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
            begun = wait_until(lambda: [s for s in statuses(server) if s.routes[0].connected], "a stream")[0]
            equal((begun.reason, begun.routes[0].name, list(begun.routes[0].events), begun.routes[0].where),
                  ("route", "calls", ["calls"], "pid != 0"), "the route")
            check(begun.perfd and begun.relay and begun.routes[0].since >= begun.start, f"versions and times: {begun}")
            load.go()
            load.done()
            later = wait_until(lambda: [s for s in statuses(server) if s.reason == "interval"], "a word after ten seconds")[0]
            check(later.clock.wall > 0, f"the clock: {later}")
        last, n = statuses(server)[-1], sum(load.counts)
        route, = last.routes
        equal((last.reason, last.published, len(last.lost), last.messages), ("end", n, 0, len(server.messages())), "the last word")
        equal((route.matched, route.published, route.held, route.ended, route.connected), (n, n, 0, True, False), "the route at the end")
        messages = server.messages()
        equal((route.stored, route.stored_matched), (messages[-1].number("Perfd-Sequence"), n), "what is stored")
        equal(sum(len(m.bytes) for m in messages), last.bytes, "bytes")
        matched = [m.number("Perfd-Matched") for m in messages]
        equal(matched, [sum(m.number("Perfd-Items") for m in messages[:i + 1]) for i in range(len(messages))], "the sum of each message")


def test_status_without_server():
    """While there is no server, one word waits, not one for each ten seconds and change; it is not counted as lost."""
    need_server()
    with Daemon() as daemon, daemon.client() as control, Server() as server:
        server.kill()
        with Publisher(daemon, server, ROUTES) as relay:
            relay.wait_for(r"nothing is published now")
            event, = add(control, {"event": GETPPID, "name": "calls"})
            relay.wait_for(r"route calls has begun")
            control.request(remove=pb.SelectRequest(names=[event.name]))
            server.start()
            relay.wait_for(r"publishing to")
            wait_until(lambda: len(statuses(server)) > 1, "two words")
            equal([s.reason for s in statuses(server)][:2], ["start", "route"], "what is said")


WRONG = [
    ("{ servers: ['127.0.0.1:4222'], routes: { a: { events: ['*'] } } }",
     r"publish\.servers: found '127\.0\.0\.1:4222', which does not begin with nats:// or tls://; expected an address such as 'nats://"),
    ("{ servers: [], routes: { a: { events: ['*'] } } }", r"publish\.servers: found nothing"),
    ("{ routes: { a: { events: ['*'] } } }", r"key 'servers' is missing"),
    ("{ servers: ['nats://h'] }", r"key 'routes' is missing"),
    ("{ servers: ['nats://h'], routes: {} }", r"publish\.routes: found nothing, expected a mapping of names"),
    ("{ servers: ['nats://h'], routes: { a: {} } }", r"key 'events' is missing"),
    ("{ servers: ['nats://h'], routes: { a.b: { events: ['*'] } } }", r"name of a route: found 'a\.b', expected at most 64 letters"),
    ("{ servers: ['nats://h'], routes: { status: { events: ['*'] } } }", r"name of a route: 'status' is reserved"),
    ("{ servers: ['nats://h'], host: a.b, routes: { a: { events: ['*'] } } }", r"publish\.host: found 'a\.b'"),
    ("{ servers: ['nats://h'], stream: 'a b', routes: { a: { events: ['*'] } } }", r"publish\.stream: found 'a b'"),
    ("{ servers: ['nats://h'], routes: { a: { events: ['*'], where: 'pid ==' } } }", r"where: "),
    ("{ servers: ['nats://h'], routes: { a: { events: ['*'], records: [comm, exi] } } }",
     r"records: unknown kind of side record 'exi'.*exit"),
    ("{ servers: ['nats://h'], spool: { memory: 1KiB }, routes: { a: { events: ['*'] } } }", r"publish\.spool\.memory: found '1KiB', expected a size from 1MiB"),
]


def test_errors():
    """Each mistake is said at --check, with its place."""
    need_server()
    with Daemon() as daemon, Server() as server, Publisher(daemon, server, ROUTES) as relay:
        for yaml, expected in WRONG:
            relay.publish = f"publish: {yaml}\n"
            relay.configure("[{ name: client, events: ['*'] }]")
            done = subprocess.run([RELAY, "--config", relay.at("relay.yaml"), "--check"], capture_output=True, text=True, check=False,
                                  timeout=perfd.PATIENCE)
            equal(done.returncode, 1, f"the status for {yaml}, {done.stderr}")
            check(re.search(rf"relay\.yaml:5:\d+: {expected}", done.stderr), f"{yaml}: {done.stderr}")
            equal(len(done.stderr.strip().splitlines()), 1, f"lines for {yaml}: {done.stderr}")


if __name__ == "__main__":
    perfd.main(globals())
