"""Print tables and lists of facts: drawn on a terminal, plain columns elsewhere."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from toolcrib.toolkit.cli import is_terminal, on_one_line, say

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_GAP = "  "
# The least number of characters of a cell that a drawn table must show on one line.
UNBROKEN = 6


def say_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table: drawn on a terminal, or as a list of rows if that is too narrow; as plain columns elsewhere."""
    cells = [[on_one_line(cell) for cell in row] for row in rows]
    say(_draw(columns, cells) if is_terminal(sys.stdout) else _align([[name.upper() for name in columns], *cells]))


def say_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Print one fact per line; empty facts are left out."""
    say(_align([[f"{name}:", on_one_line(text)] for name, text in facts if text]))


def _align(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (_GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def _least_width(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """The least width of a readable table: no word of the header and no first UNBROKEN characters of a cell are broken."""
    cells = [max((len(row[number]) for row in rows), default=0) for number in range(len(columns))]
    words = [max(map(len, name.split()), default=0) for name in columns]
    return 1 + sum(max(word, min(cell, UNBROKEN)) + 3 for word, cell in zip(words, cells, strict=True))


def _list_rows(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Each row as a block of lines; a column without a name is left out, because it only depicts another one."""
    return "\n\n".join(
        "\n".join(f"{name}: {text}" for name, text in zip(columns, row, strict=True) if name and text) for row in rows
    )


def _draw(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=sys.stdout)
    if console.width < _least_width(columns, rows):
        return _list_rows(columns, rows)
    table = Table()
    for name in columns:
        table.add_column(name, overflow="fold")
    for row in rows:
        # Text is not parsed as Rich markup.
        table.add_row(*map(Text, row))
    with console.capture() as drawn:
        console.print(table)
    return drawn.get().rstrip("\n")
