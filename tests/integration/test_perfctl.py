#!/usr/bin/python3
"""perfctl's verbs against a real daemon and a real kernel: counts that are known beforehand, beside perf(1) where it is
there, what is offered against what can be added. Needs root."""
import contextlib
import ctypes
import grp
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys

import perfd
from perfd import check, equal
from subscriber import pb

PERFCTL = os.path.join(perfd.BUILD, "client", "perfctl", "perfctl")
GETPPID = "syscalls:sys_enter_getppid"


def start(daemon, *arguments, **popen):
    return subprocess.Popen([PERFCTL, "--socket", daemon.control, *arguments], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, **popen)


def finish(process):
    """What it says to its end behind lines that were read, and its errors, which are few. communicate() would lose what came
    along with those lines."""
    said = process.stdout.read(), process.stderr.read()
    process.wait(perfd.PATIENCE)
    return said


def run(daemon, *arguments, status=0):
    """Its lines; JSON where asked for."""
    process = start(daemon, *arguments)
    out, err = process.communicate(timeout=perfd.PATIENCE)
    equal(process.returncode, status, f"the status of perfctl {arguments}, with {err!r}")
    check(not perfd.COMPLAINT.search(err), err)
    return [json.loads(line) for line in out.splitlines()] if "--json" in arguments else out


def test_stat_of_a_command():
    """Each call of a program and of its child, and nothing of anybody else; as perf counts it."""
    script = """if True:
        import os
        def call():
            for _ in range(12345):
                os.getppid()
        call()
        child = os.fork()
        call()
        if child:
            os.waitpid(child, 0)
        os._exit(3)"""
    command = ["/usr/bin/python3", "-c", script]
    with perfd.Daemon() as daemon:
        rows = run(daemon, "stat", "--json", GETPPID, "task-clock", "--", *command, status=3)
        equal([row["event"] for row in rows], [GETPPID, "task-clock"], "the events")
        equal(rows[0]["value"], 3 * 12345, "calls of getppid")
        equal(rows[0]["confidence"], 1, "nothing was shared")
        check(0 < rows[1]["value"] < rows[1]["duration"] * len(perfd.online_cpus()), rows[1])
        perfd.wait_until(lambda: daemon.status().n_events == 0, "its events to be gone")
    if shutil.which("perf"):
        ran = subprocess.run(["perf", "stat", "-x,", "-e", GETPPID, *command], capture_output=True, text=True, check=False)
        equal(int(ran.stderr.splitlines()[-1].split(",")[0]), 3 * 12345, "what perf counts")


def test_stat_in_intervals():
    """All lines together are the whole load, on all CPUs; and each begins where the one before ends."""
    with perfd.Daemon() as daemon, perfd.Workload("syscalls", 200000) as load:
        process = start(daemon, "stat", "--json", "--interval", "50ms", "--pid", ",".join(map(str, load.pids)), GETPPID)
        lines = [json.loads(process.stdout.readline())]
        load.go()
        counts = load.done()
        while sum(line["value"] for line in lines) < sum(counts):
            lines.append(json.loads(process.stdout.readline()))
        lines.append(json.loads(process.stdout.readline()))
        process.send_signal(signal.SIGINT)
        out, err = finish(process)
        lines += [json.loads(line) for line in out.splitlines()]
        equal((process.returncode, err), (0, ""), "how it ends")
        equal(sum(line["value"] for line in lines), sum(counts), "calls of getppid")
        equal([line["duration"] for line in lines],
              [line["time"] - before for line, before in zip(lines, [0] + [line["time"] for line in lines])], "their durations")
        perfd.wait_until(lambda: daemon.status().n_events == 0, "its events to be gone")


