"""The queue in a file of the project, which any number of processes of one machine share."""

from __future__ import annotations

from toolcrib.queues.embedded.queue import EmbeddedQueue

__all__ = ["EmbeddedQueue"]
