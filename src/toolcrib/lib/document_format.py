"""Write stored documents: their JSON, format versions, times, ids (UUID version 7) and file names.

File names are lower-case ASCII, one for each slug and version, so that no file system takes two for the same.
"""

from __future__ import annotations

import hashlib
import json
import re
import string
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.model.bundle import Bundle

SERIES = "toolcrib-"
NUMBER = 1
SCHEMA_VERSION = f"{SERIES}{NUMBER}"
LONGEST = 96
HASH_LETTERS = 32
# Before a letter `_` means the capital, before a 0 and up to the next `_` the number of any other letter. Two may meet, three
# never: they stand before the hash of what was cut short.
CUT = "___"

_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII)
_OURS = re.compile(rf"{SERIES}([1-9][0-9]{{0,8}})", re.ASCII)
_PLAIN = frozenset(string.ascii_lowercase + string.digits + ".-")
_CAPITALS = frozenset(string.ascii_uppercase)
_ESCAPE = re.compile(r"_0([0-9a-f]{1,6})_|_([a-z])|([a-z0-9.-])")
# 2026-01-01: ids that are worked out have no time of their own, and sort before every id that is made.
_EPOCH_MS = 1_767_225_600_000
_UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def write_tool(document: Mapping[str, object]) -> bytes:
    """The bytes of a tool's document."""
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def write_bundle(bundle: Bundle) -> bytes:
    """The bytes of a bundle's document; what never happened is left out."""
    times = {
        "createdAt": bundle.created_at,
        "modifiedAt": bundle.modified_at,
        "toggledAt": bundle.toggled_at,
        "softDeletedAt": bundle.soft_deleted_at,
    }
    document = {
        "schemaVersion": bundle.schema_version or SCHEMA_VERSION,
        "bundleID": bundle.id,
        "slug": bundle.slug,
        "displayName": bundle.display_name,
        "description": bundle.description,
        "isEnabled": bundle.enabled,
        **{name: time for name, time in times.items() if time},
    }
    return write_tool(document)


def read_time(text: object) -> str | None:
    """The time in UTC with milliseconds, so that the later one is the greater text; None for what is no RFC 3339."""
    if not isinstance(text, str) or _RFC3339.fullmatch(text) is None:
        return None
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def is_newer(schema_version: str) -> bool:
    """Whether a later Toolcrib wrote it, so that this one may read it and must not change it."""
    ours = _OURS.fullmatch(schema_version)
    return ours is not None and int(ours[1]) > NUMBER


def remark_on(schema_version: str) -> str:
    """What the author should know about the version; empty for our own."""
    if schema_version == SCHEMA_VERSION:
        return ""
    if is_newer(schema_version):
        return "was written by a later version of Toolcrib; what is new in it is not read"
    return f'is not known here and was read as "{SCHEMA_VERSION}"'


def to_filename(text: str) -> str:
    """The spelling on disk; what would be too long for a file system keeps its beginning and gets a hash."""
    spelled = "".join(map(_spell, text))
    if text.startswith((".", "-")):  # such names are hidden, or taken for an option
        spelled = _number(text[0]) + spelled[1:]
    if len(spelled) <= LONGEST:
        return spelled
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_LETTERS]
    return f"{spelled[: LONGEST - HASH_LETTERS - len(CUT)]}{CUT}{digest}"


def from_filename(name: str) -> str | None:
    """What was spelled so; None for what nothing is spelled as, and for what was cut short."""
    pieces = list(_ESCAPE.finditer(name))
    if "".join(piece[0] for piece in pieces) != name:
        return None
    text = "".join(_read(piece) for piece in pieces)
    return text if text and to_filename(text) == name else None


def _spell(letter: str) -> str:
    if letter in _PLAIN:
        return letter
    return f"_{letter.lower()}" if letter in _CAPITALS else _number(letter)


def _number(letter: str) -> str:
    return f"_0{ord(letter):x}_"


def _read(piece: re.Match[str]) -> str:
    if piece[1] is not None:
        number = int(piece[1], 16)
        return chr(number) if number <= sys.maxunicode else ""
    return piece[2].upper() if piece[2] is not None else piece[3]


def names_server(database: str) -> bool:
    """Whether the `database` of an SQL tool is on a PostgreSQL server; what is no URL, and no slot of one, is a path."""
    return database.startswith(("postgresql://", "postgres://", "${"))


def sql_capabilities(database: str, *, write: bool) -> frozenset[str]:
    """What an SQL tool requires: the network, or files of the workspace."""
    if names_server(database):
        return frozenset({"net.postgresql"})
    return frozenset({"fs.read", "fs.write"} if write else {"fs.read"})


def required_capabilities(document: Mapping[str, object]) -> frozenset[str]:
    """What the tool of a document requires."""
    if document.get("type") == "http":
        return frozenset({"net.http"})
    impl = document.get("impl")
    if document.get("type") != "sql" or not isinstance(impl, dict):
        return frozenset()
    return sql_capabilities(str(impl.get("database")), write=impl.get("write") is True)
