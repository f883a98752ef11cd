"""Sessions over HTTP: conversations without a connection, each kept for an hour for the caller that opened it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.model.session import Session

SECONDS = 3_600
MOST = 10_000
MOST_OF_A_CALLER = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenSession:
    """A session, the caller that opened it, and until when it is kept."""

    session: Session
    caller: str
    ends: float


class SessionStore:
    """Keeps open sessions, finds them for their callers, and forgets them after an hour."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        # The first to end stands first, because all are kept for equally long.
        self._open: dict[str, OpenSession] = {}

    def refuse_too_many(self, caller: str) -> None:
        """Refuse another session where the caller or the server has enough."""
        self._forget_old()
        own = sum(opened.caller == caller for opened in self._open.values())
        if own >= MOST_OF_A_CALLER or len(self._open) >= MOST:
            message = f"{own} sessions of yours are open, of {len(self._open)} in all; close one with DELETE"
            raise ToolError(Kind.OVERLOADED, message, retryable=True, details={"retryAfter": 60})

    def add(self, session: Session, caller: str) -> OpenSession:
        """Keep a new session."""
        opened = OpenSession(session=session, caller=caller, ends=self._clock() + SECONDS)
        self._open[session.id] = opened
        return opened

    def find(self, session_id: str, caller: str) -> OpenSession:
        """The session of that id; one of another caller is not found either."""
        self._forget_old()
        opened = self._open.get(session_id)
        if opened is None or opened.caller != caller:
            message = f"no session goes by {session_id[:80]!r}; open one with POST /crib/sessions"
            raise ToolError(Kind.NOT_FOUND, message)
        return opened

    def close(self, opened: OpenSession) -> None:
        """End a session."""
        opened.session.close()
        del self._open[opened.session.id]

    def _forget_old(self) -> None:
        now = self._clock()
        while self._open:
            first = next(iter(self._open.values()))
            if first.ends > now:
                return
            self.close(first)
