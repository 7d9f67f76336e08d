#!/usr/bin/python3
"""access.rules: who may what on the stream socket, asked by everybody, and attacked by those who may little. Needs root."""
import contextlib
import json
import os
import signal
import subprocess
import time

import perfd
from perfd import Daemon, add, check, equal, pb, refused

ANN, BOB, EVE, TRACERS = 4001, 4002, 65534, 4700
PERFCTL = os.path.join(perfd.BUILD, "client", "perfctl", "perfctl")
NUMBER = [pb.ExternalField(name="n", type="u32")]
NOTED = {"event": "external:noted", "fields": NUMBER}
OPEN = "version: 1\naccess:\n  stream-mode: 0666\n"


def rules(*lines):
    """A configuration with these rules."""
    return OPEN + "  rules:\n" + "".join(f"    - {line}\n" for line in lines)


def sample(event="external:noted", number=1, **more):
    return pb.ExternalSample(event=event, time=time.monotonic_ns(), values=[pb.ExternalValue(number=number)], **more)


def emit(client, **more):
    return client.request(emit=pb.EmitRequest(samples=[sample(**more)])).emitted.taken


def no(client, words, **body):
    """The request is refused by the rules, and the refusal has these words."""
    answer = refused(client, "not-granted", "STATUS_DENIED", **body)
    check(all(word in answer.message for word in words), f"{words} in {answer.message!r}")
    return answer


def access(client):
    return client.request(status=pb.Empty()).daemon.access


def names(client):
    return sorted(event.spec.name for event in client.request(list=pb.ListRequest()).list.events)


def perfctl(daemon, uid, *arguments):
    """As somebody else, by the stream socket."""
    return subprocess.run([PERFCTL, "--socket", daemon.stream, *arguments], capture_output=True, text=True, timeout=perfd.PATIENCE,
                          check=False, user=uid, group=uid, extra_groups=[])


def test_list_names_the_rule():
    """Who is shown less than there is, is told by which rule: where nothing is left, or on a terminal."""
    roles = rules(f"{{ users: [{ANN}], subscribe: [\"sched:*\"], emit: [external:noted], own-processes: true }}", f"{{ users: [{BOB}] }}")
    with Daemon(roles) as daemon, daemon.client() as root:
        os.chmod(daemon.directory, 0o755)
        place = f"{daemon.directory}/perfd.yaml"
        for uid, message in ((EVE, "no rule of access.rules is for this user, so that none are listed"),
                             (BOB, f"rule 2 of access.rules ({place}:6) lets this user see no event"),
                             (ANN, f"rule 1 of access.rules ({place}:5) lets this user see sched:*, external:noted, and what it has added itself, "
                                   "and no other event"), (0, "no running events")):
            ran = perfctl(daemon, uid, "list")
            equal((ran.stdout, ran.stderr, ran.returncode), ("", f"perfctl: list: {message}\n", 0), f"the list of {uid}")
        add(root, NOTED, "cpu-clock")
        ran = perfctl(daemon, ANN, "list")
        equal((ran.stdout.count("\n"), ran.stderr), (1, ""), "what there is, to a program")
        ran = subprocess.run(["script", "-qec", f"{PERFCTL} --socket {daemon.stream} list", "/dev/null"], capture_output=True, text=True,
                             timeout=perfd.PATIENCE, check=True, user=ANN, group=ANN, extra_groups=[], stdin=subprocess.DEVNULL)
        check("external:noted" in ran.stdout and "cpu-clock" not in ran.stdout and f"rule 1 of access.rules ({place}:5) lets" in ran.stdout, ran.stdout)


# ---- without rules, and for whom there are none ------------------------------------------------------------------------


