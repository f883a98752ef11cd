"""What commands are made of: exit codes, and output: values, errors, tables, questions and the log.

Control characters are escaped before anything is written to a terminal.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from contextlib import contextmanager, suppress
from enum import IntEnum
from typing import TYPE_CHECKING

from toolcrib.lib.hidden_text import show_hidden
from toolcrib.model.errors import Kind, SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import TextIO

    from toolcrib.infra.settings import Settings
    from toolcrib.model.errors import ToolError
    from toolcrib.model.result import Explanation
    from toolcrib.toolkit.client_protocol import Suggesting


_GAP = "  "
YES = frozenset({"y", "yes"})


class ExitCode(IntEnum):
    """How a command ends; the list is closed."""

    DONE = 0
    FAILED = 1
    WRONG_USE = 2
    REFUSED = 3
    UNKNOWN_TOOL = 4
    NEEDS_CONFIRMATION = 5
    INTERRUPTED = 130
    READER_GONE = 141


MEANINGS = {
    ExitCode.DONE: "done",
    ExitCode.FAILED: "the tool failed, or check found problems",
    ExitCode.WRONG_USE: "wrong use or wrong settings",
    ExitCode.REFUSED: "a gate refused the call",
    ExitCode.UNKNOWN_TOOL: "there is no such tool",
    ExitCode.NEEDS_CONFIRMATION: "the call needs confirmation",
    ExitCode.INTERRUPTED: "interrupted",
    ExitCode.READER_GONE: "the reader of the output closed the pipe",
}


class WrongUseError(Exception):
    """Invalid command line; the message says how to write it."""


def code_of_error(error: ToolError) -> ExitCode:
    """The exit code of a failed call. Only a refusal by a gate names its gate; any other error is a failure."""
    if isinstance(error, SettingsError):
        return ExitCode.WRONG_USE
    if "gate" not in error.details:
        return ExitCode.FAILED
    return _code_of_refusal(error.kind)


def code_of_explanation(explanation: Explanation) -> ExitCode:
    """The exit code that the explained call would have."""
    refusal = explanation.refusal
    if refusal is None or refusal.verdict is None:
        return ExitCode.DONE
    return _code_of_refusal(refusal.verdict.kind)


def _code_of_refusal(kind: Kind) -> ExitCode:
    special = {Kind.NOT_FOUND: ExitCode.UNKNOWN_TOOL, Kind.CONFIRMATION_REQUIRED: ExitCode.NEEDS_CONFIRMATION}
    return special.get(kind, ExitCode.REFUSED)


def visible(text: str) -> str:
    """Escape every character that would control a terminal."""
    # A carriage return is harmless to a model, and lets a terminal write over what stands there.
    return show_hidden(text).replace("\r", "\\x0d")


def on_one_line(text: str) -> str:
    """The text on one line, with control characters escaped."""
    return visible(" ".join(text.split()))


def say(text: str) -> None:
    """Write to standard output."""
    _write(sys.stdout, text)


def complain(text: str) -> None:
    """Write to standard error."""
    _write(sys.stderr, visible(f"crib: {text}"))


def complain_about(error: ToolError) -> None:
    """Print an error with its cure, its kind, and the gate and setting that decided it."""
    complain(error.message)
    grounds = [str(error.details[name]) for name in ("gate", "where") if error.details.get(name)]
    _write(sys.stderr, visible(f"      {error.kind}" + (f" ({', '.join(grounds)})" if grounds else "")))


def say_json(value: object) -> None:
    """Write indented JSON, with the standard library, because it writes integers of any size."""
    say_text(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def say_text(text: str) -> None:
    """Write text of a tool: unchanged to a file or pipe, escaped on a terminal."""
    say(visible(text) if is_terminal(sys.stdout) else text)


def say_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write a table: drawn on a terminal, plain columns elsewhere."""
    cells = [[on_one_line(cell) for cell in row] for row in rows]
    say(_draw(columns, cells) if is_terminal(sys.stdout) else _align([[name.upper() for name in columns], *cells]))


def say_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Write one fact per line; empty facts are left out."""
    say(_align([[f"{name}:", on_one_line(text)] for name, text in facts if text]))


def count(number: int, noun: str) -> str:
    """A number with its noun in singular or plural."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def is_terminal(stream: TextIO | None) -> bool:
    """Whether the stream is a terminal."""
    return stream is not None and stream.isatty()


def may_ask() -> bool:
    """Whether a person can read a question and answer it."""
    return is_terminal(sys.stdin) and is_terminal(sys.stderr)


def agrees(question: str) -> bool:
    """Ask once; anything but yes is a no, and without a terminal the answer is no."""
    if not may_ask():
        return False
    sys.stderr.write(visible(question) + " [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in YES


@contextmanager
def log_on_stderr(*, verbose: bool = False) -> Iterator[None]:
    """Inside the block, send the log to standard error only: errors in one line each, or with `verbose` all of it.

    The person at the command line may see what a model may not.
    """
    logger = logging.getLogger("toolcrib")
    before = logger.level, logger.handlers
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(logging.INFO if verbose else logging.ERROR)
    handler.setFormatter(_Whole("crib: %(message)s") if verbose else _OneLine())
    logger.handlers = [handler]
    if verbose:
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(before[0])
        logger.handlers = before[1]


@contextmanager
def show_warnings(*names: str) -> Iterator[None]:
    """Inside the block, show warnings of these loggers in one line each; errors are shown anyway."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(logging.WARNING)
    handler.addFilter(lambda record: record.levelno < logging.ERROR)
    handler.setFormatter(_OneLine())
    loggers = [logging.getLogger(name) for name in names]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)


def mention_problems(crib: Suggesting) -> None:
    """Mention that some tools could not be loaded, if so."""
    if problems := crib.problems:
        complain(f"not every tool could be loaded (problems: {len(problems)}); see: crib check")


def require_project(settings: Settings) -> None:
    """Refuse a crib without a project, which stores nothing."""
    if settings.root is None:
        raise WrongUseError("there is no project to store it in; make one with: crib init")


def _write(stream: TextIO | None, text: str) -> None:
    # A stream that was closed before we started is None.
    if stream is None:
        return
    if stream is sys.stderr and sys.stdout is not None:
        # Keeps the order of both streams in a shared pipe; errors of the output are reported when the command ends.
        with suppress(OSError):
            sys.stdout.flush()
    try:
        stream.write(text + "\n")
    except UnicodeEncodeError:
        encoding = stream.encoding
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")


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


class _Whole(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))


class _OneLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        first, *others = record.getMessage().splitlines() or [""]
        # A traceback of Python ends with what went wrong; an error of another language comes with its own summary.
        summary = getattr(record, "summary", None) or (others[-1].strip() if others else "")
        text = f"crib: {first}" + (f": {summary}" if summary else "")
        problem = record.exc_info[1] if record.exc_info else None
        if problem is not None:
            frames = traceback.extract_tb(problem.__traceback__)
            place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
            text += f": {type(problem).__name__}: {problem}{place}"
        return on_one_line(text)
