"""For the integration tests: a program on 127.0.0.1 that speaks the protocol of NATS, and answers requests with what a test gives it."""
import json
import socket
import threading

from perfd import PATIENCE

SUBJECTS = {"perfd": "perfd.*.*", "perfd-descriptors": "perfd-descriptors.>", "perfd-status": "perfd.*.status.*.*"}


def stream_info(name, last=0):
    """As JetStream answers about a stream that is empty, or from which all was removed."""
    return json.dumps({"config": {"name": name, "subjects": [SUBJECTS[name]], "discard": "old", "max_msg_size": -1, "no_ack": False},
                       "state": {"messages": 0, "bytes": 0, "first_seq": 0, "last_seq": last, "consumer_count": 0}}).encode()


class Connection:
    def __init__(self, fake, s):
        self.fake, self.socket, self.file, self.subscriptions = fake, s, s.makefile("rb"), []
        self.says(b"INFO " + json.dumps({"server_id": "X", "version": "2.9.10", "proto": 1, "headers": True, "max_payload": 8 << 20}).encode())

    def says(self, *lines):
        self.socket.sendall(b"".join(line + b"\r\n" for line in lines))

    def answer(self, reply, body):
        """To the subscription that `reply` is of."""
        for subject, number in self.subscriptions:
            if reply == subject or (subject.endswith(b"*") and reply.startswith(subject[:-1])):
                self.says(b"MSG %s %s %d" % (reply, number, len(body)), body)

    def push(self, to, subject, reply, body=b""):
        """A message that the subscription of `to` gets."""
        for known, number in self.subscriptions:
            if known == to:
                self.says(b"MSG %s %s %s %d" % (subject, number, reply, len(body)), body)

    def run(self):
        for line in self.file:
            words = line.split()
            if words[:1] == [b"PING"]:
                self.says(b"PONG")
            elif words[:1] == [b"SUB"]:
                self.subscriptions.append((words[1], words[-1]))
            elif words[:1] in ([b"PUB"], [b"HPUB"]):
                body = self.file.read(int(words[-1]) + 2)[:-2]
                if len(words) == (4 if words[0] == b"PUB" else 5):
                    self.answer(words[2], self.fake.answer(self, words[1].decode(), body))


class Fake:
    """`infos`: answers to questions about the streams of these names, one after the other, or a call of the connection that gives one;
    afterwards it answers as JetStream does. `acknowledgement` and `consumer`: to messages, and to who wants a consumer, or a call of the
    connection and the request's body that gives it."""

    def __init__(self, infos=(), acknowledgement=b'{"stream":"perfd","seq":1}', consumer=b'{"stream":"perfd","seq":1}', names=("perfd",)):
        self.names, self.infos, self.acknowledgement, self.consumer, self.n_infos = names, list(infos), acknowledgement, consumer, 0
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.connections, self.threads = [], []
        self.url = f"nats://127.0.0.1:{self.listening.getsockname()[1]}"
        self.start(self.accept)

    def start(self, run):
        self.threads.append(threading.Thread(target=run, daemon=True))
        self.threads[-1].start()

    def accept(self):
        while True:
            try:
                s, _ = self.listening.accept()
            except OSError:
                return
            self.connections.append(s)
            self.start(lambda s=s: self.serve(s))

    def serve(self, s):
        try:
            Connection(self, s).run()
        except (OSError, ValueError):  # the client has ended
            pass

    def answer(self, connection, subject, body):
        name = subject.rpartition(".")[2]
        if subject.startswith("$JS.API.STREAM."):
            if name not in self.names or self.n_infos >= len(self.infos):
                return stream_info(name)
            self.n_infos += 1
            info = self.infos[self.n_infos - 1]
            return info(connection) if callable(info) else info
        if not subject.startswith("$JS.API.CONSUMER."):
            return self.acknowledgement
        return self.consumer(connection, body) if callable(self.consumer) else self.consumer

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for s in [self.listening, *self.connections]:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:  # it has ended
                pass
            s.close()
        for thread in self.threads:
            thread.join(PATIENCE)
