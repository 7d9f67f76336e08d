"""What a case is to reach, in terms of other cases of the same run.

A goal gives its value for one repetition, from what was measured there, and its limit at a rate, None if it has none
there; the value of a row is the median over repetitions.
"""


def cost(found):
    """ns of the consumer's CPU for each event that it took from the kernel."""
    return found["cpu_ns"] / max(1, found["taken"])


class Times:
    """At most so many times what another case costs, by rate."""

    def __init__(self, beside, limits):
        self.beside, self.limits = beside, limits

    def limit(self, rate):
        return self.limits.get(rate)

    def value(self, found, beside):
        return cost(found) / cost(beside)

    def text(self, limit):
        return f"{limit:g} x {self.beside}"


class NoLoss:
    """Nothing lost at this rate."""

    beside = None

    def __init__(self, rate):
        self.rate = rate

    def limit(self, rate):
        return 0 if rate == self.rate else None

    def value(self, found, _):
        return found["lost"]

    def text(self, _):
        return "nothing lost"
