"""Run HTTP tools: fill request templates, check, send in sequence, retry, and read responses."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from toolcrib.features.http_tools import HttpToolsSettings
from toolcrib.features.http_tools.extraction import compile_extract
from toolcrib.features.http_tools.request_check import check_http
from toolcrib.features.http_tools.request_template import compile_call
from toolcrib.features.http_tools.response import Repeating, explain_status, nothing, read_value
from toolcrib.features.http_tools.signer import compile_auth
from toolcrib.features.http_tools.slot_values import UNKNOWN, Names, Values
from toolcrib.features.http_tools.slots import Source, no_value, reader_of
from toolcrib.infra.egress import Request, read_media_type
from toolcrib.infra.secrets.grants import Grants, granted_value
from toolcrib.infra.secrets.secret import VariableMasking
from toolcrib.lib.http_syntax import parse_hosts
from toolcrib.lib.templates import ABSENT
from toolcrib.model.errors import Kind, SettingsError, ToolError
from toolcrib.model.result import Outcome
from toolcrib.model.tool import ErrorMode, Http, Spelling

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Container, Mapping

    from toolcrib.core.resources import Resources
    from toolcrib.features.http_tools.response import Value
    from toolcrib.features.http_tools.slot_values import SecretSource
    from toolcrib.infra.egress import Response
    from toolcrib.infra.egress.client import Egress
    from toolcrib.lib.http_syntax import HostList
    from toolcrib.model.call import Call, Context
    from toolcrib.model.tool import HttpCall, Tool

SUCCESS = range(200, 300)
UNAUTHORISED = 401
# A larger response is parsed in a thread: that takes longer than the hand-over.
AT_ONCE_BYTES = 65_536
# Errors that `errorMode: empty` does not hide: the request was invalid or not allowed.
REFUSALS = frozenset({Kind.VALIDATION, Kind.HOST_NOT_ALLOWED})
MAX_RETRIES = 4
MAX_SENT_BYTES = 1_000_000
MAX_RESPONSE_BYTES = 5_000_000


class HttpRunner:
    """Sends the requests of tools to the hosts that the operator allows.

    `hosts` are patterns as in the setting http_tools.hosts. Without any, a tool of a bundle reaches nothing, and a script
    every public address. `version` is that of the application. `max_retries` limits the retries of a request, even if its
    tool allows more. `variable` gives a variable of the host or secret that was granted to a tool, None for any other.
    """

    kind = Http.kind

    def __init__(
        self,
        egress: Callable[[], Egress],
        *,
        hosts: tuple[str, ...],
        secrets: SecretSource,
        version: str,
        variable: Callable[[Tool, str], str | None] = lambda _tool, _name: None,
        environment: Mapping[str, str] | None = None,
        max_retries: int = MAX_RETRIES,
        max_sent_bytes: int = MAX_SENT_BYTES,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
        sleep: Callable[[float], Awaitable[None]] | None = None,
    ) -> None:
        self._secrets = secrets
        self._version = version
        self._variable = variable
        self._environment = environment or {}
        self._hosts = parse_hosts(hosts, "the setting http_tools.hosts")
        self._way = Way(
            egress=egress,
            max_sent_bytes=max_sent_bytes,
            max_response_bytes=max_response_bytes,
            max_retries=max_retries,
            sleep=_sleep if sleep is None else sleep,
        )

    def bind(self, tool: Tool) -> BoundHttp:
        """Compile the templates and expressions of every request."""
        if not isinstance(tool.run, Http):
            raise ToolError(Kind.EXECUTOR_NOT_FOUND, f"{tool.name} is a {tool.kind} and makes no requests of its own")
        if problems := check_http(tool.run, tool.parameters):
            raise ToolError(Kind.VALIDATION, f"{tool.name}: {'; '.join(problems)}", details={"problems": problems})
        return self.bind_run(tool, tool.run, partial(granted_value, tool, variable=self._variable))

    def bind_run(self, tool: Tool, http: Http, variable: Callable[[str], str | None], *, place: str = "") -> BoundHttp:
        """Compile checked requests for a tool. `place` stands before the parts of a request in messages.

        `variable` gives a variable or secret that was granted to the tool, and raises CAPABILITY_MISSING for any other.
        """
        grants = Grants(variable, self._environment)
        names = Names(tool, http, secrets=self._secrets, grants=grants, version=self._version)
        return BoundHttp(tool, http, self._way, names, hosts=self._allowed(http), place=place)

    def _allowed(self, http: Http) -> HostList | None:
        """The hosts of the operator, narrowed to those of the tool; None means every public host."""
        is_open = http.spelling is Spelling.BRACES and not self._hosts.patterns
        operators = None if is_open else self._hosts
        return operators if http.hosts is None else replace(parse_hosts(http.hosts), within=operators)

    async def close(self) -> None:
        """Nothing to do: the egress is closed by its owner."""


class BoundHttp:
    """A tool prepared for calls: everything that does not depend on the arguments."""

    is_async = True
    wants_context = True
    checks = True
    function = None

    def __init__(self, tool: Tool, http: Http, way: Way, names: Names, *, hosts: HostList | None, place: str) -> None:
        self._tool = tool
        self._masking = VariableMasking()
        self._names = names
        self._steps = [
            Step(call, way, self._masking, names, hosts=hosts, spelling=http.spelling, place=place)
            for call in http.calls
        ]
        self._contested = names.declared.intersection(
            slot.name for step in self._steps for slot in step.template.slots if slot.source is Source.ANY
        )

    def check(self, arguments: dict[str, object], call: Call) -> None:
        """Refuse what can be checked without sending; values of later responses are only checked to be used."""
        values = self._values(arguments, call.id, call.caller)
        try:
            self._names.refuse_secrets(self._contested)
            for step in self._steps:
                step.check(values)
                values.keep(step.call.name, UNKNOWN)
        except ToolError as refusal:
            raise self._masking.hide_error(refusal) from None

    async def run(self, arguments: dict[str, object], context: Context | None) -> Outcome:
        """Send the requests in sequence; the value is that of the last."""
        if context is None:
            raise ToolError(Kind.INTERNAL, f"{self._tool.name} runs only in a call")
        values = self._values(arguments, context.call_id, context.caller)
        reports: list[Report] = []
        has_effects = False
        for step in self._steps:
            try:
                request = step.write(values)
            except ToolError as refusal:
                return self._fail(self._masking.hide_error(refusal), reports, has_effects=has_effects)
            report = await step.perform(request, values, context)
            reports.append(report)
            if report.error is not None and not report.stands_in:
                return self._fail(report.error, reports, has_effects=has_effects)
            has_effects = has_effects or request.has_effects
            values.keep(step.call.name, report.answer)
        last = reports[-1]
        return Outcome(value=last.value, meta=self._tell(reports), stands_in=last.stands_in)

    def _values(self, arguments: dict[str, object], call_id: str, caller: str) -> Values:
        return Values(self._names, arguments, call_id=call_id, caller=caller, masking=self._masking)

    def _fail(self, error: ToolError, reports: list[Report], *, has_effects: bool) -> Outcome:
        """An error with facts about the requests; side effects of earlier ones remain."""
        if has_effects and not error.partial_side_effects:
            error = ToolError(
                error.kind,
                error.message,
                retryable=error.retryable,
                partial_side_effects=True,
                details=error.details,
            )
        return Outcome(error=error, meta=self._tell(reports))

    def _tell(self, reports: list[Report]) -> dict[str, object]:
        """The facts of the last request, and those of each where there may be several."""
        facts = [report.to_json(self._masking) for report in reports]
        if len(self._steps) == 1 or not facts:
            return facts[-1] if facts else {}
        named = zip(self._steps, facts, strict=False)
        return {**facts[-1], "calls": [{"name": step.call.name, **fact} for step, fact in named]}


@dataclass(frozen=True, kw_only=True, slots=True)
class Way:
    """How requests are sent: egress, size limits and retry limit."""

    egress: Callable[[], Egress]
    max_sent_bytes: int
    max_response_bytes: int
    max_retries: int
    sleep: Callable[[float], Awaitable[None]]


class Report:
    """The result of a sent request; `answer` is for later requests, `value` for the caller."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.attempts = 0
        self.response: Response | None = None
        self.started = time.monotonic()
        self.answer: object = None
        self.value: object = None
        self.error: ToolError | None = None
        self.stands_in = False

    def to_json(self, masking: VariableMasking) -> dict[str, object]:
        """The facts, without secrets."""
        facts: dict[str, object] = {"origin": masking.hide(self.origin), "attempts": self.attempts}
        if self.response is not None:
            facts["status"] = self.response.status
            facts["contentType"] = masking.hide(read_media_type(self.response.headers.get("content-type", "")))
        if self.stands_in and self.error is not None:
            facts["failure"] = {"type": str(self.error.kind), "message": self.error.message}
        return facts


