#!/usr/bin/python3
"""What answers at the address of a NATS server is none, or means harm: perfd-relay says why nothing is published and goes on trying, and
perfctl fleet ends with a message. Needs root."""
import json
import re
import subprocess

import perfd
from fake_nats import SUBJECTS, Fake, stream_info
from nats import Publisher
from perfd import Daemon, check, equal, wait_until
from test_fleet import PERFCTL
from test_nats import ROUTES

# Answers about a stream, and what is said of them.
NONSENSE = {
    b"{}": "no configuration", b'{"config":null}': "no configuration", b'{"config":{}}': "another name, or of none",
    b'{"config":{"name":null,"subjects":null}}': "another name, or of none", b'{"error":{}}': "error that says nothing",
    b'{"error":null}': "error that says nothing", b"": "is empty", b"[]": "no JSON object", b"null": "no JSON object",
    b'{"config":' * 5000: "no JSON object", b'{"config":{"name":"perfd"' + b" " * (2 << 20) + b"}}": "is longer than any of JetStream",
}


def stray(connection):
    """A message that nobody has subscribed to comes on the inbox of answers, before the answer."""
    connection.says(b"MSG foo 1 2", b"{}")
    return stream_info("perfd")


def alive(relay):
    check(relay.process.poll() is None, f"the relay has ended with {relay.process.returncode}: {relay.said()}")
    return True


def test_relay():
    """Each of these answers; then it is JetStream, and the relay publishes."""
    for info, said in NONSENSE.items():
        with Daemon() as daemon, Fake([info]) as fake, Publisher(daemon, fake, ROUTES) as relay:
            wait_until(lambda: alive(relay) and re.search(r"publishing to nats://", relay.said()), "the relay to publish")
            found = re.search(r"nothing is published now.*: stream 'perfd': the answer .*: is this a NATS server with JetStream\?", relay.said())
            check(found and said in found.group(), f"{info[:80]}: {relay.said()}")


def test_relay_refused():
    """Words of a server are of its choice, and reach no terminal as they are."""
    error = b'{"error":{"code":500,"err_code":10058,"description":"\x1b[31mno"}}'
    with Daemon() as daemon, Fake([error]) as fake, Publisher(daemon, fake, ROUTES) as relay:
        relay.wait_for(r"stream 'perfd': '\?\[31mno'")
        relay.wait_for(r"publishing to nats://")


def test_relay_stray():
    with Daemon() as daemon, Fake([stray] * 3) as fake, Publisher(daemon, fake, ROUTES) as relay:
        wait_until(lambda: alive(relay) and re.search(r"publishing to nats://", relay.said()), "the relay to publish")


def test_relay_long():
    """Answers longer than any of JetStream, to questions and to messages, are not kept; the relay ends as it should."""
    long = b'{"stream":"perfd","seq":1,"x":"' + b"y" * (6 << 20) + b'"}'
    for fake in Fake([long]), Fake(acknowledgement=long):
        with Daemon() as daemon, fake, Publisher(daemon, fake, ROUTES) as relay:
            relay.wait_for(r"Slow Consumer.*: its answers are longer, or more, than those of JetStream")
            alive(relay)


def fleet(fake, *words):
    done = subprocess.run([PERFCTL, "fleet", "--nats", fake.url, *words], capture_output=True, timeout=perfd.PATIENCE, check=False)
    equal((done.returncode, done.stdout), (3, b""), f"how {words} ends, with {done.stderr}")
    return done.stderr.decode()


def test_fleet():
    for info, said in NONSENSE.items():
        with Fake([info] * 9, names=SUBJECTS) as fake:
            for words in ["hosts"], ["ledger"], ["watch", "calls"], ["watch", "calls", "--durable", "x"]:
                errors = fleet(fake, *words)
                check(re.fullmatch(rf"perfctl: fleet: perfd(-status)?: the answer .*{said}.*: is this a NATS server with JetStream\?\n", errors), errors)


def test_fleet_consumer():
    """A stream is there, and what comes to who wants to read it is no consumer."""
    for consumer in b'{"stream":"perfd","seq":7}', b"{}", b'{"name":null,"stream_name":null,"config":null}', b'{"error":{}}', b"":
        with Fake(consumer=consumer) as fake:
            for words in ["hosts"], ["ledger"], ["watch", "calls"]:
                errors = fleet(fake, *words)
                check(re.fullmatch(r"perfctl: fleet: perfd\.\S+: the answer .*: is this a NATS server with JetStream\?\n", errors), errors)
            done = subprocess.run([PERFCTL, "fleet", "--nats", fake.url, "watch", "calls", "--durable", "x"], stderr=subprocess.PIPE,
                                  timeout=perfd.PATIENCE, check=False)
            check(done.returncode in (1, 3) and done.stderr.startswith(b"perfctl: fleet: "), f"a durable reader ends with {done}")


class Later:
    """A consumer as JetStream has it, which delivers messages of these numbers of its own and of the stream; and then what it answers."""

    def __init__(self, delivered, *answers):
        self.delivered, self.answers, self.places = delivered, [b'{"stream_name":"perfd","name":"c"}', *answers], []

    def __call__(self, connection, body):
        config = json.loads(body or b"{}").get("config")
        if config is None:  # a question about it
            return b"{}"
        self.places.append(config["opt_start_seq"])
        if len(self.places) == 1:
            for number, sequence in self.delivered:
                connection.push(config["deliver_subject"].encode(), b"perfd.web1.calls", b"$JS.ACK.perfd.c.1.%d.%d.0.0" % (sequence, number))
        return self.answers[min(len(self.places), len(self.answers)) - 1]


def check_later(last, delivered, place, answer):
    """last: of the stream, when it is looked at again: one that has not come as far as its reader is another one."""
    later = Later(delivered, answer)
    with Fake([stream_info("perfd"), stream_info("perfd", last=last)], consumer=later) as fake:
        errors = fleet(fake, "watch", "calls")
    check(re.search(r"perfctl: fleet: perfd\.\S+: the answer .*: is this a NATS server with JetStream\?\n", errors), errors)
    equal(later.places, [1, place], f"where readers begin, with {delivered}")


def test_fleet_consumer_later():
    """Where a message is missing another consumer is asked for, from there on; and what is answered then is looked at, too."""
    whole = [(1, 5), (3, 7)]
    for last, delivered, place in [100, whole, 6], [100, [(1, 5), (2, 4)], 6], [100, [(2, 5)], 1], [100, [(1, 2 ** 64 - 1)], 1], [4, whole, 1]:
        check_later(last, delivered, place, b"{}")
    for answer in b'{"name":null,"stream_name":null}', b'{"stream_name":"perfd","name":"a.b"}', b'{"error":{}}', b"[" * 1000, b"":
        check_later(100, whole, 6, answer)


def test_fleet_durable_later():
    """The same of a durable consumer: what is no message of it, and no word of the server about it."""
    config = {"ack_policy": "all", "filter_subject": "perfd.*.calls"}
    about = json.dumps({"stream_name": "perfd", "name": "x", "config": config, "delivered": {}, "ack_floor": {}}).encode()
    with Fake(consumer=lambda connection, body: b"{}" if b"batch" in body else about) as fake:
        check("it does not say which one it is: is this a NATS server with JetStream?" in fleet(fake, "watch", "calls", "--durable", "x"), "why it ends")


if __name__ == "__main__":
    perfd.main(globals())
