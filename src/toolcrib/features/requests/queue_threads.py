"""Ask the queue of requests without keeping others waiting: it may be a server that does not answer."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import PurePath
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from toolcrib.infra.files.durable import show
from toolcrib.model.errors import ToolError
from toolcrib.toolkit.http.concurrency import Admission

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from toolcrib.toolkit.http.concurrency import Threads

P = ParamSpec("P")
T = TypeVar("T")

# So many of all threads, so that tools can be read and written meanwhile.
READERS = 4
# Reading a document is work for the processor: more at once would not be done sooner, and delay other requests.
WRITERS = 2
QUEUE = 1_000
PATH = "path"


class QueueThreads:
    """Lets the queue of requests have some of the threads; a caller that finds them taken waits a while, and is told to come again."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._readers = Admission(READERS, QUEUE)
        self._writers = Admission(WRITERS, QUEUE)

    async def read(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Have something looked up."""
        async with self._readers:
            with without_folders():
                return await self._threads.read(work, *args, **kwargs)

    async def write(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Have something changed."""
        async with self._writers:
            with without_folders():
                return await self._threads.write(work, *args, **kwargs)


@contextmanager
def without_folders() -> Iterator[None]:
    """Tell what is wrong with a file by its name: where it lies is for those on this machine."""
    try:
        yield
    except ToolError as problem:
        path = problem.details.get(PATH)
        if not isinstance(path, str) or not PurePath(path).is_absolute():
            raise
        name = PurePath(path).name
        raise ToolError(
            problem.kind,
            problem.message.replace(show(path), show(name)).replace(path, name),
            retryable=problem.retryable,
            partial_side_effects=problem.partial_side_effects,
            details={**problem.details, PATH: name},
        ) from problem
