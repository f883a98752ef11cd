"""Templates of JSON documents: compiled once, rendered in one pass, so that no value is ever parsed as a template.

Syntax and escaping are separate. A syntax parses slots: `read_braces` reads `{name}` for an argument or a name of the
platform, `${NAME}` and `${NAME:-default}` for an environment variable of the host, `{{name}}` for the literal text `{name}`;
braces around anything else are literal. A place escapes a value for the text around it: `as_text` or `as_url_part`.
A string that is a single slot becomes the value itself, with its type.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from toolcrib.model.errors import Cure, Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping

    # Called with the value and the author's text before its slot; returns the escaped text.
    Place = Callable[[object, str], str]


class _Absent:
    """The type of ABSENT."""

    def __repr__(self) -> str:
        return "ABSENT"


SlotLike = TypeVar("SlotLike")

# The value of a parameter that was not given; a member of an object with this value is omitted.
ABSENT: Final = _Absent()

_BRACES = re.compile(
    r"\{\{(?P<literal>[^\W\d]\w*)\}\}"
    r"|\$\{(?P<variable>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^{}]*))?\}"
    r"|\{(?P<name>[^\W\d]\w*)\}"
)


@dataclass(frozen=True, slots=True)
class Name:
    """A slot for an argument or a name of the platform."""

    name: str


@dataclass(frozen=True, slots=True)
class Variable:
    """A slot for an environment variable of the host; the default applies if the variable is unset or empty."""

    name: str
    default: str | None = None


Slot = Name | Variable


@dataclass(frozen=True, slots=True)
class Text:
    """A string with at least one slot in it."""

    pieces: tuple[str | Slot, ...]

    @property
    def sole(self) -> Slot | None:
        """The slot, if the string is a single slot; otherwise None."""
        first = self.pieces[0]
        return first if len(self.pieces) == 1 and not isinstance(first, str) else None

    @property
    def head(self) -> str:
        """The text before the first slot."""
        return self.pieces[0] if isinstance(self.pieces[0], str) else ""

    @property
    def variables(self) -> frozenset[str]:
        """The names of its environment variables."""
        return frozenset(piece.name for piece in self.pieces if isinstance(piece, Variable))


def read_braces(string: str) -> str | Text:
    """The string itself, or a Text if it has slots."""
    pieces = split_braces(string, _BRACES, _slot)
    if all(isinstance(piece, str) for piece in pieces):
        return "".join(map(str, pieces))
    return Text(pieces)


def split_braces(
    string: str, pattern: re.Pattern[str], slot: Callable[[re.Match[str]], SlotLike]
) -> tuple[str | SlotLike, ...]:
    """The literal parts of a string, and what `slot` makes of each match between them; a `literal` match is text in braces."""
    pieces: list[str | SlotLike] = []
    literal, end = "", 0
    for found in pattern.finditer(string):
        literal += string[end : found.start()]
        end = found.end()
        if found["literal"]:
            literal += f"{{{found['literal']}}}"
            continue
        pieces += [literal] if literal else []
        pieces.append(slot(found))
        literal = ""
    literal += string[end:]
    return (*pieces, literal) if literal else tuple(pieces)


def _slot(found: re.Match[str]) -> Slot:
    return Name(found["name"]) if found["name"] else Variable(found["variable"], found["default"])


def as_text(value: object, _before: str = "") -> str:
    """A string unchanged, any other value as JSON."""
    return value if isinstance(value, str) else as_json(value)


def as_url_part(value: object, _before: str = "") -> str:
    """Percent-encoded, so that no value adds a segment to a path or a field to a query."""
    text = as_text(value)
    if text.isalnum() and text.isascii():
        return text
    from urllib.parse import quote

    return quote(text.encode("utf-8", "surrogatepass"), safe="")


def as_json_letters(value: object) -> str:
    """The text escaped as in a JSON string, without the quotes."""
    return as_json(as_text(value))[1:-1]


def as_json(value: object) -> str:
    """The value as JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Template:
    """A JSON value in which each string with slots is a Text; keys of objects have no slots."""

    document: object
    names: frozenset[str]
    variables: frozenset[str]

    def render(
        self, lookup: Callable[[str], object], variable: Callable[[str], str | None], place: Place = as_text
    ) -> object:
        """The document with every slot filled.

        `lookup` returns the value of a name, or ABSENT; `variable` returns the value of a variable, or None if it is not set.
        Both may raise ToolError.
        """
        value = _fill(self.document, _Rendering(lookup, variable, place))
        if value is ABSENT:
            raise _missing(self.document)
        return value