def test_without_rules():
    """Nothing is else than it was: whoever may open the stream socket reads all, and changes nothing."""
    with Daemon(OPEN) as daemon, daemon.client() as root, daemon.client_of(EVE, groups=()) as eve:
        add(root, NOTED)
        answer = eve.request(status=pb.Empty()).daemon
        equal((answer.access.limited, answer.access.status, answer.pid), (False, True, daemon.pid), "status")
        equal(names(eve), ["external:noted"], "list")
        eve.request(ledger=pb.LedgerRequest())
        refused(eve, "read-only", "STATUS_DENIED", emit=pb.EmitRequest(samples=[sample()]))
        refused(eve, "read-only", "STATUS_DENIED", add=pb.AddRequest(events=[pb.EventSpec(event="cpu-clock")]))
        items = eve.subscribe(records=1 << pb.RECORD_KIND_COMM)
        emit(root, number=7)
        equal(next(item["fields"]["n"] for item in items if item.get("fields")), 7, "its sample")


def test_root_and_control():
    """Rules are for the stream socket, and not for root."""
    with Daemon(rules(f"{{ users: [{BOB}] }}").replace("access:", "access:\n  control-mode: 0666")) as daemon:
        with daemon.client(stream=True) as root:
            check(root.request(status=pb.Empty()).daemon.pid > 0 and not access(root).limited, "root is limited")
            refused(root, "read-only", emit=pb.EmitRequest(samples=[sample()]))
        with daemon.client_of(EVE, stream=False, groups=()) as eve:
            add(eve, NOTED)
            equal((emit(eve), access(eve).limited), (1, False), "by the control socket")


def test_nobody():
    """Whom no rule is for, and whom a rule grants nothing: each request is refused by the rule that decides, telling nothing."""
    bodies = {
        "list": None, "ledger": pb.LedgerRequest(), "available": pb.AvailableRequest(glob="cpu-clock"), "doctor": pb.Empty(),
        "plan": pb.PlanRequest(yaml=OPEN), "validate": pb.ValidateRequest(yaml=OPEN), "apply": pb.ApplyRequest(yaml=OPEN),
        "reload": pb.Empty(), "remove": pb.SelectRequest(names=["*"]), "enable": pb.SelectRequest(names=["*"]),
        "disable": pb.SelectRequest(names=["#1"]), "set_filter": pb.SetFilterRequest(name="*"),
            "set_period": pb.SetPeriodRequest(name="x"),
        "add": pb.AddRequest(events=[pb.EventSpec(event="cpu-clock")]), "emit": pb.EmitRequest(samples=[sample()]),
        "subscribe": pb.SubscribeRequest(events=["external:noted"]),
    }
    with Daemon(rules(f"{{ users: [{BOB}] }}")) as daemon, daemon.client() as root:
        add(root, NOTED)
        for uid, word in ((EVE, "no rule of access.rules"), (BOB,
            f"rule 1 of access.rules decides ({daemon.directory}/perfd.yaml:5), which grants nothing; see perfd.yaml(5), Access rules")):
            with daemon.client_of(uid, groups=()) as client:
                for name, body in bodies.items():
                    if body is not None:
                        no(client, [word, f"uid {uid}"], **{name: body})
                equal(names(client), [], "what it is told of events")
                answer = client.request(status=pb.Empty()).daemon
                equal((answer.pid, answer.config, answer.n_events, len(answer.cpus), answer.clock), (0, "", 0, 0, "monotonic"),
                    "status")
                equal((answer.access.limited, answer.access.status, answer.access.rule), (True, False, int(uid == BOB)),
                    "what it may")
                for events in [], ["*"], ["none"]:
                    no(client, ["to subscribe"], subscribe=pb.SubscribeRequest(events=events))
        equal(names(root), ["external:noted"], "what runs afterwards")


# ---- whom a rule is for ------------------------------------------------------------------------------------------------


