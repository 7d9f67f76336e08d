#!/usr/bin/python3
"""Records from their bytes to a client's output, against what perf script -D says of the same bytes.

record-maker lets the kernel write real ones; record-builder makes those that no machine here has (branches, data
sources, weights, transactions). Both are perf.data files, read by perf and by sample-printer, which decodes, encodes, sends to a
libperfd stream and prints what comes out. Records are told apart by their place in the file.
"""
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import unittest

BUILD = os.path.join(os.environ["PERFD_BUILD"], "tests", "integration")
SAMPLE = {name: 1 << bit for bit, name in enumerate(
    "IP TID TIME ADDR READ CALLCHAIN ID CPU PERIOD STREAM_ID RAW BRANCH_STACK REGS_USER STACK_USER WEIGHT DATA_SRC "
    "IDENTIFIER TRANSACTION REGS_INTR PHYS_ADDR AUX CGROUP DATA_PAGE_SIZE CODE_PAGE_SIZE WEIGHT_STRUCT".split())}
HW_INDEX = 1 << 17
CONTEXT_USER, CONTEXT_KERNEL = (1 << 64) - 512, (1 << 64) - 128
NAMESPACES = ("net", "uts", "ipc", "pid", "user", "mnt", "cgroup")


def run(program, *arguments):
    """Standard output, any bytes as characters of their own."""
    done = subprocess.run([program, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    if done.returncode != 0:
        raise AssertionError(f"{program} {arguments}: {done.stderr.decode('latin1')}")
    return done.stdout.decode("latin1")


def sample_type(*names):
    return sum(SAMPLE[name] for name in names)


def offsets(path):
    """Where each record of the file begins."""
    with open(path, "rb") as f:
        data = f.read()
    at, size = struct.unpack_from("<QQ", data, 40)
    end, places = at + size, []
    while at < end:
        places.append(at)
        at += struct.unpack_from("<H", data, at + 6)[0]
    return places


def ours(path):
    lines = run(os.path.join(BUILD, "sample-printer"), path).splitlines()
    places = offsets(path)
    assert len(lines) == len(places) > 0, f"{len(lines)} items of {len(places)} records"
    return dict(zip(places, map(json.loads, lines)))


HEAD = re.compile(r"^(?:(\d+) )?(\d+) (0x[0-9a-f]+) \[0x[0-9a-f]+\]: PERF_RECORD_(\w+)(.*)$")


def perfs(path):
    """{offset: (cpu, time, type, rest of the line, the lines below)}"""
    records, below = {}, None
    for line in run("perf", "script", "-D", "-i", path).splitlines():
        if found := HEAD.match(line):
            cpu, time, offset, kind, rest = found.groups()
            below = []
            records[int(offset, 16)] = (cpu and int(cpu), int(time), kind, rest, below)
        elif below is not None:
            below.append(line)
    return records


# ---- what perf would print of ours -----------------------------------------------------------------------------------


def unit(size):
    """get_page_size_name() of perf"""
    units = "BKMG"
    while size // 1024 > 1 and len(units) > 1:
        size, units = size // 1024, units[1:]
    return f"{size}{units[0]}" if size else "N/A"


def hexadecimal(number):
    return f"{number:#x}" if number else "0"


def as_mmap(r, kind):
    place = f" {r['pid']}/{r['tid']}: [{r['addr']:#x}({r['len']:#x}) @ {hexadecimal(r['pgoff'])}"
    if kind == "MMAP":
        return f"{place}]: x {r['filename']}"
    who = f"<{r['build_id']}>" if "build_id" in r else f"{r['maj']:02x}:{r['min']:02x} {r['ino']} {r['ino_generation']}"
    prot = "".join(c if r["prot"] & bit else "-" for c, bit in zip("rwx", (1, 2, 4))) + ("s" if r["flags"] & 1 else "p")
    return f"{place} {who}]: {prot} {r['filename']}"


def as_switch(r, kind):
    out = "OUT" if r["out"] else "IN"
    words = [out] + ["preempt"] * r["preempted"]
    if kind == "SWITCH_CPU_WIDE":
        who = [n - (1 << 32 if n >> 31 else 0) for n in (r["next_prev_pid"], r["next_prev_tid"])]  # -1: it has ended
        words += ["next" if r["out"] else "prev", "pid/tid:", f"{who[0]}/{who[1]}"]
    return " ".join(words)


AS_PERF = {
    "COMM": lambda r, _: f"{' exec' if r['exec'] else ''}: {r['comm']}:{r['pid']}/{r['tid']}",
    "FORK": lambda r, _: f"({r['pid']}:{r['tid']}):({r['ppid']}:{r['ptid']})",
    "EXIT": lambda r, _: f"({r['pid']}:{r['tid']}):({r['ppid']}:{r['ptid']})",
    "MMAP": as_mmap,
    "MMAP2": as_mmap,
    "SWITCH": as_switch,
    "SWITCH_CPU_WIDE": as_switch,
    "NAMESPACES": lambda r, _: f" {r['pid']}/{r['tid']} - nr_namespaces: {len(r['namespaces'])} [" + ", ".join(
        f"{i}/{n['name']}: {n['dev']}/{n['inode']:#x}" for i, n in enumerate(r["namespaces"])) + "]",
    "KSYMBOL": lambda r, _: f" addr {r['addr'][2:]} len {r['len']} type {r['type']} flags {r['flags']:#x} "
                            f"name {r['name']}",
    "BPF_EVENT": lambda r, _: f" type {r['type']}, flags {r['flags']}, id {r['id']}",
    "CGROUP": lambda r, _: f" cgroup: {r['id']} {r['path']}",
    "LOST": lambda r, _: f"lost:{r['lost']}",
    "TEXT_POKE": lambda r, _: f" {r['addr'][2:]} old len {len(r['old_bytes']) // 2} new len {len(r['new_bytes']) // 2} "
                              f"Old bytes: {pairs(r['old_bytes'])} New bytes: {pairs(r['new_bytes'])}",
    "ITRACE_START": lambda r, _: f" pid: {r['pid']} tid: {r['tid']}",
    "AUX_OUTPUT_HW_ID": lambda r, _: f" hw_id: {r['hw_id']}",
}


def pairs(text):
    return " ".join(text[i:i + 2] for i in range(0, len(text), 2))


def as_latin1(text):
    """As perf's output is read here: JSON says a byte that is no UTF-8 as U+EF00 and its value."""
    return re.sub("[\uef80-\uefff]", lambda byte: chr(ord(byte[0]) - 0xef00), text)


def one_line(text):
    return " ".join(text.split())


class Sample:
    """The lines below PERF_RECORD_SAMPLE, as values."""

    def __init__(self, rest, below):
        found = re.match(r"\(IP, 0x\w+\): (\d+)/(\d+): (0x\w+|0) period: (\d+) addr: (0x\w+|0)$", rest)
        assert found, rest
        self.pid, self.tid = int(found[1]), int(found[2])
        self.ip, self.period, self.address = int(found[3], 16), int(found[4]), int(found[5], 16)
        self.text = "\n".join(below)

    def number(self, pattern, base=16):
        found = re.search(pattern, self.text)
        return int(found[1], base) if found else None

    def chain(self):
        """(kernel, user) addresses."""
        parts, context = {CONTEXT_KERNEL: [], CONTEXT_USER: []}, None
        for word in re.findall(r"^\.{5} +\d+: ([0-9a-f]{16})$", self.text, re.M):
            address = int(word, 16)
            if address >= (1 << 64) - 4095:
                context = address
            else:
                parts[context].append(address)
        return parts[CONTEXT_KERNEL], parts[CONTEXT_USER]

    def branches(self):
        pattern = r"^\.{5} +\d+: (\w+) -> (\w+) (\d+) cycles +([M ])([P ])([A ])([T ]) \w+ (\S*)"
        return [(int(a, 16), int(b, 16), int(cycles), m == "M", p == "P", x == "A", t == "T", kind)
                for a, b, cycles, m, p, x, t, kind in re.findall(pattern, self.text, re.M)]

    def registers(self, which):
        found = re.search(rf"^\.\.\. {which} regs: mask 0x(\w+) ABI (\S+)\n((?:\.\.\.\. .*\n?)*)", self.text, re.M)
        return found and ({"32-bit": 1, "64-bit": 2}[found[2]], {
            name: int(value, 16) for name, value in re.findall(r"^\.{4} (\w+) +(0x\w+)$", found[3], re.M)})

    def read(self):
        group = re.search(r"^\.\.\.\. group nr (\d+)", self.text, re.M)
        rows = re.findall(r"^\.{5} id (\w+), value (\w+), lost (\d+)", self.text, re.M)
        times = [self.number(rf"time {which} (\w+)") for which in ("enabled", "running")]
        return group and int(group[1]), [(int(v, 16), *times, int(lost)) for _, v, lost in rows]


def numbers(words):
    return [int(word, 16) for word in words]


class Records(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "perf.data")

    def make(self, scenario, *arguments):
        run(os.path.join(BUILD, "record-maker"), scenario, self.path, *arguments)
        return self.both()

    def build(self, *names, read_format=0, branches=8, user=0xff0fff, interrupt=0xff0fff, n=30):
        run(os.path.join(BUILD, "record-builder"), self.path, sample_type(*names), n, read_format, branches, user,
            interrupt)
        return self.both()

    def both(self):
        """Pairs of the same record, ours and perf's: all of the file's."""
        own, theirs = ours(self.path), perfs(self.path)
        self.assertEqual(set(own), set(theirs))
        return [(own[place], theirs[place]) for place in sorted(own)]

    def check_side(self, records):
        """Each side record, word by word; gives back how many there are of each type."""
        seen = {}
        for own, (cpu, time, kind, rest, below) in records:
            seen[kind] = seen.get(kind, 0) + 1
            if kind == "SAMPLE":
                continue
            self.assertEqual(own["time"], time)
            if cpu is not None:
                self.assertEqual(own["cpu"], cpu)
            if kind in ("NAMESPACES", "TEXT_POKE"):
                rest += " " + " ".join(line for line in below if line[:1].isspace())
            if kind == "LOST":
                rest = rest.split()[-1]
            self.assertEqual(one_line(as_latin1(AS_PERF[kind](own["record"], kind))), one_line(rest))
        return seen

    # what every sample has

    def check_common(self, own, time, sample):
        self.assertEqual((own["time"], own["pid"], own["tid"]), (time, sample.pid, sample.tid))
        self.assertEqual(int(own.get("ip", "0"), 16), sample.ip)
        kernel, user = sample.chain()
        self.assertEqual(numbers(own.get("kernel_callchain", [])), kernel)
        self.assertEqual(numbers(own.get("user_callchain", [])), user)

    def check_registers(self, own, sample):
        for name, which in (("user_registers", "user"), ("interrupt_registers", "intr")):
            theirs, mine = sample.registers(which), own[name]
            if mine["abi"] == 0:
                self.assertIsNone(theirs)
            else:
                self.assertEqual((mine["abi"], {k: int(v, 16) for k, v in mine["values"].items()}), theirs)

    def check_read(self, own, sample, format_):
        group, rows = sample.read()
        self.assertEqual([(c["value"], c["enabled"], c["running"], c["lost"]) for c in own["counters"]], rows)
        self.assertEqual(group, len(rows) if format_ & 8 else None)

    def check_memory(self, own, sample):
        self.assertEqual(int(own["data_source"]["raw"], 16), sample.number(r"data_src: 0x(\w+)"))
        transaction = own["transaction"]["abort_code"] << 32 | own["transaction"]["flags"]
        self.assertEqual(transaction, sample.number(r"transaction: (\w+)"))
        self.assertEqual(int(own.get("physical_address", "0"), 16), sample.number(r"phys_addr: 0x(\w+)"))
        for name, words in (("data_page_size", "data page size"), ("code_page_size", "code page size")):
            self.assertEqual(unit(own.get(name, 0)), re.search(rf"{words}: (\S+)", sample.text)[1])

    def check_weight_struct(self, own, sample):
        var1, var2 = re.search(r"weight: (\d+),(0x\w+),", sample.text).groups()  # perf 6.1 has no word for var3 on x86
        self.assertEqual((own["weight"]["var1"], own["weight"]["var2"]), (int(var1), int(var2, 16)))

    def check_stack(self, own, sample):
        self.assertEqual(len(own.get("user_stack", "")) // 2, sample.number(r"ustack: size (\d+)", 10) or 0)


class RealRecords(Records):
    """Written by this kernel."""

    def check_whole_samples(self, records, format_):
        for own, (cpu, time, kind, rest, below) in records:
            self.assertEqual(kind, "SAMPLE")
            sample = Sample(rest, below)
            self.check_common(own, time, sample)
            self.assertEqual((own["cpu"], own["period"]), (cpu, sample.period))
            self.assertEqual(int(own.get("address", "0"), 16), sample.address)
            self.check_registers(own, sample)
            self.check_read(own, sample, format_)
            self.check_memory(own, sample)
            self.check_weight_struct(own, sample)
            self.check_stack(own, sample)
            self.assertGreater(own["cgroup_id"], 0)
            self.assertEqual(own["id"], own["stream_id"])

    def test_page_faults_with_every_part(self):
        records = self.make("samples")
        self.assertGreaterEqual(len(records), 50)
        self.check_whole_samples(records, 8)
        faults = [own["counters"][0]["value"] for own, _ in records]
        self.assertEqual(faults, list(range(1, len(faults) + 1)))  # each sample reads one more, and the group with it
        self.assertTrue(all(len(own["counters"]) == 3 for own, _ in records))

    def test_clock_with_every_part(self):
        records = self.make("clock")
        self.assertGreaterEqual(len(records), 10)
        self.check_whole_samples(records, 0)
        self.assertTrue(any("user_stack" in own for own, _ in records))

    def test_tasks(self):
        seen = self.check_side(self.make("tasks"))
        self.assertEqual({k: seen[k] for k in ("COMM", "FORK", "EXIT", "NAMESPACES")},
                         {"COMM": 2, "FORK": 1, "EXIT": 1, "NAMESPACES": 1})
        self.assertGreaterEqual(seen["MMAP2"], 5)

    def test_build_ids(self):
        records = self.make("build-ids")
        self.check_side(records)
        self.assertTrue(any(len(own["record"].get("build_id", "")) == 40 for own, _ in records))

    def test_old_maps(self):
        self.assertGreaterEqual(self.check_side(self.make("old-maps"))["MMAP"], 2)

    def test_switches(self):
        self.assertGreaterEqual(self.check_side(self.make("switches"))["SWITCH"], 10)

    def test_switches_of_a_cpu(self):
        self.assertGreaterEqual(self.check_side(self.make("cpu-switches"))["SWITCH_CPU_WIDE"], 10)

    def test_namespaces(self):
        records = self.make("namespaces")
        self.assertEqual(self.check_side(records), {"NAMESPACES": 2})
        first, second = ({n["name"]: n["inode"] for n in own["record"]["namespaces"]} for own, _ in records)
        self.assertEqual({name for name in NAMESPACES if first[name] != second[name]}, {"uts", "mnt"})

    def test_bpf(self):
        seen = self.check_side(self.make("bpf"))
        self.assertTrue(seen.get("BPF_EVENT", 0) >= 2, seen)

    def test_cgroup(self):
        with open("/proc/self/mountinfo", encoding="utf-8") as f:
            mounts = [line.split() for line in f]
        folders = [m[4] for m in mounts if m[m.index("-") + 1] == "cgroup2" or
                   (m[m.index("-") + 1] == "cgroup" and "perf_event" in m[-1].split(","))]
        if not folders:
            self.skipTest("no cgroup hierarchy that perf_event is in is mounted")
        records = self.make("cgroup", folders[0])
        made = [own["record"]["path"] for own, (_, _, kind, _, _) in records if kind == "CGROUP"]
        self.check_side(records)
        self.assertTrue(any(re.fullmatch(r".*/perfd-record-maker-\d+", path) for path in made), made)

    def test_lost(self):
        seen = self.check_side(self.make("lost"))
        self.assertEqual(seen["LOST"], 1)


class BuiltRecords(Records):
    """Built by the header's words: perf has to understand the same as we."""

    def samples(self, *names, **arguments):
        records = self.build(*names, **arguments)
        for own, (_, time, _, rest, below) in records:
            sample = Sample(rest, below)
            self.check_common(own, time, sample)
            yield own, sample

    def test_branches(self):
        for branch_type in (8, 8 | HW_INDEX):
            n = 0
            for own, sample in self.samples("BRANCH_STACK", branches=branch_type):
                mine = [(int(b["from"], 16), int(b["to"], 16), b["cycles"], b["mispredicted"], b["predicted"],
                         b["abort"], b["in_transaction"]) for b in own.get("branches", [])]
                theirs = sample.branches()
                self.assertEqual(mine, [b[:7] for b in theirs])
                for b, (*_, kind) in zip(own.get("branches", []), theirs):
                    if 0 < b["type"] < 15:
                        self.assertEqual(b["type_name"], kind)
                n += len(mine)
            self.assertGreater(n, 20)

    def test_branches_in_words(self):
        self.build("BRANCH_STACK", n=20)
        text = run(os.path.join(BUILD, "sample-printer"), self.path, "--text")
        pattern = r"0x\w+/0x\w+/[MP-]/[X-]/[A-]/\d+/\w+"
        own = re.findall(pattern, text)
        theirs = re.findall(pattern, run("perf", "script", "-F", "time,brstack", "-i", self.path))
        self.assertGreater(len(theirs), 20)
        self.assertEqual(own, theirs)

    def test_data_sources(self):
        n = 0
        theirs = re.findall(r"^ *[\d.]+: +(\w+) \|(.*)$", self.data_sources(), re.M)
        for (own, _), (raw, words) in zip(self.both(), theirs):
            source = own["data_source"]
            self.assertEqual(int(source["raw"], 16), int(raw, 16))
            if bin(source["op"]).count("1") > 1 or source["hops"] > 4 or not 0 < source["level_number"] < 16:
                continue  # what no CPU says: perf has no word for it, or only the first of several
            mine, limit = source["text"].replace("|BLK ", "|BLK  "), 80
            self.assertEqual(mine[:min(limit, len(words.rstrip()))], words.rstrip()[:limit])
            n += 1
        self.assertGreater(n, 20)

    def data_sources(self):
        self.build("DATA_SRC", n=300)
        return run("perf", "script", "-F", "time,data_src", "-i", self.path)

    def test_memory(self):
        for own, sample in self.samples("DATA_SRC", "TRANSACTION", "PHYS_ADDR", "DATA_PAGE_SIZE", "CODE_PAGE_SIZE"):
            self.check_memory(own, sample)

    def test_weights(self):
        for own, sample in self.samples("WEIGHT_STRUCT"):
            self.check_weight_struct(own, sample)
        for own, sample in self.samples("WEIGHT"):
            self.assertEqual(own["weight"]["full"], sample.number(r"weight: (\d+)", 10))

    def test_registers(self):
        for own, sample in self.samples("REGS_USER", "REGS_INTR", user=0xff0fff, interrupt=0x1ff):
            self.check_registers(own, sample)

    def test_stacks(self):
        for own, sample in self.samples("STACK_USER"):
            self.check_stack(own, sample)

    def test_reads(self):
        for format_ in (4 | 16, 4 | 16 | 1 | 2, 4 | 16 | 8, 4 | 16 | 8 | 3):
            for own, sample in self.samples("READ", read_format=format_):
                group, rows = sample.read()
                mine = [(c["value"], c["lost"]) for c in own["counters"]]
                self.assertEqual(mine, [(row[0], row[3]) for row in rows])
                self.assertEqual(group, len(rows) if format_ & 8 else None)
                if format_ & 3:
                    self.assertEqual(own["counters"][0]["enabled"], rows[0][1])
                    self.assertEqual(own["counters"][0]["running"], rows[0][2])

    def test_all_parts_at_once(self):
        """Each part is found behind all others, whatever their lengths are."""
        parts = [name for name in SAMPLE if name not in ("RAW", "WEIGHT")]
        for own, sample in self.samples(*parts, read_format=31, branches=8 | HW_INDEX, n=40):
            self.check_registers(own, sample)
            self.check_memory(own, sample)
            self.check_weight_struct(own, sample)
            self.check_stack(own, sample)
            self.check_read(own, sample, 8)
            self.assertEqual(len(own.get("branches", [])), len(sample.branches()))

    def test_side_records(self):
        run(os.path.join(BUILD, "record-builder"), self.path, "side")
        seen = self.check_side(self.both())
        self.assertEqual(set(seen), {"SWITCH", "SWITCH_CPU_WIDE", "NAMESPACES", "KSYMBOL", "BPF_EVENT", "CGROUP",
                                     "TEXT_POKE", "ITRACE_START", "AUX_OUTPUT_HW_ID"})


del Records

if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
