#!/usr/bin/python3
"""The ledger against what really happened: random sequences of everything that changes what is counted, under loads whose
calls are known one by one.

usage: model.py [--steps N] [--seed N] [--trace]

Each call of the load (serial-load.c) has a serial number, which says which filters it passes; so a model of a few lines knows
of each event and CPU how often it occurred, whatever was changed between the calls. Where a change meets running calls, the
model knows the least and the most: what all states of the event let through that it had meanwhile, and what any of them did.
Changes that let the same calls through, as another text of the same filter, another size of the ring buffers, or other events that
come and go, leave both the same.

A row of the ledger that is called exact has to be between the two at any moment, and all rows have to add up. What streams
get (serial-check.c) has to be in order, as far as PROTOCOL.md says it of streams by CPU, each serial number once, and with what
gaps tell of as many as the ledger says were delivered.

Sequences are of 50 steps each, with a daemon and a configuration of its own: tiny rings, few batches, readers that have to wait
for their CPU. The decisions follow from the seed, which is printed; what they meet follows from the machine.
"""
import argparse
import collections
import contextlib
import json
import os
import random
import signal
import sys
import time

import perfd
from perfd import Daemon, check, equal, pb
from serials import CPUS, CYCLE, FILTERS, LOAD, OF_HOST, PROBE, PROBE_ARGS, Event
from test_targets import Tree

CHECK = os.path.join(perfd.BUILD, "tests", "integration", "serial-check")
SLOW = perfd.SANITIZER != "none"
SEQUENCE = 50  # steps with one daemon
EVENTS_MAX, STREAMS_MAX = 10, 3


class Stream(perfd.Line):
    """serial-check: all events, or some, or under a condition; quick or slow."""

    def __init__(self, daemon, order, queue, options=(), events=()):
        super().__init__([CHECK, *options, daemon.stream, order, str(queue), *events])
        self.order, self.is_whole = order, not options and not events
        self.before = None  # delivered, by event, if nothing ran when it began
        equal(self.hear(), ["subscribed"], "the first word of the stream")

    def end(self, must_be_ordered):
        self.process.send_signal(signal.SIGTERM)
        seen = json.loads(" ".join(self.hear()))
        equal(self.process.wait(perfd.PATIENCE), 0, "the status of the stream")
        if self.order == "time" or must_be_ordered:
            equal(seen["backwards"], 0, f"samples older than what came before them, stream by {self.order}: {seen}")
        equal(seen["matched"], seen["sent"] + seen["outbox"] + seen["late"] + seen["queued"], f"the stream's sum: {seen}")
        equal(seen["sent"], seen["items"], f"items sent and received: {seen}")
        equal(sum(missed for _, missed in seen["events"].values()), seen["outbox"], f"items of gaps: {seen}")
        return seen


def row_of(message):
    """A row of the ledger as serial-check prints it."""
    lost = {c.reason: c.count for c in message.lost}
    return {"name": message.name, "id": message.id, "cpu": message.cpu, "occurred": message.occurred, "delivered": message.delivered,
            "filtered": message.filtered, "lost": sum(lost.values()), "unwritten": lost["kernel_unwritten"],
            "balanced": message.balanced, "exact": message.exact, "removed": message.removed, "stalled": message.stalled,
            "text": str(message)}


