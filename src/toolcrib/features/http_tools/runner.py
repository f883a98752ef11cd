"""Run HTTP tools: fill request templates, check, send in sequence, retry, and read responses."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

from toolcrib.features.http_tools import HttpToolsSettings
from toolcrib.features.http_tools.request_check import check_http
from toolcrib.features.http_tools.request_preview import StandIns, preview_requests
from toolcrib.features.http_tools.request_step import RequestStep, SendOptions
from toolcrib.features.http_tools.response_cache import ResponseCache
from toolcrib.features.http_tools.slot_values import UNKNOWN, Names, Values
from toolcrib.features.http_tools.slots import SlotSource
from toolcrib.features.http_tools.streamed_response import STREAMED
from toolcrib.infra.oauth.access_tokens import AccessTokens
from toolcrib.infra.secrets.grants import ToolGrants, granted_value, tell_all
from toolcrib.infra.secrets.secret import Masking, VariableMasking
from toolcrib.lib.http_syntax import parse_hosts
from toolcrib.lib.run_part import KNOWN_LATER
from toolcrib.model.errors import Kind, SettingsError, ToolError
from toolcrib.model.result import Outcome
from toolcrib.model.tool import Http, Spelling
from toolcrib.values import joins_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from toolcrib.core.resources import Resources
    from toolcrib.features.http_tools.request_step import RequestOutcome
    from toolcrib.features.http_tools.slot_values import SecretSource
    from toolcrib.infra.egress import Request
    from toolcrib.infra.egress.client import Egress
    from toolcrib.lib.http_syntax import HostList, HostPattern
    from toolcrib.lib.run_part import RunPart
    from toolcrib.model.call import Call, Context
    from toolcrib.model.tool import Tool

MAX_RETRIES = 4
MAX_SENT_BYTES = 1_000_000
MAX_RESPONSE_BYTES = 5_000_000
MAX_PAGES = 100
MAX_CACHE_BYTES = 10_000_000


class HttpRunner:
    """Sends the requests of tools to the hosts that the operator allows.

    `hosts` are patterns as in the setting http_tools.hosts. Without any, a tool of a bundle reaches nothing, and a script
    every public address. `added` gives further ones, for tools of bundles. `version` is that of the application. `max_retries` limits the retries of a request, even if its
    tool allows more. `variable` gives a variable of the host or secret that was granted to a tool, None for any other. Without
    `tokens`, access tokens last as long as the runner.
    """

    kind = Http.kind

    def __init__(
        self,
        egress: Callable[[], Egress],
        *,
        hosts: tuple[str, ...],
        added: Callable[[], tuple[HostPattern, ...]] = tuple,
        secrets: SecretSource,
        version: str,
        variable: Callable[[Tool, str], str | None] = lambda _tool, _name: None,
        environment: Mapping[str, str] | None = None,
        tokens: Callable[[], AccessTokens] | None = None,
        max_retries: int = MAX_RETRIES,
        max_sent_bytes: int = MAX_SENT_BYTES,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
        max_pages: int = MAX_PAGES,
        max_cache_bytes: int = MAX_CACHE_BYTES,
        sleep: Callable[[float], Awaitable[None]] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._secrets = secrets
        self._version = version
        self._variable = variable
        self._environment = environment or {}
        self._hosts = replace(parse_hosts(hosts, "the setting http_tools.hosts"), added=added)
        self._options = SendOptions(
            egress=egress,
            tokens=tokens or cache(partial(AccessTokens, egress, None, Masking())),
            max_sent_bytes=max_sent_bytes,
            max_response_bytes=max_response_bytes,
            max_retries=max_retries,
            max_pages=max_pages,
            cache=ResponseCache(max_cache_bytes),
            sleep=_sleep if sleep is None else sleep,
            clock=clock,
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
        grants = ToolGrants(variable, self._environment)
        names = Names(tool, http, secrets=self._secrets, grants=grants, version=self._version)
        return BoundHttp(tool, http, self._options, names, hosts=self._allowed(http), place=place)

    def _allowed(self, http: Http) -> HostList | None:
        """The hosts of the operator, narrowed to those of the tool; None means every public host."""
        is_open = http.spelling is Spelling.BRACES and not self._hosts.patterns
        operators = None if is_open else self._hosts
        return operators if http.hosts is None else replace(parse_hosts(http.hosts), within=operators)

    async def close(self) -> None:
        """Nothing to do: the egress is closed by its owner."""


class Prepared(NamedTuple):
    """The first request of a call, as it was checked."""

    bound: BoundHttp
    request: Request


class BoundHttp:
    """A tool prepared for calls: everything that does not depend on the arguments."""

    is_async = True
    wants_context = True
    checks = True
    function = None

    def __init__(
        self, tool: Tool, http: Http, options: SendOptions, names: Names, *, hosts: HostList | None, place: str
    ) -> None:
        self._tool = tool
        self._masking = VariableMasking()
        self._names = names
        self._steps = [
            RequestStep(call, options, self._masking, names, hosts=hosts, spelling=http.spelling, place=place)
            for call in http.calls
        ]
        self._steps[-1].is_last = True
        last = self._steps[-1]
        self._joins = last.joins_text = last.call.encoding in STREAMED and joins_text(tool.output_schema)
        self._contested = names.declared.intersection(
            slot.name for step in self._steps for slot in step.template.slots if slot.source is SlotSource.ANY
        )
        self._is_the_same_later = KNOWN_LATER.isdisjoint(slot.name for slot in self._steps[0].template.slots)

    def check(self, arguments: dict[str, object], call: Call) -> Prepared | None:
        """Refuse what can be checked without sending; values of later responses are only checked to be used.

        Returns the first request, so that the one that was checked is the one that is sent.
        """
        values = self._values(arguments, call.id, call.caller)
        try:
            self._names.refuse_secrets(self._contested)
            first = self._steps[0].check(values)
            values.keep(self._steps[0].call.name, UNKNOWN)
            for step in self._steps[1:]:
                step.check(values)
                values.keep(step.call.name, UNKNOWN)
        except ToolError as refusal:
            needs = (need for step in self._steps for need in step.needs(values))
            raise self._masking.hide_error(tell_all(refusal, needs)) from None
        return Prepared(self, first) if self._is_the_same_later else None

    def preview(self, arguments: dict[str, object], call: Call) -> Iterator[RunPart]:
        """Every request, filled with the arguments; secrets and what is only known later stand in it by name."""
        values = self._values(arguments, "", call.caller)
        try:
            yield from preview_requests(self._steps, StandIns(self._names, values))
        except ToolError as refusal:
            raise self._masking.hide_error(refusal) from None

    async def run(self, arguments: dict[str, object], context: Context | None) -> Outcome:
        """Send the requests in sequence; the value is that of the last."""
        if context is None:
            raise ToolError(Kind.INTERNAL, f"{self._tool.name} runs only in a call")
        values = self._values(arguments, context.call_id, context.caller)
        reports: list[RequestOutcome] = []
        has_effects = False
        prepared = context.prepared
        first = prepared.request if isinstance(prepared, Prepared) and prepared.bound is self else None
        for step in self._steps:
            try:
                request = step.write(values) if first is None else first
                first = None
            except ToolError as refusal:
                return self._fail(self._masking.hide_error(refusal), reports, has_effects=has_effects)
            report = await step.perform(request, values, context)
            reports.append(report)
            if report.error is not None and not report.stands_in:
                return self._fail(report.error, reports, has_effects=has_effects)
            has_effects = has_effects or request.has_effects
            values.keep(step.call.name, report.answer)
        last, value = reports[-1], reports[-1].value
        if self._joins and isinstance(value, list) and all(isinstance(item, str) for item in value):
            value = self._masking.hide("".join(value))
        return Outcome(value=value, meta=self._tell(reports), stands_in=last.stands_in)

    def _values(self, arguments: dict[str, object], call_id: str, caller: str) -> Values:
        return Values(self._names, arguments, call_id=call_id, caller=caller, masking=self._masking)

    def _fail(self, error: ToolError, reports: list[RequestOutcome], *, has_effects: bool) -> Outcome:
        """An error with facts about the requests; side effects of earlier ones remain."""
        if has_effects and not error.partial_side_effects:
            error = error.replace(partial_side_effects=True)
        return Outcome(value=error.value, error=error, meta=self._tell(reports))

    def _tell(self, reports: list[RequestOutcome]) -> dict[str, object]:
        """The facts of the last request, and those of each where there may be several."""
        facts = [report.to_json(self._masking) for report in reports]
        if len(self._steps) == 1 or not facts:
            return facts[-1] if facts else {}
        named = zip(self._steps, facts, strict=False)
        return {**facts[-1], "calls": [{"name": step.call.name, **fact} for step, fact in named]}


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
