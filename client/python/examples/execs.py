import signal
import perfd

with perfd.Client() as client, \
        client.subscribe("sched:sched_process_exec") as stream:
    stream.stop_at_signals(signal.SIGINT, signal.SIGTERM)
    for sample in stream.samples():
        name = perfd.printable(sample.fields["filename"])
        print(sample.time, perfd.printable(sample.comm), name)
    print(f"lost: {stream.end.lost or 'nothing'}")
