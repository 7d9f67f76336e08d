"""What a case is to reach, in terms of other cases of the same run.

A goal gives its value for one repetition, from what was measured there, and its limit at a rate, None if it has none
there; the value of a row is the median over repetitions. A limit of UNLIMITED is none: the value is of interest.
"""
import math

UNLIMITED = math.inf


def cost(found):
    """ns of the consumer's CPU for each event that it took from the kernel."""
    return found["cpu_ns"] / max(1, found["taken"])


def both(found):
    """The same, and of who reads what it writes."""
    return (found["cpu_ns"] + found["reader_ns"]) / max(1, found["taken"])


def ratio(ours, theirs):
    """Less than 1 ns is what nobody can measure: perf record's end is left out by a median, and at 1 k/s little else is there."""
    return ours / max(1, theirs)


class Goal:
    """beside: the name of the case that it compares with; limits: {rate: at most this}."""

    def __init__(self, limits, beside=None):
        self.limits, self.beside = limits, beside

    def limit(self, rate):
        return self.limits.get(rate)


class Times(Goal):
    """At most so many times what another case costs."""

    def value(self, found, beside):
        return ratio(cost(found), cost(beside))

    def text(self, limit):
        return f"<= {limit:g} x {self.beside}"


class TimesPerByte(Goal):
    """At most so many times what the relay of another case costs for each byte that its reader gets."""

    def value(self, found, beside):
        return ratio(*(1e6 * one["parts"]["relay"] / max(1, one["bytes"]) for one in (found, beside)))

    def text(self, limit):
        return f"<= {limit:g} x {self.beside}, of the relay for each byte"


class TimesBoth(Goal):
    """At most so many times what another case costs, each with who reads its output."""

    def value(self, found, beside):
        return ratio(both(found), both(beside))

    def text(self, limit):
        return f"<= {limit:g} x {self.beside}, both with their readers"


class More(Goal):
    """At most so many ns more than another case for each of n that there are more of."""

    def __init__(self, limits, beside, n, what):
        super().__init__(limits, beside)
        self.n, self.what = n, what

    def value(self, found, beside):
        return (cost(found) - cost(beside)) / self.n

    def text(self, limit):
        return f"ns for each further {self.what}" + (f" <= {limit:g}" if limit < UNLIMITED else "")


class NoLoss(Goal):
    """Nothing is lost."""

    def __init__(self, rate):
        super().__init__({rate: 0})

    def value(self, found, _):
        return found["lost"]

    def text(self, _):
        return "lost"


class CallTime(Goal):
    """The traced program's calls take no longer than with another one."""

    def value(self, found, beside):
        return found["call_ns"] / beside["call_ns"]

    def text(self, limit):
        return f"<= {limit:g} x call ns of {self.beside}"


class Figure(Goal):
    """A figure by its name, in units of so much."""

    def __init__(self, limits, key, unit, what):
        super().__init__(limits)
        self.key, self.unit, self.what = key, unit, what

    def value(self, found, _):
        return found[self.key] / self.unit

    def text(self, limit):
        return f"{self.what}" + (f" <= {limit:g}" if limit < UNLIMITED else "")
