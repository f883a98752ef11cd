"""Bounds of a restricted form: what limits a value without looking into it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, cast

from toolcrib.pure.export import sayings
from toolcrib.pure.export.merging import LARGEST, SMALLEST, strictest

if TYPE_CHECKING:
    from toolcrib.pure.export.merging import Part
    from toolcrib.pure.export.model import Json
    from toolcrib.pure.export.writer import Writer


class Bounds:
    """Writes the keywords of one type that bound a value without looking into it."""

    NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "format")
    OF: ClassVar[dict[str, tuple[str, ...]]] = {
        "string": ("minLength", "maxLength", "pattern", "format"),
        "integer": NUMBERS,
        "number": NUMBERS,
        "array": ("minItems", "maxItems"),
        "object": ("minProperties", "maxProperties"),
    }
    KEYWORDS = frozenset(keyword for keywords in OF.values() for keyword in keywords)

    def __init__(self, writer: Writer, parts: list[Part], form: Json, notes: list[str]) -> None:
        self.writer = writer
        self.parts = parts
        self.form = form
        self.notes = notes

    def write(self, name: str) -> None:
        """Write the bounds of a type; what the target does not enforce goes into the notes."""
        present = {keyword for part in self.parts for keyword in part.schema}
        for keyword in self.OF.get(name, ()):
            if keyword not in present:
                continue
            said = strictest(self.parts, keyword)
            put = bool(said) and self._put(name, keyword, said[0][1])
            for part, value in said:
                if put and (keyword in LARGEST | SMALLEST or value == said[0][1]):
                    continue
                self.notes.append(sayings.say(keyword, said[0][1] if keyword in LARGEST | SMALLEST else value))
                self.writer.losses.add(part.place, keyword, self.writer.unenforced(self.notes[-1]))

    def _put(self, name: str, keyword: str, value: object) -> bool:
        """Put the bound into the form, if the target enforces it."""
        target = self.writer.target
        if name == "integer" and keyword.startswith("exclusive") and keyword not in target.keywords:
            return self._put_inclusive(keyword, cast("float", value))
        if keyword not in target.keywords:
            return False
        if keyword == "format" and target.formats is not None and value not in target.formats:
            return False
        if keyword == "minItems" and cast("float", value) > target.most_least_items:
            return False
        self.form[keyword] = value
        return True

    def _put_inclusive(self, keyword: str, value: float) -> bool:
        """Whole numbers above 1.5 are those from 2 on."""
        if keyword == "exclusiveMinimum" and "minimum" in self.writer.target.keywords:
            least = math.floor(value) + 1
            self.form["minimum"] = max(least, cast("float", self.form.get("minimum", least)))
            return True
        if keyword == "exclusiveMaximum" and "maximum" in self.writer.target.keywords:
            most = math.ceil(value) - 1
            self.form["maximum"] = min(most, cast("float", self.form.get("maximum", most)))
            return True
        return False
