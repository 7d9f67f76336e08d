#!/usr/bin/python3
"""Recordings as traces of Perfetto, against the samples one by one: switches, instants with their fields, callchains and counters. Needs
root, for perf record."""
import json
import os
import subprocess
import sys
import tempfile

import perfd
from perfd import check, equal
from test_perfctl import PERFCTL

sys.path.insert(0, os.path.join(os.environ["PERFD_BUILD"], "client", "profile"))
import perfetto_pb2  # pylint: disable=wrong-import-position,wrong-import-order

FOLDER = tempfile.TemporaryDirectory(prefix="perfd-test.")
LOAD = "import os, hashlib; [os.waitpid(os.fork() or os._exit(hashlib.md5(bytes(4 << 20)).digest()[0] & 0), 0) for _ in range(5)]"
SWITCH = ("prev_comm", "prev_pid", "prev_prio", "prev_state", "next_comm", "next_pid", "next_prio")


def run(*command, status=0):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=perfd.PATIENCE, check=False)
    equal(done.returncode, status, f"the status of {command}, which said {done.stderr}")
    return done.stdout


def record(name, *words):
    """The trace, and the samples in the same order."""
    path = os.path.join(FOLDER.name, name)
    run("perf", "record", "-q", *words, "-o", path, "--", sys.executable, "-c", LOAD)
    run(PERFCTL, "export", "--to", "perfetto", "-i", path, "-o", path + ".pftrace")
    with open(path + ".pftrace", "rb") as f:
        trace = perfetto_pb2.Trace.FromString(f.read())
    return Names(trace), [json.loads(line) for line in run(PERFCTL, "script", "--json", "-i", path).splitlines()]


class Names:
    """A trace, with what its packets refer to, each by its sequence; in so small a one all names stay."""
    def __init__(self, trace):
        self.packets = list(trace.packet)
        self.tracks = {p.track_descriptor.uuid: p.track_descriptor for p in self.packets if p.HasField("track_descriptor")}
        self.said = {}
        for p in self.packets:
            for field, entries in p.interned_data.ListFields():
                for entry in entries:
                    self.said[p.trusted_packet_sequence_id, field.name, entry.iid] = entry

    def find(self, packet, kind, iid):
        return self.said[packet.trusted_packet_sequence_id, kind, iid]

    def stack(self, packet, iid):
        """Names of functions, the innermost first."""
        frames = [self.find(packet, "frames", i) for i in reversed(self.find(packet, "callstacks", iid).frame_ids)]
        return [self.find(packet, "function_names", f.function_name_id).str.decode() if f.function_name_id else None for f in frames]

    def fields(self, packet):
        said = {}
        for a in packet.track_event.debug_annotations:
            [value] = [getattr(a, f.name) for f, _ in a.ListFields() if f.name.endswith("_value")] or [None]
            said[self.find(packet, "debug_annotation_names", a.name_iid).name] = value
        return said


def known(task):
    """-1 is the number of one that is nearly gone, which the trace has as 0."""
    return 0 if task == 0xffffffff else task


def chain(sample):
    return [frame["symbol"] for key in ("kernel_callchain", "user_callchain") for frame in sample.get(key, [])]


def test_events():
    """Of a CPU each switch with all it says; of a tracepoint each field; of each event its callchains, named."""
    names, samples = record("events", "-a", "-g", "-e", "sched:sched_switch,syscalls:sys_enter_openat,cpu-clock")
    of = {name: [s for s in samples if s["event"] == name] for name in ("sched:sched_switch", "syscalls:sys_enter_openat", "cpu-clock")}
    check(min(len(list_) for list_ in of.values()) > 0, {name: len(list_) for name, list_ in of.items()})

    bundles = [p.ftrace_events for p in names.packets if p.HasField("ftrace_events")]
    switches = [(b.cpu, e.timestamp, *(getattr(e.sched_switch, f) for f in SWITCH)) for b in bundles for e in b.event]
    equal(sorted(switches), sorted((s["cpu"], s["time"], *(s["fields"][f] for f in SWITCH)) for s in of["sched:sched_switch"]), "switches")

    instants = [p for p in names.packets if p.HasField("track_event")]
    expected = of["syscalls:sys_enter_openat"]
    equal([p.timestamp for p in instants], [s["time"] for s in expected], "times of instants")
    for p, s in zip(instants, expected):
        equal(names.find(p, "event_names", p.track_event.name_iid).name, "syscalls:sys_enter_openat", "its name")
        equal(names.find(p, "event_categories", p.track_event.category_iids[0]).name, "syscalls", "its category")
        thread = names.tracks[p.track_event.track_uuid].thread
        equal((thread.pid, thread.tid), (known(s["pid"]), known(s["tid"])), "its thread")
        fields = names.fields(p)
        equal({name: fields[name] for name in s["fields"]}, s["fields"], "its fields")
        equal(names.stack(p, p.track_event.callstack_iid) if p.track_event.callstack_iid else [], chain(s), "its callchain")

    events = {p.trusted_packet_sequence_id: p.trace_packet_defaults.perf_sample_defaults.timebase.name
              for p in names.packets if p.HasField("trace_packet_defaults")}
    profile = [p for p in names.packets if p.HasField("perf_sample") and events[p.trusted_packet_sequence_id] == "cpu-clock"]
    equal([(p.timestamp, p.perf_sample.cpu, p.perf_sample.pid, p.perf_sample.tid) for p in profile],
          [(s["time"], s["cpu"], known(s["pid"]), known(s["tid"])) for s in of["cpu-clock"]], "samples")
    for p, s in zip(profile, of["cpu-clock"]):
        equal(names.stack(p, p.perf_sample.callstack_iid)[:len(chain(s))], chain(s), "a callchain")  # without one it is the ip

    [system] = [p.system_info for p in names.packets if p.HasField("system_info")]
    equal(system.utsname.release, os.uname().release, "the kernel")
    [clocks] = [p.clock_snapshot for p in names.packets if p.HasField("clock_snapshot")]
    equal(clocks.primary_trace_clock, 3, "CLOCK_MONOTONIC")


def test_counters():
    """What the leader of a group has read of its members, each on a track of its thread or CPU."""
    names, samples = record("counters", "-e", "{cpu-clock,page-faults}:S")
    check(samples, "no sample")
    found = {}
    for p in names.packets:
        if p.HasField("track_event") and p.track_event.type == perfetto_pb2.TrackEvent.TYPE_COUNTER:
            found.setdefault(names.tracks[p.track_event.track_uuid].name, []).append(p.track_event.counter_value)
    equal(found, {name: [s["counters"][i]["value"] for s in samples] for i, name in enumerate(("cpu-clock", "page-faults"))}, "values")


def test_nothing():
    """No samples of what is asked for: said, and no trace is written."""
    path = os.path.join(FOLDER.name, "events")
    run(PERFCTL, "export", "--to", "perfetto", "-i", path, "-o", path + ".none", "nosuch", status=1)
    check(not os.path.exists(path + ".none"), "a trace of nothing")


if __name__ == "__main__":
    perfd.main(globals())
