"""Request the further pages of an answer, and refuse a next page that was read before or lies on another host.

| `type` | the next page |
|---|---|
| `cursor` | the request with the value at `next` as `parameter` |
| `page` | the request with the next number as `parameter`, from `first` (1) on |
| `offset` | the request with the number of items so far as `parameter`, from `first` (0) on |
| `link` | the URL of the header `Link` with `rel="next"` |
| `url` | the URL at `next` |

`items` is where the items of a page are; without it the page itself is the list.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING
from urllib.parse import unquote_plus

import orjson

from toolcrib.features.http_tools.extraction import compile_json_path, is_json_path
from toolcrib.lib.document_fields import Fields, Report
from toolcrib.lib.http_syntax import follow_reference, parse_url
from toolcrib.lib.templates import as_url_part
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolcrib.infra.egress import Request, Response
    from toolcrib.lib.http_syntax import Url

    Find = Callable[[object, None], list[object]]

PAGES = 10
MAX_PAGES = 1_000
MAX_FIRST = 1_000_000
MAX_SIZE = 100_000
SHOWN = 80
KEYS = ("type", "parameter", "in", "next", "items", "first", "size", "pages", "truncate")

_LINK = re.compile(r"<([^<>]*)>([^<]*)")
_NEXT = re.compile(r""";\s*rel\s*=\s*(?:"(?:[^"]*\s)?next(?:\s[^"]*)?"|next(?=\s*(?:[;,]|$)))""", re.IGNORECASE)


class PaginationKind(StrEnum):
    """How the next page is asked for."""

    CURSOR = "cursor"
    PAGE = "page"
    OFFSET = "offset"
    LINK = "link"
    URL = "url"


class Carrier(StrEnum):
    """What carries the parameter."""

    QUERY = "query"
    BODY = "body"


NUMBERED = frozenset({PaginationKind.PAGE, PaginationKind.OFFSET})
LED_BY_VALUE = frozenset({PaginationKind.CURSOR, PaginationKind.URL})
LED_BY_URL = frozenset({PaginationKind.LINK, PaginationKind.URL})


@dataclass(frozen=True, kw_only=True, slots=True)
class Pagination:
    """How the pages of an answer are asked for; at most `pages`, and one that would be more is left unread if `truncate`."""

    type: PaginationKind
    parameter: str
    carrier: Carrier
    next: Find | None
    items: Find | None
    where: str
    first: int
    size: int
    pages: int
    truncate: bool

    def items_of(self, page: object, *, is_first: bool) -> list[object]:
        """The items of a page; raises ToolError if there is no list of items."""
        found = [page] if self.items is None else self.items(page, None)
        if not found and is_first:
            message = f"the answer has nothing at {self.where[:SHOWN]!r}; look at what the server sends"
            raise ToolError(Kind.OUTPUT_INVALID, message, details={"items": self.where})
        if len(found) != 1:
            return found
        if found[0] is None:
            return []
        if not isinstance(found[0], list):
            message = f"what is at {self.where[:SHOWN]!r} is not a list; say in items where the list of items is"
            raise ToolError(Kind.OUTPUT_INVALID, message, details={"items": self.where})
        return found[0]


def compile_pagination(written: Mapping[str, object]) -> Pagination | None:
    """Read how pages are asked for, None where nothing is said; raises ToolError for what cannot be."""
    if not written:
        return None
    report = Report()
    fields = Fields(report, written)
    for name, meant in fields.unknown_keys(KEYS):
        fields.refuse(name, f"is unknown; did you mean {meant}?" if meant else f"is unknown; write {', '.join(KEYS)}")
    fields.require({"type": '"cursor", "page", "offset", "link" or "url"'})
    kind = fields.word("type", PaginationKind, PaginationKind.LINK)
    needed = {"parameter": '"cursor"'} if kind not in LED_BY_URL else {}
    fields.require(needed | ({"next": '"$.next"'} if kind in LED_BY_VALUE else {}))
    pagination = Pagination(
        type=kind,
        parameter=fields.text("parameter", may_be_empty=False, longest=SHOWN),
        carrier=fields.word("in", Carrier, Carrier.QUERY),
        next=_path(fields, "next"),
        items=_path(fields, "items"),
        where=fields.text("items") or "$",
        first=fields.whole("first", at_least=0, at_most=MAX_FIRST, default=1 if kind is PaginationKind.PAGE else 0),
        size=fields.whole("size", at_least=0, at_most=MAX_SIZE, default=0),
        pages=fields.whole("pages", at_least=1, at_most=MAX_PAGES, default=PAGES),
        truncate=fields.switch("truncate") is True,
    )
    if report.problems:
        raise ToolError(Kind.VALIDATION, "; ".join(report.problems))
    return pagination


def _path(fields: Fields, name: str) -> Find | None:
    expression = fields.text(name, may_be_empty=False)
    if not expression:
        return None
    if not is_json_path(expression):
        fields.refuse(name, 'is not a JSONPath; write it like "$.items"')
        return None
    try:
        return compile_json_path(expression)
    except ToolError as problem:
        fields.refuse(name, problem.message)
        return None


class Pager:
    """Gives the request for each next page of one call; refuses a page that was read before."""

    def __init__(self, pagination: Pagination, request: Request) -> None:
        self._pagination = pagination
        self._request = request
        self._number = pagination.first
        self._seen: set[str] = {str(request.url)}
        self._digest = b""

    def first(self) -> Request:
        """The request for the first page."""
        if self._pagination.type in NUMBERED:
            return self._with(self._number)
        return self._request

    def following(self, response: Response, page: object, count: int) -> Request | None:
        """The request for the page after this one, which has so many items; None if it is the last."""
        pagination = self._pagination
        if pagination.type in NUMBERED:
            return self._next_number(response, count)
        if pagination.type is PaginationKind.LINK:
            reference: object = _next_link(response.headers.get("link", ""))
        else:
            found = [] if pagination.next is None else pagination.next(page, None)
            reference = found[0] if found else None
        if reference is None or reference is False or reference == "":
            return None
        if isinstance(reference, bool) or not isinstance(reference, str | int):
            raise self._refusal(f"what names the next page is {type(reference).__name__} and no text")
        if pagination.type is PaginationKind.CURSOR:
            self._refuse_seen(str(reference))
            return self._with(reference)
        url = self._url(response, str(reference))
        self._refuse_seen(str(url))
        return replace(self._request, url=url)

    def _next_number(self, response: Response, count: int) -> Request | None:
        pagination = self._pagination
        if count == 0 or count < pagination.size:
            return None
        digest = hashlib.blake2b(response.body).digest()
        if digest == self._digest:
            raise self._refusal(f"the same page came twice, so the server may not know {pagination.parameter!r}")
        self._digest = digest
        self._number += 1 if pagination.type is PaginationKind.PAGE else count
        return self._with(self._number)

    def _url(self, response: Response, reference: str) -> Url:
        """The URL of the next page, which lies at the origin of the first: credentials are for no other."""
        try:
            url = follow_reference(response.url, reference)
        except ToolError as problem:
            raise self._refusal(f"what names the next page is not a URL: {problem.message}") from None
        origin = self._request.url.origin
        if url.origin != origin:
            message = (
                f"{origin}: the next page is said to be at {url.origin}, which is another host; it was not asked for"
            )
            raise ToolError(Kind.HOST_NOT_ALLOWED, message, details={"origin": origin, "host": url.host})
        return url

    def _refuse_seen(self, name: str) -> None:
        if name in self._seen:
            raise self._refusal("the server names a page as the next one that was read before")
        self._seen.add(name)

    def _with(self, value: str | int) -> Request:
        """The request with a parameter."""
        request, name = self._request, self._pagination.parameter
        if self._pagination.carrier is Carrier.QUERY:
            try:
                return replace(request, url=with_field(request.url, name, str(value)))
            except ToolError as problem:
                raise self._refusal(f"what names the next page cannot be sent: {problem.message}") from None
        try:
            body = orjson.loads(request.body or b"{}")
        except orjson.JSONDecodeError:
            body = None
        if not isinstance(body, dict):
            raise ToolError(Kind.VALIDATION, f"pagination: the body is not a JSON object that could take {name!r}")
        return replace(request, body=orjson.dumps({**body, name: value}))

    def _refusal(self, reason: str) -> ToolError:
        origin = self._request.url.origin
        return ToolError(Kind.OUTPUT_INVALID, f"{origin}: {reason}", details={"origin": origin})


def with_field(url: Url, name: str, value: str) -> Url:
    """The URL with a field of its query set, in place of those of that name."""
    path, _, query = url.target.partition("?")
    kept = [field for field in query.split("&") if field and unquote_plus(field.partition("=")[0]) != name]
    target = f"{path}?{'&'.join([*kept, f'{as_url_part(name)}={as_url_part(value)}'])}"
    return parse_url(url.origin + target)


def _next_link(header: str) -> str | None:
    """The target of the link with the relation `next`, as RFC 8288 writes links."""
    for target, parameters in _LINK.findall(header):
        if _NEXT.search(parameters):
            return str(target).strip()
    return None
