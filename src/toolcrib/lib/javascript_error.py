"""Describe JavaScript errors: the class and the place for the caller, the whole stack for the log."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from toolcrib.model.tool import Handler

ANY_CLASS = "Error"

_CLASS = re.compile(r"[A-Za-z_$][\w$]{0,99}", re.ASCII)
_FRAME = re.compile(r"^\s+at (?:.*?\()?(?:async )?(\S.*):(\d+):\d+\)?$")
# First line of a syntax error of Node, which precedes the error itself: file and line.
_HEADING = re.compile(r"^((?:file://)?/.+):(\d+)$")
_OURS = tuple(f"/toolcrib/infra/sandbox/child/{name}.cjs" for name in ("handler", "modules"))
_LINE_LETTERS = 1_000
_NAMED = re.compile(r"^[\w$.]+(?: \[\w+\])?: ")


def name_class(described: Mapping[str, object]) -> str:
    """The class of an error; `Error` if its name is not an identifier, because the caller sees it."""
    name = described.get("name")
    return name if isinstance(name, str) and _CLASS.fullmatch(name) else ANY_CLASS


def tell_all(described: Mapping[str, object]) -> str:
    """The whole error for the log; a thrown value may have no stack, or a stack without its message."""
    name, message, stack = (str(described.get(part) or "") for part in ("name", "message", "stack"))
    if stack and message in stack:
        return stack
    return f"{name}: {message}\n{stack}".strip(": \n")


def find_place(described: Mapping[str, object], run: Handler) -> str:
    """The file and line of the handler where the error happened, relative to its root; empty if unknown."""
    roots = {str(run.root.absolute()), str(run.root.resolve())}
    contents = run.contents
    for path, line in _places(str(described.get("stack") or "").splitlines()):
        for root in roots:
            inner = path.removeprefix(f"{root}/")
            if inner != path and inner in contents:
                return f"{inner}:{line}"
    return ""


def log_fields(described: Mapping[str, object]) -> dict[str, str | None]:
    """The fields of the log record: a summary, which the command line shows instead of the stack."""
    return {"summary": sum_up(tell_all(described).splitlines())}


def sum_up(lines: Sequence[str]) -> str | None:
    """A stack in one line: the error and its place; None if the lines are not a JavaScript stack."""
    first = next((number for number, line in enumerate(lines) if _FRAME.match(line[:_LINE_LETTERS])), None)
    if not first:
        return None
    said = lines[0].strip()
    if _HEADING.match(said):
        said = next((line for line in reversed(lines[:first]) if _NAMED.match(line)), said)
    place = next((f" ({path}:{line})" for path, line in _places(lines) if path.startswith("/")), "")
    return f"{said}{place}"


def _places(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The files and lines of a stack, innermost first, without those of the worker's own code."""
    for line in (line[:_LINE_LETTERS] for line in lines):
        found = _HEADING.match(line) or _FRAME.match(line)
        if found and not found[1].endswith(_OURS):
            yield _path_of(found[1]), found[2]


def _path_of(place: str) -> str:
    if not place.startswith("file://"):
        return place
    from urllib.parse import unquote

    return unquote(place.removeprefix("file://"))
