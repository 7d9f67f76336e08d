#!/usr/bin/python3
"""`perfctl watch` and `count` of what runs already: another client's temporary event is shared if it is equal, and never used if it
is not; what is persistent is used, and what it leaves out is said. Needs root."""
import json
import os
import signal
import subprocess

import perfd
from perfd import Daemon, add, check, equal, pb, wait_until
from test_control import PERFCTL, documents, perfctl
from test_sources import Fire
from test_watch_added import finish, names, watching

CALL = "syscalls:sys_enter_getppid"
NOBODY = 65534


def state_of(client, name):
    return next((event for event in client.request(list=pb.ListRequest()).list.events if event.spec.name == name), None)


def own_samples(samples, fire):
    return [row for row in samples if row["pid"] == fire.pid]


def temporary(client, **spec):
    """Adds it by this connection, to be shared."""
    return client.request(add=pb.AddRequest(events=[pb.EventSpec(**spec)], while_connected=True, share=True)).added


def test_restricted_by_another():
    """
    His filter, his period and his target are not ours: each gets all samples, and his event is as it was. Others of the host call this
    too, also when events are added and removed, which interrupts the kernel between its count and its record: that may be told as lost.
    """
    for options in ["--filter", "common_pid == 1"], ["-c", "1000"], ["--pid", "1"]:
        with Daemon() as daemon, Fire() as fire, watching(daemon, CALL, *options), watching(daemon, CALL, "--allow-loss") as mine, \
                watching(daemon, CALL, "--allow-loss", verb="count") as counted:
            equal(names(daemon), sorted([CALL, f"{CALL}~{mine.pid}", f"{CALL}~{counted.pid}"]), f"what runs beside {options}")
            fire.fire("syscalls", 100)
            samples, rows = finish(mine)
            equal(len(own_samples(samples, fire)), 100, f"samples beside {options}")
            check(all(row["balanced"] for row in rows), rows)
            counted.send_signal(signal.SIGINT)
            out, err = counted.communicate(timeout=perfd.PATIENCE)
            said = [json.loads(line) for line in out.splitlines()]
            end, = [row for row in said if row["kind"] == "end"]
            check(counted.returncode == 0 and set(end["lost"]) <= {"kernel_unwritten"} and (not err or end["lost"]), (end, err))
            keys = [row for row in said if row["kind"] == "count"]
            check([row["key"] for row in keys] == [{"event": CALL}] and keys[0]["count"] >= 100, keys)


def test_first_ends():
    """The second goes on with the same event, and gets each sample; it ends with the second."""
    with Daemon() as daemon, daemon.client() as client, Fire() as fire:
        with watching(daemon, CALL) as first, watching(daemon, CALL) as second:
            equal(names(daemon), [CALL], "one event for both")
            fire.fire("syscalls", 100)
            equal(len(own_samples(finish(first)[0], fire)), 100, "samples of the first")
            fire.fire("syscalls", 200)
            check(state_of(client, CALL).while_connected, "it is temporary")
            samples, rows = finish(second)
        equal(len(own_samples(samples, fire)), 300, "samples of the second")
        check(rows and all(row["balanced"] and row["exact"] for row in rows), rows)
        wait_until(lambda: names(daemon) == [], "it to go")


def test_many_at_once():
    """Who begins first ends first, or last: none is told that its event is removed."""
    with Daemon() as daemon:
        for verb in "count", "watch":
            words = [PERFCTL, "--socket", daemon.control, verb, CALL, "--for", "100ms"]
            together = [subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                        for _ in range(15)]
            for process in together:
                said = process.communicate(timeout=perfd.PATIENCE)[1]
                equal(process.returncode, 0, f"the status of {verb}, behind {said}")
                check("removed" not in said, said)
        wait_until(lambda: names(daemon) == [], "it to go")


def test_holder_dies():
    """kill -9 of one in the middle of samples; another one joins what is about to be nobody's, or adds it anew."""
    with Daemon() as daemon, Fire() as fire, watching(daemon, CALL) as last:
        for _ in range(5):
            with watching(daemon, CALL) as process:
                fire.fire("syscalls", 100)
                os.kill(process.pid, signal.SIGKILL)
                process.wait(perfd.PATIENCE)
        samples, rows = finish(last)
        equal(len(own_samples(samples, fire)), 500, "samples of who stays")
        check(all(row["balanced"] and row["exact"] for row in rows), rows)
        wait_until(lambda: names(daemon) == [], "it to go")


def test_changed_by_one():
    """A filter that one sets is for all who hold it; who comes later gets another event. So too while it is disabled."""
    with Daemon() as daemon, daemon.client() as client, Fire() as fire, watching(daemon, CALL) as first, \
            watching(daemon, CALL) as second:
        client.request(set_filter=pb.SetFilterRequest(name=CALL, filter="common_pid == 1"))
        with watching(daemon, CALL) as third:
            equal(names(daemon), sorted([CALL, f"{CALL}~{third.pid}"]), "what runs")
            fire.fire("syscalls", 100)
            equal(len(own_samples(finish(third)[0], fire)), 100, "samples of who came later")
        client.request(set_filter=pb.SetFilterRequest(name=CALL, filter=""))
        client.request(disable=pb.SelectRequest(names=[CALL]))
        with watching(daemon, CALL) as third:
            fire.fire("syscalls", 100)
            samples = finish(third)[0]
            equal(len(own_samples(samples, fire)), 100, "samples of who came while it was disabled")
            equal({(row["event"], row["kernel_event"]) for row in samples}, {(f"{CALL}~{third.pid}", CALL)}, "how they are called")
        client.request(enable=pb.SelectRequest(names=[CALL]))
        fire.fire("syscalls", 50)
        for process in first, second:
            equal(len(own_samples(finish(process)[0], fire)), 50, "samples of who had it")