def test_first_match():
    """By uid, gid and supplementary groups of the moment of connecting; the first rule that is for a client decides."""
    text = rules(f"{{ users: [{ANN}], status: true }}", f"{{ groups: [{TRACERS}], emit: [a] }}",
        f"{{ users: [{BOB}], emit: [b] }}",
                 "{ users: [nobody, '0'], groups: [daemon], emit: [c] }", "{ emit: [rest] }")
    expected = [(ANN, [TRACERS], 1), (BOB, [TRACERS], 2), (BOB, [], 3), (TRACERS, [], 2), (EVE, [], 4), (4009, [1], 4),
        (4009, [7, 9], 5),
                (4009, list(range(5000, 5300)) + [TRACERS], 2)]
    with Daemon(text) as daemon:
        for uid, groups, rule in expected:
            with daemon.client_of(uid, groups=groups) as client:
                equal(access(client).rule, rule, f"the rule for {uid} with {groups[:3]}")
        with daemon.client_of(BOB, groups=[TRACERS]) as client, perfd.somebody(BOB, []):
            equal(access(client).rule, 2, "the rule for a connection whose process has left the group")


def test_what_is_written():
    """Mistakes in rules have their place; what names nobody is said, and is for nobody."""
    wrong = {
        "{ users: [] }": r"6:\d+: users: found nothing", "{ groups: }": r"6:\d+: groups: found nothing",
        "{ subscribe: [] , users: [1] }": r"6:\d+: subscribe: found nothing",
            "{ where: 'a == 1' }": r"6:\d+: where: it has no effect without 'subscribe'",
        "{ subscribe: ['*'], where: 'cpu == 1 && sample.uidd == 0' }": r"6:\d+: where: at byte 13: no sample has 'sample.uidd'; did you mean 'uid'",
        "{ subscribe: ['*'], where: 'a = ' }": r"6:\d+: where: at byte", "{ users: ['-x'] }": r"6:\d+: users: found '-x'",
        "{ users: [4294967295] }": r"6:\d+: users: found '4294967295'",
            "{ user: [1] }": r"unknown key 'user'; did you mean 'users'",
        "[]": r"6:\d+: rules: found a list", "{ emit: [a, b c] }": "emit: .*space",
        "{ subscribe: [" + ",".join(f"a{i}" for i in range(257)) + "] }": "subscribe: found 257, expected at most 256",
    }
    for line, words in wrong.items():
        perfd.fail_to_start(words, config=rules("{ status: true }", line))
    perfd.fail_to_start("access.rules: found nothing, expected a list of rules", config=OPEN + "  rules: []\n")
    perfd.fail_to_start("at most 256 rules", config=rules(*["{ status: true }"] * 257))
    with Daemon(rules("{ users: [no-such-user], groups: [no-such-group], status: true }")) as daemon:
        check("users: 'no-such-user' is not in /etc/passwd" in daemon.stderr() and "groups: 'no-such-group'" in daemon.stderr(),
            daemon.stderr())
        with daemon.client_of(EVE, groups=()) as eve:
            equal(access(eve).rule, 0, "the rule for somebody")
        with daemon.client() as root:
            text = rules("{ subscribe: ['*'], where: 'a = ' }")
            errors = root.request(validate=pb.ValidateRequest(yaml=text)).validated.errors
            equal([(m.line, "where: at byte" in m.text) for m in errors], [(5, True)], "what validate says")
            refused(root, "bad-config", apply=pb.ApplyRequest(yaml=text))
            refused(root, "bad-config", plan=pb.PlanRequest(yaml=text))
    path = os.path.join("/tmp", f"perfd-roles-{os.getpid()}.yaml")
    try:
        with open(path, "w", encoding="ascii") as f:
            f.write(rules("{ subscribe: ['*'], where: 'a = ' }"))
        done = subprocess.run([perfd.PERFD, "--check", "--any-host", "--config", path], capture_output=True, text=True,
            check=False,
                              timeout=perfd.PATIENCE)
        check(done.returncode == 1 and "where: at byte" in done.stderr, f"--check: {done}")
    finally:
        os.unlink(path)


# ---- status, list, subscribe -------------------------------------------------------------------------------------------


