"""The log on standard error: what failed in one line each, or everything with tracebacks."""

from __future__ import annotations

import logging
import sys
import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING

from toolcrib.faces.cli.printing import on_one_line, visible

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def log_on_stderr(*, verbose: bool = False) -> Iterator[None]:
    """Show the log inside the block, instead of wherever it went; the person at the command line may see what a model may not."""
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
    """Show inside the block what these loggers warn of, in one line each; what is worse is shown anyway."""
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


class _Whole(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))


class _OneLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        first, *others = record.getMessage().splitlines() or [""]
        text = f"crib: {first}" + (f": {_sum_up(others)}" if others else "")
        problem = record.exc_info[1] if record.exc_info else None
        if problem is not None:
            frames = traceback.extract_tb(problem.__traceback__)
            place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
            text += f": {type(problem).__name__}: {problem}{place}"
        return on_one_line(text)


def _sum_up(trace: list[str]) -> str:
    """What a traceback comes to; --verbose shows all of it."""
    from toolcrib.runners.handler.stack import sum_up  # most commands fail in no handler

    # JavaScript begins with what went wrong, Python ends with it.
    return sum_up(trace) or trace[-1].strip()
