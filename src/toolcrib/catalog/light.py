"""Rows of documents that nobody touched since the platform wrote them, without checking them all over again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.catalog.documents import DIGEST, structural_digest
from toolcrib.catalog.rows import parameters_of
from toolcrib.catalog.slots import slot_of, tool_key
from toolcrib.search.nouns import Row

if TYPE_CHECKING:
    from collections.abc import Mapping

TEXTS = ("slug", "version", "toolID", "displayName")


def light_row(data: bytes, *, slot: str, stamp: str) -> Row | None:
    """The row of a document; None for one that is in any way unusual, and is to be read as a whole.

    What carries the digest of its own structure was checked before it was written. It is checked again as soon as the tool is
    shown or called.
    """
    import orjson

    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(document, dict) or not _is_usual(document, slot):
        return None
    times = [_read_time(document, name) for name in ("createdAt", "modifiedAt")]
    if "" in times or document.get(DIGEST) != structural_digest(document):
        return None
    created_at, modified_at = times
    return Row(
        id=slot,
        bundle=slot.partition("/")[0],
        slug=document["slug"],
        version=document["version"],
        name=document["slug"],
        display_name=document["displayName"],
        description=document.get("description", ""),
        tags=tuple(document.get("tags", ())),
        parameters=tuple(parameters_of(document["argSchema"])),
        enabled=document["isEnabled"],
        created_at=created_at,
        modified_at=max(created_at, modified_at),
        key=tool_key(slot),
        stamp=stamp,
    )


def _is_usual(document: Mapping[str, object], slot: str) -> bool:
    """Whether everything that a row is made of is there, and is what it should be."""
    bundle = slot.partition("/")[0]
    tags = document.get("tags", [])
    return (
        all(isinstance(document.get(name), str) for name in TEXTS)
        and isinstance(document.get("description", ""), str)
        and isinstance(document.get("isEnabled"), bool)
        and isinstance(document.get("argSchema"), dict)
        and isinstance(tags, list)
        and all(isinstance(tag, str) for tag in tags)
        and document.get("bundleID") == bundle
        and slot_of(bundle, str(document["slug"]), str(document["version"])) == slot
    )


def _read_time(document: Mapping[str, object], name: str) -> str:
    from toolcrib.dialects.platform.times import read_time

    return read_time(document.get(name)) or ""
