#!/usr/bin/python3
"""What clients add is charged to their uid: above its quota it is refused whole, and others are not concerned. Needs root."""
import contextlib

import perfd
from perfd import Daemon, add, check, equal, refused, wait_until
from subscriber import pb
from test_errors import state, unchanged
from test_targets import Tree

N_CPUS = len(perfd.online_cpus())
NOBODY, SOMEBODY = 65534, 65533
CONFIG = """version: 1
access: {{control-mode: 0666}}
events: {{per-uid: {events}}}
fds: {{per-uid: {fds}}}
groups: {{own: {{events: [sched:sched_process_exec, external:own]}}}}
"""


def external(*names):
    return pb.AddRequest(events=[pb.EventSpec(event=f"external:{name}") for name in names])


def uids(client):
    return {e.spec.name: e.spec.uid if e.spec.WhichOneof("added_by") else None
            for e in client.request(list=pb.ListRequest()).list.events}


def test_events():
    with Daemon(CONFIG.format(events=3, fds=1000)) as daemon, daemon.client() as root, daemon.client_of(NOBODY, stream=False) as nobody, \
         daemon.client_of(SOMEBODY, stream=False) as somebody:
        add(nobody, "external:a", {"event": "external:b", "uid": 0})
        before = state(daemon)
        no = refused(nobody, "too-many-events", "STATUS_EXHAUSTED", add=external("c", "d"))
        for words in f"2 more events: uid {NOBODY} has added 2", "events.per-uid allows 3", "raise the limit":
            check(words in no.message, no.message)
        unchanged(daemon, before, "what a refused add left")
        add(nobody, "external:c")
        refused(nobody, "too-many-events", "STATUS_EXHAUSTED", add=external("d"))
        with daemon.client_of(NOBODY, stream=False) as again:
            refused(again, "too-many-events", "STATUS_EXHAUSTED", add=external("d"))
        add(somebody, "external:d", "external:e", "external:f")
        add(root, *(f"external:root-{i}" for i in range(10)))
        equal({name: uid for name, uid in uids(root).items() if "root" not in name},
              {"sched:sched_process_exec": None, "external:own": None,
               **{f"external:{name}": NOBODY if name in "abc" else SOMEBODY for name in "abcdef"}}, "whose they are")
        root.request(remove=pb.SelectRequest(names=["external:a"]))
        add(nobody, {"event": "external:g"})
        refused(nobody, "too-many-events", "STATUS_EXHAUSTED", add=external("h"))


def test_places_of_subscribers():
    """One uid leaves half of them to others, and all of them some to root."""
    config = CONFIG.format(events=3, fds=1000) + "subscribers: {max: 32}\n"
    with Daemon(config) as daemon, contextlib.ExitStack() as stack:
        def subscribe(uid):
            return stack.enter_context(daemon.client_of(uid, stream=False)).subscribe(events=["external:own"])

        def refuse(uid, text):
            with daemon.client_of(uid, stream=False) as client:
                no = refused(client, "too-many-subscribers", "STATUS_EXHAUSTED", subscribe=pb.SubscribeRequest(events=["external:own"]))
                check(text in no.message, no.message)

        for _ in range(16):
            subscribe(NOBODY)
        refuse(NOBODY, f"uid {NOBODY} has 16 subscribers, half of what subscribers.max allows")
        for _ in range(14):
            subscribe(SOMEBODY)
        refuse(SOMEBODY, "there are 30 subscribers, and subscribers.max allows 32, 30 of them for uids other than root")
        refuse(1000, "30 of them for uids other than root")
        for _ in range(2):
            subscribe(0)
        refuse(0, "there are 32 subscribers")


def subscribers(daemon, stack, reason):
    """subscribe(uid, wanted), which lasts as long as the stack, and refuse(uid, wanted, *texts), for this reason, in these words."""
    def subscribe(uid, wanted):
        client = stack.enter_context(daemon.client_of(uid, stream=False))
        client.subscribe(**wanted)
        return client

    def refuse(uid, wanted, *texts):
        with daemon.client_of(uid, stream=False) as client:
            no = refused(client, reason, "STATUS_EXHAUSTED", subscribe=pb.SubscribeRequest(**wanted))
            for text in texts:
                check(text in no.message, no.message)
    return subscribe, refuse


