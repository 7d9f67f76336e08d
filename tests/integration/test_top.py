#!/usr/bin/python3
"""`perfctl top` on a terminal, whose screen is looked at as a person sees it, and of real samples and recordings. Needs root."""
import contextlib
import json
import os
import re
import signal
import subprocess
import tempfile
import time

import perfd
from perfd import Daemon, add, check, equal, pb
from terminal import Terminal, need_pyte
from test_control import PERFCTL

EVENT = {"event": "external:x", "fields": [pb.ExternalField(name="who", type="text")]}
ESCAPES = "\x1b]0;taken\x07\x1b[2Jx"


def emit(client, **times):
    """Samples of these texts, each so often."""
    texts = [text for text, n in times.items() for _ in range(n)]
    samples = [pb.ExternalSample(event="external:x", time=time.monotonic_ns(), values=[pb.ExternalValue(text=text.encode())]) for text in texts]
    equal(client.request(emit=pb.EmitRequest(samples=samples)).emitted.taken, len(texts), "taken")


@contextlib.contextmanager
def top(*words, **terminal):
    """On a terminal, with a client that can emit samples, when its screen is there."""
    with Daemon() as daemon, daemon.client() as client:
        add(client, EVENT)
        with contextlib.closing(Terminal([PERFCTL, "--socket", daemon.control, "top", "external:x", "--by", "who", *words], **terminal)) as one:
            one.until(lambda lines: lines[0].startswith("perfctl top: external:x by who"), "the screen")
            yield one, client, daemon


def rows(lines):
    """Of the table, if there is one: the words of each, but for its share."""
    if not lines[2].endswith("TOTAL"):
        return []
    end = next((i for i in range(3, len(lines)) if not lines[i] or lines[i].startswith("q quit")), len(lines))
    return [[word for word in line.split() if not word.endswith("%")] for line in lines[3:end]]


def totals(lines):
    found = rows(lines)
    return {row[0]: int(row[-1]) for row in found} if all(row[-1].isdecimal() for row in found) else {} # a screen that is being drawn


def test_keys():
    """One screen, from the first sample to q: what is counted, pause, names, filter, another subject, zero, help, a smaller terminal."""
    with top("--interval", "100ms", "--total", columns=120) as (one, client, _):
        emit(client, b=2, a=3, c10=1, c9=1, **{ESCAPES: 2})
        shown = r"\x1b]0;taken\x07\x1b[2Jx"
        lines = one.until(lambda lines: sum(totals(lines).values()) == 9, "nine samples")
        equal([row[0] for row in rows(lines)], ["a", shown, "b", "c9", "c10"], "the largest first, then by name, escaped")
        equal([line.split()[1] for line in lines[3:8]], ["33.33%", "22.22%", "22.22%", "11.11%", "11.11%"], "shares")
        check("nothing lost" in lines[0] and "9 samples in " in lines[0] and lines[2].split() == ["WHO", "SHARE", "SAMPLES", "TOTAL"], lines)
        equal(one.screen.title, "", "the title that a name wanted")
        check(all(one.screen.buffer[2][x].reverse for x in range(120)), "the heading is not reversed to its end")

        one.type("s")
        one.until(lambda lines: [row[0] for row in rows(lines)] == [shown, "a", "b", "c9", "c10"], "the order of names")
        one.type("s/c1\r")
        lines = one.until(lambda lines: totals(lines) == {"c10": 1}, "only what has the text of the filter")
        check(lines[1].startswith("filter: c1   1 of 5 rows"), lines)
        one.type("/\x1b")
        one.until(lambda lines: len(rows(lines)) == 5, "all again")

        one.type("p")
        one.until(lambda lines: lines[0].endswith("PAUSED"), "a pause")
        emit(client, later=5)
        one.type("t")  # another window than that of the pause is not shown
        one.until(lambda lines: "since the start" not in lines[0], "the last interval")
        one.type("t")
        equal(totals(one.until(lambda lines: "since the start" in lines[0], "all since the start")).get("later"), None, "of a pause")
        one.type(" ")
        one.until(lambda lines: totals(lines).get("later") == 5, "what came meanwhile")

        one.type("?")
        one.until(lambda lines: any(line.startswith("z          zero") for line in lines), "the help")
        one.type("x")
        one.until(lambda lines: totals(lines).get("a") == 3, "the table again")
        one.resize(8, 40)
        lines = one.until(lambda lines: len(lines) == 8 and lines[7].startswith("q quit") and lines[2].startswith("WHO"), "a smaller screen")
        check(all(len(line) <= 40 for line in lines) and rows(lines)[0][0] == "later", lines)
        check(any(line.startswith("(5 more)") for line in lines), lines)
        one.resize(30, 120)
        one.until(lambda lines: lines[29].startswith("q quit") and len(rows(lines)) == 6, "a larger one")

        one.type("z")
        one.until(lambda lines: rows(lines) == [], "nothing")
        emit(client, new=1)
        one.until(lambda lines: totals(lines) == {"new": 1}, "what came behind it")
        one.type("B")
        one.until(lambda lines: " by event " in lines[0], "another subject")
        emit(client, new=4)
        one.until(lambda lines: totals(lines) == {"external:x": 4}, "events")
        one.type("q")
        equal(one.end(), 0, "its status")
        check(one.has_settings_of_before() and not one.screen.cursor.hidden, "the terminal is not as it was")
        check(any(line == "19 samples, nothing lost; stopped" for line in one.lines), one.lines)


