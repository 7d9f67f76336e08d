#!/usr/bin/python3
"""perfctl fleet: what relays have published to a real nats-server is read as it was sent, and every sum closes. Needs root."""
import json
import subprocess

import perfd
from nats import Publisher, Server
from perfd import Daemon, Workload, add, check, equal, pb, wait_until
from test_nats import CALLS, RATE, ROUTES, need_server
from test_perfctl import GETPPID
from test_promises import CPUS

PERFCTL = f"{perfd.BUILD}/client/perfctl/perfctl"


def fleet(server, *words, status=0):
    done = subprocess.run([PERFCTL, "--json", "fleet", "--nats", server.url, *words], capture_output=True, text=True, check=False,
                          timeout=4 * perfd.PATIENCE)
    equal(done.returncode, status, f"the status of {words}: {done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


class Watch:
    """perfctl fleet watch, until it has printed so many lines; then it is told to end."""

    def __init__(self, server, *words):
        self.process = subprocess.Popen([PERFCTL, "fleet", "--nats", server.url, "watch", *words], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)

    def take(self, n, status=0):
        lines = [self.process.stdout.readline() for _ in range(n)]
        self.process.terminate()
        rest, errors = self.process.communicate(timeout=perfd.PATIENCE)
        equal((self.process.returncode, rest, errors), (status, "", ""), "what it ends with")
        return lines


def publish(daemon, control, server, load, keys=""):
    """All calls of a load, as one epoch that has ended."""
    event, = add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
    with Publisher(daemon, server, ROUTES, keys) as relay:
        relay.wait_for(r"publishing to")
        relay.wait_for(r"route calls has begun")
        load.go()
        load.done()
    return event


def test_every_call():
    """The ledger of what is stored balances with nothing lost, and each item comes once, with its host, also of a glob of hosts."""
    need_server()
    with Daemon() as daemon, daemon.client() as control, Workload("spin", CALLS, RATE, cpus=CPUS) as load, Server() as server:
        publish(daemon, control, server, load)
        row, = fleet(server, "ledger")[0]
        n = sum(load.counts)
        equal((row["host"], row["route"], row["state"], row["matched"], row["consumed"], row["lost"], row["expired_packets"]),
              ("web1", "calls", "ended", n, n, {}, 0), "the row")
        host, = fleet(server, "hosts")[0]
        equal((host["host"], host["state"], host["streams"], host["consumed"], host["lost"]), ("web1", "ended", 1, n, 0), "the host")
        equal((host["machine"], host["bytes"], host["latest"]), (row["machine"], row["bytes"], row["latest"]), "as the ledger has it")
        equal(fleet(server, "ledger", "--host", "db*")[0], [], "rows of other hosts")
        items = [json.loads(line) for line in Watch(server, "calls", "--all", "--json", "--host", "web*").take(n)]
        equal({(i["host"], i["kind"], i["event"]) for i in items}, {("web1", "sample", "calls")}, "what items are")
        times = [i["time"] for i in items]
        check(times == sorted(times), "an item is older than the one before it")
        calls = {(i["pid"], i["time"]) for i in items}  # those of two CPUs can have the same time
        equal(len(calls), n, "items that are there once")
        equal([sum(pid == p for pid, _ in calls) for p in load.pids], load.counts, "the calls of each pid")
        line = Watch(server, "calls", "--all").take(n)[0]
        check(line.startswith("web1\t") and "calls" in line, f"a line for people: {line!r}")


def test_full_stream():
    """What JetStream drops by its limits is `expired`, and a watch from the middle can decode."""
    need_server()
    with Daemon() as daemon, daemon.client() as control, Workload("spin", CALLS, RATE, cpus=CPUS) as load, Server() as server:
        publish(daemon, control, server, load, ", max-bytes: 1MiB")
        row, = fleet(server, "ledger", status=4)[0]
        n = sum(load.counts)
        check(row["lost"]["expired"] > 0 and row["expired_packets"] > 0, f"nothing has expired: {row}")
        equal((row["matched"], row["consumed"] + row["lost"]["expired"]), (n, n), f"the sum: {row}")
        equal({json.loads(line)["event"] for line in Watch(server, "calls", "--all", "--json").take(row["consumed"], 4)}, {"calls"},
              "items from the middle")


def test_cut_stream():
    """A relay that is killed: its stream was cut off, and the next one goes on."""
    need_server()
    with Daemon() as daemon, daemon.client() as control, Workload("flood", 0, RATE, cpus=CPUS[:1]) as load, Server() as server:
        add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
        with Publisher(daemon, server, ROUTES) as relay:
            relay.wait_for(r"route calls has begun")
            load.go()
            wait_until(lambda: len(server.messages()) > 5, "something to be stored")
            equal([row["state"] for row in fleet(server, "ledger")[0]], ["open"], "the state of a stream that goes on")
            relay.kill_and_start()
            wait_until(lambda: len(fleet(server, "ledger")[0]) == 2, "another stream")
            load.done(stop=True)
        first, second = fleet(server, "ledger")[0]
        equal((first["state"], first["matched"], second["state"], second["matched"]), ("cut", None, "ended", second["consumed"]), "both")


def test_errors():
    """Bad words are said to be wrong, and a server or a stream that is not there."""
    need_server()
    with Server() as server:
        for words, status, expected in (
                (["ledger"], 1, "has no stream 'perfd'"), (["host"], 2, "expected hosts, ledger or watch"),
                (["watch"], 2, "needs the name of a route"), (["watch", "a.b"], 2, "cannot be the name of a route"),
                (["ledger", "x"], 2, "only watch has an argument")):
            check(expected in fleet(server, *words, status=status)[1], f"{words}")
        server.kill()
        check(server.url in fleet(server, "ledger", status=3)[1], "what it says of a server that is not there")


if __name__ == "__main__":
    perfd.main(globals())
