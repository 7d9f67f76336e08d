"""For the integration tests: zstd by its C library, which is there because perfd's programs are linked with it, and a client by TLS that
reads what a relay compresses."""
import ctypes

from relay import Remote

ALPN = ("perfd/1+zstd", "perfd/1")
MAGIC = b"\x28\xb5\x2f\xfd"
FLUSH, END = 1, 2
LEVEL, WINDOW_LOG = 100, 101  # ZSTD_c_compressionLevel, ZSTD_c_windowLog

library = ctypes.CDLL("libzstd.so.1")
for function in "ZSTD_createCCtx", "ZSTD_createDCtx":
    getattr(library, function).restype = ctypes.c_void_p
for function in "ZSTD_compressStream2", "ZSTD_decompressStream", "ZSTD_freeCCtx", "ZSTD_freeDCtx", "ZSTD_CCtx_setParameter":
    getattr(library, function).restype = ctypes.c_size_t


class Buffer(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_void_p), ("size", ctypes.c_size_t), ("pos", ctypes.c_size_t)]


def buffer_of(string, size):
    return Buffer(ctypes.cast(string, ctypes.c_void_p), size, 0)


def tested(code):
    if library.ZSTD_isError(ctypes.c_size_t(code)):
        raise ValueError(f"zstd says {code - (1 << 64)}")
    return code


def pack(pieces, window_log=16, is_ended=True):
    """One stream, flushed behind each piece."""
    context = ctypes.c_void_p(library.ZSTD_createCCtx())
    tested(library.ZSTD_CCtx_setParameter(context, LEVEL, 1))
    tested(library.ZSTD_CCtx_setParameter(context, WINDOW_LOG, window_log))
    size = 2 * sum(map(len, pieces)) + 4096
    place = ctypes.create_string_buffer(size)
    out = buffer_of(place, size)
    for i, piece in enumerate(pieces):
        string = ctypes.create_string_buffer(piece, len(piece))
        part = buffer_of(string, len(piece))
        last = is_ended and i == len(pieces) - 1
        while tested(library.ZSTD_compressStream2(context, ctypes.byref(out), ctypes.byref(part), END if last else FLUSH)):
            pass
    library.ZSTD_freeCCtx(context)
    return place.raw[:out.pos]


class Unpacker:
    """bytes in, what they say out; .ended: the stream of zstd has."""

    def __init__(self):
        self.context, self.ended = ctypes.c_void_p(library.ZSTD_createDCtx()), False
        self.place = ctypes.create_string_buffer(1 << 18)

    def take(self, packed):
        string = ctypes.create_string_buffer(packed, len(packed))
        part, result, is_full = buffer_of(string, len(packed)), b"", True
        while part.pos < part.size or is_full:
            if self.ended:
                raise ValueError("something follows the end of the stream of zstd")
            out = buffer_of(self.place, len(self.place))
            self.ended = tested(library.ZSTD_decompressStream(self.context, ctypes.byref(out), ctypes.byref(part))) == 0
            result += ctypes.string_at(self.place, out.pos)
            is_full = out.pos == out.size
        return result

    def __del__(self):
        library.ZSTD_freeDCtx(self.context)


class CompressedRemote(Remote):
    """A client that asks for compression and gets it; .n_packed and .n_bytes are what came, before and after."""

    def __init__(self, sock):
        self.unpacker, self.first, self.n_packed, self.n_bytes = Unpacker(), b"", 0, 0
        super().__init__(sock, program="test")

    def receive_bytes(self, deadline=None):
        while True:
            packed = super().receive_bytes(deadline)
            self.first = (self.first + packed)[:4]
            self.n_packed += len(packed)
            got = self.unpacker.take(packed) if packed else b""
            self.n_bytes += len(got)
            if got or not packed:
                return got


def client(relay, name="client", **options):
    return CompressedRemote(relay.connect(name, alpn=ALPN, **options))
