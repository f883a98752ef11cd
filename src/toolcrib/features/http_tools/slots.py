"""Read the slots of a text, and write values in their place.

| slot | in documents of bundles | in scripts |
|---|---|---|
| `${arg:city}`, `${arg:user.name}`, `${arg:items[0].id}` | an argument | an argument |
| `${secret:NAME}` | a secret | a secret that was granted to the tool |
| `${env:NAME}`, `${env:NAME:-default}` | a variable of the host that was granted to the tool | the same |
| `${platform:request_id}` | a name of the platform | a name of the platform |
| `${answer:order.id}` | the answer of an earlier request | the same |
| `${city}`, `${order.id}` | an answer, parameter, name of the platform, secret or further argument | |
| `${NAME}`, `${NAME:-default}` | | a variable of the host or secret that was granted |
| `{city}` | the text itself | a parameter, name of the platform or further argument |

In a document a `$` that no `{` follows and braces by themselves are literal. Before a `{`, two `$` are a literal one:
`$${city}` is the text `${city}`, and `$$${price}` is a `$` followed by the price. In a script `{{city}}` is the text
`{city}`, and braces around anything else are literal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from toolcrib.lib.templates import ABSENT, split_braces
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Spelling

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    # What stands in a slot; ABSENT for what may be left out and was. Raises ToolError for an unknown name.
    Lookup = Callable[["Slot"], object]
    Place = Callable[[object], str]
    Read = Callable[[str], "Pieces"]

SHOWN = 40
Pieces = tuple["str | Slot", ...]
Fills = tuple["str | Fill", ...]

_NAME = r"[^\W\d][\w-]*"
_WAY = rf"((?:\.{_NAME}|\[\d{{1,9}}\])*)"
_EXPLICIT = rf"(?:(arg|secret|platform|answer):({_NAME}){_WAY}|env:([A-Za-z_]\w*)(?::-([^{{}}]*))?)\}}"
_OPENING = re.compile(r"(\$+)\{")
_INSIDE = re.compile(rf"{_EXPLICIT}|({_NAME}){_WAY}\}}")
_STEP = re.compile(rf"\.({_NAME})|\[(\d+)\]")
_BRACES = re.compile(
    r"\{\{(?P<literal>[^\W\d]\w*)\}\}"
    r"|\$\{(?P<variable>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^{}]*))?\}"
    r"|\{(?P<name>[^\W\d]\w*)\}"
    r"|\$\{(?P<explicit>(?:arg|secret|platform|answer|env):[^{}]*\})"
)


class SlotSource(StrEnum):
    """Where the value of a slot comes from; the first five are written out, the others are bare names."""

    ARGUMENT = "arg"
    SECRET = "secret"  # noqa: S105 - the word itself
    VARIABLE = "env"
    PLATFORM = "platform"
    ANSWER = "answer"
    ANY = "any"  # `${city}` of a document
    NAME = "name"  # `{city}` of a script
    GRANTED = "granted"  # `${NAME}` of a script


@dataclass(frozen=True, slots=True)
class Slot:
    """A reference to a value: its name, and the path into it, of member names and item numbers.

    `written` is how its author wrote it; `default` counts where a variable is not set.
    """

    name: str
    steps: tuple[str | int, ...] = ()
    source: SlotSource = SlotSource.ANY
    default: str | None = None
    written: str = field(default="", compare=False)

    def __str__(self) -> str:
        return self.written or f"${{{self.name}}}"

    def reach(self, value: object) -> object:
        """The value at the end of the path, or ABSENT."""
        for step in self.steps:
            if isinstance(step, str):
                value = value.get(step, ABSENT) if isinstance(value, dict) else ABSENT
            else:
                value = value[step] if isinstance(value, list) and step < len(value) else ABSENT
        return value


@dataclass(frozen=True, slots=True)
class Fill:
    """A slot together with how a value is written where it stands."""

    slot: Slot
    place: Place

    def write(self, lookup: Lookup) -> str:
        """What stands in the slot, as it is written there; refuses what was left out."""
        value = lookup(self.slot)
        if value is ABSENT:
            raise no_value(self.slot)
        return self.place(value)


def no_value(slot: Slot) -> ToolError:
    """The error for a slot whose value was left out."""
    name = slot.name
    cure = (
        f"give {name} with what is asked for in it" if slot.steps else f"give {name}, or give the parameter a default"
    )
    return ToolError(Kind.VALIDATION, f"{slot} has no value; {cure}")


def reader_of(spelling: Spelling) -> Read:
    """What reads the slots of a text in this spelling."""
    return read_slots if spelling is Spelling.DOLLARS else read_braces


def read_slots(text: str) -> Pieces:
    """The literal parts of a document's text and its slots, in their order; neighbouring literals are one."""
    pieces: list[str | Slot] = []
    literal, end = "", 0
    for opening in _OPENING.finditer(text):
        if opening.start() < end:
            continue  # inside the default of a variable
        dollars = len(opening[1])
        literal += text[end : opening.start()] + "$" * (dollars // 2)
        end = opening.end()
        if dollars % 2 == 0:
            literal += "{"
            continue
        inside = _INSIDE.match(text, end)
        if inside is None:
            raise _no_slot(text[end - 2 :])
        pieces += [literal] if literal else []
        pieces.append(_slot(inside, text[end - 2 : inside.end()]))
        literal, end = "", inside.end()
    literal += text[end:]
    return (*pieces, literal) if literal else tuple(pieces)


def read_braces(text: str) -> Pieces:
    """The literal parts of a script's text and its slots."""
    return split_braces(text, _BRACES, _slot_of_script)


def put_in_place(pieces: Pieces, place: Place) -> Fills:
    """The pieces with every slot in the same kind of place."""
    return tuple(piece if isinstance(piece, str) else Fill(piece, place) for piece in pieces)


def slots_in(pieces: Iterable[str | Slot]) -> tuple[Slot, ...]:
    """The slots among the pieces."""
    return tuple(piece for piece in pieces if not isinstance(piece, str))


def sole_slot(pieces: Pieces) -> Slot | None:
    """The slot that is all there is, or None."""
    return pieces[0] if len(pieces) == 1 and isinstance(pieces[0], Slot) else None


def write(fills: Fills, lookup: Lookup) -> str:
    """The text with every slot filled."""
    return "".join([piece if isinstance(piece, str) else piece.write(lookup) for piece in fills])


def write_if_given(fills: Fills, lookup: Lookup) -> str:
    """The text, or an empty one if what one of its slots asks for was left out."""
    written: list[str] = []
    for piece in fills:
        if isinstance(piece, str):
            written.append(piece)
            continue
        value = lookup(piece.slot)
        if value is ABSENT or value is None:
            return ""
        written.append(piece.place(value))
    return "".join(written)


def _slot(inside: re.Match[str], written: str) -> Slot:
    """The slot that begins with `${`."""
    kind, explicit, way, variable, default, bare, bare_way = inside.groups()
    if variable:
        return Slot(variable, (), SlotSource.VARIABLE, default, written)
    name, source = (explicit, SlotSource(kind)) if kind else (bare, SlotSource.ANY)
    steps = tuple(step[1] or int(step[2]) for step in _STEP.finditer(way or bare_way or ""))
    return Slot(name, steps, source, None, written)


def _slot_of_script(found: re.Match[str]) -> Slot:
    if found["name"]:
        return Slot(found["name"], (), SlotSource.NAME, None, found[0])
    if found["variable"]:
        return Slot(found["variable"], (), SlotSource.GRANTED, found["default"], found[0])
    inside = _INSIDE.fullmatch(found["explicit"])
    if inside is None:
        raise _no_slot(found[0])
    return _slot(inside, found[0])


def _no_slot(text: str) -> ToolError:
    cure = "write ${name}, ${name.member} or ${name[0]}, or $${ for the text itself"
    return ToolError(Kind.VALIDATION, f"{text[:SHOWN]!r} opens no slot; {cure}")
