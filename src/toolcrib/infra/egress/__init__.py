"""Outgoing connections: strict URLs, checked addresses, own redirects, bounded bodies.

Here: requests and responses. Build the request after a redirect, and tell JSON, text and binary bodies apart. What a response declares
counts only if its bytes agree.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from toolcrib.infra.settings import Table, read_words, setting
from toolcrib.lib.http_syntax import check_header, check_method, follow_reference
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import SAFE_METHODS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolcrib.lib.http_syntax import Url


class EgressSettings(Table, name="egress"):
    """What connections of tools may reach besides public addresses."""

    private: tuple[str, ...] = setting(
        default=(), read=read_words, summary="private addresses that may be reached, each as `host:port`"
    )


TEXT_TYPES = frozenset(
    {
        "application/ecmascript",
        "application/graphql",
        "application/javascript",
        "application/json",
        "application/ndjson",
        "application/sql",
        "application/toml",
        "application/x-javascript",
        "application/x-ndjson",
        "application/x-www-form-urlencoded",
        "application/x-yaml",
        "application/xml",
        "application/yaml",
    }
)
# The character sets of the web. Python has more codecs, some of which are not text encodings.
CHARSETS = frozenset(
    {"utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "ascii", "koi8-r", "koi8-u", "mac-roman"}
    | {f"iso8859-{part}" for part in (*range(1, 12), *range(13, 17))}
    | {f"cp{page}" for page in (866, 874, 932, 949, 950, *range(1250, 1259))}
    | {"gb2312", "gbk", "gb18030", "big5", "big5hkscs", "euc_jp", "euc_kr", "iso2022_jp", "shift_jis"}
)
# A byte order mark belongs to the encoding, not to the text.
UTF_8 = "utf-8-sig"
MOVED = frozenset({301, 302})
SEE_OTHER = 303
REDIRECTS = MOVED | {SEE_OTHER, 307, 308}
MAX_REDIRECTS = 5
CREDENTIALS = frozenset({"authorization", "cookie"})

_MEDIA_TYPE = re.compile(r"\s*([a-z0-9!#$&^_.+-]{1,60}/[a-z0-9!#$&^_.+-]{1,60})\s*(?:;|$)", re.ASCII)
_CHARSET = re.compile(r";\s*charset\s*=\s*\"?([a-z0-9_.:+-]{1,40})\"?\s*(?:;|$)", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """A request. `secret_headers` must not follow a redirect to another origin.

    `sign` adds credentials to the request when it is sent, again at every redirect within the origin and at none beyond it: what
    it signs is what is sent. Headers and body are not in the repr because they may contain secrets.
    """

    url: Url
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | None = field(default=None, repr=False)
    secret_headers: frozenset[str] = frozenset()
    sign: Callable[[Request], Request] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_method(self.method)
        for name, value in self.headers.items():
            check_header(name, value)

    def signed(self) -> Request:
        """The request with its credentials, as it is sent now; one that has them already stays as it is."""
        return self if self.sign is None else replace(self.sign(self), sign=None)

    @property
    def size(self) -> int:
        """The size of headers and body in bytes."""
        size = len(self.body or b"")
        for name, value in self.headers.items():
            size += len(name) + (len(value) if value.isascii() else len(value.encode()))
        return size

    @property
    def has_effects(self) -> bool:
        """Whether sending the request may have changed something."""
        return self.method not in SAFE_METHODS


@dataclass(frozen=True, kw_only=True, slots=True)
class Response:
    """A response. Header names are lower case, repeated headers joined; `hops` counts the redirects before it."""

    url: Url
    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    hops: int = 0

    @property
    def location(self) -> str | None:
        """The target of a redirect, or None."""
        return self.headers.get("location") if self.status in REDIRECTS else None


def redirect(request: Request, status: int, url: Url) -> Request:
    """The request after a redirect; to another origin without credentials and body."""
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
        sign=None if crosses else request.sign,
    )


def next_request(request: Request, response: Response, hops: int) -> Request:
    """The request that a redirect asks for, which is the one of this number."""
    if hops > MAX_REDIRECTS:
        raise ToolError(Kind.PERMANENT, f"more than {MAX_REDIRECTS} redirects")
    return redirect(request, response.status, follow_reference(response.url, response.location or ""))


def redirected(error: ToolError, origin: str, *, has_effects: bool) -> ToolError:
    """The error after a redirect; an invalid URL in a redirect is not the caller's mistake."""
    return error.replace(
        kind=Kind.PERMANENT if error.kind is Kind.VALIDATION else error.kind,
        reason=f"redirected by {origin}: {error.reason}",
        partial_side_effects=error.partial_side_effects or has_effects,
        details={**error.details, "redirectedBy": origin},
    )


def read_media_type(content_type: str) -> str:
    """The media type in lower case without parameters; empty if there is none."""
    found = _MEDIA_TYPE.match(content_type.lower())
    return found[1] if found else ""


def is_json(media_type: str) -> bool:
    """Whether the media type is JSON."""
    return media_type in {"application/json", "text/json"} or media_type.endswith("+json")


def text_of(response: Response) -> str | None:
    """The text of the body, or None if it is not declared as text or does not decode."""
    declared = response.headers.get("content-type", "").lower()
    return decode_text(response.body, declared) if _is_text(read_media_type(declared)) else None


def decode_text(body: bytes, content_type: str) -> str | None:
    """Decode the body in its declared character set, UTF-8 by default; None if it does not decode."""
    codec = codec_of(content_type)
    try:
        return None if codec is None else body.decode(codec)
    except UnicodeDecodeError:
        return None


def codec_of(content_type: str) -> str | None:
    """The codec of the declared character set, UTF_8 by default; None for one that is not supported."""
    charset = _CHARSET.search(content_type.lower())
    if charset is None:
        return UTF_8
    try:
        name = codecs.lookup(charset[1]).name
    except LookupError:
        return None
    if name not in CHARSETS:
        return None
    return UTF_8 if name == "utf-8" else name


def describe_binary(response: Response) -> str:
    """A sentence in place of a binary body."""
    media_type = read_media_type(response.headers.get("content-type", "")) or "unknown"
    return f"Binary content of type {media_type}, {len(response.body)} bytes; not shown."


def _is_text(media_type: str) -> bool:
    return media_type.startswith("text/") or media_type in TEXT_TYPES or media_type.endswith(("+json", "+xml", "+yaml"))
