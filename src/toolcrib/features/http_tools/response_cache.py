"""Cache answers: reuse one while it is fresh, and revalidate it with a conditional request when it is not.

An answer is cached for one caller, one request with all its values and secrets, and one definition of the tool. The author of a
tool asks for it (`cache: {seconds: 60}`), the server may shorten it (`Cache-Control`), and the size of the cache is limited.
"""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolcrib.lib.document_fields import Fields, Report
from toolcrib.lib.http_syntax import is_sendable
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import READING_METHODS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from toolcrib.infra.egress import Request, Response

MAX_SECONDS = 86_400
MAX_ENTRIES = 1_000
OK = 200
NOT_MODIFIED = 304
VALIDATORS = {"etag": "If-None-Match", "last-modified": "If-Modified-Since"}
CONDITIONS = frozenset(name.lower() for name in VALIDATORS.values())

_MAX_AGE = re.compile(r"(?:^|,)\s*(?:max-age|s-maxage)\s*=\s*\"?(\d{1,9})\"?\s*(?=,|$)", re.IGNORECASE)
_AGE = re.compile(r"[0-9]{1,9}")
_DIRECTIVE = re.compile(r"(?:^|,)\s*(no-store|no-cache)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CacheRule:
    """For how many seconds an answer may be used without asking the server."""

    seconds: int


def compile_cache(written: Mapping[str, object], method: str) -> CacheRule | None:
    """Read what the author of a request allows, None where nothing is said; raises ToolError for what cannot be."""
    if not written:
        return None
    report = Report()
    fields = Fields(report, written)
    for name, meant in fields.unknown_keys(("seconds",)):
        fields.refuse(name, f"is unknown; did you mean {meant}?" if meant else "is unknown; write seconds")
    fields.require({"seconds": "60"})
    seconds = fields.whole("seconds", at_least=0, at_most=MAX_SECONDS, default=60)
    if method not in READING_METHODS:
        report.refuse((), f"answers of {method} are not used again; leave cache out, or use GET")
    if report.problems:
        raise ToolError(Kind.VALIDATION, "; ".join(report.problems))
    return CacheRule(seconds)


@dataclass(frozen=True, slots=True)
class CachedResponse:
    """A cached answer, and until when (time.monotonic) it is fresh."""

    response: Response
    fresh_until: float

    def conditions(self) -> dict[str, str]:
        """The headers that ask whether the answer has changed."""
        headers = self.response.headers
        # A received header value may be one that cannot be sent; such an answer is requested without conditions.
        return {
            condition: headers[name]
            for name, condition in VALIDATORS.items()
            if headers.get(name) and is_sendable(headers[name])
        }


class ResponseCache:
    """Answers by a digest of what they answer, the least recently used dropped first; `max_bytes` bounds their bodies and headers."""

    def __init__(self, max_bytes: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_bytes = max_bytes
        self._clock = clock
        self._kept: OrderedDict[bytes, CachedResponse] = OrderedDict()
        self._bytes = 0
        # Several event loops, each in its own thread, share the cache.
        self._changing = threading.RLock()

    def get(self, key: bytes) -> CachedResponse | None:
        """The answer, fresh or not."""
        with self._changing:
            kept = self._kept.get(key)
            if kept is not None:
                self._kept.move_to_end(key)
            return kept

    def is_fresh(self, kept: CachedResponse) -> bool:
        """Whether it may be used without asking the server."""
        return self._clock() < kept.fresh_until

    def keep(self, key: bytes, response: Response, rule: CacheRule) -> None:
        """Cache an answer, if its server allows it and it fits."""
        self.drop(key)
        control = response.headers.get("cache-control", "")
        directives = {found.lower() for found in _DIRECTIVE.findall(control)}
        is_whole = response.status == OK and response.hops == 0 and response.headers.get("vary", "").strip() != "*"
        if "no-store" in directives or not is_whole or _size(response) > self._max_bytes // 4:
            return
        seconds = 0 if "no-cache" in directives else rule.seconds
        if ages := _MAX_AGE.findall(control):
            # A proxy may have cached the answer for a part of its lifetime.
            spent = int(found[0]) if (found := _AGE.fullmatch(response.headers.get("age", ""))) else 0
            seconds = min(seconds, *(max(0, int(age) - spent) for age in ages))
        kept = CachedResponse(response, self._clock() + seconds)
        if not seconds and not kept.conditions():
            return
        with self._changing:
            self.drop(key)
            self._kept[key] = kept
            self._bytes += _size(response)
            while self._bytes > self._max_bytes or len(self._kept) > MAX_ENTRIES:
                self.drop(next(iter(self._kept)))

    def drop(self, key: bytes) -> None:
        """Forget an answer."""
        with self._changing:
            kept = self._kept.pop(key, None)
            if kept is not None:
                self._bytes -= _size(kept.response)


def _size(response: Response) -> int:
    return len(response.body) + sum(len(name) + len(value) for name, value in response.headers.items())


def cache_key(tool: str, caller: str, request: Request, secrets: Iterable[object]) -> bytes:
    """A digest of everything that an answer depends on, from which the secrets in it cannot be read."""
    parts = (
        *(tool, caller, request.method, str(request.url), *(str(secret) for secret in secrets), ""),
        *(part for name, value in request.headers.items() for part in (name.lower(), value)),
    )
    digest = hashlib.blake2b(digest_size=32)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.digest()


def ask_whether_changed(request: Request, kept: CachedResponse) -> Request:
    """The request with conditions, unless its author wrote some."""
    if any(name.lower() in CONDITIONS for name in request.headers):
        return request
    return replace(request, headers={**request.headers, **kept.conditions()})


def refreshed(kept: CachedResponse, response: Response) -> Response:
    """The cached answer, with the headers of the server's confirmation."""
    return replace(kept.response, headers={**kept.response.headers, **response.headers})