def test_status_alone():
    """State, ledger and what the host offers; no samples, and no changes."""
    with Daemon(rules(f"{{ users: [{ANN}], status: true }}")) as daemon, daemon.client() as root, daemon.client_of(ANN,
        groups=()) as ann:
        add(root, NOTED)
        equal((ann.request(status=pb.Empty()).daemon.pid, names(ann)), (daemon.pid, ["external:noted"]), "status and list")
        equal(len(ann.request(ledger=pb.LedgerRequest()).ledger.events), 1, "rows of the ledger")
        ann.request(doctor=pb.Empty())
        equal(len(ann.request(available=pb.AvailableRequest(glob="cpu-clock")).available.events), 1, "available")
        equal(len(ann.request(validate=pb.ValidateRequest(yaml=OPEN)).validated.errors), 0, "validate")
        for events in ["external:noted"], ["*"], []:
            no(ann, ["to subscribe", "rule 1"], subscribe=pb.SubscribeRequest(events=events))
        no(ann, ["to emit external:noted"], emit=pb.EmitRequest(samples=[sample()]))
        no(ann, ["remove"], remove=pb.SelectRequest(names=["external:noted"]))


def test_subscribe():
    """Only what the globs grant, now and later; of the rest one is told nothing, also not whether it is there."""
    text = rules(f"{{ users: [{ANN}], subscribe: ['external:a*', 'external:b'] }}")
    with Daemon(text) as daemon, daemon.client() as root:
        add(root, *({"event": f"external:{name}", "fields": NUMBER} for name in ("a1", "b", "b2", "c")))
        with daemon.client_of(ANN, groups=()) as ann:
            equal(names(ann), ["external:a1", "external:b"], "list")
            equal(list(ann.request(list=pb.ListRequest(glob="*c")).list.events), [], "what a glob lists of others' events")
            there, absent = (no(ann, [], subscribe=pb.SubscribeRequest(events=[name])).message.replace(name, "NAME")
                             for name in ("external:c", "external:x"))
            equal(there, absent, "the answers for one that is there and for one that is not")
            no(ann, ["to subscribe to external:b2"], subscribe=pb.SubscribeRequest(events=["external:a1", "external:b2"]))
            for glob in "external:[c]", "*2", "external:b?":
                refused(ann, "unknown-event", subscribe=pb.SubscribeRequest(events=[glob]))
            no(ann, ["side records"], subscribe=pb.SubscribeRequest(events=["external:a1"], records=1 << pb.RECORD_KIND_COMM))
            refused(ann, "unknown-field", subscribe=pb.SubscribeRequest(fields=["m"]))
            items = ann.subscribe()
            root.request(ledger=pb.LedgerRequest())
            add(root, {"event": "external:a2", "fields": NUMBER}, {"event": "external:d", "fields": NUMBER})
            for number, name in enumerate(("a1", "b", "b2", "c", "a2", "d", "a1")):
                emit(root, event=f"external:{name}", number=number)
            got = [next(item for item in items if item.get("fields") is not None)["fields"]["n"] for _ in range(4)]
            equal(got, [0, 1, 4, 6], "samples")
            equal(sorted(event.name for event in ann.stream.events.values()), ["external:a1", "external:a2", "external:b"],
                "what is described")
            ann.stop()
            list(items)


