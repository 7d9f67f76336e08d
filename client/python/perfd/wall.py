"""What wall time was at times of a stream's clock, by the readings that came with it."""
import collections

KEPT = 8  # times that wall time was set, newest last: for items that are older
DRIFT = 1000  # of a clock that is not slewed as wall time is: a ns of error for each so many
Kept = collections.namedtuple("Kept", "reading since set")


class WallTimes:
    """The newest reading of each time that wall time was set."""

    def __init__(self, start):
        self.offset, self.drifts = start.wall_offset, start.clock == "monotonic-raw"
        self.kept = collections.deque(maxlen=KEPT)

    def add(self, reading):
        """Behind what came before it, before what comes next."""
        if self.kept and not reading.since:
            self.kept[-1] = self.kept[-1]._replace(reading=reading)
        else:
            self.kept.append(Kept(reading, reading.since, reading.time if reading.since else 0))

    def at(self, time):
        """(ns since 1970, how many ns it can be wrong by; None: the daemon sends no readings)."""
        if not self.kept:
            return time + self.offset, None
        i = next((i for i in range(len(self.kept) - 1, 0, -1) if time > self.kept[i].since), 0)
        wall, error = self._by(self.kept[i].reading, time)
        if i > 0 and time < self.kept[i].set:  # it was set in between: one of both is true
            before, before_error = self._by(self.kept[i - 1].reading, time)
            error = abs(wall - before) + max(error, before_error)
        return wall, error

    def _by(self, reading, time):
        drift = abs(time - reading.time) // DRIFT if self.drifts else 0
        return reading.wall + time - reading.time, reading.error + drift
