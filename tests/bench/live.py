#!/usr/bin/python3
"""What perfd costs on this machine while a flood of system calls is traced, beside what perf(1) costs for the same.

    live.py [--quick] [--json PATH] [--rates 10000,0] [--seconds N] [--repetitions N]

One process, pinned to the last CPU, makes getppid(2) calls at 10 k, 100 k, 300 k and 1 M a second and flat out (rate 0).
It is traced by pid with raw_syscalls:sys_enter, in turns by

    perfd, decoded fields by time, decoded by CPU, raw by CPU       one subscriber that reads and discards
    perf record -o - to a reader that discards                      raw bytes, without order
    perf record -o - | perf script -i -                             decoded text, to a reader that counts its lines

each on its own, in the same run, several times over; the table has medians. CPU is that of all threads of perfd, or of
both processes of perf, for each event that was delivered, from the start of the flood until everything was; what a
process of perf spends at its end, however many events it had, is measured first and left out. The reader's CPU is not
counted. perf's ring has the size of perfd's. Events that nobody got are lost, whoever lost them; perfd says itself how
many (the closing ledger), perf is compared with the number of calls.

The folder of the build is $PERFD_BUILD. Only root can run this; it needs tracefs, and perf for the comparison.
"""
import argparse
import contextlib
import fcntl
import json
import os
import platform
import select
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "integration"))
import perfd  # pylint: disable=wrong-import-position
import subscriber  # pylint: disable=wrong-import-position
from perfd import check, wait_until  # pylint: disable=wrong-import-position
from subscriber import pb  # pylint: disable=wrong-import-position

EVENT = "raw_syscalls:sys_enter"
DISCARD = os.path.join(perfd.BUILD, "tests", "bench", "discard")
RING = "2M"  # rings.size by default
IDLE_SECONDS = 10
RATES, QUICK_RATES = "10000,100000,300000,1000000,0", "10000,300000,0"
PERFD_CONSUMERS = {
    "perfd fields, time order": {"order": pb.ORDER_TIME, "payload": pb.PAYLOAD_FIELDS},
    "perfd fields, cpu order": {"order": pb.ORDER_CPU, "payload": pb.PAYLOAD_FIELDS},
    "perfd raw, cpu order": {"order": pb.ORDER_CPU, "payload": pb.PAYLOAD_RAW},
}
PERF_RAW, PERF_SCRIPT = "perf record -o -", "perf record | perf script"
REFERENCE = PERF_RAW


# ---- what Linux knows of a process -----------------------------------------------------------------------------------


def cpu_time(pid):
    """ns of CPU of all its threads that live."""
    return sum(thread["cpu_ns"] for thread in threads(pid).values())


def threads(pid):
    """{name: {cpu_ns, wakeups}}; threads of the same name are one."""
    found = {}
    for tid in sorted(os.listdir(f"/proc/{pid}/task"), key=int):
        with contextlib.suppress(FileNotFoundError), \
                open(f"/proc/{pid}/task/{tid}/schedstat", encoding="ascii") as schedstat, \
                open(f"/proc/{pid}/task/{tid}/status", encoding="utf-8") as status:
            lines = dict(line.rstrip("\n").split(":\t", 1) for line in status if ":\t" in line)
            thread = found.setdefault(lines["Name"], {"cpu_ns": 0, "wakeups": 0})
            thread["cpu_ns"] += int(schedstat.read().split()[0])
            thread["wakeups"] += int(lines["voluntary_ctxt_switches"])
    return found


def rss(pid):
    """Bytes, without rings."""
    total, is_ring = 0, False
    with open(f"/proc/{pid}/smaps", encoding="utf-8") as f:
        for line in f:
            word = line.split()[0]
            if not word.endswith(":"):
                is_ring = "[perf_event]" in line
            elif word == "Rss:" and not is_ring:
                total += int(line.split()[1]) << 10
    return total


def wait_quiet(*pids):
    """Until these processes have done what they do at their start: two looks, some time apart, see no CPU spent."""
    seen = [None]

    def is_quiet():
        now = [cpu_time(pid) for pid in pids]
        quiet, seen[0] = now == seen[0], now
        select.select([], [], [], 0.03)
        return quiet

    wait_until(is_quiet, "the processes to be quiet")


def difference(before, after):
    return {name: {key: after[name][key] - before[name][key] for key in after[name]} for name in before if name in after}


# ---- consumers -------------------------------------------------------------------------------------------------------


