#!/usr/bin/python3
"""Conditions that ask for the process, --where 'exe == ...': a stream with one has exactly those samples of a stream without it
that this says of, although the process is gone before anybody could look at it; in both orders, with accounts that add up."""
import contextlib
import os
import sys
import time

import perfd
from perfd import Daemon, Skip, Subscriber, add, check, equal, pb, refused
from test_tasks import CALLS, GETPPID, N, Lives, cgroups, lost, own_cgroup, programs

CPUS = sorted(os.sched_getaffinity(0))
SOMEBODY = 65534
CONFIG = "version: 1\naccess: {control-mode: 0666}\nsubscribers: {max: 256}\nconnections: {control: 256}\n"
MOST_OF_UID = 64  # CONDITIONAL_MAX / 4


def samples(lines):
    return [line for line in lines if "kind" not in line and line["event"]]


def whose(lines, pids, holds):
    """(time, pid) of those that this holds of; in the order of each CPU one may come before its process is known."""
    return [(line["time"], line["pid"]) for line in samples(lines) if line["pid"] in pids and
            holds(line.get("process", {}).get("executable"), line.get("process", {}).get("cgroup", ""), line["comm"],
                  line.get("process", {}).get("uid"))]


def as_seen(line):
    return line["time"], line["pid"], line["comm"]


def same(found, expected, text):
    """Says only what differs, of many."""
    missing, more = sorted(set(expected) - set(found)), sorted(set(found) - set(expected))
    check(found == expected, f"{text}: {len(found)} instead of {len(expected)}, without {missing}, with {more}")


def rows_of(lines):
    """The last row of the subscriber, and of its events."""
    own, = [line for line in lines if line.get("kind") == "subscriber"]
    return own, [line for line in lines if line.get("since")]


def check_accounts(lines):
    own, events = rows_of(lines)
    check(own["balanced"] and all(row["balanced"] for row in events), f"accounts: {own}, {events}")
    equal(own["matched"], len(samples(lines)), "what matched, and what came")
    check(sum(row["since"]["delivered"] for row in events) >= own["matched"], f"delivered: {own}, {events}")


def test_short_lives():
    """Processes of 1 ms that change cgroup and program in the middle of it, told apart by these."""
    with Daemon() as daemon, daemon.client() as client, cgroups("x", "y", "z.service") as folders, \
         programs("life-a", "life-b", "life-c") as paths, Lives(N, list(folders.values()), paths) as lives:
        (path_x, _, path_z), (a, b, _) = folders, paths
        unit = os.path.basename(path_z)
        add(client, {"event": "raw_syscalls:sys_enter", "filter": f'id == {GETPPID} && comm ~ "*life-*"'})
        conditions = {
            f'exe == "{a}"': lambda exe, cgroup, comm, uid: exe == a,
            f'exe != "{a}" && uid == 0': lambda exe, cgroup, comm, uid: exe not in (a, None) and uid == 0,
            f'!(exe == "{a}") && !(cgroup == "{path_x}")': lambda exe, cgroup, comm, uid: exe != a and cgroup != path_x,
            f'id == {GETPPID} && (unit == "{unit}" || exe ~ "*/life-b")':
                lambda exe, cgroup, comm, uid: cgroup.endswith(unit) or exe == b,
            f'comm == "life-c" && cgroup == "{path_z}" || id == 1000000':
                lambda exe, cgroup, comm, uid: comm == "life-c" and cgroup == path_z,
            'id != id || uid == 1': lambda exe, cgroup, comm, uid: False,
            'container == "3dcb1a9f0e4c"': lambda exe, cgroup, comm, uid: False,
        }
        streams = [(order, where) for order in ("time", "cpu") for where in ["", *conditions]]
        subscribers = [Subscriber(daemon, "--order", order, "--where", where, "raw_syscalls:sys_enter") for order, where in streams]
        ends = lives.go()
        seen = {key: subscriber.finish() for key, subscriber in zip(streams, subscribers)}
    pids = {pid for pid, _ in ends}
    for (order, where), lines in seen.items():
        equal(lost(lines), [], f"lost of {where}")
        check_accounts(lines)
        if where:
            found, holds = whose(lines, pids, lambda *_: True), conditions[where]
            same(found, whose(lines, pids, holds), f"in {order}, where {where}, those of which it holds")
            everything = whose(seen[order, ""], pids, holds)
            if order == "cpu":  # that of the CPUs among each other is nobody's promise
                found, everything = sorted(found), sorted(everything)
            same(found, everything, f"in {order}, where {where}, those of everything")
    for order in ("time", "cpu"):
        n = {where: len(whose(seen[order, where], pids, lambda *_: True)) for where in ["", *conditions]}
        equal(n[""], N * CALLS, "calls")
        print(f"  {order}: {list(n.values())}")
    check(all(0 < n for n in [len(whose(seen["time", ""], pids, holds)) for holds in list(conditions.values())[:5]]),
          "a condition holds of nothing: the test shows nothing")


