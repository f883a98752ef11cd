"""Requests on a Redis server: many machines share them, and clients that only know the server's own commands take part."""

from __future__ import annotations

from toolcrib.queues.redis.queue import RedisQueue

__all__ = ["RedisQueue"]
