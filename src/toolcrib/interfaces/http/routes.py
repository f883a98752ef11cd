"""Bind endpoints to their handlers, build the router, and dispatch requests; calls of tools bypass the router."""

from __future__ import annotations

import re
from functools import lru_cache
from types import MethodType
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, unquote_to_bytes

from starlette.convertors import Convertor, register_url_convertor
from starlette.routing import Route, Router

from toolcrib.model.call import Scope
from toolcrib.model.errors import Kind
from toolcrib.toolkit.http import REQUEST, ROUTE, Answer, respond
from toolcrib.toolkit.http.contract import QueryReader
from toolcrib.toolkit.http.problems import Refusal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from starlette.types import ASGIApp, Lifespan, Receive, Send
    from starlette.types import Scope as AsgiScope

    from toolcrib.core.plugins import Plugins
    from toolcrib.interfaces.http.guards import Gate, HostRules
    from toolcrib.interfaces.http.server_state import HttpHost
    from toolcrib.toolkit.http import Request
    from toolcrib.toolkit.http.endpoint import Endpoint, EndpointTable

    Found = tuple[str, "_CallPath | None", dict[str, str]]


_FREE_WORD = re.compile(r"{(\w+)}")


def registered_tables(plugins: Plugins) -> tuple[EndpointTable, ...]:
    """All registered tables of endpoints."""
    return tuple(table for part in plugins.parts("endpoints") for table in part.load())


def make_routes(host: HttpHost, gate: Gate, rules: HostRules) -> list[Route]:
    """One route per path with all its methods, so that `Allow` is complete."""
    register_url_convertor("word", _Word())
    paths: dict[str, dict[str, BoundEndpoint]] = {}
    for table in host.tables:
        handlers = table.make(host)
        for endpoint in table.endpoints:
            bound = BoundEndpoint(endpoint, handlers)
            for path in endpoint.names:
                if paths.setdefault(path, {}).setdefault(endpoint.method, bound) is not bound:
                    raise ValueError(f"{endpoint.method} {path} has two endpoints; {endpoint.name} is the second")
    return [
        Route(_FREE_WORD.sub(r"{\1:word}", path), PathEndpoints(path, endpoints, gate, rules))
        for path, endpoints in paths.items()
    ]


def make_router(routes: list[Route], gate: Gate, lifespan: Lifespan[object]) -> Router:
    """The router; a trailing slash makes another path, and is not redirected."""
    return Router(routes, redirect_slashes=False, default=NoSuchPath(gate), lifespan=lifespan)


class BoundEndpoint:
    """An endpoint with its handler bound."""

    def __init__(self, endpoint: Endpoint, handlers: object) -> None:
        self.scope = endpoint.scope
        self.is_call = endpoint.is_call
        self.body = endpoint.body
        self.query = QueryReader(endpoint.query)
        self.handle: Callable[[Request], Awaitable[Answer]] = MethodType(endpoint.handler, handlers)


class PathEndpoints:
    """The endpoints of one path as an ASGI application.

    The caller is checked before the method, so that only authenticated callers learn which methods exist. OPTIONS needs no
    token, because a CORS preflight carries none.
    """

    def __init__(self, path: str, endpoints: Mapping[str, BoundEndpoint], gate: Gate, rules: HostRules) -> None:
        self.path = path
        self._endpoints = dict(endpoints)
        if "GET" in endpoints:
            self._endpoints["HEAD"] = endpoints["GET"]
        self._allow = (b"allow", ", ".join(sorted({*self._endpoints, "OPTIONS"})).encode())
        self._gate = gate
        self._rules = rules

    @property
    def call_methods(self) -> frozenset[str]:
        """The methods of the path that call a tool."""
        return frozenset(method for method, endpoint in self._endpoints.items() if endpoint.is_call)

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Dispatch a request by its method."""
        request: Request = scope[REQUEST]
        method = scope["method"]
        if method == "OPTIONS":
            headers = (self._allow, *self._rules.preflight_headers(request, self._allow[1]))
            await respond(request, Answer(status=204, headers=headers), send)
            return
        endpoint = self._endpoints.get(method)
        request.is_call = endpoint is not None and endpoint.is_call
        needed = Scope.READ if endpoint is None else endpoint.scope
        if needed is not None:
            await self._gate.admit(request, needed)
        scope[ROUTE] = self.path
        if endpoint is None:
            message = f"{method[:20]} is not allowed for this path; use {self._allow[1].decode()}"
            raise Refusal(405, Kind.VALIDATION, message, headers=(self._allow,))
        request.query = endpoint.query.read(scope.get("query_string", b""))
        request.takes = endpoint.body
        await respond(request, await endpoint.handle(request), send)


# Clients look here for an authorization server. A refusal would tell them that there is one, and they would drop their token.
OAUTH_PATHS = ("/.well-known/oauth-", "/.well-known/openid-configuration")
OAUTH_REGISTRATION = "/register"


class NoSuchPath:
    """Answers a path without a route; only an authenticated caller gets a 404, except where clients look for OAuth."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Refuse the request."""
        path = scope["path"]
        if path != OAUTH_REGISTRATION and not path.startswith(OAUTH_PATHS):
            await self._gate.admit(scope[REQUEST], Scope.READ)
        raise Refusal(404, Kind.NOT_FOUND, "no such path; /openapi.json lists all paths")


