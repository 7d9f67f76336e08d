#!/usr/bin/python3
"""Tracepoints that count nanoseconds, and not occurrences. Needs root."""
import perfd
from perfd import Daemon, add, check
from test_sources import Fire


def test_runtime():
    """sched:sched_stat_runtime: one sample for each occurrence, whose period is the time, and not one for each nanosecond."""
    with Daemon() as daemon, daemon.client() as client, daemon.client(stream=True) as stream, Fire() as fire:
        add(client, {"event": "sched:sched_stat_runtime", "name": "runtime", "target": fire.target})
        items = stream.subscribe(events=["runtime"])
        fire.fire("spins", 50)
        rows = daemon.ledger("runtime").events
        stream.stop()
        found = list(items)
    check(all(row.balanced and not row.exact for row in rows), f"not balanced, or called exact: {rows}")
    check(found and all(item["period"] == item["fields"]["runtime"] for item in found), f"periods: {found}")
    check(sum(item["period"] for item in found) >= sum(row.count for row in rows) > 10**6 > len(found), f"{len(found)} samples of {rows}")


if __name__ == "__main__":
    perfd.need_root()
    perfd.main(globals())
