"""HTTP endpoints that call a tool by its path or by its name, and explain how every guard would judge a call."""

from __future__ import annotations

import asyncio
import re
import time
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from toolcrib.core.sources import call_mode
from toolcrib.features.bundles.format import read_tool
from toolcrib.features.streams.call_stream import stream_call
from toolcrib.interfaces.http.server_state import UNKNOWN
from toolcrib.lib.documents import write_json
from toolcrib.lib.names import stable_id
from toolcrib.lib.presentation import to_platform
from toolcrib.model.call import Call, Consent, Scope, plain_call
from toolcrib.model.errors import Kind, Reader, ToolError
from toolcrib.model.events import Chunk, LogMessage, Progress
from toolcrib.model.result import Decision, Result
from toolcrib.model.tool import Http, Sql
from toolcrib.toolkit.http import PROBLEM, Answer, answer_json, arguments_of, read_body, text_of, until_gone
from toolcrib.toolkit.http.contract import (
    ANYTHING,
    OPTIONAL_TEXT,
    SESSION_HEADER,
    SWITCH,
    TEXT,
    Body,
    Reply,
    closed,
    in_header,
    in_path,
    open_to_more,
    schema,
    text,
)
from toolcrib.toolkit.http.endpoint import PROBLEM_KEYS, PROBLEM_REQUIRED, Endpoint, EndpointTable
from toolcrib.toolkit.http.event_stream import (
    EVENT_STREAM,
    KEEP_ALIVE,
    SHARE_OF_TIME,
    UNBUFFERED,
    encode_event,
)
from toolcrib.toolkit.http.places import TOOL, TOOL_PLACE, tool_place
from toolcrib.toolkit.http.problems import headers_of, problem_of, status_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from toolcrib.crib import Crib
    from toolcrib.features.streams.call_stream import Perform
    from toolcrib.interfaces.http.server_state import HttpHost, Service, SessionStore
    from toolcrib.model.events import StreamEvent
    from toolcrib.model.result import Finding
    from toolcrib.model.session import Session
    from toolcrib.model.tool import Tool
    from toolcrib.toolkit.http import Request
    from toolcrib.toolkit.http.contract import Parameter
    from toolcrib.toolkit.http.places import ToolPlace

MAX_NAME = 1_000
EVENTS = b"text/event-stream"
WEIGHT = re.compile(r"[01](\.[0-9]{0,3})?")
EVENT_NAMES = {Progress: "progress", LogMessage: "log", Chunk: "chunk"}
# A call that was not refused by then counts as begun, and so does its stream. After so many such periods without an event a
# comment shows the client that the call still runs.
BEGIN_SECONDS = 1.0
SILENT_TURNS = 15
# Without a time to come back: a client that did so would call again.
BEGUN = b": the call has begun\n\n"

