#!/usr/bin/python3
"""`perfctl add` and `watch` as people type and read them, against a real daemon and a real kernel: names of events as other tools
have them, libraries by name, arguments of functions. Needs root."""
import ctypes
import json
import mmap
import os
import re
import time

import package
import perfd
from perfd import check, equal
from test_perfctl import finish, run, start
from test_sources import ARGUMENT, FIRE, Fire, kernel_complaint

GETPPID = "sys_enter_getppid"
NUMBER_OF_GETPPID = {"x86_64": 110, "aarch64": 173}[os.uname().machine]


def watched(daemon, doing, *arguments):
    """The samples that `watch` prints of what is done while it runs."""
    watch = start(daemon, "watch", "--json", *arguments)
    equal(json.loads(watch.stdout.readline())["kind"], "start", "the stream")
    doing()
    out, err = finish(watch)
    equal(watch.returncode, 0, f"the status, with {err!r}")
    return [row for row in map(json.loads, out.splitlines()) if row["kind"] == "sample"]


def test_names_of_other_tools():
    """A name without its group, and one of bpftrace, are the one event that there is; it is called by perf's name."""
    me = "--pid", str(os.getpid())
    for name in GETPPID, f"tracepoint:syscalls:{GETPPID}", f"syscalls:{GETPPID}":
        with perfd.Daemon() as daemon:
            run(daemon, "add", "-e", f"{name},cs", *me)
            equal([row["name"] for row in run(daemon, "list", "--json")], [f"syscalls:{GETPPID}", "cs"], "what runs")
            for asked in GETPPID, f"tracepoint:syscalls:{GETPPID}", f"syscalls:{GETPPID}":
                rows = watched(daemon, os.getppid, "--count", "1", asked)
                equal([(row["event"], row["pid"]) for row in rows], [(f"syscalls:{GETPPID}", os.getpid())], f"what {asked} prints")
            rows = watched(daemon, lambda: time.sleep(0.01), "--count", "1", "-e", f"cs,{GETPPID}", "--where", "tid > 0")
            equal([row["event"] for row in rows], ["cs"], "what a list prints")
        with perfd.Daemon() as daemon:
            message = start(daemon, "add", "sys_*_getppid").communicate(timeout=perfd.PATIENCE)[1]
            check("unknown" in message, message)
            equal(run(daemon, "list"), "", "what runs after a mistake")


def test_parts_as_fields():
    """--fields takes what a sample has beside the fields of its event, by the names that watch prints."""
    with perfd.Daemon() as daemon:
        def touch():
            anonymous = mmap.mmap(-1, 1 << 20)
            for at in range(0, 1 << 20, mmap.PAGESIZE):
                anonymous[at] = 1
            os.getppid()

        for fields in "ip", "address,ip":
            rows = watched(daemon, touch, "--count", "1", "page-faults", "--pid", str(os.getpid()), "--fields", fields)
            check(int(rows[0]["ip"], 16) > 0, f"--fields {fields}: {rows}")
        rows = watched(daemon, os.getppid, "--count", "1", GETPPID, "--pid", str(os.getpid()), "--fields", "ip")
        equal(rows[0]["fields"], {}, "fields that were not chosen")
        rows = watched(daemon, os.getppid, "--count", "1", "-e", GETPPID, "--pid", str(os.getpid()), "--fields", "__syscall_nr,ip")
        equal(rows[0]["fields"], {"__syscall_nr": NUMBER_OF_GETPPID}, "the field that was chosen, beside a part")


