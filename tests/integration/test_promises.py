#!/usr/bin/python3
"""What perfd promises, with loads whose events are known to the last one: the ledger, the order, changes that disturb
nobody. Fields, targets and side records of real events are compared with what is known of them otherwise."""
import os
import signal
import subprocess
import tempfile
import threading
import time

import perfd
from asleep import count_sleeps, wait_until_asleep
from checker import Checker
from host import while_cpus_run
from perfd import Daemon, Subscriber, Workload, add, check, equal, pb

SLOW = perfd.SANITIZER != "none"
SYS_ENTER = "raw_syscalls:sys_enter"
RECORD_MAKER = os.path.join(perfd.BUILD, "tests", "integration", "record-maker")
GETPPID = 110 if os.uname().machine == "x86_64" else 173
CPUS = perfd.online_cpus()[:2]


def rows_of(ledger, name, unwritten=0, inexact=False):
    """{cpu: row} of one event, each added up here. unwritten: how many the kernel can have kept back, at most. inexact: they
    may say that they are."""
    rows = {row.cpu: row for row in ledger.events if row.name == name}
    for row in rows.values():
        total = sum(count.count for count in row.lost)
        equal(row.delivered + row.filtered + total, row.occurred, f"the sum of {row}")
        check(row.balanced and (row.exact or inexact), f"not balanced and exact: {row}")
    kept = sum(lost(row, "kernel_unwritten") for row in rows.values())
    check(kept <= unwritten, f"{kept} occurrences without a record, and the kernel can have kept {unwritten} back: {rows}")
    return rows


def reads_elsewhere(daemon):
    """A ring has been read from another CPU, as happens to a reader that gets no time: what changed meanwhile may have made rows inexact."""
    return any(cpu.n_failovers for cpu in daemon.status().cpus)


def duplicates_of(ledger, name, inexact=False):
    return sum(row.duplicates for row in rows_of(ledger, name, inexact=inexact).values())


def lost(row, reason="kernel_ring"):
    return next(count.count for count in row.lost if count.reason == reason)


def all_lost(rows):
    return sum(lost(row) for row in rows.values())


def exact_load(config, calls, order):
    """Two processes of exactly `calls` calls each; gives the event's rows, and what the subscriber saw."""
    with Daemon(config=config) as daemon, daemon.client() as client, Workload("syscalls", calls, cpus=CPUS) as load:
        add(client, {"event": SYS_ENTER, "name": "calls", "target": pb.Target(pids=load.pids)})
        with Checker(daemon, order, "calls", queue=1 << 28) as checker:
            load.go()
            equal(load.done(), [calls] * len(CPUS), "calls made")
            seen = checker.finish()
            rows = rows_of(daemon.ledger(), "calls")
            seen["pool_waits"] = sum(cpu.n_pool_waits for cpu in daemon.status().cpus)
        load.exit()
    equal(sum(row.occurred for row in rows.values()), (calls + 1) * len(CPUS), "calls that occurred")
    for cpu in CPUS:
        equal(rows[cpu].occurred, calls + 1, f"calls on CPU {cpu}")
        equal(seen["cpus"][cpu], rows[cpu].delivered, f"samples of CPU {cpu}")
    equal(sum(row.filtered for row in rows.values()), 0, "filtered samples")
    equal(seen["items"] - seen["records"], sum(row.delivered for row in rows.values()), "samples received and delivered")
    return rows, seen


def test_ledger_without_loss():
    for order in ("time", "cpu"):
        rows, seen = while_cpus_run(lambda o=order: exact_load(None, 100_000 if SLOW else 1_000_000, o),
                                    lambda found: 0 if SLOW else all_lost(found[0]))
        if not SLOW:  # a sanitized daemon may be too slow for the load, and then says so
            equal([lost(row) for row in rows.values()], [0] * len(rows),
                  f"lost with the default rings, {seen['pool_waits']} waits for batches")
        equal(seen["outbox"], 0, "dropped")


