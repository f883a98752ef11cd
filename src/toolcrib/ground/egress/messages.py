"""What is sent and what comes back, and what becomes of a request when it is redirected."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from toolcrib.pure.headers import SAFE_METHODS, check_header, check_method

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.pure.url import Url

MOVED = frozenset({301, 302})
SEE_OTHER = 303
REDIRECTS = MOVED | {SEE_OTHER, 307, 308}
CREDENTIALS = frozenset({"authorization", "cookie"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One request. `secret_headers` names the headers that must not follow a redirect to another origin.

    Headers and body stay out of the representation because they may hold secrets.
    """

    url: Url
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | None = field(default=None, repr=False)
    secret_headers: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        check_method(self.method)
        for name, value in self.headers.items():
            check_header(name, value)

    @property
    def size(self) -> int:
        """Bytes of headers and body."""
        headers = sum(len(name.encode()) + len(value.encode()) for name, value in self.headers.items())
        return headers + len(self.body or b"")

    @property
    def has_effects(self) -> bool:
        """Whether something may have changed once the request was sent."""
        return self.method not in SAFE_METHODS


@dataclass(frozen=True, kw_only=True, slots=True)
class Response:
    """What came back. Header names are in lower case, repeated headers joined; `hops` counts the redirects before it."""

    url: Url
    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    hops: int = 0

    @property
    def location(self) -> str | None:
        """Where the response redirects to, or None."""
        return self.headers.get("location") if self.status in REDIRECTS else None


def redirect(request: Request, status: int, url: Url) -> Request:
    """The request that follows a redirect; to another origin it takes neither credentials nor body along."""
    crosses = url.origin != request.url.origin
    becomes_get = request.method == "POST" if status in MOVED else status == SEE_OTHER and request.method != "HEAD"
    bare = crosses or becomes_get
    secrets = CREDENTIALS | {name.lower() for name in request.secret_headers} if crosses else frozenset()
    headers = {
        name: value
        for name, value in request.headers.items()
        if name.lower() not in secrets and not (bare and name.lower().startswith("content-"))
    }
    return replace(
        request,
        url=url,
        method="GET" if becomes_get else request.method,
        headers=headers,
        body=None if bare else request.body,
    )
