#!/usr/bin/python3
"""`perfctl watch` of several hosts, one of them by TLS, in the middle of a flood: perfd behind the relay is killed and started again, or
the relay is stopped for a while. Needs root."""
import contextlib
import signal
import subprocess

import perfd
from perfd import Daemon, add, check, equal, pb, wait_until
from relay import Relay
from test_control import PERFCTL
from test_hosts import finish, url
from test_hosts_away import Out, check_host, check_last_stream, check_sum, config_of, flood, kill
from test_perfctl import GETPPID


@contextlib.contextmanager
def watched(other, relay, out, *words):
    """(process, names) of a watch of a daemon beside us, and of one behind a relay."""
    names = [url(other), f"tls://localhost:{relay.port}"]
    yield subprocess.Popen([PERFCTL, "--tls", relay.folder.name, "--host", names[0], "--host", names[1], "watch", "calls", "--json", *words],
                           stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE, text=True, start_new_session=True), names


def go(daemons, loads):
    wait_until(lambda: all(daemon.status().n_subscribers for daemon in daemons), "the watches to begin")
    for load in loads:
        load.go()


def end(watch, loads):
    for load in loads:
        load.done(stop=True)
    code, err = finish(watch)
    equal(code, 4, f"the status, {err!r}")
    return err


def await_more(out, name):
    seen = out.count(name, "sample")
    wait_until(lambda: out.count(name, "sample") > seen, f"samples of {name}")


def test_killed_perfd():
    """The relay says that it is gone, and serves the next one."""
    with flood() as left, flood() as right, Out() as out, Daemon(config=config_of(left.pids)) as other, \
            Daemon(config=config_of(right.pids)) as first, Relay(first) as relay, \
            watched(other, relay, out, "--queue", "64MiB") as (watch, names):
        go([other, first], [left, right])
        wait_until(lambda: out.count(names[1], "sample") and out.count(names[0], "sample"), "samples of both")
        kill(first)
        with Daemon(config=config_of(right.pids), directory=first.directory):
            wait_until(lambda: out.count(names[1], "disconnected"), "the gap")
            await_more(out, names[1])
            err = end(watch, [left, right])
        check("connected again after " in err, err)
        items = out.rows()
        check_host(items, names[0], left.counts, 0)
        check_host(items, names[1], right.counts, 1)
        check_last_stream(items, names[1])
        check_sum(items)


@contextlib.contextmanager
def flooded(*words):
    with Daemon() as other, Daemon() as first, Relay(first) as relay, contextlib.ExitStack() as stack, Out() as out:
        loads = [stack.enter_context(flood()) for _ in range(2)]
        for daemon, load in zip((other, first), loads):
            add(stack.enter_context(daemon.client()), {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
        watch, names = stack.enter_context(watched(other, relay, out, *words))
        go([other, first], loads)
        wait_until(lambda: out.count(names[1], "sample"), "a sample by TLS")
        yield first, relay, out, watch, names, loads


def test_stopped_relay():
    """It is waited for: its queue in perfd overflows, which is a gap with its count; the other host goes on, and so does the connection."""
    with flooded("--queue", "64KiB") as (first, relay, out, watch, names, loads):
        relay.process.send_signal(signal.SIGSTOP)
        try:
            wait_until(lambda: any(loss.count for s in first.ledger().subscribers for loss in s.dropped), "its queue to overflow")
            await_more(out, names[0])
        finally:
            relay.process.send_signal(signal.SIGCONT)
        wait_until(lambda: out.count(names[1], "relay_queue"), "the gap")
        await_more(out, names[1])
        end(watch, loads)
        items = out.rows()
        for name, load in zip(names, loads):
            check_host(items, name, load.counts, 0)
        check_sum(items)
        check(items[-1]["lost"]["relay_queue"] > 0, f"nothing is lost: {items[-1]}")


if __name__ == "__main__":
    perfd.main(globals())
