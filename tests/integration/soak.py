#!/usr/bin/python3
"""Everything at once, for as long as it is told: loads that change, subscribers that come and go, events that are added,
changed and removed. In each calm in between, and at the end, perfd has to be as it was in the beginning.

usage: soak.py [--for DURATION] [--calm-each DURATION] [--seed N]      durations: 90, 90s, 10m, 2h; 60s and a quarter of it

While it goes on, every ledger has to add up: of events, rings, subscribers. Every stream that is asked for its end has to
be in order, with gaps that tell what is missing, and a closing ledger that adds up too. Each calm ends all loads, streams
and events; then file descriptors and threads have to be those of the beginning, no thread may wake, and memory may be more by
what batches and short queues take, which perfd keeps. If there were calms enough, it may not have grown from their first half
to their second.

The decisions follow from the seed, which is printed; what they meet follows from the machine.
"""
import argparse
import collections
import fnmatch
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time

import doings
import perfd
from asleep import count_sleeps, wait_until_asleep
from checker import Checker
from perfd import Daemon, Workload, check, equal, pb, wait_until
from subscriber import Refused
from test_promises import CPUS, GETPPID, SLOW, SYS_ENTER

LOADS_MAX, SUBSCRIBERS_MAX, EVENTS_MAX = 4, 8, 24
# Batches, once they were used: batches.pool of each CPU, and 64 for what clients emit.
BATCHES = len(perfd.online_cpus()) * (2 << 20) + 64 * (128 << 10)
# What malloc(3) keeps of queues that were too short to be given back.
KEPT = SUBSCRIBERS_MAX * (1 << 20)
# RSS of calms against others: the tasks that perfd remembers, of which a busy machine always has other ones. A kilobyte lost
# in each of the thousands of steps of ten minutes is more.
RSS_ROOM = 3 << 20
CALMS_TO_COMPARE = 8
QUEUES = (1 << 16, 1 << 20, 1 << 23)
NORMAL = "version: 1\nreaders:\n  priority: normal\ndispatcher:\n  priority: normal\n"  # threads that are interrupted anywhere


def duration(text):
    match = re.fullmatch(r"(\d+)([smh]?)", text)
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration such as 90s, 10m or 2h")
    return int(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]


class Stream(Checker):
    """A checker that may be slow, and may be given things that come late."""

    def __init__(self, daemon, rng, names):
        self.order = rng.choice(("time", "cpu"))
        options = ["--overflow", rng.choice(("oldest", "oldest", "newest", "disconnect"))]
        if rng.random() < 0.3:
            options += ["--rate", str(rng.choice((100, 5000, 50_000)))]
        if rng.random() < 0.3:
            options += ["--where", rng.choice(("pid > 1", f"cpu == {CPUS[0]}", "comm == 'workload'", "comm ~ 'work*' && tid != 7"))]
        events = rng.choice(((), (), ("soak-*",), ("soak-calls*",), rng.sample(names, min(2, len(names)))))
        if not all(any(fnmatch.fnmatchcase(name, glob) for name in names) for glob in events):
            events = ()  # a name of which nothing runs is refused
        super().__init__(daemon, self.order, *events, queue=rng.choice(QUEUES), options=options)

    def finish(self, seconds=perfd.PATIENCE):
        seen = self.end(seconds)
        if self.order == "time":  # what interrupts and clients do comes in the order of its CPU when it is read
            equal(seen["backwards"], 0, f"items older than their predecessor, or gaps in a wrong place: {seen}")
        equal(seen["matched"], seen["sent"] + seen["queued"] + seen["outbox"] + seen["memory"] + seen["late"], "the stream's sum")
        return seen