class Stream:
    """A subscription whose bytes go to `discard`, while the end is still asked for by us."""

    def __init__(self, path, **subscription):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(perfd.PATIENCE)
        self.socket.connect(path)
        self.request(id=1, hello=pb.Hello(protocol=1, program="live"))
        self.request(id=2, subscribe=pb.SubscribeRequest(events=[EVENT], **subscription))
        self.socket.settimeout(None)
        self.process = subprocess.Popen([DISCARD, "frames"], stdin=self.socket, stdout=subprocess.PIPE)

    def receive(self, n):
        """Exactly n bytes: what follows is for the reader."""
        got = b""
        while len(got) < n:
            got += (more := self.socket.recv(n - len(got)))
            check(more, "perfd closed the connection")
        return got

    def send(self, **request):
        message = pb.Request(**request).SerializeToString()
        self.socket.sendall(struct.pack("<I", len(message)) + message)

    def request(self, **request):
        self.send(**request)
        length, = struct.unpack("<I", self.receive(4))
        response = pb.ServerMessage.FromString(self.receive(length)).response
        check(response.status == pb.STATUS_OK, response.message)

    def finish(self):
        """The closing ledger and what the reader counted."""
        self.send(id=3, stop=pb.Empty())
        out, _ = self.process.communicate(timeout=perfd.PATIENCE)
        said = json.loads(out)
        packet = pb.ServerMessage.FromString(bytes.fromhex(said["last"])).packet
        check(packet.HasField("end"), "the stream has no end")
        return subscriber.check_ledger(packet.end.ledger), said["bytes"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


def flood(rate, seconds, cpu):
    return perfd.Workload("flood", seconds, rate, cpus=[cpu])


def run_perfd(subscription, rate, seconds, cpu):
    with perfd.Daemon(config="version: 1\n") as daemon, daemon.client() as client, flood(rate, seconds, cpu) as load:
        perfd.add(client, {"event": EVENT, "target": pb.Target(pids=load.pids)})
        with Stream(daemon.stream, **subscription) as stream:
            before = threads(daemon.pid)
            load.go()
            load.done(seconds=seconds + perfd.PATIENCE)
            at_end, memory = threads(daemon.pid), rss(daemon.pid)
            ledger, n_bytes = stream.finish()
            after = threads(daemon.pid)
            after["perfd"] = at_end["perfd"]  # main: without what the closing ledger costs
            load.exit()
    spent = difference(before, after)
    rows = [row for row in ledger if row["kind"] == "event"]
    sent = next(row for row in ledger if row["kind"] == "subscriber")["sent"]
    occurred = sum(row["occurred"] for row in rows)
    return {
        "occurred": occurred, "delivered": sent, "calls": load.counts[0], "bytes": n_bytes, "rss": memory,
        "cpu_ns": sum(thread["cpu_ns"] for thread in spent.values()),
        "parts": {"reader": sum(t["cpu_ns"] for name, t in spent.items() if name.startswith("reader")),
                  "dispatcher": spent["dispatcher"]["cpu_ns"], "main": spent["perfd"]["cpu_ns"]},
        "wakeups": {name: thread["wakeups"] / seconds for name, thread in spent.items()},
    }


class Perf:
    """perf record of some pids, ready and enabled; script: its output goes through perf script."""

    def __init__(self, pids, script):
        control, self.control = os.pipe()
        self.acknowledged, acknowledge = os.pipe()
        with contextlib.ExitStack() as stack:
            stack.callback(os.close, control)
            stack.callback(os.close, acknowledge)
            command = ["perf", "record", "-q", "-e", EVENT, "-m", RING, "-p", ",".join(map(str, pids)), "-D", "-1",
                       "--control", f"fd:{control},{acknowledge}", "-o", "-"]
            self.processes = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                               pass_fds=[control, acknowledge])]
        if script:
            self.add(["perf", "script", "-i", "-"], stderr=subprocess.DEVNULL)
        self.add([DISCARD, "lines" if script else "perf"])
        os.write(self.control, b"enable\n")
        ready, _, _ = select.select([self.acknowledged], [], [], perfd.PATIENCE)
        check(ready and os.read(self.acknowledged, 16).startswith(b"ack"), "perf record does not begin")
        self.measured = [process.pid for process in self.processes[:-1]]
        wait_quiet(*self.measured)
        self.before = [cpu_time(pid) for pid in self.measured]

    def add(self, command, **popen):
        source = self.processes[-1].stdout
        with contextlib.suppress(OSError):
            fcntl.fcntl(source, fcntl.F_SETPIPE_SZ, 1 << 20)
        self.processes.append(subprocess.Popen(command, stdin=source, stdout=subprocess.PIPE, **popen))
        source.close()

    def memory(self):
        return sum(rss(pid) for pid in self.measured)

    def wakeups(self):
        return {f"{i}": sum(t["wakeups"] for t in threads(pid).values()) for i, pid in enumerate(self.measured)}

    def finish(self):
        """ns of CPU of each process since the beginning, and what the reader said."""
        self.processes[0].send_signal(signal.SIGINT)
        spent = []
        for pid, before in zip(self.measured, self.before):
            _, _, usage = os.wait4(pid, 0)
            spent.append(int((usage.ru_utime + usage.ru_stime) * 1e9) - before)
        out, _ = self.processes[-1].communicate()
        return spent, json.loads(out)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.control)
        os.close(self.acknowledged)
        for process in self.processes:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                with contextlib.suppress(ChildProcessError):
                    process.wait()


