"""Read a path as it was sent, before anything decodes it, and send calls of tools past the router."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote_to_bytes

from toolcrib.interfaces.http.routes import PathEndpoints
from toolcrib.model.errors import Kind
from toolcrib.toolkit.http.messages import REQUEST
from toolcrib.toolkit.http.problems import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from starlette.routing import Route
    from starlette.types import ASGIApp, Receive, Scope, Send

    Found = tuple[str, "_CallPath | None", dict[str, str]]

PATHS_KEPT = 4_096
LONGEST_KEPT = 400
# Nothing in it is encoded or would have to be.
_PLAIN = re.compile(r"[!-$&-~]*")
_HALF_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


class PathCheck:
    """A layer that sets `path` of the scope from `raw_path`, each word in its one percent-encoded spelling.

    So an encoded slash separates nothing, and two spellings of a path cannot be judged differently. A call of a tool goes
    straight to its endpoint: the router would try one route after the other, which costs more than the rest of the way.
    """

    def __init__(self, router: ASGIApp, routes: Iterable[Route], guard: Callable[[ASGIApp], ASGIApp]) -> None:
        self._router = guard(router)
        self._calls = [
            _CallPath(route, route.app, guard(route.app))
            for route in routes
            if isinstance(route.app, PathEndpoints) and route.app.has_calls
        ]
        # The same few paths are asked for again and again.
        self._known = lru_cache(PATHS_KEPT)(self._read)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; raises for a path that is no text."""
        raw = scope.get("raw_path")
        if raw is None:
            raw = quote(scope["path"]).encode()
        path, call, words = self._known(raw) if len(raw) <= LONGEST_KEPT else self._read(raw)
        scope["path"] = path
        if call is not None and call.endpoints.is_call(scope["method"]):
            scope[REQUEST].is_call = True
            scope["path_params"] = words
            await call.app(scope, receive, send)
            return
        await self._router(scope, receive, send)

    def _read(self, raw: bytes) -> Found:
        path = _spell(raw)
        for call in self._calls:
            match = call.route.path_regex.match(path)
            if match is not None:
                convertors = call.route.param_convertors
                return path, call, {name: convertors[name].convert(word) for name, word in match.groupdict().items()}
        return path, None, {}


class _CallPath:
    """A path with a method that calls a tool, and its endpoints behind their guard."""

    def __init__(self, route: Route, endpoints: PathEndpoints, app: ASGIApp) -> None:
        self.route = route
        self.endpoints = endpoints
        self.app = app


def _spell(raw: bytes) -> str:
    """The one spelling of a path."""
    path = raw.decode("latin-1")
    if _PLAIN.fullmatch(path):
        return path
    try:
        return "/".join(quote(_decode(word), safe="") for word in path.split("/"))
    except (UnicodeError, ValueError):
        message = "the path is no text; write other than ASCII letters as percent-encoded UTF-8"
        raise Refusal(400, Kind.VALIDATION, message) from None


def _decode(word: str) -> str:
    if not word.isascii() or _HALF_ESCAPE.search(word):
        raise ValueError
    return unquote_to_bytes(word).decode("utf-8")