RESULT_KEYS: dict[str, object] = {
    "intents": {"type": "array", "items": schema("Intent"), "description": "What the tool asks the host to do next."},
    "meta": {**ANYTHING, "description": "callId, tool, version, durationMs, and other facts about the call."},
}
CALL_KEYS: dict[str, object] = {
    "args": {**ANYTHING, "description": "The arguments, valid for `argSchema` of the tool; absent means none."},
    "confirmation": {**OPTIONAL_TEXT, "description": "The token in `error.details.confirmation` of the same call."},
    "mode": {"type": ["string", "null"], "description": "The mode of the call; by default that of its session."},
    "session": {**OPTIONAL_TEXT, "description": "The id of a session that the caller opened."},
}
INVOKE_BODY = Body(
    name="InvokeBody",
    schema=closed((), **CALL_KEYS),
    example={"args": {"city": "Oslo"}},
    optional=True,
)
ARGUMENTS = Body(
    name="Arguments",
    schema={
        "type": "object",
        "properties": {},
        "additionalProperties": True,
        "description": "The arguments, by their names.",
    },
    example={"city": "Oslo"},
    open_keys=True,
    optional=True,
)
EXPLAIN_BODY = Body(
    name="ExplainBody",
    schema=closed(
        ("name",),
        name={**TEXT, "minLength": 1, "maxLength": MAX_NAME, "description": "A name, a slug, or bundle/name@version."},
        bundle={**OPTIONAL_TEXT, "description": "The slug or id of its bundle."},
        version=OPTIONAL_TEXT,
        **CALL_KEYS,
    ),
    example={"name": "weather", "args": {"city": "Oslo"}},
)
NAME_PLACE = in_path(
    "name",
    "A name, a slug, or bundle/name@version with the slash written as %2F.",
    {**TEXT, "minLength": 1, "maxLength": MAX_NAME},
    key="toolName",
    example="weather",
)
CALL_QUERY = (
    text("bundle", "The slug or id of its bundle."),
    text("version", "Its version.", key="toolVersion"),
)
MODE_HEADER = in_header("Toolcrib-Mode", "The mode of the call; by default that of its session.", key="mode")
CONFIRMATION_HEADER = in_header(
    "Toolcrib-Confirmation", "The token in `error.details.confirmation` of the same call.", key="confirmation"
)
TRIAL_BODY = Body(
    name="TrialBody",
    schema=closed(
        ("document",),
        document={**ANYTHING, "description": "The document of a tool, as it would be stored."},
        args=CALL_KEYS["args"],
        confirmation=CALL_KEYS["confirmation"],
    ),
    example={"document": {"type": "http"}, "args": {"city": "Oslo"}},
)
TRIAL_BUNDLE, TRIAL_SLUG, TRIAL_VERSION = "trial", "trial", "trial"
SCHEMAS: dict[str, object] = {
    "Intent": open_to_more(("type",), type=TEXT),
    "Error": closed(
        ("type", "message", "retryable", "partialSideEffects", "details"),
        type={"enum": [str(kind) for kind in Kind]},
        message=TEXT,
        retryable=SWITCH,
        partialSideEffects={**SWITCH, "description": "Whether side effects may remain."},
        details={**ANYTHING, "description": "Further facts; `partialValue` is what the tool had achieved."},
    ),
    "CallResult": {"oneOf": [schema("CallSuccess"), schema("CallFailure")]},
    "CallSuccess": closed(("ok", "value", "intents", "meta"), ok={"const": True}, value={}, **RESULT_KEYS),
    "CallFailure": closed(
        ("ok", "error", "intents", "meta"), ok={"const": False}, error=schema("Error"), **RESULT_KEYS
    ),
    "CallProblem": closed(
        (*PROBLEM_REQUIRED, "ok", "error", "intents", "meta"),
        ok={"const": False},
        error=schema("Error"),
        **PROBLEM_KEYS,
        **RESULT_KEYS,
    ),
    "Explanation": closed(
        ("tool", "allowed", "findings"),
        tool=TEXT,
        allowed=SWITCH,
        findings={"type": "array", "items": schema("Finding")},
    ),
    "Finding": closed(
        ("gate", "decision"),
        gate=TEXT,
        decision={"enum": ["allow", "confirm", "deny", "not reached"]},
        reason=TEXT,
        rule=TEXT,
        where=TEXT,
        cure=TEXT,
        note={**TEXT, "description": "What the guard has to say besides, such as how many calls are left."},
        kind={"enum": [str(kind) for kind in Kind]},
        details=ANYTHING,
    ),
}
STREAMS = (
    "With `Accept: text/event-stream` the answer is a stream of events while the tool runs: `progress` (progress, total, message), "
    "`log` (level, data, logger), `chunk` (number, value, checked: what the tool yielded, not yet checked against a schema), and last "
    "`result`, whose data is the same object as the answer in JSON. A call that is refused has its status. Closing the "
    "connection cancels the call."
)
CALLED = Reply(description="The result of the call.", schema="CallResult", media_type="text/event-stream")


