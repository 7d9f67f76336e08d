"""What calls with serial numbers (serial-load.c) pass which filters, and how often an event has to have occurred."""
import collections
import os

import perfd

CPUS = perfd.online_cpus()[:2]
CYCLE = 12  # what a call is follows from its serial number modulo this
LSEEK, GETPRIORITY, FIRST_ARGUMENT = (8, 140, "%di") if os.uname().machine == "x86_64" else (62, 141, "%x0")
LOAD = os.path.join(perfd.BUILD, "tests", "integration", "serial-load")
PROBE = f"uprobe:{LOAD}:mark"
PROBE_ARGS = f"serial={FIRST_ARGUMENT}:u64"


def those(passes):
    return frozenset(s for s in range(CYCLE) if passes(s))


ALL = those(lambda s: True)
# {event: {filter: which calls pass it}}
FILTERS = {
    "syscalls:sys_enter_lseek": {
        "whence > 999": those(lambda s: s % 3 != 0),
        "whence == 1001": those(lambda s: s % 3 != 0 and s % 4 == 1),
        "whence > 999 && whence != 1002": those(lambda s: s % 3 != 0 and s % 4 != 2),
        "whence > 999 && offset & 1": those(lambda s: s % 3 != 0 and s % 2 == 1),
        "whence > 5000": frozenset(),
    },
    "syscalls:sys_enter_getpriority": {
        "which > 999": those(lambda s: s % 3 == 0),
        "which == 1000 || which == 1003": those(lambda s: s % 3 == 0 and s % 4 in (0, 3)),
        "which > 999 && who & 2": those(lambda s: s % 3 == 0 and s % 4 in (2, 3)),
    },
    "raw_syscalls:sys_enter": {
        f"id == {LSEEK}": those(lambda s: s % 3 != 0),
        f"id == {GETPRIORITY}": those(lambda s: s % 3 == 0),
        f"id == {LSEEK} || id == {GETPRIORITY}": ALL,
    },
    "raw_syscalls:sys_exit": {
        f"id == {LSEEK}": those(lambda s: s % 3 != 0),
        f"(id == {LSEEK} || id == {GETPRIORITY}) && ret < 0": ALL,
    },
    PROBE: {
        "serial > 0": those(lambda s: s == 0),
        "serial < 1": frozenset(),
    },
}
OF_HOST = ("syscalls:sys_enter_lseek", "syscalls:sys_enter_getpriority", PROBE)  # whose filters nobody else's calls pass


def count(first, n, passing):
    """How many of the calls first to first + n - 1 are among `passing`."""
    return n // CYCLE * len(passing) + sum((first + i) % CYCLE in passing for i in range(n % CYCLE))


class Event:
    """What an event is, and how often it must and can have occurred on each CPU."""

    def __init__(self, name, event, text, enabled, children):
        self.name, self.event, self.filter, self.enabled = name, event, text, enabled
        self.children = children  # the calls of children are counted too
        self.covers = {}  # by CPU: whether it counts what its process does there
        self.samples = False  # it had a period once
        self.period = 1
        self.least, self.most = collections.Counter(), collections.Counter()
        self.states = [frozenset()]  # since the calls that run now began; before it was added it had none

    def passing(self):
        return FILTERS[self.event][self.filter] if self.enabled else frozenset()

    def changed(self):
        self.states.append(self.passing())

    def bounds(self, run, over):
        """By CPU, with what runs; over: it is known to have run to its end."""
        all_of, any_of = frozenset.intersection(*self.states), frozenset.union(*self.states)
        found = {}
        for cpu in CPUS:
            least, most = self.least[cpu], self.most[cpu]
            for first, n, child in run.get(cpu, ()) if self.covers[cpu] else ():
                if child and not self.children:
                    continue
                least += count(first, n, all_of) if over else 0
                most += count(first, n, any_of)
            found[cpu] = (0 if self.samples else least, most)
        return found

    def ran(self, run):
        for cpu, (_, most) in (found := self.bounds(run, True)).items():
            self.least[cpu], self.most[cpu] = found[cpu][0], most
        self.states = [self.passing()]
