"""A crib behind a real server on loopback, in a thread of its own, as a client elsewhere meets it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from toolcrib import Crib
from toolcrib.interfaces.http.server import serve

SECONDS = 30


@dataclass
class Served:
    """A server that runs: where it is, and its crib, whose plain methods may be called from here."""

    url: str
    crib: Crib


@contextmanager
def served(make: Callable[[], Crib]) -> Iterator[Served]:
    """Serve the crib that `make` opens until the block ends."""
    opened: list[Served] = []
    failed: list[BaseException] = []
    is_open = threading.Event()
    ends: list[Callable[[], object]] = []

    async def run() -> None:
        async with make() as crib:

            def ready(url: str) -> None:
                opened.append(Served(url=url, crib=crib))
                is_open.set()

            task = asyncio.ensure_future(serve(crib, host="127.0.0.1", port=0, say=lambda _: None, ready=ready))
            loop = asyncio.get_running_loop()
            ends.append(lambda: loop.call_soon_threadsafe(task.cancel))
            await asyncio.wait({task})
            if not task.cancelled():
                task.result()

    def serve_on() -> None:
        try:
            asyncio.run(run())
        except BaseException as problem:
            failed.append(problem)
        finally:
            is_open.set()

    thread = threading.Thread(target=serve_on, name="served", daemon=True)
    thread.start()
    assert is_open.wait(SECONDS)
    if failed:
        raise failed[0]
    try:
        yield opened[0]
    finally:
        ends[0]()
        thread.join(SECONDS)
        assert not thread.is_alive()
        assert failed == []
