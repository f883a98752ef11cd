"""Writing to the standard streams: values, complaints and tables, with nothing in them that a terminal would obey."""

from __future__ import annotations

import json
import re
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TextIO

    from toolcrib.model.errors import ToolError

# What moves the cursor, changes colours, reorders letters or is half a character; newline and tab are harmless.
_OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_GAP = "  "


def visible(text: str) -> str:
    """The text with every character that a terminal would obey written out."""
    return _OBEYED.sub(lambda found: _spell(found[0]), text)


def on_one_line(text: str) -> str:
    """The text as one visible line."""
    return visible(" ".join(text.split()))


def say(text: str) -> None:
    """Write to standard output."""
    _write(sys.stdout, text)


def complain(text: str) -> None:
    """Write to standard error."""
    _write(sys.stderr, visible(f"crib: {text}"))


def complain_about(error: ToolError) -> None:
    """Say why something failed, which includes the cure, and which gate decided that, by which setting."""
    complain(error.message)
    grounds = [str(error.details[name]) for name in ("gate", "where") if error.details.get(name)]
    _write(sys.stderr, visible(f"      {error.kind}" + (f" ({', '.join(grounds)})" if grounds else "")))


def say_json(value: object) -> None:
    """Write JSON, indented; the standard library keeps integers of any size, which a schema may hold."""
    say_text(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def say_text(text: str) -> None:
    """Write a text of a tool: as it is to a file or pipe, made visible on a terminal."""
    say(visible(text) if is_terminal(sys.stdout) else text)


def say_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write a table: drawn on a terminal, plain columns elsewhere."""
    cells = [[on_one_line(cell) for cell in row] for row in rows]
    say(_draw(columns, cells) if is_terminal(sys.stdout) else _align([[name.upper() for name in columns], *cells]))


def say_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Write names and what they stand for, one fact a line; a fact that says nothing is left out."""
    say(_align([[f"{name}:", on_one_line(text)] for name, text in facts if text]))


def count(number: int, noun: str) -> str:
    """A number of things in words."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person may be looking."""
    return stream is not None and stream.isatty()


def _write(stream: TextIO | None, text: str) -> None:
    # A stream that was closed before we started is None.
    if stream is None:
        return
    if stream is sys.stderr and sys.stdout is not None:
        # Who reads both through one pipe sees them in the order in which they were said; what is wrong with the output is told
        # when it ends.
        with suppress(OSError):
            sys.stdout.flush()
    try:
        stream.write(text + "\n")
    except UnicodeEncodeError:
        encoding = stream.encoding
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")


def _spell(letter: str) -> str:
    number = ord(letter)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"  # noqa: PLR2004 - two hexadecimal digits


def _align(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (_GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def _draw(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for name in columns:
        table.add_column(name, overflow="fold")
    for row in rows:
        # A Text is never read as markup.
        table.add_row(*map(Text, row))
    console = Console(file=sys.stdout)
    with console.capture() as drawn:
        console.print(table)
    return drawn.get().rstrip("\n")