def test_ends():
    """The terminal is as before behind SIGINT, SIGTERM, Ctrl-C, and a second signal while nobody answers the first."""
    with top() as (one, client, daemon):
        command = one.process.args
        emit(client, a=1)
        equal((one.end(signal.SIGINT), one.has_settings_of_before()), (0, True), "SIGINT")
        for what in signal.SIGTERM, "\x03":
            with contextlib.closing(Terminal(command)) as other:
                other.until(lambda lines: lines[0].startswith("perfctl top: "), "the screen")
                check(not other.has_settings_of_before(), "keys come as lines")
                if isinstance(what, str):
                    other.type(what)
                equal((other.end(*([] if isinstance(what, str) else [what])), other.has_settings_of_before()), (0, True), f"{what!r}")
                check(not other.screen.cursor.hidden, "the cursor is hidden")
        with contextlib.closing(Terminal(command)) as other:
            other.until(lambda lines: lines[0].startswith("perfctl top: "), "the screen")
            pid = daemon.find_pid()
            os.kill(pid, signal.SIGSTOP)
            try:
                equal((other.end(signal.SIGINT, signal.SIGTERM), other.has_settings_of_before()), (1, True), "a second signal")
            finally:
                os.kill(pid, signal.SIGCONT)
            check(not other.screen.cursor.hidden, "the cursor is hidden")


