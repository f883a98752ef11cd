"""One answer on a connection: its head goes out together with its body, in one piece if it can."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

if TYPE_CHECKING:
    from uvicorn._types import ASGISendEvent, HTTPResponseStartEvent, HTTPScope
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# Answers that never have a body.
BODILESS = frozenset({204, 304})
END_OF_CHUNKS = b"0\r\n\r\n"


class Cycle(RequestResponseCycle):
    """uvicorn's, with a quicker way out: one write for most answers, and one look at a head in place of one for each header."""

    def __init__(self, protocol: HttpToolsProtocol, scope: HTTPScope, *, keep_alive: bool) -> None:
        super().__init__(
            scope=scope,
            transport=protocol.transport,
            flow=protocol.flow,
            logger=protocol.logger,
            access_logger=protocol.access_logger,
            access_log=False,
            default_headers=protocol.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=protocol.expect_100_continue,
            keep_alive=keep_alive,
            on_response=protocol.on_response_complete,
        )
        self._start: HTTPResponseStartEvent | None = None
        self._is_bodiless = False

    async def send(self, message: ASGISendEvent) -> None:
        """Take a piece of the answer; ASGI has the head wait for the first piece of the body."""
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        if message["type"] == "http.response.start" and not self.response_started:
            self._start = message
        elif message["type"] == "http.response.body" and self._can_take_body():
            self._write(message.get("body", b""), is_last=not message.get("more_body", False))
        else:
            raise RuntimeError(f"{message['type']} has no place here")

    def _can_take_body(self) -> bool:
        return (self._start is not None or self.response_started) and not self.response_complete

    def _write(self, body: bytes, *, is_last: bool) -> None:
        start, self._start = self._start, None
        head = b"" if start is None else self._head(start)
        data = head + self._frame(body, is_last=is_last)
        self.response_started = True
        if data:
            self.transport.write(data)
        if not is_last:
            return
        self.response_complete = True
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()

    def _frame(self, body: bytes, *, is_last: bool) -> bytes:
        """A piece of the body as it goes over the wire."""
        if self._is_bodiless:
            return b""
        if self.chunked_encoding:
            framed = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            return framed + END_OF_CHUNKS if is_last else framed
        if self.chunked_encoding is False:
            self.expected_content_length -= len(body)
            if self.expected_content_length < 0 or (is_last and self.expected_content_length):
                raise RuntimeError("the body is not as long as its head says")
        return body

    def _head(self, start: HTTPResponseStartEvent) -> bytes:
        """The status and the headers; how the body is framed follows from them."""
        status = start["status"]
        self._is_bodiless = status in BODILESS or self.scope["method"] == "HEAD"
        lines = [STATUS_LINE[status]]
        for name, value in (*self.default_headers, *start.get("headers", ())):
            if name == b"connection":
                self.keep_alive = self.keep_alive and value != b"close"
                continue
            if name == b"content-length":
                self.expected_content_length = int(value)
                self.chunked_encoding = False
            lines.append(b"%b: %b\r\n" % (name, value))
        self._end_head(lines)
        head = b"".join(lines)
        # More ends of lines than lines: somebody has written a header into a header.
        if head.count(b"\n") != len(lines) or head.count(b"\r") != len(lines) or b"\0" in head:
            raise RuntimeError("a header holds the end of a line")
        return head

    def _end_head(self, lines: list[bytes]) -> None:
        """Say where the body ends, if the application has not said it, and whether another answer may follow."""
        if self.chunked_encoding is None and not self._is_bodiless:
            if self.scope["http_version"] == "1.0":
                self.keep_alive = False
            else:
                self.chunked_encoding = True
                lines.append(b"transfer-encoding: chunked\r\n")
        if not self.keep_alive:
            lines.append(b"connection: close\r\n")
        lines.append(b"\r\n")
