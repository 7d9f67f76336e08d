#!/usr/bin/python3
"""What a client of the stream socket learns of files by `plan` and `validate`: nothing that it could not read itself."""
import collections
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

import perfd
from perfd import Daemon, Refused, check, equal, pb, refused

NOBODY, GROUP = 65534, 4711
CONFIG = "version: 1\naccess: { stream-mode: 0666 }\n"
PROGRAM = os.path.join(os.environ["PERFD_BUILD"], "tests/integration/fire")


def plan(client, text):
    """The response, also if it is a refusal."""
    try:
        return client.request(plan=pb.PlanRequest(yaml=text))
    except Refused as refused:
        return refused.response


def yaml(path, symbol="none", more=""):
    return f"""version: 1
groups:
  one:
    events:
      - event: uprobe:{path}:{symbol}
{more}"""


def said_of(client, text):
    """By validate: what is wrong, and what cannot be opened now."""
    reply = client.request(validate=pb.ValidateRequest(yaml=text)).validated
    return [*reply.errors, *reply.warnings]


def answer(client, path, **words):
    """What plan says, and validate: the reason, and the text without the path."""
    text = yaml(path, **words)
    planned = plan(client, text)
    mistakes = said_of(client, text)
    equal(len(mistakes), 0 if planned.status == pb.STATUS_OK else 1, f"mistakes of {path}")
    said = [re.sub(r"^.*?events\[0\]: ", "", planned.message), *(m.text for m in mistakes)]
    check(planned.status == pb.STATUS_OK or said[0].endswith(said[1]), f"{said}")
    return planned.reason, said[-1].replace(path, "PATH") if mistakes else ""


def file(path, mode, source=None, owner=(0, 0)):
    if source:
        shutil.copyfile(source, path)
    else:
        with open(path, "w", encoding="ascii") as f:
            f.write("no program\n")
    os.chown(path, *owner)
    os.chmod(path, mode)
    return path


def make_files(top):
    """Names of files that a client of NOBODY may see, and of some that it may not."""
    os.chmod(top, 0o755)
    folders = {"seen": 0o755, "closed": 0o700, "deaf": 0o711}
    for name, mode in folders.items():
        os.mkdir(f"{top}/{name}")
        os.chmod(f"{top}/{name}", mode)
        file(f"{top}/{name}/program", 0o755, PROGRAM)
        file(f"{top}/{name}/text", 0o644)
    file(f"{top}/seen/own", 0o400, PROGRAM, (NOBODY, 0))
    file(f"{top}/seen/not-own", 0o044, PROGRAM, (NOBODY, 0))
    file(f"{top}/seen/of-group", 0o640, PROGRAM, (0, GROUP))
    file(f"{top}/seen/not-of-group", 0o604, PROGRAM, (0, GROUP))
    file(f"{top}/seen/of-root", 0o600, PROGRAM)
    file(f"{top}/seen/text-of-root", 0o600)
    os.mkfifo(f"{top}/seen/fifo", 0o600)
    os.mkfifo(f"{top}/seen/open-fifo")
    os.chmod(f"{top}/seen/open-fifo", 0o644)
    os.symlink("../closed/program", f"{top}/seen/to-closed")
    os.symlink(f"{top}/closed/none", f"{top}/seen/to-nothing-closed")
    os.symlink("../../" + os.path.basename(top) + "/seen/program", f"{top}/seen/to-program")
    os.symlink("loop", f"{top}/seen/loop")
    os.symlink("/proc/self/exe", f"{top}/seen/to-proc")
    file(f"{top}/seen/listed", 0o644, PROGRAM)
    entries = [(1, 6, 0xffffffff), (2, 0, NOBODY), (4, 4, 0xffffffff), (0x10, 4, 0xffffffff), (0x20, 4, 0xffffffff)]
    os.setxattr(f"{top}/seen/listed", "system.posix_acl_access",
                struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries))
    return {
        "unknown-symbol": ["seen/program", "seen/to-program", "deaf/program", "seen/own", "seen//./../seen/program",
                           "seen/not-of-group"],
        "bad-elf": ["seen/text", "seen/open-fifo", "seen"],
        "no-file": ["seen/none", "deaf/none", "seen/program/more", "seen/loop", "none/none", "seen/" + 300 * "x"],
        "no-permission": ["closed/program", "closed/text", "closed/none", "closed/none/none", "closed/../seen/program", "seen/of-root",
                          "seen/text-of-root", "seen/fifo", "seen/to-closed", "seen/to-nothing-closed", "seen/of-group",
                          "seen/not-own", "seen/listed", "seen/to-proc"],
    }


