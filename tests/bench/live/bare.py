"""The bare loops: what a consumer on the same ring costs that does nothing but what its name says."""
import json
import os
import socket

import measure
import perfd


class Bare(measure.Consumer):
    """bare-KIND for each flood; the output, if there is any, goes to readers that discard it. tick: ns between two looks, 0 is
    the default."""

    def __init__(self, floods, kind, tick=0):
        self.floods, self.program = floods, os.path.join(measure.HERE, "bare-" + kind)
        self.tick = [str(tick)] if tick else []

    def start(self):
        self.lines, self.readers, self.watched = [], [], []
        for i, flood in enumerate(self.floods):
            self.add(flood, f"-{i}" if len(self.floods) > 1 else "")
        self.pids = tuple(line.process.pid for line in self.lines)

    def add(self, flood, suffix):
        ours, theirs = socket.socketpair()
        self.readers.append(measure.Reader("bytes", theirs))
        self.stack.callback(self.readers[-1].close)
        with ours:
            command = [self.program, str(flood.pid), str(flood.cpu), str(ours.fileno()), *self.tick]
            self.lines.append(perfd.Line(command, pass_fds=[ours.fileno()]))
        self.stack.enter_context(self.lines[-1])
        perfd.equal(self.lines[-1].hear(), ["ready"], "the first word of the loop")
        self.watched += [("loop" + suffix, self.lines[-1].process.pid), ("its reader" + suffix, self.readers[-1].process.pid)]

    def end(self, line, reader):
        line.say("stop")
        said = json.loads(" ".join(line.hear()))
        perfd.equal(line.process.wait(perfd.PATIENCE), 0, "the status of the loop")
        return {**said, **reader.finish()}

    def finish(self, n_calls, n_stops):
        ends = [self.end(line, reader) for line, reader in zip(self.lines, self.readers)]
        occurred, lost, ns, slept = (sum(end[key] for end in ends) for key in ("occurred", "lost", "cpu_ns", "wakeups"))
        ages = {key: value for key, value in ends[0].items() if key.endswith("_ns")}  # of bare-latency
        return {**ages, "occurred": occurred, "taken": occurred - lost, "lost": lost, "cpu_ns": ns, "parts": {"loop": ns},
                "wakeups": {"loop": slept}}
