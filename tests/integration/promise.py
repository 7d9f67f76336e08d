"""What a client can verify on its way through a stream."""


class Broken(Exception):
    """A promise of the protocol does not hold."""


def require(promise, text):
    if not promise:
        raise Broken(text)
