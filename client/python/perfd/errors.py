"""What can go wrong with a daemon, each with its own class below Error."""


class Error(Exception):
    """All that this package raises of its own. What the system says of a socket is an OSError, as everywhere."""


class Refused(Error):
    """The daemon says no, and has changed nothing. `reason` is a word of PROTOCOL.md for programs, `message` is for people."""

    def __init__(self, response):
        super().__init__(f"{response.message} ({response.reason})")
        self.response = response
        self.status, self.reason, self.message = response.status, response.reason, response.message
        self.position = response.position - 1 if response.position else None  # byte of the text that the reason is about


class Disconnected(Error, ConnectionError):
    """The connection is gone, or was never there: connect anew."""


class ProtocolError(Error):
    """What came is not what PROTOCOL.md promises: nothing of this connection can be believed from here on."""


def require(promise, text):
    """ProtocolError if a promise of the protocol does not hold."""
    if not promise:
        raise ProtocolError(text)
