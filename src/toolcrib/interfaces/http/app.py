"""The application: every request comes in here, is let through or refused, and is answered."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from toolcrib.interfaces.http.guards import Callers, HostCheck, Rates
from toolcrib.interfaces.http.host import HttpHost
from toolcrib.interfaces.http.routes import TABLES, Routes, all_routes
from toolcrib.interfaces.http.server_state import Service
from toolcrib.interfaces.http.session_store import SessionStore
from toolcrib.model.access import Scope
from toolcrib.model.errors import Kind, ToolError
from toolcrib.toolkit.http.concurrency import Threads
from toolcrib.toolkit.http.messages import PROBLEM, Answer, Request, send_answer, to_bytes
from toolcrib.toolkit.http.problems import Refusal, headers_of, problem_of, status_of

if TYPE_CHECKING:
    from toolcrib.crib import Crib
    from toolcrib.interfaces.http.routes import BoundEndpoint, Route
    from toolcrib.toolkit.http.messages import Header, Message, Receive, Send
    from toolcrib.toolkit.http.messages import Scope as Asked

logger = logging.getLogger("toolcrib.http")

POLICY_VIOLATION = 1008
# What the layers around the application read about a request.
ROUTE, REQUEST_ID, CALLER = "toolcrib.route", "toolcrib.request_id", "toolcrib.caller"
# Nothing of ours is to be kept by a browser, guessed at, or shown within another page.
GUARDS: tuple[Header, ...] = (
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
)


def make_app(crib: Crib, *, open_to_loopback: bool, service: Service | None = None) -> App:
    """The HTTP API of a crib as an ASGI application.

    `open_to_loopback` takes whoever connects from this machine for its user and asks for no token; it is for a server that
    listens on this machine alone. `service` is what the layers around the application share with it.
    """
    return App(crib, open_to_loopback=open_to_loopback, service=service or Service(crib.settings))


class App:
    """Guards, routes and answers requests."""

    def __init__(self, crib: Crib, *, open_to_loopback: bool, service: Service) -> None:
        settings = crib.settings
        self._hosts = HostCheck(settings.http_host, settings.http_hosts, settings.http_origins)
        self._callers = Callers(crib.tokens, open_to_loopback=open_to_loopback)
        self._rates = Rates(settings.http_calls_per_minute)
        self._threads = Threads()
        self._max_body = settings.http_body_bytes
        host = HttpHost(
            crib=crib,
            threads=self._threads,
            ending=service.ending,
            service=service,
            sessions=SessionStore(),
            tables=TABLES,
            needs_token=not open_to_loopback,
        )
        self._routes = Routes(all_routes(host))

    async def __call__(self, scope: Asked, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": POLICY_VIOLATION})
            return
        request = Request(scope, receive, self._max_body)
        scope[REQUEST_ID] = request.id
        answer = await self._answer(request)
        more = (*GUARDS, (b"x-request-id", request.id.encode()))
        if b"origin" in request.fields:
            more += self._hosts.cross_headers(request)
        await send_answer(answer, send, more=more, with_body=request.method != "HEAD")

    async def _answer(self, request: Request) -> Answer:
        try:
            return await self._serve(request)
        except ToolError as problem:
            return _refuse(problem, request)
        except Exception:
            logger.exception("request %s: %s failed", request.id, request.method)
            message = f"the server failed; its log has the reason under {request.id}"
            return _refuse(Refusal(500, Kind.INTERNAL, message), request)

    async def _serve(self, request: Request) -> Answer:
        """Let a request through, one guard after the other, and have it answered."""
        route, request.path_params = self._routes.find(request.scope)
        endpoint = None if route is None else route.endpoint(request.method)
        request.is_call = endpoint is not None and endpoint.is_call
        request.check_headers()
        self._hosts.check(request)
        if route is not None and request.method == "OPTIONS":
            return self._options(request, route)
        self._admit(request, endpoint)
        if route is None:
            raise Refusal(404, Kind.NOT_FOUND, "there is nothing at this path; /openapi.json lists all there are")
        request.scope[ROUTE] = route.path
        if endpoint is None:
            message = f"{request.method[:20]} is not for this path; use {route.allowed.decode()}"
            raise Refusal(405, Kind.VALIDATION, message, headers=((b"allow", route.allowed),))
        return await endpoint.answer(request)

    def _admit(self, request: Request, endpoint: BoundEndpoint | None) -> None:
        """Find the caller and count its request; what is open to everybody asks for none."""
        if endpoint is not None and endpoint.scope is None:
            return
        needed = Scope.READ if endpoint is None or endpoint.scope is None else endpoint.scope
        request.caller = request.scope[CALLER] = self._callers.identify(request, needed)
        self._rates.admit(request.caller)

    def _options(self, request: Request, route: Route) -> Answer:
        allow = (b"allow", route.allowed)
        return Answer(status=204, headers=(allow, *self._hosts.preflight_headers(request, route.allowed)))

    async def _live(self, receive: Receive, send: Send) -> None:
        """Let the start and the end of the server take their course."""
        while True:
            message: Message = await receive()
            if message["type"] == "lifespan.shutdown":
                self._threads.close()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return


def _refuse(problem: ToolError, request: Request) -> Answer:
    document = problem_of(problem, request.id)
    if request.is_call:
        document |= {"ok": False, "error": problem.to_json(), "intents": [], "meta": {}}
    return Answer(status=status_of(problem), body=to_bytes(document), content_type=PROBLEM, headers=headers_of(problem))
