"""Calls over HTTP: a tool by its place or by its name, and what every gate would say to it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from toolcrib.faces.http.bodies import arguments_of, read_any_keys, read_keys, text_of
from toolcrib.faces.http.leaving import until_gone
from toolcrib.faces.http.metrics import UNKNOWN
from toolcrib.faces.http.places import tool_place
from toolcrib.faces.http.problems import headers_of, problem_of, status_of
from toolcrib.faces.http.queries import refuse_query
from toolcrib.faces.http.wire import PROBLEM, Answer, answer_json, to_bytes
from toolcrib.model.call import Call
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.verdict import Decision
from toolcrib.pure.projections import to_platform

if TYPE_CHECKING:
    from toolcrib.crib import Crib
    from toolcrib.faces.http.places import ToolPlace
    from toolcrib.faces.http.service import Service
    from toolcrib.faces.http.sessions import SessionDesk
    from toolcrib.faces.http.wire import Request
    from toolcrib.model.result import Result
    from toolcrib.model.session import Session
    from toolcrib.pipeline.explanation import Finding

INVOKE_KEYS = frozenset({"args", "confirmation", "mode", "session"})
CALL_KEYS = INVOKE_KEYS | {"name", "bundle", "version"}
MAX_NAME = 1_000


class CallDesk:
    """Makes the calls that are asked for."""

    def __init__(self, crib: Crib, sessions: SessionDesk, service: Service, body_bytes: int) -> None:
        self._crib = crib
        self._service = service
        self._sessions = sessions
        self._body_bytes = body_bytes

    async def invoke(self, request: Request) -> Answer:
        """POST …/version/{version}/invoke, and the same without the last word."""
        place = tool_place(request)
        refuse_query(request)
        body = await read_any_keys(request, self._body_bytes, INVOKE_KEYS)
        result = await self._perform(request, self._make(request, body, place.slug, place.bundle_id, place.version))
        return self._answer(request, _at_place(result, place))

    async def call(self, request: Request) -> Answer:
        """POST /crib/call."""
        return self._answer(request, await self._perform(request, await self._named(request)))

    async def explain(self, request: Request) -> Answer:
        """POST /crib/explain."""
        explanation = self._crib.explain(await self._named(request))
        return answer_json({**explanation.to_json(), "findings": [_show(found) for found in explanation.findings]})

    async def _named(self, request: Request) -> Call:
        refuse_query(request)
        body = await read_keys(request, self._body_bytes, CALL_KEYS)
        name = text_of(body, "name")
        if not name or len(name) > MAX_NAME:
            raise ToolError(Kind.VALIDATION, "body: name: write the name of the tool")
        return self._make(request, body, name, text_of(body, "bundle"), text_of(body, "version"))

    def _make(
        self, request: Request, body: dict[str, object], name: str, bundle: str | None, version: str | None
    ) -> Call:
        session_id = text_of(body, "session")
        return Call(
            name=name,
            arguments=arguments_of(body),
            caller=request.caller,
            bundle=bundle,
            version=version,
            session=None if session_id is None else self._session(session_id, request.caller),
            mode=text_of(body, "mode"),
            confirmation=text_of(body, "confirmation"),
            id=request.call_id,
        )

    def _session(self, session_id: str, caller: str) -> Session:
        try:
            return self._sessions.find(session_id, caller)
        except ToolError as problem:
            raise ToolError(Kind.SESSION_INACTIVE, problem.message) from problem

    async def _perform(self, request: Request, call: Call) -> Result:
        async with self._service.admission:
            result = await until_gone(request, self._crib.call(call))
        error = result.error
        # What callers make up does not become a name that is counted.
        tool = call.name if _is_found(result) else UNKNOWN
        self._service.metrics.note_call(tool, "ok" if error is None else str(error.kind))
        return result

    def _answer(self, request: Request, result: Result) -> Answer:
        error = result.error
        if error is None or not result.refused:
            return answer_json(to_platform(result))
        # A refusal is told as problem details, which are a failed result as well.
        document = {**problem_of(error, request.id), **to_platform(result)}
        return Answer(status=status_of(error), body=to_bytes(document), content_type=PROBLEM, headers=headers_of(error))


def _is_found(result: Result) -> bool:
    return "version" in result.meta


def _at_place(result: Result, place: ToolPlace) -> Result:
    """The result; where there is no such tool, in the words of a place and not of a name."""
    error = result.error
    if error is None or error.kind is not Kind.NOT_FOUND or _is_found(result):
        return result
    message = f"there is no tool {place.slug}@{place.version} in the bundle {place.bundle_id}"
    return replace(result, error=ToolError(Kind.NOT_FOUND, message, details=error.details))


def _show(finding: Finding) -> dict[str, object]:
    """What a gate says, and of a refusal also what it would be called."""
    shown = finding.to_json()
    verdict = finding.verdict
    if verdict is None or verdict.decision is Decision.ALLOW:
        return shown
    return {**shown, "kind": str(verdict.kind), "details": dict(verdict.details)}
