"""Refusals that the server itself writes, when the application is not there to do it or was cut short."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import orjson

from toolcrib.model.errors import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    Header = tuple[bytes, bytes]

# Each status with its title and the kind of error that it means.
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


def refusal(status: int, message: str) -> tuple[list[Header], bytes]:
    """The headers and the problem details of a refusal after which the connection is closed."""
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
    """The same as it goes over the wire, for what is no request that an application could answer."""
    headers, body = refusal(status, message)
    lines = [b"HTTP/1.1 %d %s" % (status, REFUSALS[status][0].encode()), *(b"%s: %s" % header for header in headers)]
    return b"\r\n".join([*lines, b"", body])
