"""Store what expires: confirmation tokens of calls, and results that are too large to return at once."""

from __future__ import annotations

import base64
import binascii
import functools
import os
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.model.call import Call
    from toolcrib.model.protocols import Store
    from toolcrib.model.tool import Tool


# Documents that are kept until a moment which their key begins with.

STAMP_LETTERS = 8
SWEEP_SECONDS = 60.0


class Expiring:
    """A corner of a store whose documents go when their time is over; the sweep reads keys, never documents."""

    def __init__(self, store: Callable[[], Store], prefix: str, *, clock: Callable[[], float] = time.time) -> None:
        # A function, because the store of a project is made when something is first kept in it.
        self._store = store
        self._prefix = prefix
        self._clock = clock
        self._swept = 0.0

    def create(self, expiry: float, name: str, document: bytes) -> bool:
        """Keep a document until `expiry`; False if the name is taken."""
        self._sweep()
        return self._store().create(self._key(expiry, name), document)

    def get(self, expiry: float, name: str) -> bytes | None:
        """The document, unless its time is over."""
        return None if expiry < self._clock() else self._store().get(self._key(expiry, name))

    def _key(self, expiry: float, name: str) -> str:
        return f"{self._prefix}/{stamp(expiry)}{name}"

    def _sweep(self) -> None:
        now = self._clock()
        if now - self._swept < SWEEP_SECONDS:
            return
        self._swept = now
        current = f"{self._prefix}/{stamp(now)}"
        for key in self._store().keys(f"{self._prefix}/"):
            if key < current:
                self._store().remove(key)


def stamp(moment: float) -> str:
    """A moment as letters that sort by time."""
    return f"{int(moment):0{STAMP_LETTERS}x}"


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


# Values too large for one result: stored, and read piece by piece by the caller they belong to.

SECONDS = 3600
NAME_BYTES = 16
HANDLE = re.compile(rf"[0-9a-f]{{{STAMP_LETTERS + 2 * NAME_BYTES}}}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """A part of a kept value: the text from `offset`, and where the next part begins (None at the end)."""

    text: str
    offset: int
    total: int
    next: int | None


class KeptResults:
    """Keeps the text of large values for an hour, each for its own caller."""

    def __init__(
        self, store: Callable[[], Store], *, seconds: int = SECONDS, clock: Callable[[], float] = time.time
    ) -> None:
        self._kept = Expiring(store, "results", clock=clock)
        self._seconds = seconds
        self._clock = clock

    def keep(self, text: str, caller: str) -> str:
        """Store the text; the handle cannot be guessed."""
        expiry, name = int(self._clock()) + self._seconds, os.urandom(NAME_BYTES).hex()
        self._kept.create(expiry, name, orjson.dumps({"caller": caller, "text": text}))
        return stamp(expiry) + name

    def read(self, handle: str, caller: str, *, offset: int = 0, length: int = 100_000) -> Piece:
        """A piece of what was kept; raises NOT_FOUND to anyone but its caller, and after an hour to everyone."""
        document = self._load(handle)
        if document is None or document["caller"] != caller:
            raise ToolError(Kind.NOT_FOUND, f"no result is kept under {handle[:64]!r}; call the tool again")
        if offset < 0 or length <= 0:
            raise ToolError(Kind.VALIDATION, "offset must not be negative and length must be greater than 0")
        text = document["text"]
        end = min(len(text), offset + length)
        return Piece(text=text[offset:end], offset=offset, total=len(text), next=end if end < len(text) else None)

    def _load(self, handle: str) -> dict[str, str] | None:
        if not HANDLE.fullmatch(handle):
            return None
        document = self._kept.get(int(handle[:STAMP_LETTERS], 16), handle[STAMP_LETTERS:])
        return None if document is None else orjson.loads(document)
