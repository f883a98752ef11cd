"""Tokens that confirm one call each, once."""

from __future__ import annotations

import base64
import binascii
import functools
import os
import time
from typing import TYPE_CHECKING

import orjson

from toolcrib.infra.storage.expiring import Expiring

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.model.call import Call
    from toolcrib.model.protocols import Store
    from toolcrib.model.tool import Tool


EXPIRY_BYTES = 8
NONCE_BYTES = 12
MAC_BYTES = 32
TOKEN_BYTES = EXPIRY_BYTES + NONCE_BYTES + MAC_BYTES


class Confirmations:
    """Hands tokens out, checks them, and remembers the used ones until they expire.

    A token is bound to the tool's address and content, the arguments, the caller and its expiry.
    """

    def __init__(
        self,
        key: Callable[[], bytes],
        store: Callable[[], Store],
        *,
        seconds: float = 300,
        clock: Callable[[], float] = time.time,
    ) -> None:
        # A function, because the key of a project is made when it is first needed.
        self._key = functools.cache(key)
        self._used = Expiring(store, "confirmations", clock=clock)
        self._seconds = seconds
        self._clock = clock

    def issue(self, tool: Tool, arguments: dict[str, object], call: Call) -> tuple[str, int]:
        """A token for exactly this call, and when it expires."""
        expiry = int(self._clock() + self._seconds)
        head = expiry.to_bytes(EXPIRY_BYTES, "big") + os.urandom(NONCE_BYTES)
        token = head + self._mac(head, tool, arguments, call)
        return base64.urlsafe_b64encode(token).rstrip(b"=").decode(), expiry

    def problem_with(self, token: str, tool: Tool, arguments: dict[str, object], call: Call) -> str:
        """Why the token does not confirm this call; empty if it does. Nothing is used up."""
        raw = _decode(token)
        if raw is None:
            return "the confirmation is not one of ours"
        import hmac

        head, mac = raw[:-MAC_BYTES], raw[-MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(head, tool, arguments, call)):
            return "the confirmation was given for another tool, other arguments or another caller"
        if _expiry(raw) < self._clock():
            return "the confirmation has expired"
        if self._used.get(_expiry(raw), _name(raw)) is not None:
            return "the confirmation was used before"
        return ""

    def use(self, token: str) -> bool:
        """Use the token up; False if it was used before, in this process or another."""
        raw = _decode(token)
        return raw is not None and self._used.create(_expiry(raw), _name(raw), b"used")

    def _mac(self, head: bytes, tool: Tool, arguments: dict[str, object], call: Call) -> bytes:
        # Imported here, as the two libraries behind it take longer than most calls of a tool.
        import hmac

        bound = [
            head,
            tool.address.encode(),
            tool.content_hash.encode(),
            orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS),
            call.caller.encode("utf-8", "surrogatepass"),
        ]
        # Each part with its length in front: no two different calls can read alike.
        framed = b"".join(len(part).to_bytes(8, "big") + part for part in bound)
        return hmac.digest(self._key(), framed, "sha256")


def _decode(token: object) -> bytes | None:
    if not isinstance(token, str):
        return None
    try:
        raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        return None
    # The last letter may carry unused bits: one token has one spelling, or it could be used twice.
    canonical = base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
    return raw if len(raw) == TOKEN_BYTES and canonical == token else None


def _expiry(raw: bytes) -> int:
    return int.from_bytes(raw[:EXPIRY_BYTES], "big")


def _name(raw: bytes) -> str:
    import hashlib

    return hashlib.sha256(raw).hexdigest()
