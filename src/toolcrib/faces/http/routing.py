"""Which path means what: a tree of its words, found in one step for each."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote_to_bytes

from toolcrib.faces.http.problems import Refusal
from toolcrib.model.errors import Kind

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from toolcrib.crib.tokens import Scope
    from toolcrib.faces.http.wire import Answer, Request

    Handle = Callable[[Request], Awaitable[Answer]]

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
