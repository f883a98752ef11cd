"""Send one request of a tool: sign it, retry it, read its answer, and ask for further pages."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from toolcrib.features.http_tools.address import RequestAddress
from toolcrib.features.http_tools.extraction import compile_extract
from toolcrib.features.http_tools.pages import Pager, compile_pagination
from toolcrib.features.http_tools.request_template import compile_call
from toolcrib.features.http_tools.response import Retries, Value, explain_status, nothing, read_value
from toolcrib.features.http_tools.response_cache import (
    NOT_MODIFIED,
    ask_whether_changed,
    cache_key,
    compile_cache,
    refreshed,
)
from toolcrib.features.http_tools.signer import Signer
from toolcrib.features.http_tools.streamed_response import STREAMED, ItemReader, ItemSender, read_items
from toolcrib.infra.egress import Request, next_request, read_media_type, redirected
from toolcrib.lib.http_auth.declaration import read_auth
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import SAFE_METHODS, Encoding, ErrorMode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Container, Iterator, Mapping

    from toolcrib.features.http_tools.extraction import Extract
    from toolcrib.features.http_tools.pages import Pagination
    from toolcrib.features.http_tools.response_cache import CacheRule, ResponseCache
    from toolcrib.features.http_tools.signer import Credentials
    from toolcrib.features.http_tools.slot_values import Names, Values
    from toolcrib.features.http_tools.slots import Slot
    from toolcrib.infra.egress import Response
    from toolcrib.infra.egress.client import Egress
    from toolcrib.infra.oauth.access_tokens import AccessTokens
    from toolcrib.infra.secrets.secret import VariableMasking
    from toolcrib.lib.http_syntax import HostList
    from toolcrib.model.call import Context
    from toolcrib.model.tool import HttpCall, Spelling

SUCCESS = range(200, 300)
UNCHANGED = frozenset({NOT_MODIFIED})
# A larger response is parsed in a thread: that takes longer than the hand-over.
AT_ONCE_BYTES = 65_536
# Errors that `errorMode: empty` does not hide: the request was invalid or not allowed.
REFUSALS = frozenset({Kind.VALIDATION, Kind.HOST_NOT_ALLOWED})


@dataclass(frozen=True, kw_only=True, slots=True)
class SendOptions:
    """How requests are sent: egress, access tokens, limits on sizes, retries and pages, and the time that signatures carry."""

    egress: Callable[[], Egress]
    tokens: Callable[[], AccessTokens]
    max_sent_bytes: int
    max_response_bytes: int
    max_retries: int
    max_pages: int
    cache: ResponseCache
    sleep: Callable[[float], Awaitable[None]]
    clock: Callable[[], float]


class RequestOutcome:
    """The result of a sent request; `answer` is for later requests, `value` for the caller."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.attempts = 0
        self.pages = 0
        self.kept = ""
        self.response: Response | None = None
        self.streamed = False
        self.started = time.monotonic()
        self.answer: object = None
        self.value: object = None
        self.error: ToolError | None = None
        self.stands_in = False

    def keep(self, response: Response, how: str) -> None:
        """Note that the answer came from the cache."""
        self.response, self.kept = response, how

    def to_json(self, masking: VariableMasking) -> dict[str, object]:
        """The facts, without secrets."""
        facts: dict[str, object] = {"origin": masking.hide(self.origin), "attempts": self.attempts}
        if self.response is not None:
            facts["status"] = self.response.status
            facts["contentType"] = masking.hide(read_media_type(self.response.headers.get("content-type", "")))
        if self.kept:
            facts["cache"] = self.kept
        if self.pages:
            facts["pages"] = self.pages
        if self.stands_in and self.error is not None:
            facts["failure"] = {"type": str(self.error.kind), "message": self.error.message}
        return facts


@dataclass(frozen=True, kw_only=True, slots=True)
class SentRequest:
    """One request that is being sent: the values of its slots, the call it belongs to, and its deadline."""

    values: Values
    context: Context
    deadline: float
    report: RequestOutcome


class ResponsePage(NamedTuple):
    """The items of a page: raw for later requests, and masked for the caller."""

    raw: list[object]
    shown: list[object]


