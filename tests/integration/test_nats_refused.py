#!/usr/bin/python3
"""What a NATS server can refuse, and servers that answer nothing: the log says once what to do, and when that is done, all is stored once and
in order. Needs root."""
import contextlib
import glob
import os
import re
import signal
import socket
import threading
import time

import perfd
from nats import Publisher, Server, epochs
from perfd import Daemon, Workload, add, check, equal, pb, wait_until
from test_fleet import fleet
from test_nats import CALLS, RATE, ROUTES, close, need_server, statuses
from test_nats_access import calls, write_secret
from test_perfctl import GETPPID
from test_promises import CPUS

AWAY = r"nothing is published now, and what comes is kept until there is a server: "


def until_stored(server, load, stream="perfd"):
    wait_until(lambda: sum(m.number("Perfd-Items") for m in server.messages(stream)) == sum(load.counts), "all to be stored")


def check_all(server, load):
    epoch, = epochs(server.messages())
    equal(close(epoch, sum(load.counts)), 0, "what was lost")


def mended(server, said, mend):
    """A relay that says so, once, while calls come; what is there when the reason is gone."""
    with calls() as (daemon, load):
        with Publisher(daemon, server, ROUTES) as relay:
            relay.wait_for(r"route calls has begun")
            load.go()
            relay.wait_for(AWAY + said)
            load.done()
            n = len(re.findall(AWAY, relay.said()))
            check(n <= 2, f"it is said {n} times: {relay.said()}")
            before = relay.said().count("publishing to nats://")
            mend(relay)
            wait_until(lambda: relay.said().count("publishing to nats://") > before, "the relay to publish again")
            until_stored(server, load)
        check_all(server, load)


def restarting(server, *configuration):
    def restart(_=None):
        server.kill()
        server.configure(*configuration)
        server.start()
    return restart


def test_no_jetstream():
    need_server()
    with Server(jetstream=False) as server:
        mended(server, r"stream 'perfd': .*the server runs without JetStream: add 'jetstream \{\}'", restarting(server))


def count_until(fact, text):
    """How many calls this process has made by then, one after the other: of a flood all messages may be too long, on a busy machine."""
    n = 0

    def look():
        nonlocal n
        os.getppid()
        n += 1
        return fact()

    wait_until(look, text)
    return n


def test_short_messages():
    """A server, or a stream, with a limit that some packets are longer than: each of these is a gap with a number and a reason, said once,
    and all else is stored; a reader of the route closes its sum."""
    need_server()
    stream = {"name": "perfd", "subjects": ["perfd.*.*"], "storage": "file", "retention": "limits", "num_replicas": 1, "max_msg_size": 6000}
    for limits in ["max_payload: 6000"], ["", stream]:
        with Server(limits[0]) as server, Daemon() as daemon, daemon.client() as control, Workload("spin", CALLS, RATE, cpus=CPUS[:1]) as load:
            add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=[*load.pids, os.getpid()], no_inherit=True)})
            for more in limits[1:]:
                check("error" not in (made := server.request("$JS.API.STREAM.CREATE.perfd", **more)), str(made))
            with Publisher(daemon, server, ROUTES) as relay:
                relay.wait_for(r"route calls has begun")
                load.go()
                load.done()
                own = count_until(lambda: any(m.number("Perfd-Items") for m in server.messages()), "a message with items")
            made = sum(load.counts) + own
            epoch, = epochs(server.messages())
            check(not re.search(AWAY, relay.said_last), relay.said_last)
            equal(len(re.findall(r"is longer than the server takes, and is lost", relay.said_last)), 1, f"how often that is said: {relay.said_last}")
            equal(set(epoch.gaps), {"too-long"}, "the reasons of gaps")
            check(epoch.gaps["too-long"] > 0 and epoch.n_items > 0, f"{epoch.n_items} items, and {epoch.gaps}")
            equal(epoch.n_items + epoch.gaps["too-long"], made, "what was stored, and what gaps say")
            row, = fleet(server, "ledger", status=4)[0]
            equal((row["state"], row["matched"], row["consumed"], row["lost"]), ("ended", made, epoch.n_items, epoch.gaps), "the sum")
            status = statuses(server)[-1]
            equal([(loss.reason, loss.count) for loss in status.routes[0].lost], list(epoch.gaps.items()), "what the relay says of it")
            equal((status.routes[0].published, status.routes[0].held), (epoch.n_items, 0), "what it says of the rest")


def test_no_room():
    """An account, or a server, that has less room than the stream asks for."""
    need_server()
    with Server(jetstream=False) as server:
        with open(server.at("nats.conf"), "a", encoding="utf-8") as f:
            f.write(f'jetstream {{ store_dir: "{server.at("store")}", max_file_store: 1MB }}\n')
        server.kill()
        server.start()
        mended(server, r"stream 'perfd': .*JetStream has no room left: .*publish\.max-bytes", restarting(server))


def test_full():
    """A stream that refuses what is new when it is full: nothing is lost, nothing overtakes, and nothing is there twice when it has room."""
    need_server()
    stream = {"name": "perfd", "subjects": ["perfd.*.*"], "storage": "file", "retention": "limits", "discard": "new", "max_bytes": 30_000,
              "num_replicas": 1}
    with Server() as server:
        check("error" not in (made := server.request("$JS.API.STREAM.CREATE.perfd", **stream)), str(made))
        mended(server, r"JetStream refuses a message, 'maximum bytes exceeded': the stream is full",
               lambda _: server.request("$JS.API.STREAM.UPDATE.perfd", **{**stream, "max_bytes": -1}))


