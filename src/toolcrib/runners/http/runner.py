"""Tools that are made of requests: written from templates, checked before anything is sent, sent one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.ground.egress import parse_hosts
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.result import Outcome
from toolcrib.model.tool import Http
from toolcrib.pure.http_template import check_http
from toolcrib.runners.http.step import Step, Way
from toolcrib.runners.http.values import UNKNOWN, Names, Values
from toolcrib.runners.masking import Masking

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from toolcrib.ground.egress import Egress
    from toolcrib.model.call import Call, Context
    from toolcrib.model.tool import Tool
    from toolcrib.runners.http.step import Report
    from toolcrib.runners.http.values import SecretSource

MAX_RETRIES = 4
MAX_SENT_BYTES = 1_000_000
MAX_RESPONSE_BYTES = 5_000_000


class HttpRunner:
    """Sends the requests of tools to the hosts that the operator allows.

    `hosts` are patterns as in the setting allowed_hosts; none of them means that nothing is allowed. `version` is that of
    the application. `max_retries` bounds the repeats of a request, whatever its tool says.
    """

    kind = Http.kind

    def __init__(
        self,
        egress: Callable[[], Egress],
        *,
        hosts: tuple[str, ...],
        secrets: SecretSource,
        version: str,
        max_retries: int = MAX_RETRIES,
        max_sent_bytes: int = MAX_SENT_BYTES,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
        sleep: Callable[[float], Awaitable[None]] | None = None,
    ) -> None:
        self._secrets = secrets
        self._version = version
        self._way = Way(
            egress=egress,
            hosts=parse_hosts(hosts, "the setting allowed_hosts"),
            max_sent_bytes=max_sent_bytes,
            max_response_bytes=max_response_bytes,
            max_retries=max_retries,
            sleep=_sleep if sleep is None else sleep,
        )

    def bind(self, tool: Tool) -> BoundHttp:
        """Read the templates and compile the expressions of every request."""
        if not isinstance(tool.run, Http):
            raise ToolError(Kind.EXECUTOR_NOT_FOUND, f"{tool.name} is a {tool.kind} and makes no requests of its own")
        if problems := check_http(tool.run, tool.parameters):
            raise ToolError(Kind.VALIDATION, f"{tool.name}: {'; '.join(problems)}", details={"problems": problems})
        return BoundHttp(tool, tool.run, self._way, self._secrets, self._version)

    async def close(self) -> None:
        """The egress belongs to whoever made it."""


class BoundHttp:
    """A tool with everything decided that does not depend on the arguments."""

    is_async = True
    wants_context = True
    checks = True
    function = None

    def __init__(self, tool: Tool, http: Http, way: Way, secrets: SecretSource, version: str) -> None:
        self._tool = tool
        self._masking = Masking()
        self._names = Names(tool, http, secrets=secrets, version=version)
        self._steps = [Step(call, way, self._masking, self._names) for call in http.calls]
        self._contested = self._names.declared.intersection(
            slot.name for step in self._steps for slot in step.template.slots
        )

    def check(self, arguments: dict[str, object], call: Call) -> None:
        """Refuse what can be seen without sending; of an answer that is still to come, only that it will be asked for."""
        values = self._values(arguments, call.id, call.caller)
        try:
            self._names.refuse_secrets(self._contested)
            for step in self._steps:
                step.check(values)
                values.keep(step.call.name, UNKNOWN)
        except ToolError as refusal:
            raise self._masking.hide_error(refusal) from None

    async def run(self, arguments: dict[str, object], context: Context | None) -> Outcome:
        """Send one request after the other; the answer of the last is the value."""
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
            report = await step.perform(request, context)
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
        """An error beside what is known of the requests; what earlier ones changed stays changed."""
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


async def _sleep(seconds: float) -> None:
    import asyncio

    await asyncio.sleep(seconds)
