#!/usr/bin/python3
"""`perfd --check-host` and the doctor request on this very host: what each row says is compared with what is known of the
host otherwise, and a remedy is proven by applying it. Needs root."""
import contextlib
import json
import os
import re
import resource
import shutil
import stat
import subprocess
import tempfile

import perfd
from perfd import check, equal
from subscriber import pb
from test_stalled import stopped_thread

NOBODY = ("setpriv", "--reuid", "61555", "--regid", "61555", "--clear-groups")  # locked memory is counted by uid
SYSCTL = "/proc/sys/kernel"
CONFIG = "version: 1\nrings:\n  size: 1MiB\n"


def read(path):
    with open(path, encoding="ascii") as f:
        return f.read().strip()


@contextlib.contextmanager
def public_perfd():
    """A copy that everyone may run, wherever the build is."""
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        os.chmod(folder, 0o755)
        yield shutil.copy(perfd.PERFD, os.path.join(folder, "perfd"))


def examine(*arguments, prefix=(), program=perfd.PERFD, config=None, status=0):
    """The rows by what they are about."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
        if config:
            f.write(config)
            f.flush()
            os.chmod(f.name, 0o644)
            arguments += ("--config", f.name)
        ran = subprocess.run([*prefix, program, "--check-host", "--json", *arguments], capture_output=True, text=True,
                             timeout=perfd.PATIENCE, check=False)
    check(not perfd.COMPLAINT.search(ran.stderr), ran.stderr)
    equal(ran.returncode, status, f"the exit status, with {ran.stderr!r}")
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    equal(len({row["what"] for row in rows}), len(rows), "rows with names of their own")
    for row in rows:
        equal(set(row), {"topic", "what", "works", "found", "remedy"}, "the members of a row")
        equal(bool(row["remedy"]), not row["works"], f"a remedy, and only for a no: {row}")
        check(row["found"], f"nothing was found: {row}")
    return {row["what"]: row for row in rows}


def works(rows, what, found):
    check(rows[what]["works"], f"does not work: {rows[what]}")
    check(re.search(found, rows[what]["found"]), f"no {found!r} in {rows[what]}")


def settings(names):
    """As the remedy has them here: in a container without a systemd there is no unit."""
    in_container = any(map(os.path.exists, ("/run/.containerenv", "/.dockerenv"))) and not os.path.exists("/run/systemd/system")
    return " ".join(f"--cap-add {name.removeprefix('CAP_')}" for name in names.split()) if in_container else f"AmbientCapabilities={names}"


def fails(rows, what, found, remedy):
    check(not rows[what]["works"], f"works: {rows[what]}")
    check(re.search(found, rows[what]["found"]), f"no {found!r} in {rows[what]}")
    check(re.search(remedy, rows[what]["remedy"]), f"no {remedy!r} in {rows[what]}")


def traces():
    """What a trial could leave: definitions, instances, mounts, processes of ours."""
    left = [read("/proc/self/mountinfo"), sorted(os.listdir(f"{perfd.TRACING}/instances"))]
    for name in ("kprobe_events", "uprobe_events", "dynamic_events"):
        with contextlib.suppress(FileNotFoundError):
            left.append([line for line in read(f"{perfd.TRACING}/{name}").splitlines() if "doctor" in line])
    return left


def test_as_root():
    before = traces()
    rows = examine(config=CONFIG)
    equal(traces(), before, "what the trials left")
    works(rows, "perf_event_open", "opens")
    works(rows, "host-wide events", "CPU 0")
    works(rows, "perf_event_paranoid", f"^{read(f'{SYSCTL}/perf_event_paranoid')}:")
    works(rows, "clocks", "monotonic monotonic-raw boottime realtime")
    works(rows, "clocks of tracepoints", "monotonic monotonic-raw$")
    works(rows, "tracefs", perfd.TRACING)
    works(rows, "tracepoints", "opens")
    works(rows, "kernel filters", "accepts a filter")
    works(rows, "filter complaints", "can be written")
    works(rows, "other processes", "pid 1")
    works(rows, "locked memory", f"rings of 1024 KiB were mapped on {len(perfd.online_cpus())} CPUs")
    works(rows, "perf_event_max_sample_rate", read(f"{SYSCTL}/perf_event_max_sample_rate"))
    works(rows, "perf_cpu_time_max_percent", f"^{read(f'{SYSCTL}/perf_cpu_time_max_percent')}:")
    works(rows, "threads", f"each of {len(perfd.online_cpus())} CPUs")
    equal(rows["PMUs"]["found"].split(), sorted(os.listdir("/sys/bus/event_source/devices")), "the PMUs")
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    works(rows, "RLIMIT_NOFILE", f"^{limit} fds")
    equal(rows["BTF"]["works"], os.path.exists("/sys/kernel/btf/vmlinux"), "BTF")
    equal(rows["SCHED_FIFO"]["works"], subprocess.run(["chrt", "-f", "1", "true"], stderr=subprocess.DEVNULL,
                                                      check=False).returncode == 0, "SCHED_FIFO")


def test_probes_as_they_are():
    """What the kernel was built with shows in sysfs and tracefs, and both kinds of probes in both ways agree with it."""
    rows = examine()
    for kind in ("kprobe", "uprobe"):
        has_pmu = os.path.exists(f"/sys/bus/event_source/devices/{kind}")
        has_file = os.path.exists(f"{perfd.TRACING}/{kind}_events")
        equal(rows[f"{kind}s"]["works"], has_pmu, rows[f"{kind}s"])
        equal(rows[f"{kind}_events"]["works"], has_file, rows[f"{kind}_events"])
        if not has_pmu:
            fails(rows, f"{kind}s", f"no {kind} PMU", f"CONFIG_{kind.upper()}_EVENTS")
        if not has_file:
            fails(rows, f"{kind}_events", "there is no", f"CONFIG_{kind.upper()}_EVENTS")


def test_as_nobody():
    """Without capabilities, and then with what the rows ask for."""
    if int(read(f"{SYSCTL}/perf_event_paranoid")) < 1:
        print("  skipped: kernel.perf_event_paranoid lets everyone do it")
        return
    with public_perfd() as program:
        rows = examine(prefix=NOBODY, program=program, status=1)
        remedy = r"CAP_PERFMON .*sysctl kernel.perf_event_paranoid=-1"
        fails(rows, "host-wide events", "Permission denied|Operation not permitted", remedy)
        fails(rows, "perf_event_paranoid", "without CAP_PERFMON", remedy)
        fails(rows, "cgroups", "Permission denied|Operation not permitted", remedy)
        fails(rows, "locked memory", "0 of", "host-wide events")
        if not stat.S_IMODE(os.stat(perfd.TRACING).st_mode) & 0o005:
            fails(rows, "tracefs", "reading it: Permission denied", "CAP_DAC_READ_SEARCH")
            fails(rows, "tracepoints", "Permission denied", "tracefs")
            fails(rows, "uprobe_events", "cannot be written: Permission denied", "CAP_DAC_OVERRIDE")
        fails(rows, "/proc/PID/root", "Permission denied", "CAP_SYS_PTRACE")
        fails(rows, "capabilities", "^none; refused for lack of CAP_PERFMON", settings("CAP_PERFMON"))

        wanted = []
        for _ in range(3):  # what could not be looked at before may want more
            wanted += rows["capabilities"]["found"].partition("refused for lack of ")[2].split()
            names = ",".join("+" + name.removeprefix("CAP_").lower() for name in wanted)
            rows = examine(prefix=[*NOBODY, "--inh-caps", names, "--ambient-caps", names], program=program, config=CONFIG)
            if rows["capabilities"]["works"]:
                break
        works(rows, "capabilities", "nothing was refused for lack of one")
        check("CAP_DAC_READ_SEARCH" in wanted, wanted)
        root = examine(config=CONFIG)
        for what in ("host-wide events", "tracefs", "tracepoints", "cgroups", "locked memory", "other processes", "kprobes",
                     "uprobes", "kprobe_events", "uprobe_events"):
            equal(rows[what]["works"], root[what]["works"], f"what root may too: {rows[what]}")


def test_as_the_service():
    """The two capabilities of the unit are enough to run, and what they are not enough for is said."""
    names = "+perfmon,+dac_read_search"
    with public_perfd() as program:
        rows = examine(prefix=[*NOBODY, "--inh-caps", names, "--ambient-caps", names], program=program, config=CONFIG)
        works(rows, "host-wide events", "opens")
        works(rows, "tracepoints", "opens")
        works(rows, "kernel filters", "accepts a filter")
        fails(rows, "filter complaints", "cannot be written", "CAP_DAC_OVERRIDE")
        fails(rows, "uprobe_events", "cannot be written", "CAP_DAC_OVERRIDE")
        fails(rows, "idle CPUs", "BPF .*not permitted", settings("CAP_BPF CAP_PERFMON"))
        works(rows, "seccomp", "only perfd's own filter|a filter is active")  # of what it could do with bpf(2) nevertheless


def test_the_mighty_one():
    """CAP_SYS_ADMIN is given up where the kernel opens events without, unless it is wanted; by root too."""
    if int(read(f"{SYSCTL}/perf_event_paranoid")) > 2:
        print("  skipped: this kernel may ask for it (test_units.py is about that)")
        return
    names = "+perfmon,+dac_read_search,+sys_admin"
    with public_perfd() as program:
        service = [*NOBODY, "--inh-caps", names, "--ambient-caps", names]
        rows = examine(prefix=service, program=program, config=CONFIG)
        works(rows, "CAP_SYS_ADMIN", "is dropped: .*CAP_PERFMON")
        equal(rows["idle CPUs"], examine(config=CONFIG)["idle CPUs"], "what is opened before it is given up")
        equal("CAP_SYS_ADMIN" in rows["capabilities"]["found"].split(";")[0], False, "whether it is still there")
        if not rows["uprobes"]["works"]:
            fails(rows, "uprobes", "Permission denied", "--keep-capabilities")
        rows = examine("--keep-capabilities", prefix=service, program=program, config=CONFIG)
        works(rows, "CAP_SYS_ADMIN", "is kept, as requested")
        works(rows, "uprobes", "opens through the uprobe PMU")
        names = "+dac_read_search,+sys_admin"
        rows = examine(prefix=[*NOBODY, "--inh-caps", names, "--ambient-caps", names], program=program, config=CONFIG)
        works(rows, "CAP_SYS_ADMIN", "without CAP_PERFMON no other")
    works(examine(config=CONFIG), "CAP_SYS_ADMIN", "^root's capabilities are dropped, except those that perfd needs")
    works(examine("--keep-capabilities", config=CONFIG), "CAP_SYS_ADMIN", "^root's capabilities are kept, as requested")


def can_limit(name, value):
    """A machine without CAP_SYS_RESOURCE cannot try what more would help."""
    ran = subprocess.run(["prlimit", f"--{name}={value}:{value}", "true"], stderr=subprocess.DEVNULL, check=False)
    if ran.returncode != 0:
        print(f"  skipped: {name} cannot be raised to {value} here")
    return ran.returncode == 0


def test_limits():
    """Each remedy is what helps."""
    n = len(perfd.online_cpus())
    with public_perfd() as program:
        names = "+perfmon,+dac_read_search"
        service = [*NOBODY, "--inh-caps", names, "--ambient-caps", names]
        config = CONFIG.replace("1MiB", "64MiB")
        rows = examine(prefix=["prlimit", "--memlock=0:0", *service], program=program, config=config, status=1)
        kib = int(read(f"{SYSCTL}/perf_event_mlock_kb"))
        fails(rows, "locked memory", rf"rings of 65536 KiB on \d of {n} CPUs, then: Operation not permitted; "
              rf"kernel.perf_event_mlock_kb is {kib} a CPU, RLIMIT_MEMLOCK 0 KiB", r"LimitMEMLOCK=infinity.*rings.size: \d+KiB")
        size = re.search(r"rings.size: (\d+KiB)", rows["locked memory"]["remedy"]).group(1)
        examine(prefix=["prlimit", "--memlock=0:0", *service], program=program, config=config.replace("64MiB", size))
        if can_limit("memlock", "unlimited"):
            examine(prefix=["prlimit", "--memlock=unlimited:unlimited", *service], program=program, config=config)

        rows = examine(prefix=["prlimit", "--nofile=40:40", *service], program=program, config=CONFIG, status=1)
        fails(rows, "RLIMIT_NOFILE", "^40 fds", r"LimitNOFILE=\d+")
        room = re.search(r"LimitNOFILE=(\d+)", rows["RLIMIT_NOFILE"]["remedy"]).group(1)
        rows = examine(prefix=["prlimit", f"--nofile={room}:{room}", *service], program=program, config=CONFIG)
        works(rows, "RLIMIT_NOFILE", "enough for 1000 events")

        rows = examine(prefix=["prlimit", "--rtprio=0:0", *service], program=program, config=CONFIG)
        fails(rows, "SCHED_FIFO", "RLIMIT_RTPRIO is 0", "LimitRTPRIO=1")
        if can_limit("rtprio", 1):
            rows = examine(prefix=["prlimit", "--rtprio=1:1", *service], program=program, config=CONFIG)
            works(rows, "SCHED_FIFO", "lowest real-time priority")


def test_without_tracefs():
    """Where it is not mounted it is tried all the same, and is not mounted afterwards; who may not mount it is told."""
    script = ('umount -l /sys/kernel/tracing /sys/kernel/debug 2>/dev/null; cat /proc/self/mounts >&2; "$@"; status=$?; '
              'cat /proc/self/mounts >&2; exit $status')
    prefix = ["unshare", "--mount", "sh", "-c", script, "sh"]
    ran = subprocess.run([*prefix, perfd.PERFD, "--check-host", "--json"], capture_output=True, text=True, check=False,
                         timeout=perfd.PATIENCE)
    equal(ran.returncode, 0, f"the exit status, with {ran.stdout}")
    mounts = ran.stderr.splitlines()
    equal(mounts[len(mounts) // 2:], mounts[:len(mounts) // 2], "the mounts afterwards")
    check(not any(" tracefs " in line for line in mounts), "tracefs is mounted")
    rows = {row["what"]: row for row in map(json.loads, ran.stdout.splitlines())}
    works(rows, "tracefs", "^not mounted, but perfd may mount it")
    works(rows, "tracepoints", "opens")
    with public_perfd() as program:
        ran = subprocess.run([*prefix, *NOBODY, program, "--check-host", "--json"], capture_output=True, text=True,
                             check=False, timeout=perfd.PATIENCE)
        equal(ran.returncode, 1, f"the exit status, with {ran.stdout}")
        rows = {row["what"]: row for row in map(json.loads, ran.stdout.splitlines())}
        fails(rows, "tracefs", "not mounted on /sys/kernel/tracing, and mounting it: Operation not permitted", "as root: mount")
        fails(rows, "uprobe_events", "is not mounted", "tracefs")


def test_two_tracefs():
    """Where debugfs has mounted it first, as it does for whoever asks for debug/tracing: the place of its own goes first."""
    debug = "/sys/kernel/debug"
    if not os.path.isdir(debug):
        raise perfd.Skip("this kernel has no debugfs")
    script = (f"umount -l {perfd.TRACING} {debug} 2>/dev/null; mount -t debugfs debugfs {debug} && ls {debug}/tracing/ >&2 && "
              f'if [ "$0" = both ]; then mount -t tracefs tracefs {perfd.TRACING}; fi && exec "$@"')
    for places, found in ("both", perfd.TRACING), ("one", f"{debug}/tracing"):
        rows = examine(prefix=["unshare", "--mount", "sh", "-c", script, places], config=CONFIG)
        works(rows, "tracefs", f"^mounted on {found},")
        works(rows, "tracepoints", "opens")


def test_of_a_daemon():
    """The same rows, but that its rings are there; and what it traces meanwhile loses nothing."""
    alone = examine(config=CONFIG)
    with perfd.Daemon(config=CONFIG) as daemon, daemon.client() as client, perfd.Workload("flood", 0, 20000) as load:
        perfd.add(client, {"event": "syscalls:sys_enter_getppid", "target": pb.Target(pids=load.pids)})
        with perfd.Subscriber(daemon, "syscalls:sys_enter_getppid"):
            before, fds = traces(), daemon.fds()
            load.go()
            for _ in range(5):
                rows = {row.what: row for row in client.request(doctor=pb.Empty()).doctor.rows}
            load.done(stop=True)
            ledger = client.request(ledger=pb.LedgerRequest()).ledger
            perfd.wait_until(lambda: daemon.fds() == fds, "the fds of the trials to be gone")
            equal(traces(), before, "what the trials left")
        equal(list(rows), list(alone), "the rows of a daemon")
        for what, row in rows.items():
            equal(row.works, alone[what]["works"], f"{what}: {row.found}")
        if re.search("^Seccomp:\t0$", read("/proc/self/status"), re.M):  # what has started perfd is not what keeps it from anything
            equal(rows["seccomp"].found, "only perfd's own filter, which denies system calls that perfd never makes", "whose filter it is")
            equal([row.what for row in rows.values() if "seccomp" in row.remedy], [], "remedies that would change nothing")
        equal(rows["locked memory"].found, f"rings of 1024 KiB are mapped on {len(perfd.online_cpus())} CPUs", "its rings")
        equal(sum(e.occurred for e in ledger.events), sum(load.counts), "what occurred")
        for event in ledger.events:
            check(event.balanced and event.exact, f"not balanced: {event}")
            late = sum(count.count for count in event.lost if count.reason == "late")  # where an emulated CPU stood still
            equal(event.delivered + event.filtered + late, event.occurred, f"what was delivered of {event}")


def test_breakpoints_again():
    """Who asks a daemon again and again is not told that its last trials have used up the CPU's few breakpoints: here the
    thread that closes what was opened does not run at all."""
    alone = examine()["breakpoints"]
    with perfd.Daemon() as daemon, daemon.client() as client, stopped_thread(daemon, "closer"):
        for _ in range(6):
            row = {row.what: row for row in client.request(doctor=pb.Empty()).doctor.rows}["breakpoints"]
            equal((row.works, row.found), (alone["works"], alone["found"]), "breakpoints")


def test_wrong_arguments():
    for arguments in (["--json"], ["--check-host", "--check", "--config", "/dev/null"], ["--check-host", "x"]):
        ran = subprocess.run([perfd.PERFD, *arguments], capture_output=True, text=True, check=False, timeout=perfd.PATIENCE)
        equal(ran.returncode, 2, f"the exit status of {arguments}")
        check(ran.stderr.startswith("perfd: ") and not ran.stdout, ran)


if __name__ == "__main__":
    perfd.main(globals())