def test_names_of_what_runs():
    """The verbs that change what runs take the names that `add` takes; of what is removed, the configuration's events are counted."""
    config = "version: 1\ngroups: {g: {events: [page-faults, minor-faults]}}\n"
    with perfd.Daemon(config=config) as daemon:
        run(daemon, "add", GETPPID, "uprobe:libc:getpgid", "--pid", str(os.getpid()))
        full = f"syscalls:{GETPPID}"
        for verb in "disable", "enable":
            equal(sorted(row["name"] for row in run(daemon, verb, "--json", GETPPID, "software:page-faults")), ["page-faults", full], verb)
        check("no running event is called" not in daemon.stderr(), "a name without its group is logged as a mistake")
        for asked in GETPPID, f"tracepoint:{full}":
            equal([row["name"] for row in run(daemon, "list", "--json", asked)], [full], f"list {asked}")
        equal([row["name"] for row in run(daemon, "filter", "--json", GETPPID, "common_pid > 0")], [full], "filter")
        no = start(daemon, "filter", "common_pid > 0", GETPPID)
        said = no.communicate(timeout=perfd.PATIENCE)[1]
        check(no.returncode == 2 and f"the event is named first: `perfctl filter '{GETPPID}' 'common_pid > 0'`" in said, said)
        equal([row["name"] for row in run(daemon, "period", "--json", GETPPID, "2")], [full], "period")
        equal({row["event"] for row in run(daemon, "ledger", "--json", f"tracepoint:{full}")}, {full}, "ledger")
        run(daemon, "remove", "uprobe:libc:getpgid")
        for words, said in (((GETPPID, "page-faults"), "1 of them is of the configuration: `perfctl reload` adds it again"),
                            (("sys_enter_nosuch",), "no running event is called sys_enter_nosuch")):
            done = start(daemon, "remove", *words)
            err = finish(done)[1]
            check(said in err, err)
        equal([row["name"] for row in run(daemon, "list", "--json")], ["minor-faults"], "what is left")


def test_near_names():
    """A word that no event has: the tracepoint that looks alike, or that of the system call; nothing for one that is like none."""
    with perfd.Daemon() as daemon:
        for word, event in (("sched_swich", "sched:sched_switch"), ("openat", "syscalls:sys_enter_openat"), ("nothing_like_it_at_all", None)):
            for verb in ("add",), ("watch", "--count", "1"), ("count", "--for", "1ms"):
                failed = start(daemon, *verb, word)
                err = finish(failed)[1]
                equal((failed.returncode, err.splitlines()[-1] if event else "did you mean" in err),
                      (1, f"perfctl: {verb[0]}: '{word}': did you mean '{event}'?" if event else False), f"{verb[0]} {word}")


def test_hints():
    """One hint for one mistake, of a call its tracepoint, of a name in fetch args what can be fetched."""
    with perfd.Daemon() as daemon:
        for words, hint in ((("add", "page-fault"), "did you mean 'page-faults'?"), (("watch", "--count", "1", "page-fault"), "did you mean 'page-faults'?"),
                            (("add", "syscalls:openat"), "did you mean 'syscalls:sys_enter_openat'?"),
                            (("add", "uprobe:libc:getpgid", "--args", "n"), "the kernel knows no arguments by their names: fetch one from a register")):
            failed = start(daemon, *words)
            err = finish(failed)[1]
            equal((failed.returncode, err.count(hint)), (1, 1), f"{words} says {err!r}")


def test_arguments_of_functions():
    """Seven arguments of a function of libc, which was found as ld.so finds it, and what it returns."""
    libc = ctypes.CDLL("libc.so.6")
    values = [NUMBER_OF_GETPPID, 11, -12, 13, 14, 15, 1 << 40]
    places = " ".join(f"a{i}=$arg{i}:s64" for i in range(1, 8))
    with open("/proc/self/maps", encoding="utf-8") as maps:
        path = next(line.split()[-1] for line in maps if "/libc.so.6" in line or "/libc-2" in line)
    with perfd.Daemon() as daemon:
        run(daemon, "add", "uprobe:libc:syscall", "--args", places, "--pid", str(os.getpid()))
        run(daemon, "add", "-e", "uretprobe:libc.so.6:syscall,uprobe:libc:getpgid", "--pid", str(os.getpid()))
        run(daemon, "add", "uretprobe:libc:syscall", "--name", "result", "--args", "r=$retval:s64", "--pid", str(os.getpid()))
        events = [row["event"] for row in run(daemon, "list", "--json")]
        equal(len(events), 4, "what runs")
        for event in events:
            check(os.path.samefile(event.split(":")[1], path), f"{event} is not in {path}")

        def call():
            libc.syscall(*map(ctypes.c_long, values))

        rows = watched(daemon, call, "uprobe:libc:syscall", "result", "--count", "2")
        equal([list(row["fields"].values())[-7:] for row in rows[:1]], [values], "the arguments")
        equal(rows[1]["fields"]["r"], os.getppid(), "the result")


