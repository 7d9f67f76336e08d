"""Reads packets of one item each, a little-endian u32 length before each, by the ordinary Python protobuf package, and
prints every value of the item on one line. Says so if the same message, serialised by that package, has other bytes.
With --canonical behind the file, that is all that it says."""
import struct
import sys

sys.path.insert(0, sys.argv[1])  # where perfd_pb2.py is, the messages alone
import perfd_pb2  # noqa: E402

data = open(sys.argv[2], "rb").read()
only_bytes = sys.argv[3:] == ["--canonical"]
at = 0
while at < len(data):
    (length,) = struct.unpack_from("<I", data, at)
    packet_bytes = data[at + 4:at + 4 + length]
    at += 4 + length
    packet = perfd_pb2.Packet.FromString(packet_bytes)
    (i,) = packet.items
    if packet.SerializeToString(deterministic=True) != packet_bytes:
        print("not canonical", packet_bytes.hex())
    if only_bytes:
        continue
    print(i.time, i.event, i.cpu, i.pid, i.tid, i.ip, i.address, i.period,
          "numbers", *i.numbers, "texts", *["'%s'" % t.hex() for t in i.texts], "raw", i.raw.hex(),
          "kernel", *i.kernel_callchain, "user", *i.user_callchain, "faults", *i.faults)
if only_bytes:
    print("canonical" if data else "empty")