def test_predicate():
    """Joined to what a client asks for: whatever its condition says, it can only take away."""
    text = rules(f"{{ users: [{ANN}], subscribe: ['external:*', 'page-faults'], where: 'n < 10' }}",
        f"{{ users: [{BOB}], subscribe: ['*'] }}")
    conditions = {"": range(10), "n > 5": range(6, 10), "n > 5 || n < 100": range(10), "n >= 0 || 1 == 1": range(10),
        "!(n < 10)": (), "n > 10": ()}
    with Daemon(text) as daemon, daemon.client() as root:
        add(root, NOTED, {"event": "external:other", "fields": [pb.ExternalField(name="m", type="u32")]},
            {"event": "page-faults", "interval": 10_000_000, "name": "page-faults"})
        for where in "n > 5) || (n > 0", "n == 1 || (", ") || (1 == 1":
            with daemon.client_of(ANN, groups=()) as ann:
                answer = refused(ann, "bad-expression", subscribe=pb.SubscribeRequest(where=where))
                check(answer.position > 0, "no position")
        with daemon.client_of(ANN, groups=()) as ann:
            equal(refused(ann, "unknown-field", subscribe=pb.SubscribeRequest(events=["external:other"])).position, 0,
                "the position")
            refused(ann, "unknown-event", subscribe=pb.SubscribeRequest(events=["page*"]))
            no(ann, ["side records"], subscribe=pb.SubscribeRequest(records=1 << pb.RECORD_KIND_READ))
            long = " || ".join(["n == 1"] * 250)
            refused(ann, "bad-expression", subscribe=pb.SubscribeRequest(where=" || ".join(["n == 1"] * 128)))
            refused(ann, "bad-expression", subscribe=pb.SubscribeRequest(where=long))
        with contextlib.ExitStack() as stack:
            streams = {}
            for where in conditions:
                client = stack.enter_context(daemon.client_of(ANN, groups=()))
                streams[where] = client, client.subscribe(where=where)
            bob = stack.enter_context(daemon.client_of(BOB, groups=()))
            items = bob.subscribe(events=["external:noted"])
            root.request(emit=pb.EmitRequest(samples=[sample(number=n) for n in range(20)]))
            equal([next(items)["fields"]["n"] for _ in range(20)], list(range(20)), "without a predicate")
            os.chmod(daemon.directory, 0o755)
            equal([[json.loads(perfctl(daemon, uid, "list", "--json", "external:noted").stdout)[key] for key in ("limited", "delivered")]
                   for uid in (ANN, BOB, 0)], [[True, 0], [False, 20], [False, 20]], "how many there were, as each is told")
            equal(perfctl(daemon, ANN, "list", "external:noted").stdout.split("\t")[10:12], ["-", "-"], "delivered and lost")
            for where, (client, items) in streams.items():
                client.stop()
                got = list(items)
                equal([item["fields"]["n"] for item in got], list(conditions[where]), f"samples where {where!r}")
                check(client.end["reason"] == "stopped", client.end)
            equal(len({row["id"] for row in perfctl_json(daemon, "ledger") if row.get("kind") == "subscriber"}), 1,
                "streams that are left")


def perfctl_json(daemon, *arguments):
    done = subprocess.run([PERFCTL, "--socket", daemon.control, "--json", *arguments], capture_output=True, text=True,
        check=False,
                          timeout=perfd.PATIENCE)
    return [json.loads(line) for line in done.stdout.splitlines()]


# ---- emit --------------------------------------------------------------------------------------------------------------


def test_emit():
    """Only what the globs grant, all of a request or nothing, and only of one's own threads."""
    text = rules(f"{{ users: [{ANN}], emit: ['external:n*'] }}")
    with Daemon(text) as daemon, daemon.client() as root, daemon.client_of(ANN, groups=()) as ann:
        add(root, NOTED, {"event": "external:other", "fields": NUMBER},
            {"event": "cpu-clock", "name": "native", "disabled": True})
        equal(emit(ann), 1, "samples that were taken")
        there, absent = (no(ann, [f"to emit external:{name}"],
            emit=pb.EmitRequest(samples=[sample(event=f"external:{name}")])).message
                         .replace(name, "NAME") for name in ("other", "absent"))
        equal(there, absent, "the answers for one that is there and for one that is not")
        no(ann, ["to emit native"], emit=pb.EmitRequest(samples=[sample(event="native")]))
        no(ann, ["to emit external:other"], emit=pb.EmitRequest(samples=[sample(), sample(event="external:other")]))
        refused(ann, "unknown-event", emit=pb.EmitRequest(samples=[sample(event="external:nothing")]))
        with perfd.Line(["cat"], user=ANN) as own:
            equal(emit(ann, pid=own.process.pid, tid=own.process.pid), 1, "of its own process")
            for pid, tid in (1, 1), (os.getpid(), os.getpid()), (daemon.pid, daemon.pid), (own.process.pid, daemon.pid), \
                            (daemon.pid, own.process.pid), (0, own.process.pid), (own.process.pid, 0), (4294967295, 1):
                no(ann, [f"thread {tid} of process {pid}"], emit=pb.EmitRequest(samples=[sample(pid=pid, tid=tid)]))
        equal({row.name: row.occurred for row in daemon.ledger("external:*").events},
            {"external:noted": 2, "external:other": 0}, "the ledger")
        no(ann, ["to subscribe"], subscribe=pb.SubscribeRequest(events=["external:noted"]))
        equal(names(ann), ["external:noted"], "list, for which fields it has")


