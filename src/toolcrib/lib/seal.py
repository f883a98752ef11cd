"""Sign short documents with an HMAC key of the project, and verify them."""

from __future__ import annotations

import base64
import binascii
import os
from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from collections.abc import Callable

MAC_BYTES = 32
NONCE_BYTES = 12
MAX_LETTERS = 4_096


class Seal:
    """Signs short documents for one purpose with a key of the project."""

    def __init__(self, key: Callable[[], bytes]) -> None:
        # A factory, because the key of a project is created on first use.
        self._key = key

    def write(self, document: list[object]) -> str:
        """The document with its signature, in characters that are allowed in a header."""
        payload = orjson.dumps(document)
        return _base64url(payload + self._sign(payload))

    def read(self, text: str) -> list[object] | None:
        """The document; None if the signature is wrong, or if the text is not spelled as it was written."""
        if not 0 < len(text) <= MAX_LETTERS or not text.isascii():
            return None
        try:
            raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except (ValueError, binascii.Error):
            return None
        payload, mac = raw[:-MAC_BYTES], raw[-MAC_BYTES:]
        import hmac

        # The last character may carry unused bits. Only one spelling is accepted, or a document could be used twice.
        if not payload or not hmac.compare_digest(mac, self._sign(payload)) or _base64url(raw) != text:
            return None
        document = orjson.loads(payload)
        return document if isinstance(document, list) else None

    def _sign(self, payload: bytes) -> bytes:
        # Imported here, because OpenSSL takes longer to load than the first answer may.
        import hmac

        return hmac.digest(self._key(), payload, "sha256")


def _base64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def new_nonce() -> str:
    """A random identifier that cannot be guessed."""
    return _base64url(os.urandom(NONCE_BYTES))