class Step:
    """A compiled request; `names` resolves its slots."""

    def __init__(
        self,
        call: HttpCall,
        way: Way,
        masking: VariableMasking,
        names: Names,
        *,
        hosts: HostList | None,
        spelling: Spelling,
        place: str,
    ) -> None:
        self.call = call
        self.template = compile_call(call, spelling, place).settle(names.settle)
        self._way = way
        self._hosts = hosts
        self._masking = masking
        self._signer = compile_auth(call.auth, reader_of(spelling))
        self._extract = compile_extract(call.extract) if call.extract else None
        self._success: Container[int] = call.success or SUCCESS
        self._repeating = Repeating(call.method, call.retry, way.max_retries)
        self._secret_headers = self.template.headers_with(names.may_be_secret)

    def check(self, values: Values) -> None:
        """Refuse what can be checked without sending: names, values, headers, host, address and size."""
        self._way.egress().check(self.write(values).url, self._hosts)
        for slot in () if self._signer is None else self._signer.slots:
            if values(slot) is ABSENT:
                raise no_value(slot)

    def write(self, values: Values) -> Request:
        """The request with every slot filled; refuses one that is too large."""
        written = self.template.write(values)
        request = Request(
            url=written.url,
            method=written.method,
            headers=written.headers,
            body=written.body,
            secret_headers=self._secret_headers,
        )
        size, limit = request.size + len(written.url.target), self._way.max_sent_bytes
        if size > limit:
            message = f"the request has {size} bytes, and the limit is {limit}; send less"
            raise ToolError(Kind.LIMIT_EXCEEDED, message, details={"size": size, "limit": limit})
        return request

    async def perform(self, request: Request, values: Values, context: Context) -> Report:
        """Send the request until it succeeds, may not be retried, or the time is over."""
        way, report = self._way, Report(request.url.origin)
        deadline = min(report.started + self.call.timeout_ms / 1000, context.deadline)
        while True:
            report.attempts += 1
            report.response = None
            try:
                response = report.response = await self._send(request, values, deadline)
                if response.status not in self._success:
                    raise explain_status(request, response, self._masking.hide)
                report.answer, report.value = await self._read(request, response, deadline)
                return report
            except ToolError as error:
                left = deadline - time.monotonic()
                pause = self._repeating.pause_after(report.attempts, error, mode=context.mode, left=left)
                if pause is None:
                    return self._give_up(report, error, context)
            await way.sleep(pause)

    async def _send(self, request: Request, values: Values, deadline: float) -> Response:
        """One attempt: sign the request and send it, once more with new credentials if those were refused."""
        signer = self._signer
        if signer is None:
            return await self._fetch(request, deadline)
        async with _until(deadline, request):
            signed = await signer.sign(request, values)
        response = await self._fetch(signed, deadline)
        if response.status != UNAUTHORISED or response.status in self._success:
            return response
        async with _until(deadline, request):
            if not await signer.renew(signed, response, values):
                return response
            signed = await signer.sign(request, values)
        return await self._fetch(signed, deadline)

    async def _fetch(self, request: Request, deadline: float) -> Response:
        return await self._way.egress().fetch(
            request,
            hosts=self._hosts,
            max_bytes=self._way.max_response_bytes,
            timeout=max(0.0, deadline - time.monotonic()),
            max_sent_bytes=self._way.max_sent_bytes,
        )

    async def _read(self, request: Request, response: Response, deadline: float) -> Value:
        read = partial(
            read_value, response, self.call.encoding, self._extract, self._way.max_response_bytes, self._masking
        )
        try:
            if len(response.body) <= AT_ONCE_BYTES:
                return read()
            return await _in_thread(read, deadline)
        except ToolError as error:
            raise ToolError(
                error.kind,
                error.message,
                retryable=error.retryable,
                partial_side_effects=request.has_effects,
                details={"origin": response.url.origin, "status": response.status, **error.details},
            ) from None

    def _give_up(self, report: Report, error: ToolError, context: Context) -> Report:
        if error.kind is Kind.TIMEOUT:
            error = _late(error, report.origin, min(self.call.timeout_ms, round(context.seconds * 1000)))
        report.error = self._masking.hide_error(error)
        if self.call.error_mode is ErrorMode.EMPTY and error.kind not in REFUSALS:
            report.stands_in = True
            report.answer = report.value = nothing(self.call.encoding)
        return report


