"""Sign requests with a shared key (HMAC) over a string that the author of the tool declares.

The string and the headers are templates with their own slots, such as `${timestamp}.${body}`, which many webhooks sign.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import formatdate
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolcrib.lib.http_auth import Message

ALGORITHMS = ("sha256", "sha384", "sha512", "sha1")
ENCODINGS = ("hex", "base64", "base64url")
KEY_ENCODINGS = ("text", "hex", "base64")
TIMESTAMPS = ("unix", "unix_ms", "iso8601", "http")
SIGNATURE = "signature"

_SLOT = re.compile(r"\$(\$)?\{([^{}]*)\}?")
_HEADER = "header:"
_HASHES: Mapping[str, Callable[[bytes], bytes]] = {
    "body_sha256": lambda body: hashlib.sha256(body).digest(),
    "body_sha512": lambda body: hashlib.sha512(body).digest(),
    # For the header Content-MD5, which older APIs sign; it is not a security property by itself.
    "body_md5": lambda body: hashlib.md5(body, usedforsecurity=False).digest(),
}
_PARTS: Mapping[str, Callable[[Message], str]] = {
    "method": lambda message: message.method,
    "scheme": lambda message: message.url.scheme,
    "host": lambda message: message.url.authority,
    "url": lambda message: str(message.url),
    "target": lambda message: message.url.target,
    "path": lambda message: message.path,
    "query": lambda message: message.query,
    "sorted_query": lambda message: "&".join(sorted(filter(None, message.query.split("&")))),
}
_OF_THE_ATTEMPT = ("timestamp", "nonce", "key_id")
SLOTS = frozenset(
    {*_PARTS, *_OF_THE_ATTEMPT, "body", *_HASHES, *(f"{name}_base64" for name in _HASHES)},
)

Pieces = tuple["str | HmacSlot", ...]


@dataclass(frozen=True, slots=True)
class HmacSlot:
    """A slot of the string or of a header."""

    name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """The values that differ between attempts: the time in seconds since 1970, and a nonce."""

    now: float
    nonce: str


def read_pieces(text: str, *, with_signature: bool) -> Pieces:
    """The literal parts and slots of a text; raises ToolError for an unknown slot."""
    pieces: list[str | HmacSlot] = []
    end = 0
    for found in _SLOT.finditer(text):
        pieces.append(text[end : found.start()])
        end = found.end()
        if found[1]:
            pieces.append(found[0][1:])
            continue
        pieces.append(HmacSlot(_check_slot(found[2], found[0], with_signature=with_signature)))
    pieces.append(text[end:])
    return tuple(piece for piece in pieces if piece)


def sign_string(
    message: Message,
    attempt: Attempt,
    *,
    key: bytes,
    key_id: str,
    algorithm: str,
    string: Pieces,
    encoding: str,
    timestamp: str,
    headers: Mapping[str, Pieces],
) -> tuple[str, dict[str, str]]:
    """The signature over the string, and its headers."""
    values = {
        "timestamp": write_time(attempt.now, timestamp),
        "nonce": attempt.nonce,
        "key_id": key_id,
    }
    signed = b"".join(_write(piece, message, values) for piece in string)
    signature = _encode(hmac.digest(key, signed, algorithm), encoding)
    values[SIGNATURE] = signature
    written = {name: b"".join(_write(piece, message, values) for piece in pieces) for name, pieces in headers.items()}
    return signature, {name: value.decode() for name, value in written.items()}


def decode_key(text: str, encoding: str) -> bytes:
    """Decode the shared key; raises ValueError, which does not quote the key, if the encoding is wrong."""
    if encoding == "text":
        return text.encode()
    try:
        if encoding == "hex":
            return bytes.fromhex(text)
        padded = text.strip().rstrip("=")
        padded += "=" * (-len(padded) % 4)
        return base64.b64decode(padded.replace("-", "+").replace("_", "/"), validate=True)
    except ValueError:
        message = f"the key is not {encoding}"
        raise ValueError(message) from None


def write_time(now: float, spelling: str) -> str:
    """A time in one of the formats that APIs expect."""
    if spelling == "unix":
        return str(int(now))
    if spelling == "unix_ms":
        return str(int(now * 1000))
    if spelling == "http":
        return formatdate(now, usegmt=True)
    return datetime.fromtimestamp(int(now), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _check_slot(name: str, written: str, *, with_signature: bool) -> str:
    if written.endswith("}"):
        if name in SLOTS or (with_signature and name == SIGNATURE):
            return name
        if name.startswith(_HEADER) and name != _HEADER:
            return name
    known = sorted(SLOTS | {f"{_HEADER}NAME"} | ({SIGNATURE} if with_signature else set()))
    raise ToolError(Kind.VALIDATION, f"{written[:40]!r} is not a slot of a signature; write one of {', '.join(known)}")


def _write(piece: str | HmacSlot, message: Message, values: Mapping[str, str]) -> bytes:
    if isinstance(piece, str):
        return piece.encode()
    name = piece.name
    if name == "body":
        return message.body
    if name in values:
        return values[name].encode()
    if name in _PARTS:
        return _PARTS[name](message).encode()
    if name.startswith(_HEADER):
        return message.header(name.removeprefix(_HEADER)).encode()
    digest = _HASHES[name.removesuffix("_base64")](message.body)
    return _encode(digest, "base64" if name.endswith("_base64") else "hex").encode()


def _encode(raw: bytes, encoding: str) -> str:
    if encoding == "hex":
        return raw.hex()
    return (base64.urlsafe_b64encode(raw) if encoding == "base64url" else base64.b64encode(raw)).decode()
