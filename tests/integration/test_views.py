#!/usr/bin/python3
"""A recording of perf in the forms of other tools, and as a flame graph: the same sums as the samples have one by one. Needs root, for
perf record."""
import collections
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile

import perfd
from perfd import check, equal
from test_perfctl import PERFCTL

sys.path.insert(0, os.path.join(os.environ["PERFD_BUILD"], "client", "profile"))
import profile_pb2  # pylint: disable=wrong-import-position,wrong-import-order

FOLDER = tempfile.TemporaryDirectory(prefix="perfd-test.")
PATH = os.path.join(FOLDER.name, "perf.data")
LOAD = "import os, hashlib; [os.waitpid(os.fork() or os._exit(hashlib.md5(bytes(9 << 20)).digest()[0] & 0), 0) for _ in range(5)]"


def run(*command, status=0, **more):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=perfd.PATIENCE, check=False, **more)
    equal(done.returncode, status, f"the status of {command}, which said {done.stderr}")
    return done


def perfctl(*words, **more):
    return run(PERFCTL, *words, **more)


def recording():
    """Made once: of two events, with callchains."""
    if not os.path.exists(PATH):
        run("perf", "record", "-q", "-g", "-F", "5000", "-e", "cpu-clock,page-faults", "-o", PATH, "--", sys.executable, "-c", LOAD)
    return PATH


def samples(*events, path=PATH):
    return [json.loads(line) for line in perfctl("script", "--json", "-i", path, *events).stdout.splitlines()]


def stack(sample):
    """As folded stacks have it."""
    frames = [(f, True) for f in sample.get("kernel_callchain", [])] + [(f, False) for f in sample.get("user_callchain", [])]
    if not frames:
        return None  # the ip alone, of which script does not say the name
    return ";".join([sample["comm"], *(name_of(frame) + ("_[k]" if kernel else "") for frame, kernel in reversed(frames))])


def name_of(frame):
    if frame["symbol"]:
        return frame["symbol"].replace(";", ":")
    file = os.path.basename(frame["dso"] or "")
    return "[unknown]" if not file else file if file.startswith("[") else f"[{file}]"


def folded(*words):
    lines = [line.rpartition(" ") for line in perfctl("export", "--to", "folded", "-i", recording(), *words).stdout.decode().splitlines()]
    return {where: int(n) for where, _, n in lines}


def test_folded():
    """Of one event the sums of what it counts, of several the number of samples."""
    recording()
    for events, weight in ((("cpu-clock",), lambda s: s["period"]), ((), lambda s: 1)):
        expected = collections.Counter()
        for sample in samples(*events):
            check(stack(sample), sample)
            expected[stack(sample)] += weight(sample)
        equal(folded(*events), dict(expected), f"stacks of {events}")


def test_pprof():
    """Decoded by pprof's own definitions: a value for the samples, and one for each event; by `go tool pprof`, where it is."""
    recording()
    path = os.path.join(FOLDER.name, "p.pb.gz")
    perfctl("export", "--to", "pprof", "-i", PATH, "-o", path)
    with gzip.open(path) as f:
        p = profile_pb2.Profile.FromString(f.read())
    kinds = [(p.string_table[v.type], p.string_table[v.unit]) for v in p.sample_type]
    equal(kinds, [("samples", "count"), ("cpu-clock", "nanoseconds"), ("page-faults", "count")], "values")
    every = samples()
    expected = [len(every), *(sum(s["period"] for s in every if s["event"] == name) for name in ("cpu-clock", "page-faults"))]
    equal([sum(s.value[i] for s in p.sample) for i in range(3)], expected, "sums")
    equal(oct(os.stat(path).st_mode & 0o777), oct(0o644), "the mode of the file")


def test_speedscope():
    recording()
    said = json.loads(perfctl("export", "--to", "speedscope", "-i", PATH, "page-faults").stdout)
    equal(sum(sum(p["weights"]) for p in said["profiles"]), sum(s["period"] for s in samples("page-faults")), "weights")


def page(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def test_flame():
    """One page; what had its name is kept; with an older recording their difference."""
    recording()
    path = os.path.join(FOLDER.name, "flame.html")
    for title in "first", "</script><b>second":
        perfctl("flame", "-i", PATH, "-o", path, "--title", title, "cpu-clock")
    check('"title":"first"' in page(path + ".old") and "</script><b>" not in page(path), "titles")
    check(not re.search(r"(?:src|href)=.?https?:|url\(|fetch\(|import ", page(path)), "it asks somebody")
    equal(sorted(name for name in os.listdir(FOLDER.name) if name.startswith("flame")), ["flame.html", "flame.html.old"], "files")
    perfctl("flame", "-i", PATH, "-o", path, "--diff", PATH, "cpu-clock")
    check('"isDifference":true' in page(path), "no difference")


def test_wrong():
    """What cannot be: said, and nothing that was there is touched."""
    recording()
    for words, status, text in (
            (["export", "-i", PATH], 2, "--to says which form: one of: folded"),
            (["export", "--to", "xml", "-i", PATH], 2, "--to: 'xml' is none of: folded"),
            (["export", "--to", "folded", "-i", PATH, "nosuch*"], 1, "it has no samples of these events"),
            (["export", "--to", "folded", "-i", PATH, "-o", FOLDER.name], 1, "it is no regular file"),
            (["export", "--to", "folded", "-i", PATH, "-o", "/nonexistent/x"], 1, "a file beside it cannot be created: No such file"),
            (["flame", "-i", "/nonexistent/perf.data"], 1, "/nonexistent/perf.data: "),
            (["flame", "-i", PATH, "--diff", "/nonexistent/perf.data"], 1, "/nonexistent/perf.data: "),
            (["flame", "-i", PATH, "-o", "/nonexistent/x"], 1, "a file beside it cannot be created")):
        said = perfctl(*words, status=status, cwd=FOLDER.name).stderr.decode()
        check(text in said, f"{words}: {said}")
    equal([name for name in os.listdir(FOLDER.name) if name.startswith(("x", "flame.html.", "perf.data."))
           and not name.endswith(".old")], [], "left behind")
    with open("/dev/full", "wb") as full:
        done = subprocess.run([PERFCTL, "flame", "-i", PATH, "-o", "-"], stdout=full, stderr=subprocess.PIPE, check=False)
    equal((done.returncode, b"stdout: No space left on device" in done.stderr), (1, True), f"on a full disk: {done.stderr}")


def test_damaged():
    """Of a recording that was cut what is whole is written, and the status says that it is not all."""
    cut = os.path.join(FOLDER.name, "cut.data")
    with open(recording(), "rb") as f, open(cut, "wb") as out:
        whole = f.read()
        out.write(whole[:len(whole) // 2])
    path = os.path.join(FOLDER.name, "cut.folded")
    done = perfctl("export", "--to", "folded", "-i", cut, "-o", path, status=1)
    check(b"at byte" in done.stderr, done.stderr)
    with open(path, encoding="utf-8") as f:
        n = sum(int(line.rpartition(" ")[2]) for line in f)
    check(0 < n < len(samples()), n)


if __name__ == "__main__":
    perfd.main(globals())
