#!/usr/bin/python3
"""A pattern of a file's functions, in the configuration and in a request: what it becomes, what is counted, and what is refused.
Needs root."""
import os
import shutil
import tempfile

import perfd
from perfd import Daemon, add, check, equal, pb, refused, wait_until
from subscriber import Refused
from test_sources import FIRE, Fire

CONFIG = "version: 1\ngroups:\n  fires:\n    target: host\n    events:\n"


def names(client):
    return sorted(e.spec.name.split(":")[-1] for e in client.request(list=pb.ListRequest()).list.events)


def occurred(daemon, function):
    return sum(row.occurred for row in daemon.ledger().events if row.name.endswith(f":{function}"))


def test_in_the_configuration():
    """Each function is an event, with the pattern's options; a reload keeps them; what the file gets later is not followed."""
    with Daemon(CONFIG + f"      - uprobe:{FIRE}:fire_ca*\n      - {{ event: 'uretprobe:{FIRE}:fire_[ch]*', args: 'r=$retval' }}\n") as daemon, \
            daemon.client() as client, Fire() as fire:
        equal(names(client), sorted(2 * ["fire_call", "fire_calls"] + ["fire_hits"]), "what the patterns mean")
        equal({e.spec.args for e in client.request(list=pb.ListRequest()).list.events if e.spec.event.startswith("uretprobe")}, {"r=$retval"},
              "the options of each")
        before = occurred(daemon, "fire_call"), occurred(daemon, "fire_calls")
        fire.fire("calls", 100)
        after = occurred(daemon, "fire_call"), occurred(daemon, "fire_calls")
        equal([a - b for a, b in zip(after, before)], [2 * 100, 2 * 1], "calls, and returns")
        plan = client.request(plan=pb.PlanRequest(reload=True)).plan
        equal((len(plan.added), len(plan.kept)), (0, 5), "a plan of the same")
        equal(client.request(reload=pb.Empty()).reloaded.kept, 5, "a reload")


def test_file_that_comes_later():
    """Until then it is pending, as an event of one function is."""
    with tempfile.TemporaryDirectory(prefix="perfd-test.") as folder:
        path = os.path.join(folder, "later")
        with Daemon(CONFIG + f"      - uprobe:{path}:fire_ca*\n") as daemon, daemon.client() as client:
            equal((daemon.status().n_pending, len(daemon.ledger().events)), (1, 0), "before")
            shutil.copy(FIRE, path)
            client.request(reload=pb.Empty())
            wait_until(lambda: names(client) == ["fire_call", "fire_calls"], "both to be there")


def test_requests():
    with Daemon() as daemon, daemon.client() as client:
        event = f"uprobe:{FIRE}:fire_ca*"
        refs = add(client, event)
        equal([ref.name for ref in refs], [f"uprobe:{FIRE}:fire_call", f"uprobe:{FIRE}:fire_calls"], "what is added")
        refused(client, "exists", add=pb.AddRequest(events=[pb.EventSpec(event=event)]))
        for pattern, reason, words in (("fire_x*", "unknown-symbol", "no function that matches 'fire_x*'"), ("fire_c*+4", "unknown-symbol", "stands alone")):
            no = refused(client, reason, add=pb.AddRequest(events=[pb.EventSpec(event=f"uprobe:{FIRE}:{pattern}")]))
            check(words in no.message, f"{pattern}: {no.message}")
        no = refused(client, "bad-event", add=pb.AddRequest(events=[pb.EventSpec(event=event, name="calls")]))
        check("cannot all be called calls" in no.message, no.message)
        try:
            add(client, f"uprobe:{perfd.PERFD}:*")
            raise AssertionError("more than 64 functions were not refused")
        except Refused as no:
            check("one pattern means 64 at most" in str(no), str(no))
        equal(len(client.request(list=pb.ListRequest()).list.events), 2, "events afterwards")


if __name__ == "__main__":
    perfd.main(globals())
