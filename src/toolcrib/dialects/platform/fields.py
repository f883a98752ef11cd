"""Reading one object of a document, key by key; what is wrong is noted, and what is refused comes out as its default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from toolcrib.dialects.platform.report import Report, show
from toolcrib.model.errors import Kind, ToolError
from toolcrib.pure.documents import check_plain

if TYPE_CHECKING:
    from collections.abc import Collection
    from enum import StrEnum

    from toolcrib.dialects.script.metadata import Steps

MAX_STRANGERS = 20
MAX_ITEMS = 100

Word = TypeVar("Word", bound="StrEnum")


def open_document(document: object, place: str = "") -> Fields:
    """The keys of a document that somebody sent; refuses one that is no object, or that JSON cannot say."""
    try:
        if not isinstance(document, Mapping):
            raise ToolError(
                Kind.VALIDATION, f"{place}: must be an object; write it between {{ and }}".removeprefix(": ")
            )
        values = dict(document)
        check_plain(values, place=place or "document")
    except ToolError as error:
        raise ToolError(error.kind, error.message, details={"problems": [error.message]}) from None
    return Fields(Report(place), values)


@dataclass(frozen=True, slots=True)
class Fields:
    """An object of a document, and where in it that stands."""

    report: Report
    values: Mapping[str, object]
    at: Steps = ()

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def refuse(self, name: str, text: str) -> None:
        """Note what is wrong with a key."""
        self.report.refuse((*self.at, name), text)

    def warn(self, name: str, text: str) -> None:
        """Note what the author should know about a key."""
        self.report.warn((*self.at, name), text)

    def require(self, samples: Mapping[str, str]) -> None:
        """Refuse the absence of each of these keys; `samples` say what could stand there."""
        for name, sample in samples.items():
            if name not in self.values:
                self.report.refuse(self.at, f'{name} is missing; write "{name}": {sample}')

    def text(self, name: str, *, may_be_empty: bool = True, longest: int = 0) -> str:
        """A text, empty where there is none; `longest` bounds its letters."""
        value = self.values.get(name, "")
        if not isinstance(value, str):
            self.refuse(name, f"must be text, not {show(value)}; write it in quotes")
            return ""
        if name in self.values and not may_be_empty and not value.strip():
            self.refuse(name, "must not be empty; write what it is")
        if longest and len(value) > longest:
            self.refuse(name, f"has {len(value)} letters, the limit is {longest}; shorten it")
        return value

    def switch(self, name: str) -> bool | None:
        """A boolean; None where there is none."""
        value = self.values.get(name)
        if name in self.values and not isinstance(value, bool):
            self.refuse(name, f"must be true or false, not {show(value)}")
        return value if isinstance(value, bool) else None

    def word(self, name: str, words: type[Word], default: Word) -> Word:
        """One of the words of a closed set."""
        value = self.values.get(name, default)
        if isinstance(value, str) and value in [*words]:
            return words(value)
        choices = " or ".join(f'"{word}"' for word in words)
        self.refuse(name, f"{show(value)} is unknown; write {choices}")
        return default

    def whole(self, name: str, *, at_least: int, at_most: int, default: int) -> int:
        """A whole number between two others."""
        value = self.values.get(name, default)
        if isinstance(value, int) and not isinstance(value, bool) and at_least <= value <= at_most:
            return value
        self.refuse(name, f"must be a whole number from {at_least} to {at_most}, not {show(value)}; write {default}")
        return default

    def number(self, name: str, *, at_most: float, default: float) -> float:
        """A number that is not negative."""
        value = self.values.get(name, default)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= at_most:
            return value
        self.refuse(name, f"must be a number from 0 to {at_most:g}, not {show(value)}; write {default:g}")
        return default

    def items(self, name: str, *, at_most: int = MAX_ITEMS) -> list[object]:
        """A list, empty where there is none."""
        value = self.values.get(name, [])
        if not isinstance(value, list):
            self.refuse(name, f"must be a list, not {show(value)}; write it between [ and ]")
            return []
        if len(value) > at_most:
            self.refuse(name, f"has {len(value)} items, the limit is {at_most}; leave some out")
            return []
        return value

    def part(self, name: str) -> Fields | None:
        """An object inside this one; None where there is none."""
        if name not in self.values:
            return None
        value = self.values[name]
        if isinstance(value, dict):
            return Fields(self.report, value, (*self.at, name))
        self.refuse(name, f"must be an object, not {show(value)}; write it between {{ and }}")
        return None

    def texts(self, name: str) -> dict[str, str]:
        """An object whose values are all text, empty where there is none."""
        inner = self.part(name)
        if inner is None:
            return {}
        if len(inner.values) > MAX_ITEMS:
            self.refuse(name, f"has {len(inner.values)} keys, the limit is {MAX_ITEMS}; leave some out")
            return {}
        return {key: inner.text(key) for key in inner.values}

    def strangers(self, known: Collection[str]) -> list[tuple[str, str]]:
        """The first keys that nobody reads, each with the one that was meant where it looks like a slip of the pen."""
        unknown = [name for name in self.values if name not in known]
        if not unknown:
            return []
        from toolcrib.dialects.script.metadata import near_misses

        meant = dict(near_misses([name for name in unknown[:MAX_STRANGERS] if len(name) < 2 * MAX_STRANGERS], known))
        return [(name, meant.get(name, "")) for name in unknown]

    def warn_of_strangers(self, known: Collection[str]) -> None:
        """Warn of keys that are kept although nobody reads them."""
        for name, meant in self.strangers(known):
            self.warn(name, f"is not read; did you mean {meant}?" if meant else "is kept and not read")