class Soak:
    def __init__(self, daemon, client, rng):
        self.daemon, self.client, self.rng = daemon, client, rng
        self.loads, self.streams, self.stopped, self.events = [], [], [], []
        self.n_names = 0
        self.did = collections.Counter()

    # ---- what can happen ---------------------------------------------------------------------------------------------

    def begin_load(self):
        if len(self.loads) >= LOADS_MAX:
            return self.end_load()
        cpus = self.rng.sample(CPUS, self.rng.randint(1, len(CPUS)))
        rate = self.rng.choice((1, 100, 5000, 5000, 50_000, 0 if not SLOW else 5000))
        load = Workload("flood", 0, rate, cpus=cpus)
        load.go()
        self.loads.append(load)
        return "load"

    def end_load(self):
        if not self.loads:
            return None
        load = self.loads.pop(self.rng.randrange(len(self.loads)))
        with load:
            load.done(stop=True)
            load.exit()
        return "load ended"

    def short_lives(self):
        """Processes that are gone at once, one of them the target of an event."""
        with Workload(self.rng.choice(("forks", "execs")), self.rng.randint(10, 200), cpus=self.rng.sample(CPUS, 1)) as load:
            self.add_specs({"event": self.rng.choice((SYS_ENTER, "page-faults", "task-clock")),
                            "target": pb.Target(pids=load.pids)})
            load.go()
            load.done()
            load.exit()
        return "short lives"

    def gone_target(self):
        process = subprocess.Popen(["/bin/true"])
        process.wait()
        try:
            self.add_specs({"event": "page-faults", "target": pb.Target(pids=[process.pid])}, must=False)
        except Refused as no:
            check("no longer" in no.response.message or "no process" in no.response.message or
                  no.response.reason in ("no-process", "not-found", "bad-target", "gone"), no.response.message)
            return "target that is gone"
        return "target"

    def add_specs(self, *specs, must=True):
        named = []
        for spec in specs:
            self.n_names += 1
            kind = {SYS_ENTER: "calls", "cpu-clock": "clock"}.get(spec["event"], "other")
            named.append(pb.EventSpec(**{**spec, "name": f"soak-{kind}-{self.n_names}"}))
        try:
            added = self.client.request(add=pb.AddRequest(events=named)).added.events
        except Refused as no:
            if not must:
                raise
            raise AssertionError(f"{named}: {no.response.message}") from None
        self.events += [(event.name, spec["event"]) for event, spec in zip(added, specs)]

    def add_event(self):
        if len(self.events) >= EVENTS_MAX:
            return self.remove_event()
        rng = self.rng
        target = rng.choice((None, None, pb.Target(cpus=str(rng.choice(CPUS)))))
        if self.loads and rng.random() < 0.4:
            target = pb.Target(pids=rng.choice(self.loads).pids)
        spec = rng.choice((
            {"event": SYS_ENTER, "filter": rng.choice(("", f"id == {GETPPID}", "id != 0"))},
            {"event": SYS_ENTER, "period": rng.choice((1, 3, 100))},
            {"event": "sched:sched_switch", "filter": rng.choice(("", "prev_pid > 1"))},
            {"event": "sched:sched_process_fork"}, {"event": "sched:sched_process_exit"},
            {"event": "cpu-clock", "frequency": rng.choice((99, 999)), "callchain": rng.choice(("CALLCHAIN_NONE", "CALLCHAIN_BOTH"))},
            {"event": "page-faults"}, {"event": "context-switches"},
            {"event": "{task-clock,page-faults,context-switches}", "interval": rng.choice((20, 200)) * 10**6},
            {"event": "external:soak", "fields": [pb.ExternalField(name="n", type="u64")]},
        ))
        if target and not spec["event"].startswith("external:"):
            spec = {**spec, "target": target}
        if rng.random() < 0.1:
            spec = {**spec, "disabled": True}
        self.add_specs(spec)
        return "event"

    def remove_event(self):
        if not self.events:
            return None
        name, _ = self.events.pop(self.rng.randrange(len(self.events)))
        self.client.request(remove=pb.SelectRequest(names=[name]))
        return "event removed"

    def change_event(self):
        if not self.events:
            return None
        name, event = self.rng.choice(self.events)
        how = self.rng.choice(("enable", "disable", "filter", "filter", "period"))
        try:
            if how == "filter" and event in (SYS_ENTER, "sched:sched_switch"):
                field = "id" if event == SYS_ENTER else "prev_pid"
                text = self.rng.choice(("", f"{field} != {self.rng.randint(1000, 9000)}"))
                self.client.request(set_filter=pb.SetFilterRequest(name=name, filter=text))
            elif how == "period" and event in (SYS_ENTER, "page-faults"):
                self.client.request(set_period=pb.SetPeriodRequest(name=name, period=self.rng.choice((1, 2, 50))))
            else:
                how = "enable" if how != "disable" else how
                self.client.request(**{how: pb.SelectRequest(names=[name])})
        except Refused as no:  # all of its processes have ended
            check(no.response.reason in ("no-process", "not-found", "bad-target", "gone"), f"{how} {name}: {no.response.message}")
            return f"{how} refused"
        return how

    def emit(self):
        names = [name for name, event in self.events if event.startswith("external:")]
        if not names:
            return None
        samples = [pb.ExternalSample(event=self.rng.choice(names), time=time.clock_gettime_ns(time.CLOCK_MONOTONIC),
                                     pid=os.getpid(), tid=os.getpid(), values=[pb.ExternalValue(number=i)]) for i in range(100)]
        self.client.request(emit=pb.EmitRequest(samples=samples))
        return "emit"

    def subscribe(self):
        if len(self.streams) + len(self.stopped) >= SUBSCRIBERS_MAX:
            return self.unsubscribe()
        self.streams.append(Stream(self.daemon, self.rng, [name for name, _ in self.events]))
        return "stream"

    def unsubscribe(self):
        if not self.streams:
            return None
        with self.streams.pop(self.rng.randrange(len(self.streams))) as stream:
            stream.finish(60)
        return "stream ended"

    def kill_subscriber(self):
        if not self.streams:
            return None
        with self.streams.pop(self.rng.randrange(len(self.streams))) as stream:
            stream.process.kill()
        return "stream killed"

    def stop_subscriber(self):
        """It does not read any more, and is killed later."""
        if not self.streams or len(self.stopped) >= 2:
            return self.kill_stopped()
        stream = self.streams.pop(self.rng.randrange(len(self.streams)))
        stream.process.send_signal(signal.SIGSTOP)
        self.stopped.append(stream)
        return "stream stopped"

    def kill_stopped(self):
        if not self.stopped:
            return None
        with self.stopped.pop(0) as stream:
            stream.process.kill()
        return "stopped stream killed"

    # ---- what has to hold --------------------------------------------------------------------------------------------

    def check_ledger(self):
        ledger = self.daemon.ledger()
        for row in ledger.events:
            total = row.delivered + row.filtered + sum(count.count for count in row.lost)
            equal(total, row.occurred, f"the sum of {row}")
        for row in ledger.subscribers:
            equal(row.matched, row.sent + row.queued + sum(count.count for count in row.dropped), f"the sum of {row}")
        for row in (*ledger.events, *ledger.rings, *ledger.subscribers):
            check(row.balanced, f"not balanced: {row}")
        return "ledger"

    def step(self):
        actions = ((self.begin_load, 6), (self.end_load, 5), (self.short_lives, 2), (self.gone_target, 1), (self.add_event, 12),
                   (self.remove_event, 8), (self.change_event, 10), (self.emit, 6), (self.subscribe, 8), (self.unsubscribe, 5),
                   (self.kill_subscriber, 1), (self.stop_subscriber, 2), (self.check_ledger, 4))
        action = self.rng.choices([a for a, _ in actions], [w for _, w in actions])[0]
        self.did[action() or "nothing to do"] += 1

    def end_all(self):
        """Each in its way; whatever fails, nothing stays behind."""
        while self.loads:
            self.end_load()
        self.check_ledger()
        while self.stopped:
            self.kill_stopped()
        while self.streams:
            self.unsubscribe()
        if self.events:
            self.client.request(remove=pb.SelectRequest(names=[name for name, _ in self.events]))
            self.events.clear()

    def close(self):
        for each in (*self.loads, *self.streams, *self.stopped):
            each.__exit__()