def test_others_in_the_same_ring():
    """Conditions that ask for the process beside others, with and without shared memory, equal ones and different ones."""
    with Daemon() as daemon, daemon.client() as client, programs("life-a", "life-b") as paths, cgroups("x") as folders, \
         Lives(N, list(folders.values()), paths) as lives:
        add(client, {"event": "raw_syscalls:sys_enter", "filter": f'id == {GETPPID} && comm ~ "*life-*"'})
        wanted = [("", ""), ("id == 1", ""), (f'exe == "{paths[0]}"', "life-a"), (f'exe == "{paths[0]}"', "life-a"),
                  (f'exe == "{paths[1]}"', "life-b"), ('comm == "life-b"', "life-b")]
        subscribers = [Subscriber(daemon, *(["--ring", "1048576"] if i % 2 else []), "--where", where, "raw_syscalls:sys_enter")
                       for i, (where, _) in enumerate(wanted)]
        ends = lives.go()
        seen = [subscriber.finish() for subscriber in subscribers]
        equal(daemon.status().n_subscribers, 0, "subscribers")
    pids = {pid for pid, _ in ends}
    for (where, name), lines in zip(wanted, seen):
        expected = [] if where == "id == 1" else [(line["time"], line["pid"]) for line in samples(seen[0])
                                                  if line["pid"] in pids and name in line["comm"]]
        found = [(line["time"], line["pid"]) for line in samples(lines) if line["pid"] in pids]
        equal(found, expected, f"what {where} wants")
        equal(lost(lines), [], f"lost of {where}")


def test_name_that_another_cpu_tells():
    """What gets a name on one CPU and calls on another one is called by an older name there until the first CPU's ring is read. In
    the order of each CPU, a condition that asks for more than the name goes by the one that the stream says."""
    if len(CPUS) < 2:
        raise Skip("one CPU")
    name, n, own = f"moved-{os.getpid()}", 100, own_cgroup()
    script = ("import os, sys\n"
              "print('ready', flush=True); sys.stdin.readline()\n"
              "name, n, first, second = sys.argv[1], *map(int, sys.argv[2:])\n"
              "for _ in range(n):\n"
              "    if not os.fork():\n"
              "        os.sched_setaffinity(0, [first])\n"
              "        open('/proc/self/comm', 'w').write(name)\n"
              "        os.sched_setaffinity(0, [second])\n"
              "        os.getppid()\n"
              "        os._exit(0)\n"
              "    os.wait()\n"
              "print('done', flush=True)\n")
    wheres = {"": None, f'comm == "{name}" && cgroup == "{own}"': True, f'comm != "{name}" && cgroup == "{own}"': False}
    with Daemon() as daemon, daemon.client() as client, \
         perfd.Line([sys.executable, "-c", script, name, *map(str, (n, *CPUS[:2]))]) as lives:
        equal(lives.hear(), ["ready"], "the first word")
        add(client, {"event": "raw_syscalls:sys_enter", "filter": f'id == {GETPPID} && comm == "{name}"'})
        subscribers = [Subscriber(daemon, "--order", "cpu", "--where", where, "raw_syscalls:sys_enter") for where in wheres]
        lives.say("go")
        equal(lives.hear(), ["done"], "the last word")
        everything, *seen = [samples(subscriber.finish()) for subscriber in subscribers]
    equal(len(everything), n, "calls")
    for (where, is_by_name), lines in zip(list(wheres.items())[1:], seen):
        same([as_seen(line) for line in lines],
             [as_seen(line) for line in everything if line.get("process", {}).get("cgroup") == own and
              (line["comm"] == name) == is_by_name], where)
    print(f"  {len(seen[0])} by the name, {len(seen[1])} by an older one")


def test_external():
    """Samples of clients are asked too: of the process that they name, if perfd has heard of any."""
    with Daemon() as daemon, daemon.client() as client:
        add(client, "sched:sched_process_exec", {"event": "external:deploy", "fields": [pb.ExternalField(name="n", type="u32")]})
        with Subscriber(daemon, "--where", 'exe ~ "*python*" && n >= 2 || n == 0', "external:deploy") as some, \
             Subscriber(daemon, "external:deploy") as everything:
            for n in range(4):
                client.request(emit=pb.EmitRequest(samples=[pb.ExternalSample(
                    event="external:deploy", time=time.monotonic_ns(), pid=os.getpid() if n < 3 else 1, tid=os.getpid() if n < 3 else 1,
                    values=[pb.ExternalValue(number=n)])]))
            seen = [some.finish(), everything.finish()]
    equal([[line["fields"]["n"] for line in samples(lines)] for lines in seen], [[0, 2], [0, 1, 2, 3]], "what came")
    check_accounts(seen[0])


