"""What a tool asks the host to do next: applied to the state of the session, and told to the host, in order."""

from __future__ import annotations

import logging
from types import CoroutineType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from toolcrib.model.result import Intent
    from toolcrib.model.session import Session

    Fields = Mapping[str, object]

logger = logging.getLogger("toolcrib.pipeline")

AT_ONCE = "immediate"


def deliver(intents: Iterable[Intent], session: Session | None, call_id: str) -> list[str]:
    """Apply the intents of a call that succeeded and tell the host of each; what could not be done comes back as warnings.

    Without a session there is nobody to tell, and only what nobody could understand is told.
    """
    warnings: list[str] = []
    for intent in intents:
        changes = _changes(intent)
        if isinstance(changes, str):
            warnings.append(changes)
        elif session is not None:
            session.set_state(**changes)
            if not _tell(intent, session, call_id):
                warnings.append(f"the host failed to act on the intent {intent.type}; the log has the details")
    return warnings


def _changes(intent: Intent) -> dict[str, object] | str:
    """What the intent changes in the state of its session, or why it is ignored."""
    kind: object = intent.type
    change = CHANGES.get(kind) if isinstance(kind, str) else None
    if change is None:
        return f"the intent {kind!r:.80} is unknown and was ignored; known are {', '.join(CHANGES)}"
    return change(intent.fields)


def _tell(intent: Intent, session: Session, call_id: str) -> bool:
    """Let the host hear an intent; False if it could not take it."""
    if session.on_intent is None:
        return True
    try:
        returned: object = session.on_intent(intent)
    except Exception:
        logger.exception("call %s: on_intent failed at %s", call_id, intent.type)
        return False
    # What an `async def` returns waits for somebody to await it, and nobody does.
    if type(returned) is CoroutineType:
        returned.close()
        logger.error("call %s: on_intent is async, so %s was not told; write it as def", call_id, intent.type)
        return False
    return True


def _end_voice_session(fields: Fields) -> dict[str, object] | str:
    after = fields.get("after")
    if after is None or isinstance(after, str):
        return {"endVoiceSession": {"after": after or AT_ONCE}}
    return "the intent END_VOICE_SESSION was ignored; its after must be a text such as 'current_turn'"


def _switch(kind: str, key: str) -> Callable[[Fields], dict[str, object] | str]:
    def change(fields: Fields) -> dict[str, object] | str:
        value = fields.get("value")
        if value is None or isinstance(value, bool):
            return {key: value is not False}
        return f"the intent {kind} was ignored; its value must be true or false"

    return change


def _set_pending_message(fields: Fields) -> dict[str, object] | str:
    if fields.get("message") is None:
        return "the intent SET_PENDING_MESSAGE was ignored; it has no message"
    return {"pendingMessage": fields["message"]}


CHANGES: dict[str, Callable[[Fields], dict[str, object] | str]] = {
    "END_VOICE_SESSION": _end_voice_session,
    "SUPPRESS_AUDIO": _switch("SUPPRESS_AUDIO", "suppressAudio"),
    "SUPPRESS_TRANSCRIPT": _switch("SUPPRESS_TRANSCRIPT", "suppressTranscript"),
    "SET_PENDING_MESSAGE": _set_pending_message,
}