def perf_end_costs(script, cpu):
    """ns of CPU of each process at its end, after a load that made no calls yet: the median of three."""
    ends = []
    for _ in range(3):
        with flood(1, 1, cpu) as load, Perf(load.pids, script) as perf:
            ends.append(perf.finish()[0])
    return [statistics.median(of_process) for of_process in zip(*ends)]


def run_perf(script, rate, seconds, cpu, overhead):
    with flood(rate, seconds, cpu) as load, Perf(load.pids, script) as perf:
        wakeups = perf.wakeups()
        load.go()
        load.done(seconds=seconds + perfd.PATIENCE)
        memory = perf.memory()
        names = ("record", "script")
        wakeups = {names[int(i)]: (n - wakeups[i]) / seconds for i, n in perf.wakeups().items()}
        spent, said = perf.finish()
        load.exit()
    spent = [max(0, ns - idle) for ns, idle in zip(spent, overhead)]
    delivered = said.get("lines", said.get("samples"))
    # flood: its calls, one kill; clock_nanosleep, which nobody counts, is only known where perf lost nothing
    occurred = max(delivered, load.counts[0] + 1)
    return {"occurred": occurred, "delivered": delivered, "calls": load.counts[0], "bytes": said["bytes"], "rss": memory,
            "cpu_ns": sum(spent), "parts": dict(zip(names, spent)), "wakeups": wakeups}


# ---- idle ------------------------------------------------------------------------------------------------------------


def run_idle(seconds):
    """A daemon whose event is disabled: wakeups of each thread, and RSS."""
    with perfd.Daemon(config="version: 1\n") as daemon, daemon.client() as client:
        perfd.add(client, {"event": EVENT, "disabled": True})
        wait_quiet(daemon.pid)
        before = threads(daemon.pid)
        select.select([], [], [], seconds)
        spent = difference(before, threads(daemon.pid))
        return {"seconds": seconds, "wakeups": {name: t["wakeups"] for name, t in spent.items()}, "rss": rss(daemon.pid)}


# ---- table -----------------------------------------------------------------------------------------------------------


def summary(runs, seconds):
    """Medians of what several runs of one consumer at one rate gave."""
    def median(of):
        return statistics.median(of(run) for run in runs)

    return {
        "ns_per_event": median(lambda r: r["cpu_ns"] / max(1, r["delivered"])),
        "parts_ns": {part: median(lambda r, p=part: r["parts"][p] / max(1, r["delivered"])) for part in runs[0]["parts"]},
        "lost_percent": median(lambda r: 100 * (r["occurred"] - r["delivered"]) / r["occurred"]),
        "lost_most_percent": max(100 * (r["occurred"] - r["delivered"]) / r["occurred"] for r in runs),
        "wakeups_per_second": median(lambda r: sum(r["wakeups"].values())),
        "rss_mib": median(lambda r: r["rss"] / (1 << 20)),
        "calls_per_second": median(lambda r: r["calls"] / seconds),
        "bytes_per_event": median(lambda r: r["bytes"] / max(1, r["delivered"])),
    }


def set_ratios(rows):
    """To what the reference cost at the same rate; None without it."""
    reference = {row["rate"]: row["ns_per_event"] for row in rows if row["consumer"] == REFERENCE}
    for row in rows:
        row["ratio"] = row["ns_per_event"] / reference[row["rate"]] if reference.get(row["rate"]) else None


