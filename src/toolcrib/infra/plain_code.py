"""Run coroutines from code that is not async."""

from __future__ import annotations

import sys
from threading import RLock
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine

T = TypeVar("T")


def run_alone(work: Coroutine[object, object, T]) -> T:
    """Run a coroutine that never waits, without an event loop; importing asyncio takes half of the start of a command."""
    refuse_inside_a_loop(work)
    try:
        work.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]  # StopIteration.value is untyped
    work.close()
    raise RuntimeError("a plain function cannot wait; write it as async def")


def refuse_inside_a_loop(work: Coroutine[object, object, object]) -> None:
    """Raise RuntimeError inside a running event loop, where code must await."""
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


class PlainRunner:
    """Runs coroutines from synchronous code, on one event loop, one after the other."""

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None
        self._waiting = RLock()

    def run(self, work: Coroutine[object, object, T]) -> T:
        """Run the coroutine to its end; raises inside a running event loop."""
        import asyncio

        refuse_inside_a_loop(work)
        # One after the other, because connections and child processes belong to this one event loop.
        with self._waiting:
            if self._runner is None:
                self._runner = asyncio.Runner()
            return self._runner.run(work)

    def close(self) -> None:
        """Close the event loop, if there is one."""
        if self._runner is not None:
            self._runner.close()
            self._runner = None
