"""Everything that is to be said about one request, told at once and each with its line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable

    Steps = tuple[str | int, ...]
    Remark = tuple[int, str]

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