def test_stat_of_the_host():
    """CPUs that can be counted beforehand: each has a second of clock in a second."""
    n = len(perfd.online_cpus())
    with perfd.Daemon() as daemon:
        rows = run(daemon, "stat", "--json", "--interval", "200ms", "--count", "3", "cpu-clock", "cycles")
        equal([row["event"] for row in rows], ["cpu-clock", "cycles"] * 3, "the events")
        for row in rows[::2]:
            check(abs(row["metric"] - n) < 0.05 * n, f"not {n} CPUs: {row}")
        cycles = [row["event"] for row in run(daemon, "available", "--json") if row["event"] == "cycles"]
        equal({row["state"] for row in rows[1::2]}, {"counted" if cycles else "not-supported"}, "cycles")
        text = run(daemon, "stat", "--interval", "100ms", "--count", "1", "cpu-clock")
        equal(text.splitlines()[0], "#           time             counts unit   events", "the heading")
        check("CPUs utilized" in text, text)


def test_stat_ends_with_its_client():
    with perfd.Daemon() as daemon:
        process = start(daemon, "stat", "--json", "--interval", "100ms", "cpu-clock")
        process.stdout.readline()
        equal(daemon.status().n_events, 1, "its events")
        process.kill()
        process.communicate()
        perfd.wait_until(lambda: daemon.status().n_events == 0, "its events to be gone")
        run(daemon, "stat", "nonsense:nothing", status=1)
        run(daemon, "stat", "cpu-clock", "--", "/nonexistent/program", status=127)
        perfd.wait_until(lambda: run(daemon, "list") == "", "nothing is left")


def test_available_is_what_can_be_added():
    """Every software, hardware and cache event of perf list: it is offered, or refused because this machine lacks it."""
    known = ["cpu-clock", "task-clock", "page-faults", "context-switches", "cpu-migrations", "minor-faults", "major-faults",
             "alignment-faults", "emulation-faults", "cgroup-switches", "cpu-cycles", "instructions", "cache-references",
             "cache-misses", "branch-instructions", "branch-misses", "bus-cycles", "stalled-cycles-frontend",
             "stalled-cycles-backend", "ref-cycles", "L1-dcache-loads", "LLC-load-misses", "dTLB-load-misses"]
    with perfd.Daemon() as daemon, daemon.client() as client:
        rows = {row["event"]: row for row in run(daemon, "available", "--json")}
        for event in known:
            try:
                perfd.add(client, {"event": event, "name": event, "interval": 10**9})
                check(event in rows, f"{event} is not offered, but can be added")
            except perfd.Refused as no:
                equal(no.response.status, pb.STATUS_UNSUPPORTED, f"the status of {no.response.message!r}")
                check(event not in rows, f"{event} is offered: {no.response.message}")
        equal(rows["cpu-clock"]["unit"], "ns", "the unit of cpu-clock")
        equal(rows["sched:sched_switch"]["kind"], "tracepoint", "a tracepoint")
        equal("uprobe:PATH:SYMBOL[+OFFSET]" in rows, os.path.exists("/sys/bus/event_source/devices/uprobe"), "uprobes")
        equal("kprobe:SYMBOL[+OFFSET]" in rows, os.path.exists("/sys/bus/event_source/devices/kprobe"), "kprobes")
        check("external:NAME" in rows, "external events")
        with contextlib.suppress(FileNotFoundError):
            events = [f"msr/{e}/" for e in os.listdir("/sys/bus/event_source/devices/msr/events") if "." not in e]
            check(set(events) <= set(rows), f"{events} of sysfs")


