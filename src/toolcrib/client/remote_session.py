"""The session of an agent on a server, which counts and limits its calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn
from urllib.parse import quote

from toolcrib.client import shapes
from toolcrib.core.results import changes_of, tell_intent
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolcrib.client.server import Server
    from toolcrib.model.result import Intent, Result

SESSIONS = "/crib/sessions"
NO_STATE = "the state of a session and its messages belong to the program that runs the tools; leave {} out, or run the session there"


class RemoteSession(Session):
    """A session on a server, which closes it after an hour without calls."""

    def __init__(
        self, server: Server, body: Mapping[str, object], *, on_intent: Callable[[Intent], None] | None = None
    ) -> None:
        opened = server.ask("POST", SESSIONS, shapes.SESSION, body=body).document
        super().__init__(id=opened["id"], mode=opened["mode"], max_calls=opened["maxCalls"], on_intent=on_intent)
        self._server = server
        self._path = f"{SESSIONS}/{quote(self.id, safe='')}"

    @property
    def calls(self) -> int:
        """How many calls the server has counted in the session."""
        return int(self._server.ask("GET", self._path, shapes.SESSION).document["calls"])

    def next_turn(self) -> None:
        """Begin a turn, after a message of the user: reset its budgets."""
        self._server.ask("POST", f"{self._path}/turn", shapes.SESSION, body={})

    def close(self) -> None:
        """End the session, on the server too."""
        if self.is_active:
            self._server.ask("DELETE", self._path, shapes.NOTHING)
        super().close()

    def hear(self, result: Result) -> None:
        """Apply the intents of a successful call, as a local session does."""
        for intent in result.intents if result.ok else ():
            changes = changes_of(intent)
            if isinstance(changes, dict):
                super().set_state(**changes)
                tell_intent(intent, self, str(result.meta.get("callId", "")))

    def set_state(self, **changes: object) -> NoReturn:
        """Raise ToolError, because the tools run in another program."""
        raise ToolError(Kind.VALIDATION, NO_STATE.format(", ".join(changes) or "it"))
