"""The parameters behind the question mark: each known, each once unless it is a list, each within its bounds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Collection

    from toolcrib.faces.http.wire import Request

MAX_PAGE = 256
MAX_TOKEN = 4_096
MAX_TEXT = 1_000
MAX_LISTED = 256
MAX_PARAMETERS = 1_024
_HALF_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_DIGITS = re.compile(r"[0-9]{1,15}")


def refuse_query(request: Request) -> None:
    """Refuse every parameter; for paths that take none."""
    if request.scope.get("query_string"):
        Query(request, known=())


class Query:
    """What a client asked for besides the path."""

    def __init__(self, request: Request, known: Collection[str], lists: Collection[str] = ()) -> None:
        self._found: dict[str, list[str]] = {}
        for name, value in _pairs(request):
            if name not in known:
                hint = f"known are {', '.join(sorted(known))}" if known else "this path takes none"
                raise ToolError(Kind.VALIDATION, f"query: unknown parameter {name[:80]!r}; {hint}")
            if name in self._found and name not in lists:
                raise ToolError(Kind.VALIDATION, f"query: {name} stands more than once; write it once")
            self._found.setdefault(name, []).append(value)

    def has(self, name: str) -> bool:
        """Whether the parameter was given."""
        return name in self._found

    def text(self, name: str) -> str:
        """A text; empty where it is absent."""
        text = self._found.get(name, [""])[0]
        if len(text) > MAX_TEXT:
            raise _bad(name, f"longer than {MAX_TEXT} letters; write less")
        return text

    def token(self, name: str = "pageToken") -> str:
        """A token that an earlier page ended with; empty asks for the first page."""
        token = self._found.get(name, [""])[0]
        if len(token) > MAX_TOKEN:
            raise _bad(name, "is none that this server gave out; begin again without it")
        return token

    def words(self, name: str) -> tuple[str, ...]:
        """A list, written with commas, by repeating the parameter, or both."""
        words = [word for value in self._found.get(name, ()) for word in value.split(",")]
        if "" in words:
            raise _bad(name, "holds nothing between two commas; write words, or leave the parameter out")
        if len(words) > MAX_LISTED:
            raise _bad(name, f"holds more than {MAX_LISTED} words; ask in several requests")
        return tuple(words)

    def bundle_ids(self) -> tuple[str, ...] | None:
        """The ids of bundles; None asks for all of them."""
        return self.words("bundleIDs") if "bundleIDs" in self._found else None

    def switch(self, name: str) -> bool:
        """`true` or `false`; false where it is absent."""
        value = self._found.get(name, ["false"])[0]
        if value not in ("true", "false"):
            raise _bad(name, f"write true or false, not {value[:80]!r}")
        return value == "true"

    def number(self, name: str, *, least: int, most: int | None = None) -> int | None:
        """A whole number within its bounds; None where it is absent."""
        if name not in self._found:
            return None
        value = self._found[name][0]
        number = int(value) if _DIGITS.fullmatch(value) else -1
        if number < least or (most is not None and number > most):
            bounds = f"from {least} to {most}" if most is not None else f"from {least} on"
            raise _bad(name, f"write a whole number {bounds}, not {value[:80]!r}")
        return number


def _pairs(request: Request) -> list[tuple[str, str]]:
    raw = request.scope.get("query_string", b"")
    if not raw:
        return []
    query = raw if isinstance(raw, bytes) else str(raw).encode()
    try:
        if _HALF_ESCAPE.search(query):
            raise ValueError
        return parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MAX_PARAMETERS)
    except ValueError:
        message = "query: is no list of name=value; write other than ASCII letters as percent-encoded UTF-8"
        raise ToolError(Kind.VALIDATION, message) from None


def _bad(name: str, reason: str) -> ToolError:
    return ToolError(Kind.VALIDATION, f"query: {name}: {reason}")
