#!/usr/bin/python3
"""`perfctl metrics`: read by the parsers of Prometheus' own client, in both formats, and compared with the ledger. Needs root."""
import os
import subprocess

import perfd
from perfd import Daemon, Skip, Workload, add, check, equal, pb, wait_until
from test_control import PERFCTL
from test_perfctl import GETPPID
from test_promises import CPUS
from test_targets import Tree

CALLS = 1000


def families_of(text, is_open=False):
    """{(sample, labels): value} of a text, read by the parser of that format."""
    try:
        from prometheus_client.openmetrics import parser as openmetrics  # pylint: disable=import-outside-toplevel
        from prometheus_client import parser  # pylint: disable=import-outside-toplevel
    except ImportError:
        raise Skip("no python3-prometheus-client; ./tests/packages test installs it") from None
    values = {}
    for family in (openmetrics if is_open else parser).text_string_to_metric_families(text):
        check(family.documentation and family.type in ("counter", "gauge"), f"{family.name}: {family.type}")
        for sample in family.samples:
            key = sample.name, tuple(sorted(sample.labels.items()))
            check(key not in values, f"{key} is there twice")
            values[key] = sample.value
    return values


def families(daemon, *words):
    """The same of `perfctl metrics`, and its text."""
    text = subprocess.run([PERFCTL, "--socket", daemon.control, "metrics", *words], capture_output=True, text=True, check=True,
                          timeout=perfd.PATIENCE).stdout
    return families_of(text, bool(words)), text


def of(values, name, **labels):
    return sum(value for (sample, has), value in values.items() if sample == name and set(labels.items()) <= set(has))


def test_formats():
    """The same series in both; each family once, its samples together."""
    with Daemon() as daemon, daemon.client() as control:
        add(control, {"event": GETPPID, "name": "calls"}, "cpu-clock")
        plain, text = families(daemon)
        opened, other = families(daemon, "--openmetrics")
        equal(set(plain), set(opened), "series")
        check(other.endswith("# EOF\n") and "# EOF" not in text, "the end")
        lines = [line for line in text.splitlines() if line.startswith("# TYPE ")]
        equal(len(lines), len(set(lines)), "families")
        equal(of(plain, "perfd_events"), 2, "events")
        equal(of(plain, "perfd_omitted_series"), 0, "omitted")


def test_numbers():
    """Of what is known: calls of two programs, a subscriber."""
    with Daemon() as daemon, daemon.client() as control, daemon.client(stream=True) as client, \
            Workload("syscalls", CALLS, cpus=CPUS) as load:
        add(control, {"event": GETPPID, "name": "calls", "target": pb.Target(pids=load.pids)})
        items = client.subscribe(events=["calls"])
        load.go()
        counts = load.done()
        for _ in range(sum(counts)):
            next(items)
        wait_until(lambda: of(families(daemon)[0], "perfd_subscriber_sent_total") == sum(counts), "the stream to have all")
        values, _ = families(daemon)
        for cpu, made in zip(CPUS, counts):
            for name in "count", "occurred", "delivered":
                equal(of(values, f"perfd_event_{name}_total", event="calls", cpu=str(cpu)), made, f"{name} of CPU {cpu}")
        equal(of(values, "perfd_event_lost_total", event="calls"), 0, "lost")
        check(("perfd_event_lost_total", (("cpu", str(CPUS[0])), ("event", "calls"), ("reason", "kernel_ring"))) in values,
              "a reason that has not happened is a series, so that an alert can see its first increase")
        equal(of(values, "perfd_subscriber_matched_total"), sum(counts), "matched")
        equal(of(values, "perfd_subscribers"), 1, "subscribers")
        equal(of(values, "perfd_ledger_balanced"), 1, "balanced")
        equal(of(values, "perfd_event_enabled", event="calls", kernel_event=GETPPID), 1, "enabled")
        client.stop()
        for item in items:
            pass
        load.exit()


def test_targets():
    """What an event is restricted to is a label of its counters; what the kernel counts is there by CPU."""
    container, pod = "a" * 64, "8a1c2f3e-0b4d-4c5e-9f60-718293a4b5c6"
    with Daemon(config=f"version: 1\ntargets: {{ workers: {{ pids: [{os.getpid()}] }} }}\n") as daemon, daemon.client() as control, Tree() as tree:
        tree.make("shop.service")
        tree.make(f"machine.slice/libpod-{container}.scope")
        slices = [f"kubepods-burstable-pod{pod.replace('-', '_')}.slice", f"kubepods/pod{pod}", "podium", f"pods/pod{'0' * 32}"]
        for path in slices:
            tree.make(path)
        cgroups = [f"{tree.own}/{path}" for path in slices]
        add(control, {"event": GETPPID, "name": "of-pod", "target": pb.Target(cgroups=cgroups)})
        add(control, {"event": GETPPID, "name": "of-unit", "target": pb.Target(units=["shop.service"])},
            {"event": GETPPID, "name": "of-container", "target": pb.Target(containers=[container])})
        add(control, {"event": GETPPID, "name": "of-target", "target": pb.Target(name="workers")},
            {"event": GETPPID, "name": "of-cgroup", "target": pb.Target(cgroups=["/"])}, {"event": GETPPID, "name": "of-all"})
        values, _ = families(daemon)
        labels = {name: {tuple(label for label in has if label[0] not in ("cpu", "event")) for (sample, has) in values
                         if sample == "perfd_event_count_total" and ("event", name) in has} for name in ("of-target", "of-cgroup", "of-all", "of-unit", "of-container", "of-pod")}
        equal(labels, {"of-target": {(("target", "workers"),)}, "of-cgroup": {(("cgroup", "/"),)}, "of-all": {()},
                       "of-unit": {(("unit", "shop.service"),)}, "of-container": {(("container", container),)},
                       "of-pod": {(("cgroup", ",".join(cgroups)[:255]), ("pod", f"{pod},{'0' * 32}"))}}, "labels")
        check(("perfd_event_lost_total", (("cpu", str(CPUS[0])), ("event", "of-target"), ("reason", "kernel_ring"), ("target", "workers"))) in values,
              sorted(values))


def test_not_granted():
    with Daemon(config="version: 1\naccess: {stream-mode: 0666, rules: [{users: [nobody], subscribe: ['cpu-clock']}]}\n") as daemon:
        os.chmod(os.path.dirname(daemon.stream), 0o711)
        done = subprocess.run(["setpriv", "--reuid", "65534", "--clear-groups", PERFCTL, "--socket", daemon.stream, "metrics"],
                              capture_output=True, text=True, check=False, timeout=perfd.PATIENCE)
        equal((done.returncode, done.stdout), (1, ""), done.stderr)
        check("is not granted to you by access.rules: perfd.yaml(5)" in done.stderr, done.stderr)


if __name__ == "__main__":
    perfd.main(globals())
