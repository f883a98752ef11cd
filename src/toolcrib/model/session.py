"""The session of an agent: mode, state, and budgets of calls, shared by the calls of one conversation."""

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
class CountedCall:
    """A call as its session counts it; `mark` is a hash of the call, and empty if loop detection is off.

    `notes` are what rules remember of the call.
    """

    tool: str
    is_retrieval: bool = False
    mark: bytes = b""
    notes: frozenset[str] = frozenset()


@dataclass(kw_only=True, slots=True)
class Turn:
    """Counts since the last message of the user: calls, retrievals, identical calls, and empty results by tool."""

    calls: int = 0
    retrievals: int = 0
    repeats: dict[bytes, int] = field(default_factory=dict)
    empty: dict[str, int] = field(default_factory=dict)

    def count(self, step: CountedCall, by: int) -> None:
        """Add a call to the counts, or subtract it again."""
        self.calls += by
        self.retrievals += by if step.is_retrieval else 0
        if step.mark:
            self.repeats[step.mark] = self.repeats.get(step.mark, 0) + by


class Session:
    """The mode, state and budgets that the calls of one conversation share; thread-safe.

    `max_calls` limits the calls of the whole session, `max_turn_calls` and `max_turn_retrievals` those of one turn, and
    `max_repeats` how often an identical call may be made within a turn; None is no limit. `tools_version` is the version of
    the registry that the session is pinned to. `send` delivers a message to the client; without it there is no connection.
    `on_intent` is called with each Intent of a tool, in order.
    """

    # After so many empty results of a tool within a turn, its next call counts as a loop.
    MAX_EMPTY = 2

    def __init__(
        self,
        *,
        id: str,  # noqa: A002 - the name that every interface uses for it
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
        self._notes: dict[str, str] = {}
        self._turn = Turn()
        self._send = send
        # One for each message being sent, resolved when the connection closes, so that its task stops waiting.
        self._under_way: set[asyncio.Future[None]] = set()
        # Reentrant: garbage collection may end a message of a closed event loop at any line.
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        return f"Session(id={self.id!r}, mode={self.mode!r})"

    @property
    def state(self) -> Mapping[str, object]:
        """The present state, set by the host; read-only for tools and rules."""
        return self._state

    def set_state(self, **changes: object) -> None:
        """Change the state; for the host only. The earlier mapping is not modified, so its readers see no change."""
        with self._lock:
            self._state = MappingProxyType({**self._state, **changes})

    @property
    def is_active(self) -> bool:
        """Whether the session is still open."""
        return self._is_active

    def close(self) -> None:
        """End the session and its connection."""
        self._is_active = False
        self.disconnect()

    @property
    def calls(self) -> int:
        """How many calls the session has made."""
        return self._calls

    @property
    def notes(self) -> Mapping[str, str]:
        """What rules remember of the calls of this session, each with the first tool that it was noted for."""
        return MappingProxyType(self._notes)

    def next_turn(self) -> None:
        """Begin a turn, after a message of the user: reset its budgets and its loop detection."""
        with self._lock:
            self._turn = Turn()

    def used_up(self, *, is_retrieval: bool) -> str:
        """The name of the budget that is exhausted; empty while another call is possible."""
        if _is_reached(self.max_calls, self._calls):
            return "max_calls"
        if _is_reached(self.max_turn_calls, self._turn.calls):
            return "max_turn_calls"
        if is_retrieval and _is_reached(self.max_turn_retrievals, self._turn.retrievals):
            return "max_turn_retrievals"
        return ""

    def repeats(self, mark: bytes) -> bool:
        """Whether the identical call has reached `max_repeats` in this turn."""
        return bool(mark) and _is_reached(self.max_repeats, self._turn.repeats.get(mark, 0))

    def finds_nothing(self, tool: str) -> bool:
        """Whether the tool has reached MAX_EMPTY empty results in this turn."""
        return _is_reached(self.MAX_EMPTY, self._turn.empty.get(tool, 0))

    def step(self, tool: str, *, is_retrieval: bool, mark: bytes, notes: frozenset[str]) -> CountedCall:
        """Make the CountedCall of a call."""
        return CountedCall(tool=tool, is_retrieval=is_retrieval, mark=mark, notes=notes)

    def admit(self, step: CountedCall) -> Turn | None:
        """Count a call and return its turn; None if a budget is exhausted or the call is a loop. Check and count are atomic."""
        with self._lock:
            is_loop = bool(step.mark) and (self.repeats(step.mark) or self.finds_nothing(step.tool))
            if is_loop or self.used_up(is_retrieval=step.is_retrieval):
                return None
            self._calls += 1
            self._turn.count(step, 1)
            for note in step.notes:
                self._notes.setdefault(note, step.tool)
            return self._turn

    def uncount(self, step: CountedCall, turn: Turn) -> None:
        """Uncount a call that was not made after all."""
        with self._lock:
            self._calls -= 1
            turn.count(step, -1)

    def note_empty(self, tool: str, turn: Turn) -> None:
        """Count an empty result of a tool, in the turn of its call."""
        with self._lock:
            turn.empty[tool] = turn.empty.get(tool, 0) + 1

    async def send(self, message: object) -> None:
        """Send a message to the client; raises ToolError if there is no connection, or if it closes meanwhile."""
        import asyncio

        closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with self._lock:
            if self._send is None:
                raise ToolError(Kind.SESSION_INACTIVE, "there is no connection to the client; nothing was sent")
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
            message = "the client's connection closed while the message was under way; it may not have arrived"
            raise ToolError(Kind.SESSION_INACTIVE, message, partial_side_effects=True)
        sending.result()

    def disconnect(self) -> None:
        """Mark the connection of the client as closed: messages being sent, and all later ones, are refused."""
        with self._lock:
            self._send = None
            under_way = list(self._under_way)
        for closed in under_way:
            try:
                closed.get_loop().call_soon_threadsafe(_settle, closed)
            except RuntimeError:
                # The event loop is closed, so the task no longer waits.
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
    """Cancel a message that is still being sent, and ignore how that ends."""
    if sending.done():
        return
    sending.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    sending.cancel()