def test_losses():
    """What is dropped while nobody reads is shown, said on the terminal at the end, and adds up with what was counted to what was emitted."""
    with top("--total", "--interval", "100ms", "--queue", "64KiB", columns=120) as (one, client, daemon):
        one.process.send_signal(signal.SIGSTOP)
        emitted = 0
        try:
            while not any(loss.count for s in daemon.ledger().subscribers for loss in s.dropped):
                emit(client, **{"x" * 200: 500})
                emitted += 500
                check(emitted < 1000000, "nothing is dropped")
        finally:
            one.process.send_signal(signal.SIGCONT)

        def found(lines):
            """Samples and those that were dropped, of the first line; None: nothing was."""
            words = re.search(r" (\d+) samples? in .* (\d+) dropped", lines[0])
            return words and (int(words[1]), int(words[2]))

        def late():
            """Samples that took more than 5 ms from here to the dispatcher, on a host with much to do."""
            return sum(loss.count for s in daemon.ledger().subscribers for loss in s.dropped if loss.reason == "late")
        counted, dropped = found(one.until(lambda lines: found(lines) and sum(found(lines)) + late() == emitted, f"all {emitted} samples"))
        one.until(lambda lines: lines[1].startswith("perfctl: top: ") and "dropped, because they are not read as fast as they come" in lines[1],
                  "the message")
        one.until(lambda lines: list(totals(lines).values()) == [counted], "as many in the row")
        check(one.screen.buffer[0][0].bold, "the first line is not bold")
        one.type("q")
        equal(one.end(), 4, "its status")
        said = one.written.decode()
        end = re.search(r"(\d+) samples, (\d+) lost: .*outbox (\d+)", said)
        equal((int(end[1]), int(end[1]) + int(end[2]), int(end[3])), (counted, emitted, dropped), "the last line")
        equal(said.count("dropped, because"), 2, "once on the screen, and once behind it")


def test_no_screen():
    """A terminal that is not known is said, and is as it was."""
    need_pyte()
    with Daemon() as daemon, daemon.client() as client:
        add(client, EVENT)
        with contextlib.closing(Terminal([PERFCTL, "--socket", daemon.control, "top", "external:x"], columns=120, term="no-such-terminal")) as one:
            equal((one.end(), one.has_settings_of_before()), (1, True), "its status")
            check(any("this terminal is not known ($TERM is no-such-terminal): --batch prints" in line for line in one.lines), one.lines)


def test_symbols():
    """A program that does nothing else than one function, and what perf has recorded of it: the same name, and all samples in some row."""
    with tempfile.TemporaryDirectory() as folder:
        source, program, recording = (os.path.join(folder, name) for name in ("busy.c", "busy", "perf.data"))
        with open(source, "w", encoding="ascii") as f:
            f.write("volatile unsigned long n; __attribute__((noinline)) void spin_here(void) { for (;;) n++; } int main(void) { spin_here(); }\n")
        subprocess.run(["gcc", "-g", "-O1", "-o", program, source], check=True)
        with Daemon() as daemon, subprocess.Popen([program]) as busy:
            try:
                done = subprocess.run([PERFCTL, "--socket", daemon.control, "--json", "top", "cpu-clock", "-F", "500", "--by", "pid,symbol",
                                       "--pid", str(busy.pid)], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=perfd.PATIENCE, check=False)
                equal((done.returncode, done.stderr), (0, ""), "its status")
                subprocess.run(["perf", "record", "-q", "-e", "cpu-clock", "-F", "500", "-o", recording, "-p", str(busy.pid), "--", "sleep", "0.2"],
                               stdout=subprocess.DEVNULL, check=True)
            finally:
                busy.kill()
        documents = [json.loads(line) for line in done.stdout.splitlines()]
        found = [d for d in documents if d["kind"] == "top"]
        interval = next(d for d in documents if d["kind"] == "interval")
        equal(sum(d["count"] for d in found), interval["counted"], "the sum of all rows")
        check({"pid": busy.pid, "symbol": "spin_here", "dso": program} in [d["key"] for d in found], f"rows: {found}")

        listed = subprocess.run(["perf", "script", "-i", recording, "-F", "ip,sym"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                check=True).stdout.splitlines()
        done = subprocess.run([PERFCTL, "top", "-i", recording], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=perfd.PATIENCE,
                              check=False)
        equal((done.returncode, done.stderr), (0, ""), "its status")
        lines = [line.split("\t") for line in done.stdout.splitlines()]
        equal(sum(int(line[2]) for line in lines), len(listed), "samples of the recording")
        row, = (line for line in lines if line[0] == "spin_here [busy]")
        equal(int(row[2]), sum(line.split()[-1] == "spin_here" for line in listed), "its samples, as perf script names them")


if __name__ == "__main__":
    perfd.main(globals())
