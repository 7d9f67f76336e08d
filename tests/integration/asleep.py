"""When all threads of a perfd sleep, and how often each of them has: nobody wakes without a reason."""
import os

import perfd


def own_threads(pid):
    """Without the one of ThreadSanitizer, which wakes as it likes. perfd's own have names of their own, that one has main's."""
    tids = os.listdir(f"/proc/{pid}/task")
    if perfd.SANITIZER != "thread":
        return tids
    comms = {}
    for tid in tids:
        with open(f"/proc/{pid}/task/{tid}/comm", encoding="ascii") as f:
            comms[tid] = f.read()
    return [tid for tid in tids if tid == str(pid) or comms[tid] != comms[str(pid)]]


def count_sleeps(pid):
    """{thread: how often it has slept}; None if one of them is awake.

    Who is called sleeping in "status" may still be on its way there, with one sleep more to be counted. Of "syscall" the
    kernel says what a thread waits in only when it has left its CPU.
    """
    found = {}
    for tid in own_threads(pid):
        with open(f"/proc/{pid}/task/{tid}/syscall", encoding="ascii") as f:
            if f.read().startswith("running"):
                return None
        with open(f"/proc/{pid}/task/{tid}/status", encoding="ascii") as f:
            lines = dict(line.split(":", 1) for line in f)
        if not lines["State"].strip().startswith("S"):
            return None
        name = lines["Name"].strip()
        perfd.check(name not in found, f"two threads are called {name}")
        found[name] = int(lines["voluntary_ctxt_switches"])
    return found


def wait_until_asleep(pid):
    """Until all threads sleep at one moment; count_sleeps() of it. They are looked at one after the other, and who was
    asleep may be woken by the next one, or by the tick behind its last work: what is the same in two looks, with all that
    wait_until() waits between, held."""
    looks = [None]

    def asleep():
        looks.append(count_sleeps(pid))
        return looks[-1] if looks[-1] and looks[-1] == looks[-2] else None

    return perfd.wait_until(asleep, "all threads asleep")