FOREIGN = ["/etc/shadow", "/proc/self/mem", "/proc/self/exe", "/proc/1/root/etc/shadow", "/proc/1/root/etc/none", "/proc/1/root/bin/sh",
           "/proc/self/root/bin/sh", "/proc/999999999/root/x", "/proc/kcore", "/proc/self/cwd/x", "/proc/none", "/root/none/none"]


def test_client_sees_as_itself():
    """Each answer is that of the client's own open(2), and all that it may not read is answered alike."""
    with Daemon(CONFIG) as daemon:
        expected = make_files(daemon.directory)
        top = daemon.directory
        fds = daemon.fds()
        with daemon.client_of(NOBODY, groups=()) as client:
            for reason, names in expected.items():
                for name in names:
                    equal(answer(client, f"{top}/{name}")[0], reason, name)
            hidden = {answer(client, path) for path in [f"{top}/{name}" for name in expected["no-permission"]] + FOREIGN}
            equal(len(hidden), 1, f"answers for what it may not read: {hidden}")
            for symbol in ("main", "_start+0x1", "nonsense*"):
                equal(answer(client, f"{top}/closed/program", symbol=symbol), *hidden, symbol)
            wanted = "        args: a=%di\n"
            equal(answer(client, f"{top}/closed/program", more=wanted), *hidden, "with args")
            equal(answer(client, f"{top}/seen/program", symbol="main")[0], "", "a probe in what it may read")
            equal(answer(client, f"{top}/seen/program", symbol="main", more=wanted)[0], "", "the same with arguments")
        with daemon.client_of(NOBODY, groups=[1, GROUP]) as member:
            equal(answer(member, f"{top}/seen/of-group")[0], "unknown-symbol", "of its group")
            equal(answer(member, f"{top}/seen/not-of-group"), *hidden, "of its group, which may not")
        perfd.wait_until(lambda: daemon.fds() == fds, "its fds are closed again")


def test_usdt():
    """Static probes are looked for in what may be read, too."""
    with Daemon(CONFIG) as daemon, daemon.client_of(NOBODY, groups=()) as client:
        make_files(daemon.directory)
        said = set()
        for name in ("closed/program", "closed/none", "seen/of-root"):
            text = yaml(f"{daemon.directory}/{name}").replace("uprobe:", "usdt:").replace(":none", ":none:none")
            reply = plan(client, text)
            said.add((reply.reason, reply.message.replace(name, "NAME")))
        equal({reason for reason, _ in said}, {"no-permission"}, "the reasons")
        equal(len(said), 1, f"{said}")


def test_others_see_all():
    """Root, by either socket, and whoever may use the control socket see what perfd sees."""
    with Daemon(CONFIG) as daemon:
        make_files(daemon.directory)
        os.chmod(daemon.control, 0o666)
        clients = [(daemon.client(stream=True), "root by the stream socket"), (daemon.client(), "root"),
                   (daemon.client_of(NOBODY, stream=False, groups=()), "another uid by the control socket")]
        for opened, who in clients:
            with opened as client:
                for name, reason in (("closed/program", "unknown-symbol"), ("closed/none", "no-file"), ("seen/of-root", "unknown-symbol"),
                                     ("seen/text-of-root", "bad-elf"), ("seen/fifo", "bad-elf"), ("closed", "bad-elf")):
                    equal(answer(client, f"{daemon.directory}/{name}")[0], reason, f"{name} for {who}")
                equal(answer(client, "/dev/null")[0], "bad-elf", f"a device for {who}")


