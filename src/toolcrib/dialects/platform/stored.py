"""Files of the store, which a person may have changed: JSON with comments, and the line of whatever is wrong with it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from toolcrib.dialects.platform.fields import Fields
from toolcrib.dialects.platform.report import Report, show
from toolcrib.dialects.platform.times import read_time
from toolcrib.model.errors import Kind, ToolError
from toolcrib.pure.documents import check_plain
from toolcrib.pure.jsonc import read_jsonc, without_comments

if TYPE_CHECKING:
    from toolcrib.dialects.script.metadata import Steps

# A document of the largest size, with its times and what people write between the lines.
MAX_STORED_BYTES = 1_000_000
TIMES = ("createdAt", "modifiedAt", "toggledAt", "softDeletedAt")


def read_fields(data: bytes, place: str) -> Fields:
    """The keys of a document that is a JSON object."""
    try:
        document = read_jsonc(data, place, max_bytes=MAX_STORED_BYTES)
        check_plain(document, place=place)
    except ToolError as error:
        raise _with_line(error, data, place) from None
    if isinstance(document, dict):
        return Fields(Report(place, _Lines(data, place).line), document)
    message = f"{place}:1: must be a JSON object, not {show(document)}; write it between {{ and }}"
    raise ToolError(Kind.VALIDATION, message, details={"line": 1})


def read_times(document: Fields) -> dict[str, str]:
    """The times that the document names, all spelled alike."""
    times: dict[str, str] = {}
    for name in TIMES:
        value = document.values.get(name) or ""
        time = read_time(value) if value else ""
        if time is None:
            document.refuse(name, f'{show(value)} is no time; write it like "2024-05-14T13:44:00Z", or remove it')
        elif time:
            times[name] = time
    return times


def _with_line(error: ToolError, data: bytes, place: str) -> ToolError:
    """The error with the line of the fault, where the reader could tell only what is wrong."""
    if error.kind is not Kind.VALIDATION or "line" in error.details:
        return error
    from toolcrib.dialects.folder.positions import line_of_fault

    line = line_of_fault(without_comments(data, place, max_bytes=MAX_STORED_BYTES).encode())
    return ToolError(error.kind, f"{place}:{line}{error.message.removeprefix(place)}", details={"line": line})


class _Lines:
    """Where things stand in a file; looked up only when something is to be said about it."""

    def __init__(self, data: bytes, place: str) -> None:
        self._data = data
        self._place = place

    @cached_property
    def _lines(self) -> dict[Steps, int]:
        from toolcrib.dialects.script.documents import json_lines

        return {(): 1, **json_lines(without_comments(self._data, self._place, max_bytes=MAX_STORED_BYTES))}

    def line(self, at: Steps) -> int:
        """The line of a key or an item, or of the nearest thing around it."""
        while at not in self._lines:
            at = at[:-1]
        return self._lines[at]