def compile_template(document: object, read: Callable[[str], str | Text] = read_braces) -> Template:
    """Parse the slots of every string in the document with the syntax `read`."""
    compiled = _compile(document, read)
    slots = list(_slots(compiled))
    return Template(
        document=compiled,
        names=frozenset(slot.name for slot in slots if isinstance(slot, Name)),
        variables=frozenset(slot.name for slot in slots if isinstance(slot, Variable)),
    )


def look_up_in(
    declared: Container[str], arguments: Mapping[str, object], platform: Mapping[str, object]
) -> Callable[[str], object]:
    """A lookup of names: first declared parameters, then names of the platform, then other arguments."""

    def lookup(name: str) -> object:
        if name in declared:
            return arguments.get(name, ABSENT)
        if name in platform:
            return platform[name]
        if name in arguments:
            return arguments[name]
        cure = f"declare a parameter of that name, or write {{{{{name}}}}} for the text itself"
        message = f"{{{name}}} is neither a parameter nor a name of the platform; {cure}"
        raise ToolError(Kind.VALIDATION, message, details={"slot": name})

    return lookup


@dataclass(frozen=True, slots=True)
class _Rendering:
    """The lookups and the escaping of one rendering."""

    lookup: Callable[[str], object]
    variable: Callable[[str], str | None]
    place: Place

    def value_of(self, slot: Slot) -> object:
        if isinstance(slot, Name):
            return self.lookup(slot.name)
        value = self.variable(slot.name)
        if value or slot.default is None:
            return _set_value(slot.name, value)
        return slot.default


def _set_value(name: str, value: str | None) -> str:
    if value is None:
        cure = Cure(f"set it, or write ${{{name}:-default}}", "ask the operator to set it")
        raise ToolError(Kind.VALIDATION, f"the variable {name} is not set on the host", cure=cure)
    if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
        raise ToolError(Kind.VALIDATION, f"the variable {name} holds bytes that are not UTF-8; set it to a text")
    return value


def _compile(value: object, read: Callable[[str], str | Text]) -> object:
    if isinstance(value, str):
        return read(value)
    if isinstance(value, dict):
        return {key: _compile(member, read) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_compile(item, read) for item in value]
    return value


def _slots(value: object) -> Iterator[Slot]:
    if isinstance(value, Text):
        yield from (piece for piece in value.pieces if not isinstance(piece, str))
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _slots(part)


def _fill(value: object, rendering: _Rendering) -> object:
    if isinstance(value, Text):
        return rendering.value_of(value.sole) if value.sole is not None else _fill_text(value, rendering)
    if isinstance(value, dict):
        filled = {key: _fill(member, rendering) for key, member in value.items()}
        return {key: member for key, member in filled.items() if member is not ABSENT}
    if isinstance(value, list):
        return [_present(item, _fill(item, rendering)) for item in value]
    return value


def _fill_text(text: Text, rendering: _Rendering) -> str:
    written: list[str] = []
    before = ""
    for piece in text.pieces:
        if isinstance(piece, str):
            before += piece
            written.append(piece)
        else:
            written.append(rendering.place(_present(piece, rendering.value_of(piece)), before))
    return "".join(written)


def _present(template: object, value: object) -> object:
    if value is ABSENT:
        raise _missing(template)
    return value


def _missing(template: object) -> ToolError:
    slot = template.sole if isinstance(template, Text) else template
    name = slot.name if isinstance(slot, Name) else ""
    return ToolError(Kind.VALIDATION, f"{{{name}}} has no value; give {name}, or give the parameter a default")
