"""Write errors as problem details (RFC 9457): a status, a kind, a reason and its cure."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING

import orjson

from toolcrib.model.errors import NO_CURE, RETRY_AFTER, Cure, Kind, Reader, ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping

    Header = tuple[bytes, bytes]

# Statuses of refusals; once the tool runs, the status of a call is 200.
STATUSES: Mapping[Kind, int] = MappingProxyType(
    {
        Kind.VALIDATION: 400,
        Kind.AUTH: 403,
        Kind.BLOCKED: 403,
        Kind.CAPABILITY_MISSING: 403,
        Kind.HOST_NOT_ALLOWED: 403,
        Kind.MODE_RESTRICTED: 403,
        Kind.NOT_FOUND: 404,
        Kind.CIRCULAR_DEPENDENCY: 409,
        Kind.CHAIN_TOO_DEEP: 409,
        Kind.CONFIRMATION_REQUIRED: 409,
        Kind.CONFLICT: 409,
        Kind.DISABLED: 409,
        Kind.EXECUTOR_NOT_FOUND: 409,
        Kind.OUTPUT_INVALID: 409,
        Kind.PERMANENT: 409,
        Kind.SANDBOX_UNAVAILABLE: 409,
        Kind.SESSION_INACTIVE: 409,
        Kind.LIMIT_EXCEEDED: 413,
        Kind.BUDGET_EXCEEDED: 429,
        Kind.LOOP_DETECTED: 429,
        Kind.OVERLOADED: 429,
        Kind.RATE_LIMIT: 429,
        Kind.INTERNAL: 500,
        Kind.CANCELLED: 503,
        Kind.TIMEOUT: 503,
        Kind.TRANSIENT: 503,
    }
)
TITLES: Mapping[int, str] = MappingProxyType(
    {
        400: "Bad Request",
        401: "Unauthorized",
        403: "Forbidden",
        404: "Not Found",
        405: "Method Not Allowed",
        408: "Request Timeout",
        409: "Conflict",
        412: "Precondition Failed",
        413: "Content Too Large",
        415: "Unsupported Media Type",
        421: "Misdirected Request",
        429: "Too Many Requests",
        500: "Internal Server Error",
        503: "Service Unavailable",
    }
)
# Kinds that get a Retry-After header even if the error has no `retryAfter`.
SOON = frozenset({Kind.OVERLOADED, Kind.RATE_LIMIT, Kind.TRANSIENT, Kind.TIMEOUT, Kind.CANCELLED})
PROBLEMS = "problems"
ETAG = "etag"
# Refusals that the server itself writes: each status with its title and kind.
REFUSALS: Mapping[int, tuple[str, Kind]] = MappingProxyType(
    {
        400: ("Bad Request", Kind.VALIDATION),
        408: ("Request Timeout", Kind.TIMEOUT),
        414: ("URI Too Long", Kind.LIMIT_EXCEEDED),
        429: ("Too Many Requests", Kind.OVERLOADED),
        431: ("Request Header Fields Too Large", Kind.LIMIT_EXCEEDED),
        503: ("Service Unavailable", Kind.CANCELLED),
        504: ("Gateway Timeout", Kind.TIMEOUT),
    }
)
COME_AGAIN = frozenset({408, 429, 503, 504})


class Refusal(ToolError):  # noqa: N818 - a refusal of the client's request, not an error of ours
    """A refusal with its own HTTP status and headers."""

    status: int
    headers: tuple[Header, ...]

    def __init__(
        self,
        status: int,
        kind: Kind,
        reason: str,
        *,
        cure: Cure | str = NO_CURE,
        headers: tuple[Header, ...] = (),
        details: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(
            kind, reason, cure=cure, details=details, retryable=details is not None and RETRY_AFTER in details
        )
        self.status = status
        self.headers = headers


def challenge(*, error: str = "", scope: str = "", metadata_url: bytes = b"") -> Header:
    """The WWW-Authenticate header: which token is needed, and where its metadata is."""
    said = [b'error="%b"' % error.encode()] if error else []
    said += [b'scope="%b"' % scope.encode()] if scope else []
    said += [b'resource_metadata="%b"' % metadata_url] if metadata_url else []
    return b"www-authenticate", b" ".join((b"Bearer", b", ".join(said))).rstrip()


def status_of(error: ToolError) -> int:
    """The HTTP status of an error."""
    if isinstance(error, Refusal):
        return error.status
    if error.kind is Kind.CONFLICT and ETAG in error.details:
        return 412
    return STATUSES[error.kind]


def headers_of(error: ToolError) -> tuple[Header, ...]:
    """The headers of an error response: Retry-After, WWW-Authenticate and the like."""
    own = error.headers if isinstance(error, Refusal) else ()
    wait = error.retry_after
    if wait is None and (isinstance(error, Refusal) or error.kind not in SOON):
        return own
    return (*own, retry_after(wait or 0))


def retry_after(seconds: float) -> Header:
    """The Retry-After header."""
    return b"retry-after", b"%d" % max(1, math.ceil(seconds))


def problem_of(error: ToolError, request_id: str, reader: Reader = Reader.CLIENT) -> dict[str, object]:
    """The problem details of an error, worded for its reader; the list of problems is a separate key."""
    status, error = status_of(error), error.told_to(reader)
    details = dict(error.details)
    problems = details.pop(PROBLEMS, None)
    document: dict[str, object] = {
        "type": f"/docs#{error.kind}",
        "title": TITLES[status],
        "status": status,
        "detail": error.message,
        "instance": request_id,
        "kind": str(error.kind),
        "retryable": error.retryable,
    }
    if details:
        document["details"] = details
    if isinstance(problems, (list, tuple)):
        document[PROBLEMS] = [str(problem) for problem in problems]
    return document


def refusal(status: int, message: str) -> tuple[list[Header], bytes]:
    """Headers and body of a refusal after which the connection is closed."""
    title, kind = REFUSALS[status]
    body = orjson.dumps(
        {
            "type": f"/docs#{kind}",
            "title": title,
            "status": status,
            "detail": message,
            "kind": str(kind),
            "retryable": status in COME_AGAIN,
        }
    )
    headers = [
        (b"content-type", b"application/problem+json"),
        (b"content-length", b"%d" % len(body)),
        (b"connection", b"close"),
    ]
    if status in COME_AGAIN:
        headers.append((b"retry-after", b"1"))
    return headers, body


def raw_refusal(status: int, message: str) -> bytes:
    """A refusal as raw bytes, for a request that is too malformed to reach the application."""
    headers, body = refusal(status, message)
    lines = [b"HTTP/1.1 %d %s" % (status, REFUSALS[status][0].encode()), *(b"%s: %s" % header for header in headers)]
    return b"\r\n".join([*lines, b"", body])