def test_ledger_with_loss():
    config = "version: 1\nrings: {size: 16KiB}\nbatches: {pool: 256KiB}\n"
    rows, seen = exact_load(config, 100_000 if SLOW else 1_000_000, "time")
    check(all_lost(rows) > 0, "rings of 16 KiB lost nothing: the test shows nothing")
    equal(seen["outbox"], 0, "dropped")


def flood_with_a_stopped_subscriber(wanted):
    """What two subscribers saw of as many samples or more, the second of which was stopped for half of them, and the rows."""
    with Daemon() as daemon, daemon.client() as client, Workload("flood", 0, 0, cpus=CPUS) as load:
        add(client, {"event": SYS_ENTER, "name": "calls", "target": pb.Target(pids=load.pids)})
        with Checker(daemon, "time", "calls", queue=1 << 28) as steady, Checker(daemon, "time", "calls") as stopped:
            load.go()

            def delivered():
                return sum(row.delivered for row in daemon.ledger().events)

            perfd.wait_until(lambda: delivered() > wanted // 4, "the first quarter", 120)
            stopped.process.send_signal(signal.SIGSTOP)
            perfd.wait_until(lambda: delivered() > 3 * wanted // 4, "three quarters", 120)
            stopped.process.send_signal(signal.SIGCONT)
            perfd.wait_until(lambda: delivered() > wanted, f"{wanted} samples", 120)
            load.done(stop=True)
            seen, seen_stopped = steady.finish_whatever_came_late(60), stopped.finish_whatever_came_late(60)
            rows = rows_of(daemon.ledger(), "calls")
        load.exit()
    return seen, seen_stopped, rows


def test_order_with_a_stopped_subscriber():
    wanted = 300_000 if SLOW else 10_000_000
    seen, seen_stopped, rows = while_cpus_run(lambda: flood_with_a_stopped_subscriber(wanted),
                                              lambda found: 0 if SLOW else found[0]["late"])
    if not SLOW:  # a sanitized daemon may be too slow for the flood, and then says so
        equal(seen["late"], 0, "items that came too late")
    equal(seen["late"], sum(lost(row, "late") for row in rows.values()), "items that came too late, and those in the ledger")
    check(seen["items"] >= wanted, f"only {seen['items']} items")
    equal(seen["outbox"], 0, "dropped for the subscriber that was not stopped")
    equal(sum(seen["cpus"]), sum(row.delivered for row in rows.values()),
          f"samples of the subscriber that was not stopped, and delivered ones: {seen}")
    check(seen_stopped["outbox"] > 0, "nothing was dropped for the stopped one: the test shows nothing")


def test_changes_disturb_nobody():
    rounds = 100 if SLOW else 1000
    with Daemon() as daemon, daemon.client() as client, Workload("flood", 0, 20_000, cpus=CPUS) as load:
        add(client, {"event": SYS_ENTER, "name": "calls", "target": pb.Target(pids=load.pids)})
        with Checker(daemon, "time", "calls", queue=1 << 28) as checker, \
             Checker(daemon, "cpu", queue=1 << 26) as everything:
            load.go()
            for i in range(rounds):
                add(client, {"event": "sched:sched_switch", "name": "other", "filter": f"prev_pid != {i + 1}"})
                client.request(set_filter=pb.SetFilterRequest(name="other", filter=f"prev_pid > {i + 1}"))
                client.request(remove=pb.SelectRequest(names=["other"]))
            load.done(stop=True)
            seen = checker.finish()
            everything.finish()
            rows = rows_of(daemon.ledger(), "calls")
        equal([event.spec.name for event in client.request(list=pb.ListRequest()).list.events], ["calls"], "the list")
        equal(daemon.status().n_fds, len(perfd.online_cpus()) * (len(load.pids) + 1), "perf fds")
        load.exit()
    equal(seen["gaps"], 0, "gaps")
    equal(seen["items"], sum(row.occurred for row in rows.values()), "items and occurrences")
    equal(sum(row.duplicates for row in rows.values()), 0, "duplicate samples of the flood")


def test_filter_change_loses_and_doubles_nothing():
    """The filter of the flood itself changes while it runs, between two that let everything of it pass."""
    rounds = 20 if SLOW else 200
    with Daemon() as daemon, daemon.client() as client, Workload("flood", 0, 20_000, cpus=CPUS) as load:
        add(client, {"event": SYS_ENTER, "name": "calls", "filter": f"id == {GETPPID}",
                     "target": pb.Target(pids=load.pids)})
        with Checker(daemon, "time", "calls", queue=1 << 28) as checker:
            load.go()
            for i in range(50 * rounds):  # while others have its CPUs, the flood may not run when both are there
                client.request(set_filter=pb.SetFilterRequest(name="calls", filter=f"id == {GETPPID}" +
                                                              (f" && common_pid != {i + 1}" if i % 2 else "")))
                if (i + 1) % rounds == 0 and duplicates_of(daemon.ledger(), "calls", reads_elsewhere(daemon)) > 0:
                    break
            counts = load.done(stop=True)
            seen = checker.finish()
            ledger, inexact = daemon.ledger(), reads_elsewhere(daemon)
            rows = rows_of(ledger, "calls", inexact=inexact)
        load.exit()
    equal(seen["items"], sum(counts), "items and calls made")
    equal([rows[cpu].occurred for cpu in CPUS], counts, "occurrences and calls made on each CPU")
    check(duplicates_of(ledger, "calls", inexact) > 0, "both generations never overlapped: the test shows nothing")


def test_ring_size_changes_lose_and_double_nothing():
    """The rings change their size under the flood, and go back when the rest of the configuration is refused."""
    def config(size, event="context-switches"):
        return f"version: 1\nstrict: true\nrings: {{ size: {size} }}\ngroups: {{ all: {{ events: [{event}] }} }}\n"

    sizes = [8, 2, 4, 16, 1]
    rounds = 1 if SLOW else 4
    with Daemon(config=config("4MiB")) as daemon, daemon.client() as client, \
            Workload("flood", 0, 20_000, cpus=CPUS) as load:
        add(client, {"event": SYS_ENTER, "name": "calls", "filter": f"id == {GETPPID}",
                     "target": pb.Target(pids=load.pids)})

        def write(text):
            with open(os.path.join(daemon.directory, "perfd.yaml"), "w", encoding="ascii") as f:
                f.write(text)

        with Checker(daemon, "time", "calls", queue=1 << 28) as checker:
            load.go()
            for i in range(50):  # while others have the CPUs of the flood, it may not run when old and new overlap
                for size in sizes:
                    write(config(f"{size}MiB"))
                    client.request(reload=pb.Empty())
                    equal(daemon.status().ring_size, size << 20, "the ring's size")
                if i + 1 >= rounds and duplicates_of(daemon.ledger(), "calls") > 0:
                    break
            write(config("32MiB", "nonsense:x"))
            perfd.refused(client, "unknown-event", reload=pb.Empty())
            equal(daemon.status().ring_size, sizes[-1] << 20, "the ring's size after a refusal")
            counts = load.done(stop=True)
            seen = checker.finish()
            ledger = daemon.ledger()
        load.exit()
    rows = rows_of(ledger, "calls")
    equal(seen["items"], sum(counts), "items and calls made")
    equal([rows[cpu].occurred for cpu in CPUS], counts, "occurrences and calls made on each CPU")
    check(all(row.balanced for row in ledger.events) and all(row.balanced for row in ledger.rings), "a row is not balanced")
    check(duplicates_of(ledger, "calls") > 0, "old and new never overlapped: the test shows nothing")


def test_switching_counts_nothing_that_is_not_written():
    """An event is disabled and enabled in the middle of its own flood: each occurrence that counts has its record."""
    rounds = 20 if SLOW else 300
    with Daemon() as daemon, daemon.client() as client, Workload("flood", 0, 20_000, cpus=CPUS) as load:
        add(client, {"event": SYS_ENTER, "name": "calls", "target": pb.Target(pids=load.pids)})
        with Checker(daemon, "time", "calls", queue=1 << 28) as checker:
            load.go()
            for _ in range(rounds):
                client.request(disable=pb.SelectRequest(names=["calls"]))
                client.request(enable=pb.SelectRequest(names=["calls"]))
            load.done(stop=True)
            seen = checker.finish()
            rows = rows_of(daemon.ledger(), "calls")
        load.exit()
    equal(seen["items"], sum(row.occurred for row in rows.values()), "items and occurrences")


def test_ledger_balances_at_any_time():
    with Daemon() as daemon, daemon.client() as client, Workload("flood", 0, 0, cpus=CPUS) as load:
        add(client, {"event": SYS_ENTER, "name": "calls", "target": pb.Target(pids=load.pids)})
        with Checker(daemon, "time", "calls", queue=1 << 28) as checker:
            load.go()
            last = 0
            for _ in range(10 if SLOW else 100):
                ledger = daemon.ledger()
                occurred = sum(row.occurred for row in rows_of(ledger, "calls").values())
                check(occurred >= last, "a count went backwards")
                last = occurred
                for row in (*ledger.rings, *ledger.subscribers):
                    check(row.balanced, f"not balanced: {row}")
            load.done(stop=True)
            checker.finish(60)
        load.exit()


# ---- events, targets, records ----------------------------------------------------------------------------------------


def items_of(daemon, load, *arguments):
    """What a Subscriber got while a load ran: its items, without the closing ledger."""
    with Subscriber(daemon, *arguments) as subscriber:
        load()
        lines = subscriber.finish()
    return [line for line in lines if "kind" not in line]


def test_fields_and_where():
    with Daemon() as daemon, daemon.client() as client, Workload("syscalls", 1000, cpus=CPUS[:1]) as load:
        add(client, {"event": SYS_ENTER, "name": "calls"})

        def run():
            load.go()
            load.done()

        items = items_of(daemon, run, "--where", f"id == {GETPPID} && pid == {load.pids[0]} && comm == 'workload'", "calls")
        load.exit()
    equal(len(items), 1000, "items")
    for item in items:
        equal((item["fields"]["id"], item["pid"], item["tid"], item["comm"], item["cpu"]),
              (GETPPID, load.pids[0], load.pids[0], "workload", CPUS[0]), "an item")
        equal(len(item["fields"]["args"]), 6, "arguments")


def test_projection_raw_and_callchain():
    with Daemon() as daemon, daemon.client() as client, Workload("syscalls", 10, cpus=CPUS[:1]) as load:
        add(client, {"event": SYS_ENTER, "name": "calls", "target": pb.Target(pids=load.pids), "callchain": "CALLCHAIN_BOTH",
                     "filter": f"id == {GETPPID}"})

        def run():
            load.go()
            load.done()

        with Subscriber(daemon, "--payload", "both", "calls") as whole:
            items = items_of(daemon, run, "--fields", "id", "calls")
            both = [line for line in whole.finish() if "kind" not in line]
        load.exit()
    equal([item["fields"] for item in items], [{"id": GETPPID}] * 10, "projected fields")
    equal(len(both), 10, "items with raw bytes")
    for item in both:
        check(item["kernel_callchain"] and item["user_callchain"], f"a callchain is empty: {item}")
        check("raw" in item, "no raw bytes")


def test_periods_and_software_events():
    with Daemon() as daemon, daemon.client() as client, Workload("syscalls", 1000, cpus=CPUS[:1]) as load:
        target = pb.Target(pids=load.pids, no_inherit=True)
        add(client, {"event": SYS_ENTER, "name": "tenth", "period": 10, "target": target},
            {"event": "cpu-clock", "name": "clock", "frequency": 1000},
            {"event": "page-faults", "name": "faults"})

        def run():
            load.go()
            load.done()
            subprocess.run(["/bin/true"], check=True)
            perfd.wait_until(lambda: any(e.name == "clock" and e.delivered for e in daemon.ledger().events), "a tick")

        items = items_of(daemon, run)
        rows = [row for row in daemon.ledger().events if row.name == "tenth"]
        load.exit()
    by_event = {name: [i for i in items if i["event"] == name] for name in ("tenth", "clock", "faults")}
    equal(len(by_event["tenth"]), 100, "each tenth of 1001 calls")
    equal(sum(row.count for row in rows), 1001, "the kernel's count of calls")
    check(by_event["clock"] and all(i["ip"] and i["period"] for i in by_event["clock"]), "clock samples")
    check(by_event["faults"] and all(i["ip"] for i in by_event["faults"]), "page faults")


def test_children_and_side_records():
    with Daemon() as daemon, daemon.client() as client, Workload("execs", 20, cpus=CPUS[:1]) as load:
        add(client, {"event": "sched:sched_process_exec", "name": "execs", "target": pb.Target(pids=load.pids)},
            {"event": "sched:sched_process_exec", "name": "alone",
             "target": pb.Target(pids=load.pids, no_inherit=True)})

        def run():
            load.go()
            equal(load.done(), [20], "children that executed")

        items = items_of(daemon, run, "--records")
        load.exit()
        rows = daemon.ledger().events
    samples = [i for i in items if i["event"] == "execs"]
    equal(len(samples), 20, "exec samples of children")
    equal([i for i in items if i["event"] == "alone"], [], "samples of what follows no children")
    equal(sum(r.occurred for r in rows if r.name == "execs"), 20, "execs that occurred")
    children = {i["pid"] for i in samples}
    for record in ("fork", "comm_record", "exit", "mmap2"):
        found = {i["fields"]["pid"] for i in items if i.get("record") == record}
        check(children <= found, f"{record} records of {children - found} are missing")
    for item in samples:
        equal(item["comm"], "workload", "the comm of a child")


def test_records_that_others_have_too():
    """Of KSYMBOL and BPF_EVENT records the kernel says that they are longer, the more events have them: perfd came first here."""
    with Daemon() as daemon, daemon.client() as client, Daemon() as other, other.client() as beside:
        for each in (client, beside):
            add(each, {"event": "sched:sched_process_exec", "name": "execs"})

        def run():
            for _ in range(3):
                with tempfile.TemporaryDirectory() as folder:
                    subprocess.run([RECORD_MAKER, "bpf", os.path.join(folder, "records")], check=True, timeout=perfd.PATIENCE)

        begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        items = items_of(daemon, run, "--kinds", "RECORD_KIND_KSYMBOL", "--kinds", "RECORD_KIND_BPF_EVENT")
        end = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        made = [i for i in items if i.get("record") == "ksymbol" and i["fields"]["name"].endswith("_perfd_made")]
        equal(len(made), 6, f"three programs that came and went: {made}")
        code = [i for i in items if i.get("record") in ("ksymbol", "bpf_event")]
        check(len(code) >= 12, f"two records each of what came and went: {code}")
        for item in code:
            check(begin < item["time"] < end and item["pid"] > 0 and not item["event"], f"another's time, task or event: {item}")
        client.request(remove=pb.SelectRequest(names=["execs"]))
        daemon.status()
        before = wait_until_asleep(daemon.pid)
        threading.Event().wait(2)  # the time that is measured, not a way to wait for something
        equal(count_sleeps(daemon.pid), before, "wakeups in 2 s for samples that are ahead of the clock")


def test_cpu_lists_and_threads():
    cpu = CPUS[-1]
    with Daemon() as daemon, daemon.client() as client, Workload("syscalls", 500, cpus=CPUS) as load:
        add(client, {"event": SYS_ENTER, "name": "there", "filter": f"id == {GETPPID}", "target": pb.Target(cpus=str(cpu))},
            {"event": SYS_ENTER, "name": "thread", "filter": f"id == {GETPPID}", "target": pb.Target(tids=[load.pids[0]])})

        def run():
            load.go()
            load.done()

        items = items_of(daemon, run)
        load.exit()
    there = [i for i in items if i["event"] == "there" and i["pid"] in load.pids]
    equal((len(there), {i["cpu"] for i in there}), (500, {cpu}), "calls on one CPU")
    thread = [i for i in items if i["event"] == "thread"]
    equal((len(thread), {i["tid"] for i in thread}), (500, {load.pids[0]}), "calls of one thread")


def test_enable_disable_and_globs():
    with Daemon() as daemon, daemon.client() as client, Workload("syscalls", 100, cpus=CPUS[:1]) as load:
        refs = add(client, {"event": "raw_syscalls:*", "filter": f"id == {GETPPID}", "disabled": True,
                            "target": pb.Target(pids=load.pids)})
        equal([ref.name for ref in refs], ["raw_syscalls:sys_enter", "raw_syscalls:sys_exit"], "what the glob added")
        equal(daemon.status().n_enabled, 0, "enabled events")
        client.request(enable=pb.SelectRequest(names=[f"#{refs[1].id}"]))

        def run():
            load.go()
            load.done()

        items = items_of(daemon, run)
        load.exit()
        client.request(disable=pb.SelectRequest(names=["*"]))
        equal(daemon.status().n_enabled, 0, "enabled events")
    equal([i["event"] for i in items], ["raw_syscalls:sys_exit"] * 100, "events of the items")
    equal(len({i["fields"]["ret"] for i in items}), 1, "different parents of one process")


def test_reload():
    config = "version: 1\nstrict: true\ngroups:\n  g:\n    events:\n      - sched:sched_process_exec\n      - {event: %s, name: calls, filter: %s}\n"
    with Daemon(config=config % (SYS_ENTER, f"id == {GETPPID}")) as daemon, daemon.client() as client:
        before = {e.spec.name: e.id for e in client.request(list=pb.ListRequest()).list.events}
        add(client, "sched:sched_process_fork")
        path = os.path.join(daemon.directory, "perfd.yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(config % (SYS_ENTER, "id == 1") + "      - sched:sched_process_exit\n")
        reply = client.request(reload=pb.Empty()).reloaded
        equal((reply.added, reply.removed, reply.changed, reply.kept), (1, 0, 1, 1), "what the reload did")
        after = {e.spec.name: e for e in client.request(list=pb.ListRequest()).list.events}
        equal({name: after[name].id for name in before}, before, "ids of events that stayed")
        equal(after["calls"].spec.filter, "id == 1", "the changed filter")
        check("sched:sched_process_fork" in after, "what a client added is gone")
        with open(path, "a", encoding="utf-8") as f:
            f.write("      - sched:no_such_event\n")
        no = perfd.refused(client, "unknown-event", reload=pb.Empty())
        check("perfd.yaml:9:" in no.message, f"no place in {no.message!r}")
        equal({e.spec.name: e.id for e in client.request(list=pb.ListRequest()).list.events},
              {name: e.id for name, e in after.items()}, "the list after a refused reload")


def test_idle():
    # MALLOC_PERTURB_, which meson sets, writes to all memory that is allocated: what perfd never touches would be resident
    with Daemon(env={**os.environ, "MALLOC_PERTURB_": "0"}) as daemon, daemon.client() as client:
        add(client, {"event": "sched:sched_switch"})
        client.request(disable=pb.SelectRequest(names=["*"]))
        daemon.status()
        seconds = 3 if SLOW else 10
        before = wait_until_asleep(daemon.pid)
        threading.Event().wait(seconds)  # the time that is measured, not a way to wait for something
        equal(count_sleeps(daemon.pid), before, f"wakeups in {seconds} s without an enabled event")
        if not SLOW:
            check(daemon.rss() < 10 << 20, f"RSS {daemon.rss()}")


if __name__ == "__main__":
    perfd.main(globals())
