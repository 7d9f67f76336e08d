#!/usr/bin/python3
"""The numbers and formats of events by the daemon, for who may not read tracefs; of those events whose samples are granted. Needs root."""
import os
import platform
import sys

import perfd
from perfd import Daemon, add, check, equal, pb, refused
from test_roles import ANN, BOB, EVE, rules

EVENTS = "/sys/kernel/tracing/events/"
MOST = 64
SOFTWARE, TRACEPOINT, CPU_CLOCK = 1, 2, 0


def ask(client, *ids):
    return client.request(event_formats=pb.EventFormatsRequest(ids=ids)).event_formats


def file_of(name):
    with open(EVENTS + name, "rb") as f:
        return f.read()


def check_tracepoint(said, event_id, name):
    place = name.replace(":", "/")
    equal((said.id, said.has_attr, said.type, said.config, said.tracepoint),
          (event_id, True, TRACEPOINT, int(file_of(place + "/id")), name), f"what is said of {name}")
    equal(said.format, file_of(place + "/format"), f"the format of {name}")


def test_formats():
    """Each is what tracefs has; the host is this one; and of a client's events and groups there are no numbers."""
    with Daemon() as daemon, daemon.client() as root:
        ids = [event.id for event in add(root, {"event": "sched:sched_switch", "name": "switches"}, {"event": "cpu-clock", "name": "clock"},
                                         {"event": f"uprobe:{sys.executable}:_start", "name": "starts"},
                                         {"event": "external:told", "fields": [pb.ExternalField(name="n", type="u32")]},
                                         {"event": "{page-faults,cs}", "name": "both", "interval": 1_000_000_000})]
        said = ask(root, *ids)
        equal([event.id for event in said.events], ids, "their ids")
        switches, clock, starts, told, both = said.events
        check_tracepoint(switches, ids[0], "sched:sched_switch")
        equal((clock.has_attr, clock.type, clock.config, clock.tracepoint, clock.format), (True, SOFTWARE, CPU_CLOCK, "", b""), "the clock")
        check(starts.tracepoint.startswith("perfd_"), starts.tracepoint)
        check_tracepoint(starts, ids[2], starts.tracepoint)
        for other, event_id in (told, ids[3]), (both, ids[4]):
            equal(other, pb.EventFormat(id=event_id), "what has no numbers")
        equal((said.header_page, said.header_event), (file_of("header_page"), file_of("header_event")), "the headers")
        equal((said.machine, said.n_cpus, said.n_online_cpus, said.page_bytes),
              (platform.machine(), os.sysconf("SC_NPROCESSORS_CONF"), os.sysconf("SC_NPROCESSORS_ONLN"), os.sysconf("SC_PAGESIZE")), "the host")
        equal(ask(root, ids[1]).header_page, b"", "without a tracepoint")
        equal(len(ask(root, *[ids[0]] * MOST).events), MOST, "as many as may be")
        refused(root, "bad-request", "STATUS_INVALID", event_formats=pb.EventFormatsRequest(ids=[ids[0]] * (MOST + 1)))
        root.request(remove=pb.SelectRequest(names=["switches"]))
        refused(root, "unknown-event", "STATUS_NOT_FOUND", event_formats=pb.EventFormatsRequest(ids=[ids[1], ids[0]]))


def test_granted():
    """Exactly to whom samples are granted: by rules, and by the limit of a connection; what is not is as what is not there."""
    config = rules(f"{{ users: [{ANN}], subscribe: [switches] }}", f"{{ users: [{BOB}], subscribe: ['*'], where: 'cpu == 900' }}",
                   f"{{ users: [{EVE}], status: true }}")
    with Daemon(config) as daemon, daemon.client() as root, daemon.client_of(ANN, groups=()) as ann, daemon.client_of(BOB, groups=()) as bob, \
            daemon.client_of(EVE, groups=()) as eve, daemon.client() as limited:
        switches, clock = [event.id for event in add(root, {"event": "sched:sched_switch", "name": "switches"},
                                                     {"event": "cpu-clock", "name": "clock"})]
        limited.request(hello=pb.Hello(protocol=1, program="limited", limit=pb.Limit(name="somebody", events=["clock"], status=True)))
        for client, granted in (ann, {switches}), (bob, {switches, clock}), (eve, set()), (limited, {clock}):
            for event_id in switches, clock, clock + 1:
                if event_id in granted:
                    equal(ask(client, event_id), ask(root, event_id), "what is said")
                    continue
                answer = refused(client, "unknown-event", "STATUS_NOT_FOUND", event_formats=pb.EventFormatsRequest(ids=[event_id]))
                equal(answer.message, f"of the events whose samples are granted here none has the id {event_id}", "the refusal")


if __name__ == "__main__":
    perfd.main(globals())
