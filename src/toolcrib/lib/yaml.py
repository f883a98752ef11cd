"""Parse YAML into JSON values within limits, with the line number of every key.

Scalars are typed as in YAML 1.2: `no` and `2024-01-01` are text, `1.0` is a number, `1.0.0` is text. The library takes
long to import, so it is only imported when there is a document to parse.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolcrib.lib.documents import LARGEST_INTEGER, SMALLEST_INTEGER, decode, point_at
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Path = tuple[str | int, ...]

MAX_DEPTH = 32
MAX_ALIASES = 64
MAX_UNFOLDED = 64_000
MAX_DIGITS = 24
SHOWN = 80
FENCE = "```"
NO_BREAK_SPACE = "\xa0"

CONSTANTS: dict[str, object] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
NUMBER_STARTS = frozenset("+-.0123456789")
BASES = {"0x": 16, "0o": 8}
INTEGER = re.compile(r"[-+]?[0-9]++|0x[0-9a-fA-F]++|0o[0-7]++")
# Groups are not possessive, here and elsewhere: Python before 3.11.5 continues after a partial match of such a group.
FLOAT = re.compile(r"[-+]?(?:\.[0-9]++|[0-9]++(?:\.[0-9]*+)?)(?:[eE][-+]?[0-9]++)?")
NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
UNWRITABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """A parsed value, and the line of each part of it."""

    value: object
    lines: Mapping[Path, int]

    def line(self, path: Path = ()) -> int:
        """The line of a key or an item, or of the nearest thing around it."""
        while path not in self.lines:
            path = path[:-1]
        return self.lines[path]


def name_type(value: object) -> str:
    """The type of a value in words."""
    names = {dict: "a mapping", list: "a list", str: "text", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def read_yaml(document: str | bytes, place: str = "document") -> Document:
    """Parse a YAML text with one document, whose values must be JSON values; raises ToolError."""
    text = decode(document, place)
    if found := UNWRITABLE.search(text):
        line = text.count("\n", 0, found.start()) + 1
        column = found.start() - text.rfind("\n", 0, found.start())
        message = (
            f"holds the character U+{ord(found[0]):04X}, which YAML forbids; write it as an escape in double quotes"
        )
        raise _refusal(place, line, column, message)
    import yaml

    try:
        return _Builder(events(text), place).build()
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, text, place) from None
    except yaml.YAMLError:
        raise _refusal(place, 1, 1, "is not YAML; correct it") from None


def events(text: str) -> Iterator[Any]:
    """The events of the parser; its loader is not used, because it would build values without limits."""
    import yaml

    yield from yaml.parse(text, Loader=yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader)


def _is(event: Any, kind: str) -> bool:
    # By its name: the library is only imported when a text is parsed.
    return type(event).__name__ == kind


@dataclass(frozen=True, slots=True)
class _Anchored:
    """The value of an anchor, and the size and depth that each alias of it adds."""

    value: object
    size: int
    height: int


class _Builder:
    """Builds values from parser events, and stops at the first event that exceeds a limit."""

    def __init__(self, events: Iterator[Any], place: str) -> None:
        self._events = events
        self._place = place
        self._lines: dict[Path, int] = {(): 1}
        self._anchors: dict[str, _Anchored] = {}
        self._aliases = 0
        self._unfolded = 0
        self._size = 0

    def build(self) -> Document:
        next(self._events)
        value, event = None, next(self._events)
        if _is(event, "DocumentStartEvent"):
            value, _ = self._node(next(self._events), (), 1)
            next(self._events)
            event = next(self._events)
        if not _is(event, "StreamEndEvent"):
            raise self._refuse(event, "begins a second document; write one document in a file")
        return Document(value=value, lines=self._lines)

    def _node(self, event: Any, path: Path, depth: int) -> tuple[object, int]:
        """The value that begins with the event, and its depth."""
        if _is(event, "AliasEvent"):
            return self._alias(event, depth)
        if event.tag is not None:
            raise self._refuse(event, f"the tag {event.tag[:SHOWN]!r} is not read; remove it")
        before = self._size
        self._size += 1
        if _is(event, "ScalarEvent"):
            value, height = self._scalar(event), 0
        elif depth > MAX_DEPTH:
            raise self._refuse(event, f"nested deeper than {MAX_DEPTH} levels; make it flatter")
        elif _is(event, "MappingStartEvent"):
            value, height = self._mapping(path, depth)
        else:
            value, height = self._sequence(path, depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchored(value, self._size - before, height)
        return value, height

    def _mapping(self, path: Path, depth: int) -> tuple[dict[str, object], int]:
        found: dict[str, object] = {}
        height = 0
        while not _is(event := next(self._events), "MappingEndEvent"):
            key = self._key(event)
            if key in found:
                raise self._refuse(event, f"the key {key[:SHOWN]!r} stands twice in one mapping; remove one")
            self._lines[*path, key] = event.start_mark.line + 1
            found[key], inner = self._node(next(self._events), (*path, key), depth + 1)
            height = max(height, inner)
        return found, height + 1

    def _sequence(self, path: Path, depth: int) -> tuple[list[object], int]:
        found: list[object] = []
        height = 0
        while not _is(event := next(self._events), "SequenceEndEvent"):
            self._lines[*path, len(found)] = event.start_mark.line + 1
            value, inner = self._node(event, (*path, len(found)), depth + 1)
            found.append(value)
            height = max(height, inner)
        return found, height + 1

    def _key(self, event: Any) -> str:
        if not _is(event, "ScalarEvent"):
            raise self._refuse(event, "a key must be text; write a word before the colon")
        if event.implicit[0] and event.value.startswith(NO_BREAK_SPACE):
            raise self._refuse(event, "a no-break space cannot indent YAML; write spaces")
        if event.implicit[0] and event.value == "<<":
            raise self._refuse(event, "merge keys ('<<') are not supported; write the keys out")
        key, _ = self._node(event, (), 1)
        if not isinstance(key, str):
            raise self._refuse(event, f"the key {event.value[:SHOWN]!r} is not text; write it in quotes")
        return key

    def _alias(self, event: Any, depth: int) -> tuple[object, int]:
        anchored = self._anchors.get(event.anchor)
        if anchored is None:
            raise self._refuse(event, f"*{event.anchor[:SHOWN]} names nothing that ends before it; write the value out")
        self._aliases += 1
        self._unfolded += anchored.size
        if self._aliases > MAX_ALIASES or self._unfolded > MAX_UNFOLDED:
            raise self._refuse(event, "aliases repeat too much; write the values out")
        if depth - 1 + anchored.height > MAX_DEPTH:
            raise self._refuse(event, f"nested deeper than {MAX_DEPTH} levels; make it flatter")
        self._size += anchored.size
        return anchored.value, anchored.height

    def _scalar(self, event: Any) -> object:
        text: str = event.value
        self._size += len(text)
        # A quoted scalar is always text.
        if not event.implicit[0]:
            return text
        if text in CONSTANTS:
            return CONSTANTS[text]
        return self._number(event, text) if text[0] in NUMBER_STARTS else text

    def _number(self, event: Any, text: str) -> object:
        if INTEGER.fullmatch(text):
            number = int(text, BASES.get(text[:2], 10)) if len(text) <= MAX_DIGITS else LARGEST_INTEGER + 1
            if not SMALLEST_INTEGER <= number <= LARGEST_INTEGER:
                raise self._refuse(event, "an integer beyond 64 bit does not arrive unchanged; write it in quotes")
            return number
        if NOT_FINITE.fullmatch(text):
            raise self._refuse(event, f"{text} is not a JSON value; write a finite number or null")
        if not FLOAT.fullmatch(text):
            return text
        value = float(text)
        if math.isinf(value):
            raise self._refuse(event, f"the number {text[:40]} is too large; write a number below 1.8e308")
        return value

    def _refuse(self, event: Any, message: str) -> ToolError:
        return _refuse_at(event.start_mark, message, self._place)


# Messages of the library's two parsers for common mistakes, and their cures.
_CURES = {
    "mapping values are not allowed": (
        "a colon is not allowed here; write text with a colon in quotes, a space after the colon of a key, and each key on its own line"
    ),
    "could not find expected ':'": "is not a key with a value; write key: value, or indent it below what it belongs to",
    "did not find expected key": "does not belong here; indent it like its neighbours, and write text with quotes in others",
    "expected <block end>": "does not belong here; indent it like its neighbours, and write text with quotes in others",
}


def _syntax_error(error: Any, text: str, place: str) -> ToolError:
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return _refusal(place, 1, 1, f"{error.problem}; correct the YAML there")
    mark, message = _explain(error, text, mark, error.context_mark or mark)
    line, column = mark.line + 1, mark.column + 1
    excerpt = point_at(text.splitlines()[mark.line] if mark.line < len(text.splitlines()) else "", column)
    details = {"line": line, "column": column, "excerpt": excerpt}
    return ToolError(Kind.VALIDATION, f"{place}:{line}: {message}", details=details)


def _explain(error: Any, text: str, mark: Any, begun: Any) -> tuple[Any, str]:
    """Where the mistake is, and its cure; the parser noticed it at `mark`, in a construct that began at `begun`."""
    problem, context = str(error.problem), str(error.context)
    if _letter(text, mark) == "\t":
        return mark, "a tab cannot indent YAML; write spaces"
    if text.startswith(FENCE, mark.index):
        return mark, f"{FENCE} is a fence around YAML and none of it; remove the lines with it"
    if f"\n{FENCE}" in text:
        return mark, f"the text is Markdown, with YAML between lines of {FENCE}; write only the text between them"
    if "quoted scalar" in context and "end of stream" in problem:
        return begun, "the quote that opens here is never closed; close it"
    if "cannot start any token" in problem or "alphabetic or numeric" in problem:
        return begun, f"text cannot begin with {_letter(text, begun)!r}; write it in quotes"
    cure = next((cure for words, cure in _CURES.items() if words in problem), f"{problem}; correct the YAML there")
    return begun if "simple key" in context else mark, cure


def _letter(text: str, mark: Any) -> str:
    return text[mark.index : mark.index + 1]


def _refuse_at(mark: Any, message: str, place: str) -> ToolError:
    return _refusal(place, mark.line + 1, mark.column + 1, message)


def _refusal(place: str, line: int, column: int, message: str) -> ToolError:
    return ToolError(Kind.VALIDATION, f"{place}:{line}: {message}", details={"line": line, "column": column})
