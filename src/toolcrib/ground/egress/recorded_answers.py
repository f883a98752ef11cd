"""Recorded answers, read once and found by what a request asks for."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote

from toolcrib.ground.egress.wire import HOP_BY_HOP, WITHOUT_BODY
from toolcrib.model.errors import Kind, ToolError
from toolcrib.pure.headers import check_method
from toolcrib.pure.url import parse_url

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolcrib.model.toolrequest import RecordedAnswer
    from toolcrib.pure.url import Url

    # Method, origin, path, and the query where it matters, whatever the order of its parts.
    Key = tuple[str, str, str, tuple[tuple[str, str], ...] | None]

LOWEST_STATUS, HIGHEST_STATUS = 200, 599
# What a server in earnest says, so that no tool is told by it that it is on trial.
PHRASES = {
    200: "OK",
    201: "Created",
    202: "Accepted",
    204: "No Content",
    301: "Moved Permanently",
    302: "Found",
    303: "See Other",
    304: "Not Modified",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    409: "Conflict",
    422: "Unprocessable Entity",
    429: "Too Many Requests",
    500: "Internal Server Error",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
}
# The body is kept as text, as it reads without these.
REWRITTEN = HOP_BY_HOP | {"content-encoding"}

_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE = re.compile(r"[\t -~\x80-\xff]*")


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """What is sent back."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def encode(self, method: str, *, stays: bool) -> bytes:
        """The whole message; `stays` says that the connection is there for more."""
        lines = [
            f"HTTP/1.1 {self.status} {PHRASES.get(self.status, '')}",
            *(f"{name}: {value}" for name, value in self.headers),
        ]
        if self.status not in WITHOUT_BODY:
            lines.append(f"Content-Length: {len(self.body)}")
        lines += [f"Connection: {'keep-alive' if stays else 'close'}", "", ""]
        has_body = method != "HEAD" and self.status not in WITHOUT_BODY
        return "\r\n".join(lines).encode("latin-1") + (self.body if has_body else b"")


class Answers:
    """The replies to each request, in their order; raises ToolError for an answer that no server could give."""

    def __init__(self, answers: Iterable[RecordedAnswer]) -> None:
        self._replies: dict[Key, list[Reply]] = {}
        self._places: set[tuple[str, str, int]] = set()
        for number, answer in enumerate(answers, start=1):
            try:
                self._add(answer)
            except ToolError as problem:
                raise ToolError(Kind.VALIDATION, f"recorded answer {number}: {problem.message}") from problem

    def begin(self) -> Turns:
        """From the first answer on."""
        return Turns(self._replies)

    def scheme_at(self, host: str, port: int) -> str:
        """What is spoken there, empty if nobody is there."""
        return next((scheme for scheme in ("https", "http") if (scheme, host, port) in self._places), "")

    def _add(self, answer: RecordedAnswer) -> None:
        method, url = answer.method.upper(), parse_url(answer.url)
        check_method(method)
        self._places.add((url.scheme, url.host, url.port))
        query = _query_of(url) if "?" in url.target else None
        self._replies.setdefault((method, url.origin, path_of(url), query), []).append(_read(answer))


class Turns:
    """How far one job has come through the answers."""

    def __init__(self, replies: dict[Key, list[Reply]]) -> None:
        self._replies = replies
        self._given: dict[Key, int] = {}

    def next(self, method: str, url: Url) -> Reply | None:
        """The next reply to a request, of which the last one is repeated; None if there is none."""
        key = next((key for key in _keys(method, url) if key in self._replies), None)
        if key is None:
            return None
        replies, place = self._replies[key], self._given.get(key, 0)
        self._given[key] = place + 1
        return replies[min(place, len(replies) - 1)]


def path_of(url: Url) -> str:
    """The path in its one spelling, without the query, which may hold a secret."""
    return unquote(url.target.partition("?")[0])


def _keys(method: str, url: Url) -> list[Key]:
    """Under which keys a reply may stand: with the query before without, and HEAD may use what GET would say."""
    methods = (method, "GET") if method == "HEAD" else (method,)
    return [(way, url.origin, path_of(url), query) for way in methods for query in (_query_of(url), None)]


def _query_of(url: Url) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(parse_qsl(url.target.partition("?")[2], keep_blank_values=True)))


def _read(answer: RecordedAnswer) -> Reply:
    if not LOWEST_STATUS <= answer.status <= HIGHEST_STATUS:
        message = f"status {answer.status} ends no request; write one from {LOWEST_STATUS} to {HIGHEST_STATUS}"
        raise ToolError(Kind.VALIDATION, message)
    headers = [(name, value) for name, value in answer.headers.items() if name.lower() not in REWRITTEN]
    for name, value in headers:
        if _NAME.fullmatch(name) is None or _VALUE.fullmatch(value) is None:
            message = f"header {name[:40]!r} is no header; write its name and value on one line, in Latin letters"
            raise ToolError(Kind.VALIDATION, message)
    if answer.body and not any(name.lower() == "content-type" for name, _ in headers):
        headers.append(("Content-Type", "application/json" if _is_json(answer.body) else "text/plain; charset=utf-8"))
    try:
        body = answer.body.encode()
    except UnicodeEncodeError:
        raise ToolError(Kind.VALIDATION, "its body holds half a character; write the whole of it") from None
    return Reply(status=answer.status, headers=tuple(headers), body=body)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
