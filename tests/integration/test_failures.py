#!/usr/bin/python3
"""Every system call of start-up, and of adding events, fails once: what then?

strace(1) makes the K-th call fail, for each K until there is no such call any more. perfd either starts and does its
work, or ends with status 1 and one line of reason, and leaves nothing. A group of events is added whole, or not at all,
and then everything is as it was. Threads count their calls on their own, so one K may fail one call in each of them.

Not failed, because Linux cannot refuse them on an fd that is what it is: PERF_EVENT_IOC_DISABLE, and read(2) and
write(2) of an eventfd.
"""
import contextlib
import itertools
import os
import re
import signal
import subprocess
import tempfile

import perfd
from perfd import Daemon, NotStarted, Refused, Skip, check, equal, pb
from test_errors import state, unchanged
from test_sources import Fire, call_args, probe
from test_targets import Tree

# One event of the host that never comes, one of this process for the stream, one that is not enabled; all of them or none, or
# what a failed call is about would be pending, and opened a second later.
CONFIG = f"""version: 1
strict: true
rings: {{ size: 64KiB }}
targets: {{ test: {{ pids: [{os.getpid()}], inherit: false }} }}
groups:
  a:
    events:
      - {{ event: raw_syscalls:sys_enter, filter: id == -2 }}
  b:
    target: test
    events:
      - context-switches
      - {{ event: cpu-clock, frequency: 99, enabled: false }}
"""
FIRST_OF_MAIN = "perfd.yaml"  # before it is opened, libraries are loaded: their failures are the linker's to report
# calls of the sanitizers' own, when a program starts: they would fail as well
OF_SANITIZERS = {"openat", "mmap", "mprotect", "read", "clone3", "prlimit64"}
ORIGIN = r"; from \w+\(\) at [\w-]+\.c:\d+"  # of what ends perfd (daemon/base/error-trail.h)
# Two for each CPU: most of the time is spent waiting, for the kernel to close events and for strace.
AT_ONCE = 2 * os.cpu_count()


def need_strace(*syscalls):
    try:
        subprocess.run(["strace", "-V"], stdout=subprocess.DEVNULL, check=True)
    except FileNotFoundError:
        raise Skip("strace is not installed (tests/packages test)") from None
    if perfd.SANITIZER != "none" and OF_SANITIZERS.intersection(syscalls):
        raise Skip(f"-fsanitize={perfd.SANITIZER} makes {'/'.join(syscalls)} calls of its own: they would fail as well")


def environment():
    """LeakSanitizer cannot look at what strace looks at."""
    return {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}


class Trace:
    """A file that strace writes, and the command that makes it do so."""

    def __init__(self, syscall, error=None, k=None, paths=()):
        self.file = tempfile.NamedTemporaryFile()
        inject = ["-e", f"inject={syscall}:error={error}:when={k}"] if k else []
        only = [word for path in paths for word in ("-P", path)]
        self.command = ["strace", "-f", "--seccomp-bpf", "-q", "-y", "-o", self.file.name, "-e", f"trace={syscall}", *inject, *only]

    def lines(self):
        self.file.seek(0)
        return self.file.read().decode("utf-8", "replace").splitlines()

    def injected(self):
        """The call that was made to fail, the first if several threads had one; None if there was none."""
        return next((line for line in self.lines() if "(INJECTED)" in line), None)


def calls_before_main(syscall):
    """How many there are before perfd itself says anything, in its main thread."""
    trace = Trace(f"{syscall},openat")
    with Daemon(config=CONFIG, prefix=trace.command, env=environment()):
        pass
    before = []
    for line in trace.lines():
        if FIRST_OF_MAIN in line and "openat(" in line:
            return len(before)
        if f" {syscall}(" in line:
            before.append(line)
    raise AssertionError(f"no {FIRST_OF_MAIN} in the trace")


