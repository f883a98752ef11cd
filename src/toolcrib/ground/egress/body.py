"""Reading a response with a bound: counted after decompression, one layer, stopped at the limit."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Mapping

ACCEPTED_ENCODINGS = "gzip, deflate"
LONGEST_NAMED = 40

_GZIP = 16 + zlib.MAX_WBITS
_ZLIB_METHOD = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """Whose response is read, how large it may be, and whether its request may have changed something."""

    origin: str
    max_bytes: int
    has_effects: bool

    @property
    def max_encoded(self) -> int:
        """The bound before decompression: a stream that expands to nothing must end, too.

        What deflate cannot shrink it makes larger, by far less than a hundredth and a kilobyte.
        """
        return self.max_bytes + self.max_bytes // 100 + 1_000

    def failure(self, kind: Kind, reason: str, **details: object) -> ToolError:
        """The error for a response that cannot be used."""
        return ToolError(
            kind,
            f"{self.origin}: {reason}",
            retryable=kind is Kind.TRANSIENT,
            partial_side_effects=self.has_effects,
            details={"origin": self.origin, **details},
        )

    def too_large(self, size: str) -> ToolError:
        """The error for a response beyond the limit."""
        reason = f"the response has {size} bytes, and the limit is {self.max_bytes}"
        return self.failure(Kind.LIMIT_EXCEEDED, reason, limit=self.max_bytes)


async def read_body(reading: Reading, headers: Mapping[str, str], chunks: AsyncIterable[bytes]) -> bytes:
    """All of a body, or an error as soon as it is known to be too large."""
    decoder = _decoder(reading, headers.get("content-encoding", ""))
    encoded = 0
    body = bytearray()
    async for chunk in chunks:
        encoded += len(chunk)
        body += decoder.feed(chunk, reading.max_bytes + 1 - len(body))
        if len(body) > reading.max_bytes:
            raise reading.too_large(f"more than {reading.max_bytes}")
        if encoded > reading.max_encoded:
            raise reading.too_large(f"more than {reading.max_encoded} compressed")
    decoder.finish()
    return bytes(body)


class _Identity:
    """A body that is not compressed."""

    def feed(self, data: bytes, room: int) -> bytes:
        return data[:room]

    def finish(self) -> None:
        """Any end is a good end."""


class _Inflater:
    """One layer of gzip or deflate, never asked for more than there is room for."""

    def __init__(self, reading: Reading, encoding: str) -> None:
        self._reading = reading
        self._encoding = encoding
        self._stream: zlib._Decompress | None = None

    def feed(self, data: bytes, room: int) -> bytes:
        if not data:
            return b""
        if self._stream is None:
            self._stream = zlib.decompressobj(self._window(data[0]))
        try:
            decoded = self._stream.decompress(data, room)
        except zlib.error:
            raise self._reading.failure(Kind.PERMANENT, f"the response is no valid {self._encoding}") from None
        if self._stream.unused_data:
            raise self._reading.failure(Kind.PERMANENT, f"the response goes on after the end of its {self._encoding}")
        return decoded

    def finish(self) -> None:
        if self._stream is not None and not self._stream.eof:
            raise self._reading.failure(Kind.TRANSIENT, f"the response ends before its {self._encoding} does")

    def _window(self, first: int) -> int:
        if self._encoding == "gzip":
            return _GZIP
        # Some servers send deflate without the zlib header that the standard asks for.
        return zlib.MAX_WBITS if first & 0x0F == _ZLIB_METHOD else -zlib.MAX_WBITS


def _decoder(reading: Reading, encoding: str) -> _Identity | _Inflater:
    encoding = encoding.strip().lower()
    if encoding in {"", "identity"}:
        return _Identity()
    if encoding in {"gzip", "deflate"}:
        return _Inflater(reading, encoding)
    # Not cut: half of a secret that a server repeats would not be known for one.
    named = repr(encoding) if len(encoding) <= LONGEST_NAMED else "something else"
    reason = f"the response is encoded as {named}, which was not asked for ({ACCEPTED_ENCODINGS})"
    raise reading.failure(Kind.PERMANENT, reason)
