from typing import BinaryIO, TextIO, Protocol
import io


class Codec(Protocol):
    def encode(self, data: bytes) -> bytes: ...


def thumbnail(picture: bytes, codec: Codec, out: BinaryIO) -> int:
    """Make a thumbnail."""
    return out.write(codec.encode(picture))
