import collections
import sys
import perfd

calls = collections.Counter()
with perfd.Client(timeout=10) as control, perfd.Client() as reader:
    try:
        control.add({"event": "raw_syscalls:sys_enter", "name": "calls"},
                    while_connected=True)
    except perfd.Refused as no:
        sys.exit(f"{no.reason}: {no.message}")
    with reader.subscribe("calls", order="cpu", ring_bytes=1 << 20) as s:
        while calls.total() < 1000:
            items = s.read(timeout=1)
            if items is None:
                sys.exit(f"perfd has ended the stream: {s.end.reason}")
            for item in items:
                if isinstance(item, perfd.Gap):
                    print(item, file=sys.stderr)
                elif isinstance(item, perfd.Sample):
                    calls[item.comm] += 1
for comm, n in calls.most_common(10):
    print(f"{n:8} {perfd.printable(comm)}")
