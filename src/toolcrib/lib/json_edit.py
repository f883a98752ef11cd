"""Insert a member into an object of a JSON text; comments, whitespace and everything else stay unchanged."""

from __future__ import annotations

import json
import re
from json.decoder import scanstring  # type: ignore[attr-defined]  # the typing of the standard library leaves it out
from typing import TYPE_CHECKING

from toolcrib.lib.documents import without_comments

if TYPE_CHECKING:
    from collections.abc import Iterator

BOM = "\ufeff"
INDENT = "  "
_SPACE = re.compile(r"\s*")


def add_member(text: str, within: str, name: str, value: object, *, max_bytes: int) -> str:
    """The text with `name: value` added to the object at its key `within`, which is created if it is missing.

    The text must be an object, and the value of the key an object without that name.
    """
    mark = BOM if text.startswith(BOM) else ""
    body = text.removeprefix(BOM)
    plain = without_comments(body, max_bytes=max_bytes)
    start = _skip(plain, 0)
    for key, _, at, _ in _members(plain, start):
        if key == within:
            return mark + _insert(body, plain, at, name, value)
    return mark + _insert(body, plain, start, within, {name: value})


def _insert(body: str, plain: str, at: int, name: str, value: object) -> str:
    """Add a member after the last one of the object that begins at this position."""
    members = list(_members(plain, at))
    end = _skip(plain, members[-1][3] if members else at + 1)
    line_end = "\r\n" if "\r\n" in body else "\n"
    # Comments after the last member stay beside it: the comma comes before them, the new member after.
    tail = at + 1 + len(body[at + 1 : end].rstrip())
    if line_end not in body[at:end] and (members or line_end in body):
        shown = f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}"
        shown = f" {shown}" if members else shown
    else:
        outer = _indentation(body, at)
        inner = _indentation(body, members[-1][1]) if members else outer + INDENT
        written = json.dumps({name: value}, indent=INDENT, ensure_ascii=False).split("\n")[1:-1]
        shown = line_end + line_end.join(inner + line.removeprefix(INDENT) for line in written)
        if line_end not in body[tail:end]:
            shown += line_end + outer
    comma = members[-1][3] if members else tail
    return f"{body[:comma]}{',' if members else ''}{body[comma:tail]}{shown}{body[tail:]}"


def _members(plain: str, start: int) -> Iterator[tuple[str, int, int, int]]:
    """The members of the object at a position: each key, where key and value begin, and where the value ends."""
    decoder = json.JSONDecoder()
    at = _skip(plain, start + 1)
    while plain[at] == '"':
        key, colon = scanstring(plain, at + 1)
        value = _skip(plain, _skip(plain, colon) + 1)
        _, end = decoder.raw_decode(plain, value)
        yield key, at, value, end
        at = _skip(plain, end)
        at = _skip(plain, at + 1) if plain[at] == "," else at


def _skip(plain: str, at: int) -> int:
    found = _SPACE.match(plain, at)
    return at if found is None else found.end()


def _indentation(body: str, at: int) -> str:
    """The indentation of the line of a position."""
    line = body[body.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())]