def test_removed_by_another():
    """It is removed for all who hold it."""
    with Daemon() as daemon, watching(daemon, CALL) as first, watching(daemon, CALL) as second:
        perfctl(daemon, "remove", CALL)
        for process in first, second:
            err = process.communicate(timeout=perfd.PATIENCE)[1]
            equal(process.returncode, 1, f"its status, behind {err}")
            check(f"removed while this runs: {CALL}" in err, err)


def test_quota_of_each():
    """Who may have no event holds none; each uid that holds one is charged for it, whoever has added it."""
    with Daemon("version: 1\nevents: { per-uid: 1 }\n") as daemon, daemon.client() as root:
        os.chmod(daemon.control, 0o666)
        nobody = daemon.client_of(NOBODY, stream=False)
        temporary(root, event=CALL)
        temporary(nobody, event=CALL)
        equal(state_of(root, CALL).spec.uid, 0, "who has had it for longest")
        perfd.refused(nobody, "too-many-events", add=pb.AddRequest(events=[pb.EventSpec(event="cs")], while_connected=True))
        root.close()
        with daemon.client() as other:
            wait_until(lambda: state_of(other, CALL).spec.uid == NOBODY, "the charge to pass")
            nobody.close()
            wait_until(lambda: not state_of(other, CALL), "it to go")


def test_persistent_is_used():
    """One line says what it leaves out, and how to have one's own; nothing is said of one that leaves nothing out."""
    with Daemon() as daemon, daemon.client() as client:
        for verb in "watch", "count":
            for spec, text in (({"filter": "common_pid == 1"}, "filter 'common_pid == 1'"), ({"period": 1000}, "period 1000"),
                               ({"target": pb.Target(pids=[1])}, "pid 1"), ({"target": pb.Target(cpus="0")}, "cpu 0")):
                add(client, {"event": CALL, **spec})
                said = perfctl(daemon, "--json", verb, CALL, "--for", "1ms").stderr
                equal(said, f"perfctl: {verb}: {CALL} is a running event that has {text}: for one of your own, `perfctl {verb} '{CALL}' "
                      "--period 1`\n", "what is said")
                said = subprocess.run([PERFCTL, "--socket", daemon.stream, "--json", verb, CALL, "--for", "1ms"], capture_output=True,
                                      stdin=subprocess.DEVNULL, text=True, timeout=perfd.PATIENCE, check=True).stderr
                check(f"has {text}: one of your own needs the control socket" in said, said)
                equal(perfctl(daemon, "--json", verb, CALL, "--period", "1", "--for", "1ms").stderr, "", "said of one's own")
                client.request(remove=pb.SelectRequest(names=[CALL]))
            add(client, CALL)
            equal(perfctl(daemon, "--json", verb, CALL, "--for", "1ms").stderr, "", "said of one that leaves out nothing")
            client.request(remove=pb.SelectRequest(names=[CALL]))


def test_stream_socket():
    """Who may not add gets what runs, also if it is another's, and is told what that is."""
    with Daemon() as daemon, watching(daemon, CALL, "--filter", "common_pid == 1"):
        with watching(daemon, CALL, socket=daemon.stream) as process:
            process.send_signal(signal.SIGINT)
            err = process.communicate(timeout=perfd.PATIENCE)[1]
        equal(err, f"perfctl: watch: {CALL} is a running event that has filter 'common_pid == 1': one of your own needs the control "
              "socket, or a rule that grants it\n", "what is said")


def test_disabled():
    """Said at the beginning, also to a program; of some that are disabled nothing is said if others are not."""
    with Daemon() as daemon, daemon.client() as client:
        add(client, {"event": CALL, "name": "off", "disabled": True}, {"event": "sched:sched_process_exit", "name": "on"})
        for verb in "watch", "count":
            equal(perfctl(daemon, "--json", verb, "off", "--for", "1ms").stderr, f"perfctl: {verb}: off is disabled: `perfctl enable 'off'`\n",
                  "what is said")
            check("disabled" not in perfctl(daemon, verb, "on", "--for", "1ms").stderr, "said of one that is not")


def test_names_in_json():
    """The kernel's name is there, however the event is called, of samples and of side records."""
    with Daemon() as daemon, daemon.client() as client, Fire() as fire:
        add(client, {"event": CALL, "name": "mine", "target": pb.Target(pids=[fire.pid])})
        with watching(daemon, "mine") as process:
            fire.fire("syscalls", 10)
            samples = finish(process)[0]
        equal([(row["event"], row["kernel_event"]) for row in samples], [("mine", CALL)] * 10, "names")
        equal([row["event"] for row in documents(daemon, "list")], [CALL], "what it is")


if __name__ == "__main__":
    perfd.main(globals())
