"""What every request is held to while it is answered: the time for its body, the time for all of it, and a line in the log."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from toolcrib.faces.http.logs import log_request
from toolcrib.faces.http.metrics import NO_ROUTE
from toolcrib.faces.http.problems import Refusal
from toolcrib.faces.http.refusals import refusal
from toolcrib.model.errors import Kind

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from toolcrib.faces.http.service import Service
    from toolcrib.ground.settings import Settings

    Scope = MutableMapping[str, object]
    Message = MutableMapping[str, object]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]
    App = Callable[[Scope, Receive, Send], Awaitable[None]]

ROUTE = "toolcrib.route"


class Exchange:
    """One request and its answer, as far as they have come; `due` is when patience with it ends."""

    __slots__ = (
        *("_body_seconds", "_is_late", "_is_read", "_receive", "_send", "_task", "_total_seconds"),
        *("due", "sent", "started", "status"),
    )

    def __init__(self, receive: Receive, send: Send, body_seconds: float, total_seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._receive = receive
        self._send = send
        self._body_seconds = body_seconds
        self._total_seconds = total_seconds
        self._task = asyncio.current_task(loop)
        self._is_late = False
        self._is_read = False
        self.started = loop.time()
        self.due = self.started + total_seconds
        self.status = 0
        self.sent = 0

    def look(self, now: float) -> None:
        """Stop the work if it is due."""
        if now >= self.due and not self._is_late and self._task is not None:
            self._is_late = True
            self._task.cancel()

    async def receive(self) -> Message:
        """What the client sends next; raises Refusal if its body does not come in time."""
        if self._is_read:
            return await self._receive()
        self.due = self.started + self._body_seconds
        try:
            message = await self._receive()
        except asyncio.CancelledError:
            if not self._is_late or self._task is None:
                raise
            self._task.uncancel()
            self._is_late = False
            raise self._slow_body() from None
        finally:
            self.due = self.started + self._total_seconds
        self._is_read = not message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        """Pass the answer on, and remember what it was."""
        if message["type"] == "http.response.start":
            self.status = message["status"]  # type: ignore[assignment]  # ASGI says that it is a number
        else:
            self.sent += len(message.get("body", b""))  # type: ignore[arg-type]  # and this bytes
        await self._send(message)

    async def cut_short(self, *, is_ending: bool) -> bool:
        """Tell the client why its request was stopped; False if nobody here stopped it, or it has heard something else."""
        if self.status or not (self._is_late or is_ending):
            return False
        if self._is_late:
            status, message = 504, f"the request was not done after {self._total_seconds:g} s"
        else:
            status, message = 503, "the server ends; ask again when it is back"
        headers, body = refusal(status, message)
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})
        return True

    def _slow_body(self) -> Refusal:
        message = f"the body was not there after {self._body_seconds:g} s; send it at once"
        return Refusal(408, Kind.TIMEOUT, message, headers=((b"connection", b"close"),))


class Guarded:
    """The application behind its limits; what it leaves in the scope about a request is counted and logged.

    That is `toolcrib.route` (a template, never a path), `toolcrib.request_id` and `toolcrib.caller`.
    """

    def __init__(self, app: App, settings: Settings, service: Service) -> None:
        self._app = app
        self._service = service
        self._body_seconds = settings.http_body_seconds
        self._total_seconds = settings.http_total_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Have one request answered."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = Exchange(receive, send, self._body_seconds, self._total_seconds)
        exchanges = self._service.exchanges
        exchanges.add(exchange)
        try:
            await self._app(scope, exchange.receive, exchange.send)
        except asyncio.CancelledError:
            if not await exchange.cut_short(is_ending=not self._service.ready):
                raise
        finally:
            exchanges.discard(exchange)
            self._note(scope, exchange)

    def _note(self, scope: Scope, exchange: Exchange) -> None:
        seconds = asyncio.get_running_loop().time() - exchange.started
        status = exchange.status or 500
        route = str(scope.get(ROUTE, NO_ROUTE))
        self._service.metrics.note_request(route, str(scope["method"]), status, seconds)
        log_request(scope, route, status, seconds, exchange.sent)