def test_nothing_matches():
    """That there is nothing is said on stderr; stdout is as empty as the list. It is a failure if something was asked for."""
    with perfd.Daemon() as daemon:
        for words, message in ((("list",), "no running events"), (("list", "x*"), "no running event matches 'x*'"),
                               (("available", "nosuch:*"), "no event of this machine matches 'nosuch:*'"),
                               (("available", "nosuch"), "no event of this machine matches 'nosuch'")):
            for more in ((), ("--json",)):
                process = start(daemon, *words, *more)
                equal(process.communicate(timeout=perfd.PATIENCE), ("", f"perfctl: {words[0]}: {message}\n"), words)
                equal(process.returncode, len(words) - 1, words)
        check(run(daemon, "available", "sched_switch").startswith("sched:sched_switch\t"), "without its group")
        for kind in "hw", "tracepoint":
            process = start(daemon, "list", kind)
            said = process.communicate(timeout=perfd.PATIENCE)[1]
            check(process.returncode == 1 and f"`perfctl available {kind}` lists the events of this machine of that kind" in said, said)
        if not any(row["kind"] == "hardware" for row in run(daemon, "available", "--json")):
            lack = next(row for row in run(daemon, "doctor", "--json") if row["what"] == "hardware events")
            process = start(daemon, "available", "hw")
            said = process.communicate(timeout=perfd.PATIENCE)[1]
            check(process.returncode == 1 and f"matches 'hw': {lack['found']}" in said, (said, lack))
        if "kprobe:SYMBOL[+OFFSET]" not in {row["event"] for row in run(daemon, "available", "--json")}:
            process = start(daemon, "available", "kprobe")
            said = process.communicate(timeout=perfd.PATIENCE)[1]
            check(process.returncode == 1 and "use a kernel with CONFIG_KPROBE_EVENTS" in said, said)


def test_rates():
    """Of a clock a period is time: what is likely to be meant as another unit is refused, with what to write."""
    with perfd.Daemon("version: 1\ngroups: {g: {events: [{event: cpu-clock, frequency: 1}, 'sched:sched_process_exec']}}\n") as daemon:
        def rate():
            return {row.split("\t")[0]: row.split("\t")[6] for row in run(daemon, "list").splitlines()}["cpu-clock"]

        no = start(daemon, "period", "cpu-clock", "99")
        said = no.communicate(timeout=perfd.PATIENCE)[1]
        check(no.returncode == 2 and "write 99Hz for that many samples a second, a time as 1ms, or 99ns" in said, said)
        equal(rate(), "1 Hz", "what was refused")
        (name, number), = [line.split("\t") for line in run(daemon, "period", "cpu-clock", "99Hz").splitlines()]
        equal((name, rate()), ("cpu-clock", "99 Hz"), "with its unit")
        equal(run(daemon, "period", "cpu-clock", "-F", "50", "--json"), [{"name": "cpu-clock", "id": int(number)}], "an option as add has it")
        run(daemon, "period", "cpu-clock", "100ms")
        equal(rate(), "1/100.0 ms", "a time")
        run(daemon, "period", "cpu-clock", "-c", "1000000000")
        equal(rate(), "1/1.0 s", "a number that is meant")
        equal(run(daemon, "filter", "sched:sched_process_exec", "pid > 1").split("\t")[0], "sched:sched_process_exec", "a filter")
        run(daemon, "period", "cpu-clock", "99", "-c", "99", status=2)
        run(daemon, "period", "sched:sched_process_exec", "1ms", status=2)
        run(daemon, "period", "sched:sched_process_exec", "2")
        run(daemon, "add", "-c", "99", "cpu-clock:u", status=2)
        run(daemon, "add", "-c", "1ms", "page-faults", status=2)
        run(daemon, "add", "-c", "99ns", "task-clock", "--disabled")
        run(daemon, "add", "-c", "5Hz", "page-faults")
        run(daemon, "watch", "--queue", "1", status=2)
        cycles = any(row["event"] == "cycles" for row in run(daemon, "available", "--json"))
        process = start(daemon, "add", "cycles", "--fallback", "cpu-clock", "-F", "5", "--json")
        out, err = process.communicate(timeout=perfd.PATIENCE)
        equal([json.loads(line)["fallen_back"] for line in out.splitlines()], [not cycles], "whether the fallback is counted")
        equal(err, "" if cycles else "perfctl: add: cycles: this machine does not count cycles: cpu-clock is counted instead\n", "the same in words")


