"""Every path there is, and what answers it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote_to_bytes

from toolcrib.features.access.tokens import Scope
from toolcrib.features.bundles.endpoints import BundleDesk, ToolDesk
from toolcrib.features.requests.endpoints import Asking, RequestDesk
from toolcrib.interfaces.http.endpoints import CallDesk, OverviewDesk, SessionDesk
from toolcrib.interfaces.http.pages import PageDesk
from toolcrib.model.errors import Kind
from toolcrib.toolkit.http.problems import Refusal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping

    from toolcrib.crib import Crib
    from toolcrib.interfaces.http.server_state import Service
    from toolcrib.toolkit.http.concurrency import Threads
    from toolcrib.toolkit.http.messages import Answer, Request

    Handle = Callable[[Request], Awaitable[Answer]]


# MERGED toolcrib.faces.http.routing

# Which path means what: a tree of its words, found in one step for each.

PATHS_KEPT = 4_096
LONGEST_KNOWN = 400
_HALF_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True, kw_only=True, slots=True)
class Endpoint:
    """What answers one method of one path, and what a caller must be allowed to do for it; None asks for no caller."""

    handle: Handle
    scope: Scope | None
    is_call: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Route:
    """A path, whose words in braces stand for any word, and what answers each of its methods."""

    path: str
    endpoints: Mapping[str, Endpoint]

    @property
    def allowed(self) -> bytes:
        """The methods as `Allow` names them."""
        methods = {*self.endpoints, "OPTIONS"} | ({"HEAD"} if "GET" in self.endpoints else set())
        return ", ".join(sorted(methods)).encode()

    def endpoint(self, method: str) -> Endpoint | None:
        """What answers the method; HEAD is answered as GET is."""
        return self.endpoints.get("GET" if method == "HEAD" else method)


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

    def find(self, scope: Mapping[str, object]) -> tuple[Route | None, tuple[str, ...]]:
        """The route of a request, and the words that stand in its braces; raises for a path that is no text."""
        raw = scope.get("raw_path")
        if not isinstance(raw, bytes):
            raw = quote(str(scope["path"])).encode()
        return self._known(raw) if len(raw) <= LONGEST_KNOWN else self._find(raw)

    def _find(self, raw: bytes) -> tuple[Route | None, tuple[str, ...]]:
        node, free = self._root, []
        for word in _words(raw):
            known = node.words.get(word)
            if known is None:
                if node.any is None:
                    return None, ()
                known = node.any
                free.append(word)
            node = known
        return node.route, tuple(free)

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


BUNDLES = "/tools/bundles"
BUNDLE = f"{BUNDLES}/{{bundleID}}"
TOOL = f"{BUNDLE}/tools/{{toolSlug}}/version/{{version}}"
# The document's paths are relative to /tools, and its own first word may be part of them or not.
LISTS = ("/tools", "/tools/tools")
REQUEST = "/requests/{requestID}"


def all_routes(crib: Crib, threads: Threads, service: Service, *, needs_token: bool) -> Iterator[Route]:
    """The routes of a crib."""
    body_bytes = crib.settings.http_body_bytes
    sessions, asking = SessionDesk(crib, body_bytes), Asking(threads)
    calls = CallDesk(crib, sessions, service, body_bytes)
    yield from _bundles(BundleDesk(crib.bundles, threads, body_bytes))
    yield from _tools(ToolDesk(crib.bundles, crib.wish_from_search, threads, body_bytes), calls)
    yield from _calls(calls, sessions)
    yield from _requests(RequestDesk(crib, threads, asking, service))
    yield from _overview(OverviewDesk(crib, threads, asking, service), PageDesk(service, needs_token=needs_token))


def _bundles(desk: BundleDesk) -> Iterator[Route]:
    yield Route(path=BUNDLES, endpoints={"GET": _read(desk.list)})
    yield Route(
        path=BUNDLE,
        endpoints={
            "GET": _read(desk.read),
            "PUT": _manage(desk.put),
            "PATCH": _manage(desk.switch),
            "DELETE": _manage(desk.delete),
        },
    )


def _tools(desk: ToolDesk, calls: CallDesk) -> Iterator[Route]:
    for path in LISTS:
        yield Route(path=path, endpoints={"GET": _read(desk.list)})
        yield Route(path=f"{path}/search", endpoints={"GET": _read(desk.search)})
    yield Route(path=f"{BUNDLE}/tools", endpoints={"GET": _read(desk.list_one)})
    yield Route(
        path=TOOL,
        endpoints={
            "GET": _read(desk.read),
            "PUT": _manage(desk.put),
            "PATCH": _manage(desk.switch),
            "DELETE": _manage(desk.delete),
            "POST": _call(calls.invoke),
        },
    )
    yield Route(path=f"{TOOL}/invoke", endpoints={"POST": _call(calls.invoke)})


def _calls(calls: CallDesk, sessions: SessionDesk) -> Iterator[Route]:
    yield Route(path="/crib/call", endpoints={"POST": _call(calls.call)})
    yield Route(path="/crib/explain", endpoints={"POST": _invoke(calls.explain)})
    yield Route(path="/crib/sessions", endpoints={"POST": _invoke(sessions.open)})
    yield Route(
        path="/crib/sessions/{sessionID}",
        endpoints={"GET": _invoke(sessions.read), "DELETE": _invoke(sessions.close)},
    )
    yield Route(path="/crib/sessions/{sessionID}/turn", endpoints={"POST": _invoke(sessions.next_turn)})


def _requests(desk: RequestDesk) -> Iterator[Route]:
    yield Route(path="/requests", endpoints={"GET": _read(desk.list), "POST": _invoke(desk.file)})
    yield Route(path=REQUEST, endpoints={"GET": _read(desk.read)})
    yield Route(path=f"{REQUEST}/history", endpoints={"GET": _read(desk.history)})
    yield Route(path=f"{REQUEST}/events", endpoints={"GET": _read(desk.events)})
    yield Route(path=f"{REQUEST}/deliver", endpoints={"POST": _manage(desk.deliver)})
    yield Route(path=f"{REQUEST}/cancel", endpoints={"POST": _manage(desk.cancel)})
    yield Route(path=f"{REQUEST}/retry", endpoints={"POST": _manage(desk.retry)})
    yield Route(path=f"{REQUEST}/allowance", endpoints={"PUT": _manage(desk.allow)})
    yield Route(path="/experiments", endpoints={"GET": _read(desk.experiments)})


def _overview(desk: OverviewDesk, pages: PageDesk) -> Iterator[Route]:
    yield Route(path="/crib/tools", endpoints={"GET": _read(desk.tools)})
    yield Route(path="/crib/results/{handle}", endpoints={"GET": _invoke(desk.result)})
    yield Route(path="/crib/health", endpoints={"GET": _read(desk.health)})
    yield Route(path="/openapi.json", endpoints={"GET": _read(pages.openapi)})
    yield Route(path="/docs", endpoints={"GET": _read(pages.docs)})
    yield Route(path="/metrics", endpoints={"GET": _read(pages.metrics)})
    yield Route(path="/healthz", endpoints={"GET": Endpoint(handle=pages.alive, scope=None)})
    yield Route(path="/readyz", endpoints={"GET": Endpoint(handle=pages.ready, scope=None)})


def _read(handle: Handle) -> Endpoint:
    return Endpoint(handle=handle, scope=Scope.READ)


def _manage(handle: Handle) -> Endpoint:
    return Endpoint(handle=handle, scope=Scope.MANAGE)


def _invoke(handle: Handle) -> Endpoint:
    return Endpoint(handle=handle, scope=Scope.INVOKE)


def _call(handle: Handle) -> Endpoint:
    return Endpoint(handle=handle, scope=Scope.INVOKE, is_call=True)
