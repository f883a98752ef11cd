"""Describe what a call would run or send, for a person who decides about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolcrib.model.call import Call

# Names of the platform whose values are others when the call runs than when it was judged.
KNOWN_LATER = frozenset({"request_id", "now"})


class PartKind(StrEnum):
    """What a part of a call is."""

    CODE = "code"
    COMMAND = "command"
    REQUEST = "request"
    STATEMENT = "statement"
    OPERATION = "operation"
    SETTINGS = "settings"
    NOTE = "note"


@dataclass(frozen=True, kw_only=True, slots=True)
class RunPart:
    """One part of what a call would run or send, as its runner describes it; secrets stand in it by their names.

    `data` are the bytes themselves, None where there are none to show. A part that is not `exact` has places in braces that are
    filled while the call runs, such as the answer of an earlier request.
    """

    kind: PartKind
    title: str
    data: bytes | None = None
    facts: tuple[tuple[str, str], ...] = ()
    exact: bool = True
    note: str = ""


@runtime_checkable
class Previewing(Protocol):
    """A Bound that can say what exactly a call would run, for a person who decides about it."""

    def preview(self, arguments: dict[str, object], call: Call) -> Iterable[RunPart]:
        """The parts, computed from the content that would run; the same for the same call, and nothing is run or sent.

        Raises ToolError for what cannot run.
        """
