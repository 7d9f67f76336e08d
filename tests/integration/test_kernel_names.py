#!/usr/bin/python3
"""Names of kernel frames by the daemon, for who may not read where functions of the kernel lie; and to nobody else. Needs root."""
import bisect
import json
import threading

import perfd
from perfd import Daemon, add, check, equal, pb, refused
from test_roles import ANN, BOB, EVE, no, perfctl, rules

CHAINS = {"event": "cpu-clock", "name": "chains", "period": 1_000_000, "callchain": pb.CALLCHAIN_KERNEL, "attr": [pb.AttrSetting(name="exclude-user", value="true")]}
CALLS = {"event": "syscalls:sys_enter_getppid", "name": "calls"}
MOST = 4096


def places():
    """Of /proc/kallsyms as root: {address: {functions}}, and all addresses in their order."""
    found, addresses = {}, set()
    with open("/proc/kallsyms", encoding="utf-8") as f:
        for line in f:
            address, kind, name, *module = line.split()
            addresses.add(int(address, 16))
            if kind in "tTwW" and int(address, 16):
                found.setdefault(int(address, 16), set()).add((name, module[0].strip("[]") if module else ""))
    return found, sorted(addresses)


def start_of(all_of, address):
    """Of what has the address; 0: nothing."""
    n = bisect.bisect_right(all_of, address)
    return all_of[n - 1] if n else 0


def check_names(replies, addresses, listed):
    found, all_of = listed
    equal(len(replies.names), len(addresses), "names")
    for name, address in zip(replies.names, addresses):
        start = start_of(all_of, address)
        if start not in found or address - start >= 1 << 24:
            equal(name.symbol, b"", f"what is at {address:#x}")
            continue
        check((name.symbol.decode(), name.module.decode()) in found[start], f"{address:#x} is {name}, not {found[start]}")
        equal(name.offset, address - start, f"the offset of {address:#x}")


def ask(client, addresses):
    return client.request(kernel_names=pb.KernelNamesRequest(addresses=addresses)).kernel_names