def works(daemon, missing):
    """All events are there, but so many fds, and a stream delivers, ends and balances."""
    with daemon.client() as client:
        events = client.request(list=pb.ListRequest()).list.events
        n_cpus = len(perfd.online_cpus())
        equal([(e.spec.name, e.enabled) for e in events],
              [(name, name != "cpu-clock") for name in ("raw_syscalls:sys_enter", "context-switches", "cpu-clock")],
              "the events")
        n_fds = sum(e.n_fds for e in events)  # a carrier is opened once more in a simpler way, and then nothing is missing
        check(3 * n_cpus - missing <= n_fds <= 3 * n_cpus, f"their fds: {n_fds}")
        items = client.subscribe(events=["context-switches"])
        if n_fds < 3 * n_cpus:  # perhaps all that there is to come
            client.stop()
        for item in items:
            if item["event"]:
                client.stop()
        equal(client.end["reason"], "stopped", "the end of the stream")


NO_REASON = r"at normal priority|\(any more\)$|capabilities are dropped|: the reader of CPU \d+ (does not run|runs again)"  # what a start says besides


def start(syscall, error, k, paths=(), gone=()):
    """One start with one failure. None if start-up has no such call, else what became of it: "works", or its reason."""
    trace = Trace(syscall, error, k, paths)
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as directory:
        try:
            with Daemon(config=CONFIG, prefix=trace.command, env=environment(), directory=directory) as daemon:
                call = trace.injected()
                if not call:
                    daemon.judged = True  # what fails later is not asked here
                    return None
                works(daemon, 1 if error in gone else 0)
            return "works"
        except NotStarted as no:
            call = trace.injected()
            check(call, f"it fails without an injected failure: {no}")
            said = [line for line in no.stderr.splitlines() if not re.search(NO_REASON, line)]
            equal(no.status, 1, f"the status after {call}, saying {said}")
            equal(len(said), 1, f"lines of reason after {call}: {said}")
            if "a required system call failed" in said[0]:
                check(re.search(ORIGIN, said[0]), f"no origin after {call}: {said}")
            check(re.match(r"(perfd|/\S+): \S+", said[0]) and len(said[0]) > 20, f"no reason after {call}: {said}")
            check(not perfd.COMPLAINT.search(no.stderr), no.stderr)
            equal(sorted(os.listdir(directory)), ["perfd.yaml"], f"left behind after {call}")
            return re.sub(rf"{directory}/perfd.yaml:[\d:]+ |\d+", "", said[0])


def fail_each(syscall, *errors, paths=(), first=None, limit=400, gone=()):
    """Each call of start-up with each error. gone: errors that say that a CPU or a task is not there (any more)."""
    need_strace(syscall)
    first = 1 + calls_before_main(syscall) if first is None else first
    reached, wrong, reasons = 0, [], {}
    for error in errors:
        for k in range(first, first + limit):
            try:
                outcome = start(syscall, error, k, paths, gone)
            except AssertionError as e:
                wrong.append(f"{error} at {k}: {e}")
                outcome = "wrong"
            if outcome is None:
                break
            reached += 1
            reasons[outcome] = reasons.get(outcome, 0) + 1
        else:
            raise AssertionError(f"more than {limit} calls of {syscall}")
    print(f"  {syscall}: {reached} failures, {reasons.pop('works', 0)} starts, and {len(reasons)} reasons:")
    for text in sorted(reasons):
        print(f"    {text[:110]}")
    check(reached > 0, f"start-up makes no call of {syscall}")
    check(not wrong, f"{len(wrong)} of {reached}:\n" + "\n".join(wrong))


def test_start_perf_event_open():
    fail_each("perf_event_open", "EMFILE", "EACCES", "EINVAL", "ENOMEM", "ENOSPC")
    fail_each("perf_event_open", "ESRCH", "ENODEV", gone=["ESRCH", "ENODEV"])


def test_start_mmap():
    fail_each("mmap", "ENOMEM", "EPERM")


def test_start_ioctl():
    fail_each("ioctl", "EINVAL", "ENOMEM", "EACCES")


def test_start_fds():
    for syscall in ("eventfd2", "epoll_create1", "signalfd4", "socket"):
        fail_each(syscall, "EMFILE", "ENOMEM")


def test_start_epoll_ctl():
    fail_each("epoll_ctl", "ENOSPC", "ENOMEM")


def test_start_sockets():
    fail_each("bind", "EADDRINUSE", "EACCES")
    fail_each("listen", "EADDRINUSE")
    fail_each("chmod", "EPERM")


