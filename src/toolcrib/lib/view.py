"""Which tools the current caller may see: interfaces set it, and whatever finds or shows tools honours it.

It is ambient and no parameter, so that an endpoint that knows nothing of it is limited too.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolcrib.model.tool import Tool


class View(Protocol):
    """What a limited caller sees; what it does not show is treated as if it did not exist."""

    @property
    def bundles(self) -> frozenset[str] | None:
        """The only bundles whose tools are shown; None where they are not limited."""

    def shows(self, tool: Tool) -> bool:
        """Whether the tool may be seen and called."""

    def mode_of(self, asked: str | None) -> str | None:
        """The mode of a call that asks for one or for none; raises ToolError for one that is not this caller's."""


# The view of the current caller; None for one that may see everything.
VIEW: ContextVar[View | None] = ContextVar("view", default=None)
current_view = VIEW.get


def call_mode(asked: str | None) -> str | None:
    """The mode of a call of the current caller, which may have only one."""
    view = current_view()
    return asked if view is None else view.mode_of(asked)


@contextmanager
def seen_through(view: View | None) -> Iterator[None]:
    """Limit what is found and shown within a `with` block, and in tasks that are begun in it."""
    token = VIEW.set(view)
    try:
        yield
    finally:
        VIEW.reset(token)
