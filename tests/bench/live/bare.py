"""The bare loops: what a consumer on the same ring costs that does nothing but what its name says."""
import json
import os
import socket

import measure
import perfd


class Bare(measure.Consumer):
    """bare-KIND; its output, if there is any, goes to a reader that discards it. tick: ns between two looks, 0 is the default."""

    def __init__(self, pid, cpu, kind, tick=0):
        self.command = [os.path.join(measure.HERE, "bare-" + kind), str(pid), str(cpu)]
        self.tick = [str(tick)] if tick else []

    def start(self):
        ours, theirs = socket.socketpair()
        self.readers = (measure.Reader("bytes", theirs),)
        self.stack.callback(self.readers[0].close)
        with ours:
            self.line = perfd.Line([*self.command, str(ours.fileno()), *self.tick], pass_fds=[ours.fileno()])
        self.stack.enter_context(self.line)
        perfd.equal(self.line.hear(), ["ready"], "the first word of the loop")
        self.pids = (self.line.process.pid,)

    def finish(self, n_calls, seconds):
        self.line.say("stop")
        said = json.loads(" ".join(self.line.hear()))
        perfd.equal(self.line.process.wait(perfd.PATIENCE), 0, "the status of the loop")
        return {"occurred": said["occurred"], "taken": said["occurred"] - said["lost"], "lost": said["lost"],
                "cpu_ns": said["cpu_ns"], "parts": {"loop": said["cpu_ns"]}, "wakeups": {"loop": said["wakeups"]},
                **{key: value for key, value in said.items() if key.endswith("_ns")}, **self.readers[0].finish()}