class RequestStep:
    """A compiled request; `names` resolves its slots."""

    def __init__(
        self,
        call: HttpCall,
        options: SendOptions,
        masking: VariableMasking,
        names: Names,
        *,
        hosts: HostList | None,
        spelling: Spelling,
        place: str,
    ) -> None:
        self.call = call
        self.is_last = self.joins_text = False
        self.template = compile_call(call, spelling, place).settle(names.settle)
        self._options = options
        self._hosts = hosts
        self._masking = masking
        self._signer = self._make_signer(call.auth) if call.auth else None
        self._pagination = compile_pagination(call.pagination)
        self._extract = compile_extract(call.extract) if call.extract else None
        self._cache = compile_cache(call.cache, call.method)
        # Part of the cache key: no answer of another definition, or of another request of the same tool, is used.
        self._identity = f"{names.content}:{call.name}"
        self._success: Container[int] = call.success or SUCCESS
        self._repeating = Retries(call.method, call.retry, options.max_retries)
        self._secret_headers = self.template.headers_with(names.may_be_secret)
        self._provided = sorted(filter(names.is_provided, self.template.slots), key=str)

    def check(self, values: Values) -> Request:
        """The request; refuses what can be checked without sending: names, values, headers, host, address and size."""
        request = self.write(values)
        self._options.egress().check(request.url, self._hosts)
        if self._signer is not None:
            self._signer.check(values)
        return request

    def needs(self, values: Values) -> Iterator[Callable[[], object]]:
        """The checks of what the operator provides, whatever the arguments: secrets, variables, hosts."""
        yield from (partial(values, slot) for slot in self._provided)
        if isinstance(self.template.address, RequestAddress):
            yield from self._options.egress().checks(self.template.address.base, self._hosts)
        if self._signer is not None:
            yield from self._signer.needs(values)

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
        size, limit = request.size + len(written.url.target), self._options.max_sent_bytes
        if size > limit:
            message = f"the request has {size} bytes, and the limit is {limit}; send less"
            raise ToolError(Kind.LIMIT_EXCEEDED, message, details={"size": size, "limit": limit})
        return request

    async def perform(self, request: Request, values: Values, context: Context) -> RequestOutcome:
        """Send the request and read its answer, with all of its pages; what goes wrong is in the report."""
        report = RequestOutcome(request.url.origin)
        deadline = min(report.started + self.call.timeout_ms / 1000, context.deadline)
        sending = SentRequest(values=values, context=context, deadline=deadline, report=report)
        try:
            if self._pagination is None:
                response = await self._obtain(request, sending, self._options.max_response_bytes)
                value = await self._read(request, response, deadline, self.call.encoding, self._extract)
            else:
                value = await self._collect(self._pagination, request, sending)
            report.answer, report.value = value
        except ToolError as error:
            self._give_up(report, error, context)
        return report

    async def pages(
        self, pagination: Pagination, request: Request, sending: SentRequest
    ) -> AsyncIterator[ResponsePage]:
        """The items of one page after the other, as they come; raises ToolError where there are too many."""
        pager, report, left = Pager(pagination, request), sending.report, self._options.max_response_bytes
        following: Request | None = pager.first()
        while following is not None:
            if report.pages == min(pagination.pages, self._options.max_pages):
                self._refuse_more(pagination, report)
                return
            response = await self._obtain(following, sending, left)
            left -= len(response.body)
            report.pages += 1
            page = await self._read(following, response, sending.deadline, Encoding.JSON, None)
            items = pagination.items_of(page.raw, is_first=report.pages == 1)
            yield ResponsePage(
                items, items if page.shown is page.raw else [self._masking.hide_in(item) for item in items]
            )
            following = pager.following(response, page.raw, len(items))

    async def _collect(self, pagination: Pagination, request: Request, sending: SentRequest) -> Value:
        """The items of all pages as one answer; an error has those that came before it as its partial value."""
        raw: list[object] = []
        shown: list[object] = []
        try:
            send = self._sink(sending) if self._extract is None else None
            async for page in self.pages(pagination, request, sending):
                raw += page.raw
                shown += page.shown
                for item in page.shown if send is not None else ():
                    await send(item)  # type: ignore[misc]  # there is one
            if self._extract is None:
                return Value(raw, shown)
            return Value(self._extract(raw), self._masking.hide_in(self._extract(shown)))
        except ToolError as error:
            raise error.replace(value=shown or None) from None

    def _refuse_more(self, pagination: Pagination, report: RequestOutcome) -> None:
        """Refuse to read on at the limit, unless the author says that so many pages are enough."""
        if pagination.truncate and report.pages == pagination.pages:
            return
        message = f"{report.origin}: there are more than {report.pages} pages, which is the limit; ask for less at once"
        raise ToolError(Kind.LIMIT_EXCEEDED, message, details={"origin": report.origin, "pages": report.pages})

    def _obtain(self, request: Request, sending: SentRequest, max_bytes: int) -> Awaitable[Response]:
        """The answer, from the cache or from the server."""
        if self._cache is None:
            return self._exchange(request, sending, max_bytes)
        return self._obtain_through(self._cache, request, sending, max_bytes)

    async def _obtain_through(
        self, rule: CacheRule, request: Request, sending: SentRequest, max_bytes: int
    ) -> Response:
        """The cached answer while it is fresh or the server says that it has not changed; otherwise a new one."""
        cache = self._options.cache
        key = cache_key(self._identity, sending.context.caller, request, await self._secrets(sending))
        kept = cache.get(key)
        if kept is not None and cache.is_fresh(kept) and len(kept.response.body) <= max_bytes:
            sending.report.keep(kept.response, "hit")
            await self._send_kept(kept.response, sending)
            return kept.response
        asked = request if kept is None else ask_whether_changed(request, kept)
        response = await self._exchange(asked, sending, max_bytes, also=frozenset() if asked is request else UNCHANGED)
        if kept is not None and asked is not request and response.status == NOT_MODIFIED:
            response = refreshed(kept, response)
            sending.report.keep(response, "revalidated")
            await self._send_kept(response, sending)
        cache.keep(key, response, rule)
        return response

    async def _send_kept(self, response: Response, sending: SentRequest) -> None:
        """Send the items of a cached stream to the client, as if they arrived now."""
        send = self._sink(sending)
        if send is None or self.call.encoding not in STREAMED:
            return
        items = ItemSender(send, self._extract, (self._masking,), is_one_text=self.joins_text)
        sending.report.streamed = True
        await items.send(read_items(response, self.call.encoding, self._extract, self._options.max_response_bytes))
        await items.finish()

    async def _secrets(self, sending: SentRequest) -> list[object]:
        """Everything that the credentials of a request are made of."""
        if self._signer is None:
            return []
        used: list[object] = []

        def lookup(slot: Slot) -> object:
            used.append(sending.values(slot))
            return used[-1]

        left = max(0.0, sending.deadline - time.monotonic())
        credentials = await self._signer.begin(lookup, seconds=left)
        return [*used, credentials.token]

    async def _exchange(
        self, request: Request, sending: SentRequest, max_bytes: int, *, also: frozenset[int] = frozenset()
    ) -> Response:
        """Send the request until it succeeds; raises ToolError where it may not be retried, or the time is over.

        One that is refused with an access token is repeated once with a new one. `also` are further statuses of success.
        """
        report = sending.report
        attempt, refused = 0, ""
        while True:
            attempt += 1
            report.attempts += 1
            report.response = None
            try:
                credentials = await self._begin(sending, refused)
                response = report.response = await self._send(request, credentials, sending, max_bytes)
                if response.status in self._success or response.status in also:
                    return response
                if not refused and attempt <= self._options.max_retries and self._may_renew(credentials, response):
                    refused = credentials.token if credentials is not None else ""
                    continue
                raise self._explain(request, response, credentials if refused else None)
            except ToolError as error:
                left = sending.deadline - time.monotonic()
                pause = self._repeating.pause_after(attempt, error, mode=sending.context.mode, left=left)
                # The client has seen a part of the answer: another attempt would begin it again.
                if pause is None or report.streamed:
                    raise
            await self._options.sleep(pause)

    def _make_signer(self, auth: Mapping[str, object]) -> Signer:
        return Signer(
            auth=read_auth(auth),
            masking=self._masking,
            egress=self._options.egress,
            tokens=self._options.tokens,
            hosts=self._hosts,
            clock=self._options.clock,
        )

    async def _begin(self, sending: SentRequest, refused: str) -> Credentials | None:
        """The credentials of the next attempt."""
        if self._signer is None:
            return None
        left = max(0.0, sending.deadline - time.monotonic())
        return await self._signer.begin(sending.values, seconds=left, refused=refused)

    async def _send(
        self, request: Request, credentials: Credentials | None, sending: SentRequest, max_bytes: int
    ) -> Response:
        send, is_stream = self._sink(sending), self.call.encoding in STREAMED
        signed = request if credentials is None else replace(request, sign=credentials)
        if send is not None and is_stream:
            masks = (self._masking,) if credentials is None else (self._masking, credentials)
            items = ItemSender(send, self._extract, masks, is_one_text=self.joins_text)
            response = await self._follow(signed, sending, max_bytes, items)
        else:
            response = await self._fetch(signed, sending.deadline, max_bytes)
        return response if credentials is None else credentials.hide_in(response, is_stream=is_stream)

    def _sink(self, sending: SentRequest) -> Callable[[object], Awaitable[None]] | None:
        """What takes the items of the answer as they come: those of the last request are the tool's own."""
        return sending.context.send_chunk if self.is_last else None

    async def _follow(self, request: Request, sending: SentRequest, max_bytes: int, items: ItemSender) -> Response:
        """Send the request, follow its redirects, and stream the items of the answer; returns all of it."""
        import asyncio

        first, hops, origin = request, 0, ""
        try:
            async with asyncio.timeout(max(0.0, sending.deadline - time.monotonic())):
                while True:
                    stream = self._options.egress().stream(request.signed(), hosts=self._hosts, max_piece=max_bytes)
                    async with stream as (head, pieces):
                        if head.location is None:
                            body = await self._read_stream(head, pieces, sending, max_bytes, items)
                            return replace(head, body=body, hops=hops)
                    hops, origin = hops + 1, head.url.origin
                    request = next_request(request, head, hops)
        except TimeoutError:
            raise ToolError(Kind.TIMEOUT, "no complete response", partial_side_effects=first.has_effects) from None
        except ToolError as error:
            raise redirected(error, origin, has_effects=first.has_effects) if origin else error from None

    async def _read_stream(
        self, head: Response, pieces: AsyncIterator[bytes], sending: SentRequest, max_bytes: int, items: ItemSender
    ) -> bytes:
        """Read the body of an answer, and stream its items if it is a success."""
        report, body = sending.report, bytearray()
        is_success, media_type = head.status in self._success, head.headers.get("content-type", "")
        reader = ItemReader(self.call.encoding, self._extract, max_bytes, media_type if is_success else "")
        async for piece in pieces:
            body += piece
            if len(body) > max_bytes:
                message = f"{report.origin}: the answer has more than {max_bytes} bytes; ask for less"
                raise ToolError(Kind.LIMIT_EXCEEDED, message, partial_side_effects=self.call.method not in SAFE_METHODS)
            if is_success:
                report.streamed = await items.send(reader.feed(piece)) or report.streamed
        if is_success:
            await items.send(reader.finish())
            await items.finish()
        return bytes(body)

    def _may_renew(self, credentials: Credentials | None, response: Response) -> bool:
        signer = self._signer
        return signer is not None and credentials is not None and signer.may_renew(credentials, response.status)

    def _explain(self, request: Request, response: Response, renewed: Credentials | None) -> ToolError:
        """The error of a response; `renewed` are credentials that were new and did not help either."""
        error = explain_status(request, response, self._masking.hide)
        if self._signer is None:
            return error
        if renewed is not None and self._may_renew(renewed, response):
            self._signer.note_refused(renewed)
        return self._signer.explain(error, response)

    def _fetch(self, request: Request, deadline: float, max_bytes: int) -> Awaitable[Response]:
        return self._options.egress().fetch(
            request,
            hosts=self._hosts,
            max_bytes=max_bytes,
            timeout=max(0.0, deadline - time.monotonic()),
            max_sent_bytes=self._options.max_sent_bytes,
        )

    async def _read(
        self, request: Request, response: Response, deadline: float, encoding: Encoding, extract: Extract | None
    ) -> Value:
        reading = response, encoding, extract, self._options.max_response_bytes, self._masking
        try:
            if len(response.body) <= AT_ONCE_BYTES:
                return read_value(*reading)
            return await _in_thread(partial(read_value, *reading), deadline)
        except ToolError as error:
            facts = {"origin": response.url.origin, "status": response.status, **error.details}
            raise error.replace(partial_side_effects=request.has_effects, details=facts, value=None) from None

    def _give_up(self, report: RequestOutcome, error: ToolError, context: Context) -> None:
        if error.kind is Kind.TIMEOUT:
            error = _late(error, report.origin, min(self.call.timeout_ms, round(context.seconds * 1000)))
        report.error = self._masking.hide_error(error)
        if self.call.error_mode is ErrorMode.EMPTY and error.kind not in REFUSALS:
            report.stands_in = True
            report.answer = report.value = nothing(self.call.encoding)


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
        value=error.value,
    )