class Calm:
    """What perfd holds while nobody wants anything."""

    def __init__(self, daemon):
        self.daemon = daemon
        daemon.status()
        wait_until(lambda: daemon.status().n_subscribers == 0, "no subscriber")
        self.threads = threads_of(daemon)
        self.fds = daemon.fds()

    def again(self):
        try:
            wait_until(lambda: self.daemon.fds() == self.fds and self.daemon.status().n_subscribers == 0, "the fds of before")
        except AssertionError:
            raise AssertionError(f"fds are {self.daemon.fds()} instead of {self.fds}") from None
        try: # the backup of a reader that others kept from its CPU is still there for a moment
            wait_until(lambda: threads_of(self.daemon) == self.threads, "the threads of before")
        except AssertionError:
            raise AssertionError(f"threads are {threads_of(self.daemon)} instead of {self.threads}") from None
        equal(self.daemon.status().n_enabled, 0, "enabled events")
        return self.daemon.rss()


def threads_of(daemon):
    """Their names."""
    return sorted(name for name, _ in doings.threads_of(daemon.pid))


def check_idle(daemon, seconds, tries=3):
    """Nobody wakes for so long. A look that is due at losses of before may be in the first tries: perfd looks once a second."""
    for _ in range(tries):
        before = wait_until_asleep(daemon.pid)
        threading.Event().wait(seconds)  # the time that is measured, not a way to wait for something
        after = count_sleeps(daemon.pid)
        if after == before:
            return
    equal(after, before, f"wakeups in {seconds} s without an event, {tries} times")


