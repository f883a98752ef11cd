"""`crib sink`: events from standard input, one to a line, into a tool that takes them."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from toolcrib.faces.cli.codes import ExitCode, WrongUseError, code_of_error
from toolcrib.faces.cli.logs import log_on_stderr
from toolcrib.faces.cli.opening import mention_problems, open_crib
from toolcrib.faces.cli.printing import complain, complain_about
from toolcrib.faces.cli.reading import ARGUMENTS, GRANT, HELP, PROJECT, Option, read_arguments, read_line, refuse_url
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from toolcrib.faces.cli.reading import Line
    from toolcrib.ground.channel import LineCutter

SINK_OPTIONS = (
    ARGUMENTS,
    GRANT,
    Option(("--verbose", "-v"), "", "Show the log, with the traceback of a failure."),
    PROJECT,
    HELP,
)

_READ_BYTES = 65_536


def sink_command(words: Sequence[str], project: str | None = None) -> ExitCode:
    """`crib sink NAME key=value …`."""
    import asyncio

    refuse_url(words, "crib sink")
    line = read_line(words, SINK_OPTIONS)
    if not line.words:
        raise WrongUseError("name a sink: crib sink NAME key=value …; list the tools with: crib list")
    if sys.stdin is None:
        raise WrongUseError("the events come from standard input, which is closed; write: … | crib sink NAME")
    with log_on_stderr(verbose=line.has("--verbose")):
        try:
            return asyncio.run(_pour(line, line.last(PROJECT.name) or project))
        except ToolError as error:
            complain_about(error)
            return code_of_error(error)


async def _pour(line: Line, project: str | None) -> ExitCode:
    """Hand every event over."""
    name, *pairs = line.words
    async with open_crib(project, grants=line.all(GRANT.name)) as crib:
        entry = crib.find(name)
        if entry is None:
            mention_problems(crib)
            complain(f"Tool {name!r} not found; {crib.suggest(name) or 'list the tools with: crib list'}")
            return ExitCode.UNKNOWN_TOOL
        async with crib.sink(name, read_arguments(line, pairs, entry.tool.parameters)) as sink:
            async for event in _read_events(sys.stdin.fileno()):
                await sink.write(event)
    complain(f"events written: {sink.written}")
    return ExitCode.DONE


async def _read_events(descriptor: int) -> AsyncIterator[str]:
    """The lines as they come; the last one may lack its end."""
    from toolcrib.ground.channel import LineCutter

    cutter = LineCutter()
    number = 0
    while data := await _read_some(descriptor):
        cutter.feed(data)
        for line in _cut(cutter, number + 1):
            number += 1
            yield _decode(line, number)
    cutter.feed(b"\n")
    for line in _cut(cutter, number + 1):
        if line:
            yield _decode(line, number + 1)


def _cut(cutter: LineCutter, number: int) -> Iterator[bytes]:
    """The whole lines there are."""
    while True:
        try:
            line = cutter.next()
        except ValueError as problem:
            raise ToolError(Kind.LIMIT_EXCEEDED, f"standard input, line {number}: {problem}") from None
        if line is None:
            return
        number += 1
        yield line


def _decode(line: bytes, number: int) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as problem:
        message = f"standard input, line {number}: this is not UTF-8 text (byte {problem.start})"
        raise ToolError(Kind.VALIDATION, message) from None


async def _read_some(descriptor: int) -> bytes:
    """What there is to read, as soon as there is something; nothing at the end."""
    import asyncio

    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    try:
        loop.add_reader(descriptor, ready.set)
    except PermissionError:  # a plain file, which can always be read
        return os.read(descriptor, _READ_BYTES)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)
    return os.read(descriptor, _READ_BYTES)
