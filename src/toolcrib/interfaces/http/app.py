"""The HTTP application: guards as ASGI layers around a Starlette router, and problem details for every error."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from toolcrib.core.sources import VIEW
from toolcrib.features.access.view import NOTHING, view_from_settings
from toolcrib.interfaces.http.guards import Callers, Gate, HostCheck, HostRules, Rates, local_caller
from toolcrib.interfaces.http.resource_metadata import authorization_of, resource_metadata
from toolcrib.interfaces.http.routes import PathCheck, make_router, make_routes, registered_tables
from toolcrib.interfaces.http.server_state import HttpHost, ProblemFinder, Service, SessionStore
from toolcrib.interfaces.http.settings import ServerSettings
from toolcrib.lib.audit_trail import ACTOR
from toolcrib.lib.documents import write_json
from toolcrib.model.errors import Kind, ToolError
from toolcrib.toolkit.http import ID, PROBLEM, REQUEST, Answer, Request, respond
from toolcrib.toolkit.http.concurrency import Threads
from toolcrib.toolkit.http.problems import Refusal, headers_of, problem_of, status_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import ASGIApp, Receive, Scope, Send

    from toolcrib.crib import Crib
    from toolcrib.toolkit.http import Header
    from toolcrib.toolkit.http.endpoint import EndpointTable

logger = logging.getLogger("toolcrib.http")

POLICY_VIOLATION = 1008
# No response may be cached, sniffed, or leak its URL.
GUARDS: tuple[Header, ...] = (
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
)


def make_app(
    crib: Crib,
    *,
    open_to_loopback: bool,
    service: Service | None = None,
    problems: ProblemFinder | None = None,
    tables: tuple[EndpointTable, ...] | None = None,
) -> App:
    """The HTTP API of a crib as an ASGI application.

    `open_to_loopback` trusts clients on this machine without a token; it is for a server that listens on loopback only.
    `service` is what the layers around the application share with it, and `problems` finds what the
    health endpoint reports. `tables` replaces the endpoints that are registered.

    The order of the layers is a safety property: first the path is normalized, then host and origin are checked, then the
    route is found, and its endpoints check the caller before they reveal which methods exist.
    """
    settings = crib.settings.table(ServerSettings)
    service = service or Service(settings)
    threads = Threads()
    rules = HostRules(
        settings.host,
        settings.hosts,
        settings.origins,
    )
    local = local_caller(view_from_settings(settings)) if open_to_loopback else None
    authorization = authorization_of(settings, crib.settings["egress"].private)
    gate = Gate(Callers(crib.tokens, local, authorization), Rates(settings.calls_per_minute, lambda: crib.usage_ledger))
    host = HttpHost(
        crib=crib,
        threads=threads,
        ending=service.ending,
        seconds=settings.total_seconds,
        service=service,
        sessions=SessionStore(),
        problems=problems or ProblemFinder(lambda: crib.problems),
        tables=(
            *(registered_tables(crib.plugins) if tables is None else tables),
            *(() if authorization is None else (resource_metadata(authorization),)),
        ),
        needs_token=not open_to_loopback,
    )

    @asynccontextmanager
    async def lifespan(_: object) -> AsyncIterator[None]:
        yield
        threads.close()
        if authorization is not None:
            await authorization.close()

    routes = make_routes(host, gate, rules)
    router = make_router(routes, gate, lifespan)
    layers = PathCheck(router, routes, partial(HostCheck, rules=rules))
    return App(layers, router, rules, settings.body_bytes)


class App:
    """The outermost layer: assigns the request id, and turns refusals and failures into problem details."""

    def __init__(self, layers: ASGIApp, router: ASGIApp, rules: HostRules, max_body: int) -> None:
        self._layers = layers
        self._router = router
        self._rules = rules
        self._max_body = max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._router(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": POLICY_VIOLATION})
            return
        request = scope[REQUEST] = Request(scope, receive, self._max_body)
        scope[ID] = request.id
        request.always = (*GUARDS, (b"x-request-id", request.id.encode()))
        if b"origin" in request.fields:
            request.always += self._rules.cross_headers(request)
        # Nothing is shown before the caller is known; what it may see is set with it.
        view, actor = VIEW.set(NOTHING), ACTOR.set(("", ""))
        try:
            await self._layers(scope, receive, send)
        except Exception as problem:
            if request.is_answered:
                raise
            await respond(request, _refuse(problem, request), send)
        finally:
            VIEW.reset(view)
            ACTOR.reset(actor)
            # The request holds its scope: without this, each of them would wait for the garbage collector.
            del scope[REQUEST]


def _refuse(problem: Exception, request: Request) -> Answer:
    if not isinstance(problem, ToolError):
        logger.error("request %s: %s failed", request.id, request.method, exc_info=problem)
        message = f"the server failed; its log has the reason under {request.id}"
        problem = Refusal(500, Kind.INTERNAL, message)
    document = problem_of(problem, request.id, request.reader)
    if request.is_call:
        document |= {"ok": False, "error": problem.told_to(request.reader).to_json(), "intents": [], "meta": {}}
    return Answer(
        status=status_of(problem), body=write_json(document), content_type=PROBLEM, headers=headers_of(problem)
    )