def test_names():
    """Of as many functions as can be asked for at once, at any byte of them, by several at a time; and more are refused."""
    listed = places()
    functions = [address for address, names in listed[0].items() if not any(module == "bpf" for _, module in names)]  # those come and go
    addresses = [address + i % 3 for i, address in enumerate(functions[::len(functions) // MOST + 1])]
    addresses += [0, 1, 1 << 63, (1 << 64) - 1, 0x400000]
    failed = []

    def ask_often(client):
        try:
            for _ in range(5):
                check_names(ask(client, addresses), addresses, listed)
        except Exception as e:  # pylint: disable=broad-except
            failed.append(e)
    with Daemon("version: 1\naccess: { stream-mode: 0666 }\n") as daemon, daemon.client() as root:
        check_names(ask(root, addresses), addresses, listed)
        check_names(ask(root, []), [], listed)
        refused(root, "bad-request", "STATUS_INVALID", kernel_names=pb.KernelNamesRequest(addresses=[1] * (MOST + 1)))
        add(root, CHAINS)
        clients = [daemon.client_of(uid, groups=()) for uid in (ANN, BOB, EVE, EVE)]
        threads = [threading.Thread(target=ask_often, args=(client,)) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(perfd.PATIENCE)
        equal(failed, [], "what went wrong")
        for client in clients:
            client.close()
        check_names(ask(root, addresses[:MOST]), addresses[:MOST], listed)


def test_granted():
    """To whom samples with addresses of the kernel are granted, and as long as there are any."""
    config = rules(f'{{ users: [{ANN}], subscribe: ["*"] }}', f'{{ users: [{BOB}], subscribe: [calls], status: true, stat: true, own-processes: true }}',
                   f"{{ users: [{EVE}], status: true }}", f"{{ users: [{EVE - 1}], subscribe: ['*'], where: 'cpu == 900' }}")
    address = [next(address for address, names in places()[0].items() if ("vfs_read", "") in names)]
    body = {"kernel_names": pb.KernelNamesRequest(addresses=address)}
    with Daemon(config) as daemon, daemon.client() as root, daemon.client_of(ANN, groups=()) as ann, daemon.client_of(BOB, groups=()) as bob, \
            daemon.client_of(EVE, groups=()) as eve, daemon.client() as limited:
        def all_refused(*clients):
            for client in clients:
                no(client, ["those who get such addresses"], **body)
        add(root, CALLS, {"event": "cpu-clock", "name": "users", "attr": [pb.AttrSetting(name="exclude-kernel", value="true")]},
            {"event": "external:told", "fields": [pb.ExternalField(name="n", type="u32")]},
            {"event": "page-faults", "name": "counts", "interval": 1_000_000_000})
        all_refused(ann, bob, eve)
        chains = pb.SelectRequest(names=["chains"])
        add(root, {**CHAINS, "disabled": True})
        all_refused(ann, bob, eve)
        root.request(enable=chains)
        equal(ask(ann, address).names[0].symbol, b"vfs_read", "what ann is told")
        all_refused(bob, eve)
        limited.request(hello=pb.Hello(protocol=1, program="limited", limit=pb.Limit(name="somebody", events=["calls"], status=True)))
        all_refused(limited)
        with daemon.client() as limited_to_chains:
            limited_to_chains.request(hello=pb.Hello(protocol=1, program="limited", limit=pb.Limit(name="somebody", events=["chains"])))
            equal(ask(limited_to_chains, address).names[0].symbol, b"vfs_read", "what a relay's client is told")
        with daemon.client_of(EVE - 1, groups=()) as ruled:
            all_refused(ruled)
        for where in "next_pid == 1", "cpu == 900":  # of which the event has no field, and no sample
            with daemon.client() as by_predicate:
                by_predicate.request(hello=pb.Hello(protocol=1, program="limited", limit=pb.Limit(name="somebody", events=["*"], where=where)))
                all_refused(by_predicate)
        root.request(disable=chains)
        all_refused(ann)
        root.request(enable=chains)
        done = perfctl(daemon, ANN, "watch", "chains", "--count", "1")
        equal(done.returncode, 0, done.stderr)
        root.request(disable=chains)
        equal(ask(ann, address).names[0].symbol, b"vfs_read", "what ann is told of addresses that she has got")
        root.request(remove=chains)
        all_refused(ann)
        equal(ask(root, address).names[0].symbol, b"vfs_read", "what root is told")


def test_watch():
    """perfctl of somebody who may not read addresses names each kernel frame as the list says."""
    found, all_of = places()
    with Daemon("version: 1\naccess: { stream-mode: 0666 }\n") as daemon, daemon.client() as root:
        daemon.client_of(ANN, groups=()).close()
        add(root, CHAINS, {"event": "sched:sched_switch", "name": "switches", "callchain": pb.CALLCHAIN_KERNEL})
        done = perfctl(daemon, ANN, "--json", "watch", "chains", "switches", "--count", "300")
        equal(done.returncode, 0, done.stderr)
        chains = [row["kernel_callchain"] for row in map(json.loads, done.stdout.splitlines()) if row["kind"] == "sample" and "kernel_callchain" in row]
        check(len(chains) > 100, f"{len(chains)} chains")
        n = 0
        for chain in chains:
            for i, frame in enumerate(chain):
                call = int(frame["ip"], 16) - (i > 0)
                start = start_of(all_of, call)
                if frame["symbol"] is None:
                    check(start not in found, f"no name of {frame}")
                    continue
                n += 1
                check(frame["symbol"] in {name for name, _ in found[start]}, f"{frame} is not {found[start]}")
                equal(frame["offset"], call - start + (i > 0), f"the offset of {frame}")
                equal(frame["dso"][0], "[", f"the file of {frame}")
        check(n > len(chains), f"{n} names in {len(chains)} chains")


if __name__ == "__main__":
    perfd.main(globals())
