"""The parts of a preview: what a call would run or send, for the person who approves it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolcrib.model.call import Call

# Names of the platform whose values change between the preview and the run.
KNOWN_LATER = frozenset({"request_id", "now"})


class PartKind(StrEnum):
    """The kinds of parts of a preview."""

    CODE = "code"
    COMMAND = "command"
    REQUEST = "request"
    STATEMENT = "statement"
    OPERATION = "operation"
    SETTINGS = "settings"
    NOTE = "note"


@dataclass(frozen=True, kw_only=True, slots=True)
class RunPart:
    """One part of what a call would run or send, as its runner describes it; secrets appear by name only.

    `data` are the bytes themselves, None if there are none to show. A part that is not `exact` has slots in braces that are
    filled while the call runs, for example from the answer of an earlier request.
    """

    kind: PartKind
    title: str
    data: bytes | None = None
    facts: tuple[tuple[str, str], ...] = ()
    exact: bool = True
    note: str = ""


@runtime_checkable
class BoundWithPreview(Protocol):
    """A Bound that can preview what a call would run."""

    def preview(self, arguments: dict[str, object], call: Call) -> Iterable[RunPart]:
        """The parts, computed from the content that would run; deterministic, and nothing is run or sent.

        Raises ToolError if the call cannot run.
        """