class CallEndpoints:
    """Call a tool by its path or by its name, and explain how every guard would judge a call."""

    def __init__(self, crib: Crib, sessions: SessionStore, service: Service, seconds: float) -> None:
        self._crib = crib
        self._seconds = seconds
        self._service = service
        self._sessions = sessions

    async def invoke(self, request: Request) -> Answer:
        """POST …/version/{version}/invoke, and the same without the last word."""
        place = tool_place(request)
        body = await read_body(request)
        call = self._make(request, body, place.slug, place.bundle_id, place.version)
        return await self._reply(request, call, place=place)

    async def call(self, request: Request) -> Answer:
        """POST /call/{name}."""
        name, query = request.path_params["name"], request.query
        if not name or len(name) > MAX_NAME:
            raise ToolError(Kind.VALIDATION, "path: name: write the name of the tool")
        given: dict[str, object] = {
            "args": await read_body(request),
            "session": _header(request, SESSION_HEADER),
            "mode": _header(request, MODE_HEADER),
            "confirmation": _header(request, CONFIRMATION_HEADER),
        }
        call = self._make(request, given, name, query.text("bundle") or None, query.text("version") or None)
        return await self._reply(request, call)

    async def try_document(self, request: Request) -> Answer:
        """POST /crib/trial."""
        if Scope.INVOKE not in request.scopes:
            raise ToolError(Kind.AUTH, "a trial makes a call; make a token that may manage and invoke")
        body = await read_body(request)
        document = body.get("document")
        if not isinstance(document, dict):
            raise ToolError(Kind.VALIDATION, "body: document: write the document of a tool, which is an object")
        tool = read_tool(
            document,
            bundle_id=stable_id(TRIAL_BUNDLE),
            slug=TRIAL_SLUG,
            version=TRIAL_VERSION,
            bundle=TRIAL_BUNDLE,
            secrets=self._crib.secrets.names(),
        ).tool
        if not isinstance(tool.run, Http | Sql):
            raise ToolError(
                Kind.VALIDATION,
                'document: type: only "http" and "sql" can be tried before they are stored; store this one',
            )
        call = replace(self._make(request, body, tool.name, None, None), session=None, mode=None)
        return await self._reply(request, call, tool)

    async def explain(self, request: Request) -> Answer:
        """POST /crib/explain."""
        body = await read_body(request)
        name = text_of(body, "name")
        if not name or len(name) > MAX_NAME:
            raise ToolError(Kind.VALIDATION, "body: name: write the name of the tool")
        call = self._make(request, body, name, text_of(body, "bundle"), text_of(body, "version"))
        explanation = self._crib.explain(call)
        return answer_json(
            {**explanation.to_json(), "findings": [_show(found, request.reader) for found in explanation.findings]}
        )

    def _make(
        self, request: Request, body: dict[str, object], name: str, bundle: str | None, version: str | None
    ) -> Call:
        session_id = text_of(body, "session")
        arguments = arguments_of(body)
        session = None if session_id is None else self._session(session_id, request.caller)
        mode, confirmation = call_mode(text_of(body, "mode")), text_of(body, "confirmation")
        # A token that is not a person's gets no token back that would confirm its own call.
        consent = Consent.EITHER if Scope.CONFIRM in request.scopes else Consent.PERSON
        call = plain_call(name, arguments, request.caller, bundle, version, request.call_id, consent)
        if session is None and mode is None and confirmation is None:
            return call
        return replace(call, session=session, mode=mode, confirmation=confirmation)

    def _session(self, session_id: str, caller: str) -> Session:
        try:
            return self._sessions.find(session_id, caller).session
        except ToolError as problem:
            raise ToolError(Kind.SESSION_INACTIVE, problem.message) from problem

    async def _reply(
        self,
        request: Request,
        call: Call,
        unstored: Tool | None = None,
        place: ToolPlace | None = None,
    ) -> Answer:
        """Make the call, and answer with its result, or with events where the client asks for them."""
        perform = self._crib.perform if unstored is None else partial(self._crib.call_unstored, unstored)
        if _wants_events(request):
            return await self._stream(request, call, perform, place)
        await self._enter(request, call)
        result = None
        try:
            result = await until_gone(request, perform(call))
        finally:
            self._service.admission.leave()
            self._note(call, result)
        return self._answer(request, _at_place(result, place))

    async def _enter(self, request: Request, call: Call) -> None:
        """Take a slot; a client that disconnects in the queue leaves it, and its call never starts."""
        admission = self._service.admission
        if admission.take():
            return
        try:
            await until_gone(request, admission.wait())
        except (ToolError, asyncio.CancelledError) as problem:
            kind = problem.kind if isinstance(problem, ToolError) else Kind.CANCELLED
            # An unknown name must not become a label of the metrics.
            tool = UNKNOWN if self._crib.find(call.name) is None else call.name
            self._service.metrics.note_call(tool, str(kind))
            raise

    async def _stream(self, request: Request, call: Call, perform: Perform, place: ToolPlace | None) -> Answer:
        """Events while the call runs followed by its result; a call that is refused is answered with its status."""
        pieces = self._pieces(request, call, perform, place)
        first = await anext(pieces)
        if isinstance(first, Answer):
            await pieces.aclose()
            return first
        return Answer(content_type=EVENT_STREAM, headers=(UNBUFFERED,), stream=_join(first, pieces))

    async def _pieces(
        self, request: Request, call: Call, perform: Perform, place: ToolPlace | None
    ) -> AsyncGenerator[bytes | Answer, None]:
        """The events of a call as they are sent; only the first may be the answer to a call that was refused."""
        # Before the time limit of the request, so that the result of a call that takes too long is still sent.
        deadline = time.monotonic() + self._seconds * SHARE_OF_TIME
        call = replace(call, deadline=deadline)
        has_begun, silent, result = False, 0, None
        await self._enter(request, call)
        try:
            async with aclosing(stream_call(perform, call, gone=request.gone(), silence=BEGIN_SECONDS)) as events:
                async for event in events:
                    silent = silent + 1 if event is None else 0
                    if isinstance(event, Result):
                        result = _at_place(event, place)
                        if result.refused and not has_begun:
                            yield self._answer(request, result)
                            return
                    if not has_begun:
                        has_begun = True
                        yield BEGUN
                    if event is not None:
                        yield _encode(
                            result if isinstance(event, Result) and result is not None else event, request.reader
                        )
                    elif silent % SILENT_TURNS == 0:
                        yield KEEP_ALIVE
        finally:
            self._service.admission.leave()
            self._note(call, result)
        if not has_begun:
            raise ToolError(Kind.CANCELLED, "the client disconnected, and the call was cancelled")

    def _note(self, call: Call, result: Result | None) -> None:
        """Count a call; one without a result was left by its client."""
        error = Kind.CANCELLED if result is None else None if result.error is None else result.error.kind
        # An unknown name must not become a label of the metrics.
        tool = call.name if result is None or _is_found(result) else UNKNOWN
        self._service.metrics.note_call(tool, "ok" if error is None else str(error))

    def _answer(self, request: Request, result: Result) -> Answer:
        if result.error is None:
            return answer_json(to_platform(result))
        result = result.told_to(request.reader)
        error = result.error
        if error is None or not result.refused:
            return answer_json(to_platform(result))
        # A refusal is sent as problem details, which are a failed result as well.
        document = {**problem_of(error, request.id, request.reader), **to_platform(result)}
        return Answer(
            status=status_of(error), body=write_json(document), content_type=PROBLEM, headers=headers_of(error)
        )


