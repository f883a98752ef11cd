"""Refuse requests for another host, and from web pages that are not allowed: neither DNS rebinding nor a foreign page gets in."""

from __future__ import annotations

import functools
import ipaddress
import re
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind
from toolcrib.toolkit.http.messages import REQUEST
from toolcrib.toolkit.http.problems import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import ASGIApp, Receive, Scope, Send

    from toolcrib.toolkit.http.messages import Header, Request

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
# A name, or an address in brackets, and perhaps a port.
_AUTHORITY = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9_.-]{1,253})(?::([0-9]{1,5}))?")
_ORIGIN = re.compile(r"https?://([^/?#@\s]+)")

ALLOWED_HEADERS = b"authorization, content-type, if-match, if-none-match, last-event-id, x-request-id"
SHOWN_HEADERS = b"etag, location, retry-after, x-request-id"
PREFLIGHT_SECONDS = b"600"


class HostCheck:
    """A layer that lets a request through if its host and its web page are allowed."""

    def __init__(self, app: ASGIApp, rules: HostRules) -> None:
        self._app = app
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the headers of a request before anything else looks at them."""
        request: Request = scope[REQUEST]
        request.check_headers()
        self._rules.check(request)
        await self._app(scope, receive, send)


class HostRules:
    """The hosts and the web pages that are allowed."""

    def __init__(self, bound: str, hosts: Iterable[str], origins: Iterable[str]) -> None:
        self._hosts = LOCAL_NAMES | {_spell_host(bound)} | {host.lower() for host in hosts}
        self._origins = frozenset(origin.lower().rstrip("/") for origin in origins)
        # The Host of nearly every request is the same.
        self._last = b""

    def check(self, request: Request) -> None:
        """Refuse a name that is not ours, and a page that is neither ours nor listed."""
        host = request.fields.get(b"host", b"")
        if host != self._last or not host:
            self._check_host(request, host.decode("latin-1").lower())
            self._last = host
        if b"origin" in request.fields and not self._is_allowed(request):
            message = (
                f"the web page {request.header(b'origin')[:200]!r} may not call this server; list it as http.origins"
            )
            raise Refusal(403, Kind.BLOCKED, message)

    def cross_headers(self, request: Request) -> tuple[Header, ...]:
        """What a browser has to be told for a listed page to read the answer."""
        origin = request.header(b"origin")
        if not origin or origin.lower() not in self._origins:
            return ()
        return (
            (b"access-control-allow-origin", origin.encode("latin-1")),
            (b"access-control-expose-headers", SHOWN_HEADERS),
            (b"vary", b"Origin"),
        )

    def preflight_headers(self, request: Request, allowed: bytes) -> tuple[Header, ...]:
        """What a browser has to be told before it sends a request of a listed page."""
        if not self.cross_headers(request) or not request.has(b"access-control-request-method"):
            return ()
        return (
            (b"access-control-allow-methods", allowed),
            (b"access-control-allow-headers", ALLOWED_HEADERS),
            (b"access-control-max-age", PREFLIGHT_SECONDS),
        )

    def _check_host(self, request: Request, host: str) -> None:
        parts = _AUTHORITY.fullmatch(host)
        if parts is None:
            raise Refusal(400, Kind.VALIDATION, "the header Host is missing or is no host; send the name of the server")
        if not {host, parts[1]} & self._hosts and parts[1] != _own_address(request):
            message = f"this server does not go by {host[:200]!r}; list the name as http.hosts in toolcrib.toml"
            raise Refusal(421, Kind.HOST_NOT_ALLOWED, message)

    def _is_allowed(self, request: Request) -> bool:
        origin = request.header(b"origin").lower()
        found = _ORIGIN.fullmatch(origin)
        return origin in self._origins or (found is not None and found[1] == request.header(b"host").lower())


@functools.lru_cache(maxsize=16)
def is_name_of_this_machine(host: bytes) -> bool:
    """Whether a Host is a name that every machine has for itself, and no other can be found by."""
    parts = _AUTHORITY.fullmatch(host.decode("latin-1").lower())
    if parts is None:
        return False
    if parts[1] in LOCAL_NAMES:
        return True
    try:
        return ipaddress.ip_address(parts[1].strip("[]")).is_loopback
    except ValueError:
        return False


def _own_address(request: Request) -> str:
    """The address that the connection came in at; no foreign name can be led to it, as it is none."""
    server = request.scope.get("server")
    address = str(server[0]) if isinstance(server, (tuple, list)) and server else ""
    return _spell_host(address) if re.fullmatch(r"[0-9.]+|[0-9a-f.]*:[0-9a-f.:]*", address) else ""


def _spell_host(address: str) -> str:
    """An address as Host spells it."""
    return f"[{address}]".lower() if ":" in address and not address.startswith("[") else address.lower()