def test_no_noise():
    """Fields of the kernel's own are printed for who asks for them; JSON has them always."""
    me = "--pid", str(os.getpid())
    with perfd.Daemon() as daemon:
        run(daemon, "add", "uprobe:libc:getpgid", "--args", "pid=$arg1:s32", "--name", "asked", *me)
        for options, has in ((), False), (("--fields", "__probe_ip,pid"), True):
            watch = start(daemon, "watch", "--count", "1", *options, "asked")
            perfd.wait_until(lambda: daemon.status().n_subscribers == 1, "the watch to begin")
            os.getpgid(os.getpid())
            out = watch.communicate(timeout=perfd.PATIENCE)[0].splitlines()
            equal(out[0].split("\t"), ["TIME", "CPU", "TASK", "EVENT", "FIELDS"], "the heading")
            row = out[1].split("\t")
            equal((len(out), len(row), row[3]), (2, 5, "asked"), "the columns")
            check(row[2].endswith(f"-{os.getpid()}/{os.getpid()}"), row)
            fields = dict(pair.split("=") for pair in row[4].split(" ") if pair)
            equal((fields["pid"], "__probe_ip" in fields), (str(os.getpid()), has), f"the fields with {options}")
            perfd.wait_until(lambda: daemon.status().n_subscribers == 0, "the watch to end")
        row, = watched(daemon, lambda: os.getpgid(0), "--count", "1", "asked")
        check("__probe_ip" in row["fields"], row)


def test_what_a_probe_could_not_read():
    """Is told from what is empty: (fault), as trace_pipe has it, null, None."""
    with perfd.Daemon() as daemon, Fire() as fire:
        run(daemon, "add", f"uprobe:{FIRE}:fire_call", "--name", "asked", "--pid", str(fire.pid), "--args",
            "bad=+0($arg1):string empty=+6($arg2):string good=+0($arg2):string worse=+0($arg1):ustring")
        row, = watched(daemon, lambda: fire.fire("calls", 1), "--count", "1", "asked")
        equal({name: row["fields"][name] for name in ("bad", "empty", "good", "worse")},
              {"bad": None, "empty": "", "good": "text 0", "worse": None}, "the fields as JSON")
        watch = start(daemon, "watch", "--count", "1", "--fields", "worse,empty", "asked")
        perfd.wait_until(lambda: daemon.status().n_subscribers == 1, "the watch to begin")
        fire.fire("calls", 1)
        row = watch.communicate(timeout=perfd.PATIENCE)[0].splitlines()[1].split("\t")
        equal(row[4], 'empty="" worse=(fault)', "the fields as text")
        with package.Client(daemon.control) as client, client.subscribe("asked") as stream:
            fire.fire("calls", 1)
            sample = next(stream.samples())
            equal([sample.fields[name] for name in ("bad", "empty", "good", "worse")], [None, b"", b"text 0", None], "in Python")
            check('bad=(fault) empty="" ' in str(sample), str(sample))


def test_arguments_of_a_static_probe():
    """$argN in --args is where the program says, with its type; one that there is not is refused with what there is."""
    place = f"usdt:{FIRE}:fire:hit"
    with perfd.Daemon() as daemon, Fire() as fire:
        run(daemon, "add", place, "--name", "asked", "--pid", str(fire.pid), "--args", "text=+0($arg2):ustring n=$arg3 x=$arg1:x8")
        rows = watched(daemon, lambda: fire.fire("hits", 2), "--count", "2", "asked")
        equal([[row["fields"][name] for name in ("text", "n", "x")] for row in rows], [["text 0", 0, 0], ["text 1", -1, 1]], "fetched")
        process = start(daemon, "add", place, "--args", "a=$arg1 b=$arg4")
        message = process.communicate(timeout=perfd.PATIENCE)[1]
        check(process.returncode == 1 or process.returncode == 2, process.returncode)
        check("'$arg4' is no argument of this static probe that the kernel can fetch; it has arg1=" in message, message)
        check(message.endswith("  a=$arg1 b=$arg4\n            ^\n"), message)


def test_mistakes_in_fetch_args():
    """What the kernel says of them, with its caret, and what may stand there."""
    first, second = ARGUMENT
    cases = {f"a={first}:bogus": "types are u8.*ustring", "a=%nosuch:x64": f"registers are .*{first}", "a=$retval": "what a uretprobe fetches",
             f"ok={first} a=+0({second}:string": r"memory is read as \+OFFSET\(ARG\)", "a=$nothing": r"there are \$arg1, .*\$retval",
             f"a={first} a={second}": "give it another name", f"1a={first}": "no digit first", f"a={first}:string": r"as in name=\+0\(",
             f"a={first}:u8[0]": "N from 1 to 64"}
    with perfd.Daemon() as daemon:
        for args, advice in cases.items():
            complaint, column = kernel_complaint(args)
            process = start(daemon, "add", f"uprobe:{FIRE}:fire_call", "--args", args)
            message = process.communicate(timeout=perfd.PATIENCE)[1]
            equal(process.returncode, 1, message)
            check(re.search(f": {re.escape(complaint)}; .*{advice}", message), message)
            check(message.endswith(f"\n  {args}\n  {' ' * (column - 1)}^\n"), message)


