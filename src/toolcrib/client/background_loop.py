"""An event loop in a background thread, usable from sync and async code."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, TypeVar

from toolcrib.infra.plain_code import next_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine

T = TypeVar("T")


class BackgroundLoop:
    """Runs the requests of one client, from any thread and event loop; started on first use.

    Connections belong to the event loop that opened them. They all belong to this one, so that one client can be used by
    sync code, by several threads and by several event loops.
    """

    def __init__(self) -> None:
        self._starting = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def wait_for(self, work: Coroutine[object, object, T]) -> T:
        """Run a coroutine and block the calling thread until it ends."""
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("this waits for the thread that it runs in; write it as async def, and await")
        running = asyncio.run_coroutine_threadsafe(work, self._start())
        try:
            return running.result()
        except BaseException:
            # Such as KeyboardInterrupt: cancel work that has no waiting caller any more.
            running.cancel()
            raise

    async def run(self, work: Coroutine[object, object, T]) -> T:
        """Run a coroutine and await it; cancelling this cancels the coroutine."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._start()))

    async def iterate(self, items: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
        """The items of a generator that runs in the background loop; closing this closes it."""
        try:
            while True:
                found = await self.run(next_of(items))
                if not found:
                    return
                yield found[0]
        finally:
            await self.run(items.aclose())

    def close(self) -> None:
        """Stop the thread; later work starts a new one."""
        with self._starting:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()

    def _start(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_serve, args=(self._loop,), name="toolcrib client", daemon=True)
                self._thread.start()
            return self._loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
        loop.run_until_complete(_end())
    finally:
        loop.close()


async def _end() -> None:
    """Cancel the remaining tasks and wait for them."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    loop = asyncio.get_running_loop()
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()
