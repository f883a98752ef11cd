"""Check and read the response of a handler, or turn what it threw into an error that a caller may see.

{"ok": true, "data": …, "intents": […]}
{"ok": false, "error": {"type": …, "message": …, "retryable": …, "partialSideEffects": …, "details": {…}}, "intents": […]}
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

from toolcrib.infra.programs.job_outcome import WORDS_OF_THE_PLATFORM
from toolcrib.lib.documents import check_plain
from toolcrib.lib.javascript_error import name_class, tell_all
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.result import Intent, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.model.tool import Tool

logger = logging.getLogger("toolcrib.runners")

END_VOICE_SESSION = "END_VOICE_SESSION"
SUPPRESS_AUDIO = "SUPPRESS_AUDIO"
SUPPRESS_TRANSCRIPT = "SUPPRESS_TRANSCRIPT"
SET_PENDING_MESSAGE = "SET_PENDING_MESSAGE"
IMMEDIATE = "immediate"
MOMENTS = ("current_turn", "farewell_spoken", IMMEDIATE)
MAX_INTENTS = 100
MAX_INTENT_BYTES = 64_000
MAX_MESSAGE_LETTERS = 2_000
NAME_LETTERS = 100

_FORM = "return {ok: true, data} or {ok: false, error: {type, message, retryable}}"


def read_response(tool: Tool, response: object) -> Outcome:
    """What a response says; one that is not of the form is an INTERNAL error that says what is wrong with it."""
    try:
        return _read(response)
    except ValueError as problem:
        return Outcome(error=invalid_response(tool, str(problem)))


def invalid_response(tool: Tool, reason: str) -> ToolError:
    """The error of a handler that answered with something else than a response; it has run, so effects may remain."""
    message = f"{tool.name} gave an invalid response: {reason}; {_FORM}"
    return ToolError(Kind.INTERNAL, message, partial_side_effects=True)


def thrown(tool: Tool, described: Mapping[str, object]) -> ToolError:
    """The error that a handler threw: its own if it meant to give one, else one of ours, and the rest is for the log."""
    facts = described.get("toolError")
    if isinstance(facts, dict):
        try:
            given = {name: fact for name, fact in facts.items() if fact is not None}
            return _read_error({"retryable": False, "message": described.get("message"), **given})
        except ValueError as problem:
            return invalid_response(tool, f"it threw a ToolError, but {problem}")
    logger.error("%s failed unexpectedly\n%s", tool.name, tell_all(described))
    message = f"{tool.name} failed unexpectedly ({name_class(described)}); the log has the details"
    return ToolError(Kind.INTERNAL, message, partial_side_effects=True)


def _read(response: object) -> Outcome:
    if not isinstance(response, dict):
        raise ValueError(f"it is {_name_type(response)} and no object")
    if "ok" not in response:
        raise ValueError("it has no ok")
    if not isinstance(response["ok"], bool):
        raise ValueError(f"ok is {_name_type(response['ok'])} and neither true nor false")
    intents = _read_intents(response.get("intents"))
    if response["ok"]:
        return Outcome(value=response.get("data"), intents=intents)
    # What there is beside an error is what was achieved before it.
    return Outcome(value=response.get("data"), error=_read_error(response.get("error")), intents=intents)


def _read_error(error: object) -> ToolError:
    if not isinstance(error, dict):
        raise ValueError(f"error is {_name_type(error)} and no object")
    kind, message, retryable = (error.get(name) for name in ("type", "message", "retryable"))
    partial = error.get("partialSideEffects", error.get("partial_side_effects"))
    details = error.get("details")
    if not isinstance(kind, str) or kind not in set(Kind):
        raise ValueError(f"error.type is {_show(kind)} and none of {', '.join(_words_of_handlers())}")
    if not isinstance(message, str):
        raise ValueError(f"error.message is {_name_type(message)} and no text")
    if not isinstance(retryable, bool):
        raise ValueError(f"error.retryable is {_name_type(retryable)} and neither true nor false")
    if partial is not None and not isinstance(partial, bool):
        raise ValueError(f"error.partialSideEffects is {_name_type(partial)} and neither true nor false")
    if details is not None and not isinstance(details, dict):
        raise ValueError(f"error.details is {_name_type(details)} and no object")
    _check(error, "error")
    return ToolError(
        # A handler cannot pass its failure off as a refusal of the platform's.
        Kind.PERMANENT if Kind(kind) in WORDS_OF_THE_PLATFORM else Kind(kind),
        message[:MAX_MESSAGE_LETTERS],
        retryable=retryable,
        partial_side_effects=partial is True,
        details=details,
    )


def _read_intents(intents: object) -> tuple[Intent, ...]:
    if intents is None:
        return ()
    if not isinstance(intents, list):
        raise ValueError(f"intents is {_name_type(intents)} and no list")
    if len(intents) > MAX_INTENTS:
        raise ValueError(f"there are {len(intents)} intents, more than {MAX_INTENTS}")
    _check(intents, "intents")
    # They become part of the session's state, which every handler of the conversation is handed.
    if len(json.dumps(intents)) > MAX_INTENT_BYTES:
        raise ValueError(f"the intents are longer than {MAX_INTENT_BYTES} bytes")
    return tuple(_read_intent(intent, f"intents[{number}]") for number, intent in enumerate(intents))


def _read_intent(intent: object, place: str) -> Intent:
    """One intent with its defaults; one of an unknown type is passed on as it is."""
    if not isinstance(intent, dict):
        raise ValueError(f"{place} is {_name_type(intent)} and no object")
    kind = intent.get("type")
    if not isinstance(kind, str) or not kind:
        raise ValueError(f"{place}.type is {_show(kind)} and no name")
    fields = {name: value for name, value in intent.items() if name != "type"}
    if kind == END_VOICE_SESSION and fields.setdefault("after", IMMEDIATE) not in MOMENTS:
        raise ValueError(f"{place}.after is {_show(fields['after'])} and none of {', '.join(MOMENTS)}")
    if kind in {SUPPRESS_AUDIO, SUPPRESS_TRANSCRIPT} and not isinstance(fields.setdefault("value", True), bool):
        raise ValueError(f"{place}.value is {_name_type(fields['value'])} and neither true nor false")
    if kind == SET_PENDING_MESSAGE and "message" not in fields:
        raise ValueError(f"{place} has no message")
    return Intent(type=kind, fields=fields)


def _check(part: object, place: str) -> None:
    """Refuse what would not come out of JSON as it went in."""
    try:
        check_plain(part, place=place)
    except ToolError as problem:
        raise ValueError(problem.message) from None


def _words_of_handlers() -> list[str]:
    return [kind for kind in Kind if kind not in WORDS_OF_THE_PLATFORM]


def _show(value: object) -> str:
    return repr(value[:NAME_LETTERS]) if isinstance(value, str) else _name_type(value)


def _name_type(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "a boolean", type(None): "null"}
    names |= {int: "a number", float: "a number"}
    return names.get(type(value), f"a {type(value).__name__}")
