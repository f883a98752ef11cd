"""Run coroutines from code that is not async; every event loop of a command is interrupted here."""

from __future__ import annotations

import signal
import sys
from contextlib import closing, contextmanager
from threading import RLock, current_thread, main_thread
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator

    MakeLoop = Callable[[], asyncio.AbstractEventLoop] | None

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


def refuse_inside_a_loop(*works: Coroutine[object, object, object]) -> None:
    """Raise RuntimeError inside a running event loop, where code must await."""
    if "asyncio" not in sys.modules:
        return
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    for work in works:
        work.close()
    raise RuntimeError(
        "plain code waited inside a running event loop; write: await crib.call(...), or await what is async of the same name"
    )


class PlainRunner:
    """Runs coroutines from synchronous code, on one event loop, one after the other.

    Ctrl-C cancels the coroutine, and KeyboardInterrupt is raised when it has ended. `asyncio.Runner` loses an interrupt in its
    first steps, and Python's own handler raises between any two steps of the loop, which does not work after that.
    """

    def __init__(self, make_loop: MakeLoop = None) -> None:
        self._make_loop = make_loop
        self._runner: asyncio.Runner | None = None
        self._waiting = RLock()
        self._task: asyncio.Task[object] | None = None
        self._is_interrupted = False

    def run(self, work: Coroutine[object, object, T]) -> T:
        """Run the coroutine to its end; raises inside a running event loop."""
        refuse_inside_a_loop(work)
        return self._run(lambda: work)

    def iterate(self, items: AsyncGenerator[T, None]) -> Generator[T, None, None]:
        """The items of a generator, which runs only while the next one is awaited."""
        refuse_inside_a_loop()
        try:
            # Made inside, where no interrupt comes between making a coroutine and awaiting it.
            while found := self._run(lambda: next_of(items)):
                yield found[0]
        finally:
            self._run(items.aclose)

    def close(self) -> None:
        """Close the event loop, if there is one."""
        if self._runner is not None:
            with self._interrupt_at_the_end():
                self._runner.close()
            self._runner = None

    async def close_from_loop(self) -> None:
        """Close the event loop from another one, which cannot run it in its own thread."""
        if self._runner is not None:
            import asyncio

            await asyncio.to_thread(self.close)

    def _run(self, begin: Callable[[], Coroutine[object, object, T]]) -> T:
        import asyncio

        # One after the other, because connections and child processes belong to this one event loop.
        with self._waiting, self._interrupt_at_the_end():
            if self._runner is None:
                self._runner = asyncio.Runner(loop_factory=self._make_loop)
            return self._runner.run(self._perform(begin))

    async def _perform(self, begin: Callable[[], Coroutine[object, object, T]]) -> T:
        import asyncio

        self._task = asyncio.current_task()
        if self._task is not None and self._is_interrupted:
            self._task.cancel()
        try:
            return await begin()
        finally:
            self._task = None

    @contextmanager
    def _interrupt_at_the_end(self) -> Iterator[None]:
        """Raise KeyboardInterrupt for a signal that arrives inside the block; a second one is raised at once."""
        if current_thread() is not main_thread() or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            yield
            return
        signal.signal(signal.SIGINT, self._cancel)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            if self._is_interrupted:
                self._is_interrupted = False
                raise KeyboardInterrupt

    def _cancel(self, *_: object) -> None:
        if self._is_interrupted:
            raise KeyboardInterrupt
        self._is_interrupted = True
        if self._task is not None:
            self._task.get_loop().call_soon_threadsafe(self._task.cancel)


async def next_of(items: AsyncGenerator[T, None]) -> tuple[T] | None:
    """The next item; None at the end."""
    async for item in items:
        return (item,)
    return None


def run_async(work: Coroutine[object, object, T], make_loop: MakeLoop = None) -> T:
    """Run a coroutine on an event loop of its own, as `asyncio.run` does, but interrupted as PlainRunner says."""
    with closing(PlainRunner(make_loop)) as runner:
        return runner.run(work)
