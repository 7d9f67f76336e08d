#!/usr/bin/python3
"""`perfctl status` says which configuration holds: the file's, one that was applied, or none; since when, and whether what is on
disk is another one by now; and what of it waits for a restart. Needs root."""
import os
import signal
import subprocess
import tempfile
import time

from perfd import PERFD, Daemon, check, equal, main, pb, refused, wait_until
from test_control import documents, perfctl
from test_errors import PERFMON, need_paranoid, read

NOBODY = 65534


def status(daemon):
    row, = documents(daemon, "status")
    return row


def expect(daemon, path, applied="", changed=False):
    row = status(daemon)
    equal((row["config"], row["applied"], row["config_changed"]), (path, applied, changed), "which configuration")
    return row["config_read"]


def write(path, text):
    with open(path, "w", encoding="ascii") as f:
        f.write(text)


def config_of(daemon):
    return status(daemon)["config"]


def fact(daemon, name):
    facts = dict(line.split("\t") for line in perfctl(daemon, "status").stdout.splitlines() if line.count("\t") == 1)
    return facts[name]


def test_none():
    with Daemon() as daemon:
        equal(expect(daemon, ""), 0, "when the defaults were read")
        equal([fact(daemon, name) for name in ("config", "applied", "config-read", "config-changed")], ["", "", "-", "no"], "as text")


def test_reload_and_apply():
    before = time.time_ns()
    with Daemon("version: 1\n") as daemon:
        path = config_of(daemon)
        started = expect(daemon, path)
        check(before <= started <= time.time_ns(), f"read at {started}")
        write(path, "version: 1\nrings: { size: 1MiB }\n")
        equal(expect(daemon, path, changed=True), started, "nothing was read")
        perfctl(daemon, "reload")
        reloaded = expect(daemon, path)
        check(reloaded > started, "the reload has read it")

        other = f"{daemon.directory}/other.yaml"
        write(other, "version: 1\n")
        perfctl(daemon, "apply", other)
        applied = expect(daemon, path, applied=other)
        check(applied > reloaded, "the apply has read it")
        equal(fact(daemon, "config-changed"), "replaced", "to a program, the file while something else holds")
        write(path, "version: 1\nno-such-key: 1\n")
        perfctl(daemon, "reload", status=1)
        equal(expect(daemon, path, applied=other), applied, "a reload that was refused")
        write(path, "version: 1\n")
        os.kill(daemon.pid, signal.SIGHUP)
        wait_until(lambda: status(daemon)["config_read"] > applied, "SIGHUP to be served")
        expect(daemon, path)


def test_rules_are_not_applied():
    """An apply says that it has not changed who may do what, and so does the status until a reload."""
    with Daemon("version: 1\naccess:\n  rules:\n    - {status: true}\n") as daemon:
        other = f"{daemon.directory}/other.yaml"
        write(other, "version: 1\naccess:\n  rules:\n    - {stat: true}\n    - {status: true}\n")
        said = "access.rules are not applied: only perfd's own configuration, at its start and by a reload, has rules that hold; 1 of it stay"
        check(said in perfctl(daemon, "apply", other).stderr, "an apply says nothing of its rules")
        check(documents(daemon, "apply", other)[0]["notes"][0].startswith(said), "nor does its JSON")
        equal((status(daemon)["applied"], status(daemon)["applied_without"]), (other, "access.rules"), "what the status says")
        equal(fact(daemon, "applied-without"), "access.rules", "as text")
        perfctl(daemon, "reload")
        equal((status(daemon)["applied"], status(daemon)["applied_without"]), ("", ""), "what it says after a reload")
        write(other, "version: 1\n")
        check("notes" not in documents(daemon, "apply", other)[0] and status(daemon)["applied_without"] == "", "said of a text without rules")


def test_drop_ins():
    """One that comes, changes, and goes; also if its bytes have the same number."""
    with Daemon("version: 1\n") as daemon:
        path = config_of(daemon)
        folder = path.removesuffix(".yaml") + ".d"
        expect(daemon, path)
        os.mkdir(folder)
        for step in (lambda: write(f"{folder}/a.yaml", "version: 1\n"), lambda: write(f"{folder}/a.yaml", "version: 1 "),
                     lambda: os.rename(f"{folder}/a.yaml", f"{folder}/b.yaml"), lambda: os.unlink(f"{folder}/b.yaml"),
                     lambda: os.rmdir(folder)):
            step()
            wait_until(lambda: status(daemon)["config_changed"], "the change to be seen")
            perfctl(daemon, "reload")
            expect(daemon, path)