def rate_text(rate):
    return "flat out" if rate == 0 else f"{rate // 1000} k/s" if rate < 1000000 else f"{rate // 1000000} M/s"


def print_table(rows):
    print(f"{'rate':9} {'consumer':26} {'ns/event':>9} {'ratio':>6}  {'of which':34} {'lost %':>7} {'wakeups/s':>9} "
          f"{'RSS MiB':>7} {'k calls/s':>9}")
    last = None
    for row in rows:
        rate = rate_text(row["rate"])
        parts = ", ".join(f"{part} {ns:.0f}" for part, ns in row["parts_ns"].items())
        ratio = f"{row['ratio']:.2f}" if row["ratio"] else "-"
        print(f"{rate if rate != last else '':9} {row['consumer']:26} {row['ns_per_event']:9.0f} {ratio:>6}  {parts:34} "
              f"{row['lost_percent']:7.2f} {row['wakeups_per_second']:9.0f} {row['rss_mib']:7.1f} "
              f"{row['calls_per_second'] / 1000:9.0f}")
        last = rate


def print_idle(idle):
    woken = ", ".join(f"{name} {n}" for name, n in idle["wakeups"].items())
    print(f"\nidle, no event enabled, {idle['seconds']} s: wakeups {woken}; RSS without rings {idle['rss'] / (1 << 20):.1f} MiB")


def say_progress(text):
    if sys.stderr.isatty():
        print(f"\r{text:60}\r", end="", file=sys.stderr, flush=True)


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        model = next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), platform.machine())
    return {"cpu": model, "n_cpus": os.cpu_count(), "kernel": platform.release()}


def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--quick", action="store_true", help="three rates, one repetition of one second: less than a minute")
    p.add_argument("--json", metavar="PATH", help="all numbers, also of the single runs")
    p.add_argument("--rates", help="calls a second, separated by commas, 0 is flat out (10000,100000,300000,1000000,0)")
    p.add_argument("--seconds", type=int, help="of each flood (2)")
    p.add_argument("--repetitions", type=int, help="of everything (3)")
    p.add_argument("--without-perf", action="store_true", help="perfd alone")
    return p.parse_args()


def main():
    a = arguments()
    rates = [int(rate) for rate in (a.rates or QUICK_RATES if a.quick else a.rates or RATES).split(",")]
    seconds = a.seconds or (1 if a.quick else 2)
    repetitions = a.repetitions or (1 if a.quick else 3)
    perfd.need_root()
    if not os.path.exists(f"{perfd.TRACING}/events"):
        print(f"skipped: tracefs is not mounted on {perfd.TRACING}")
        sys.exit(77)
    cpu = perfd.online_cpus()[-1]
    consumers = {name: (lambda rate, s=s: run_perfd(s, rate, seconds, cpu)) for name, s in PERFD_CONSUMERS.items()}
    if not a.without_perf and not shutil.which("perf"):
        print("perf is not installed: perfd alone")
    elif not a.without_perf:
        for name, script in ((PERF_RAW, False), (PERF_SCRIPT, True)):
            overhead = perf_end_costs(script, cpu)
            consumers[name] = lambda rate, s=script, o=overhead: run_perf(s, rate, seconds, cpu, o)

    runs = {(rate, name): [] for rate in rates for name in consumers}
    for repetition in range(repetitions):
        for rate, name in runs:
            say_progress(f"{repetition + 1}/{repetitions} {rate_text(rate)} {name}")
            runs[rate, name].append(consumers[name](rate))
    idle = run_idle(3 if a.quick else IDLE_SECONDS)
    say_progress("")

    host = machine()
    print(f"CPU of the consumer per delivered event; {host['n_cpus']} x {host['cpu']}, Linux {host['kernel']}; "
          f"medians of {repetitions} x {seconds} s; ratio: to {REFERENCE}\n")
    rows = [{"rate": rate, "consumer": name, **summary(found, seconds)} for (rate, name), found in runs.items()]
    set_ratios(rows)
    print_table(rows)
    print_idle(idle)
    if a.json:
        for row in rows:
            row["runs"] = runs[row["rate"], row["consumer"]]
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump({"benchmark": "live", "machine": host, "seconds": seconds, "rows": rows, "idle": idle}, f, indent=1)


if __name__ == "__main__":
    main()
