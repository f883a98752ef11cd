"""Slots as documents of the platform write them: `${city}`, `${user.name}`, `${items[0].id}`.

A `$` that no `{` follows and braces by themselves are literal. Before a `{`, two `$` are a literal one: `$${city}` is the
text `${city}`, and `$$${price}` is a `$` with the price behind it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError
from toolcrib.pure.template import ABSENT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    # What stands in a slot; ABSENT for what may be left out and was. Raises ToolError for a name that nobody knows.
    Lookup = Callable[["Slot"], object]
    Place = Callable[[object], str]

_OPENING = re.compile(r"(\$+)\{")
_NAME = r"[^\W\d][\w-]*"
_INSIDE = re.compile(rf"({_NAME})((?:\.{_NAME}|\[\d{{1,9}}\])*)\}}")
_STEP = re.compile(rf"\.({_NAME})|\[(\d+)\]")
SHOWN = 40


@dataclass(frozen=True, slots=True)
class Slot:
    """A value by its name, and the way into it: names of members and numbers of items."""

    name: str
    steps: tuple[str | int, ...] = ()

    def __str__(self) -> str:
        steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.steps)
        return f"${{{self.name}{''.join(steps)}}}"

    def reach(self, value: object) -> object:
        """What lies at the end of the way, or ABSENT."""
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
            name = self.slot.name
            cure = f"give {name} with what is asked for in it" if self.slot.steps else f"give {name}"
            raise ToolError(Kind.VALIDATION, f"{self.slot} has no value; {cure}")
        return self.place(value)


Pieces = tuple["str | Slot", ...]
Fills = tuple["str | Fill", ...]


def read_slots(text: str) -> Pieces:
    """The literal parts of a text and its slots, in their order; neighbouring literals are one."""
    pieces: list[str | Slot] = []
    literal, end = "", 0
    for opening in _OPENING.finditer(text):
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
        pieces.append(Slot(inside[1], tuple(step[1] or int(step[2]) for step in _STEP.finditer(inside[2]))))
        literal, end = "", inside.end()
    literal += text[end:]
    return (*pieces, literal) if literal else tuple(pieces)


def put_in_place(pieces: Pieces, place: Place) -> Fills:
    """The pieces with every slot in the same kind of place."""
    return tuple(piece if isinstance(piece, str) else Fill(piece, place) for piece in pieces)


def slots_in(pieces: Iterable[str | Slot]) -> tuple[Slot, ...]:
    """The slots among the pieces."""
    return tuple(piece for piece in pieces if not isinstance(piece, str))


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


def _no_slot(text: str) -> ToolError:
    cure = "write ${name}, ${name.member} or ${name[0]}, or $${ for the text itself"
    return ToolError(Kind.VALIDATION, f"{text[:SHOWN]!r} opens no slot; {cure}")