def _header(request: Request, parameter: Parameter) -> str | None:
    """What a header says; None if it is absent or empty."""
    return request.header(parameter.name.lower().encode()) or None


def _wants_events(request: Request) -> bool:
    """Whether the client accepts events, and would not rather have JSON."""
    accept = request.fields.get(b"accept")
    if accept is None or EVENTS not in (accept := accept.lower()):
        return False
    weights = dict(_weights(accept.decode("latin-1")))
    return weights.get(EVENTS.decode(), 0.0) >= max(weights.get("application/json", 0.0), 0.001)


def _weights(accept: str) -> Iterator[tuple[str, float]]:
    for part in accept.split(","):
        media_type, *parameters = (word.strip() for word in part.split(";"))
        given = next((word[2:] for word in parameters if word.startswith("q=")), "1")
        yield media_type, float(given) if WEIGHT.fullmatch(given) else 1.0


def _encode(event: StreamEvent, reader: Reader) -> bytes:
    if isinstance(event, Result):
        return encode_event("result", to_platform(event.told_to(reader)))
    return encode_event(EVENT_NAMES[type(event)], event.to_json())


async def _join(first: bytes, pieces: AsyncGenerator[bytes | Answer, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(pieces):
        yield first
        async for piece in pieces:
            if isinstance(piece, bytes):
                yield piece


def _is_found(result: Result) -> bool:
    return "version" in result.meta


def _at_place(result: Result, place: ToolPlace | None) -> Result:
    """The result; where the tool is called by its place, the error of an unknown one names that instead of its name."""
    error = result.error
    if error is None or place is None or error.kind is not Kind.NOT_FOUND or _is_found(result):
        return result
    message = f"there is no tool {place.slug}@{place.version} in the bundle {place.bundle_id}"
    return replace(result, error=ToolError(Kind.NOT_FOUND, message, details=error.details))


def _show(finding: Finding, reader: Reader) -> dict[str, object]:
    """The finding of a guard; a refusal also has its kind and details."""
    shown = finding.to_json(reader)
    verdict = finding.verdict
    if verdict is None or verdict.decision is Decision.ALLOW:
        return shown
    return {**shown, "kind": str(verdict.kind), "details": dict(verdict.details)}


def _call_endpoints(host: HttpHost) -> CallEndpoints:
    return CallEndpoints(host.crib, host.sessions, host.service, host.seconds)


CALL_ENDPOINTS = EndpointTable(
    tag="calls",
    summary="Calls of tools, by path or by name, and sessions.",
    make=_call_endpoints,
    places=(*TOOL_PLACE, NAME_PLACE),
    schemas=SCHEMAS,
    endpoints=(
        Endpoint(
            name="invokeTool",
            method="POST",
            path=f"{TOOL}/invoke",
            aliases={TOOL: "invokeToolHere"},
            handler=CallEndpoints.invoke,
            scope=Scope.INVOKE,
            is_call=True,
            summary="Call a tool.",
            description="Arguments are checked against `argSchema` before anything runs, the value against `outputSchema`. "
            f"No body means no arguments. {STREAMS}",
            body=INVOKE_BODY,
            refusals=(404, 409, 413),
            replies={200: CALLED},
        ),
        Endpoint(
            name="callTool",
            method="POST",
            path="/call/{name}",
            handler=CallEndpoints.call,
            scope=Scope.INVOKE,
            is_call=True,
            summary="Call a tool by its name; the body is its arguments.",
            description=f"No body means no arguments. {STREAMS}",
            query=CALL_QUERY,
            headers=(SESSION_HEADER, MODE_HEADER, CONFIRMATION_HEADER),
            body=ARGUMENTS,
            refusals=(404, 409, 413),
            replies={200: CALLED},
        ),
        Endpoint(
            name="tryDocument",
            method="POST",
            path="/crib/trial",
            handler=CallEndpoints.try_document,
            scope=Scope.MANAGE,
            is_call=True,
            summary="Call an HTTP tool that is not stored yet, under all guards of one that is.",
            description=f"Needs the scope `invoke` too. {STREAMS}",
            body=TRIAL_BODY,
            refusals=(404, 409, 413),
            replies={200: CALLED},
        ),
        Endpoint(
            name="explainCall",
            method="POST",
            path="/crib/explain",
            handler=CallEndpoints.explain,
            scope=Scope.INVOKE,
            summary="Explain how every guard would judge a call, without making it.",
            body=EXPLAIN_BODY,
            refusals=(409,),
            replies={
                200: Reply(description="The verdict of every guard, in the order of the call.", schema="Explanation")
            },
        ),
    ),
)
endpoints = (CALL_ENDPOINTS,)
