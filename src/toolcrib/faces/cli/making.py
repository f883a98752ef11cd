"""`crib builder run`: what is asked for gets built, until somebody says stop."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from toolcrib.faces.cli.codes import ExitCode
from toolcrib.faces.cli.printing import complain, on_one_line, say
from toolcrib.faces.cli.projects import require_project

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolcrib.builder.loop import Builder
    from toolcrib.crib import Crib


def run_builder(crib: Crib, *, once: bool, maker: str | None) -> ExitCode:
    """Run a Builder in this process."""
    require_project(crib)
    crib.check_settings()
    return asyncio.run(_run(crib, once=once, maker=maker))


async def _run(crib: Crib, *, once: bool, maker: str | None) -> ExitCode:
    async with crib:
        builder = crib.builder(maker=maker, say=_tell)
        for remark in crib.requests.remarks():
            complain(remark)
        if once:
            return await _until_empty(builder)
        with _stopping() as stop:
            _tell(f"the Builder is here ({maker or crib.settings.builder_maker}); Ctrl-C ends it")
            await builder.run(stop)
    return ExitCode.DONE


async def _until_empty(builder: Builder) -> ExitCode:
    """Build what is there; a request that fails is a result like any other."""
    await builder.reconcile()
    while await builder.build_one() is not None:
        pass
    return ExitCode.DONE


@contextmanager
def _stopping() -> Iterator[asyncio.Event]:
    """An event that is set when somebody wants the process to end; asked twice, it ends at once."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()

    def end() -> None:
        if stop.is_set() and task is not None:
            task.cancel()
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end)
    try:
        yield stop
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


def _tell(text: str) -> None:
    say(on_one_line(text))
    # Whoever reads this through a pipe watches it work.
    if sys.stdout is not None:
        sys.stdout.flush()
