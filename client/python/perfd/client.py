"""A connection to perfd: what can be asked, and how it becomes a stream."""
import contextlib
import os
import socket
import sys
import time

from . import perfd_pb2 as pb
from .connection import Connection, connect, deadline_in
from .errors import Disconnected, Error, ProtocolError, Refused, require
from .ring import Ring
from .stream import Stream

VERSION = 1
CONTROL, STREAM = "/run/perfd/control.sock", "/run/perfd/stream.sock"
CLOCKS = {"monotonic": time.CLOCK_MONOTONIC, "monotonic-raw": time.CLOCK_MONOTONIC_RAW, "boottime": time.CLOCK_BOOTTIME,
          "realtime": time.CLOCK_REALTIME}


class Client(Connection):
    """One connection: requests first, then perhaps one stream. Of one thread at a time.

    path: of a socket of perfd, or a socket that is connected with it, also one of ssl. Without one $PERFD_SOCKET; without that the control
    socket of an installed perfd, or the stream socket where that one cannot be used. program: what the daemon's log calls
    this client. timeout: seconds for each answer, then TimeoutError, and the connection is closed; None waits for ever.

    Each request gives the reply that perfd.proto has for it; what it says no to is Refused.
    """
    stream_type = Stream

    def __init__(self, path=None, program=None, timeout=None):
        path = path or os.environ.get("PERFD_SOCKET")
        is_socket = isinstance(path, socket.socket)
        super().__init__(path if is_socket else _connect(path, timeout) if path else _connect_any(timeout), timeout)
        self.stream = self.clock = None
        program = program or os.path.basename(sys.argv[0]) or "python"
        try:
            self.hello = self.request(hello=pb.Hello(protocol=VERSION, program=program)).hello
        except BaseException:
            self.close()
            raise
        self.max_request = self.hello.max_request or self.max_request

    def request(self, **body):
        """Any request by its name in perfd.proto, as in request(list=pb.ListRequest()): its Response, or Refused."""
        try:
            if self.stream:
                raise Error("this connection is a stream: requests need another one")
            deadline = deadline_in(self.timeout)
            with contextlib.suppress(BrokenPipeError):  # why it was closed may wait to be read
                self.send(**body)
            message = self.receive(deadline)
            if not message:
                raise Disconnected("perfd closed the connection and gave no response")
            require(message.WhichOneof("body") == "response", "something else than a response came")
            response = message.response
            require(response.id in (self.last_id, 0), "the response belongs to another request")
            require(response.id or response.status, "the response belongs to no request")
        except (OSError, ProtocolError):
            self.close()  # a response that comes later is nobody's
            raise
        if not response.id:
            self.close()
        if response.status != pb.STATUS_OK:
            raise Refused(response)
        return response

    # ---- what is there ----

    def status(self):
        """StatusReply: the daemon, its numbers, its CPUs."""
        return self.request(status=pb.Empty()).daemon

    def list(self, glob="", fields=False):
        """ListReply: running and pending events, by names, globs, "#ID" or "@GROUP"."""
        return self.request(list=pb.ListRequest(glob=glob, fields=fields)).list

    def available(self, glob="", fields=False):
        """AvailableReply: what this host offers."""
        return self.request(available=pb.AvailableRequest(glob=glob, fields=fields)).available

    def ledger(self, *events):
        """Ledger: how every sample of these events, or of all, was accounted for."""
        return self.request(ledger=pb.LedgerRequest(events=events)).ledger

    def doctor(self):
        """DoctorReply: what this kernel, the daemon's privileges and its limits allow."""
        return self.request(doctor=pb.Empty()).doctor

    def kernel_names(self, addresses):
        """KernelNamesReply: what is at these addresses of the kernel that perfd observes."""
        return self.request(kernel_names=pb.KernelNamesRequest(addresses=addresses)).kernel_names

    def formats(self, ids):
        """EventFormatsReply: how the kernel knows these running events, and the formats of tracepoints, as recordings have them."""
        return self.request(event_formats=pb.EventFormatsRequest(ids=ids)).event_formats

    # ---- changes: the control socket ----

    def add(self, *specs, while_connected=False, keep=False, share=False):
        """AddReply. A spec is a name, a dict of fields of EventSpec, or an EventSpec; all are added, or none."""
        return self.request(add=pb.AddRequest(events=[_message(pb.EventSpec, spec, "event") for spec in specs],
                                              while_connected=while_connected, keep=keep, share=share)).added

    def remove(self, *names):
        """SelectReply. Names are names, globs, "#ID" or "@GROUP"; all are removed, or none."""
        return self.request(remove=pb.SelectRequest(names=names)).selected

    def enable(self, *names):
        """SelectReply: these count from now on."""
        return self.request(enable=pb.SelectRequest(names=names)).selected

    def disable(self, *names):
        """SelectReply: these rest."""
        return self.request(disable=pb.SelectRequest(names=names)).selected

    def set_filter(self, name, text):
        """Another filter of a running event; "" for none. Nothing is lost."""
        self.request(set_filter=pb.SetFilterRequest(name=name, filter=text))

    def set_period(self, name, period=0, frequency=0):
        """Another period or frequency of a running event. Nothing is lost."""
        self.request(set_period=pb.SetPeriodRequest(name=name, period=period, frequency=frequency))

    # ---- configurations ----

    def validate(self, yaml):
        """ValidateReply: what is wrong with the text of a configuration."""
        return self.request(validate=pb.ValidateRequest(yaml=yaml)).validated

    def plan(self, yaml, path=""):
        """PlanReply: what apply() of this text would do."""
        return self.request(plan=pb.PlanRequest(yaml=yaml, path=path)).plan

    def apply(self, yaml, path="", may_wait=False):
        """ReloadReply: this text is the configuration until the next reload(); all of it, or nothing."""
        return self.request(apply=pb.ApplyRequest(yaml=yaml, path=path, may_wait=may_wait)).reloaded

    def reload(self):
        """ReloadReply: the configuration is read again."""
        return self.request(reload=pb.Empty()).reloaded

    # ---- samples of one's own ----

    def now(self):
        """ns of the clock of all times of this daemon, which runs on this host."""
        if self.clock is None:
            clock = self.status().clock
            require(clock in CLOCKS, f"a clock of which nothing is known: {clock}")
            self.clock = CLOCKS[clock]
        return time.clock_gettime_ns(self.clock)

    def emit(self, *samples):
        """EmitReply. Samples of external events: an ExternalSample, or a dict with event, values, and time, pid, tid, cpu.

        Values are int, bool, str or bytes, one for each field; the time is now() if there is none.
        """
        return self.request(emit=pb.EmitRequest(samples=[self._sample(sample) for sample in samples])).emitted

    def _sample(self, sample):
        if isinstance(sample, pb.ExternalSample):
            return sample
        values = [_value(value) for value in sample.get("values", ())]
        return pb.ExternalSample(**{**sample, "time": sample["time"] if "time" in sample else self.now(), "values": values})

    # ---- streams ----

    def subscribe(self, *events, where="", fields=(), order="time", payload="fields", overflow="drop-oldest", records=(),
                  **more):
        """Makes this connection a Stream of these events: names or globs; none: all, also those that are added later.

        order, payload and overflow are as in perfctl(1), records names of side records, as in ("fork", "exit"). more:
        other fields of SubscribeRequest, as ring_bytes and pool for a stream in shared memory; latency is in ns.
        """
        if isinstance(fields, (str, bytes)):
            raise TypeError(f"fields: a list of names such as [{fields!r}], and not the text {fields!r}")
        if isinstance(records, (str, bytes)):
            raise TypeError(f"records: a list of names such as [{records!r}], and not the text {records!r}")
        if not isinstance(more.get("latency", 0), int):
            raise TypeError(f"latency: a whole number of ns, as 1_000_000 for 1 ms, and not {more['latency']!r}")
        request = pb.SubscribeRequest(
            events=events, where=where, fields=fields, order=_enum("ORDER", order), payload=_enum("PAYLOAD", payload),
            overflow=_enum("OVERFLOW", overflow), records=_mask(records), **more)
        ring = self.request(subscribe=request).ring
        try:
            require(bool(ring.bytes) == bool(request.ring_bytes), "a ring that nobody asked for, or none")
            if ring.bytes:
                self._open_ring(ring)
        except ProtocolError:
            self.close()
            raise
        self.stream = self.stream_type(self)
        return self.stream

    def _open_ring(self, ring):
        require(len(self.fds) == 2 + bool(ring.pool_bytes),
                "no fds came: this socket is forwarded, subscribe anew without ring_bytes")
        fds, self.fds = self.fds, []
        self.ring = Ring(fds, ring.bytes, ring.offset, ring.pool_bytes)
        require(not any(self.received) and not any(message.WhichOneof("body") for message in self.messages),
                "something else than bells beside a ring")
        self.received.clear()
        self.messages.clear()