class _Word(Convertor[str]):
    """A path segment as `PathCheck` writes it: percent-encoded, and possibly empty."""

    regex = "[^/]*"

    def convert(self, value: str) -> str:
        return unquote(value)

    def to_string(self, value: str) -> str:
        return quote(value, safe="")


PATHS_KEPT = 4_096
LONGEST_KEPT = 400
# Nothing is percent-encoded, and nothing needs to be.
_PLAIN = re.compile(r"[!-$&-~]*")
_HALF_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


class PathCheck:
    """An ASGI layer that sets `path` of the scope from `raw_path`, each segment in its canonical percent-encoding.

    So an encoded slash does not separate segments, and two spellings of a path are always treated alike. Fast path: a call of
    a tool goes straight to its endpoint, because the router tries one route after the other, which costs more than the rest.
    """

    def __init__(self, router: ASGIApp, routes: Iterable[Route], guard: Callable[[ASGIApp], ASGIApp]) -> None:
        self._router = guard(router)
        self._calls = [
            _CallPath(route, route.app.call_methods, guard(route.app))
            for route in routes
            if isinstance(route.app, PathEndpoints) and route.app.call_methods
        ]
        # Parsed paths are cached, because the same few are requested again and again.
        self._known = lru_cache(PATHS_KEPT)(self._read)

    def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> Awaitable[None]:
        """Pass a request on; raises for a malformed path. Not a coroutine of its own, which each request would pay for."""
        raw = scope.get("raw_path")
        if raw is None:
            raw = quote(scope["path"]).encode()
        path, call, words = self._known(raw) if len(raw) <= LONGEST_KEPT else self._read(raw)
        scope["path"] = path
        if call is not None and scope["method"] in call.methods:
            scope[REQUEST].is_call = True
            scope["path_params"] = words
            return call.app(scope, receive, send)
        return self._router(scope, receive, send)

    def _read(self, raw: bytes) -> Found:
        path = _spell(raw)
        for call in self._calls:
            match = call.route.path_regex.match(path)
            if match is not None:
                convertors = call.route.param_convertors
                return path, call, {name: convertors[name].convert(word) for name, word in match.groupdict().items()}
        return path, None, {}


class _CallPath:
    """A path with methods that call a tool, and its endpoints behind the guards."""

    def __init__(self, route: Route, methods: frozenset[str], app: ASGIApp) -> None:
        self.route = route
        self.methods = methods
        self.app = app


def _spell(raw: bytes) -> str:
    """The canonical spelling of a path."""
    path = raw.decode("latin-1")
    if _PLAIN.fullmatch(path):
        return path
    try:
        return "/".join(quote(_decode(word), safe="") for word in path.split("/"))
    except (UnicodeError, ValueError):
        message = "the path is malformed; write non-ASCII characters as percent-encoded UTF-8"
        raise Refusal(400, Kind.VALIDATION, message) from None


def _decode(word: str) -> str:
    if not word.isascii() or _HALF_ESCAPE.search(word):
        raise ValueError
    return unquote_to_bytes(word).decode("utf-8")
