"""Tokens that say where a listing goes on: signed, and good for the one query that they were made for."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import zlib
from functools import cached_property
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_TOKEN = 12_000
SIGNATURE_BYTES = 16
# The key signs other things too; what was signed as one of them is no token of a page.
_PURPOSE = b"page token\0"


class Cursors:
    """Writes and reads tokens. A query is whatever says which listing it is, and a position whatever JSON can say."""

    def __init__(self, key: Callable[[], bytes]) -> None:
        self._load_key = key

    def write(self, query: object, position: object) -> str:
        """The token that asks for what comes behind the position."""
        packed = zlib.compress(_to_bytes(position), 9)
        return base64.urlsafe_b64encode(self._sign(query, packed) + packed).rstrip(b"=").decode()

    def read(self, query: object, token: str) -> object:
        """The position; refuses what was not written for this very query."""
        signed = _decode(token)
        signature, packed = signed[:SIGNATURE_BYTES], signed[SIGNATURE_BYTES:]
        if not hmac.compare_digest(signature, self._sign(query, packed)):
            raise ToolError(
                Kind.VALIDATION,
                "the page token does not belong to this query; ask for the first page again, without a token",
            )
        return json.loads(zlib.decompress(packed))

    @cached_property
    def _key(self) -> bytes:
        return self._load_key()

    def _sign(self, query: object, packed: bytes) -> bytes:
        query_digest = hashlib.sha256(_to_bytes(query)).digest()
        return hmac.digest(self._key, _PURPOSE + query_digest + packed, "sha256")[:SIGNATURE_BYTES]


def _to_bytes(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _decode(token: str) -> bytes:
    """The bytes of a token; of what is none, bytes that no signature fits."""
    if len(token) > MAX_TOKEN or not token.isascii():
        return b""
    try:
        signed = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except (ValueError, binascii.Error):
        return b""
    # Several spellings lead to the same bytes; one is a token.
    return signed if base64.urlsafe_b64encode(signed).rstrip(b"=").decode() == token else b""
