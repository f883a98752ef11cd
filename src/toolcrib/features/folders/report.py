"""Collect the problems and warnings of the files of one folder, each with its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.infra.files import MARKS
from toolcrib.lib.positions import Lines

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from toolcrib.lib.positions import Steps
    from toolcrib.model.errors import ToolError

Remark = tuple[str, int, str]


class FolderReport:
    """Collects problems and warnings of the files of one folder.

    `unread` are files that could not be read, which is already reported.
    """

    def __init__(self, place: str, unread: AbstractSet[str] = frozenset()) -> None:
        self.place = place
        self.unread = unread
        self._problems: list[Remark] = []
        self._warnings: list[Remark] = []

    @property
    def problems(self) -> tuple[str, ...]:
        """What keeps the tool from being built, file by file and line by line."""
        return self._told(self._problems)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What its author should know, in the same order."""
        return self._told(self._warnings)

    def refuse(self, file: str, line: int, text: str) -> None:
        """Add a problem, which keeps the tool from being built."""
        if file in self.unread:
            return
        self._problems.append((file, line, text))

    def warn(self, file: str, line: int, text: str) -> None:
        """Add a warning."""
        self._warnings.append((file, line, text))

    def refuse_error(self, file: str, error: ToolError, line: int = 1) -> None:
        """Note what a reader of the file raised, whose message begins with the place; `line` is where none is named."""
        named, text = _split(error.message.removeprefix(f"{self.place}/{file}"))
        self.refuse(file, named or line, text)

    def _told(self, remarks: list[Remark]) -> tuple[str, ...]:
        ordered = sorted(remarks, key=lambda remark: (MARKS.index(remark[0]), remark[1]))
        return tuple(printable(f"{self.place}/{file}:{line}: {text}") for file, line, text in ordered)


class SchemaFile:
    """The fields of `schema.json`, with their problems and warnings."""

    def __init__(self, report: FolderReport, name: str, text: str, fields: dict[str, object]) -> None:
        self.fields = fields
        self._report = report
        self._name = name
        self._lines = Lines(text)

    def refuse(self, at: Steps, text: str) -> None:
        """Add a problem of a field."""
        self._report.refuse(self._name, self.line(at), text)

    def warn(self, at: Steps, text: str) -> None:
        """Add a warning about a field."""
        self._report.warn(self._name, self.line(at), text)

    def line(self, at: Steps) -> int:
        """The line of a key or an item, or of the nearest thing around it."""
        return self._lines.line(at)


def printable(text: str) -> str:
    """The text on one line, with invisible and bidirectional characters escaped."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def _split(rest: str) -> tuple[int, str]:
    """The line and the words of `:LINE:COLUMN: words`, in which either number may be absent; 0 if both are."""
    numbers: list[int] = []
    while rest.startswith(":") and not rest.startswith(": "):
        number, _, after = rest[1:].partition(":")
        if not number.isdecimal():
            break
        numbers.append(int(number))
        rest = f":{after}"
    return (numbers or [0])[0], rest.removeprefix(":").strip()
