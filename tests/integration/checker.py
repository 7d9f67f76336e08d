"""A subscriber for floods: stream-check.c, and what has to hold for every stream whatever happens to it."""
import json
import os
import signal

import perfd
from perfd import check, equal

IN_GAPS = ("outbox", "relay_queue", "memory")  # losses that gaps stand for

STREAM_CHECK = os.environ.get("PERFD_STREAM_CHECK", os.path.join(perfd.BUILD, "tests", "integration", "stream-check"))


def in_gaps(seen):
    return sum(seen[reason] for reason in IN_GAPS)


class Checker(perfd.Line):
    """stream-check.c: counts and checks every item in C. where: another way to the daemon, a URI; the rest goes to subprocess.Popen."""

    def __init__(self, daemon, order, *events, queue=0, options=(), where=None, **popen):
        super().__init__([STREAM_CHECK, *options, where or daemon.stream, order, str(queue), *events], **popen)
        equal(self.hear(), ["subscribed"], "the first word of the checker")

    def end(self, seconds=perfd.PATIENCE):
        """What it saw, with what holds whatever happens."""
        self.process.send_signal(signal.SIGTERM)
        seen = json.loads(" ".join(self.hear(seconds)))
        equal(self.process.wait(seconds), 0, "the status of the checker")
        # a sanitizer's readers may be too slow to answer in time beside other load, and then the rows say that
        check(seen["balanced"] or perfd.SANITIZER != "none" and seen["stalled"], f"the closing ledger does not balance: {seen}")
        equal(seen["sent"], seen["items"], "items sent and received")
        equal(seen["missed"], in_gaps(seen), "items in gaps and items dropped")
        return seen

    def finish_whatever_came_late(self, seconds=perfd.PATIENCE):
        """The same of a stream whose order and sum hold; what came too late is in the sum."""
        seen = self.end(seconds)
        equal(seen["backwards"], 0, f"items older than their predecessor: {seen['steps']}")
        # queued: what happened behind the end, as a ring's LOST record, which the kernel writes before whatever comes next there
        equal(seen["matched"], seen["items"] + in_gaps(seen) + seen["late"] + seen["queued"],
              f"the stream's sum: {seen}")
        return seen

    def finish(self, seconds=perfd.PATIENCE):
        """The same of a stream for which nothing came too late."""
        seen = self.finish_whatever_came_late(seconds)
        equal(seen["late"], 0, "items that came too late")
        return seen
