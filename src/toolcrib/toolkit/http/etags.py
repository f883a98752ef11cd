"""Entity tags: conditional requests with If-Match and If-None-Match."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError
from toolcrib.toolkit.http import Answer
from toolcrib.toolkit.http.contract import in_header
from toolcrib.toolkit.http.problems import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.toolkit.http import Header, Request

ETAGS = r'^(\*|(W/)?"[!#-~]*"( *, *(W/)?"[!#-~]*")*)$'
IF_MATCH = in_header("If-Match", "Change it only if this is its current ETag.", key="ifMatch", pattern=ETAGS)
IF_NONE_MATCH = in_header("If-None-Match", "Answer 304 if this is its current ETag.", key="ifNoneMatch", pattern=ETAGS)
ONLY_NEW = in_header("If-None-Match", "Create it only if it does not exist.", key="onlyNew", enum=["*"])

# At least one quoted text, weak or not, with commas between them.
_TAGS = re.compile(r'\s*(?:W/)?"[\x21\x23-\x7e]*"\s*(?:,\s*(?:W/)?"[\x21\x23-\x7e]*"\s*)*')
_TAG = re.compile(r'(W/)?("[\x21\x23-\x7e]*")')
ANY = "*"


def etag_header(etag: str) -> Header:
    """The ETag header of a response."""
    return (b"etag", etag.encode())


def wanted_etag(request: Request, current: Callable[[], str]) -> str:
    """The tag that must be current for a change to be made; empty if the client sets no condition.

    `current` reads the current tag, for a client that sends several tags or `*`; it raises if the resource does not exist.
    """
    if request.has(b"if-none-match"):
        _refuse_present(request, current)
    if not request.has(b"if-match"):
        return ""
    given = request.header(b"if-match").strip()
    tags = [] if given == ANY else _read(given, "If-Match")
    strong = [tag for is_weak, tag in tags if not is_weak]
    if len(strong) == 1 == len(tags):
        return strong[0]
    now = _now(request, current)
    if given == ANY or now in strong:
        return now
    raise Refusal(412, Kind.CONFLICT, "it has changed; read it again", details={"etag": now})


def unchanged(request: Request, etag: str) -> Answer | None:
    """The 304 response for a client with the current version; None for any other."""
    if not request.has(b"if-none-match"):
        return None
    given = request.header(b"if-none-match").strip()
    if given == ANY or any(tag == etag for _, tag in _read(given, "If-None-Match")):
        return Answer(status=304, headers=(etag_header(etag),))
    return None


def _refuse_present(request: Request, current: Callable[[], str]) -> None:
    """Refuse a PUT with `If-None-Match: *` if the resource exists.

    Checking before the write is enough: an existing tool is never changed, and two clients that create a bundle at the same
    time would need the same random id.
    """
    if request.method != "PUT" or request.header(b"if-none-match").strip() != ANY:
        message = "If-None-Match is for GET, or * for a PUT that creates; to change only the version you have read, send If-Match"
        raise Refusal(400, Kind.VALIDATION, message)
    if request.has(b"if-match"):
        message = "If-Match and If-None-Match: * contradict each other; send one of them"
        raise Refusal(400, Kind.VALIDATION, message)
    try:
        now = current()
    except ToolError as problem:
        if problem.kind is not Kind.NOT_FOUND:
            raise
        return
    raise Refusal(412, Kind.CONFLICT, "If-None-Match: it exists already", details={"etag": now})


def _now(request: Request, current: Callable[[], str]) -> str:
    try:
        return current()
    except ToolError as problem:
        if problem.kind is not Kind.NOT_FOUND or request.method != "PUT":
            raise
        raise Refusal(412, Kind.CONFLICT, f"If-Match: {problem.message}", details={"etag": ""}) from problem


def _read(given: str, name: str) -> list[tuple[bool, str]]:
    if not _TAGS.fullmatch(given):
        message = f'{name}: write tags as responses have them, such as "…", or *'
        raise Refusal(400, Kind.VALIDATION, message)
    return [(bool(weak), tag) for weak, tag in _TAG.findall(given)]
