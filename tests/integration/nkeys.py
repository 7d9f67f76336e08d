"""For the integration tests: keys and JWTs of NATS, as nsc(1) makes them: an operator, its accounts and their users.

    operator = nkeys.Operator(folder)
    operator.configuration()                     # of a server that trusts it
    operator.write_credentials("relay.creds")    # of a new user, who may do all in the account

Keys are Ed25519, made and used by openssl(1). Their texts are base32 of a prefix, the key and a CRC-16; a JWT is signed over what it shows.
"""
import base64
import binascii
import json
import os
import subprocess
import time

PREFIXES = {"operator": 14 << 3, "account": 0, "user": 20 << 3}
PREFIX_SEED = 18 << 3
UNLIMITED = dict.fromkeys(["subs", "data", "payload", "imports", "exports", "conn", "leaf", "mem_storage", "disk_storage", "streams", "consumer"], -1)


def encode(raw):
    return base64.b32encode(raw + binascii.crc_hqx(raw, 0).to_bytes(2, "little")).decode().rstrip("=")


def encode_json(value):
    return base64.urlsafe_b64encode(json.dumps(value, separators=(",", ":")).encode()).rstrip(b"=").decode()


class Key:
    """An Ed25519 key in a folder; kind: operator, account or user."""

    def __init__(self, folder, name, kind):
        self.file, self.kind, self.name = os.path.join(folder, name + ".ed25519"), kind, name
        self.openssl("genpkey", "-algorithm", "ed25519", "-out", self.file)
        os.chmod(self.file, 0o600)
        self.public = encode(bytes([PREFIXES[kind]]) + self.openssl("pkey", "-in", self.file, "-pubout", "-outform", "DER")[-32:])

    @staticmethod
    def openssl(*words):
        return subprocess.run(["openssl", *words], stdin=subprocess.DEVNULL, capture_output=True, check=True).stdout

    @property
    def seed(self):
        prefix = PREFIXES[self.kind]
        raw = self.openssl("pkey", "-in", self.file, "-outform", "DER")[-32:]
        return encode(bytes([PREFIX_SEED | prefix >> 5, (prefix & 31) << 3]) + raw)

    def sign(self, other, **claims):
        """The JWT of another key, or of this one."""
        nats = {"type": other.kind, "version": 2, **claims}
        body = {"jti": other.public, "iat": int(time.time()), "iss": self.public, "name": other.name, "sub": other.public, "nats": nats}
        text = encode_json({"typ": "JWT", "alg": "ed25519-nkey"}) + "." + encode_json(body)
        with open(self.file + ".text", "w", encoding="ascii") as f:
            f.write(text)
        signature = self.openssl("pkeyutl", "-sign", "-rawin", "-inkey", self.file, "-in", self.file + ".text")
        return text + "." + base64.urlsafe_b64encode(signature).rstrip(b"=").decode()


class Operator:
    """With an account for the relay, and one for the system, which JetStream needs."""

    def __init__(self, folder):
        self.folder = folder
        self.key, self.account, self.system = Key(folder, "operator", "operator"), Key(folder, "account", "account"), Key(folder, "system", "account")

    def configuration(self):
        stores = {self.account: {}, self.system: {"mem_storage": 0, "disk_storage": 0}}
        accounts = [f'{key.public}: "{self.key.sign(key, limits={**UNLIMITED, **store, "wildcards": True})}"' for key, store in stores.items()]
        return (f'operator: "{self.key.sign(self.key)}"\nsystem_account: {self.system.public}\nresolver: MEMORY\n'
                "resolver_preload {\n" + "\n".join(accounts) + "\n}\n")

    def write_credentials(self, name, account=None):
        """Of a new user of the account, or of another key that the server does not know; the path."""
        user = Key(self.folder, name, "user")
        jwt = (account or self.account).sign(user, pub={}, sub={}, subs=-1, data=-1, payload=-1)
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="ascii") as f:
            f.write(f"-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n"
                    f"-----BEGIN USER NKEY SEED-----\n{user.seed}\n------END USER NKEY SEED------\n")
        os.chmod(path, 0o600)
        return path
