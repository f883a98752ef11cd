"""A call of a tool, what a caller may do, and what a running tool may use."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.model.result import Result
    from toolcrib.model.session import Session
    from toolcrib.model.tool import Tool


MAX_DEPTH = 10
PLAIN = (None, None, None, None, None, None)


class Consent(StrEnum):
    """How a call that needs confirmation can get it.

    token: the caller hands back the token of the refusal, for a person it speaks for
    either: the same, or another person approves the stored call
    person: only another person can approve the stored call; the caller gets no token
    """

    TOKEN = "token"  # noqa: S105 - a word, no secret
    EITHER = "either"
    PERSON = "person"


class _Draft:
    """The fields of a Call before it is frozen; see `plain_call`."""

    __slots__ = (
        "arguments",
        "bundle",
        "caller",
        "confirmation",
        "consent",
        "deadline",
        "grants",
        "id",
        "mode",
        "name",
        "parent",
        "session",
        "version",
    )

    name: str
    arguments: dict[str, object]
    caller: str
    bundle: str | None
    version: str | None
    session: Session | None
    mode: str | None
    confirmation: str | None
    deadline: float | None
    grants: frozenset[str] | None
    parent: Call | None
    id: str
    consent: Consent


@dataclass(frozen=True, kw_only=True, slots=True)
class Call(_Draft):
    """Which tool, with what, for whom and until when.

    `deadline` is a reading of `time.monotonic`. `grants` narrows what the operator granted and never widens it;
    None narrows nothing. `parent` is the call whose tool made this one. `consent` says how a confirmation can be given.
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
    consent: Consent = Consent.TOKEN

    @property
    def is_plain(self) -> bool:
        """Whether it says nothing but which tool, with what, and for whom."""
        said = (self.session, self.mode, self.confirmation, self.deadline, self.grants, self.parent)
        return said == PLAIN

    @property
    def depth(self) -> int:
        """How many calls stand above this one."""
        return 0 if self.parent is None else self.parent.depth + 1


def plain_call(
    name: str,
    arguments: dict[str, object],
    caller: str,
    bundle: str | None = None,
    version: str | None = None,
    call_id: str = "",
) -> Call:
    """Make a Call that only carries arguments, several times as fast as its constructor (see `result.succeed` for the reason)."""
    draft = _Draft()
    draft.name = name
    draft.arguments = arguments
    draft.caller = caller
    draft.bundle = bundle
    draft.version = version
    draft.session = draft.mode = draft.confirmation = draft.deadline = draft.grants = draft.parent = None
    draft.id = call_id
    draft.consent = Consent.TOKEN
    draft.__class__ = Call
    return cast("Call", draft)


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
    """What a running tool may use.

    `deadline` is a reading of `time.monotonic`, `seconds` the time limit it came from. `room` is how many seconds later the
    answer may still arrive: some behind a limit of the tool's own, none behind a deadline of its caller.
    """

    tool: Tool
    call_id: str
    caller: str
    mode: str
    deadline: float
    seconds: float
    session: Session | None
    call: CallTool
    audit: Audit
    room: float = 0.0


class Scope(StrEnum):
    """What a token is good for."""

    READ = "read"
    INVOKE = "invoke"
    MANAGE = "manage"
    APPROVE = "approve"
