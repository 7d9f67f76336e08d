"""What the threads of a process are doing, for whoever waited for it in vain."""
import contextlib
import os

TICKS = os.sysconf("SC_CLK_TCK")


def read(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read().strip()


def of_thread(path):
    """A line: its name, its state as ps(1) has it, the CPU that it used; and where it is in the kernel, if it is there."""
    name, words = read(f"{path}/stat").split("(", 1)[1].rsplit(")", 1)
    words = words.split()
    used = [int(words[i]) / TICKS for i in (11, 12)]
    text = f"{name} is {words[0]} on CPU {words[36]}, used {used[0]:.2f} s in user space, {used[1]:.2f} s in the kernel"
    with contextlib.suppress(OSError):  # only root may, and not of each kernel
        frames = [line.split()[-1].split("+")[0] for line in read(f"{path}/stack").splitlines()]
        text += ": " + " < ".join(frames or ["not in the kernel"])
    return text


def state_of(pid):
    """Of its main thread, as ps(1) has it: "T" if it is stopped."""
    return read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()[0]


def threads_of(pid):
    """[(name, tid)] of those that are there."""
    found = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError):  # a thread may end between the list of them and its name
            found.append((read(f"/proc/{pid}/task/{tid}/comm"), int(tid)))
    return found


def of_process(pid):
    """A text of one line for each thread; those that end meanwhile are left out."""
    lines = []
    for tid in sorted(os.listdir(f"/proc/{pid}/task"), key=int):
        with contextlib.suppress(OSError):
            lines.append(of_thread(f"/proc/{pid}/task/{tid}"))
    return "\n".join(lines)
