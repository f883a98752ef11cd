"""Signed tokens: a session id that survives a restart, and the state of an open question."""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from toolcrib.interfaces.mcp.messages import Code, ProtocolError
from toolcrib.interfaces.mcp.versions import WIRES
from toolcrib.lib.seal import new_nonce

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolcrib.interfaces.mcp.messages import Params
    from toolcrib.interfaces.mcp.versions import Wire
    from toolcrib.lib.seal import Seal

SESSION_SECONDS = 7 * 86_400
SESSIONS_KEPT = 10_000
# How long a session that another process ended may still be found.
LOOK_SECONDS = 0.5
# What is remembered of a client's capabilities: all that this server ever asks a client for.
KNOWN_CAPABILITIES: Mapping[str, tuple[str, ...]] = {
    "elicitation": ("form", "url"),
    "sampling": ("tools", "context"),
    "roots": (),
}


def known_capabilities(capabilities: Mapping[str, object]) -> Params:
    """What a client declares, as far as this server asks for it."""
    found: Params = {}
    for name, parts in KNOWN_CAPABILITIES.items():
        declared = capabilities.get(name)
        if isinstance(declared, dict):
            found[name] = {part: {} for part in parts if isinstance(declared.get(part), dict)}
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class WireSession:
    """What the older wire agreed on with one client; all of it stands in its token."""

    id: str
    wire: Wire
    caller: str
    expires_at: int
    capabilities: Params = field(default_factory=dict)


class EndedSessions(Protocol):
    """Remembers what was ended until it would have expired anyway; see `infra.storage.expiring`."""

    def create(self, expiry: float, name: str, document: bytes) -> bool:
        """Remember a name."""

    def get(self, expiry: float, name: str) -> bytes | None:
        """What was remembered under the name."""


class Sessions:
    """Opens, finds and ends sessions. A session is its own token, so that a restart of the server loses none."""

    def __init__(self, seal: Seal, ended: EndedSessions, *, clock: Callable[[], float] = time.time) -> None:
        self._seal = seal
        self._ended = ended
        self._clock = clock
        # Those seen lately, each with the moment at which it is looked up again: another process may have ended it.
        self._known: OrderedDict[str, tuple[WireSession, float]] = OrderedDict()

    def open(self, wire: Wire, capabilities: Mapping[str, object], caller: str) -> str:
        """The token of a new session."""
        expires_at = int(self._clock()) + SESSION_SECONDS
        return self._seal.write([new_nonce(), wire.version, caller, expires_at, known_capabilities(capabilities)])

    def find(self, token: str, caller: str) -> WireSession:
        """The session of a token; raises for one that is altered, expired, ended, or another caller's."""
        now = time.monotonic()
        session, look_at = self._known.get(token, (None, 0.0))
        if session is None or now >= look_at:
            self._known.pop(token, None)
            session = self._read(token)
            self._known[token] = session, now + LOOK_SECONDS
            if len(self._known) > SESSIONS_KEPT:
                self._known.popitem(last=False)
        if session.caller != caller or session.expires_at < self._clock():
            raise _no_session()
        return session

    def end(self, token: str, caller: str) -> WireSession:
        """End a session: its token is no longer accepted, not even after a restart."""
        session = self.find(token, caller)
        self._ended.create(session.expires_at, _file_name(session.id), b"ended")
        self._known.pop(token, None)
        return session

    def _read(self, token: str) -> WireSession:
        document = self._seal.read(token)
        if document is None:
            raise _no_session()
        nonce, version, caller, expires_at, capabilities = document
        wire = WIRES.get(str(version))
        if wire is None or not isinstance(expires_at, int) or not isinstance(capabilities, dict):
            raise _no_session()
        if self._ended.get(expires_at, _file_name(str(nonce))) is not None:
            raise _no_session()
        return WireSession(
            id=str(nonce), wire=wire, caller=str(caller), expires_at=expires_at, capabilities=capabilities
        )


def _file_name(nonce: str) -> str:
    # Two names that differ in the case of a letter may be one file.
    return nonce.encode().hex()


def _no_session() -> ProtocolError:
    message = "the session is unknown, has ended or has expired; open another with initialize"
    return ProtocolError(Code.INVALID_REQUEST, message, status=404)