def test_cgroups():
    """Where no file is named: what is not below the hierarchy is answered as what is not there."""
    with Daemon(CONFIG) as daemon, daemon.client_of(NOBODY, groups=()) as client:
        make_files(daemon.directory)
        said = set()
        for path in ("../../root", f"../../..{daemon.directory}/closed", "../none", "../../none/none"):
            text = yaml("/bin/true").replace("uprobe:/bin/true:none", "cpu-clock")
            text = text.replace("  one:\n", "  one:\n    target: there\n") + f"targets:\n  there: {{ cgroup: '{path}' }}\n"
            reply = plan(client, text)
            said.add((reply.status, reply.reason, reply.message.replace(path, "PATH")))
        equal(len(said), 1, f"{said}")


def test_no_breakpoint():
    """A plan and a validation of a user probe leave the programs alone that run its file, also in the middle of an instruction;
    what the kernel has against its arguments or its filter is said all the same."""
    constant = os.path.join(os.environ["PERFD_BUILD"], "tests/integration/constant")
    symbols = subprocess.run(["nm", constant], stdout=subprocess.PIPE, text=True, check=True).stdout
    inside = int(re.search(r"^(\w+) T constant_get$", symbols, re.M)[1], 16) + 4
    stripped = perfd.private_copy(constant)  # or perfd sees that no instruction begins there
    subprocess.run(["strip", stripped], check=True)
    probes = "".join(f"      - {{ event: 'uprobe:{stripped}:{inside:#x}', name: n-{i} }}\n" for i in range(20))
    text = f"version: 1\ngroups:\n  one:\n    events:\n{probes}"
    with Daemon(config=CONFIG) as daemon, perfd.Line([stripped]) as program, daemon.client_of(NOBODY) as client:
        equal(program.hear(), ["ready"], "the first word of the program")
        for _ in range(10 if perfd.SANITIZER == "none" else 3):
            equal(plan(client, text).status, pb.STATUS_OK, "the plan")
            equal(said_of(client, text), [], "mistakes")
        program.say("enough")
        calls, wrong = map(int, program.hear())
        check(calls > 0, "the program has made no call")
        equal(wrong, 0, f"calls that gave another value, of {calls}")
        for more, word in (("        args: 'a=%nonsense'", "bad-args"), ("        args: 'a=+0(%sp):u64'\n        filter: b == 1", "bad-filter"),
                           ("        args: 'a=+0(%sp):u64'\n        filter: a == 1", "")):
            said = plan(client, yaml(constant, "constant_get", more))
            equal(said.reason, word, f"the reason of {said.message!r}")


def test_kernel_addresses():
    """Where the kernel lies: a client of the stream socket gets one answer, whatever is there; root is told."""
    with open("/proc/kallsyms", encoding="ascii") as f:
        symbols = [line.split() for line in f]
    text = next(line[0] for line in symbols if line[2] == "vfs_read")
    functions = collections.Counter(line[2] for line in symbols if line[1] in "tT" and len(line) == 3)
    twice = next(name for name, n in functions.items() if n > 1 and name.isidentifier())
    names = [f"0x{text}", "0x1000", "0xffffffffffffffff", "vfs_read+999999", "vfs_read+0x7fffffff"]

    def asked(client, name):
        configuration = yaml("/bin/true").replace("uprobe:/bin/true:none", f"kprobe:{name}")
        planned = plan(client, configuration)
        mistakes = said_of(client, configuration)
        return planned.reason, re.sub(r"^.*?events\[0\]: |^[^ ]*: ", "", planned.message), *(m.text for m in mistakes)

    with Daemon(CONFIG) as daemon:
        with daemon.client_of(NOBODY) as client:
            said = {asked(client, name) for name in names}
            equal(len(said), 1, f"answers: {said}")
            equal(said.pop()[0], "no-permission", "the reason")
            check("0x" not in str(asked(client, "vfs_read+1")), "an address")
            check(asked(client, "vfs_read")[0] in ("", "no-kprobes"), "a function by its name")
            reason, *texts = asked(client, twice)
            equal((reason, "0x" in str(texts)), ("ambiguous-symbol", False), f"{texts}")
        for root in daemon.client(stream=True), daemon.client():
            with root as client:
                if int(text, 16) != 0:  # kernel.kptr_restrict
                    equal(asked(client, "vfs_read+999999")[0], "bad-address", "beyond its function, for root")


