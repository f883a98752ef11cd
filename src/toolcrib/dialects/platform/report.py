"""Everything that is to be said about one document, told at once and each with its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.dialects.script.metadata import Steps

SHOWN = 80
MAX_TOLD = 100


class Report:
    """Collects what is to be said about a document; `line_of` is known for one that lies in a file."""

    def __init__(self, place: str = "", line_of: Callable[[Steps], int] | None = None) -> None:
        self._place = place
        self._line_of = line_of
        self.problems: list[str] = []
        self._warnings: list[str] = []

    @property
    def warnings(self) -> tuple[str, ...]:
        """What its author should know."""
        return tuple(_bounded(self._warnings))

    def refuse(self, at: Steps, text: str) -> None:
        """Note what keeps the document from being taken."""
        self.problems.append(self._say(at, text))

    def warn(self, at: Steps, text: str) -> None:
        """Note what its author should know."""
        self._warnings.append(self._say(at, text))

    def raise_problems(self) -> None:
        """Raise one ToolError that tells every problem, a line each."""
        if self.problems:
            problems = _bounded(self.problems)
            raise ToolError(Kind.VALIDATION, "\n".join(problems), details={"problems": problems})

    def _say(self, at: Steps, text: str) -> str:
        line = "" if self._line_of is None else f":{self._line_of(at)}"
        return ": ".join(word for word in (f"{self._place}{line}", _spell(at), text) if word)


def show(value: object) -> str:
    """A value as a message can quote it."""
    import json

    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _spell(at: Steps) -> str:
    """The way to a field as people write it: `impl.calls[1].urlTemplate`."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step[:SHOWN]}" for step in at)
    return "".join(steps).removeprefix(".")


def _bounded(remarks: list[str]) -> list[str]:
    more = len(remarks) - MAX_TOLD
    return [*remarks[:MAX_TOLD], f"and {more} more of this kind"] if more > 0 else remarks
