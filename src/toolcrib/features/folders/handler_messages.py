"""Exchange messages with a handler: the facts of its call, what it asks for while it runs, and the response it ends with.

{"ok": true, "data": …, "intents": […]}
{"ok": false, "error": {"type": …, "message": …, "retryable": …, "partialSideEffects": …, "details": {…}}, "intents": […]}
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from toolcrib.infra.programs import PLATFORM_KINDS, refuse_changed_files
from toolcrib.infra.programs.child_channel import ClientRequests, is_asked, is_told
from toolcrib.lib.documents import check_plain
from toolcrib.lib.javascript_error import log_fields, name_class, tell_all
from toolcrib.model.errors import READ_THE_LOG, Cure, Kind, ToolError
from toolcrib.model.result import Intent, Outcome
from toolcrib.model.tool import Handler
from toolcrib.values import joins_text

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from toolcrib.model.call import Context
    from toolcrib.model.tool import Tool


logger = logging.getLogger("toolcrib.runners")

VOICE = "voice"
MAX_EVENT_LETTERS = 200
MAX_AUDIT_BYTES = 100_000
# Each is a line of the journal; the limit stops a handler in a loop.
MAX_AUDIT_ENTRIES = 1_000
MAX_BYTES_OF_A_CALL = 1_000_000
# Further complaints are not logged.
MAX_COMPLAINTS = 10
# Beyond it JavaScript rounds whole numbers.
LARGEST_OF_NODE = 2**53 - 1

_SHAPES = '{"ask": 1, "do": "send", "message": …} or {"do": "audit", "event": "…", "data": {…}}'


def checked_files(run: Handler) -> dict[Path, bytes]:
    """The checked content of each file of the handler."""
    root = run.root.absolute()
    return {root / path: content for path, content in run.contents.items()}


def refuse_changed(tool: Tool, run: Handler, layers: Iterable[str]) -> None:
    """Refuse a folder that is not what was loaded, if that is what would run."""
    root = run.root.absolute()

    def changed(path: Path) -> ToolError:
        message = f"{path.relative_to(root).as_posix()} changed since it was loaded"
        return ToolError(Kind.CONFLICT, message, cure=Cure("run crib build and start again"))

    refuse_changed_files(tool, checked_files(run), run.folders, layers, changed)


NO_SESSION = "there is no session, so no client gets the message; nothing was sent"


class HandlerService:
    """Serves the messages of one running handler; an invalid message never raises."""

    def __init__(self, tool: Tool, context: Context) -> None:
        import asyncio

        self._tool = tool
        self._context = context
        self._requests = ClientRequests(context)
        self._sending = asyncio.Lock()
        self._entries = self._bytes = 0
        self._complaints = 0

    @property
    def call_id(self) -> str:
        """The call that is served."""
        return self._context.call_id

    def facts(self) -> dict[str, object]:
        """The facts of the call as plain JSON, without references to host objects."""
        tool, context = self._tool, self._context
        return {
            "clientId": context.caller,
            "tool": {"id": tool.name, "version": tool.version, "idempotent": tool.idempotent},
            "session": self._session(),
            "voice": context.mode == VOICE,
            "streams": context.send_chunk is not None,
            "joinsText": joins_text(tool.output_schema),
        }

    async def answer(self, message: Mapping[str, object]) -> dict[str, object] | None:
        """Do what one message asks for; None where no answer is expected."""
        value: object = None
        try:
            if is_told(message):
                self._requests.tell(message)
            elif is_asked(message):
                value = await self._requests.ask(message)
            else:
                await self._do(message)
        except ToolError as refusal:
            return self._refuse(message, refusal)
        except Exception as problem:  # noqa: BLE001 - the client's connection and the journal may fail in any way
            self._complain("what its handler asked for failed", problem)
            reason = f"it failed ({type(problem).__name__}) and may have been done in part"
            return self._refuse(message, ToolError(Kind.INTERNAL, reason))
        number = _number_of(message)
        if number is None:
            return None
        return {"ask": number, "ok": True, **({} if value is None else {"value": value})}

    async def chunk(self, message: Mapping[str, object]) -> None:
        """Hand the client what the handler yielded; raises ToolError for too much."""
        await self._requests.chunk(message)

    async def slow_down(self) -> None:
        """Count one message; a handler that sends too many waits until the host reads on."""
        await self._requests.slow_down()

    def close(self) -> None:
        """Send the client the last progress, if it has not received it yet."""
        self._requests.close()

    async def _do(self, message: Mapping[str, object]) -> None:
        action = message.get("do")
        if action == "send":
            await self._send(message)
        elif action == "audit":
            self._audit(message.get("event"), message.get("data", {}))
        else:
            raise _refusal(f"{str(action)[:40]!r} is nothing that a handler can ask for; write {_SHAPES}")

    async def _send(self, message: Mapping[str, object]) -> None:
        import asyncio

        if "message" not in message:
            raise _refusal(f"there is no message to send; write {_SHAPES}")
        session = self._context.session
        if session is None:
            raise _refusal(NO_SESSION)
        mask, content = self._context.mask, message["message"]
        async with self._sending:  # the client hears messages in the order in which the handler sent them
            try:
                await session.send(content if mask is None else mask(content))
            except asyncio.CancelledError:
                if _is_being_cancelled():
                    raise
                raise _refusal("the client's connection gave up; the message may not have arrived") from None

    def _audit(self, event: object, data: object) -> None:
        if not isinstance(event, str) or not 0 < len(event) <= MAX_EVENT_LETTERS:
            raise _refusal(f"the event of an audit entry is a text of 1 to {MAX_EVENT_LETTERS} letters")
        if not isinstance(data, dict):
            raise _refusal(f"the data of the audit entry {event!r} is not an object; write {{…}}")
        length = len(json.dumps(data))
        if length > MAX_AUDIT_BYTES:
            raise _refusal(f"the data of the audit entry {event!r} is longer than {MAX_AUDIT_BYTES} bytes")
        if self._entries >= MAX_AUDIT_ENTRIES or self._bytes + length > MAX_BYTES_OF_A_CALL:
            message = f"a call writes at most {MAX_AUDIT_ENTRIES} audit entries with {MAX_BYTES_OF_A_CALL} bytes in all"
            raise _refusal(message)
        self._entries += 1
        self._bytes += length
        self._context.audit(event, data)

    def _refuse(self, message: Mapping[str, object], refusal: ToolError) -> dict[str, object] | None:
        number = _number_of(message)
        if number is None:
            self._complain(f"refused what its handler asked for: {refusal.message}")
            return None
        # A question gets a whole error, as a call does; for a message to the session the protocol has only a text.
        error: object = refusal.to_json() if is_asked(message) else refusal.message
        return {"ask": number, "ok": False, "error": error}

    def _complain(self, text: str, problem: Exception | None = None) -> None:
        self._complaints += 1
        if self._complaints <= MAX_COMPLAINTS:
            logger.warning("%s: %s", self._tool.name, text, exc_info=problem)

    def _session(self) -> dict[str, object]:
        run, session = self._tool.run, self._context.session
        registry = run.registry if isinstance(run, Handler) else ""
        if session is None:
            return {"isActive": False, "toolsVersion": registry, "state": {}}
        return {
            "isActive": session.is_active,
            "toolsVersion": session.tools_version or registry,
            "state": self._copy(session.state),
        }

    def _read_number(self, digits: str) -> int:
        """Parse an integer; refuse one that Node would round."""
        number, run = int(digits), self._tool.run
        if abs(number) > LARGEST_OF_NODE and isinstance(run, Handler) and run.language == "javascript":
            raise ValueError(f"{digits[:40]} is beyond the whole numbers of JavaScript")
        return number

    def _copy(self, state: Mapping[str, object]) -> dict[str, object]:
        """The session state as plain JSON; values without a JSON form are left out, with a warning."""
        copied: dict[str, object] = {}
        for name, value in state.items():
            try:
                copied[name] = json.loads(
                    json.dumps(value, default=_plain, allow_nan=False), parse_int=self._read_number
                )
            except (TypeError, ValueError, RecursionError) as problem:
                logger.warning("%s is not told of %r in the session's state: %s", self._tool.name, name, problem)
        return copied


def _number_of(message: Mapping[str, object]) -> int | None:
    """The number of the request to answer; None if no answer is expected."""
    number = message.get("ask")
    if not isinstance(number, int) or isinstance(number, bool):
        return None
    return number if 0 <= number <= LARGEST_OF_NODE else None


def _refusal(reason: str) -> ToolError:
    return ToolError(Kind.VALIDATION, reason)


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} has no JSON form")


def _is_being_cancelled() -> bool:
    """Whether this task itself is being cancelled, and not only what it waits for."""
    import asyncio

    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


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
    if described.get("message") == NO_SESSION:
        message = f"{tool.name}: {NO_SESSION}; call it in a session: crib.session(send=…)"
        return ToolError(Kind.SESSION_INACTIVE, message, partial_side_effects=True)
    logger.error("%s failed unexpectedly\n%s", tool.name, tell_all(described), extra=log_fields(described))
    reason = f"{tool.name} failed unexpectedly ({name_class(described)})"
    error = ToolError(Kind.INTERNAL, reason, cure=READ_THE_LOG, partial_side_effects=True)
    error.trace = tell_all(described)
    return error


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
        raise ValueError(f"error.type is {_show(kind)} and none of {', '.join(_handler_kinds())}")
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
        # A handler cannot report its failure as a refusal of the platform.
        Kind.PERMANENT if Kind(kind) in PLATFORM_KINDS else Kind(kind),
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
    """Refuse what does not survive a JSON round trip."""
    try:
        check_plain(part, place=place)
    except ToolError as problem:
        raise ValueError(problem.message) from None


def _handler_kinds() -> list[str]:
    return [kind for kind in Kind if kind not in PLATFORM_KINDS]


def _show(value: object) -> str:
    return repr(value[:NAME_LETTERS]) if isinstance(value, str) else _name_type(value)


def _name_type(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "a boolean", type(None): "null"}
    names |= {int: "a number", float: "a number"}
    return names.get(type(value), f"a {type(value).__name__}")