TOUCHES_PAGES = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.readline(); print(len(b'x' * (1 << 24)))"]
TRAPS = {"sigtrap": "true", "remove-on-exec": "true"}


def trap(**target):
    return pb.EventSpec(event="page-faults", name="trap", target=pb.Target(**target),
                        attr=[pb.AttrSetting(name=name, value=value) for name, value in TRAPS.items()])


def trap_yaml(**target):
    return f"""{CONFIG}targets: {{ one: {json.dumps(target)} }}
groups: {{ one: {{ target: one, events: [{{ event: page-faults, name: trap, attr: {json.dumps(TRAPS)} }}] }} }}
"""


def given(sockets, names, n=None):
    """Of a perfd that is started with these fds from 3 on, as systemd does it."""
    fds = [s if isinstance(s, int) else s.fileno() for s in sockets]
    # by way of high numbers, since one of them may be another's place
    moves = " ".join(f"{100 + i}<&{fd}" for i, fd in enumerate(fds)) + " " + " ".join(f"{3 + i}<&{100 + i}" for i in range(len(fds)))
    closes = " ".join(f"{100 + i}<&-" for i in range(len(fds)))
    script = f'export LISTEN_PID=$$; exec {moves} {closes}; exec "$@"'
    n = len(fds) if n is None else n
    return {"prefix": ["bash", "-c", script, "bash"], "pass_fds": fds,
            "env": {**os.environ, "LISTEN_FDS": str(n), **({} if names is None else {"LISTEN_FDNAMES": names})}}


def listening(family=socket.AF_UNIX, kind=socket.SOCK_STREAM):
    made = socket.socket(family, kind)
    made.bind("" if family == socket.AF_UNIX else ("127.0.0.1", 0))
    made.listen(1)
    return made


def test_given_sockets():
    """One of the network would let everybody change what is traced; and what cannot be served is refused at the start."""
    with contextlib.ExitStack() as stack:
        usual, network, packets = (stack.enter_context(s) for s in (
            listening(), listening(socket.AF_INET), listening(kind=socket.SOCK_SEQPACKET)))
        silent, datagrams, file = (stack.enter_context(s) for s in (
            socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), open("/dev/null", "rb")))
        others = ((network, "socket of the network"), (packets, "SOCK_SEQPACKET"), (silent, "does not listen"),
                  (datagrams, "datagram"), (file, "a file, not a socket"))
        for other, what in others:
            for name in "control", "stream":
                perfd.fail_to_start("fd 4, which was passed to perfd as", name, what, "ListenStream=",
                                    **given([usual, other.fileno()], f"control:{name}"))
        for n in "0", "-1", "abc", "1000000", "":
            perfd.fail_to_start(f"LISTEN_FDS is '{n}'", "socket units", **given([usual], "control", n))
        perfd.fail_to_start("LISTEN_FDNAMES is 'control'", "as many names", **given([usual, usual], "control"))
        perfd.fail_to_start("called connection", "FileDescriptorName=", **given([usual], "connection"))