def test_start_threads():
    fail_each("clone3", "EAGAIN")
    fail_each("mprotect", "ENOMEM")
    fail_each("sched_setaffinity", "EINVAL")
    fail_each("sched_setscheduler", "EPERM")


def test_start_files():
    fail_each("openat", "EMFILE", "EACCES", "ENOENT")


def test_start_limits():
    fail_each("prlimit64", "EPERM")
    fail_each("statfs", "EACCES")


def test_start_read():
    """Of files of the kernel: the CPUs, a format."""
    for path in ("/sys/devices/system/cpu/online", "/sys/kernel/tracing/events/raw_syscalls/sys_enter/format"):
        fail_each("read", "EIO", paths=[path], first=1)


# ---- changes ---------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def attached(daemon, trace):
    """strace on a running daemon, all of its threads."""
    tracer = subprocess.Popen([*trace.command, "-p", str(daemon.pid)], stderr=subprocess.PIPE)
    try:
        perfd.wait_until(lambda: all_traced(daemon.pid, tracer.pid), "all threads traced")
        yield
    finally:
        tracer.send_signal(signal.SIGINT)
        tracer.communicate(timeout=perfd.PATIENCE)


def all_traced(pid, tracer):
    """Whether it traces all threads of a process; one that reads for a stopped reader may end while they are looked at."""
    for task in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError), \
             open(f"/proc/{pid}/task/{task}/status", encoding="utf-8") as f:
            if f"TracerPid:\t{tracer}\n" not in f.read():
                return False
    return True


def group(pid):
    """Eight events, in one request; one of them is of a process and its child."""
    return [pb.EventSpec(event=event, name=f"group-{i}", disabled=i == 7, **more) for i, (event, more) in enumerate([
        ("sched:sched_wakeup", {"filter": "pid != 0"}), ("sched:sched_wakeup", {}), ("sched:sched_process_exit", {}),
        ("context-switches", {}), ("cpu-clock", {"frequency": 10}), ("page-faults", {"period": 100}),
        ("sched:sched_switch", {"target": pb.Target(pids=[pid])}), ("task-clock", {})])]


class Adding:
    """A running daemon, and events that are added to it in one request, again and again."""

    def __init__(self, daemon, client, specs):
        self.daemon, self.client = daemon, client
        self.request = pb.AddRequest(events=specs)
        self.before = state(daemon)
        equal(self.add(), True, "adding without a failure")
        self.whole = self.take_added()
        unchanged(daemon, self.before, "what is left of added and removed events")

    def add(self):
        """True, or the reason of the refusal."""
        try:
            return bool(self.client.request(add=self.request))
        except Refused as no:
            check(no.response.message, "no message")
            return no.response.reason

    def take_added(self):
        """What is there beside what was there before: {name: (enabled, fds)}. It is removed."""
        self.daemon.status()
        events = self.daemon.monitor.request(list=pb.ListRequest()).list.events
        events = [e for e in events if e.id not in {known[0] for known in self.before["events"]}]
        self.client.request(remove=pb.SelectRequest(names=[e.spec.name for e in events]))
        return {e.spec.name: (e.enabled, e.n_fds) for e in events}

    def check_whole(self, call, missing):
        """All of them are there, but so many fds as one of `missing`."""
        added = self.take_added()
        equal({name: enabled for name, (enabled, _) in added.items()},
              {name: enabled for name, (enabled, _) in self.whole.items()}, f"what was added after {call}")
        lacks = sum(n for _, n in self.whole.values()) - sum(n for _, n in added.values())
        check(lacks in missing, f"{lacks} fds are missing after {call}: {added}")

    def add_failing(self, trace, reason, missing):
        """One try with one failure. None if there was no such call, else True, or the reason."""
        with attached(self.daemon, trace):
            outcome = self.add()
        call = trace.injected()
        if outcome is True:
            self.check_whole(call, missing if call else {0})
        else:
            check(call, f"refused without a failure: {outcome}")
            check(outcome == reason or not reason, f"the reason is {outcome} after {call}")
        unchanged(self.daemon, self.before, f"what {call} left")
        return outcome if call else None


