"""`crib builder run`: run a Builder in this process until it is told to stop."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, Protocol

from toolcrib.features.requests.settings import BuilderSettings
from toolcrib.infra.plain_code import run_async
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.toolrequest import Status
from toolcrib.toolkit.cli import Answer, ExitCode, complain, on_one_line, require_project, say, show_warnings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from toolcrib.features.requests.builder import Builder
    from toolcrib.features.requests.tracker import Requests
    from toolcrib.infra.settings import Settings
    from toolcrib.model.toolrequest import Filed

# The loggers whose warnings are shown while a Builder runs.
SHOWN_LOGGERS = ("toolcrib.builder", "toolcrib.queues", "toolcrib.requests")
# How often to ask for the remarks of a queue that cannot be reached yet.
RETRY_SECONDS = 1.0


class BuilderCrib(AbstractAsyncContextManager["BuilderCrib"], Protocol):
    """What a Builder uses of a crib."""

    @property
    def settings(self) -> Settings:
        """The settings in force."""

    @property
    def requests(self) -> Requests:
        """Requests for tools that do not exist yet."""

    def check_settings(self) -> None:
        """Raise SettingsError for what would otherwise only show when a tool is called."""

    def builder(self, *, maker: str | None = None, say: Callable[[str], None] | None = None) -> Builder:
        """A Builder for the project."""


def run_builder(crib: BuilderCrib, *, once: bool, maker: str | None) -> Answer:
    """Run a Builder in this process; the answer names what became of the requests that it worked on."""
    require_project(crib.settings)
    crib.check_settings()
    with show_warnings(*SHOWN_LOGGERS):
        return run_async(_run(crib, once=once, maker=maker))


async def _run(crib: BuilderCrib, *, once: bool, maker: str | None) -> Answer:
    with _stopping() as stop:
        async with crib:
            progress = _Progress(stop)
            builder = crib.builder(maker=maker, say=progress)
            try:
                if once:
                    code = await _until_empty(crib, builder, stop)
                else:
                    name = maker or crib.settings.table(BuilderSettings).maker
                    progress(f"the Builder runs ({name}); Ctrl-C ends it")
                    code = await _until_told(crib, builder, stop)
            finally:
                await builder.close()
    if progress.problem is not None:
        raise progress.problem
    return Answer({"requests": [_facts_of(filed) for filed in builder.worked_on]}, code)


def _facts_of(filed: Filed) -> dict[str, object]:
    facts = filed.to_json()
    return {key: facts[key] for key in ("id", "name", "status", "held", "tool", "error")}


async def _until_empty(crib: BuilderCrib, builder: Builder, stop: asyncio.Event) -> ExitCode:
    """Build the open requests, unless told to stop."""
    await _remark(crib)
    await builder.reconcile()
    code = ExitCode.DONE
    while not stop.is_set() and (filed := await builder.build_one(stop)) is not None:
        if filed.status is Status.FAILED:
            code = ExitCode.FAILED
    return ExitCode.INTERRUPTED if stop.is_set() else code


async def _until_told(crib: BuilderCrib, builder: Builder, stop: asyncio.Event) -> ExitCode:
    """Build requests until told to stop; a queue that cannot be reached yet is waited for."""
    later = None
    try:
        await _remark(crib)
    except ToolError as problem:
        if problem.kind is not Kind.TRANSIENT:
            raise
        complain(f"the queue cannot be reached yet, and the Builder waits for it: {problem.message}")
        later = asyncio.create_task(_remark_later(crib))
    try:
        await builder.run(stop)
    finally:
        if later is not None:
            later.cancel()
            await asyncio.gather(later, return_exceptions=True)
    return ExitCode.DONE


async def _remark(crib: BuilderCrib) -> None:
    """Print the remarks of the queue."""
    for remark in await asyncio.to_thread(crib.requests.remarks):
        complain(remark)


async def _remark_later(crib: BuilderCrib) -> None:
    while True:
        await asyncio.sleep(RETRY_SECONDS)
        with suppress(ToolError):  # the Builder itself says what is wrong with the queue
            await _remark(crib)
            return


@contextmanager
def _stopping() -> Iterator[asyncio.Event]:
    """An event that SIGINT or SIGTERM sets; at a second signal all tasks are cancelled."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def end() -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end)
    try:
        yield stop
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


class _Progress:
    """Prints progress, from any thread; when the output cannot be written the Builder ends, and no request fails for that."""

    def __init__(self, stop: asyncio.Event) -> None:
        self.problem: OSError | None = None
        self._stop = stop
        self._loop = asyncio.get_running_loop()

    def __call__(self, text: str) -> None:
        if self.problem is not None:
            return
        try:
            say(on_one_line(text))
            # Output to a pipe is buffered otherwise.
            if sys.stdout is not None:
                sys.stdout.flush()
        except OSError as problem:
            self.problem = problem
            self._loop.call_soon_threadsafe(self._stop.set)
