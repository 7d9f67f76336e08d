#!/usr/bin/python3
"""Whose uid a sample has: that of its process at that moment, although it has changed since its fork while the stream runs, and
the process is gone before anybody could look at it. Needs root."""
import contextlib
import os
import shutil

import perfd
from perfd import Daemon, Skip, Subscriber, add, check, equal
from test_tasks import CALLS, GETPPID, lost, programs

ANN, OTHER = 4001, 65534
EVENT = "raw_syscalls:sys_enter"
N = 200
RULES = f"""version: 1
access:
  stream-mode: 0666
  rules:
    - {{ users: [{ANN}], subscribe: ["{EVENT}"], where: 'sample.uid == {OTHER}' }}
"""
SETPRIV = shutil.which("setpriv")
SETSID = shutil.which("setsid")


def call():
    os.getppid()


def become():
    os.setgroups([])
    os.setresuid(OTHER, OTHER, OTHER)


def change_and_exec(program):
    """As su(1), cron(8), sshd(8) and systemd do it."""
    call()
    become()
    os.execv(program, [program])


def change_and_stay(_):
    """As a daemon that drops its privileges."""
    call()
    become()
    for _ in range(CALLS):
        call()


def change_below_root(_):
    """The real uid does not change, and is what is meant."""
    call()
    os.seteuid(OTHER)
    for _ in range(CALLS):
        call()


def exec_twice(program):
    """A program changes the uid, and executes another one."""
    call()
    os.execv(SETPRIV, [SETPRIV, "--reuid", str(OTHER), "--clear-groups", program])


def through_setuid(program):
    """A user's setuid program starts something: the real uid stays that of the user."""
    call()
    become()
    os.execv(f"{program}-setsid", ["setsid", "--fork", "--wait", program])


WAYS = {change_and_exec: [0] + CALLS * [OTHER], change_and_stay: [0] + CALLS * [OTHER], change_below_root: (1 + CALLS) * [0],
        exec_twice: [0] + CALLS * [OTHER]}


def one_life(way, program):
    """The pid of a child that does it, and has ended."""
    pid = os.fork()
    if pid == 0:
        try:
            way(program)
        finally:
            os._exit(0)
    equal(os.waitpid(pid, 0)[1], 0, f"the status of {way.__name__}")
    return pid


def live(program, ways):
    """{pid: the uids of its calls} of N lives, one after the other."""
    if not SETPRIV:
        raise Skip("no setpriv(1)")
    lives = {}
    for i in range(N):
        way = list(ways)[i % len(ways)]
        pid = one_life(way, program)
        check(pid not in lives, "a pid was used twice: nothing can be said of it")
        lives[pid] = ways[way]
    return lives


def uids_of(lines, lives):
    """{pid: the uids of its samples, None where it is not known}"""
    found = {pid: [] for pid in lives}
    for line in lines:
        if line.get("pid") in found and line["event"]:
            found[line["pid"]].append(line["process"].get("uid"))
    return found


def watch(daemon, client, ways=WAYS):
    """What was, and the lines of each stream: all, those of the uid, and what a client sees whom a rule shows only those."""
    with programs("life") as (program,), daemon.client_of(ANN, groups=()) as ann:
        add(client, {"event": EVENT, "filter": f"id == {GETPPID}"})
        streams = [Subscriber(daemon, "--where", where, EVENT) for where in ("", f"uid == {OTHER}", "uid >= 0")]
        items = ann.subscribe([EVENT])
        lives = live(program, ways)
        lines = [stream.finish() for stream in streams]
        ann.stop()
        ruled = list(items)
    for each in lines:
        equal(lost(each), [], "losses")
    return lives, [uids_of(each, lives) for each in lines], [item["pid"] for item in ruled if item.get("pid") in lives]


def test_changes_of_uids():
    """Each sample has the uid of its moment, and is found by it, also by who may see nothing else."""
    with Daemon(RULES) as daemon, daemon.client() as client:
        os.chmod(daemon.directory, 0o755)
        if "changes of uids are read from /proc" in daemon.stderr():
            raise Skip("this kernel does not report changes of uids, or not here")
        lives, (everything, others, known), ruled = watch(daemon, client)
    expected = {pid: [uid for uid in uids if uid == OTHER] for pid, uids in lives.items()}
    equal(everything, lives, "the uids of all")
    equal(known, lives, "those whose uid is known")
    equal(others, expected, f"those of uid {OTHER}")
    equal({pid: ruled.count(pid) for pid in lives}, {pid: len(uids) for pid, uids in expected.items()}, "those that the rule shows")
    print(f"  {sum(map(len, others.values()))} of {N} processes")


def test_without_reports():
    """Where the kernel does not report changes, what ends at once is unknown, and nothing has the uid of before its exec."""
    with Daemon(RULES, prefix=("unshare", "--net")) as daemon, daemon.client() as client:
        os.chmod(daemon.directory, 0o755)
        check("changes of uids are read from /proc" in daemon.stderr(), "what perfd says of it")
        lives, (everything, others, _), ruled = watch(daemon, client)
    n = {"right": 0, "unknown": 0}
    for pid, uids in lives.items():
        equal(len(everything[pid]), len(uids), "samples")
        if list(lives).index(pid) % len(WAYS) in (1, 2):
            continue  # it does not execute anything: nothing shows that it has changed
        for found, uid in zip(everything[pid], uids):
            check(found in (uid, None), f"{pid}: {everything[pid]}")
            n["unknown" if found is None else "right"] += 1
    equal({pid: ruled.count(pid) for pid in lives}, {pid: len(found) for pid, found in others.items()}, "those that the rule shows")
    print(f"  {n}")


def test_setuid_programs():
    """What a setuid program starts has the real uid of who has started that."""
    with Daemon() as daemon, daemon.client() as client, programs("life") as (program,):
        setsid = shutil.copy(SETSID, f"{program}-setsid")
        os.chmod(setsid, 0o4755)
        add(client, {"event": EVENT, "filter": f'id == {GETPPID} && comm == "life"'})
        with Subscriber(daemon, EVENT) as stream:
            for _ in range(10):
                one_life(through_setuid, program)
            lines = [line for line in stream.finish() if "kind" not in line and line["event"] and line["process"]["executable"] == program]
    equal([line["process"].get("uid") for line in lines], 10 * CALLS * [OTHER], "uids")


def test_flood():
    """More changes than the kernel keeps for perfd: some uids are unknown then, and none is wrong."""
    done, ours = os.pipe()
    flood = os.fork()
    if flood == 0:
        os.close(ours)
        os.set_blocking(done, False)
        while True:
            with contextlib.suppress(BlockingIOError):
                os.read(done, 1)
                os._exit(0)
            for _ in range(1000):
                os.seteuid(OTHER)
                os.seteuid(0)
    os.close(done)
    try:
        with Daemon(RULES) as daemon, daemon.client() as client:
            os.chmod(daemon.directory, 0o755)
            lives, (everything, _, _), _ = watch(daemon, client)
    finally:
        os.close(ours)
        os.waitpid(flood, 0)
    n = {"right": 0, "unknown": 0}
    for pid, uids in lives.items():
        equal(len(everything[pid]), len(uids), "samples")
        for found, uid in zip(everything[pid], uids):
            check(found in (uid, None), f"{pid}: {everything[pid]} instead of {uids}")
            n["unknown" if found is None else "right"] += 1
    print(f"  {n}")


if __name__ == "__main__":
    perfd.main(globals())
