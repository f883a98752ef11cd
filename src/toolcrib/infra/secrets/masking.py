"""Variables of the host and secrets on their way into a request, and out of every message about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.infra.secrets.secret import MASK
from toolcrib.infra.secrets.secret import Masking as Hiding
from toolcrib.model.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable


class Masking(Hiding):
    """Hands variables out, remembers what it gave, and hides that in whatever is told afterwards."""

    def __init__(self, variable: Callable[[str], str | None] = lambda _: None) -> None:
        super().__init__()
        self._variable = variable

    def variable(self, name: str) -> str | None:
        """The variable of the host."""
        value = self._variable(name)
        if value is not None:
            self.add(value)
        return value

    def hide_in(self, value: object) -> object:
        """A JSON value in which every text is hidden so, and every number whose digits would tell."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            return MASK if self.hide(repr(value)) != repr(value) else value
        return super().hide_in(value)

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
