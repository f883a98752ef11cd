"""Texts and listings on their way between files and JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.ground.files.faults import show
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from toolcrib.ground.files.jail import Jail


def read_text(jail: Jail, path: str, limit: int) -> str:
    """The text of a file of at most `limit` bytes."""
    data = jail.read(path, limit)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"{show(path)} is not UTF-8 text (byte {error.start}); read a text file, or convert it to UTF-8"
        raise ToolError(Kind.VALIDATION, message, details={"path": path, "byte": error.start}) from None


def encode_text(path: str, content: str, limit: int) -> bytes:
    """The bytes of a content for a file, if they are at most `limit`."""
    try:
        data = content.encode("utf-8")
    except UnicodeEncodeError as error:
        message = (
            f"content for {show(path)} holds half of a surrogate pair (character {error.start}); "
            "write the whole character"
        )
        raise ToolError(Kind.VALIDATION, message, details={"character": error.start}) from None
    if len(data) > limit:
        message = f"content for {show(path)} has {len(data)} bytes, the limit is {limit} bytes; write smaller files"
        raise ToolError(Kind.LIMIT_EXCEEDED, message, details={"size": len(data), "limit": limit})
    return data


def list_items(jail: Jail, path: str, limit: int) -> list[dict[str, object]]:
    """The items of a folder as JSON, sorted by name; beyond the limit an error beside those that fit."""
    listing = jail.list_folder(path, limit)
    items: list[dict[str, object]] = [
        {"name": item.name, "type": str(item.type), "size": item.size} for item in listing.items
    ]
    if listing.complete:
        return items
    message = (
        f"{show(path)} holds more than {limit} items, these are {limit} of them; "
        "name the file you look for, or spread them over folders"
    )
    raise ToolError(Kind.LIMIT_EXCEEDED, message, details={"path": path, "limit": limit}, value=items)