def test_sigtrap():
    """Its signal ends a program: whoever is not root asks for it in vain, by all ways, and nobody has it on perfd's own tasks."""
    control = CONFIG.replace("{ ", "{ control-mode: 0666, ")
    with Daemon(control) as daemon, perfd.Line(TOUCHES_PAGES) as victim:
        own = [int(tid) for tid in os.listdir(f"/proc/{daemon.pid}/task")]
        victim.hear()
        with daemon.client_of(NOBODY, stream=False) as client:
            for keep in False, True:
                no = refused(client, "bad-attr", "STATUS_INVALID",
                             add=pb.AddRequest(events=[trap(tids=[victim.process.pid])], keep=keep))
                check("only clients of root and the configuration of perfd may set attr sigtrap" in no.message, no.message)
            for may_wait in False, True:
                refused(client, "bad-attr", "STATUS_INVALID",
                        apply=pb.ApplyRequest(yaml=trap_yaml(tids=[victim.process.pid]), may_wait=may_wait))
            equal([len(client.request(list=pb.ListRequest()).list.events), client.request(status=pb.Empty()).daemon.n_pending],
                  [0, 0], "events of a client that was refused")
        with daemon.client_of(NOBODY) as client:
            text = trap_yaml(tids=[victim.process.pid])
            equal(plan(client, text).reason, "bad-attr", "plan")
            equal(len(client.request(validate=pb.ValidateRequest(yaml=text)).validated.errors), 1, "validate")
        with daemon.client() as root:
            for target in {"pids": [daemon.pid]}, *({"tids": [tid]} for tid in own), {"tids": [victim.process.pid, own[-1]]}, \
                          {"pids": [os.getpid()]}: # whose child perfd is
                event = trap(**target)
                event.include_self = True
                no = refused(root, "bad-target", "STATUS_INVALID", add=pb.AddRequest(events=[event]))
                check("attr sigtrap on thread" in no.message and "would end perfd" in no.message, no.message)
                refused(root, "bad-target", "STATUS_INVALID", apply=pb.ApplyRequest(yaml=trap_yaml(**target)))
            root.request(add=pb.AddRequest(events=[trap(tids=[victim.process.pid])]))
            victim.say("word")
            equal(victim.process.wait(perfd.PATIENCE), -signal.SIGTRAP, "what the signal of root's event does")


def test_sigtrap_of_the_configuration():
    """It is perfd's, also where another client asks for the reload."""
    with Daemon(CONFIG.replace("{ ", "{ control-mode: 0666, ")) as daemon, perfd.Line(["cat"]) as victim:
        text = trap_yaml(tids=[victim.process.pid]).replace("name: trap,", "name: trap, enabled: false,")
        with open(os.path.join(daemon.directory, "perfd.yaml"), "w", encoding="ascii") as f:
            f.write(text.replace("{ ", "{ control-mode: 0666, ", 1))
        with daemon.client_of(NOBODY, stream=False) as client:
            equal(client.request(reload=pb.Empty()).reloaded.added, 1, "events of the configuration")
            refused(client, "bad-attr", "STATUS_INVALID", apply=pb.ApplyRequest(yaml=text))


def test_what_can_not_be_right():
    """Refused with what is expected, where it was taken and meant nothing."""
    with Daemon(CONFIG) as daemon, daemon.client() as client:
        for event in pb.EventSpec(event="external:x", include_self=True), pb.EventSpec(event="external:x", target=pb.Target(no_inherit=True)):
            no = refused(client, "bad-event", "STATUS_INVALID", add=pb.AddRequest(events=[event]))
            check("cannot have a target" in no.message and "include-self" in no.message, no.message)
        on_exec = pb.EventSpec(event="page-faults", attr=[pb.AttrSetting(name="enable-on-exec", value="true")])
        no = refused(client, "bad-attr", "STATUS_INVALID", add=pb.AddRequest(events=[on_exec]))
        check("enable-on-exec needs pids or tids" in no.message, no.message)
        on_exec.target.pids.append(os.getpid())
        client.request(add=pb.AddRequest(events=[on_exec]))
        no = refused(client, "unknown-event", "STATUS_NOT_FOUND", remove=pb.SelectRequest(names=[""]))
        equal(no.message, "an event's name cannot be empty", "the message")
        client.request(add=pb.AddRequest(events=[pb.EventSpec(event="external:x", fields=[pb.ExternalField(name="n", type="u8")])]))
        sample = pb.ExternalSample(event="external:x", time=time.clock_gettime_ns(time.CLOCK_MONOTONIC),
                                   values=[pb.ExternalValue(signed_number=5)])
        no = refused(client, "bad-value", "STATUS_INVALID", emit=pb.EmitRequest(samples=[sample]))
        check("field n is of the type u8" in no.message and "signed_number" in no.message, no.message)


if __name__ == "__main__":
    perfd.main(globals())