def _connect(path, timeout):
    try:
        return connect(path, timeout)
    except TimeoutError:
        raise
    except OSError as error:
        raise Disconnected("cannot connect to perfd: start perfd, or name its socket by path or "
                           f"$PERFD_SOCKET ({error})") from error


def _connect_any(timeout):
    """With an installed perfd, by the socket that can do more."""
    try:
        return connect(CONTROL, timeout)
    except OSError as error:
        control = error
    try:
        return connect(STREAM, timeout)
    except OSError as error:
        raise Disconnected("cannot connect to perfd: start perfd, or name its socket by path or "
                           f"$PERFD_SOCKET ({control}; {error})") from error


def _message(kind, value, name):
    if isinstance(value, kind):
        return value
    return kind(**(value if isinstance(value, dict) else {name: value}))


def _enum(prefix, value):
    """ "drop-oldest" as OVERFLOW_DROP_OLDEST; the names and numbers of perfd.proto are as good."""
    if isinstance(value, str) and not value.startswith(prefix):
        return f"{prefix}_{value.upper().replace('-', '_')}"
    return value


def _mask(records):
    if isinstance(records, int):
        return records
    return sum({1 << pb.RecordKind.Value(_enum("RECORD_KIND", record)) for record in records})


def _value(value):
    if isinstance(value, int):
        return pb.ExternalValue(signed_number=value) if value < 0 else pb.ExternalValue(number=value)
    if isinstance(value, (str, bytes)):
        return pb.ExternalValue(text=value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value)
    raise TypeError(f"a value of an external event is int, bool, str or bytes, not {type(value).__name__}")