def test_what_needs_a_restart_is_named():
    """At each reload, of what perfd was started with: by key, values and place; nothing once it is taken back."""
    with Daemon(config="version: 1\nclock: monotonic-raw\n") as daemon, daemon.client() as client:
        path = os.path.join(daemon.directory, "perfd.yaml")

        def reload(text):
            before = len(daemon.stderr().splitlines())
            write(path, text)
            client.request(reload=pb.Empty())
            return [line for line in daemon.stderr().splitlines()[before:] if "restart" in line]

        changed = "version: 1\nrings: {size: 1MiB}\nbatches: {pool: 1MiB}\naccess:\n  stream-mode: 0600\n"
        for time in ("first", "second"):
            equal(reload(changed), [
                f"perfd: {path}:5:16: access.stream-mode takes effect after a restart: it is 0660 until then, and 0600 afterwards",
                "perfd: clock, which is no longer set, takes effect after a restart: it is monotonic-raw until then, and monotonic afterwards",
                f"perfd: {path}:3:17: batches.pool takes effect after a restart: it is 2097152 bytes until then, and 1048576 bytes afterwards",
            ], f"what is said the {time} time")
        equal(daemon.status().clock, "monotonic-raw", "the clock that perfd has")
        equal(documents(daemon, "watch", "--for", "1ms")[0]["clock"], "monotonic-raw", "the clock of a stream")
        clock, pool = [{"field": field, "before": before, "after": after} for field, before, after in
                       (("clock", "monotonic-raw", "monotonic"), ("batches.pool", "2097152", "1048576"))]
        told = documents(daemon, "reload")[0]["needs_restart"]
        equal([row for row in told if row != {"field": "access.stream-mode", "before": "0660", "after": "0600"}], [clock, pool],
              "what a reload answers")
        equal(documents(daemon, "apply", "-", data="version: 1\nbatches: {pool: 1MiB}\n")[0]["needs_restart"], [clock, pool],
              "what an apply answers")
        equal(status(daemon)["needs_restart"], [clock, pool], "what the status says")
        equal(fact(daemon, "needs-restart"), "clock: monotonic-raw -> monotonic; batches.pool: 2097152 -> 1048576", "as text")
        reload(changed)
        planned = [line.split("\t")[::5] for line in perfctl(daemon, "plan").stdout.splitlines()]
        equal([row for row in planned if row[0] == "restart"],
              [["restart", "access.stream-mode: 0660 -> 0600"], ["restart", "clock: monotonic-raw -> monotonic"],
               ["restart", "batches.pool: 2097152 -> 1048576"]], "what a plan of what holds says")
        equal(reload("version: 1\nclock: monotonic-raw\n"), [], "what is said once it is taken back")
        equal([row for row in documents(daemon, "plan") if row["change"] == "setting"], [], "what a plan says then")
        check("needs_restart" not in status(daemon), "the status names what was taken back")
        check("needs-restart" not in perfctl(daemon, "status").stdout, "and so does its text")
        check("needs_restart" not in documents(daemon, "reload")[0], "a reload that takes it back names it")


def test_clocks_of_software_events():
    """The kernel opens tracepoints with none of them, which is said before a restart would show it, and of what a client adds."""
    text = "version: 1\nclock: %s\ngroups: {g: {events: [cs, {event: 'sched:sched_switch'}]}}\n"
    with Daemon("version: 1\n") as daemon:
        path = config_of(daemon)
        for clock in ("realtime", "boottime"):
            said = f"{path}:2:8: clock: with {clock} the kernel opens software events, but no tracepoints"
            write(path, text % clock)
            for verb in (["reload"], ["plan"], ["plan", path], ["validate", path], ["apply", path]):
                ran = perfctl(daemon, *verb, status=1)
                check(said in ran.stderr + ran.stdout, f"{verb} says {ran}")
            ran = subprocess.run([PERFD, "--check", "--any-host", "--config", path], capture_output=True, text=True, check=False)
            equal((ran.returncode, said in ran.stderr), (1, True), ran.stderr)
        write(path, text % "monotonic-raw")
        perfctl(daemon, "validate", path)
    with Daemon("version: 1\nclock: realtime\ngroups: {g: {events: [cs]}}\n") as daemon:
        equal([row["name"] for row in documents(daemon, "list")], ["cs"], "what has been opened")
        refused = perfctl(daemon, "add", "sched:sched_switch", status=1).stderr
        check("the kernel opens it only with the clocks monotonic and monotonic-raw" in refused, refused)


def test_place_of_a_rule():
    """It is of no folder of perfd's, which who reads it does not know: also if perfd was told so."""
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        os.chmod(folder, 0o755)
        relative = f'n=$#; for a; do case $a in {folder}/perfd.yaml) a=perfd.yaml ;; esac; set -- "$@" "$a"; done; shift $n; exec "$@"'
        with Daemon(f"version: 1\naccess: {{rules: [{{users: [{NOBODY}], status: true}}], stream-mode: 0666}}\n", directory=folder,
                    prefix=("sh", "-c", relative, "sh"), cwd=folder) as daemon, daemon.client_of(NOBODY) as bob:
            equal(bob.request(status=pb.Empty()).daemon.access.place.split(":")[0], f"{folder}/perfd.yaml", "its place")



def test_larger_rings_in_limited_memory():
    """Old and new rings do not fit together, and the new ones alone do: that is said, and what helps."""
    paranoid = need_paranoid(0)
    kib = int(read("/proc/sys/kernel/perf_event_mlock_kb"))
    check(paranoid >= 0 and kib < 2048, f"perf_event_mlock_kb is {kib}")
    n_cpus = os.sysconf("SC_NPROCESSORS_ONLN")
    allowed = n_cpus * ((2048 - kib) << 10) + n_cpus * 65536  # for rings of 2 MiB, and not of 3
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as directory:
        os.chmod(directory, 0o1777)
        with Daemon("version: 1\nrings: {size: 1MiB}\n", prefix=(*PERFMON, "prlimit", f"--memlock={allowed}:{allowed}"),
                    directory=directory) as daemon, daemon.client() as client:
            for size, words in (("2MiB", ("is 1024 KiB now, and is to be 2048 KiB", "at the same time", "restart perfd")),
                                ("8MiB", ("rings of 8192 KiB", "make rings.size smaller"))):
                with open(os.path.join(directory, "perfd.yaml"), "w", encoding="utf-8") as f:
                    f.write(f"version: 1\nrings: {{size: {size}}}\n")
                no = refused(client, "locked-memory", "STATUS_EXHAUSTED", reload=pb.Empty())
                check(all(word in no.message for word in words), no.message)


if __name__ == "__main__":
    main(globals())