def test_hostile():
    """As many as one uid may have, each another one, and nobody else pays for that; then no more, but equal ones."""
    with Daemon(CONFIG) as daemon, daemon.client() as client, programs("life-a") as paths, cgroups("x") as folders, \
         Lives(N, list(folders.values()), paths) as lives, contextlib.ExitStack() as stack:
        add(client, {"event": "raw_syscalls:sys_enter", "filter": f'id == {GETPPID} && comm ~ "*life-*"'})

        def wanted(i):
            return {"events": ["raw_syscalls:sys_enter"], "where": f"uid != {i}"}  # as cheap as such a condition is

        def subscribe(uid, i):
            stack.enter_context(daemon.client_of(uid, stream=False)).subscribe(**wanted(i))

        def refuse(uid, i, text):
            with daemon.client_of(uid, stream=False) as one:
                no = refused(one, "too-many-subscribers", "STATUS_EXHAUSTED", subscribe=pb.SubscribeRequest(**wanted(i)))
                check(text in no.message, no.message)

        for i in range(MOST_OF_UID):
            subscribe(SOMEBODY, i)
        refuse(SOMEBODY, MOST_OF_UID, f"uid {SOMEBODY} has {MOST_OF_UID} different subscriptions")
        subscribe(SOMEBODY, 0)
        for i in range(MOST_OF_UID):
            subscribe(1000, 1000 + i)
        refuse(1001, 2000, f"all uids except root {2 * MOST_OF_UID}")
        subscribe(1001, 0)
        with Subscriber(daemon, "--where", f'exe == "{paths[0]}"', "raw_syscalls:sys_enter") as one, \
             Subscriber(daemon, "raw_syscalls:sys_enter") as everything:
            ends = lives.go()
            seen = [one.finish(), everything.finish()]
    pids = {pid for pid, _ in ends}
    for lines in seen:
        equal(lost(lines), [], "lost")
        check_accounts(lines)
        equal(len(whose(lines, pids, lambda *_: True)), N * CALLS, "calls")



def test_address_of_a_text():
    """What a system call is given is an address: it is said, with what has the text."""
    with perfd.Daemon() as daemon, daemon.client() as client:
        perfd.add(client, "syscalls:sys_enter_openat")
        no = refused(client, "bad-expression", "STATUS_INVALID",
                     subscribe=pb.SubscribeRequest(events=["syscalls:sys_enter_openat"], where='filename == "/etc/passwd"'))
        check("'filename' is the address of a text (const char * filename)" in no.message and "$arg2" in no.message, no.message)


def test_constants():
    """What no sample can be equal to is a mistake, if it is so in all events: said, with the place of the constant."""
    with perfd.Daemon() as daemon, daemon.client() as client:
        perfd.add(client, "sched:sched_switch", "syscalls:sys_enter_openat")
        for where, words, position in (
                ("prev_pid == 4294967296", "'prev_pid' is a number from -2147483648 to 2147483647", 13),
                ("cpu == 100000", "the CPUs of this host are 0 to ", 8),
                ('comm == "a-name-of-16-bys"', "'comm' has 15 bytes at most, and this needs 16", 9)):
            no = refused(client, "bad-expression", "STATUS_INVALID", subscribe=pb.SubscribeRequest(where=where))
            check(f"this can never match: {words}" in no.message and no.position == position, (where, no.position, no.message))
        for text, words, position in (
                ("next_pid == 1 || prev_pid == 4294967297", "the kernel would compare it with 1", 30),
                ("cpu == 100000", "the CPUs of this host are 0 to ", 8),
                ('next_comm == "a-name-of-16-bys"', "this one of 'next_comm' needs 16", 15)):
            spec = pb.EventSpec(event="sched:sched_switch", name="filtered", filter=text)
            no = refused(client, "bad-filter", "STATUS_INVALID", add=pb.AddRequest(events=[spec]))
            check(words in no.message and no.position == position, (text, no.position, no.message))
            no = refused(client, "bad-filter", "STATUS_INVALID", set_filter=pb.SetFilterRequest(name="sched:sched_switch", filter=text))
            check(words in no.message and no.position == position, (text, no.position, no.message))
        client.subscribe(where="prev_pid != 4294967296 && cpu < 100000")


if __name__ == "__main__":
    perfd.main(globals())
