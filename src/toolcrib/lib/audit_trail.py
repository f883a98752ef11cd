"""How features report decisions and changes to the audit trail, and as whom."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar

# The id of a caller and its name, which is empty where none is known.
Actor = tuple[str, str]
# The caller whose request is served; None for the caller of the Crib itself.
ACTOR: ContextVar[Actor | None] = ContextVar("actor", default=None)
# `with record("tool.saved", address, why="", actor=None, facts={}): …` records durably what is done to which thing, and then
# makes the change. It raises ToolError, before the block, if that cannot be recorded; if the block fails, it records that too.
Recorder = Callable[..., AbstractContextManager[None]]


def unrecorded(*_: object, **__: object) -> AbstractContextManager[None]:
    """Record nothing: the Recorder where no audit trail is kept."""
    return nullcontext()
