"""What a stream is made of: samples, records of the kernel, and gaps where some of them are missing."""
import unicodedata

# parts of an Item that every one of them has, or that are read by its descriptor
_COMMON = {"time", "event", "cpu", "pid", "tid", "numbers", "texts", "period", "zero_tid", "faults"}

_ZERO_TIDS = None, "idle", "outside", "unknown"

# of Default_Ignorable_Code_Point what is no control or format character
_UNSEEN = set("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0") | set(
    map(chr, [*range(0xfe00, 0xfe10), *range(0xe0100, 0xe01f0)]))


def _is_seen(c):
    return c == " " or (unicodedata.category(c)[0] not in "CZ" and c not in _UNSEEN)


def printable(value):
    """Bytes from the traced host, or a str, as text that is safe to print: what is no UTF-8, or is not seen, as \\xNN."""
    text = value if isinstance(value, str) else bytes(value).decode("utf-8", "surrogateescape")
    return "".join(c if _is_seen(c) else "".join(f"\\x{byte:02x}" for byte in _bytes(c)) for c in text)


def _bytes(c):
    return c.encode("utf-8", "surrogateescape" if "\udc80" <= c <= "\udcff" else "surrogatepass")


def plain(value):
    """A protobuf value as numbers, bytes, lists and dicts; a message has all of its fields, also those that are 0."""
    if hasattr(value, "DESCRIPTOR"):
        return {field.name: plain(getattr(value, field.name)) for field in value.DESCRIPTOR.fields}
    return value if isinstance(value, (int, float, str, bytes)) else [plain(element) for element in value]


def zero_tid_of(message):
    """As _Item.zero_tid, of an Item of perfd.proto. What a later perfd may say is "unknown" here."""
    return _ZERO_TIDS[min(message.zero_tid, len(_ZERO_TIDS) - 1)] if message.tid == 0 else None


class _Item:
    """What samples and records have in common. `message` is the Item of perfd.proto."""
    __slots__ = ("message", "event", "comm", "process", "fields")

    def __init__(self, message, event, comm, process, fields):
        self.message, self.event, self.comm, self.process, self.fields = message, event, comm, process, fields

    @property
    def time(self):
        """ns of the stream's clock."""
        return self.message.time

    @property
    def cpu(self):
        """Where it happened."""
        return self.message.cpu

    @property
    def pid(self):
        """The process, as perfd sees it."""
        return self.message.pid

    @property
    def tid(self):
        """The thread, as perfd sees it."""
        return self.message.tid

    @property
    def zero_tid(self):
        """Who tid 0 is, if perfd is in a pid namespace of its own: "idle", "outside" or "unknown"; else None."""
        return zero_tid_of(self.message)

    @property
    def parts(self):
        """{name: value} of what the event's attr asked for beside its fields: kernel_callchain, ip, read_values, ..."""
        return {field.name: plain(value) for field, value in self.message.ListFields()
                if field.containing_oneof is None and field.name not in _COMMON}

    def _words(self, what):
        who = f"{printable(self.comm) or '-'}/{self.tid}"
        fields = (f"{name}={_word(value, self.names.get(name))}" for name, value in self.fields.items())
        return " ".join([f"{self.time / 1e9:.9f} [{self.cpu:03}] {who} {what}", *fields])

    @property
    def names(self):
        """{field: text} for numbers that have names."""
        return {}


def _word(value, name):
    if isinstance(value, list):
        return "[" + ",".join(_word(v, name[i] if name else None) for i, v in enumerate(value)) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{k}={_word(v, None)}" for k, v in value.items()) + "}"
    if value is None:
        return "(fault)"
    return printable(name) if name else f'"{printable(value)}"' if isinstance(value, (bytes, str)) else str(value)


class Sample(_Item):
    """An occurrence of an event. `event` is its Event, `fields` are {name: int, list, bytes or None}."""
    __slots__ = ()

    @property
    def names(self):
        return self.event.names(self.fields)

    @property
    def period(self):
        """How many of the event's unit the sample stands for."""
        return self.message.period or 1

    def __str__(self):
        return self._words(printable(self.event.name))


class Record(_Item):
    """A side record of the kernel, such as "fork" or "lost": `kind` is its name in perfd.proto. `event` may be None."""
    __slots__ = ("kind",)

    def __init__(self, kind, *rest):
        super().__init__(*rest)
        self.kind = kind

    def __str__(self):
        return self._words(f"{printable(self.event.name)} {self.kind}" if self.event else self.kind)


class Gap:
    """At this place `n_items` are missing, of the times `begin` to `end`; `events` is {name, or None for records: how many}."""
    __slots__ = ("reason", "n_items", "begin", "end", "events")

    def __init__(self, message, events):
        self.reason, self.n_items = message.reason, message.items
        self.begin, self.end, self.events = getattr(message, "from"), message.to, events

    def __str__(self):
        return f"{self.n_items} items are missing here: {printable(self.reason)}"
