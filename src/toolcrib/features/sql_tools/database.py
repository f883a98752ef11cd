"""Resolve the database of a tool: a file of the workspace, or a PostgreSQL server by its URL."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from toolcrib.features.sql_tools.statement import Dialect
from toolcrib.lib.database_url import parse_server, split_url
from toolcrib.lib.document_format import names_server
from toolcrib.model.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.lib.http_syntax import Url

MAX_DATABASE = 4_000
SLOT = re.compile(r"\$\{(secret|env):([A-Za-z_]\w*)\}")
_OTHER_SLOT = re.compile(r"\$\{[^}]*\}?")


OPEN_WORD = "holds a password that everyone can read; write ${secret:NAME} in its place"


class SlotName(NamedTuple):
    """A reference to a secret or an environment variable in the name of a database."""

    source: str
    name: str

    def __str__(self) -> str:
        return f"${{{self.source}:{self.name}}}"


def dialect_of(database: str) -> Dialect:
    """The kind of database that the text names: a URL of PostgreSQL, also in a slot, or the path of an SQLite file."""
    return Dialect.POSTGRESQL if names_server(database) else Dialect.SQLITE


def check_database(database: str) -> str:
    """Why the text cannot name a database, with the cure; empty if it can."""
    if not database.strip() or len(database) > MAX_DATABASE or "\0" in database:
        return 'names no database; write a path in the workspace, or "${secret:NAME}" for a URL of PostgreSQL'
    for found in _OTHER_SLOT.finditer(database):
        if SLOT.fullmatch(found[0]) is None:
            return f"{found[0][:40]} is not known here; write ${{secret:NAME}} or ${{env:NAME}}"
    if dialect_of(database) is Dialect.SQLITE:
        return _check_path(database)
    if SLOT.search(database):
        return OPEN_WORD if holds_password(database) else ""
    return _check_url(database)


def _check_url(url: str) -> str:
    try:
        parse_server(url)
    except ToolError as problem:
        return problem.message
    return OPEN_WORD if holds_password(url) else ""


def _check_path(path: str) -> str:
    if SLOT.search(path):
        return "a path holds no slots; write the path in the workspace"
    if "://" in path or path.startswith("file:") or path == ":memory:":
        return 'is neither a path in the workspace nor a URL that begins with "postgresql://"'
    return ""


def holds_password(database: str) -> bool:
    """Whether a password is written out in the text."""
    parts = split_url(SLOT.sub("", database))
    return parts is not None and bool(parts["password"])


def slots_in(database: str) -> list[SlotName]:
    """The slots of the text."""
    return [SlotName(*found.groups()) for found in SLOT.finditer(database)]


def written_host(database: str) -> Url | None:
    """The server that the text names, None if a slot stands for it."""
    try:
        return parse_server(fill_slots(database, str)).url
    except ToolError:
        return None


def fill_slots(database: str, lookup: Callable[[SlotName], str]) -> str:
    """The text with the values of its slots, encoded where a slot is a part of a URL."""
    whole = SLOT.fullmatch(database)
    if whole is not None:
        return lookup(SlotName(*whole.groups())).strip()
    return SLOT.sub(lambda found: quote(lookup(SlotName(*found.groups())), safe=""), database)