def test_columns():
    """Of the process that did it, as /proc has them."""
    me = "--pid", str(os.getpid())
    with perfd.Daemon() as daemon:
        run(daemon, "add", GETPPID, *me)
        watch = start(daemon, "watch", "--count", "1", "--columns", "exe,uid,unit,container,cgroup", GETPPID)
        perfd.wait_until(lambda: daemon.status().n_subscribers == 1, "the watch to begin")
        os.getppid()
        heading, row = (line.split("\t") for line in watch.communicate(timeout=perfd.PATIENCE)[0].splitlines())
        equal(heading, ["TIME", "CPU", "TASK", "EXE", "UID", "UNIT", "CONTAINER", "CGROUP", "EVENT", "FIELDS"], "the heading")
        equal(row[3:5], [os.readlink("/proc/self/exe"), str(os.getuid())], "program and user")
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            paths = [line.rstrip("\n").split(":", 2)[2] for line in file]
        check(row[7] == "-" or row[7] in paths, f"cgroup {row[7]} is none of {paths}")
        equal(len(row), len(heading), "the columns")


def test_strings_of_the_kernel():
    """A field that points to a string of the kernel is shown as that string, and can be asked for by it; lists tell nobody where it is."""
    with open("/sys/kernel/tracing/printk_formats", encoding="ascii") as file:
        strings = dict(line.rstrip("\n").split(" : ") for line in file)
    with perfd.Daemon() as daemon:
        run(daemon, "add", "rcu:rcu_utilization")  # in interrupts, where Linux counts some that it does not write
        rows = watched(daemon, lambda: None, "--allow-loss", "--count", "20", "rcu:rcu_utilization")
        equal({f'"{row["names"]["s"]}"' for row in rows} - set(strings.values()), set(), "strings that the kernel does not have")
        text = rows[0]["names"]["s"]
        rows = watched(daemon, lambda: None, "--allow-loss", "--count", "2", "--where", f's == "{text}"', "rcu:rcu_utilization")
        equal({row["names"]["s"] for row in rows}, {text}, "what was asked for")
        watch = start(daemon, "watch", "--count", "1", "--where", f's == "{text}"', "rcu:rcu_utilization")
        line = watch.communicate(timeout=perfd.PATIENCE)[0].splitlines()[1]
        check(line.endswith(f'\ts="{text}"' if " " in text else f"\ts={text}"), line)
        check(text not in str(run(daemon, "show", "rcu:rcu_utilization")), "the list of its fields has the strings")


def test_names_of_callchains():
    """With --no-symbols, of the kernel's addresses the function and the place in it, as /proc/kallsyms has them; those of user space are numbers."""
    me = "--pid", str(os.getpid())
    functions = {}
    with open("/proc/kallsyms", encoding="ascii") as file:
        for address, _, name, *_ in map(str.split, file):
            functions.setdefault(name, set()).add(int(address, 16))
    if functions["schedule"] == {0}:
        raise perfd.Skip("kernel.kptr_restrict hides the kernel's addresses")
    with perfd.Daemon() as daemon:
        watch = start(daemon, "watch", "--no-symbols", "--count", "1", "-g", *me, "sched:sched_switch")
        perfd.wait_until(lambda: daemon.status().n_subscribers == 1, "the watch to begin")
        time.sleep(0.001)  # it gives the CPU away
        lines = [line.split("\t")[1:] for line in watch.communicate(timeout=perfd.PATIENCE)[0].splitlines() if line.startswith("\t")]
        kernel = lines[:[line[0] for line in lines].index("user")]
        equal(kernel[0][0], "kernel", "the first line")
        check(len(kernel) > 1 and any(row[2].startswith("schedule+0x") for row in kernel), kernel)
        for _, address, name in kernel:
            function, place = name.split(" ")[0].split("+")
            check(int(address, 16) - int(place, 16) in functions[function], f"{name} is at {address}")
        equal({len(row) for row in lines[len(kernel):]}, {2}, "columns of user space")


if __name__ == "__main__":
    perfd.main(globals())
