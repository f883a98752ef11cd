"""One request of a tool, made ready when the tool is loaded: written, sent, repeated, and its answer read."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from toolcrib.ground.egress import Request
from toolcrib.ground.egress.content import read_media_type
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import ErrorMode
from toolcrib.pure.extract import compile_extract
from toolcrib.pure.http_template import compile_call
from toolcrib.runners.http.reading import nothing, read_value
from toolcrib.runners.http.repeating import Repeating
from toolcrib.runners.http.statuses import explain_status

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Container

    from toolcrib.ground.egress import Egress, HostList, Response
    from toolcrib.model.call import Context
    from toolcrib.model.tool import HttpCall
    from toolcrib.runners.http.reading import Value
    from toolcrib.runners.http.values import Names, Values
    from toolcrib.runners.masking import Masking

SUCCESS = range(200, 300)
# What is larger is read beside the other calls: that takes longer than to hand it over.
AT_ONCE_BYTES = 65_536
# What nobody's error mode turns into an empty answer: the request was wrong, or led where it may not.
REFUSALS = frozenset({Kind.VALIDATION, Kind.HOST_NOT_ALLOWED})


@dataclass(frozen=True, kw_only=True, slots=True)
class Way:
    """How requests leave: through which egress, to which hosts, how large, and how often at most."""

    egress: Callable[[], Egress]
    hosts: HostList
    max_sent_bytes: int
    max_response_bytes: int
    max_retries: int
    sleep: Callable[[float], Awaitable[None]]


class Report:
    """What there is to tell of a request that was sent; `answer` is for later requests, `value` for everybody."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.attempts = 0
        self.response: Response | None = None
        self.started = time.monotonic()
        self.answer: object = None
        self.value: object = None
        self.error: ToolError | None = None
        self.stands_in = False

    def to_json(self, masking: Masking) -> dict[str, object]:
        """The facts, with nothing in them that nobody may see."""
        facts: dict[str, object] = {"origin": self.origin, "attempts": self.attempts}
        if self.response is not None:
            facts["status"] = self.response.status
            facts["contentType"] = masking.hide(read_media_type(self.response.headers.get("content-type", "")))
        if self.stands_in and self.error is not None:
            facts["failure"] = {"type": str(self.error.kind), "message": self.error.message}
        return facts


class Step:
    """A request with its templates read and its expression compiled; `names` says what stands in its slots."""

    def __init__(self, call: HttpCall, way: Way, masking: Masking, names: Names) -> None:
        self.call = call
        self.template = compile_call(call).settle(names.known)
        self._way = way
        self._masking = masking
        self._extract = compile_extract(call.extract) if call.extract else None
        self._success: Container[int] = call.success or SUCCESS
        self._repeating = Repeating(call.method, call.retry, way.max_retries)
        self._secret_headers = self.template.headers_with(names.may_be_secret(self.template.slots))

    def check(self, values: Values) -> None:
        """Refuse what can be seen without sending: names, values, headers, host, address and size."""
        self._way.egress().check(self.write(values).url, self._way.hosts)

    def write(self, values: Values) -> Request:
        """The request with every slot filled; refuses one that is too large."""
        written = self.template.write(values)
        request = Request(
            url=written.url,
            method=self.call.method,
            headers=written.headers,
            body=written.body,
            secret_headers=self._secret_headers,
        )
        size, limit = request.size + len(written.url.target), self._way.max_sent_bytes
        if size > limit:
            message = f"the request has {size} bytes, and the limit is {limit}; send less"
            raise ToolError(Kind.LIMIT_EXCEEDED, message, details={"size": size, "limit": limit})
        return request

    async def perform(self, request: Request, context: Context) -> Report:
        """Send the request until it works, may not be repeated, or the time is over."""
        way, report = self._way, Report(request.url.origin)
        deadline = min(report.started + self.call.timeout_ms / 1000, context.deadline)
        while True:
            report.attempts += 1
            report.response = None
            try:
                response = report.response = await way.egress().fetch(
                    request,
                    hosts=way.hosts,
                    max_bytes=way.max_response_bytes,
                    timeout=max(0.0, deadline - time.monotonic()),
                    max_sent_bytes=way.max_sent_bytes,
                )
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


async def _in_thread(read: Callable[[], Value], deadline: float) -> Value:
    """Read beside everything else that is going on; one that is too late is left to itself, and its size bounds it."""
    import asyncio

    try:
        async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
            return await asyncio.to_thread(read)
    except TimeoutError:
        raise ToolError(Kind.TIMEOUT, "the answer could not be read in time") from None


def _late(error: ToolError, origin: str, limit: int) -> ToolError:
    """What ran out of time, by the limit that somebody set: not by what was left of it for the last attempt."""
    return ToolError(
        Kind.TIMEOUT,
        f"{origin}: no complete response within {limit} ms",
        retryable=True,
        partial_side_effects=error.partial_side_effects,
        details={"origin": origin, "timeoutMs": limit},
    )
