"""Which methods and headers a request may have; what ends a header early or changes how a message is framed is refused."""

from __future__ import annotations

import re
from functools import lru_cache

from toolcrib.model.errors import Kind, ToolError

METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
RESERVED = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)

_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


def check_method(method: str) -> None:
    """Refuse a method that is none of the usual ones, in capitals."""
    if method not in METHODS:
        raise ToolError(Kind.VALIDATION, f"method {method[:20]!r} is refused; use one of {', '.join(METHODS)}")


def check_header(name: str, value: str) -> None:
    """Refuse a header that is not for a tool to send; the value is never repeated."""
    if problem := _problem_with(name):
        raise ToolError(Kind.VALIDATION, problem)
    if not (value.isprintable() or value.replace("\t", "").isprintable()):
        message = f"header {name[:40]!r}: the value holds a line break or another control character"
        raise ToolError(Kind.VALIDATION, message)


@lru_cache(maxsize=1_024)  # every request asks, and tools use few names
def _problem_with(name: str) -> str:
    shown = repr(name[:40])
    if _NAME.fullmatch(name) is None:
        return f"header {shown}: the name may hold letters, digits and '-' only"
    if name.lower() in RESERVED or name.lower().startswith("proxy-"):
        return f"header {shown} is set by Toolcrib or refused; leave it out"
    return ""
