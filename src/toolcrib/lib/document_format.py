"""The form of stored documents: JSON, format versions, times, file names, and the capabilities that they require.

File names are lower-case ASCII, one for each slug and version, so that they differ on every file system.
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
# In file names `_a` is an upper-case A, and `_0e9_` the character U+00E9. Two underscores may be adjacent, three never: they
# precede the hash of a shortened name.
CUT = "___"

_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII)
_OURS = re.compile(rf"{SERIES}([1-9][0-9]{{0,8}})", re.ASCII)
_PLAIN = frozenset(string.ascii_lowercase + string.digits + ".-")
_CAPITALS = frozenset(string.ascii_uppercase)
_ESCAPE = re.compile(r"_0([0-9a-f]{1,6})_|_([a-z])|([a-z0-9.-])")


def write_tool(document: Mapping[str, object]) -> bytes:
    """The bytes of a tool's document."""
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def bundle_document(bundle: Bundle) -> dict[str, object]:
    """The document of a bundle, without its times."""
    return {
        "schemaVersion": bundle.schema_version or SCHEMA_VERSION,
        "bundleID": bundle.id,
        "slug": bundle.slug,
        "displayName": bundle.display_name,
        "description": bundle.description,
        "isEnabled": bundle.enabled,
    }


def write_bundle(bundle: Bundle) -> bytes:
    """The bytes of a bundle's document with the times that are set."""
    times = {
        "createdAt": bundle.created_at,
        "modifiedAt": bundle.modified_at,
        "toggledAt": bundle.toggled_at,
        "softDeletedAt": bundle.soft_deleted_at,
    }
    return write_tool({**bundle_document(bundle), **{name: time for name, time in times.items() if time}})


def read_time(text: object) -> str | None:
    """The time in UTC with milliseconds, so that texts sort by time; None if it is not RFC 3339."""
    if not isinstance(text, str) or _RFC3339.fullmatch(text) is None:
        return None
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def is_newer(schema_version: str) -> bool:
    """Whether a later version of Toolcrib wrote the document, so that this one may read but not change it."""
    ours = _OURS.fullmatch(schema_version)
    return ours is not None and int(ours[1]) > NUMBER


def remark_on(schema_version: str) -> str:
    """A warning about the format version; empty for the current one."""
    if schema_version == SCHEMA_VERSION:
        return ""
    if is_newer(schema_version):
        return "was written by a later version of Toolcrib; what is new in it is not read"
    return f'is not known here and was read as "{SCHEMA_VERSION}"'


def to_filename(text: str) -> str:
    """The file name for a text; a name that is too long is shortened and gets a hash."""
    spelled = "".join(map(_spell, text))
    if text.startswith((".", "-")):  # such names are hidden, or parsed as options
        spelled = _number(text[0]) + spelled[1:]
    if len(spelled) <= LONGEST:
        return spelled
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_LETTERS]
    return f"{spelled[: LONGEST - HASH_LETTERS - len(CUT)]}{CUT}{digest}"


def from_filename(name: str) -> str | None:
    """The text of a file name; None if it is not one of `to_filename`, or if it was shortened."""
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
    """Whether the `database` of an SQL tool is a PostgreSQL URL, or a slot for one; otherwise it is a path."""
    return database.startswith(("postgresql://", "postgres://", "${"))


def sql_capabilities(database: str, *, write: bool) -> frozenset[str]:
    """The capabilities that an SQL tool requires: the network, or files of the workspace."""
    if names_server(database):
        return frozenset({"net.postgresql"})
    return frozenset({"fs.read", "fs.write"} if write else {"fs.read"})


def required_capabilities(document: Mapping[str, object]) -> frozenset[str]:
    """The capabilities that the tool of a document requires."""
    if document.get("type") == "http":
        return frozenset({"net.http"})
    impl = document.get("impl")
    if document.get("type") != "sql" or not isinstance(impl, dict):
        return frozenset()
    return sql_capabilities(str(impl.get("database")), write=impl.get("write") is True)
