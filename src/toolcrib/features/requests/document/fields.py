"""The values of a mapping, taken out one by one: what is wrong with one of them is noted, and reading goes on."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.lib.names import did_you_mean
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    Steps = tuple[str | int, ...]
    Remark = tuple[int, str]


# MERGED toolcrib.pure.requests.report

# Everything that is to be said about one request, told at once and each with its line.

SHOWN = 80
MAX_TOLD = 100


class Report:
    """Collects what is to be said about a document; `line_of` knows where each part of it stands."""

    def __init__(self, place: str, line_of: Callable[[Steps], int]) -> None:
        self.place = place
        self._line_of = line_of
        self._problems: list[Remark] = []
        self._warnings: list[Remark] = []

    def refuse(self, at: Steps, text: str, line: int = 0) -> None:
        """Note what keeps the request from being taken; `line` is where that stands, if not where the field begins."""
        self._problems.append((line or self._line_of(at), self._say(at, text, line)))

    def warn(self, at: Steps, text: str, line: int = 0) -> None:
        """Note what its author should know."""
        self._warnings.append((line or self._line_of(at), self._say(at, text, line)))

    @property
    def refused(self) -> int:
        """How much was refused so far."""
        return len(self._problems)

    def finish(self, *, strict: bool) -> tuple[str, ...]:
        """The warnings; raises one ToolError that tells every problem, in strict reading the warnings among them."""
        problems = [*self._problems, *(self._warnings if strict else ())]
        if problems:
            raise refusal(_told(problems), min(line for line, _ in problems))
        return tuple(_told(self._warnings))

    def _say(self, at: Steps, text: str, line: int) -> str:
        # The root is in every field's way.
        place = f"{self.place}:{line or self._line_of(at)}"
        return _printable(f"{place}: {_spell(at[1:])}: {text}" if at[1:] else f"{place}: {text}")


def refusal(problems: list[str], line: int, column: int = 1) -> ToolError:
    """The one error for everything that is wrong with a request."""
    details = {"problems": problems, "line": line, "column": column}
    return ToolError(Kind.VALIDATION, "\n".join(problems), details=details)


def show(value: object) -> str:
    """A value as a message can quote it, in ASCII so that nothing hides in it."""
    text = json.dumps(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _spell(at: Steps) -> str:
    """The way to a field as people write it: `inputs[1].type`."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step[:SHOWN]}" for step in at)
    return "".join(steps).removeprefix(".")


def _printable(text: str) -> str:
    """The text on one line, without letters that hide or turn what is shown."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def _told(remarks: list[Remark]) -> list[str]:
    told = [text for _, text in sorted(remarks, key=lambda remark: remark[0])]
    more = len(told) - MAX_TOLD
    return [*told[:MAX_TOLD], f"and {more} more of this kind"] if more > 0 else told


MAX_GUESSES = 20
MAX_NAME = 64
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f]")
# What people do not see and models read: marks that turn the direction of writing, letters without width, tags.
HIDDEN = re.compile(
    "[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ue000-\uf8ff"
    "\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
)


@dataclass(frozen=True, slots=True)
class Fields:
    """A mapping of a document, and where in it that stands."""

    report: Report
    values: Mapping[str, object]
    at: Steps

    def __contains__(self, name: str) -> bool:
        """Whether there is a value; null is none."""
        return self.values.get(name) is not None

    def refuse(self, name: str, text: str) -> None:
        """Note what is wrong with a key."""
        self.report.refuse((*self.at, name), text)

    def warn(self, name: str, text: str) -> None:
        """Note what the author should know about a key."""
        self.report.warn((*self.at, name), text)

    def required_text(self, name: str, sample: str, longest: int) -> str:
        """A text that has to be there, empty where it is refused; `sample` could stand in its place."""
        if name not in self:
            self.refuse(name, f"is missing; write {name}: {sample}")
            return ""
        value = self.values[name]
        if isinstance(value, str) and not value.strip():
            self.refuse(name, f"must not be empty; write {name}: {sample}")
            return ""
        return self.text(name, longest)

    def text(self, name: str, longest: int) -> str:
        """A text, empty where there is none or it is refused."""
        if name not in self:
            self._warn_of_null(name)
            return ""
        value = self.values[name]
        if not isinstance(value, str):
            self.refuse(name, f"must be text, not {show(value)}; write it in quotes")
            return ""
        return checked_text(self.report, (*self.at, name), value, longest)

    def switch(self, name: str) -> bool | None:
        """A boolean; None where there is none."""
        value = self.values.get(name)
        if name in self and not isinstance(value, bool):
            self.refuse(name, f"must be true or false, not {show(value)}")
        return value if isinstance(value, bool) else None

    def items(self, name: str, at_most: int) -> list[tuple[Steps, object]]:
        """The items of a list, each with where it stands; none where there is none or it is refused."""
        if name not in self:
            self._warn_of_null(name)
            return []
        value = self.values[name]
        if not isinstance(value, list):
            self.refuse(name, f"must be a list, not {name_type(value)}; write one item per line: - …")
            return []
        if len(value) > at_most:
            self.refuse(name, f"has {len(value)} items, the limit is {at_most}; leave some out")
            return []
        return [((*self.at, name, index), item) for index, item in enumerate(value)]

    def entries(self, name: str, at_most: int, sample: str) -> list[Fields]:
        """The items of a list of mappings; `sample` is how one begins."""
        found = []
        for at, item in self.items(name, at_most):
            if isinstance(item, dict):
                found.append(Fields(self.report, item, at))
            else:
                self.report.refuse(at, f"must be a mapping, not {name_type(item)}; write - {sample}")
        return found

    def strangers(self, known: Collection[str]) -> list[tuple[str, str]]:
        """The keys that nobody reads, each with a question where it looks like a slip of the pen."""
        unknown = [name for name in self.values if name not in known]
        return [(name, did_you_mean(name, known) if place < MAX_GUESSES else "") for place, name in enumerate(unknown)]

    def warn_of_strangers(self, known: Collection[str]) -> None:
        """Warn of keys that nobody reads."""
        for name, question in self.strangers(known):
            self.warn(name, f"is kept and not read; {question or 'remove it, or say it in the description'}")

    def _warn_of_null(self, name: str) -> None:
        if name in self.values:
            self.warn(name, "is empty; write a value, or remove the key")


def checked_text(report: Report, at: Steps, text: str, longest: int) -> str:
    """The text, empty where it is too long or holds what no text holds; one that hides letters comes with a warning."""
    if len(text) > longest:
        report.refuse(at, f"has {len(text)} letters, the limit is {longest}; shorten it")
        return ""
    if found := CONTROL.search(text):
        report.refuse(at, f"holds the control character U+{ord(found[0]):04X}; remove it")
        return ""
    if found := HIDDEN.search(text):
        report.warn(at, f"holds U+{ord(found[0]):04X}, which people do not see and models read; remove it")
    return text


def name_type(value: object) -> str:
    """What a value is, in words."""
    names = {dict: "a mapping", list: "a list", str: "text", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