@asynccontextmanager
async def _until(deadline: float, request: Request) -> AsyncIterator[None]:
    """End at the deadline what is done for a request before it is sent."""
    import asyncio

    try:
        async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
            yield
    except TimeoutError:
        message = f"{request.url.origin}: the request could not be signed in time"
        raise ToolError(Kind.TIMEOUT, message, retryable=True) from None


async def _in_thread(read: Callable[[], Value], deadline: float) -> Value:
    """Parse in a thread; on a timeout the thread finishes by itself, bounded by the size of the response."""
    import asyncio

    try:
        async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
            return await asyncio.to_thread(read)
    except TimeoutError:
        raise ToolError(Kind.TIMEOUT, "the answer could not be read in time") from None


def _late(error: ToolError, origin: str, limit: int) -> ToolError:
    """The timeout error, with the limit that was set instead of the time left for the last attempt."""
    return ToolError(
        Kind.TIMEOUT,
        f"{origin}: no complete response within {limit} ms",
        retryable=True,
        partial_side_effects=error.partial_side_effects,
        details={"origin": origin, "timeoutMs": limit},
    )


async def _sleep(seconds: float) -> None:
    import asyncio

    await asyncio.sleep(seconds)


def check_hosts(resources: Resources) -> None:
    """Refuse hosts that would only be found to be wrong when the first request is sent."""
    settings = resources.settings
    try:
        parse_hosts(settings.table(HttpToolsSettings).hosts)
    except ToolError as problem:
        raise SettingsError(f"{settings.where('http_tools.hosts')}: {problem.message}") from problem
