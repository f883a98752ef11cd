"""A bound on what a server sends around the body of its response: interim responses, heads, trailers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.helpers import set_exception

if TYPE_CHECKING:
    import asyncio

    from aiohttp.http import RawResponseMessage
    from aiohttp.streams import StreamReader

MAX_AROUND = 65_536
INTERIM = range(100, 200)
SWITCHING = 101


class FloodError(aiohttp.ClientError):
    """A server that sends on and on, and nothing of a response."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.limit = MAX_AROUND


class BoundedHandler(ResponseHandler):
    """A connection that is given up once so many bytes arrived without any of a body, before it or behind it."""

    _around = 0
    _has_head = False

    def set_response_params(self, **params: Any) -> None:
        """Begin with a new response."""
        self._around = 0
        self._has_head = False
        super().set_response_params(**params)

    def feed_data(self, data: tuple[RawResponseMessage, StreamReader], size: int = 0) -> None:
        """Take a head, which is only the last of one response if it is no interim one."""
        code = data[0].code
        self._has_head = self._has_head or code not in INTERIM or code == SWITCHING
        super().feed_data(data, size)

    def data_received(self, data: bytes) -> None:
        """Count what is no body."""
        had_head, before = self._has_head, self._body_bytes()
        super().data_received(data)
        # What comes with a head may be its body, and what comes while nobody reads waits to be looked at.
        if had_head is not self._has_head or self._reading_paused or self._body_bytes() != before:
            self._around = 0
            return
        self._around += len(data)
        if self._around > MAX_AROUND:
            self._give_up()

    def _body_bytes(self) -> int:
        return 0 if self._payload is None else self._payload.total_bytes

    def _give_up(self) -> None:
        where = "behind its body" if self._has_head else "before its response"
        error = FloodError(f"the server sends more than {MAX_AROUND} bytes {where}")
        if self._payload is not None:
            set_exception(self._payload, error)
        if self.transport is not None:
            self.transport.close()
        self.set_exception(error)


class BoundedConnector(aiohttp.TCPConnector):
    """Makes every connection a bounded one."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._factory = partial(_make_handler, loop=self._loop)


def _make_handler(loop: asyncio.AbstractEventLoop) -> ResponseHandler:
    return BoundedHandler(loop)
