"""A wish to run a tool, and what the running tool may use."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.model.result import Result
    from toolcrib.model.session import Session
    from toolcrib.model.tool import Tool

MAX_DEPTH = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """Which tool, with what, for whom and until when.

    `deadline` is a reading of `time.monotonic`. `grants` narrows what the operator granted and never widens it;
    None narrows nothing. `parent` is the call whose tool made this one.
    """

    name: str
    arguments: dict[str, object] = field(default_factory=dict)
    caller: str = "local"
    bundle: str | None = None
    version: str | None = None
    session: Session | None = None
    mode: str | None = None
    confirmation: str | None = None
    deadline: float | None = None
    grants: frozenset[str] | None = None
    parent: Call | None = None
    id: str = ""

    @property
    def depth(self) -> int:
        """How many calls stand above this one."""
        return 0 if self.parent is None else self.parent.depth + 1


class CallTool(Protocol):
    """Calls another tool for the running one."""

    async def __call__(self, name: str, arguments: Mapping[str, object] | None = None, /, **more: object) -> Result:
        """Run the tool under the same caller, within the same grants and deadline."""


class Audit(Protocol):
    """Writes a line of the running tool into the journal."""

    def __call__(self, event: str, data: Mapping[str, object] | None = None) -> None:
        """Record the event."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Context:
    """What a running tool may use."""

    tool: Tool
    call_id: str
    caller: str
    mode: str
    deadline: float
    session: Session | None
    call: CallTool
    audit: Audit
