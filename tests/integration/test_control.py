#!/usr/bin/python3
"""Changing what is traced while it is traced: groups as one, plans that change nothing, configurations that are applied
whole or not at all, events that outlive their daemon, and periods that change under a flood."""
import contextlib
import json
import os
import subprocess

import perfd
from perfd import Daemon, add, check, equal, pb, refused

PERFCTL = os.path.join(perfd.BUILD, "client", "perfctl", "perfctl")
SYS_ENTER = "raw_syscalls:sys_enter"


def perfctl(daemon, *arguments, status=0, data=""):
    """What it prints; its messages are in .stderr of the result."""
    done = subprocess.run([PERFCTL, "--socket", daemon.control, *arguments], input=data, capture_output=True, text=True,
                          timeout=perfd.PATIENCE, check=False)
    equal(done.returncode, status, f"the status of perfctl {arguments}, which said: {done.stderr.strip()}")
    return done


def documents(daemon, *arguments, **more):
    """Its lines of JSON."""
    return [json.loads(line) for line in perfctl(daemon, "--json", *arguments, **more).stdout.splitlines()]


def events(client):
    """{name: EventState}"""
    return {event.spec.name: event for event in client.request(list=pb.ListRequest()).list.events}


def enabled(client):
    return {name for name, event in events(client).items() if event.enabled}


def select(client, kind, *names):
    return [ref.name for ref in client.request(**{kind: pb.SelectRequest(names=names)}).selected.events]


# ---- groups ----------------------------------------------------------------------------------------------------------

GROUPS = """version: 1
groups:
  io:
    events: [sched:sched_process_exec, {event: page-faults, enabled: false}]
  web-1:
    events: [sched:sched_process_fork]
"""


def test_groups_are_changed_as_one():
    with Daemon(config=GROUPS) as daemon, daemon.client() as client:
        add(client, {"event": "sched:sched_process_exit", "group": "web-2"}, "sched:sched_process_wait",
            {"event": "context-switches", "group": "io"})
        equal({name: event.spec.group for name, event in events(client).items()},
              {"sched:sched_process_exec": "io", "page-faults": "io", "sched:sched_process_fork": "web-1",
               "sched:sched_process_exit": "web-2", "sched:sched_process_wait": "default", "context-switches": "io"},
              "the groups")
        io = ["sched:sched_process_exec", "page-faults", "context-switches"]
        equal(select(client, "enable", "@io"), io, "what is enabled as one")
        check(set(io) <= enabled(client), "the group is enabled")
        equal(select(client, "disable", "@io"), io, "what is disabled as one")
        equal(enabled(client), {"sched:sched_process_fork", "sched:sched_process_exit", "sched:sched_process_wait"},
              "what is still enabled")
        no = refused(client, "unknown-group", "STATUS_NOT_FOUND", remove=pb.SelectRequest(names=["@io", "@web-3"]))
        check("did you mean 'web-" in no.message, f"no hint in {no.message!r}")
        equal(len(events(client)), 6, "events after a refused remove")
        equal([event["name"] for event in documents(daemon, "list", "@web-*")],
              ["sched:sched_process_fork", "sched:sched_process_exit"], "a list of groups")
        equal(perfctl(daemon, "complete", "remove", "@w").stdout, "@web-1\n@web-2\n", "completion of groups")
        equal(select(client, "remove", "@web-*", "@default"),
              ["sched:sched_process_fork", "sched:sched_process_exit", "sched:sched_process_wait"], "what is removed as one")
        equal(set(events(client)), set(io), "what is left")
        perfctl(daemon, "add", "--group", "mine", "sched:sched_process_fork")
        equal(documents(daemon, "list", "@mine")[0]["group"], "mine", "the group of what perfctl added")
        for wrong in ("@x", "a b", "a*"):
            refused(client, "bad-name", add=pb.AddRequest(events=[pb.EventSpec(event="cpu-clock", group=wrong)]))


if __name__ == "__main__":
    perfd.main(globals())