def soak(daemon, client, seconds, calm_each, seed):
    rng = random.Random(seed)
    everything = Soak(daemon, client, rng)
    calm = Calm(daemon)
    begin, before = time.monotonic(), daemon.rss()
    next_calm, rss = begin + calm_each, []
    try:
        while time.monotonic() < begin + seconds:
            everything.step()
            time.sleep(rng.uniform(0, 0.1))  # the pace of events, nothing waits for it
            if time.monotonic() > min(next_calm, begin + seconds):
                everything.end_all()
                rss.append(calm.again())
                check_idle(daemon, 1)
                print(f"  {time.monotonic() - begin:5.0f} s: {sum(everything.did.values())} steps, RSS {rss[-1] >> 10} KiB",
                      flush=True)
                next_calm += calm_each
    finally:
        everything.close()
    print("  " + ", ".join(f"{what} {n}" for what, n in sorted(everything.did.items())))
    if perfd.SANITIZER == "none":  # which keeps what is freed
        check(max(rss) <= before + BATCHES + KEPT + RSS_ROOM, f"RSS was {before}, and then {rss}")
        half = len(rss) // 2
        if len(rss) >= CALMS_TO_COMPARE:
            check(min(rss[half:]) <= max(rss[:half]) + RSS_ROOM, f"RSS grows: {rss}")
    check_idle(daemon, min(10, seconds / 10))


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n\n", maxsplit=1)[0])
    parser.add_argument("--for", type=duration, default=60, dest="seconds")
    parser.add_argument("--calm-each", type=duration)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    arguments = parser.parse_args()
    perfd.need_root()
    calm_each = arguments.calm_each or max(5, min(60, arguments.seconds // 4))
    config = random.Random(arguments.seed).choice((None, NORMAL))
    print(f"soak: {arguments.seconds} s, a calm each {calm_each} s, --seed {arguments.seed}" +
          (", no thread before others" if config else ""), flush=True)
    try:
        with Daemon(config) as daemon, daemon.client() as client:
            soak(daemon, client, arguments.seconds, calm_each, arguments.seed)
    except Exception as why:
        print(f"FAIL soak: {type(why).__name__}: {why}", flush=True)
        raise
    print("ok soak")


if __name__ == "__main__":
    sys.exit(main())