def test_available_by_a_word():
    """What contains it, as `perf list WORD` has it, unless it is the name of an event or a pattern."""
    with perfd.Daemon() as daemon:
        rows = [row["event"] for row in run(daemon, "available", "--json", "switch")]
        check("sched:sched_switch" in rows and "context-switches" in rows, rows)
        equal([row for row in rows if "switch" not in row], [], "what has no such word")
        rows = [row["event"] for row in run(daemon, "available", "--json", "sched")]
        check("sched:sched_waking" in rows, rows)
        equal([row["event"] for row in run(daemon, "available", "--json", "page-faults")], ["page-faults"], "one event")


def test_status_says_what_the_kernel_says():
    """rss is what everybody else sees, in bytes: the kernel counts pages, on each CPU some before it adds them up."""
    with perfd.Daemon(config="version: 1\nrings: {size: 2MiB}\n") as daemon:
        row, = run(daemon, "status", "--json")
        with open(f"/proc/{daemon.pid}/status", encoding="ascii") as f:
            of_kernel = next(int(line.split()[1]) << 10 for line in f if line.startswith("VmRSS:"))
        check(abs(row["rss"] - of_kernel) < of_kernel // 4, f"rss {row['rss']}, and the kernel says {of_kernel}")


def test_no_socket():
    """Which of the two cannot be used, why, and what to do: where perfd does not run, and for whom it is not."""
    listen = "import os, socket, subprocess, sys; s = socket.socket(socket.AF_UNIX); s.bind('/run/perfd/stream.sock'); s.listen(); " \
             "os.unlink('/run/perfd/stream.sock'); sys.exit(subprocess.call(sys.argv[1:]))"

    def ask(script):
        ran = subprocess.run(["unshare", "-mn", "sh", "-c", f'mount -t tmpfs none /run && {script}', "sh", PERFCTL, "list"],
                             capture_output=True, text=True, check=False, timeout=perfd.PATIENCE,
                             env={**{k: v for k, v in os.environ.items() if k != "PERFD_SOCKET"}, "LISTEN": listen})
        equal(ran.returncode, 3, f"the status, with {ran.stderr!r}")
        return ran.stderr.splitlines()

    for script, remedy, words in (
            ('exec "$@"', "`systemctl start perfd`", "does not exist"),
            (f'mkdir /run/perfd && exec {sys.executable} -c "$LISTEN" "$@"', "`systemctl restart perfd-control.socket perfd-stream.socket`",
             "does not exist"),
            ('mkdir -m 0700 /run/perfd && exec setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set -all "$@"',
             "access.stream-group", "may not be used by this user")):
        first, control, stream = ask(script)
        check(first.startswith("perfctl: list: cannot connect to perfd: ") and remedy in first, first)
        check(control.startswith(f"perfctl: list: control: /run/perfd/control.sock {words}"), control)
        check(stream.startswith(f"perfctl: list: stream: /run/perfd/stream.sock {words}"), stream)


def test_socket_of_a_group():
    """Who is not in the socket's group is told which one it is, and by which command he joins it."""
    gid = 33
    name = grp.getgrgid(gid).gr_name
    user = pwd.getpwuid(65534).pw_name
    with perfd.Daemon() as daemon:
        os.chmod(daemon.directory, 0o755)
        os.chown(daemon.stream, 0, gid)
        os.chmod(daemon.stream, 0o660)
        ran = subprocess.run([PERFCTL, "--socket", daemon.stream, "list"], capture_output=True, text=True, check=False,
                             timeout=perfd.PATIENCE, user=65534, group=65534, extra_groups=[])
        equal((ran.returncode, ran.stderr.splitlines()[-1]),
              (3, f"perfctl: list: run perfctl as root, or join the group {name} by `sudo usermod -aG {name} {user}`, and log in again"),
              ran.stderr)
        os.chmod(daemon.stream, 0o600)
        ran = subprocess.run([PERFCTL, "--socket", daemon.stream, "list"], capture_output=True, text=True, check=False,
                             timeout=perfd.PATIENCE, user=65534, group=65534, extra_groups=[])
        check("usermod" not in ran.stderr and "as root" in ran.stderr, ran.stderr)


def test_indirect_function():
    """memcpy of libc is code that the CPU selects: what it is on this machine is said, and can be probed."""
    with perfd.Daemon() as daemon:
        process = start(daemon, "add", "uprobe:libc:memcpy")
        out, err = process.communicate(timeout=perfd.PATIENCE)
        equal((process.returncode, out), (1, ""), err)
        found = re.search(r"programs call the code of memcpy at '(uprobe:[^']*:0x[0-9a-f]+)'\n$", err)
        check("it selects an implementation when a program starts (IFUNC)" in err and found, err)
        libc = ctypes.CDLL("libc.so.6")
        with open("/proc/self/maps", encoding="utf-8") as f:
            base = next(int(line.split("-")[0], 16) for line in f if os.path.basename(line.rstrip()) == "libc.so.6")
        equal(int(found.group(1).rsplit(":", 1)[1], 16), ctypes.cast(libc.memcpy, ctypes.c_void_p).value - base, "the place")
        run(daemon, "add", found.group(1), "--name", "copies")


def test_show():
    """The fields of what runs, probes and external events too, beside those that the kernel offers."""
    def fields(row):
        return [(field["name"], field["kind"], field["type"]) for field in row["fields"]]

    with perfd.Daemon() as daemon:
        run(daemon, "show", "external:deploy", status=1)
        offered, = run(daemon, "show", "--json", "sched:sched_switch")
        equal(run(daemon, "show", "--json", "sched_switch"), [offered], "without its group")
        equal(run(daemon, "show", "--json", "tracepoint:sched:sched_switch"), [offered], "as bpftrace calls it")
        equal(offered["running"], None, "what runs")
        run(daemon, "add", "external:deploy", "--field", "user:text", "--field", "code:s16")
        run(daemon, "add", f"uprobe:{PERFCTL}:main", "--args", "n=%di:s32 all=%si:x64", "--name", "start")
        run(daemon, "add", "sched:sched_switch", "--disabled")
        run(daemon, "add", "sched:sched_wakeup", "--name", "sched:sched_waking")

        external, = run(daemon, "show", "--json", "external:deploy")
        equal(fields(external), [("user", "text", "text"), ("code", "signed", "s16")], "the external event's")
        equal(external["running"]["fields"], external["fields"], "the external event's, as it runs")
        equal(run(daemon, "show", "external:deploy").splitlines(), ["user\ttext\t1\t0\ttext\t", "code\tsigned\t2\t1\ts16\t"], "lines")

        start_, = run(daemon, "show", "--json", "start")
        check({("n", "signed", "s32 n"), ("all", "unsigned", "u64 all")} <= set(fields(start_)), start_)
        check("main" in start_["running"]["place"], start_)
        by_id, = run(daemon, "show", "--json", f"#{start_['running']['id']}")
        equal(by_id, start_, "the same by its id")

        switch, = run(daemon, "show", "--json", "sched:sched_switch")
        equal({**switch, "running": None}, offered, "what is offered does not change")
        equal((switch["running"]["enabled"], switch["running"]["fields"]), (False, offered["fields"]), "what runs")

        other, = run(daemon, "show", "--json", "sched:sched_waking")
        equal(other["running"]["event"], "sched:sched_wakeup", "what runs under the name of another event")
        wakeup, = run(daemon, "show", "--json", "sched:sched_wakeup")
        equal((other["running"]["fields"], wakeup["running"]), (wakeup["fields"], None), "its fields")

        for name, words in ("strat", "did you mean 'start'"), ("nothing:atall", "`perfctl list` and `perfctl available`"):
            process = start(daemon, "show", name)
            check(words in process.communicate(timeout=perfd.PATIENCE)[1], f"no {words!r} for {name}")
            equal(process.returncode, 1, "the status")


def test_letters_of_perf():
    """-a, -p, -t, -C, -G, -c, -F and -g mean what they mean to perf record and perf stat."""
    with perfd.Daemon(config="version: 1\n") as daemon:
        pid = str(os.getpid())
        run(daemon, "add", "-e", "cpu-clock", "-p", pid, "-F", "99", "--name", "by-pid")
        run(daemon, "add", "-e", "task-clock", "-t" + pid, "-c1000000", "--name", "by-tid")
        run(daemon, "add", "-e", "cpu-clock", "-C", "0", "--name", "by-cpu")
        events = {row["name"]: row for row in run(daemon, "--json", "list")}
        equal((events["by-pid"]["pids"], events["by-pid"]["frequency"]), ([int(pid)], 99), "-p and -F")
        equal((events["by-tid"]["tids"], events["by-tid"]["period"]), ([int(pid)], 1000000), "-t and -c")
        equal(events["by-cpu"]["cpus"], "0", "-C")
        run(daemon, "add", "-e", "cpu-clock", "-G", "no-such", status=1)
        run(daemon, "add", "-e", "cpu-clock", "-ag", "--name", "everywhere")
        event = {row["name"]: row for row in run(daemon, "--json", "list")}["everywhere"]
        equal((event["callchain"], event["pids"], event["cpus"]), ("kernel,user", [], events["by-pid"]["cpus"]), "-a and -g")
        for verb in "add", "watch", "count", "stat":
            run(daemon, verb, "-e", "cpu-clock", "-a", "-p", pid, status=2)
        for verb in "add", "watch", "count":
            run(daemon, verb, "-e", "cpu-clock", "-g", "--callchain", "user", status=2)


def test_emit():
    """What is emitted arrives, typed, merged by time; what cannot be is refused and nothing is sent."""
    with perfd.Daemon() as daemon:
        run(daemon, "add", "external:deploy", "--field", "user:text", "--field", "code:s16", "--field", "ok:bool")
        watch = start(daemon, "watch", "--json", "--count", "2", "external:deploy")
        equal(json.loads(watch.stdout.readline())["kind"], "start", "the stream")
        run(daemon, "emit", "external:deploy", "code=-32768", "user=joe=x", "ok=true", "--pid", "44", "--cpu", "1")
        run(daemon, "emit", "external:deploy", "code=32768", "user=a", "ok=true", status=2)
        run(daemon, "emit", "external:deploy", "code=1", "user=a", status=2)
        run(daemon, "emit", "external:nothing", status=1)
        run(daemon, "add", "cs")
        for event, said in ("deploy", "did you mean 'external:deploy'?"), ("cs", "cs is not an external event"):
            failed = start(daemon, "emit", event, "code=1")
            check(said in finish(failed)[1] and failed.returncode == 1, event)
        equal(run(daemon, "emit", "external:deploy", "code=7", "user=", "ok=0", "--json"), [{"taken": 1, "late": 0, "lost": 0}], "taken")
        out, err = finish(watch)
        equal((watch.returncode, err), (0, ""), "how the watch ends")
        samples = [line for line in map(json.loads, out.splitlines()) if line["kind"] == "sample"]
        equal([s["fields"] for s in samples],
              [{"user": "joe=x", "code": -32768, "ok": True}, {"user": "", "code": 7, "ok": False}], "the samples")
        equal((samples[0]["pid"], samples[0]["cpu"]), (44, 1), "where the first one was")
        check(samples[0]["time"] < samples[1]["time"], "not in the order of time")
        run(daemon, "disable", "external:deploy")
        run(daemon, "emit", "external:deploy", "code=7", "user=", "ok=0", status=1)


def test_doctor():
    with perfd.Daemon() as daemon:
        rows = run(daemon, "doctor", "--json")
        equal([row["what"] for row in rows], [row.split("\t")[1] for row in run(daemon, "doctor").splitlines()], "the rows")
        with daemon.client() as client:
            equal([row["what"] for row in rows], [row.what for row in client.request(doctor=pb.Empty()).doctor.rows], "the rows")


if __name__ == "__main__":
    perfd.main(globals())
