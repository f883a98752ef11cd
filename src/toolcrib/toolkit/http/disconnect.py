"""Stop work when the client that asked for it disconnects."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar, cast

from toolcrib.core.execution import go_on
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from types import CoroutineType

    from toolcrib.toolkit.http.messages import Request

    T = TypeVar("T")


async def until_gone(request: Request, work: Coroutine[object, object, T]) -> T:
    """What the work comes to; raises CANCELLED if the client did not wait for it.

    The first step is taken at once: work that ends there needs no watch on the client.
    """
    try:
        waits_for = work.send(None)
    except StopIteration as end:
        return cast("T", end.value)
    watch = _Watch(request)
    try:
        return cast("T", await go_on(cast("CoroutineType[object, object, object]", work), waits_for))
    except asyncio.CancelledError:
        if not watch.end():
            raise
        raise ToolError(Kind.CANCELLED, "the client went away, and the call was stopped") from None
    finally:
        watch.end()


class _Watch:
    """Cancels the task that it was made in when the client is gone."""

    def __init__(self, request: Request) -> None:
        self._task = cast("asyncio.Task[object]", asyncio.current_task())
        self._has_struck = False
        self._watching = asyncio.ensure_future(request.gone())
        self._watching.add_done_callback(self._strike)

    def end(self) -> bool:
        """Watch no longer; True if only this watch cancelled the task, which is then taken back."""
        self._watching.remove_done_callback(self._strike)
        self._watching.cancel()
        if not self._has_struck:
            return False
        self._has_struck = False
        return self._task.uncancel() == 0

    def _strike(self, watching: asyncio.Future[None]) -> None:
        if watching.cancelled() or watching.exception() is not None:
            return
        self._has_struck = True
        self._task.cancel()
