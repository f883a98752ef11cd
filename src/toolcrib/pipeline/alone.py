"""Running a call from plain code, inside no event loop."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeVar

from toolcrib.model.tool import Function

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from toolcrib.model.tool import Tool

T = TypeVar("T")


def never_waits(tool: Tool) -> bool:
    """Whether the tool is a plain function that is called once: it runs here and now, and waits for nothing."""
    run = tool.run
    if (
        not isinstance(run, Function)
        or run.is_async
        or run.thread
        or run.takes_whole
        or run.context_parameter is not None
    ):
        return False
    return tool.limits.retry is None and not tool.idempotent


def run_alone(work: Coroutine[object, object, T]) -> T:
    """Run what never waits, without an event loop; loading one takes half of the time that a command needs to start."""
    refuse_inside_a_loop(work)
    try:
        work.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]  # what a coroutine returns is told by its type
    work.close()
    raise RuntimeError("a plain function cannot wait; write it as async def")


def refuse_inside_a_loop(work: Coroutine[object, object, object]) -> None:
    """Raise where an event loop runs already: whoever stands there can wait, and must."""
    if "asyncio" not in sys.modules:
        return
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    work.close()
    raise RuntimeError(
        "plain code waited inside a running event loop; write: await crib.call(...), or await what is async of the same name"
    )
