"""Describe a case, the client that it is tried with, and what trying it came to."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from toolcrib.model.call import Call
    from toolcrib.model.result import Result
    from toolcrib.model.session import Send, Session
    from toolcrib.model.tool import Tool
    from toolcrib.model.verdict import Verdict

OK, FAILS, CLOSED = SENDING = ("ok", "fails", "closed")
TEXT = "text"


@dataclass(frozen=True, kw_only=True, slots=True)
class FakeContext:
    """A client with its session.

    `send` says what becomes of messages: `ok` and they arrive, `fails` and each is lost on its way, `closed` and there is
    no connection. Without a `mode` the tool is called in one that it allows. `confirm` answers every question whether to
    call. `sent` are the messages that arrived, `audited` what the tool wanted on record, each as `{"event", "data"}`.
    """

    send: str = OK
    mode: str | None = None
    state: Mapping[str, object] = field(default_factory=dict)
    is_active: bool = True
    client_id: str = "test"
    confirm: bool = True
    sent: list[object] = field(default_factory=list)
    audited: list[dict[str, object]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.send not in SENDING:
            raise ValueError(f"send is {self.send!r}; write one of {', '.join(SENDING)}")

    @property
    def is_cut_off(self) -> bool:
        """Whether there is no connection to the client."""
        return self.send == CLOSED

    def afresh(self, mode: str | None = None) -> FakeContext:
        """The same client before anything happened, in this mode if it has none of its own."""
        return replace(self, mode=self.mode or mode, sent=[], audited=[])

    def mode_for(self, tool: Tool | None) -> str:
        """The mode of its session: its own, else text, else one that the tool allows."""
        if self.mode is not None:
            return self.mode
        modes = None if tool is None else tool.modes
        return TEXT if not modes or TEXT in modes else min(modes)

    async def deliver(self, message: object) -> None:
        """Take a message of the tool."""
        if self.send == FAILS:
            raise ToolError(Kind.TRANSIENT, "the message was lost on its way to the client", retryable=True)
        self.sent.append(message)


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """Arguments for a tool, the client that calls it, and what is expected, in the words of a file of cases.

    Unless `expect` speaks of `ok` or `error`, the call is expected to succeed. `problem` says why there is nothing to try:
    such a case has failed where it is written. `is_documented` marks an example that the author of the tool shows.
    """

    name: str
    arguments: Mapping[str, object] = field(default_factory=dict)
    context: FakeContext = field(default_factory=FakeContext)
    expect: Mapping[str, object] = field(default_factory=dict)
    place: str = ""
    problem: str = ""
    is_documented: bool = False

    def __str__(self) -> str:
        return self.name

    @property
    def expects_failure(self) -> bool:
        """Whether the call is expected to come to nothing."""
        return "error" in self.expect or self.expect.get("ok") is False

    @property
    def expected_kind(self) -> object:
        """The type of error that is expected; None if none is named."""
        error = self.expect.get("error")
        return error.get("type") if isinstance(error, dict) else None


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseResult:
    """How a case went.

    `reasons` are all differences between what was expected and what came; `skipped` says why it could not be tried here,
    and `warnings` what is not as it should be although the case may have passed.
    """

    name: str
    place: str = ""
    passed: bool
    reasons: tuple[str, ...] = ()
    skipped: str = ""
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
    result: Result | None = None

    @property
    def failed(self) -> bool:
        """Whether it was tried, or could not even be read, and is not right."""
        return not self.passed and not self.skipped

    def to_json(self) -> dict[str, object]:
        """The report as JSON."""
        return {
            "name": self.name,
            "place": self.place,
            "passed": self.passed,
            "skipped": self.skipped or None,
            "reasons": list(self.reasons),
            "warnings": list(self.warnings),
            "seconds": self.seconds,
            "result": None if self.result is None else self.result.to_json(),
        }


class OpenSession(Protocol):
    """Opens a conversation."""

    def __call__(self, *, mode: str, state: Mapping[str, object], send: Send | None) -> Session:
        """A session with nothing behind it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bench:
    """`refusal` is what would stop a call ahead, None if nothing; `journal` reads all that is on record, oldest first."""

    call: Callable[[Call], Awaitable[Result]]
    refusal: Callable[[Call], Verdict | None]
    session: OpenSession
    journal: Callable[[], Iterable[Mapping[str, object]]]
