"""One conversation of an agent."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import MODES

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Mapping

    from toolcrib.model.result import Intent

    Send = Callable[[object], Awaitable[None]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """A call as its session counts it; `mark` is the same for identical calls, and empty where loops are not looked for.

    `capabilities` are what the tool may use.
    """

    tool: str
    is_retrieval: bool = False
    mark: bytes = b""
    capabilities: frozenset[str] = frozenset()


@dataclass(kw_only=True, slots=True)
class Turn:
    """What was called since the user last spoke: how many, how many looked something up, how often each, what came back empty."""

    calls: int = 0
    retrievals: int = 0
    repeats: dict[bytes, int] = field(default_factory=dict)
    empty: dict[str, int] = field(default_factory=dict)

    def count(self, step: Step, by: int) -> None:
        """Count a call, or take it back."""
        self.calls += by
        self.retrievals += by if step.is_retrieval else 0
        if step.mark:
            self.repeats[step.mark] = self.repeats.get(step.mark, 0) + by


class Session:
    """What the calls of one conversation share. Its facts are fixed; its state changes as the conversation goes on.

    `max_calls` bounds the calls of the whole session, `max_turn_calls` and `max_turn_retrievals` those of one turn, and
    `max_repeats` how often the very same call may be made within a turn; None bounds nothing. `tools_version` is the
    registry that its tools come from. `send` hands a message to the client; without one there is no connection.
    `on_intent` is called with what tools ask the host to do, in their order.
    Calls may share it side by side, in several threads too.
    """

    # So often a tool may find nothing before the next call in the same turn is taken for a loop.
    MAX_EMPTY = 2

    def __init__(
        self,
        *,
        id: str,  # noqa: A002 - the word that every face uses for it
        mode: str = "text",
        state: Mapping[str, object] | None = None,
        max_calls: int | None = None,
        max_turn_calls: int | None = None,
        max_turn_retrievals: int | None = None,
        max_repeats: int | None = None,
        tools_version: str = "",
        send: Send | None = None,
        on_intent: Callable[[Intent], None] | None = None,
    ) -> None:
        if mode not in MODES:
            raise ToolError(Kind.VALIDATION, f"there is no mode {mode!r:.80}; use {' or '.join(sorted(MODES))}")
        self.id: Final = id
        self.mode: Final = mode
        self.max_calls: Final = _checked("max_calls", max_calls)
        self.max_turn_calls: Final = _checked("max_turn_calls", max_turn_calls)
        self.max_turn_retrievals: Final = _checked("max_turn_retrievals", max_turn_retrievals)
        self.max_repeats: Final = _checked("max_repeats", max_repeats, least=1)
        self.tools_version: Final = tools_version
        self.on_intent: Final = on_intent
        self._state: Mapping[str, object] = MappingProxyType(dict(state or {}))
        self._is_active = True
        self._calls = 0
        self._capabilities: dict[str, str] = {}
        self._turn = Turn()
        self._send = send
        # Each is settled when the connection closes, and a waiting task gives its message up.
        self._under_way: set[asyncio.Future[None]] = set()
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Session(id={self.id!r}, mode={self.mode!r})"

    @property
    def state(self) -> Mapping[str, object]:
        """What the conversation has come to by now; tools and rules read it and cannot change it."""
        return self._state

    def set_state(self, **changes: object) -> None:
        """Change the state of the conversation; for the host alone. A reader of an earlier state keeps it whole."""
        with self._lock:
            self._state = MappingProxyType({**self._state, **changes})

    @property
    def is_active(self) -> bool:
        """Whether the conversation goes on."""
        return self._is_active

    def close(self) -> None:
        """The conversation is over."""
        self._is_active = False
        self.disconnect()

    @property
    def calls(self) -> int:
        """How many calls the session has made."""
        return self._calls

    @property
    def capabilities(self) -> Mapping[str, str]:
        """What the tools that were called in this session may use, each with the first of these tools."""
        return MappingProxyType(self._capabilities)

    def next_turn(self) -> None:
        """The user has spoken: the bounds of a turn, and what is remembered of loops, begin anew."""
        with self._lock:
            self._turn = Turn()

    def used_up(self, *, is_retrieval: bool) -> str:
        """The budget that leaves no room for another call, by its name; empty while there is room."""
        if _is_reached(self.max_calls, self._calls):
            return "max_calls"
        if _is_reached(self.max_turn_calls, self._turn.calls):
            return "max_turn_calls"
        if is_retrieval and _is_reached(self.max_turn_retrievals, self._turn.retrievals):
            return "max_turn_retrievals"
        return ""

    def repeats(self, mark: bytes) -> bool:
        """Whether the same call was made in this turn as often as it may be."""
        return bool(mark) and _is_reached(self.max_repeats, self._turn.repeats.get(mark, 0))

    def finds_nothing(self, tool: str) -> bool:
        """Whether the tool has come back empty in this turn so often that it will again."""
        return _is_reached(self.MAX_EMPTY, self._turn.empty.get(tool, 0))

    def step(
        self, tool: str, *, is_retrieval: bool = False, mark: bytes = b"", capabilities: frozenset[str] = frozenset()
    ) -> Step:
        """A call as the session counts it."""
        return Step(tool=tool, is_retrieval=is_retrieval, mark=mark, capabilities=capabilities)

    def admit(self, step: Step) -> Turn | None:
        """Count a call and say in which turn; None if there was no room. Of two calls at once one gets the last place."""
        with self._lock:
            is_loop = bool(step.mark) and (self.repeats(step.mark) or self.finds_nothing(step.tool))
            if is_loop or self.used_up(is_retrieval=step.is_retrieval):
                return None
            self._calls += 1
            self._turn.count(step, 1)
            for capability in step.capabilities:
                self._capabilities.setdefault(capability, step.tool)
            return self._turn

    def take_back(self, step: Step, turn: Turn) -> None:
        """Uncount a call that was not made after all."""
        with self._lock:
            self._calls -= 1
            turn.count(step, -1)

    def note_empty(self, tool: str, turn: Turn) -> None:
        """Remember that a tool found nothing, in the turn that it was called in."""
        with self._lock:
            turn.empty[tool] = turn.empty.get(tool, 0) + 1

    async def send(self, message: object) -> None:
        """Hand a message to the client; raises ToolError where there is no connection, or none any more."""
        import asyncio

        closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with self._lock:
            if self._send is None:
                raise _no_connection()
            send = self._send
            self._under_way.add(closed)
        try:
            sending = asyncio.ensure_future(send(message))
            try:
                await asyncio.wait({sending, closed}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                _give_up(sending)
        finally:
            with self._lock:
                self._under_way.discard(closed)
        if not sending.done():
            raise _connection_lost()
        sending.result()

    def disconnect(self) -> None:
        """The client's connection is closed: messages that are under way, and all later ones, are refused."""
        with self._lock:
            self._send = None
            under_way = list(self._under_way)
        for closed in under_way:
            try:
                closed.get_loop().call_soon_threadsafe(_settle, closed)
            except RuntimeError:
                # The loop has ended, and with it the waiting task.
                continue


def _checked(name: str, bound: int | None, least: int = 0) -> int | None:
    given: object = bound
    if given is None or (type(given) is int and given >= least):
        return bound
    raise ToolError(Kind.VALIDATION, f"{name} of a session: write a whole number from {least} on, not {given!r:.80}")


def _is_reached(bound: int | None, count: int) -> bool:
    return bound is not None and count >= bound


def _settle(closed: asyncio.Future[None]) -> None:
    if not closed.done():
        closed.set_result(None)


def _give_up(sending: asyncio.Future[None]) -> None:
    """Have a message given up that is still under way, without a word about how that ends."""
    if sending.done():
        return
    sending.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    sending.cancel()


def _no_connection() -> ToolError:
    return ToolError(Kind.SESSION_INACTIVE, "there is no connection to the client; nothing was sent")


def _connection_lost() -> ToolError:
    message = "the client's connection closed while the message was under way; it may not have arrived"
    return ToolError(Kind.SESSION_INACTIVE, message, partial_side_effects=True)
