"""Bind the endpoints of every table to their handlers, and find the one that answers a path."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from types import MethodType
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote_to_bytes

from toolcrib.features.bundles.endpoints import endpoints as bundles
from toolcrib.features.requests.endpoints import endpoints as requests
from toolcrib.interfaces.http.call_endpoints import CALL_ENDPOINTS
from toolcrib.interfaces.http.overview_endpoints import OVERVIEW_ENDPOINTS
from toolcrib.interfaces.http.page_endpoints import PAGE_ENDPOINTS
from toolcrib.interfaces.http.session_endpoints import SESSION_ENDPOINTS
from toolcrib.model.errors import Kind
from toolcrib.toolkit.http.problems import Refusal
from toolcrib.toolkit.http.query import QueryReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolcrib.interfaces.http.host import HttpHost
    from toolcrib.model.access import Scope
    from toolcrib.toolkit.http.endpoint import Endpoint, EndpointTable
    from toolcrib.toolkit.http.messages import Answer, Request

TABLES: tuple[EndpointTable, ...] = (
    *bundles,
    CALL_ENDPOINTS,
    SESSION_ENDPOINTS,
    *requests,
    OVERVIEW_ENDPOINTS,
    PAGE_ENDPOINTS,
)
PATHS_KEPT = 4_096
LONGEST_KNOWN = 400
_HALF_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_FREE_WORD = re.compile(r"{(\w+)}")


class BoundEndpoint:
    """An endpoint with the object that handles it: reads the query as its table says, then handles the request."""

    def __init__(self, endpoint: Endpoint, handlers: object) -> None:
        self.scope: Scope | None = endpoint.scope
        self.is_call = endpoint.is_call
        self._body = endpoint.body
        self._query = QueryReader(endpoint.query)
        self._handle = MethodType(endpoint.handler, handlers)

    async def answer(self, request: Request) -> Answer:
        """Answer a request that was let through."""
        request.query = self._query.read(request.scope.get("query_string", b""))  # type: ignore[arg-type]  # ASGI says so
        request.takes = self._body
        answer: Answer = await self._handle(request)
        return answer


@dataclass(frozen=True, kw_only=True, slots=True)
class Route:
    """A path, whose words in braces stand for any word, and what answers each of its methods."""

    path: str
    endpoints: Mapping[str, BoundEndpoint]

    @property
    def free(self) -> list[str]:
        """The names of the words in braces."""
        return _FREE_WORD.findall(self.path)

    @property
    def allowed(self) -> bytes:
        """The methods as `Allow` names them."""
        methods = {*self.endpoints, "OPTIONS"} | ({"HEAD"} if "GET" in self.endpoints else set())
        return ", ".join(sorted(methods)).encode()

    def endpoint(self, method: str) -> BoundEndpoint | None:
        """What answers the method; HEAD is answered as GET is."""
        return self.endpoints.get("GET" if method == "HEAD" else method)


def all_routes(host: HttpHost) -> list[Route]:
    """The routes of every table of the host, one for each path."""
    paths: dict[str, dict[str, BoundEndpoint]] = {}
    for table in host.tables:
        handlers = table.make(host)
        for endpoint in table.endpoints:
            bound = BoundEndpoint(endpoint, handlers)
            for path in endpoint.names:
                if paths.setdefault(path, {}).setdefault(endpoint.method, bound) is not bound:
                    raise ValueError(f"{endpoint.method} {path} has two endpoints; {endpoint.name} is the second")
    return [Route(path=path, endpoints=endpoints) for path, endpoints in paths.items()]


@dataclass(slots=True)
class _Node:
    """One place in the tree: what the next word may be, and what stands for any other."""

    route: Route | None = None
    words: dict[str, _Node] = field(default_factory=dict)
    any: _Node | None = None


class Routes:
    """Finds the route of a path."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._root = _Node()
        for route in routes:
            self._node(route.path.split("/")[1:]).route = route
        # The same few paths are asked for again and again.
        self._known = lru_cache(PATHS_KEPT)(self._find)

    def find(self, scope: Mapping[str, object]) -> tuple[Route | None, dict[str, str]]:
        """The route of a request, and the words that stand in its braces; raises for a path that is no text."""
        raw = scope.get("raw_path")
        if not isinstance(raw, bytes):
            raw = quote(str(scope["path"])).encode()
        return self._known(raw) if len(raw) <= LONGEST_KNOWN else self._find(raw)

    def _find(self, raw: bytes) -> tuple[Route | None, dict[str, str]]:
        node, free = self._root, []
        for word in _words(raw):
            known = node.words.get(word)
            if known is None:
                if node.any is None:
                    return None, {}
                known = node.any
                free.append(word)
            node = known
        return node.route, {} if node.route is None else dict(zip(node.route.free, free, strict=True))

    def _node(self, words: list[str]) -> _Node:
        node = self._root
        for word in words:
            if word.startswith("{"):
                node.any = node.any or _Node()
                node = node.any
            else:
                node = node.words.setdefault(word, _Node())
        return node


def _words(raw: bytes) -> list[str]:
    """The words of a path as it was sent, so that an encoded slash parts nothing."""
    path = raw.decode("latin-1")
    if "%" not in path and path.isascii():
        return path.split("/")[1:]
    try:
        return [_decode(word) for word in path.split("/")[1:]]
    except (UnicodeError, ValueError):
        message = "the path is no text; write other than ASCII letters as percent-encoded UTF-8"
        raise Refusal(400, Kind.VALIDATION, message) from None


def _decode(word: str) -> str:
    if not word.isascii() or _HALF_ESCAPE.search(word):
        raise ValueError
    return unquote_to_bytes(word).decode("utf-8")
