"""Read a JavaScript error: its class and its place for a caller, all of it for the log."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from toolcrib.model.tool import Handler

ANY_CLASS = "Error"

_CLASS = re.compile(r"[A-Za-z_$][\w$]{0,99}", re.ASCII)
_FRAME = re.compile(r"^\s+at (?:.*?\()?(?:async )?(\S.*):(\d+):\d+\)?$")
# What Node puts before the error itself where code cannot be read: the place, the line, and an arrow under it.
_HEADING = re.compile(r"^((?:file://)?/.+):(\d+)$")
_OURS = tuple(f"/toolcrib/infra/sandbox/child/{name}.cjs" for name in ("handler", "modules"))
_LINE_LETTERS = 1_000
_NAMED = re.compile(r"^[\w$.]+(?: \[\w+\])?: ")


def name_class(described: Mapping[str, object]) -> str:
    """The class of an error; a name that is none is no word for a caller."""
    name = described.get("name")
    return name if isinstance(name, str) and _CLASS.fullmatch(name) else ANY_CLASS


def tell_all(described: Mapping[str, object]) -> str:
    """Everything that is known of an error, for the log: what was thrown may have no stack, or one that leaves its message out."""
    name, message, stack = (str(described.get(part) or "") for part in ("name", "message", "stack"))
    if stack and message in stack:
        return stack
    return f"{name}: {message}\n{stack}".strip(": \n")


def find_place(described: Mapping[str, object], run: Handler) -> str:
    """The file and the line of the handler where it happened, from its root; empty if that is unknown."""
    roots = {str(run.root.absolute()), str(run.root.resolve())}
    contents = run.contents
    for path, line in _places(str(described.get("stack") or "").splitlines()):
        for root in roots:
            inner = path.removeprefix(f"{root}/")
            if inner != path and inner in contents:
                return f"{inner}:{line}"
    return ""


def log_fields(described: Mapping[str, object]) -> dict[str, str | None]:
    """The fields of a log record about the error: a summary, which the command line shows in place of the stack."""
    return {"summary": sum_up(tell_all(described).splitlines())}


def sum_up(lines: Sequence[str]) -> str | None:
    """A stack in one line: what went wrong and where; None if the lines are no stack of JavaScript's."""
    first = next((number for number, line in enumerate(lines) if _FRAME.match(line[:_LINE_LETTERS])), None)
    if not first:
        return None
    said = lines[0].strip()
    if _HEADING.match(said):
        said = next((line for line in reversed(lines[:first]) if _NAMED.match(line)), said)
    place = next((f" ({path}:{line})" for path, line in _places(lines) if path.startswith("/")), "")
    return f"{said}{place}"


def _places(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The files and lines that a stack names, the innermost first, without those of the worker's own code."""
    for line in (line[:_LINE_LETTERS] for line in lines):
        found = _HEADING.match(line) or _FRAME.match(line)
        if found and not found[1].endswith(_OURS):
            yield _path_of(found[1]), found[2]


def _path_of(place: str) -> str:
    if not place.startswith("file://"):
        return place
    from urllib.parse import unquote

    return unquote(place.removeprefix("file://"))