# ---- reload ------------------------------------------------------------------------------------------------------------


def reload(daemon, text, by_signal=False):
    with open(os.path.join(daemon.directory, "perfd.yaml"), "w", encoding="ascii") as f:
        f.write(text)
    if not by_signal:
        with daemon.client() as root:
            root.request(reload=pb.Empty())
        return
    before = daemon.stderr().count("perfd: reloaded:")
    os.kill(daemon.pid, signal.SIGHUP)
    perfd.wait_until(lambda: daemon.stderr().count("perfd: reloaded:") > before, "reloaded")


def ends_with(client, items):
    """Why the stream ends; its ledger has to be balanced."""
    with contextlib.closing(client.socket):
        list(items)
        check(all(row.get("balanced", True) for row in client.end["ledger"]), f"{client.end}")
        return client.end["reason"]


def test_reload_requests():
    """Rules hold for the next request of a connection that is there, and for one that waits."""
    granted, none = rules(f"{{ users: [{ANN}], status: true, emit: ['external:noted'] }}"), rules(f"{{ users: [{ANN}] }}")
    with Daemon(granted) as daemon, daemon.client() as root, daemon.client_of(ANN, groups=()) as ann:
        add(root, NOTED)
        for by_signal in False, True:
            equal(emit(ann), 1, "samples that were taken")
            ann.request(ledger=pb.LedgerRequest())
            reload(daemon, none, by_signal)
            no(ann, ["rule 1"], emit=pb.EmitRequest(samples=[sample()]))
            no(ann, ["rule 1"], ledger=pb.LedgerRequest())
            reload(daemon, granted, by_signal)
        with open(os.path.join(daemon.directory, "perfd.yaml"), "w", encoding="ascii") as f:
            f.write(none)
        root.send(reload=pb.Empty())
        ann.send(ledger=pb.LedgerRequest())  # behind the reload, whose turn comes first
        root.receive()
        answer = ann.receive().response
        check(answer.reason in ("", "not-granted"), f"{answer}")
        no(ann, ["rule 1"], ledger=pb.LedgerRequest())
        reload(daemon, granted)
        with open(os.path.join(daemon.directory, "perfd.yaml"), "w", encoding="ascii") as f:
            f.write(rules("{ users: [] }"))
        refused(root, "bad-config", reload=pb.Empty())
        equal(emit(ann), 1, "samples that were taken with rules that could not be replaced")
        for text in OPEN, none:
            root.request(apply=pb.ApplyRequest(yaml=text))
            equal((access(ann).rule, access(ann).status), (1, True), "what an apply changes")


