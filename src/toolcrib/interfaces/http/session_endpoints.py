"""HTTP endpoints of sessions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from toolcrib.core.call_state import CallsSettings
from toolcrib.model.call import Scope
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import MODES
from toolcrib.toolkit.http import Answer, answer_json, read_body, text_of
from toolcrib.toolkit.http.contract import NOTHING, OPTIONAL_WHOLE, TEXT, TIME, WHOLE, Body, Reply, closed, in_path
from toolcrib.toolkit.http.endpoint import Endpoint, EndpointTable

if TYPE_CHECKING:
    from toolcrib.crib import Crib
    from toolcrib.interfaces.http.server_state import HttpHost, OpenSession, SessionStore
    from toolcrib.toolkit.http import Request

SESSIONS = "/crib/sessions"
SESSION = f"{SESSIONS}/{{sessionID}}"
BOUNDS = ("maxCalls", "maxTurnCalls", "maxTurnRetrievals", "maxRepeats")
SESSION_BODY: dict[str, object] = closed(
    (),
    mode={"enum": [*sorted(MODES), None]},
    maxCalls={**OPTIONAL_WHOLE, "description": "Maximum number of calls; at most `max_steps` of the settings."},
    maxTurnCalls=OPTIONAL_WHOLE,
    maxTurnRetrievals=OPTIONAL_WHOLE,
    maxRepeats=OPTIONAL_WHOLE,
)
SAME_SESSION = {"sessionID": "$response.body#/id"}
LINKS: dict[str, object] = {
    "read": {"operationId": "readSession", "parameters": SAME_SESSION},
    "turn": {"operationId": "nextTurn", "parameters": SAME_SESSION},
    "close": {"operationId": "closeSession", "parameters": SAME_SESSION},
}
THE_SESSION = Reply(description="The session.", schema="Session")


class SessionEndpoints:
    """Open, read, continue and close sessions."""

    def __init__(self, crib: Crib, sessions: SessionStore) -> None:
        self._crib = crib
        self._sessions = sessions

    async def open(self, request: Request) -> Answer:
        """POST /crib/sessions."""
        body = await read_body(request)
        mode = text_of(body, "mode") or "text"
        if mode not in MODES:
            raise ToolError(Kind.VALIDATION, f"body: mode: write {' or '.join(sorted(MODES))}, not {mode[:80]!r}")
        calls, turn_calls, retrievals, repeats = (_bound(body, key) for key in BOUNDS)
        most = self._crib.settings.table(CallsSettings).max_steps
        if calls is not None and calls > most:
            where = self._crib.settings.where("calls.max_steps")
            raise ToolError(Kind.VALIDATION, f"body: maxCalls: at most {most}; {where}")
        self._sessions.refuse_too_many(request.caller)
        session = self._crib.session(
            mode=mode,
            max_calls=calls,
            max_turn_calls=turn_calls,
            max_turn_retrievals=retrievals,
            max_repeats=repeats,
        )
        opened = self._sessions.add(session, request.caller)
        location = (b"location", f"{SESSIONS}/{session.id}".encode())
        return answer_json(_show(opened), status=201, headers=(location,))

    async def read(self, request: Request) -> Answer:
        """GET /crib/sessions/{sessionID}."""
        return answer_json(_show(self._find(request)))

    async def next_turn(self, request: Request) -> Answer:
        """POST /crib/sessions/{sessionID}/turn: start the next turn of the conversation."""
        await read_body(request)
        opened = self._find(request)
        opened.session.next_turn()
        return answer_json(_show(opened))

    async def close(self, request: Request) -> Answer:
        """DELETE /crib/sessions/{sessionID}."""
        self._sessions.close(self._find(request))
        return Answer(status=204)

    def _find(self, request: Request) -> OpenSession:
        return self._sessions.find(request.path_params["sessionID"], request.caller)


def _bound(body: dict[str, object], key: str) -> int | None:
    value = body.get(key)
    if value is None or (type(value) is int and 1 <= value < 2**31):
        return value
    raise ToolError(Kind.VALIDATION, f"body: {key}: write an integer of at least 1")


def _show(opened: OpenSession) -> dict[str, object]:
    session = opened.session
    return {
        "id": session.id,
        "mode": session.mode,
        "calls": session.calls,
        "maxCalls": session.max_calls,
        "expiresAt": datetime.fromtimestamp(opened.ends, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }


def _session_endpoints(host: HttpHost) -> SessionEndpoints:
    return SessionEndpoints(host.crib, host.sessions)


SESSION_ENDPOINTS = EndpointTable(
    tag="calls",
    summary="Calls of tools, by path or by name, and sessions.",
    make=_session_endpoints,
    places=(
        in_path(
            "sessionID",
            "The id that the session was opened with.",
            {**TEXT, "minLength": 1, "maxLength": 64},
            example="5f0c1d2e3b4a59687786a5b4",
        ),
    ),
    schemas={
        "Session": closed(
            ("id", "mode", "calls", "maxCalls", "expiresAt"),
            id=TEXT,
            mode={"enum": sorted(MODES)},
            calls=WHOLE,
            maxCalls={"type": ["integer", "null"], "minimum": 0},
            expiresAt=TIME,
        ),
    },
    endpoints=(
        Endpoint(
            name="openSession",
            method="POST",
            path=SESSIONS,
            handler=SessionEndpoints.open,
            scope=Scope.INVOKE,
            summary="Open a session, which calls can share.",
            description="Kept for an hour by the process that opened it, for the caller that opened it.",
            body=Body(name="SessionBody", schema=SESSION_BODY, example={"mode": "text", "maxCalls": 5}),
            replies={201: Reply(description="The session.", schema="Session", headers=("Location",), links=LINKS)},
        ),
        Endpoint(
            name="readSession",
            method="GET",
            path=SESSION,
            handler=SessionEndpoints.read,
            scope=Scope.INVOKE,
            summary="Read a session.",
            refusals=(404,),
            replies={200: THE_SESSION},
        ),
        Endpoint(
            name="closeSession",
            method="DELETE",
            path=SESSION,
            handler=SessionEndpoints.close,
            scope=Scope.INVOKE,
            summary="Close a session.",
            refusals=(404,),
            replies={204: Reply(description="It is closed.")},
        ),
        Endpoint(
            name="nextTurn",
            method="POST",
            path=f"{SESSION}/turn",
            handler=SessionEndpoints.next_turn,
            scope=Scope.INVOKE,
            summary="Start the next turn: the limits per turn start again.",
            body=NOTHING,
            refusals=(404,),
            replies={200: THE_SESSION},
        ),
    ),
)
endpoints = (SESSION_ENDPOINTS,)
