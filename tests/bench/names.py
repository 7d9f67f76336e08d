#!/usr/bin/python3
"""What it costs to name events, with 10,000 of them beside 100: by requests over the control socket.

    sudo PERFD_BUILD=build tests/bench/names.py [--json PATH]

Each row is one kind of request that names every event, all of them in one request, but refusals: of these there is one request for
each unknown name. us/event is the time of an answer by the number of events; ratio is that of 10,000 to that of 100, in the same
run. Where a name is found in constant time it is what caches make of it; where all names are walked for each it is near 100. Goal:
at most 10. Refusals look for a hint ("did you mean") among all names, as far as that is not too much: at most 30 ms each. Times
have the client's part in them, as the ledger's 10,000 rows that it decodes.
"""
import argparse
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "integration"))
# pylint: disable=wrong-import-position
import perfd
from perfd import pb

FEW, MANY, TIMES, UNKNOWN = 100, 10_000, 3, 20
RATIO_MOST, REFUSAL_MOST = 10, 0.030
ORDER = pb.ORDER_CPU


def timed(client, **request):
    begin = time.perf_counter()
    response = client.request(**request)
    return time.perf_counter() - begin, response


def subscribe(daemon, names):
    """The time of the answer; the stream ends with its connection."""
    with daemon.client(stream=True) as client:
        return timed(client, subscribe=pb.SubscribeRequest(events=names, order=ORDER))[0]


def refuse(client, n):
    """Of one request of an unknown name; and what the hint says of one that is nearly known."""
    begin = time.perf_counter()
    for i in range(UNKNOWN):
        no = perfd.refused(client, "unknown-event", disable=pb.SelectRequest(names=[f"benchmark-{i:02}-of-nobody"]))
        perfd.check("did you mean" not in no.message, no.message)
    spent = time.perf_counter() - begin
    no = perfd.refused(client, "unknown-event", disable=pb.SelectRequest(names=["bench-event-0007"]))
    perfd.check("did you mean" in no.message, f"no hint among {n}: {no.message}")
    return spent / UNKNOWN


def measure(n):
    """{what: seconds} with n events."""
    names = [f"bench-event-{i:05}" for i in range(n)]
    specs = [pb.EventSpec(event="external:bench", name=name, fields=[pb.ExternalField(name="n", type="u64")]) for name in names]
    found = {}
    with perfd.Daemon() as daemon, daemon.client() as client:
        found["add"], added = timed(client, add=pb.AddRequest(events=specs))
        ids = [f"#{event.id}" for event in added.added.events]
        found["disable by name"], _ = timed(client, disable=pb.SelectRequest(names=names))
        found["enable by #id"], _ = timed(client, enable=pb.SelectRequest(names=ids))
        found["subscribe by name"] = subscribe(daemon, names)
        now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        samples = [pb.ExternalSample(event=name, time=now, values=[pb.ExternalValue(number=1)]) for name in names]
        found["emit"], emitted = timed(client, emit=pb.EmitRequest(samples=samples))
        perfd.equal((emitted.emitted.taken, emitted.emitted.lost), (n, 0), "samples taken and lost")
        found["ledger"], ledger = timed(client, ledger=pb.LedgerRequest())
        perfd.equal(len(ledger.ledger.events), n, "rows of the ledger")
        found["refuse"] = refuse(client, n)
        found["remove by name"], _ = timed(client, remove=pb.SelectRequest(names=names))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", metavar="PATH", help="all numbers")
    a = parser.parse_args()
    perfd.need_root()
    runs = [(measure(FEW), measure(MANY)) for _ in range(TIMES)]  # in turns
    rows, missed = [], []
    print(f"{'request':20}{FEW:>7} ms {MANY:>7} ms {'us/event':>9} {'ratio':>6}")
    for what in runs[0][0]:
        few, many = (min(run[which][what] for run in runs) for which in (0, 1))
        per_event = what != "refuse"
        ratio = (many / MANY) / (few / FEW) if per_event else many / few
        is_reached = ratio <= RATIO_MOST if per_event else many <= REFUSAL_MOST
        rows.append({"request": what, "few": few, "many": many, "ratio": ratio, "reached": is_reached})
        print(f"{what:20}{few * 1e3:10.2f} {many * 1e3:10.2f} {f'{many / MANY * 1e6:.1f}' if per_event else '-':>9} {ratio:6.2f}"
              f"{'' if is_reached else '  goal missed'}")
        missed += [] if is_reached else [what]
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump({"benchmark": "names", "few": FEW, "many": MANY, "rows": rows}, f, indent=1)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
