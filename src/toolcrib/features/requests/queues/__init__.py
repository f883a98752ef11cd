"""Where requests for tools wait: a file of the project, or a Redis server that several machines share.

Both queues keep to the same rules, which the contract suite holds them to:

- The leader of a wish is the request that is built; others that ask for the same follow it. A follower shows the status of its
  leader as long as both are open, and ends with it: same status, same error, same tool. All of them have the priority of the
  most urgent one.
- A follower that is cancelled leaves the others alone. A leader that is cancelled while others follow hands over to the oldest
  of them, which is built anew from the beginning; the cancelled one takes wishes without an id that became part of it along.
- To retry what failed is to retry everything that failed with it. What is cancelled comes back alone. Where the same wish is
  open by then, what comes back follows that one.
- An allowance belongs to the wish: to give it to one is to give it to the leader and to all that follow. To give it to one that
  failed is to give it to everything that would be retried with it.
- An experiment waits for each request that names it until the wish of that request is fulfilled, by whichever request; a request
  that fails or is cancelled leaves it blocked.
"""

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
        from toolcrib.features.requests.queues.sqlite.queue import EmbeddedQueue

        return EmbeddedQueue(path)
    from toolcrib.features.requests.queues.redis.queue import RedisQueue

    return RedisQueue(
        url, password=password, requests=requests, ready=ready, hash_prefix=hash_prefix, original=original
    )
