"""Threads for what blocks: those that write may all be waiting for a lock, and those that read go on."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
T = TypeVar("T")

READERS = 16
WRITERS = 16


class Threads:
    """Has blocking work done without keeping the event loop waiting."""

    def __init__(self) -> None:
        self._readers = ThreadPoolExecutor(READERS, "toolcrib-read")
        self._writers = ThreadPoolExecutor(WRITERS, "toolcrib-write")

    async def read(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Have something read."""
        return await _run(self._readers, partial(work, *args, **kwargs))

    async def write(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Have something written."""
        return await _run(self._writers, partial(work, *args, **kwargs))

    def close(self) -> None:
        """Begin nothing new; what is under way ends by itself."""
        self._readers.shutdown(wait=False, cancel_futures=True)
        self._writers.shutdown(wait=False, cancel_futures=True)


async def _run(executor: ThreadPoolExecutor, work: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(executor, work)