def test_reload_streams():
    """Those that are not granted any more end, each with its closing ledger and the reason; the others go on."""
    first = ["{ users: [%d], subscribe: ['external:a*', 'external:b'], where: 'n < 10' }" % ANN,
        "{ users: [%d], subscribe: ['*'] }" % BOB,
             "{ groups: [%d], subscribe: ['external:a*', 'external:b'] }" % TRACERS]
    cases = [ # the rule of ANN afterwards, and whether a stream goes on: of all, of external:a1 alone
        ("{ users: [%d], subscribe: ['external:a*', 'external:b'], where: 'n < 10' }", True, True),
        ("{ users: [%d], subscribe: ['external:b', 'other', 'external:a*'] }", True, True),
        ("{ users: [%d], subscribe: ['*'], where: 'n < 10' }", True, True),
        ("{ users: [%d], subscribe: ['external:a*'] }", False, True),
        ("{ users: [%d], subscribe: ['external:a1', 'external:b'] }", False, True),
        ("{ users: [%d], subscribe: ['external:b'] }", False, False),
        ("{ users: [%d], subscribe: ['external:a*', 'external:b'], where: 'n < 11' }", False, False),
        ("{ users: [%d], status: true, emit: ['*'] }", False, False),
    ]
    with Daemon(rules(*first)) as daemon, daemon.client() as root:
        add(root, *({"event": f"external:{name}", "fields": NUMBER} for name in ("a1", "b", "c")))
        for by_signal in False, True:
            for rule, *goes_on in cases:
                reload(daemon, rules(*first))
                with contextlib.ExitStack() as stack:
                    clients = [stack.enter_context(daemon.client_of(ANN, groups=())) for _ in range(2)]
                    streams = [client.subscribe(events=events) for client, events in zip(clients, ([], ["external:a1"]))]
                    others = [stack.enter_context(daemon.client_of(BOB, groups=())),
                        stack.enter_context(daemon.client(stream=True))]
                    streams_of_others = [client.subscribe(records=1 << pb.RECORD_KIND_EXIT) for client in others]
                    emit(root, event="external:a1", number=5)
                    reload(daemon, rules(rule % ANN, *first[1:]), by_signal)
                    emit(root, event="external:a1", number=6)
                    for client, items, on in zip(clients + others, streams + streams_of_others, goes_on + [True, True]):
                        equal(next(item for item in items if item.get("fields"))["fields"]["n"], 5, "a sample before it")
                        if on:
                            equal(next(item for item in items if item.get("fields"))["fields"]["n"], 6, f"a sample behind {rule}")
                            client.stop()
                        equal(ends_with(client, items), "stopped" if on else "not-granted", f"the end behind {rule}")


def test_reload_from_nothing():
    """Streams from before there were rules, and streams with side records; and back to no rules at all."""
    with Daemon(OPEN) as daemon, daemon.client() as root:
        add(root, NOTED, {"event": "external:c", "fields": NUMBER})
        asked = {"all": {}, "one": {"events": ["external:noted"]}, "glob": {"events": ["external:n*"]}, "records":
                 {"events": ["external:noted"], "records": 1 << pb.RECORD_KIND_COMM}}
        with contextlib.ExitStack() as stack:
            clients = {name: stack.enter_context(daemon.client_of(EVE, groups=())) for name in asked}
            streams = {name: clients[name].subscribe(**fields) for name, fields in asked.items()}
            reload(daemon, rules("{ subscribe: ['external:n*'] }"), True)
            equal({name: ends_with(clients[name], streams[name]) for name in asked if name != "one"},
                  {name: "not-granted" for name in asked if name != "one"}, "ends")
            emit(root, number=3)
            equal(next(streams["one"])["fields"]["n"], 3, "a sample of what is granted still")
            reload(daemon, OPEN, True)
            emit(root, number=4)
            equal(next(streams["one"])["fields"]["n"], 4, "a sample without rules")
            reload(daemon, rules("{ subscribe: ['external:noted'], where: 'n < 9' }"))
            equal(ends_with(clients["one"], streams["one"]), "not-granted", "the end behind a predicate")
        equal([row for row in perfctl_json(daemon, "ledger") if row.get("kind") == "subscriber"], [], "streams that are left")


def test_reload_an_interval():
    """An event whose counts are read from now on is none that a predicate can be asked about."""
    events = "groups: { own: { events: [ { event: page-faults, name: faults, period: 1%s } ] } }\n"
    text = rules(f"{{ users: [{ANN}], subscribe: ['*'], where: 'sample.pid == 1' }}")
    with Daemon(text + events % "") as daemon, daemon.client_of(ANN, groups=()) as ann:
        items = ann.subscribe(events=["faults"])
        reload(daemon, text + events % ", interval: 10ms")
        equal(ends_with(ann, items), "not-granted", "the end")