def remove_stream(server, name, relay):
    """While the relay is stopped: a stream that is made while the server still removes files of another one of its name has none."""
    folder = server.at("store") + f"/jetstream/*/streams/{name}"
    check(glob.glob(folder), f"the server has no {folder}")
    relay.process.send_signal(signal.SIGSTOP)
    server.request("$JS.API.STREAM.DELETE." + name)
    wait_until(lambda: not glob.glob(folder), "its files to be removed")
    relay.process.send_signal(signal.SIGCONT)


def test_other_streams():
    """Subjects that another stream has; a stream of that name with other subjects; one that acknowledges nothing."""
    need_server()
    for name, subjects, more, said in (
            ("other", ["perfd.>"], {}, r"stream 'perfd': .*another stream has the subjects perfd\.\*\.\*"),
            ("perfd", ["elsewhere"], {}, r"no stream of JetStream takes perfd\.\*\.\*"),
            ("perfd", ["perfd.*.*"], {"no_ack": True}, r"stream 'perfd' acknowledges nothing \(no_ack\)"),
            ("perfd-descriptors", ["perfd.*.*", "perfd-descriptors.>"], {}, r"stream 'perfd': .*another stream has the subjects")):
        with Server() as server:
            server.request("$JS.API.STREAM.CREATE." + name, name=name, subjects=subjects, storage="file", num_replicas=1, **more)
            mended(server, said, lambda relay: remove_stream(server, name, relay))  # pylint: disable=cell-var-from-loop


PERMISSIONS = """authorization {
  users: [
    { user: relay, password: a, permissions: { publish: [%s], subscribe: ["_INBOX.>"] } }
    { user: reader, password: a }
  ]
}
"""
NEEDED = ["perfd.web1.*", "perfd.web1.status.*.*", "perfd-descriptors.>",
          *(f"$JS.API.STREAM.{what}.perfd{which}" for what in ("INFO", "CREATE") for which in ("", "-descriptors", "-status"))]


def allowing(subjects):
    return PERMISSIONS % ", ".join(f'"{subject}"' for subject in subjects)


def test_permissions():
    """What perfd-relay(8) lists is what it takes; without any of it the log says which subject is missing."""
    for missing in "perfd.web1.*", "perfd-descriptors.>", "$JS.API.STREAM.INFO.perfd", "$JS.API.STREAM.CREATE.perfd":
        need_server()
        with Server(allowing(s for s in NEEDED if s != missing)) as server, calls() as (daemon, load):
            password = write_secret(server.at("password"), "a")
            with Publisher(daemon, server, ROUTES, f", user: relay, password-file: {password}") as relay:
                relay.wait_for(r"route calls has begun")
                load.go()
                relay.wait_for(AWAY + rf'Not Permitted.*{re.escape(missing.replace("*", "calls").rstrip(".>"))}.*PUBLISHING')
                load.done()
                before = relay.said().count("publishing to nats://")
                restarting(server, allowing(NEEDED))()
                wait_until(lambda: relay.said().count("publishing to nats://") > before, "the relay to publish again")
                server.user = "reader:a@"
                until_stored(server, load)
            check_all(server, load)


@contextlib.contextmanager
def silent(says):
    """A server that says this to whoever comes, and nothing more; how many have come."""
    came = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        def accept():
            with contextlib.suppress(OSError):
                while True:
                    came.append(listening.accept()[0])
                    came[-1].sendall(says)
        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield listening.getsockname()[1], came
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()
            for s in came:
                s.close()


INFO = b'INFO {"server_id":"x","version":"2.9.10","proto":1,"headers":true,"max_payload":1048576%s}\r\n'


class AtBoth(Publisher):
    """One whose first server is another one."""

    def __init__(self, daemon, server, first):
        self.first = first
        super().__init__(daemon, server, ROUTES)

    def configure(self, clients):
        self.publish = self.publish.replace("servers: [", f"servers: ['nats://127.0.0.1:{self.first}', ", 1)
        super().configure(clients)


def test_silent_servers():
    """A server that stands still at any point of the way: the next one is taken, and a relay that has no other ends all the same."""
    need_server()
    for says in b"", INFO % b"", INFO % b',"tls_required":true', b"INFO {\r\n", b"x" * 70000:
        with silent(says) as (port, came), calls() as (daemon, load), Server() as server:
            with AtBoth(daemon, server, port) as relay:
                relay.wait_for(rf"publishing to nats://127\.0\.0\.1:{server.port}")
                relay.wait_for(r"route calls has begun")
                load.go()
                load.done()
                check(came, "nobody has come")
            check_all(server, load)
    for says in INFO % b"", INFO % b',"tls_required":true':
        with silent(says) as (port, came), Daemon() as daemon, Server() as server:
            server.port, real = port, server.port
            with Publisher(daemon, server, ROUTES) as relay:
                wait_until(lambda: came, "the relay to come")
                begin = time.monotonic()
                relay.stop()
                check(time.monotonic() - begin < perfd.PATIENCE, "it has not ended")
            server.port = real


def test_stopped_in_a_flood():
    """SIGTERM with acknowledgements on their way: the end is stored, or said to be lost, and nothing hangs."""
    need_server()
    for number in signal.SIGCONT, signal.SIGSTOP:
        with calls() as (daemon, load), Server() as server:
            with Publisher(daemon, server, ROUTES) as relay:
                relay.wait_for(r"publishing to nats://")
                relay.wait_for(r"route calls has begun")
                load.go()
                wait_until(server.messages, "something to be stored")
                server.signal(number)
                relay.stop()
            load.done()
            server.signal(signal.SIGCONT)
            epoch, = epochs(server.messages())
            if number == signal.SIGCONT:
                equal(close(epoch, epoch.own().matched), 0, "what was lost")
            check((number == signal.SIGSTOP) == ("were not stored, and are lost" in relay.said_last), f"it said:\n{relay.said_last}")


if __name__ == "__main__":
    perfd.main(globals())
