"""Which queue is meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from toolcrib.model.protocols import Queue


def open_queue(
    *,
    url: str = "",
    path: Path,
    password: str = "",
    requests: str,
    ready: str,
    hash_prefix: str,
    original: bool = False,
) -> Queue:
    """The queue of the Redis server at the URL, or without one the queue in the file at the path.

    `requests` and `ready` are channels of that server, `hash_prefix` is what its keys of requests begin with, and `original`
    has the names of the original Builder heard and spoken too. Nothing is opened before it is needed.
    """
    if not url:
        from toolcrib.queues.embedded import EmbeddedQueue

        return EmbeddedQueue(path)
    from toolcrib.queues.redis import RedisQueue

    return RedisQueue(
        url, password=password, requests=requests, ready=ready, hash_prefix=hash_prefix, original=original
    )
