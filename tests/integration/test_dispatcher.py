#!/usr/bin/python3
"""A dispatcher whose thread is stopped, and a service manager that does not read: main waits for neither. Needs root."""
import contextlib
import os
import re
import signal
import socket
import tempfile

import perfd
from perfd import check, equal, pb, wait_until
from test_stalled import GETPPID, answers_again, call, is_answered, later, reap, rows, stalled, stopped, stopped_thread, unjoined


def fill(path):
    """Whatever the queue of a socket of datagrams takes; how many."""
    n = 0
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as peer:
        peer.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                peer.sendto(b"filled", path)
                n += 1
    return n


def dispatcher_stalled(daemon):
    return daemon.status().dispatcher_stalled


def test_status_at_once():
    """Whoever only looks waits for no thread: what is not answered yet is known later, and until then what was known before is said."""
    first, last = perfd.online_cpus()[0], perfd.online_cpus()[-1]
    with perfd.Daemon(config="version: 1\n") as daemon, daemon.client() as control:
        perfd.add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=[os.getpid()], no_inherit=True)})
        with stopped(daemon, last):
            with stopped_thread(daemon, "dispatcher"):
                equal((stalled(daemon), dispatcher_stalled(daemon)), (set(), 0), "what the first status has waited for")
                equal([e.spec.name for e in control.request(list=pb.ListRequest()).list.events], ["calls"], "what is listed")
                wait_until(lambda: stalled(daemon) == {last}, "the reader does not answer for long")
                equal(dispatcher_stalled(daemon), 0, "the dispatcher, of which that takes longer")
                wait_until(lambda: dispatcher_stalled(daemon) > 0, "the dispatcher does not answer for long")
                check("since it was asked whether it continues" in daemon.stderr(), daemon.stderr())
            wait_until(lambda: dispatcher_stalled(daemon) == 0, "the dispatcher answers again")
            equal(stalled(daemon), {last}, "CPUs whose reader does not answer")
        answers_again(daemon)
        call(first, 100)
        row = rows(daemon, "calls")[first]
        equal((row.occurred, row.balanced, row.exact), (100, True, True), f"{row}")


def test_end_with_a_look():
    """SIGTERM while the dispatcher has not answered a status yet, without a stream: perfd gives it the shorter of its times."""
    with perfd.Daemon(config="version: 1\n", env=unjoined()) as daemon:
        with stopped_thread(daemon, "dispatcher") as tid:
            daemon.status()
            os.kill(daemon.pid, signal.SIGTERM)
            reap(tid)
            daemon.stop()
            check("exits while the dispatcher" in daemon.stderr(), daemon.stderr())


def test_notify_socket():
    """Nobody reads $NOTIFY_SOCKET: perfd waits for nothing, and tells its states in their order when somebody does."""
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as directory, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        path = os.path.join(directory, "notify")
        manager.bind(path)
        manager.settimeout(perfd.PATIENCE)
        os.chmod(directory, 0o755)
        os.chmod(path, 0o666)
        n_filled = fill(path)
        config = "version: 1\ngroups: {{own: {{events: [{}]}}}}\n"
        with perfd.Daemon(config=config.format("page-faults"),
                          env={**os.environ, "NOTIFY_SOCKET": path, "WATCHDOG_USEC": "300000"}) as daemon:
            wait_until(lambda: "the service manager does not read" in daemon.stderr(), "perfd says so")
            with open(os.path.join(daemon.directory, "perfd.yaml"), "w", encoding="ascii") as f:
                f.write(config.format("context-switches"))
            os.kill(daemon.pid, signal.SIGHUP)
            wait_until(lambda: "reloaded: 1 added, 1 removed" in daemon.stderr(), "the configuration is read again")
            equal(daemon.status().n_events, 1, "events")
            equal([manager.recv(100) for _ in range(n_filled)], [b"filled"] * n_filled, "what was there before")
            told = []
            while len(told) < 3:
                state = manager.recv(200)
                if state != b"WATCHDOG=1":
                    told.append(state.split(b"\n")[0])
            equal(told, [b"READY=1", b"RELOADING=1", b"READY=1"], "states")
            fill(path)  # and nobody reads the end