# ---- perfctl -----------------------------------------------------------------------------------------------------------


def test_perfctl():
    """It says what one may, and what not, also to whom nothing is granted."""
    text = rules(f"{{ users: [{ANN}], status: true, subscribe: ['external:*'], where: 'n < 10', emit: ['external:noted'] }}",
                 f"{{ users: [{BOB}], emit: ['external:noted'] }}")
    with Daemon(text) as daemon, daemon.client() as root:
        os.chmod(daemon.directory, 0o755)
        add(root, NOTED)
        said = dict(line.split("\t") for line in perfctl(daemon, ANN, "status").stdout.split("cpu0")[0].strip().splitlines())
        equal({name: said[name] for name in ("access", "may-status", "may-subscribe", "where", "may-emit", "events")},
              {"access": "rule 1", "may-status": "yes", "may-subscribe": "external:*", "where": "n < 10",
                  "may-emit": "external:noted",
               "events": "1"}, "status")
        said = dict(line.split("\t") for line in perfctl(daemon, BOB, "status").stdout.splitlines())
        equal(sorted(said), ["access", "clock", "may-emit", "may-stat", "may-status", "may-subscribe", "own-processes",
            "rule-at", "version", "where"], "the rows")
        equal((said["access"], said["may-emit"], said["may-status"]), ("rule 2", "external:noted", "no"), "what bob may")
        equal(json.loads(perfctl(daemon, EVE, "status", "--json").stdout)["access"],
              {"limited": True, "rule": 0, "place": "", "status": False, "subscribe": [], "where": "", "emit": [], "stat": False,
               "own_processes": False}, "what eve may")
        equal(perfctl(daemon, BOB, "emit", "external:noted", "n=3").returncode, 0, "perfctl emit")
        done = perfctl(daemon, BOB, "watch", "external:noted")
        check(done.returncode == 1 and "to subscribe is not granted to uid 4002: rule 2 of access.rules" in done.stderr,
            f"watch: {done}")
        done = perfctl(daemon, BOB, "remove", "external:noted")
        check(done.returncode == 1 and "remove is not granted" in done.stderr, f"remove: {done}")
        equal(dict(line.split("\t")[:2] for line in subprocess.run([PERFCTL, "--socket", daemon.control, "status"],
            capture_output=True,
                   text=True, check=True, timeout=perfd.PATIENCE).stdout.splitlines()).get("access"), None,
                       "root's status has rules")


# ---- attacks -----------------------------------------------------------------------------------------------------------


def test_flood_of_refusals():
    """Ten thousand refused requests of a kind, as fast as they go: each is answered alike, and perfd neither grows nor stops."""
    with Daemon(rules(f"{{ users: [{ANN}], emit: ['external:noted'] }}")) as daemon, daemon.client() as root:
        add(root, NOTED)
        daemon.status()
        fds = daemon.fds()
        with daemon.client_of(EVE, groups=()) as eve:
            for body in {"ledger": pb.LedgerRequest()}, {"emit": pb.EmitRequest(samples=[sample()] * 10)}, \
                        {"subscribe": pb.SubscribeRequest(events=["external:noted"])}:
                said = set()
                for begin in range(0, 10000, 100):
                    for _ in range(begin, begin + 100):
                        eve.send(**body)
                        if "subscribe" in body:
                            said.add(eve.receive().response.reason)
                    if "subscribe" not in body:
                        said |= {eve.receive().response.reason for _ in range(100)}
                equal(said, {"not-granted"}, "reasons")
            equal(daemon.status().n_events, 1, "events")
        perfd.wait_until(lambda: daemon.fds() == fds, "its fds are as before")


if __name__ == "__main__":
    perfd.main(globals())
