"""Read and write HTTP/1.1 for client and proxy: one strict grammar for heads, bodies copied by their framing."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import METHODS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    PassOn = Callable[[bytes], Awaitable[None]]

CONNECT = "CONNECT"
MAX_HEAD_BYTES = 32_768
MAX_HEADERS = 100
# The line before a chunk: its length and extensions, which mean nothing to us.
MAX_CHUNK_LINE = 4_096
READ_BYTES = 65_536
END_OF_HEAD = b"\r\n\r\n"
# Headers of one connection, not of the message; the framing is always written again.
HOP_BY_HOP = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
WITHOUT_BODY = frozenset({204, 304})
_FRAMING = frozenset({"content-length", "transfer-encoding"})

_REQUEST = re.compile(r"([A-Z]+) ([!-~]+) HTTP/1\.([01])")
_STATUS = re.compile(r"HTTP/1\.([01]) ([1-9][0-9][0-9])(?: ([\t -~\x80-\xff]*))?")
_HEADER = re.compile(r"([A-Za-z0-9!#$%&'*+.^_`|~-]+):[\t ]*([\t -~\x80-\xff]*)")
_LENGTH = re.compile(r"[0-9]{1,15}")
PLAIN_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})\r\n")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})(?:[\t ]*;[\t -~]*)?\r\n")

Headers = tuple[tuple[str, str], ...]


class Framing(NamedTuple):
    """The length of a body in bytes; None means chunked."""

    length: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestHead:
    """The head of a request as received; without framing there is no body."""

    method: str
    target: str
    minor: str
    headers: Headers
    framing: Framing | None

    @property
    def waits(self) -> bool:
        """Whether the client sends its body only after 100 Continue."""
        return any(name == "expect" for name, _ in self.headers)

    def encode(self, authority: str, target: str) -> bytes:
        """Encode the head for the server: the checked host and path, without hop-by-hop headers."""
        first = f"{self.method} {target} HTTP/1.{self.minor}\r\nHost: {authority}\r\n"
        return (first + _show(self.headers, self.framing)).encode("latin-1")


class ResponseHead(NamedTuple):
    """The head of a response; without framing the body ends with the connection."""

    status: int
    reason: str
    minor: str
    headers: Headers
    framing: Framing | None

    @property
    def keeps_open(self) -> bool:
        """Whether the server lets another request follow on the connection."""
        options = [value.lower() for name, value in self.headers if name == "connection"]
        return self.minor == "1" and not any("close" in option for option in options)

    def encode(self) -> bytes:
        """Encode the head for the client."""
        return (f"HTTP/1.1 {self.status} {self.reason}\r\n" + _show(self.headers, self.framing)).encode("latin-1")


def parse_request(head: bytes) -> RequestHead:
    """Parse the head of a request, without its empty line."""
    first, *lines = head.decode("latin-1").split("\r\n")
    parts = _REQUEST.fullmatch(first)
    if parts is None:
        raise malformed("its first line is not METHOD, target and HTTP/1.1")
    if parts[1] not in {CONNECT, *METHODS}:
        raise malformed(f"the method is none of {', '.join((CONNECT, *METHODS))}")
    headers = _parse_headers(lines)
    framing = _parse_framing(headers)
    if framing is not None and (parts[1] == CONNECT or (framing.length is None and parts[3] == "0")):
        raise malformed("it has a body where none can be")
    return RequestHead(method=parts[1], target=parts[2], minor=parts[3], headers=headers, framing=framing)


def parse_response(head: bytes) -> ResponseHead:
    """Parse the head of a response, without its empty line."""
    first, *lines = head.decode("latin-1").split("\r\n")
    parts = _STATUS.fullmatch(first)
    if parts is None:
        raise malformed("its first line is not HTTP/1.1 and status")
    headers = _parse_headers(lines)
    return ResponseHead(
        status=int(parts[2]),
        reason=parts[3] or "",
        minor=parts[1],
        headers=headers,
        framing=_parse_framing(headers),
    )


def parse_chunk_length(line: bytes) -> int:
    """The length of a chunk, from the line before it with its line end; 0 for the last."""
    parts = _CHUNK.fullmatch(line)
    if parts is None:
        raise malformed("a chunk has no length")
    return int(parts[1], 16)


def check_trailer(line: bytes) -> None:
    """Refuse a line after the last chunk that is not a header field."""
    if _HEADER.fullmatch(line.decode("latin-1")) is None:
        raise malformed("a line after its chunks is not 'name: value'")


async def read_head(reader: asyncio.StreamReader) -> bytes:
    """Read up to the empty line; raises IncompleteReadError if the stream ends before it."""
    try:
        return (await reader.readuntil(END_OF_HEAD)).removesuffix(END_OF_HEAD)
    except asyncio.LimitOverrunError:
        raise malformed(f"its head is longer than {MAX_HEAD_BYTES} bytes") from None


async def copy_body(reader: asyncio.StreamReader, framing: Framing | None, pass_on: PassOn) -> None:
    """Copy a body by its framing; without framing, to the end of the stream."""
    if framing is None:
        while data := await reader.read(READ_BYTES):
            await pass_on(data)
    elif framing.length is None:
        await _copy_chunks(reader, pass_on)
    else:
        await _copy_exactly(reader, framing.length, pass_on)


async def _copy_exactly(reader: asyncio.StreamReader, length: int, pass_on: PassOn) -> None:
    while length:
        data = await reader.read(min(length, READ_BYTES))
        if not data:
            raise asyncio.IncompleteReadError(b"", length)
        length -= len(data)
        await pass_on(data)


async def _copy_chunks(reader: asyncio.StreamReader, pass_on: PassOn) -> None:
    while size := await _read_size(reader):
        await pass_on(b"%x\r\n" % size)
        await _copy_exactly(reader, size, pass_on)
        if await reader.readexactly(2) != b"\r\n":
            raise malformed("a chunk is longer than it says")
        await pass_on(b"\r\n")
    # Trailers are dropped: they were not announced to the other side.
    for _ in range(MAX_HEADERS):
        if await _read_line(reader) == b"\r\n":
            await pass_on(b"0\r\n\r\n")
            return
    raise malformed(f"more than {MAX_HEADERS} fields follow its chunks")


async def _read_size(reader: asyncio.StreamReader) -> int:
    return parse_chunk_length(await _read_line(reader))


async def _read_line(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n")
    except asyncio.LimitOverrunError:
        raise malformed("a line between its chunks is too long") from None


def _parse_headers(lines: list[str]) -> Headers:
    if len(lines) > MAX_HEADERS:
        raise malformed(f"it has more than {MAX_HEADERS} headers")
    headers = []
    for line in lines:
        parts = _HEADER.fullmatch(line)
        if parts is None:
            raise malformed("a header is not 'name: value' on one line")
        headers.append((parts[1].lower(), parts[2].rstrip("\t ")))
    return tuple(headers)


def _parse_framing(headers: Headers) -> Framing | None:
    """The only framing that every parser would find; anything ambiguous is refused."""
    found: Framing | None = None
    for name, value in headers:
        if name not in _FRAMING:
            continue
        if found is not None:
            raise malformed("it says more than once how long its body is")
        if name == "content-length":
            if _LENGTH.fullmatch(value) is None:
                raise malformed("its Content-Length is not a number")
            found = Framing(int(value))
        elif value.lower() == "chunked":
            found = Framing(None)
        else:
            raise malformed("its Transfer-Encoding is not just 'chunked'")
    return found


def _show(headers: Headers, framing: Framing | None) -> str:
    """The forwarded headers, our own framing, and the end of the head; a connection carries one message each way."""
    named = {word.strip().lower() for name, value in headers if name == "connection" for word in value.split(",")}
    lines = [f"{name}: {value}" for name, value in headers if name not in HOP_BY_HOP | named]
    if framing is not None:
        lines.append("Transfer-Encoding: chunked" if framing.length is None else f"Content-Length: {framing.length}")
    return "\r\n".join([*lines, "Connection: close", "", ""])


class MalformedError(ToolError):
    """A message that is not HTTP/1.1, or that two parsers could read differently."""


def malformed(reason: str) -> MalformedError:
    """The error for a malformed message; its content is never quoted."""
    return MalformedError(Kind.VALIDATION, f"message refused: {reason}")
