"""`crib sink`: stream lines of standard input to a tool that takes events; `crib prepare`: install what a script needs."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING, Protocol

import click

from toolcrib.infra.channel import LineCutter
from toolcrib.infra.plain_code import run_async
from toolcrib.infra.sandbox.environments import list_packages
from toolcrib.model.errors import Kind, ToolError
from toolcrib.toolkit.cli import (
    ARGUMENTS,
    GRANT,
    HELP,
    JSON,
    PROJECT,
    Answer,
    CommandError,
    Option,
    WrongUseError,
    complain,
    log_on_stderr,
    read_arguments,
    read_grants,
    read_line,
    refuse_url,
    say,
)
from toolcrib.toolkit.cli.group import (
    CALL_WORDS,
    READS_ITS_OWN_WORDS,
    WordsCommand,
    answers,
    complete_tool,
    example,
    pass_opener,
    project_option,
)
from toolcrib.toolkit.cli.progress import working
from toolcrib.toolkit.cli.tool_tables import unknown_tool
from toolcrib.toolkit.client_protocol import ProjectCrib

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from toolcrib.features.scripts.sink import Sink
    from toolcrib.toolkit.cli import Line
    from toolcrib.toolkit.cli.group import Opener

SINK_OPTIONS = (
    ARGUMENTS,
    GRANT,
    Option(("--verbose", "-v"), "", "Show the log, with the traceback of a failure."),
    JSON,
    PROJECT,
    HELP,
)

_READ_BYTES = 65_536


class ScriptsCrib(ProjectCrib, Protocol):
    """What these commands use of a crib."""

    def sink(self, name: str, arguments: Mapping[str, object], /) -> AbstractAsyncContextManager[Sink]:
        """Open a sink to stream events to."""

    def prepare(self, name: str, say: Callable[[str], None]) -> Path | None:
        """Install what a Python file asks for into an environment of its own; None if it asks for nothing."""

    def missing_imports(self, name: str) -> list[str]:
        """The modules that a Python file imports, does not declare, and that are not installed."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class SinkCommand(WordsCommand):
    """A command that writes standard input to a sink."""

    options = SINK_OPTIONS


@click.command(
    "sink", cls=SinkCommand, context_settings=READS_ITS_OWN_WORDS, epilog=example("tail -f app.log | crib sink errors")
)
@click.argument("words", nargs=-1, metavar=CALL_WORDS, type=click.UNPROCESSED, shell_complete=complete_tool)
@pass_opener
def sink(opener: Opener[ScriptsCrib], words: tuple[str, ...]) -> Answer:
    """Stream lines of standard input to a sink.

    Each line is one event. When the command ends, what the sink writes is on disk. With --json it prints tool and written, the
    number of events.
    """
    return sink_command(words, opener)


@click.command("prepare", epilog=example("crib prepare plot"))
@click.argument("name", shell_complete=complete_tool)
@project_option
@answers("tool", "python", "packages", "steps")
@pass_opener
def prepare(opener: Opener[ScriptsCrib], name: str) -> Answer:
    """Install what a Python script asks for.

    Its dependencies go into an environment of its own, from wheels alone: nothing of them runs while they are installed. Each step
    is reported on standard error; standard output says in the end what is installed where.
    """
    steps: list[str] = []

    def report(step: str) -> None:
        if step.strip():
            steps.append(step)
            complain(step)

    with opener.open_local() as crib, working(f"installing what {name} asks for"):
        environment = crib.prepare(name, report)
        missing = crib.missing_imports(name) if environment is None else []
    if missing:
        # A call would fail for it, so this does not end well either.
        message = f"{name} declares nothing to install, and it needs {'; and '.join(missing)}"
        raise CommandError(Kind.PERMANENT, message)
    if environment is None:
        say(f"{name} asks for nothing")
        return Answer({"tool": name, "python": None, "packages": [], "steps": steps})
    packages = list_packages(environment)
    say(f"{name} runs with {environment}")
    listed = ", ".join(packages) or "no packages"
    say(f"{'installed' if steps else 'installed already'} in {environment.parent.parent}: {listed}")
    return Answer({"tool": name, "python": str(environment), "packages": list(packages), "steps": steps})


def sink_command(words: Sequence[str], opener: Opener[ScriptsCrib]) -> Answer:
    """`crib sink NAME key=value …`."""
    refuse_url(words, "crib sink")
    line = read_line(words, SINK_OPTIONS)
    if not line.words:
        raise WrongUseError("name a sink: crib sink NAME key=value …; list the tools with: crib list")
    if sys.stdin is None:
        raise WrongUseError("the events come from standard input, which is closed; write: … | crib sink NAME")
    with log_on_stderr(verbose=line.has("--verbose")):
        folder = line.last(PROJECT.name)
        return run_async(_stream_events(line, opener if folder is None else opener.in_folder(folder)))


async def _stream_events(line: Line, opener: Opener[ScriptsCrib]) -> Answer:
    """Write every event to the sink."""
    name, *pairs = line.words
    async with opener.open_local(grants=read_grants(line.all(GRANT.name), name)) as crib:
        entry = crib.find(name)
        if entry is None:
            raise unknown_tool(crib, name)
        async with crib.sink(name, read_arguments(line, pairs, entry.tool.parameters)) as sink:
            async for event in _read_events(sys.stdin.fileno()):
                await sink.write(event)
    complain(f"events written: {sink.written}")
    return Answer({"tool": entry.tool.address, "written": sink.written})


async def _read_events(descriptor: int) -> AsyncIterator[str]:
    """Yield lines as they arrive; the last one may have no line end."""
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
    """The complete lines read so far."""
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
    """Read what is available, waiting for at least one byte; empty at the end of the input."""
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
