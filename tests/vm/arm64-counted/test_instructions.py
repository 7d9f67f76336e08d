#!/usr/bin/python3
"""On a CPU whose instructions are counted to the last one, each of which is a cycle: counts can be foretold."""
import perfd
from counters import loop, shared, stat, whole
from perfd import Daemon, Subscriber, Workload, add, check, equal, pb
from test_sources import samples

NOISE = 100  # instructions that are done again behind a page fault


def test_instructions_of_a_loop():
    with Daemon() as daemon:
        stat(daemon, "instructions:u", command=loop(1))  # what is read from disk once
        counts = [stat(daemon, "instructions:u", command=loop(n))[0]["value"] for n in (1000, 2000, 3000, 3000)]
    first, second, third, again = counts
    print(f"  {(second - first) / 1000} instructions each time")
    check(second - first > 1000 * 100, f"a thousand turns of a loop: {counts}")
    check(abs((second - first) - (third - second)) < NOISE, f"each thousand turns: {counts}")
    check(abs(again - third) < NOISE, f"the same again: {counts}")


def test_group_of_cycles_and_instructions():
    """There an instruction is a cycle: in a group, which counts at the same times, the counts are equal."""
    with Daemon() as daemon:
        rows = stat(daemon, "{cycles,instructions}", "instructions:u", "instructions:k", command=loop(1000))
    whole(rows)
    cycles, instructions, user, kernel = rows
    equal(cycles["value"], instructions["value"], "cycles and instructions")
    equal(len({row[time] for row in rows[:2] for time in ("enabled", "running")}), 1, "different times in a group")
    equal((instructions["metric"], instructions["metric_unit"]), (1, "insn per cycle"), "the metric")
    check(abs(user["value"] + kernel["value"] - instructions["value"]) < instructions["value"] / 100, f"sum of {rows}")


def test_samples_by_period():
    period = 1_000_000
    with Daemon() as daemon, daemon.client() as client, Workload("syscalls", 20_000) as load:
        add(client, {"event": "cycles", "name": "cycles", "period": period, "target": pb.Target(pids=load.pids)})
        with Subscriber(daemon, "cycles") as subscriber:
            load.go()
            load.done()
            items = samples(subscriber.finish(), "cycles")
        row, = [row for row in daemon.ledger().events if row.name == "cycles"]
        load.exit()
    check(row.balanced and row.count > 10 * period, f"{row}")
    equal({(item["pid"], item["cpu"]) for item in items}, {(load.pids[0], 0)}, "who was sampled")
    check(all(item["ip"] for item in items), "samples without a place")
    check(abs(len(items) - row.count / period) <= 1, f"{len(items)} samples of {row.count} cycles")


def test_more_events_than_counters():
    with Daemon() as daemon, Workload("flood", 0, 0) as load:
        load.go()
        rows = stat(daemon, *["instructions"] * 12, options=("--interval", "200ms", "--count", "2"))
        load.done(stop=True)
        load.exit()
    shared(rows[12:])


if __name__ == "__main__":
    perfd.main(globals(), seconds=120)
