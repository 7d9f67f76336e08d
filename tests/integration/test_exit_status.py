#!/usr/bin/python3
"""Each verb of perfctl ends with the status that perfctl(1) has in EXIT STATUS, and says why. Needs root."""
import json
import os
import re
import subprocess

import perfd
from perfd import Daemon, check, equal
from test_control import PERFCTL

MAN = os.path.join(os.path.dirname(__file__), "..", "..", "client", "perfctl", "perfctl.1")
ABSENT = "/nonexistent/perfd.sock"
NO = "nosuch:event"
# Arguments that are right, but for what they name; and what the daemon answers on its stream socket. None: needs no daemon.
VERBS = {
    "status": ([], 0), "list": ([], 0), "available": ([], 0), "show": ([NO], 1), "add": (["page-faults"], 1), "remove": ([NO], 1),
    "enable": ([NO], 1), "disable": ([NO], 1), "filter": ([NO, "a == 1"], 1), "period": ([NO, "5"], 1), "watch": ([NO], 1),
    "record": (["--output", "-", NO], 1), "count": ([NO], 1), "top": ([NO], 1), "stat": (["page-faults"], 1), "emit": ([NO, "a=1"], 1), "ledger": ([NO], 1), "metrics": ([], 0), "doctor": ([], 0),
    "validate": (["FILE"], 1), "plan": (["FILE"], 1), "apply": (["FILE"], 1), "reload": ([], 1), "stdio": ([], 0), "version": ([], 0), "help": ([], None),
}
ELSEWHERE = {"fleet": ["--nats", "nats://127.0.0.1:1", "hosts"]}  # asks another server, which is not there
RECORDINGS = {"info": ["FILE"], "script": ["--input", "FILE"], "flame": ["--input", "FILE"],
              "export": ["--to", "folded", "--input", "FILE"], "report": ["--input", "FILE"]}  # reads a file that is no recording here, and asks nobody
OPTIONAL = {"record", "report", "top", "script", "flame", "info", "watch", "stat", "ledger", "plan"}  # that may have no argument at all


def run(*arguments):
    return subprocess.run([PERFCTL, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=perfd.PATIENCE, check=False)


def expect(status, *arguments):
    done = run(*arguments)
    equal(done.returncode, status, f"the status of {arguments}, which said {done.stderr.strip()!r}")
    says = done.stdout if status == 1 and "validate" in arguments and not done.stderr else done.stderr  # mistakes are its output
    check(status == 0 or says.startswith("perfctl: ") or (says is done.stdout and "no-such-key" in says), f"{arguments} does not say why: {done.stderr!r}")
    return done


def words(verb, file):
    return [verb, *(file if word == "FILE" else word for word in VERBS[verb][0])]


def test_every_verb_is_here():
    """And every status is in the page."""
    equal({json.loads(line)["verb"] for line in run("help", "--json").stdout.splitlines()}, {*VERBS, *ELSEWHERE, *RECORDINGS}, "the verbs")
    with open(MAN, encoding="utf-8") as f:
        section = f.read().split(".Sh EXIT STATUS")[1].split(".Sh ")[0]
    equal(re.findall(r"^\.It (\d+)$", section, flags=re.M), ["0", "1", "2", "3", "4", "126", "127"], "the statuses of the page")


def test_wrong_command_lines():
    """Before anybody is asked: there is no daemon."""
    expect(2, "nosuch")
    for verb, arguments in [*((verb, arguments) for verb, (arguments, _) in VERBS.items()), *ELSEWHERE.items(), *RECORDINGS.items()]:
        for wrong in "--nosuch", "-Z":
            expect(2, "--socket", ABSENT, verb, wrong)
        if arguments and verb not in OPTIONAL:
            expect(2, "--socket", ABSENT, verb)
    equal(run().returncode, 2, "no verb at all")


def test_no_host():
    """A name that can be none is a wrong command line; a host that nobody is at is one that cannot be reached."""
    for wrong in "box;id", "tls://localhost", "ssh://", "-x":
        check("expected unix:PATH, ssh://" in expect(2, "--host", wrong, "list").stderr, f"--host {wrong}: what is expected")
    expect(3, "--host", f"unix:{ABSENT}", "list")


def test_no_daemon():
    with perfd.tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
        f.write("version: 1\n")
        f.flush()
        for verb, (_, answer) in VERBS.items():
            done = expect(0 if answer is None else 3, "--socket", ABSENT, *words(verb, f.name))
            equal(ABSENT in done.stderr, answer is not None, f"{verb} names the socket: {done.stderr!r}")
        for verb in RECORDINGS:
            given = [f.name if word == "FILE" else word for word in RECORDINGS[verb]]
            check(f.name in expect(1, "--socket", ABSENT, verb, *given).stderr, f"{verb} does not name its file")
    for verb, arguments in ELSEWHERE.items():
        check(arguments[1] in expect(3, verb, *arguments).stderr, f"{verb} does not name its server")


def test_answers():
    """What only looks is answered, what changes something, or names what is not there, is refused."""
    with Daemon("version: 1\n") as daemon, perfd.tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
        f.write("version: 1\nno-such-key: 1\n")
        f.flush()
        for verb, (_, answer) in VERBS.items():
            expect(answer or 0, "--socket", daemon.stream, *words(verb, f.name))


def test_what_goes_wrong_here():
    """A file that is not there, and an output that cannot be written."""
    with Daemon() as daemon:
        for verb in "validate", "plan", "apply":
            expect(1, "--socket", daemon.control, verb, "/nonexistent/file")
        for verb, arguments in RECORDINGS.items():
            expect(1, "--socket", daemon.control, verb, *("/nonexistent/file" if word == "FILE" else word for word in arguments))
        for verb in "status", "available", "doctor":
            with open("/dev/full", "w", encoding="ascii") as full:
                done = subprocess.run([PERFCTL, "--socket", daemon.control, verb], stdout=full, stderr=subprocess.PIPE, text=True,
                                      timeout=perfd.PATIENCE, check=False)
            equal((done.returncode, "No space left on device" in done.stderr), (1, True), f"{verb}, which said {done.stderr!r}")


if __name__ == "__main__":
    perfd.main(globals())
