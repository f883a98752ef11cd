"""The client of a conversation that never was: what it is told is written down, and how it answers is chosen ahead."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.model.tool import Tool

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
