"""Telling whether a bundle or a tool is still the one that a client has read."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from toolcrib.model.bundle import Bundle
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from toolcrib.model.bundle import Kept

DIGITS = 24


def etag_of(kept: Bundle | Kept) -> str:
    """The entity tag, with its quotes: another one whenever what is written down is another, or whether it can be used."""
    facts = repr(kept) if isinstance(kept, Bundle) else f"{kept.id} {kept.stamp} {kept.reason}"
    return f'"{hashlib.sha256(facts.encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]}"'


def check_match(if_match: str, there: Bundle | Kept | None) -> None:
    """Refuse to change what is not what the client has read; without a tag nothing is refused."""
    etag = "" if there is None else etag_of(there)
    if if_match in ("", etag):
        return
    what = "is not there" if there is None else "was changed meanwhile"
    raise ToolError(Kind.CONFLICT, f"what you want to change {what}; read it again", details={"etag": etag})
