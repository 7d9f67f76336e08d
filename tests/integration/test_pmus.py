#!/usr/bin/python3
"""What a PMU cannot do."""
import os

import perfd
from perfd import Daemon, check, equal, pb, refused


def test_pmu_without_sampling():
    """It is counted once a second by itself, and the reply says so; who wants samples, or gives an interval, gets the usual."""
    if not os.path.isdir("/sys/bus/event_source/devices/msr"):
        raise perfd.Skip("the PMU msr, which this machine does not have")
    with Daemon() as daemon, daemon.client() as client:
        note, = client.request(add=pb.AddRequest(events=[pb.EventSpec(event="msr/tsc/")])).added.notes
        check("msr/tsc/" in note and "counted once a second" in note, note)
        event, = client.request(list=pb.ListRequest()).list.events
        equal((event.spec.interval, event.spec.period, event.spec.frequency), (10**9, 0, 0), "how it is counted")
        added = client.request(add=pb.AddRequest(events=[pb.EventSpec(event="msr/tsc/", name="own", interval=10**8)])).added
        equal(list(added.notes), [], "notes with an interval")
        for how in {"period": 1000}, {"frequency": 99}:
            said = refused(client, "bad-event", "STATUS_INVALID", add=pb.AddRequest(events=[pb.EventSpec(event="msr/tsc/", name="no", **how)]))
            check("cannot be sampled, only counted: give it an interval" in said.message, said.message)
    with Daemon(config="version: 1\ngroups: { a: { events: ['msr/tsc/'] } }\n") as daemon, daemon.client() as client:
        equal([(event.spec.event, event.spec.interval) for event in client.request(list=pb.ListRequest()).list.events],
              [("msr/tsc/", 10**9)], "of a configuration")


if __name__ == "__main__":
    perfd.main(globals())
