"""Issue and check confirmation tokens, each valid once and for one call."""

from __future__ import annotations

import functools
import os
import time
from typing import TYPE_CHECKING, Protocol

import orjson

from toolcrib.lib.seal import NONCE_BYTES, Seal

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.model.call import Call
    from toolcrib.model.tool import Tool


class UsedNames(Protocol):
    """Stores one-time names, such as the nonce of a confirmation; many processes may share one."""

    def use_once(self, name: str, expiry: float, now: float) -> bool:
        """Mark a name as used until `expiry`; False if it was used before, in any process."""

    def was_used(self, name: str, expiry: float) -> bool:
        """Whether the name was used."""


class Confirmations:
    """Issues tokens, checks them, and stores the used ones until they expire.

    A token is bound to the tool's address and content, the arguments, the caller and its expiry.
    """

    def __init__(
        self,
        key: Callable[[], bytes],
        used: Callable[[], UsedNames],
        *,
        seconds: float = 300,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._seal = Seal(functools.cache(key))
        # A factory, because the store of used names is created on first use.
        self._used = used
        self._seconds = seconds
        self._clock = clock

    def issue(self, tool: Tool, arguments: dict[str, object], call: Call) -> tuple[str, int]:
        """A token for exactly this call, and when it expires."""
        expiry = int(self._clock() + self._seconds)
        return self._seal.write([expiry, os.urandom(NONCE_BYTES).hex(), _digest(tool, arguments, call)]), expiry

    def problem_with(self, token: str, tool: Tool, arguments: dict[str, object], call: Call) -> str:
        """Why the token does not confirm this call; empty if it does. Does not use the token."""
        found = self._read(token)
        if found is None:
            return "the confirmation is not one of ours"
        expiry, nonce, digest = found
        if digest != _digest(tool, arguments, call):
            return "the confirmation was given for another tool, other arguments or another caller"
        if expiry < self._clock():
            return "the confirmation has expired"
        if self._used().was_used(nonce, expiry):
            return "the confirmation was used before"
        return ""

    def use(self, token: str) -> bool:
        """Use the token; False if it was used before, in any process."""
        found = self._read(token)
        return found is not None and self._used().use_once(found[1], found[0], self._clock())

    def _read(self, token: object) -> tuple[int, str, str] | None:
        """The expiry, the nonce and the digest of the call in a token; None if its seal is invalid."""
        match self._seal.read(token) if isinstance(token, str) else None:
            case [int(expiry), str(nonce), str(digest)]:
                return expiry, nonce, digest
        return None


def bound_to(tool: Tool, arguments: dict[str, object], call: Call) -> bytes:
    """The bytes that a confirmation or an approval is bound to; each part is prefixed with its length, so that they are unambiguous."""
    parts = [
        tool.address.encode(),
        tool.content_hash.encode(),
        orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS),
        call.caller.encode("utf-8", "surrogatepass"),
    ]
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def _digest(tool: Tool, arguments: dict[str, object], call: Call) -> str:
    # Imported here, because the import takes longer than most calls.
    import hashlib

    return hashlib.sha256(bound_to(tool, arguments, call)).hexdigest()