class Model:
    def __init__(self, daemon, client, load, rng, found, reads_elsewhere, cgroup):
        self.daemon, self.client, self.load, self.rng, self.found = daemon, client, load, rng, found
        self.cgroup = cgroup  # of all that the load does, or None
        self.reads_elsewhere = reads_elsewhere
        self.pids = dict(zip(CPUS, load.pids))
        self.events, self.removed, self.streams = {}, {}, []
        self.n_names = self.n_texts = 0
        self.serial = CYCLE
        self.forks = 0  # of the calls that are running
        self.run = {}  # {cpu: [(first, count, by a child)]} of the calls that are running
        self.other, self.doing = daemon.client(), []
        self.keeper = Stream(daemon, "time", 1 << 27)

    # ---- the load ------------------------------------------------------------------------------------------------------

    def begin(self, most):
        rng, words, hogs = self.rng, [], []
        self.forks = forks = rng.choice((0, 0, 0, 1, 5))
        pace = rng.choice((0, 0, 10, 100))
        if pace:
            most = min(most, 100 * pace)
        for cpu in CPUS:
            n = rng.randint(1, most) if rng.random() < 0.9 else 0
            child = n // 2 // forks * forks if forks else 0
            self.run[cpu] = [(self.serial, child, True), (self.serial + child, n - child, False)]
            words += [self.serial, n]
            self.serial += n
            if rng.random() < 0.2 and not pace and n < 50_000:  # nothing else runs there meanwhile
                hogs.append(self.pids[cpu])
        for pid in self.pids.values():
            is_hog = pid in hogs
            os.sched_setscheduler(pid, os.SCHED_FIFO if is_hog else os.SCHED_OTHER, os.sched_param(50 if is_hog else 0))
        self.load.say(" ".join(map(str, ("go", forks, pace, *words))))
        return f"{sum(words[1::2])} calls" + (f", {forks} forks" if forks else "") + (", hogs" if hogs else "")

    def end(self):
        equal(self.load.hear(), ["done"], "the word of the load")
        for event in (*self.events.values(), *self.removed.values()):
            event.ran(self.run)
        self.run, self.forks = {}, 0

    # ---- what can happen -----------------------------------------------------------------------------------------------

    def freeze(self):
        """The whole daemon stands still for a moment, so that rings overflow wherever it is just now."""
        time.sleep(self.rng.uniform(0, 0.002))
        os.kill(self.daemon.pid, signal.SIGSTOP)
        time.sleep(self.rng.uniform(0, 0.02))
        os.kill(self.daemon.pid, signal.SIGCONT)

    def ask(self, **body):
        """A change, perhaps with a freeze in its middle, perhaps with a ledger that another client asks for meanwhile."""
        freezes, looks = self.rng.random() < 0.15, self.rng.random() < 0.15
        self.client.send(**body)
        if looks:
            self.other.send(ledger=pb.LedgerRequest())
        if freezes:
            self.freeze()
        response = self.client.receive().response
        check(response.status == pb.STATUS_OK, f"{body}: {response.message}")
        if looks:
            self.check_rows([row_of(row) for row in self.other.receive().response.ledger.events], self.events, False)
        return response

    def text(self, event, text):
        """Another text for the same filter."""
        self.n_texts += 1
        return f"({text}) && common_pid != {1 + self.n_texts % 50}"

    def add(self):
        if len(self.events) >= EVENTS_MAX:
            return self.remove()
        rng = self.rng
        self.n_names += 1
        event = rng.choice([e for e in FILTERS if e != PROBE]) if rng.random() < 0.9 else PROBE
        text = rng.choice(list(FILTERS[event]))
        spec = {"event": event, "name": f"m-{self.n_names}", "filter": self.text(event, text)}
        if event == PROBE:
            spec["args"] = PROBE_ARGS
        pids, cpus, children, whom = None, CPUS, True, "the host"
        if self.cgroup and rng.random() < 0.15:
            whom = "a cgroup"
            spec["target"] = pb.Target(cgroups=[self.cgroup])
        elif event in OF_HOST and rng.random() < 0.4:
            cpus = rng.choice(self.cpus_of_events())
            spec["target"] = pb.Target(cpus=",".join(map(str, cpus)))
        else:
            pids = rng.choice((list(self.pids.values()), [rng.choice(list(self.pids.values()))]))
            children = rng.random() < 0.7
            spec["target"] = pb.Target(pids=pids, no_inherit=not children)
            whom = f"{len(pids)} tasks{' and children' if children else ''}"
        if rng.random() < 0.15:
            spec["disabled"] = True
        if rng.random() < 0.3:
            spec["period"] = rng.choice((1, 3))
        new = Event(spec["name"], event, text, not spec.get("disabled"), children)
        new.covers = {cpu: cpu in cpus and (pids is None or self.pids[cpu] in pids) for cpu in CPUS}
        new.period = spec.get("period", 1)
        new.samples = new.period > 1
        self.events[new.name] = new
        new.changed()
        self.ask(add=pb.AddRequest(events=[pb.EventSpec(**spec)]))
        return f"add {new.name} {event} on {whom} {spec.get('period', '')} {text!r} {'disabled' if not new.enabled else ''}"

    def cpus_of_events(self):
        """Lists of which an event may have one."""
        return CPUS, CPUS[:1], CPUS[-1:]

    def any(self):
        return self.rng.choice(list(self.events.values())) if self.events else None

    def remove(self):
        event = self.any()
        if not event:
            return None
        self.ask(remove=pb.SelectRequest(names=[event.name]))
        event.enabled = False
        event.changed()
        self.removed[event.name] = self.events.pop(event.name)
        return f"remove {event.name}"

    def enable(self, on=True):
        """Not of a process that makes children just then: Linux 6.18 gives a child the state that its parent's event had when
        the fork began, also if the event is switched in its middle (inherit_event()), once the two have exchanged their contexts
        (perf_event_context_sched_out()). So something of it may be on while it is off, until it is switched the next time."""
        event = self.any()
        if not event or (self.forks and event.children):
            return None
        event.enabled = on
        event.changed()
        names = pb.SelectRequest(names=[event.name])
        self.ask(**({"enable": names} if on else {"disable": names}))
        return f"{'enable' if on else 'disable'} {event.name}"

    def disable(self):
        return self.enable(False)

    def set_filter(self):
        event = self.any()
        if not event:
            return None
        event.filter = self.rng.choice(list(FILTERS[event.event]))
        event.changed()
        self.ask(set_filter=pb.SetFilterRequest(name=event.name, filter=self.text(event, event.filter)))
        return f"filter {event.name} {event.filter!r}"

    def set_text(self):
        """What passes stays the same, so that no occurrence may be missed or counted twice."""
        event = self.any()
        if not event:
            return None
        self.ask(set_filter=pb.SetFilterRequest(name=event.name, filter=self.text(event, event.filter)))
        return f"text {event.name}"

    def set_period(self):
        event = self.any()
        if not event:
            return None
        event.period = self.rng.choice((1, 2, 5))
        event.samples |= event.period > 1
        self.ask(set_period=pb.SetPeriodRequest(name=event.name, period=event.period))
        return f"period {event.name} {event.period}"

    def resize(self):
        if self.reads_elsewhere:
            return None  # it is refused there
        size = self.rng.choice((4, 8, 16, 64, 1024))
        with open(os.path.join(self.daemon.directory, "perfd.yaml"), encoding="utf-8") as f:
            lines = f.read().splitlines()
        lines = [f"rings: {{ size: {size}KiB }}" if line.startswith("rings:") else line for line in lines]
        if self.rng.random() < 0.5:
            lines = [line for line in lines if not line.startswith("groups:")]
        elif not any(line.startswith("groups:") for line in lines):
            lines.append("groups: { own: { events: [sched:sched_process_exec, { event: page-faults, period: 7 }] } }")
        with open(os.path.join(self.daemon.directory, "perfd.yaml"), "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n")
        if self.rng.random() < 0.5:
            self.ask(reload=pb.Empty())
        else:
            os.kill(self.daemon.pid, signal.SIGHUP)
            perfd.wait_until(lambda: self.daemon.status().ring_size == size << 10, "the size of the rings")
        return f"rings of {size} KiB"

    def subscribe(self):
        if len(self.streams) >= STREAMS_MAX:
            return self.unsubscribe()
        rng, options, events = self.rng, [], []
        if rng.random() < 0.3:
            options += ["--where", rng.choice(("pid > 1", f"cpu == {CPUS[0]}", "tid != 1"))]
        if rng.random() < 0.2:
            options += ["--rate", "5000"]
        if rng.random() < 0.2 and self.events:
            events = [self.any().name]
        stream = Stream(self.daemon, rng.choice(("time", "cpu")), rng.choice((1 << 16, 1 << 20, 1 << 24)), options, events)
        self.streams.append(stream)
        if not self.run:
            stream.before = self.delivered(self.rows())
        return f"stream by {stream.order} {options} {events}"

    def unsubscribe(self):
        if not self.streams:
            return None
        with self.streams.pop(self.rng.randrange(len(self.streams))) as stream:
            was_quiet = not self.run
            now = self.delivered(self.rows()) if was_quiet else {}
            seen = stream.end(self.orders_cpus())
        self.check_again(seen)
        if stream.is_whole and stream.before is not None and was_quiet:
            self.compare(seen, stream.before, now)
        return "stream ended"

    def reload_nothing(self):
        self.ask(reload=pb.Empty())
        return "reload"

    # ---- what has to hold ----------------------------------------------------------------------------------------------

    def rows(self):
        return [row_of(row) for row in self.daemon.ledger().events]

    def orders_cpus(self):
        """Whether nothing happened for which PROTOCOL.md says that streams by CPU may go back."""
        return not self.reads_elsewhere and not any(r.n_pool_waits + r.n_failovers for r in self.daemon.status().cpus)

    @staticmethod
    def delivered(rows):
        sums = collections.Counter()
        for row in rows:
            sums[row["name"]] += row["delivered"]
        return sums

    def check_again(self, seen):
        """Only of an event for which the ledger says that this can be an occurrence may come twice, or not at all."""
        if not self.found["inexact"]:
            equal(seen["again"], 0, f"serial numbers that came twice: {seen}")

    @staticmethod
    def compare(seen, before, now):
        """What came to a stream for which everything was, and what gaps tell of, with what the ledger delivered meanwhile.

        What was on its way to others when it began may have come to it too. Gaps tell of items, and what the kernel says of its
        losses are some too."""
        ids = {row["name"]: str(row["id"]) for row in seen["rows"]}
        for name, n in now.items():
            if name.startswith("m-") and name in ids and not seen["late"]:
                came, missed = seen["events"].get(ids[name], (0, 0))
                check(came <= n and n - before.get(name, 0) <= came + missed, f"{before.get(name, 0)} to {n} samples of {name} "
                      f"were delivered, {came} came, and {missed} are in gaps: {seen}")

    def check_row(self, row, event):
        least, most = event.bounds(self.run, False)[row["cpu"]]
        text = f"{event.name} on CPU {row['cpu']}: {row}"
        equal(row["occurred"], row["delivered"] + row["filtered"] + row["lost"], f"the sum of {text}")
        if row.get("stalled"):  # nobody lets its reader, nor a backup, run: of no one moment, and not balanced, as PROTOCOL.md says
            self.found["stalled"] += 1
            return
        check(row["balanced"], f"not balanced: {text}")
        if row["unwritten"] > 0:  # as of a child that goes on counting, see enable(), until its fd is closed: among what occurred
            print(f"  {row['unwritten']} without a record: {text}")
        if row["exact"] or event.samples:
            # what both fds of a change counted, and no record shows which: said to be unwritten, in a row that is not exact
            doubtful = 0 if row["exact"] else row["unwritten"]
            check(least <= row["occurred"] <= most + doubtful, f"{row['occurred']} occurred, and {least} to {most} did: {text}")
        self.found["exact" if row["exact"] else "sampled" if event.samples else "inexact"] += 1
        if not row["exact"] and not event.samples and not self.reads_elsewhere:
            print(f"  not exact: {row['occurred']} occurred, and {least} to {most} did: {event.name} on CPU {row['cpu']}")

    def check_rows(self, rows, events, must=True):
        have = set()
        for row in rows:
            if event := events.get(row["name"]):
                self.check_row(row, event)
                have.add((row["name"], row["cpu"]))
        for event in events.values() if must else ():
            for cpu, (least, _) in event.bounds(self.run, False).items():
                check(least == 0 or (event.name, cpu) in have, f"no row of {event.name} on CPU {cpu}")
        return "ledger"

    def check_ledger(self):
        return self.check_rows(self.rows(), self.events)

    # ---- sequences -----------------------------------------------------------------------------------------------------

    # What a step is made of, each as likely as its number says: a kind is a method that gives a line of what it did, or None.
    CHANGES = (("add", 8), ("remove", 4), ("enable", 3), ("disable", 2), ("set_filter", 5), ("set_text", 12), ("set_period", 2),
               ("resize", 5), ("subscribe", 4), ("unsubscribe", 3), ("reload_nothing", 1), ("check_ledger", 3))

    def change(self):
        how = self.rng.choices([name for name, _ in self.CHANGES], [weight for _, weight in self.CHANGES])[0]
        return getattr(self, how)()

    def step(self):
        """Some changes beside a load, or between two."""
        did = self.doing = []
        is_beside = self.rng.random() < 0.7
        if is_beside:
            did.append(self.begin(20_000 if SLOW else 100_000))
        for _ in range(self.rng.randint(1, 6)):
            did.append(self.change())
        if not is_beside:
            did.append(self.begin(2000))
        self.end()
        self.check_ledger()
        return "; ".join(filter(None, did))

    def close(self):
        """The keeper has all that ever was."""
        while self.streams:
            self.unsubscribe()
        rows = self.rows()
        with self.keeper:
            seen = self.keeper.end(True)
        self.check_again(seen)
        equal(seen["truncated"], False, "the closing ledger")
        everything = {**self.removed, **self.events}
        self.check_rows([{**row, "text": ""} for row in seen["rows"]], everything)
        self.compare(seen, {}, self.delivered(seen["rows"]))
        self.check_rows(rows, self.events)
        self.found["samples"] += seen["items"]
        self.found["gaps"] += seen["outbox"]
        self.found["late"] += seen["late"]
        self.found["lost"] += sum(row["lost"] for row in seen["rows"])
        self.found["occurred"] += sum(row["occurred"] for row in seen["rows"])
        self.found["events"] += len(everything)

    def abort(self):
        self.other.socket.close()
        for stream in (self.keeper, *self.streams):
            stream.__exit__()