def fail_each_add(syscall, errors, specs, paths=(), missing=None, step=1):
    """Each call, of each thread, while events are added, fails with each of `errors`: {error: reason of the refusal}.

    missing: {error: how many fds an event may lack because of it}, where the error says that a CPU or a task is gone.
    step: from the 20th call on only each so many.
    """
    need_strace()
    outcomes, wrong, tried = {}, [], 0
    with Daemon(config=CONFIG) as daemon, daemon.client() as client:
        adding = Adding(daemon, client, specs)
        for error, reason in errors.items():
            for k in itertools.chain(range(1, 20), range(20, 2000, step)):
                trace = Trace(syscall, error, k, paths)
                try:
                    outcome = adding.add_failing(trace, reason, (missing or {}).get(error, {0}))
                except AssertionError as e:
                    outcome = "wrong"
                    wrong.append(f"{error} at {k}: {e}")
                    check(len(wrong) < 4, "\n".join(wrong))
                except (perfd.subscriber.Broken, ConnectionError) as e:
                    raise AssertionError(f"{error} at {k}, {trace.injected()}: {e!r}; before: {wrong}") from None
                if outcome is None:
                    break
                tried += 1
                outcomes[outcome] = outcomes.get(outcome, 0) + 1
            else:
                raise AssertionError(f"more than 2000 calls of {syscall}")
    done = outcomes.pop(True, 0)
    print(f"  {syscall}: {tried} failures{f' (from the 20th call on each {step}th)' if step > 1 else ''}: {done} done, "
          f"{sum(outcomes.values())} refused {outcomes}")
    check(tried > 0, f"no call of {syscall}")
    check(not wrong, "\n".join(wrong))


def test_add_perf_event_open():
    with perfd.Family() as family:
        fail_each_add("perf_event_open", {"EMFILE": "too-many-fds", "EACCES": "no-permission", "EINVAL": "kernel",
                                          "ENOSPC": "kernel"}, group(family.pid))
        fail_each_add("perf_event_open", {"ESRCH": None}, group(family.pid), missing={"ESRCH": {1}})


def test_add_ioctl():
    with perfd.Family() as family:
        fail_each_add("ioctl", {"EINVAL": None, "EACCES": "kernel"}, group(family.pid))


def test_add_openat_without_fds():
    with perfd.Family() as family:
        fail_each_add("openat", {"EMFILE": "too-many-fds"}, group(family.pid), step=5)


def test_add_openat_of_what_is_forbidden():
    child = {0, len(perfd.online_cpus())}  # is not there, if it is this one
    with perfd.Family() as family:
        fail_each_add("openat", {"EACCES": "no-permission"}, group(family.pid), missing={"EACCES": child}, step=11)


def test_add_openat_of_what_is_gone():
    child = {0, len(perfd.online_cpus())}
    with perfd.Family() as family:
        fail_each_add("openat", {"ENOENT": None}, group(family.pid), missing={"ENOENT": child}, step=11)


def test_add_glob():
    """A glob is all that matches, or nothing."""
    fail_each_add("openat", {"EMFILE": "too-many-fds", "EACCES": "no-permission"}, [pb.EventSpec(event="ir[q]:*")])
    fail_each_add("read", {"EIO": "kernel"}, [pb.EventSpec(event="ir[q]:*")], paths=[f"{perfd.TRACING}/available_events"])


def test_add_read():
    formats = [f"/sys/kernel/tracing/events/sched/{name}/format" for name in ("sched_wakeup", "sched_process_exit")]
    with perfd.Family() as family:
        fail_each_add("read", {"EIO": "kernel"}, group(family.pid), paths=formats)


# ---- where it began --------------------------------------------------------------------------------------------------


def end_by(syscall, error, specs, ask, paths=()):
    """What perfd says when a system call fails in the middle of a request that it cannot do without."""
    need_strace(syscall)
    with Daemon(config=CONFIG) as daemon, daemon.client() as client:
        client.request(add=pb.AddRequest(events=specs))
        trace = Trace(syscall, error, "1+", paths)
        with attached(daemon, trace):
            with contextlib.suppress(perfd.subscriber.Broken, ConnectionError, perfd.Refused):
                ask(client)
            status = daemon.process.wait(perfd.PATIENCE)
        check(trace.injected(), "nothing was made to fail")
        daemon.judged = True
        print(f"  {[line for line in daemon.stderr().splitlines() if re.search(ORIGIN, line)]}")
        return status, daemon.stderr()


