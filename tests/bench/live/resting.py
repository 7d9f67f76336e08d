"""perfd without a flood: whether it sleeps, and what memory it has, without the rings."""
import contextlib
import resource
import select

import cases
import machine
import measure
import perfd
import relayed
import served

NAME = "resting"
N_SUBSCRIBERS, N_EVENTS = 16, 999
N_REMOTE = 1_000
KB, KIB, MB = 1000, 1024, 1_000_000


def figure(what, value, limit):
    return {"text": what, "value": value, "limit": limit, "reached": value <= limit}


def idle(seconds):
    """A daemon whose only event is disabled."""
    with perfd.Daemon(config="version: 1\n") as daemon, daemon.client() as client:
        perfd.add(client, {"event": measure.EVENT, "disabled": True})
        machine.wait_quiet((daemon.pid,))
        before = machine.threads(daemon.pid)
        select.select([], [], [], seconds)
        n = sum(t["wakeups"] for t in machine.difference(before, machine.threads(daemon.pid)).values())
        return [figure(f"wakeups in {seconds} s without an enabled event", n, 0),
                figure("MB of RSS without an enabled event", machine.rss(daemon.pid) / MB, 10)]


def growth(change, n):
    """Bytes for each of n things that change(daemon, client) makes."""
    with perfd.Daemon(config="version: 1\n") as daemon, daemon.client() as client, contextlib.ExitStack() as stack:
        perfd.add(client, {"event": measure.EVENT, "disabled": True})
        machine.wait_quiet((daemon.pid,))
        before = machine.rss(daemon.pid)
        change(daemon, client, stack)
        machine.wait_quiet((daemon.pid,))
        return (machine.rss(daemon.pid) - before) / n


def subscribe(subscription):
    def change(daemon, _, stack):
        for _ in range(N_SUBSCRIBERS):
            stack.callback(served.Stream(served.connect(daemon.stream), subscription, "frames").close)
    return change


def add(_, client, __):
    perfd.add(client, *cases.silent(N_EVENTS))


def remote():
    """Bytes of the relay for each subscriber by TLS, of many that have nothing to read."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    config = f"version: 1\nconnections: {{ max: {2 * N_REMOTE}, per-uid: {2 * N_REMOTE} }}\n"
    with perfd.Daemon(config=config) as daemon, daemon.client() as client, contextlib.ExitStack() as stack, \
            relayed.Relay(daemon, relayed.RULES) as relay:
        perfd.add(client, {"event": measure.EVENT, "disabled": True})
        stack.enter_context(relay.client()).subscribe([measure.EVENT])
        machine.wait_quiet((relay.process.pid,))
        before = machine.rss(relay.process.pid)
        for _ in range(N_REMOTE):
            stack.enter_context(relay.client()).subscribe([measure.EVENT])
        perfd.wait_until(lambda: daemon.status().n_subscribers == N_REMOTE + 1, "all to subscribe")
        machine.wait_quiet((relay.process.pid,))
        return (machine.rss(relay.process.pid) - before) / N_REMOTE


def memory():
    shared = growth(subscribe(served.fields()), N_SUBSCRIBERS) - served.RING
    by_socket = growth(subscribe(served.by_socket(served.fields())), N_SUBSCRIBERS)
    return [figure("KB of RSS for each subscriber by its socket", by_socket / KB, 100),
            figure(f"KB of RSS for each subscriber in shared memory, beside its ring of {served.RING / KB:.0f}", shared / KB, 100),
            figure(f"KiB of RSS of perfd-relay for each of {N_REMOTE} subscribers by TLS", remote() / KIB, 100),
            figure("KB of RSS for each event", growth(add, N_EVENTS) / KB, 4 + len(perfd.online_cpus()))]