def test_costly_conditions():
    """What each sample is asked for the subscriptions of one uid, and of all but root, is bounded; what is equal is asked once."""
    config = CONFIG.format(events=3, fds=1000) + "subscribers: {max: 256}\nconnections: {control: 256}\n"
    with Daemon(config) as daemon, contextlib.ExitStack() as stack:
        def simple(i):  # 128 comparisons of numbers
            return dict(events=["sched:sched_process_exec"], where=" || ".join(f"pid == {128 * i + k + 1}" for k in range(128)))

        def costly(i):  # 64 of patterns, of which one counts as eleven
            return dict(events=["sched:sched_process_exec"], order=pb.ORDER_CPU, where=" || ".join(f'comm ~ "*{i}{k % 10}?[!z]??*{k}"' for k in range(64)))

        subscribe, refuse = subscribers(daemon, stack, "costly-conditions")

        first = [subscribe(NOBODY, simple(i)) for i in range(32)][0]
        refuse(NOBODY, simple(32), f"of uid {NOBODY} cost 4096, and 4096 are allowed")
        subscribe(NOBODY, simple(31))
        subscribe(NOBODY, dict(events=["sched:sched_process_exec"]))
        for i in range(5):
            subscribe(SOMEBODY, costly(i))
        refuse(SOMEBODY, costly(6), f"as much as 704 comparisons of numbers: those of the subscriptions of uid {SOMEBODY} cost 3520")
        refuse(1000, costly(7), "all subscriptions except root's cost 7616, and 8192")
        subscribe(0, costly(8))
        first.socket.close()
        wait_until(lambda: daemon.status().n_subscribers == 39, "the end of the first one")
        subscribe(NOBODY, simple(32))


def test_conditions_of_the_dispatcher():
    """One thread decides them for the samples of all CPUs, so they have a lower limit; equal ones are asked once, and root's always."""
    config = CONFIG.format(events=3, fds=1000) + "subscribers: {max: 256}\nconnections: {control: 256}\n"
    with Daemon(config) as daemon, contextlib.ExitStack() as stack:
        def names(i, order=pb.ORDER_TIME):  # 3, 15 of a name and a number, and a half for each of 29 that join them
            where = " || ".join(f'comm == "{i}x{k}" && pid != {k}' for k in range(15))
            return dict(events=["sched:sched_process_exec"], order=order, where=where)

        subscribe, refuse = subscribers(daemon, stack, "costly-conditions")

        first = [subscribe(NOBODY, names(i)) for i in range(4)][0]
        refuse(NOBODY, names(4), f"it costs 63 there, those of the subscriptions of uid {NOBODY} cost 252, and 256 are allowed")
        subscribe(NOBODY, names(3))
        subscribe(NOBODY, names(4, pb.ORDER_CPU))
        for i in range(5, 9):
            subscribe(SOMEBODY, names(i))
        refuse(1000, names(9), "those of all subscriptions except root's cost 504, and 512 are allowed")
        subscribe(0, names(10))
        first.socket.close()
        wait_until(lambda: daemon.status().n_subscribers == 10, "the end of the first one")
        subscribe(NOBODY, names(4))


def test_wakeups():
    """One thread sends to all: latencies of one uid's subscribers, and of all but root, are limited by their sum."""
    config = CONFIG.format(events=3, fds=1000) + "subscribers: {max: 256, latency: 20us}\nconnections: {control: 256}\n"
    with Daemon(config) as daemon, contextlib.ExitStack() as stack:
        def wanted(i, usec):
            return dict(events=["sched:sched_process_exec"], where=f"pid != {i}", latency=1000 * usec)

        take, no = subscribers(daemon, stack, "too-many-wakeups")

        def subscribe(uid, *what):
            return take(uid, wanted(*what))

        def refuse(uid, what, *texts):
            no(uid, wanted(*what), *texts)

        first = [subscribe(NOBODY, i, 100) for i in range(5)][0]
        refuse(NOBODY, (5, 1000), f"the subscribers of uid {NOBODY} request 50000, and 50000 are allowed", "end some")
        refuse(NOBODY, (0, 100))  # equal ones share a subscription, but each of them is sent to
        subscribe(NOBODY, 5, 0)
        for i in range(4):
            subscribe(SOMEBODY, i, 100)
        refuse(SOMEBODY, (4, 50), "request at least 100 us, or none")
        subscribe(SOMEBODY, 4, 200)
        refuse(1000, (0, 100), "all uids except root request 95000, and 100000 are allowed", "request at least 200 us")
        subscribe(1000, 0, 200)
        for i in range(6):
            subscribe(0, i, 20)
        first.socket.close()
        wait_until(lambda: daemon.status().n_subscribers == 17, "the end of the first one")
        subscribe(NOBODY, 6, 100)


