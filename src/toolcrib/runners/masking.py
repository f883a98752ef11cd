"""Variables of the host on their way into a request, and out of every message about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.model.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable

MASK = "***"
SHORTEST = 4  # hiding every "1" and "eu" would make messages unreadable and keep nothing secret


class Masking:
    """Hands variables out, remembers what it gave, and hides that in whatever is told afterwards."""

    def __init__(self, variable: Callable[[str], str | None]) -> None:
        self._variable = variable
        self._given: set[str] = set()

    def variable(self, name: str) -> str | None:
        """The variable of the host."""
        value = self._variable(name)
        if value is not None and len(value) >= SHORTEST:
            self._given.update(_spellings(value))
        return value

    def hide(self, text: str) -> str:
        """The text without any variable that was handed out, in whichever of the usual spellings."""
        for spelling in sorted(self._given, key=len, reverse=True):
            text = text.replace(spelling, MASK)
        return text

    def hide_in(self, value: object) -> object:
        """A JSON value in which every text is hidden so."""
        if isinstance(value, str):
            return self.hide(value)
        if isinstance(value, dict):
            return {key: self.hide_in(member) for key, member in value.items()}
        if isinstance(value, list | tuple):
            return [self.hide_in(item) for item in value]
        return value

    def hide_error(self, error: ToolError) -> ToolError:
        """The same error, fit to be shown."""
        return ToolError(
            error.kind,
            self.hide(error.message),
            retryable=error.retryable,
            partial_side_effects=error.partial_side_effects,
            details={name: self.hide_in(detail) for name, detail in error.details.items()},
            value=self.hide_in(error.value),
        )


def _spellings(value: str) -> set[str]:
    """The value as it is, and as it looks in a URL, in JSON and in base64."""
    import base64
    import json
    from urllib.parse import quote, quote_plus

    raw = value.encode("utf-8", "surrogatepass")
    return {
        value,
        quote(raw),
        quote_plus(raw),
        quote(raw, safe=""),
        json.dumps(value)[1:-1],
        base64.b64encode(raw).decode().rstrip("="),
        base64.urlsafe_b64encode(raw).decode().rstrip("="),
    }
