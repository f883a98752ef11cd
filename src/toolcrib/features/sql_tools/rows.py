"""Collect the rows of a statement within the limits of its tool, and write them as the value of the call."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import orjson

from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Rows
from toolcrib.values import ConversionError, to_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolcrib.model.tool import Sql

PLAIN = frozenset({int, str, bool, type(None)})
Row = dict[str, object]


@dataclass(kw_only=True, slots=True)
class Collected:
    """The rows so far; `truncated` names the limit that ended the reading, `affected` is the number of changed rows.

    `is_locked` is true while another program keeps the statement from running.
    """

    max_rows: int
    max_bytes: int
    rows: list[Row] = field(default_factory=list)
    size: int = 0
    truncated: str = ""
    affected: int | None = None
    is_locked: bool = False
    _names: list[str] = field(default_factory=list)

    def name_columns(self, names: Sequence[str]) -> None:
        """Set the names of the columns; raises ToolError for a repeated name, because one of the two would be lost."""
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            cure = "name each with AS"
            raise ToolError(Kind.PERMANENT, f"several columns are called {min(twice)[:80]!r}; {cure}")
        self._names = list(names)

    def add(self, values: Iterable[Sequence[object]]) -> list[Row]:
        """Add rows within the limits, and set `truncated` if one is exceeded; returns the rows that were added."""
        first = len(self.rows)
        for row in values:
            if len(self.rows) == self.max_rows:
                self.truncated = f"more than {self.max_rows} rows"
                break
            # Checked before the row is written as JSON, which would take several times its memory.
            written = self._write(row) if self.size + _least_size(row) <= self.max_bytes else None
            self.size += 0 if written is None else _size(written)
            if written is None or self.size > self.max_bytes:
                self.truncated = f"more than {self.max_bytes} bytes"
                break
            self.rows.append(written)
        return self.rows[first:]

    def _write(self, row: Sequence[object]) -> Row:
        try:
            return {
                name: value if type(value) in PLAIN else to_json(value)
                for name, value in zip(self._names, row, strict=True)
            }
        except ConversionError:
            raise self._explain(row) from None

    def _explain(self, row: Sequence[object]) -> ToolError:
        """The error for a value without a JSON form, with its row and column."""
        for name, value in zip(self._names, row, strict=True):
            try:
                to_json(value)
            except ConversionError as problem:
                place = f"row {len(self.rows) + 1}, column {name[:80]!r}"
                return ToolError(Kind.PERMANENT, f"{place}: {problem}")
        return ToolError(Kind.INTERNAL, "a row could not be written")


def _least_size(row: Sequence[object]) -> int:
    """How many bytes the row has as JSON at least."""
    return sum(len(value) for value in row if isinstance(value, str | bytes))


def _size(row: Row) -> int:
    """How many bytes the row has as JSON."""
    try:
        return len(orjson.dumps(row))
    except TypeError:  # an integer of more than 64 bit
        return len(json.dumps(row))


def shape_value(run: Sql, found: Collected) -> object:
    """The value of a call, in the form that `returns` declares."""
    if run.returns is Rows.ROWS:
        value: dict[str, object] = {"rows": found.rows, "truncated": bool(found.truncated)}
        return value if found.affected is None else {**value, "affected": found.affected}
    if found.truncated or (run.returns is not Rows.LIST and len(found.rows) > 1):
        raise _too_many(run, found)
    if run.returns is Rows.LIST:
        return found.rows
    row = found.rows[0] if found.rows else None
    if run.returns is Rows.ROW or row is None:
        return row
    if len(row) != 1:
        message = (
            f'the statement returned {len(row)} columns, and "returns": "value" takes one; select one, or write "row"'
        )
        raise ToolError(Kind.PERMANENT, message)
    return next(iter(row.values()))


def _too_many(run: Sql, found: Collected) -> ToolError:
    if run.returns is Rows.LIST:
        message = f'the statement returned {found.truncated}; ask for less, add LIMIT, or write "returns": "rows"'
        return ToolError(Kind.LIMIT_EXCEEDED, message, details={"limit": found.truncated}, value=found.rows)
    message = f'the statement returned several rows, and "returns": "{run.returns}" takes one; add LIMIT 1'
    return ToolError(Kind.PERMANENT, message)


def describe_output(run: Sql) -> dict[str, object]:
    """The schema of the value, as far as it is known without the database."""
    row: dict[str, object] = {"type": "object"}
    if run.returns is Rows.LIST:
        return {"type": "array", "items": row}
    if run.returns is Rows.ROW:
        return {"type": ["object", "null"]}
    if run.returns is Rows.VALUE:
        return {}
    properties: dict[str, object] = {
        "rows": {"type": "array", "items": row},
        "truncated": {"type": "boolean", "description": "Whether there are more rows than were read."},
    }
    if run.write:
        properties["affected"] = {"type": "integer", "description": "How many rows were changed."}
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