def configuration(rng):
    elsewhere = f", cpus: \"{rng.choice(CPUS)}\"" if len(CPUS) > 1 and rng.random() < 0.15 else ""
    lines = ["version: 1",
             f"rings: {{ size: {rng.choice(('4KiB', '8KiB', '16KiB', '64KiB', '2MiB'))} }}",
             f"readers: {{ priority: {rng.choice(('fifo:1', 'normal', chr(34) + 'nice:10' + chr(34)))}{elsewhere} }}"]
    if rng.random() < 0.5:
        lines.append("batches: { pool: 256KiB }")
    if rng.random() < 0.3:
        lines.append(f"dispatcher: {{ priority: normal, cpus: \"{rng.choice(CPUS)}\" }}")
    return "\n".join(lines) + "\n"


def cgroups():
    """Those of this run, where perf events can use them."""
    try:
        return Tree()
    except perfd.Skip:
        return contextlib.nullcontext()


def run_sequence(seed, steps, found, trace):
    rng = random.Random(seed)
    config = configuration(rng)
    if trace:
        print(config, end="", flush=True)
    did = []
    with cgroups() as tree, Daemon(config=config) as daemon, daemon.client() as client, perfd.Line([LOAD, ",".join(map(str, CPUS))]) as load:
        word, *pids = load.hear()
        equal(word, "ready", "the first word of the load")
        load.pids = list(map(int, pids))
        if len(CPUS) > 1 and rng.random() < 0.5:
            os.sched_setaffinity(daemon.pid, {rng.choice(CPUS)})  # main's own way between two steps of a change
        if tree:
            for pid in load.pids:
                with open(os.path.join(tree.make("load"), "cgroup.procs"), "w", encoding="ascii") as f:
                    f.write(str(pid))
        model = Model(daemon, client, load, rng, found, "cpus" in config.split("readers:")[1].split("\n")[0],
                      f"{tree.own}/load" if tree else None)
        try:
            for _ in range(steps):
                did.append(model.step())
                if trace:
                    print(f"  {did[-1]}", flush=True)
            model.close()
        except BaseException:
            print(f"seed {seed}, {config}" + "\n".join(f"  {what}" for what in (*did, *filter(None, model.doing))), flush=True)
            raise
        finally:
            with contextlib.suppress(Exception):
                model.abort()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--steps", type=int, default=300 if SLOW else 600)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--trace", action="store_true", help="print what is done")
    args = parser.parse_args()
    perfd.need_root()
    found, begin, left, seed = collections.Counter(), time.monotonic(), args.steps, args.seed
    while left > 0:
        steps = min(left, SEQUENCE)
        print(f"seed {seed}, {steps} steps", flush=True)
        run_sequence(seed, steps, found, args.trace)
        left -= steps
        seed += 1
    print(f"{args.steps} steps in {time.monotonic() - begin:.0f} s: " + ", ".join(f"{what} {n}" for what, n in sorted(found.items())))
    check(found["lost"] > 0 or args.steps < 2 * SEQUENCE, "nothing was lost: the test shows little")
    return 0


if __name__ == "__main__":
    sys.exit(main())
