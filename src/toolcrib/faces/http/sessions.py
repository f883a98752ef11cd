"""Sessions over HTTP: conversations without a connection, each kept for an hour for the caller that opened it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from toolcrib.faces.http.bodies import read_keys, text_of
from toolcrib.faces.http.queries import refuse_query
from toolcrib.faces.http.wire import Answer, answer_json
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.session import MODES

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.crib import Crib
    from toolcrib.faces.http.wire import Request
    from toolcrib.model.session import Session

SECONDS = 3_600
MOST = 10_000
MOST_OF_A_CALLER = 1_000
BOUNDS = ("maxCalls", "maxTurnCalls", "maxTurnRetrievals", "maxRepeats")
KEYS = frozenset({"mode", *BOUNDS})


@dataclass(frozen=True, kw_only=True, slots=True)
class _Open:
    """A session, whose it is, and until when it is kept."""

    session: Session
    caller: str
    ends: float


class SessionDesk:
    """Opens sessions, finds them for their callers, and forgets them after an hour."""

    def __init__(self, crib: Crib, body_bytes: int, clock: Callable[[], float] = time.time) -> None:
        self._crib = crib
        self._body_bytes = body_bytes
        self._clock = clock
        # The first to end stands first, because all are kept for equally long.
        self._open: dict[str, _Open] = {}

    def find(self, session_id: str, caller: str) -> Session:
        """The session of that id; nobody else's can be told from none."""
        return self._find(session_id, caller).session

    async def open(self, request: Request) -> Answer:
        """POST /crib/sessions."""
        refuse_query(request)
        body = await read_keys(request, self._body_bytes, KEYS)
        mode = text_of(body, "mode") or "text"
        if mode not in MODES:
            raise ToolError(Kind.VALIDATION, f"body: mode: write {' or '.join(sorted(MODES))}, not {mode[:80]!r}")
        calls, turn_calls, retrievals, repeats = (_bound(body, key) for key in BOUNDS)
        most = self._crib.settings.max_steps
        if calls is not None and calls > most:
            raise ToolError(
                Kind.VALIDATION, f"body: maxCalls: at most {most}; {self._crib.settings.where('max_steps')}"
            )
        self._make_room(request.caller)
        session = self._crib.session(
            mode=mode,
            max_calls=calls,
            max_turn_calls=turn_calls,
            max_turn_retrievals=retrievals,
            max_repeats=repeats,
        )
        opened = _Open(session=session, caller=request.caller, ends=self._clock() + SECONDS)
        self._open[session.id] = opened
        location = (b"location", f"/crib/sessions/{session.id}".encode())
        return answer_json(_show(opened), status=201, headers=(location,))

    async def read(self, request: Request) -> Answer:
        """GET /crib/sessions/{sessionID}."""
        refuse_query(request)
        return answer_json(_show(self._find(request.words[0], request.caller)))

    async def next_turn(self, request: Request) -> Answer:
        """POST /crib/sessions/{sessionID}/turn: the user has spoken."""
        refuse_query(request)
        await read_keys(request, self._body_bytes, frozenset())
        opened = self._find(request.words[0], request.caller)
        opened.session.next_turn()
        return answer_json(_show(opened))

    async def close(self, request: Request) -> Answer:
        """DELETE /crib/sessions/{sessionID}."""
        refuse_query(request)
        opened = self._find(request.words[0], request.caller)
        opened.session.close()
        del self._open[opened.session.id]
        return Answer(status=204)

    def _find(self, session_id: str, caller: str) -> _Open:
        self._forget_old()
        opened = self._open.get(session_id)
        if opened is None or opened.caller != caller:
            message = f"no session goes by {session_id[:80]!r}; open one with POST /crib/sessions"
            raise ToolError(Kind.NOT_FOUND, message)
        return opened

    def _forget_old(self) -> None:
        now = self._clock()
        while self._open:
            first = next(iter(self._open.values()))
            if first.ends > now:
                return
            first.session.close()
            del self._open[first.session.id]

    def _make_room(self, caller: str) -> None:
        self._forget_old()
        own = sum(opened.caller == caller for opened in self._open.values())
        if own >= MOST_OF_A_CALLER or len(self._open) >= MOST:
            message = f"{own} sessions of yours are open, of {len(self._open)} in all; close one with DELETE"
            raise ToolError(Kind.OVERLOADED, message, retryable=True, details={"retryAfter": 60})


def _bound(body: dict[str, object], key: str) -> int | None:
    value = body.get(key)
    if value is None or (type(value) is int and 1 <= value < 2**31):
        return value
    raise ToolError(Kind.VALIDATION, f"body: {key}: write a whole number from 1 on")


def _show(opened: _Open) -> dict[str, object]:
    session = opened.session
    return {
        "id": session.id,
        "mode": session.mode,
        "calls": session.calls,
        "maxCalls": session.max_calls,
        "expiresAt": datetime.fromtimestamp(opened.ends, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }
