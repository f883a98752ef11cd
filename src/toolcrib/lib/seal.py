"""Sign short documents, so that only this project can have written them."""

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
        # A function, because the key of a project is made when it is first needed.
        self._key = key

    def write(self, document: list[object]) -> str:
        """The document with its signature, in letters that a header may hold."""
        payload = orjson.dumps(document)
        return _letters(payload + self._sign(payload))

    def read(self, text: str) -> list[object] | None:
        """The document; None for a text that was not signed here, or that is not spelled as it was."""
        if not 0 < len(text) <= MAX_LETTERS or not text.isascii():
            return None
        try:
            raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except (ValueError, binascii.Error):
            return None
        payload, mac = raw[:-MAC_BYTES], raw[-MAC_BYTES:]
        import hmac

        # The last letter may carry unused bits: one document has one spelling, or it could be used twice.
        if not payload or not hmac.compare_digest(mac, self._sign(payload)) or _letters(raw) != text:
            return None
        document = orjson.loads(payload)
        return document if isinstance(document, list) else None

    def _sign(self, payload: bytes) -> bytes:
        # Imported here, as the libraries behind it take longer than the first answer may.
        import hmac

        return hmac.digest(self._key(), payload, "sha256")


def _letters(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def new_nonce() -> str:
    """A name that cannot be guessed."""
    return _letters(os.urandom(NONCE_BYTES))
