"""Read the objects of a document key by key.

Problems are collected with their places and raised together; a refused value is read as its default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from toolcrib.lib.documents import check_plain
from toolcrib.lib.names import near_misses
from toolcrib.lib.positions import show, spell
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from enum import StrEnum

    from toolcrib.lib.positions import Steps

Word = TypeVar("Word", bound="StrEnum")

MAX_TOLD = 100
MAX_STRANGERS = 20
MAX_ITEMS = 100


class Reporter(Protocol):
    """Collects problems and warnings about a document."""

    problems: list[str]

    @property
    def warnings(self) -> Sequence[str]:
        """The warnings."""

    def refuse(self, at: Steps, text: str) -> None:
        """Add a problem, which makes the document invalid."""

    def warn(self, at: Steps, text: str) -> None:
        """Add a warning."""

    def raise_problems(self) -> None:
        """Raise one ToolError with every problem."""


class Report:
    """Collects problems and warnings about a document; `line_of` is given for a document in a file."""

    def __init__(self, place: str = "", line_of: Callable[[Steps], int] | None = None) -> None:
        self._place = place
        self._line_of = line_of
        self.problems: list[str] = []
        self._warnings: list[str] = []

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings."""
        return tuple(_bounded(self._warnings))

    def refuse(self, at: Steps, text: str) -> None:
        """Add a problem, which makes the document invalid."""
        self.problems.append(self._say(at, text))

    def warn(self, at: Steps, text: str) -> None:
        """Add a warning."""
        self._warnings.append(self._say(at, text))

    def raise_problems(self) -> None:
        """Raise one ToolError with every problem on a line of its own."""
        if self.problems:
            problems = _bounded(self.problems)
            raise ToolError(Kind.VALIDATION, "\n".join(problems), details={"problems": problems})

    def _say(self, at: Steps, text: str) -> str:
        line = "" if self._line_of is None else f":{self._line_of(at)}"
        return ": ".join(word for word in (f"{self._place}{line}", spell(at), text) if word)


def _bounded(remarks: list[str]) -> list[str]:
    more = len(remarks) - MAX_TOLD
    return [*remarks[:MAX_TOLD], f"and {more} more of this kind"] if more > 0 else remarks


@dataclass(frozen=True, slots=True)
class Fields:
    """An object in a document, and its path."""

    report: Reporter
    values: Mapping[str, object]
    at: Steps = ()

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def refuse(self, name: str, text: str) -> None:
        """Add a problem with a key."""
        self.report.refuse((*self.at, name), text)

    def warn(self, name: str, text: str) -> None:
        """Add a warning about a key."""
        self.report.warn((*self.at, name), text)

    def require(self, samples: Mapping[str, str]) -> None:
        """Refuse a missing key; `samples` are example values for the messages."""
        for name, sample in samples.items():
            if name not in self.values:
                self.report.refuse(self.at, f'{name} is missing; write "{name}": {sample}')

    def text(self, name: str, *, may_be_empty: bool = True, longest: int = 0) -> str:
        """A string, empty if it is absent; `longest` limits its characters."""
        value = self.values.get(name, "")
        if not isinstance(value, str):
            self.refuse(name, f"must be text, not {show(value)}; write it in quotes")
            return ""
        if name in self.values and not may_be_empty and not value.strip():
            self.refuse(name, "must not be empty; write what it is")
        if longest and len(value) > longest:
            self.refuse(name, f"has {len(value)} characters, the limit is {longest}; shorten it")
        return value

    def switch(self, name: str) -> bool | None:
        """A boolean; None if it is absent."""
        value = self.values.get(name)
        if name in self.values and not isinstance(value, bool):
            self.refuse(name, f"must be true or false, not {show(value)}")
        return value if isinstance(value, bool) else None

    def word(self, name: str, words: Iterable[Word], default: Word) -> Word:
        """One of the members of an enum."""
        value = self.values.get(name, default)
        for word in words:
            if value == word:
                return word
        choices = " or ".join(f'"{word}"' for word in words)
        self.refuse(name, f"{show(value)} is unknown; write {choices}")
        return default

    def whole(self, name: str, *, at_least: int, at_most: int, default: int) -> int:
        """An integer within bounds."""
        value = self.values.get(name, default)
        if isinstance(value, int) and not isinstance(value, bool) and at_least <= value <= at_most:
            return value
        self.refuse(name, f"must be an integer from {at_least} to {at_most}, not {show(value)}; write {default}")
        return default

    def number(self, name: str, *, at_most: float, default: float) -> float:
        """A non-negative number."""
        value = self.values.get(name, default)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= at_most:
            return value
        self.refuse(name, f"must be a number from 0 to {at_most:g}, not {show(value)}; write {default:g}")
        return default

    def items(self, name: str, *, at_most: int = MAX_ITEMS) -> list[object]:
        """A list, empty if it is absent."""
        value = self.values.get(name, [])
        if not isinstance(value, list):
            self.refuse(name, f"must be a list, not {show(value)}; write it between [ and ]")
            return []
        if len(value) > at_most:
            self.refuse(name, f"has {len(value)} items, the limit is {at_most}; leave some out")
            return []
        return value

    def part(self, name: str) -> Fields | None:
        """A nested object; None if it is absent."""
        if name not in self.values:
            return None
        value = self.values[name]
        if isinstance(value, dict):
            return Fields(self.report, value, (*self.at, name))
        self.refuse(name, f"must be an object, not {show(value)}; write it between {{ and }}")
        return None

    def texts(self, name: str) -> dict[str, str]:
        """An object of strings, empty if it is absent."""
        inner = self.part(name)
        if inner is None:
            return {}
        if len(inner.values) > MAX_ITEMS:
            self.refuse(name, f"has {len(inner.values)} keys, the limit is {MAX_ITEMS}; leave some out")
            return {}
        return {key: inner.text(key) for key in inner.values}

    def unknown_keys(self, known: Collection[str]) -> list[tuple[str, str]]:
        """The unknown keys, each with the known key that it looks like, or an empty string."""
        unknown = [name for name in self.values if name not in known]
        if not unknown:
            return []
        meant = dict(near_misses([name for name in unknown[:MAX_STRANGERS] if len(name) < 2 * MAX_STRANGERS], known))
        return [(name, meant.get(name, "")) for name in unknown]

    def warn_of_unknown_keys(self, known: Collection[str]) -> None:
        """Warn of unknown keys, which are stored but not used."""
        for name, meant in self.unknown_keys(known):
            self.warn(name, f"is not read; did you mean {meant}?" if meant else "is kept and not read")


def open_document(document: object, place: str = "") -> Fields:
    """Open the document of a client; refuses what is not an object, or not JSON."""
    try:
        if not isinstance(document, Mapping):
            raise ToolError(
                Kind.VALIDATION, f"{place}: must be an object; write it between {{ and }}".removeprefix(": ")
            )
        values = dict(document)
        check_plain(values, place=place or "document")
    except ToolError as error:
        raise error.replace(details={"problems": [error.message]}) from None
    return Fields(Report(place), values)
