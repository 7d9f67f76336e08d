#!/usr/bin/python3
"""Many hosts publish to one real nats-server: every sum closes, at perfctl fleet and at a program of libperfd. Needs root."""
import os
import re
import subprocess

import perfd
from fleet_hosts import Hosts
from nats import Server
from perfd import BUILD, Daemon, Workload, add, check, equal, pb, wait_until
from test_fleet import fleet
from test_nats import need_server
from test_perfctl import GETPPID
from test_promises import CPUS

HOSTS = 12
CALLS = 4_000
RATE = 10_000 if perfd.SANITIZER == "none" else 1_000
EXAMPLE = os.path.join(BUILD, "client", "example-fleet")


def example(server):
    """{(host, state): numbers} of what the example of libperfd(3) prints."""
    done = subprocess.run([EXAMPLE, server.url], capture_output=True, text=True, check=False, timeout=4 * perfd.PATIENCE)
    equal((done.returncode, done.stderr), (0, ""), "what the example ends with")
    rows = {}
    for line in done.stdout.splitlines():
        host, route, state, rest = line.split(" ", 3)
        equal(route, "calls", "the route")
        rows[host, state] = dict(re.findall(r"(\w+) (\d+)", rest))
        check("balance" not in line, line)
    return rows


def test_every_host():
    """The calls that each host has published are there, from the first to the last."""
    need_server()
    with Daemon() as daemon, daemon.client() as control, Workload("spin", CALLS, RATE, cpus=CPUS) as load, Server() as server:
        add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
        with Hosts(daemon, server, HOSTS) as hosts:
            load.go()
            load.done()
            hosts.stop()
            rows = fleet(server, "ledger")[0]
            n = sum(load.counts)
            equal(sorted((r["host"], r["state"], r["matched"], r["consumed"], r["lost"]) for r in rows),
                  [(name, "ended", n, n, {}) for name in hosts.names], "the ledger")
            equal(example(server), {(name, "ended"): {"consumed": str(n), "matched": str(n)} for name in hosts.names},
                  "what a program of libperfd reads")


def test_killed_hosts():
    """Of a relay that is killed the stream is cut, and its next one and those of others are whole."""
    need_server()
    with Daemon() as daemon, daemon.client() as control, Workload("flood", 0, RATE, cpus=CPUS[:1]) as load, Server() as server:
        add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
        with Hosts(daemon, server, 4) as hosts:
            load.go()
            wait_until(lambda: len(server.messages(subject="perfd.host000.calls")) > 2, "something of the first host")
            hosts.kill("host000")
            hosts.start("host000")
            hosts.wait_for("host000", r"route calls has begun")
            load.done(stop=True)
            hosts.stop()
        rows = fleet(server, "ledger", status=4)[0]
        equal(sorted((r["host"], r["state"]) for r in rows),
              [("host000", "cut"), ("host000", "ended"), ("host001", "ended"), ("host002", "ended"), ("host003", "ended")], "streams")
        for row in rows:
            if row["state"] == "ended":
                equal(row["matched"], row["consumed"] + sum(row["lost"].values()), f"the sum of {row}")
        whole = {row["consumed"] for row in rows if row["host"] != "host000"}
        equal(whole, {sum(load.counts)}, "what hosts that were not disturbed have published")
        equal(set(example(server)), {(r["host"], r["state"]) for r in rows}, "the streams that a program of libperfd reads")


if __name__ == "__main__":
    perfd.main(globals())