def test_time_to_end():
    """The service manager is asked for time while what was opened is closed."""
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as directory, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        path = os.path.join(directory, "notify")
        manager.bind(path)
        manager.settimeout(perfd.PATIENCE)
        os.chmod(directory, 0o755)
        os.chmod(path, 0o666)
        config = "version: 1\ngroups: {own: {events: [page-faults]}}\n"
        with perfd.Daemon(config=config, env={**os.environ, "NOTIFY_SOCKET": path}) as daemon:
            equal(manager.recv(200), b"READY=1", "state")
            with stopped_thread(daemon, "closer"):
                os.kill(daemon.pid, signal.SIGTERM)
                told = [manager.recv(200).split(b"=")[0] for _ in range(2)]
            equal(told, [b"STOPPING", b"EXTEND_TIMEOUT_USEC"], "states")


def test_dispatcher():
    """A dispatcher that is stopped: it is said, what needs it is refused, all else goes on, and streams afterwards."""
    first = perfd.online_cpus()[0]
    with perfd.Daemon(config="version: 1\n") as daemon, daemon.client() as control, daemon.client() as other:
        me = pb.Target(pids=[os.getpid()])
        perfd.add(control, {"event": GETPPID, "name": "calls", "target": me})
        with perfd.Subscriber(daemon, "--quiet", "calls") as subscriber:
            call(first, 500)
            with stopped_thread(daemon, "dispatcher") as tid:
                call(first, 1000)
                later(control, ledger=pb.LedgerRequest())
                n = 0
                while not is_answered(control):
                    equal(other.request(list=pb.ListRequest()).list.events[0].spec.name, "calls", "what is listed")
                    n += 1
                check(n >= 10, f"{n} requests were answered before the ledger was refused")
                no = control.receive().response
                equal((no.status, no.reason), (pb.STATUS_UNSUPPORTED, "dispatcher-stalled"), no.message)
                check(f"the dispatcher (tid {tid})" in no.message, no.message)
                check(f"the dispatcher (tid {tid}) has not responded" in daemon.stderr() and
                      "stopped by a debugger" in daemon.stderr(), daemon.stderr())
                check(dispatcher_stalled(daemon) > 0, "status does not say so")
                for body in {"subscribe": pb.SubscribeRequest(events=["calls"])}, {"ledger": pb.LedgerRequest()}:
                    try:
                        daemon.client().request(**body)
                        raise AssertionError(f"{body} was not refused")
                    except perfd.Refused as refused:
                        equal(refused.response.reason, "dispatcher-stalled", refused.response.message)
                perfd.add(control, {"event": GETPPID, "name": "comes", "target": me})
                control.request(set_filter=pb.SetFilterRequest(name="comes", filter="common_pid != 1"))
                control.request(remove=pb.SelectRequest(names=["comes"]))
                call(first, 1000)
            wait_until(lambda: dispatcher_stalled(daemon) == 0, "the dispatcher answers again")
            call(first, 500)
            found = [row for row in subscriber.finish() if row["kind"] == "event"]
        row = rows(daemon, "calls")[first]
        equal((row.occurred, row.balanced, row.exact), (3000, True, True), f"{row}")
        equal(sum(row["occurred"] for row in found), 3000, "calls of the stream")
        equal(sum(row["delivered"] + row["filtered"] + sum(row["lost"].values()) for row in found), 3000, "calls of the stream")


def test_end_without_dispatcher():
    """SIGTERM while it is stopped, with a stream whose end nobody can send."""
    with perfd.Daemon(config="version: 1\n", env=unjoined()) as daemon, daemon.client() as control:
        perfd.add(control, {"event": GETPPID, "name": "calls"})
        with perfd.Subscriber(daemon, "--quiet", "calls"):
            with stopped_thread(daemon, "dispatcher") as tid:
                os.kill(daemon.pid, signal.SIGTERM)
                reap(tid)
                daemon.stop()
                check("exits while the dispatcher" in daemon.stderr(), daemon.stderr())
                found = re.search(r"the dispatcher .* has not responded for (\d+) s", daemon.stderr())
                check(found and int(found[1]) < 5, f"perfd has waited for it as if it were not told to end: {daemon.stderr()}")


if __name__ == "__main__":
    perfd.main(globals())