def test_fds():
    """Each CPU needs one for each event; a live change needs none for good."""
    with Daemon(CONFIG.format(events=100, fds=2 * N_CPUS)) as daemon, daemon.client_of(NOBODY, stream=False) as nobody, \
         daemon.client() as root:
        add(nobody, "external:none", "context-switches")
        before = state(daemon)
        no = refused(nobody, "too-many-fds", "STATUS_EXHAUSTED",
                     add=pb.AddRequest(events=[pb.EventSpec(event="page-faults"), pb.EventSpec(event="cpu-migrations")]))
        for words in f"needs {2 * N_CPUS} fds", f"uid {NOBODY} have {N_CPUS}", f"fds.per-uid allows {2 * N_CPUS}", "raise the limit":
            check(words in no.message, no.message)
        unchanged(daemon, before, "what a refused add left")
        add(nobody, "sched:sched_switch")
        nobody.request(set_filter=pb.SetFilterRequest(name="sched:sched_switch", filter="prev_pid == 1"))
        nobody.request(set_period=pb.SetPeriodRequest(name="context-switches", period=1000))
        refused(nobody, "too-many-fds", "STATUS_EXHAUSTED", add=pb.AddRequest(events=[pb.EventSpec(event="page-faults")]))
        add(root, *({"event": "page-faults", "name": f"faults-{i}"} for i in range(5)))


def test_fds_that_come_later():
    """A cgroup that appears is followed while the quota has room, and said to be left out when it has not."""
    with Tree() as tree, Daemon(CONFIG.format(events=100, fds=2 * N_CPUS)) as daemon, daemon.client_of(NOBODY, stream=False) as nobody:
        def n_fds():
            return {e.spec.name: e.n_fds for e in nobody.request(list=pb.ListRequest()).list.events}["faults"]

        tree.make("a")
        add(nobody, {"event": "page-faults", "name": "faults", "target": pb.Target(cgroups=[tree.path("*")])})
        equal(n_fds(), N_CPUS, "fds of one cgroup")
        tree.make("b")
        wait_until(lambda: n_fds() == 2 * N_CPUS, "fds of two cgroups")
        tree.make("c")
        wait_until(lambda: "faults does not follow its cgroups" in daemon.stderr(), "that it is said")
        check("fds.per-uid" in daemon.stderr(), daemon.stderr())
        equal(n_fds(), 2 * N_CPUS, "fds of three cgroups")
        said = daemon.stderr().count("does not follow")
        tree.remove("a")
        tree.remove("b")
        wait_until(lambda: n_fds() == N_CPUS, "fds of the third cgroup")
        equal(daemon.stderr().count("does not follow"), said, "what is said when there is room")


def test_over_a_restart():
    """What was kept counts for who added it, also while it cannot be added."""
    with Daemon(CONFIG.format(events=3, fds=1000)) as daemon:
        with daemon.client_of(NOBODY, stream=False) as nobody:
            kept = external("a", "b").events
            nobody.request(add=pb.AddRequest(events=kept, keep=True))
        daemon.stop()
        with Daemon(CONFIG.format(events=2, fds=1000) + "targets: {}\n", directory=daemon.directory) as successor, \
             successor.client_of(NOBODY, stream=False) as nobody:
            equal({name: uid for name, uid in uids(nobody).items() if name in ("external:a", "external:b")},
                  {"external:a": NOBODY, "external:b": NOBODY}, "whose they are")
            refused(nobody, "too-many-events", "STATUS_EXHAUSTED", add=external("c"))
            nobody.request(remove=pb.SelectRequest(names=["external:b"]))
            add(nobody, "external:c")


if __name__ == "__main__":
    perfd.main(globals())
