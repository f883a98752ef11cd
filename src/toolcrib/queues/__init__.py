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

from toolcrib.queues.opening import open_queue

__all__ = ["open_queue"]
