"""Samples of the perf_event daemon, and all that it can be asked, in Python: perfd-python(3) says how.

    with perfd.Client() as client, client.subscribe("sched:sched_process_exec") as stream:
        for sample in stream.samples():
            print(sample)

Made of perfd.proto and PROTOCOL.md alone; `pb` are the messages of the former. Needs Google's protobuf (python3-protobuf).
"""
from . import ledger
from . import perfd_pb2 as pb
from .client import Client
from .errors import Disconnected, Error, ProtocolError, Refused
from .event import Event
from .items import Gap, Record, Sample, printable
from .stream import End, Stream

__all__ = ["Client", "Disconnected", "End", "Error", "Event", "Gap", "ProtocolError", "Record", "Refused", "Sample", "Stream",
           "ledger", "pb", "printable"]
