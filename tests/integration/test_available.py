#!/usr/bin/python3
"""What a file offers: its functions as nm(1) lists them, its static probes as readelf(1) does, to who may read it."""
import json
import os
import re
import subprocess
import tempfile

import perfd
from perfd import Daemon, check, equal, pb, refused, wait_until
from test_access import CONFIG, NOBODY
from test_births import libc

FIRE = perfd.private_copy(os.path.join(perfd.BUILD, "tests", "integration", "fire"))
PERFCTL = os.path.join(perfd.BUILD, "client", "perfctl", "perfctl")


def available(client, glob):
    reply = client.request(available=pb.AvailableRequest(glob=glob)).available
    return [event.event for event in reply.events], reply.truncated


def perfctl(daemon, *arguments, status=0, **options):
    done = subprocess.run([PERFCTL, "--socket", daemon.control, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=False, timeout=perfd.PATIENCE, **options)
    equal(done.returncode, status, f"{arguments}: {done.stderr}")
    return done


def functions(path, *options):
    said = subprocess.run(["nm", "--defined-only", *options, path], stdout=subprocess.PIPE, text=True, check=True).stdout
    return {words[2].split("@")[0] for words in map(str.split, said.splitlines()) if len(words) == 3 and words[1] in "tTW" and
            not words[2].endswith(".cold")}


def test_functions():
    with Daemon() as daemon, daemon.client() as client:
        for kind in "uprobe", "uretprobe":
            found, is_cut = available(client, f"{kind}:{FIRE}:fire_*")
            equal((found, is_cut), (sorted(f"{kind}:{FIRE}:{name}" for name in functions(FIRE) if name.startswith("fire_")), False), kind)
        check(f"uprobe:{FIRE}:main" in available(client, f"uprobe:{FIRE}:*")[0], "all of them")
        equal(available(client, f"uprobe:{FIRE}"), available(client, f"uprobe:{FIRE}:*"), "without a pattern")
        found, _ = available(client, f"uprobe:{libc()}:malloc*")
        check({f"uprobe:{libc()}:{name}" for name in ("malloc", "malloc_usable_size")} <= set(found), f"of a library: {found}")
        for event in found:
            perfd.add(client, {"event": event, "name": "one"})
            client.request(remove=pb.SelectRequest(names=["one"]))
        refused(client, "unknown-symbol", "STATUS_NOT_FOUND", available=pb.AvailableRequest(glob=f"uprobe:{FIRE}:nosuch*"))
        refused(client, "no-file", "STATUS_NOT_FOUND", available=pb.AvailableRequest(glob="uprobe:/nosuch/file:*"))
        refused(client, "bad-elf", "STATUS_INVALID", available=pb.AvailableRequest(glob="uprobe:/etc/passwd:*"))
        equal(available(client, "uprobe:*"), (["uprobe:PATH:SYMBOL[+OFFSET]"], False), "the form")


def test_static_probes():
    with Daemon() as daemon, daemon.client() as client:
        for glob in "fire:hit", "*", "f*:h*", "fire:*", "*:hit":
            equal(available(client, f"usdt:{FIRE}:{glob}"), ([f"usdt:{FIRE}:fire:hit"], False), glob)
        said = refused(client, "unknown-probe", "STATUS_NOT_FOUND", available=pb.AvailableRequest(glob=f"usdt:{FIRE}:fire:hat"))
        check("fire:hit" in said.message, said.message)


def test_as_a_user_writes_it():
    """A library by its name, a file in the current directory."""
    with Daemon() as daemon:
        names = [line.split()[0] for line in perfctl(daemon, "available", "uprobe:libc:qsort*").stdout.splitlines()]
        check(any(name.endswith(":qsort_r") and name.startswith("uprobe:/") for name in names), f"{names}")
        for glob in "usdt:./fire", "usdt:./fire:*", "usdt:./fire:fire:*":
            said = perfctl(daemon, "available", glob, cwd=os.path.dirname(FIRE)).stdout
            equal(re.findall(r"^usdt:\S+", said, re.M), [f"usdt:{FIRE}:fire:hit"], glob)
        said = perfctl(daemon, "available", "uprobe:nosuchlibrary:*", status=2)
        check("neither a library" in said.stderr, said.stderr)


def test_kinds():
    """The words of perf list and bpftrace for kinds of events, alone and before a name or pattern.

    tracefs leaves entries out of a listing while others define probes, so what differs is listed once more.
    """
    with Daemon() as daemon:

        def names(*words, **more):
            rows = perfctl(daemon, "--json", "available", *words, **more).stdout.splitlines()
            return [(row["event"], row["kind"]) for row in map(json.loads, rows)]

        for kind, words in {"software": ("software", "software:", "sw"), "tracepoint": ("tracepoint", "tracepoint:*")}.items():
            for word in words:
                wait_until(lambda w=word, k=kind: names(w) == [row for row in names() if row[1] == k], word)
        everything = names()
        table = perfctl(daemon, "available", "sw").stdout.splitlines()
        equal([line.split("\t")[0] for line in table], [name for name, kind in everything if kind == "software"], "the table")
        sched = [row for row in everything if row[0].startswith("sched:")]
        check(len(sched) > 10, f"{sched}")
        equal(names("tracepoint:sched:*"), sched, "of a group")
        for word in "sched:sched_switch", "tracepoint:sched:sched_switch", "tracepoint:sched_switch":
            equal(names(word), [("sched:sched_switch", "tracepoint")], word)
        for word in "page-faults", "software:page-faults", "software:faults", "software:page-f*":
            equal(names(word), [("page-faults", "software")], word)
        said = perfctl(daemon, "available", "software:sched:sched_switch", status=1).stderr
        check("no event of this machine matches 'software:sched:sched_switch'" in said, said)
        check(("sched:sched_switch", "tracepoint") in names("switch"), "a word like others")


def test_rights():
    """Who may not read a file learns nothing of it."""
    with tempfile.TemporaryDirectory() as folder, Daemon(config=CONFIG) as daemon, daemon.client_of(NOBODY) as nobody:
        os.chmod(folder, 0o700)
        subprocess.run(["cp", FIRE, f"{folder}/fire"], check=True)
        texts = {refused(nobody, "no-permission", "STATUS_DENIED", available=pb.AvailableRequest(glob=f"{kind}:{folder}/{name}:*"))
                 .message.replace(name, "") for kind in ("uprobe", "usdt") for name in ("fire", "nosuch")}
        equal(len(texts), 1, f"answers: {texts}")
        equal(available(nobody, f"usdt:{FIRE}:*")[0], [f"usdt:{FIRE}:fire:hit"], "what is everybody's")


if __name__ == "__main__":
    perfd.main(globals())
