"""For the integration tests: certificates of a CA of one's own, made by openssl(1), also such as nobody should accept.

    ca = certificates.make(folder, server="localhost", client="collector-1")   # ca.crt server.crt server.key client.crt client.key
    ca.issue("stranger", begin=-2, end=-1)                                     # expired since yesterday
    ca.revoke("client")                                                        # and ca.crl says so

All paths are folder/NAME.crt and folder/NAME.key; keys are for their owner only.
"""
import ipaddress
import os
import subprocess
import time

DAY = 86400

CONFIGURATION = """[ca]
default_ca = here
[here]
dir = {folder}
database = $dir/{name}.index
serial = $dir/{name}.serial
certificate = $dir/{name}.crt
private_key = $dir/{name}.key
new_certs_dir = $dir
default_md = sha256
policy = any
default_crl_days = 30
unique_subject = no
[any]
commonName = supplied
"""


def is_address(name):
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def alternative(name):
    """As a subjectAltName has it: an IP address, or what already has a kind ("URI:...", "email:..."), or a DNS name."""
    if is_address(name):
        return f"IP:{name}"
    return name if name.startswith(("DNS:", "IP:", "URI:", "email:")) else f"DNS:{name}"


def utc(days):
    """The time so many days from now, as `openssl ca` has it."""
    return time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + days * DAY))


class Authority:
    """A CA in a folder: NAME.crt, NAME.key, and NAME.crl once it was asked for."""

    def __init__(self, folder, name="ca", subject="a CA of tests"):
        self.folder, self.name = folder, name
        self.write(name + ".cnf", CONFIGURATION.format(folder=folder, name=name))
        self.write(name + ".index", "")
        self.write(name + ".serial", "1000\n")
        self.make_key(name)
        self.openssl("req", "-new", "-x509", "-key", self.at(name + ".key"), "-out", self.at(name + ".crt"), "-days", "30",
                     "-subj", f"/CN={subject}", "-addext", "keyUsage=critical,keyCertSign,cRLSign")

    def at(self, file):
        return os.path.join(self.folder, file)

    def write(self, file, text):
        with open(self.at(file), "w", encoding="ascii") as f:
            f.write(text)

    def openssl(self, *words):
        done = subprocess.run(["openssl", *words], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            raise AssertionError(f"openssl {' '.join(words)}: {done.stdout}")
        return done.stdout

    def make_key(self, name):
        self.openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", self.at(name + ".key"))
        os.chmod(self.at(name + ".key"), 0o600)

    def issue(self, name, common_name=None, alternatives=(), usage="clientAuth", begin=-1, end=30):
        """NAME.crt and NAME.key: common_name is NAME if it is not given; begin and end are days from now."""
        self.make_key(name)
        self.openssl("req", "-new", "-key", self.at(name + ".key"), "-out", self.at(name + ".csr"), "-subj",
                     f"/CN={common_name or name}")
        extensions = f"basicConstraints = critical,CA:FALSE\nextendedKeyUsage = {usage}\n"
        if alternatives:
            extensions += f"subjectAltName = {','.join(alternative(one) for one in alternatives)}\n"
        self.write(name + ".ext", extensions)
        self.openssl("ca", "-batch", "-notext", "-config", self.at(self.name + ".cnf"), "-in", self.at(name + ".csr"), "-out",
                     self.at(name + ".crt"), "-extfile", self.at(name + ".ext"), "-startdate", utc(begin), "-enddate", utc(end))
        return self.at(name + ".crt"), self.at(name + ".key")

    def write_crl(self):
        """NAME.crl, with what was revoked so far."""
        self.openssl("ca", "-config", self.at(self.name + ".cnf"), "-gencrl", "-out", self.at(self.name + ".crl"))
        return self.at(self.name + ".crl")

    def revoke(self, name):
        self.openssl("ca", "-config", self.at(self.name + ".cnf"), "-revoke", self.at(name + ".crt"))
        return self.write_crl()


def make(folder, server="localhost", client="client", *, server_options=None, client_options=None):
    """A CA with a server and a client: ca.crt ca.key ca.crl server.crt server.key client.crt client.key.

    server: its name or address, or a list of them, all in its subjectAltName. client: its common name. The options are those of
    Authority.issue(): {"begin": -2, "end": -1} for one that has expired, {"begin": 1} for one that is not yet valid.
    """
    names = [server] if isinstance(server, str) else list(server)
    ca = Authority(folder)
    ca.issue("server", **{"common_name": names[0], "alternatives": names, "usage": "serverAuth", **(server_options or {})})
    ca.issue("client", **{"common_name": client, **(client_options or {})})
    ca.write_crl()
    return ca