def test_trail_of_main():
    """A reader disables on its CPU, main is told."""
    status, said = end_by("ioctl", "EIO", [pb.EventSpec(event="context-switches", name="doomed", target=pb.Target(cpus="0"))],
                          lambda client: client.request(remove=pb.SelectRequest(names=["doomed"])))
    equal(status, 1, f"the status, saying {said}")
    line = next((line for line in said.splitlines() if "a required system call failed" in line), "")
    check(re.search(ORIGIN + r", reader of CPU 0, which disables events, .*request remove, a request by .*through ", line), said)


def test_trail_of_reader():
    """A reader that cannot read what an event has counted ends perfd, and says of which."""
    status, said = end_by("read", "EIO", [pb.EventSpec(event="context-switches", name="doomed", target=pb.Target(cpus="0"))],
                          lambda client: client.request(ledger=pb.LedgerRequest()), paths=["anon_inode:[perf_event]"])
    equal(status, -signal.SIGABRT, f"the status, saying {said}")
    line = next((line for line in said.splitlines() if "cannot continue" in line), "")
    check(re.search(r"reader of CPU \d+ cannot continue; .*: Input/output error; from read_failed\(\) at open-read\.c:\d+, event \S+, "
                    r"through reader_read_counts\(\) at ", line), said)


# ---- one request with a source of every kind -------------------------------------------------------------------------


@contextlib.contextmanager
def every_kind():
    """Eight events: probes in tracefs and of the PMU, a group, a breakpoint, a filter, cgroups, an external one."""
    with Tree() as tree, Fire(tree.make("here")) as fire:
        target = pb.Target(pids=[fire.pid], no_inherit=True)
        yield [pb.EventSpec(name=f"kind-{i}", **spec) for i, spec in enumerate([
            probe("fire_call", args=call_args(), target=target),
            probe("fire:hit", "usdt", target=target),
            {"event": "{page-faults,task-clock}", "interval": 10**9, "target": target},
            {"event": f"mem:{fire.watched:#x}/8:w", "target": target},
            {"event": "sched:sched_process_exit", "filter": "pid == -2"},
            {"event": "page-faults", "target": pb.Target(cgroups=[tree.path("here")])},
            {"event": "external:note", "fields": [pb.ExternalField(name="a", type="u8")]},
            probe("fire_call", "uretprobe", target=pb.Target(cgroups=[tree.path("h*")]))])]


def test_add_every_kind_perf_event_open():
    with every_kind() as specs:
        fail_each_add("perf_event_open", {"EMFILE": "too-many-fds", "EINVAL": None}, specs)


def test_add_every_kind_ioctl():
    with every_kind() as specs:
        fail_each_add("ioctl", {"ENOMEM": "no-memory"}, specs)


def test_add_every_kind_openat():
    with every_kind() as specs:
        fail_each_add("openat", {"EMFILE": None}, specs, step=9)


def test_add_every_kind_files():
    """Definitions are written, formats and ELF files read, folders listed."""
    with every_kind() as specs:
        fail_each_add("write", {"EINVAL": None, "ENOMEM": "no-memory"}, specs, paths=[f"{perfd.TRACING}/uprobe_events"])
        fail_each_add("pread64", {"EIO": None}, specs)
        fail_each_add("getdents64", {"EIO": None}, specs, step=5)
        fail_each_add("read", {"EIO": None}, specs, paths=[f"{perfd.TRACING}/events/sched/sched_process_exit/format",
                                                           "/sys/bus/event_source/devices/uprobe/type"])


def test_add_every_kind_memory():
    """For ELF files."""
    need_strace("mmap")
    with every_kind() as specs:
        fail_each_add("mmap", {"ENOMEM": "no-memory"}, specs)


def test_add_every_kind_watches():
    """Of what cgroups are called."""
    with every_kind() as specs:
        fail_each_add("inotify_init1", {"EMFILE": None}, specs)
        fail_each_add("inotify_add_watch", {"ENOSPC": None}, specs)


if __name__ == "__main__":
    perfd.main(globals(), seconds=400, at_once=AT_ONCE)
