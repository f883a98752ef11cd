"""File, watch and deliver requests for tools on a server."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote

from toolcrib.client import shapes
from toolcrib.client.shapes import read_event, read_experiment, read_filed
from toolcrib.features.requests.candidate import read_candidate
from toolcrib.features.requests.document import read_request
from toolcrib.features.requests.document.fields import RequestText
from toolcrib.features.requests.document.writer import set_field, write_request
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.toolrequest import Status, Submitted

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from pathlib import Path

    from toolcrib.client.connection import Answer, Query
    from toolcrib.client.server import Server
    from toolcrib.model.toolrequest import Allowance, Event, Experiment, Filed

    # Aliases, because `list` is a method in the class below.
    Filings = list[Filed]
    Events = list[Event]
    Experiments = list[Experiment]
    News = tuple[Status, list[Event]]

REQUESTS = "/requests"
PLACE = "request"
MAX_LISTED = 1_000
# The longest wait for events that the server allows, and the shortest interval between answers without any.
WAIT_SECONDS = 25
QUIET_SECONDS = 1.0
# How long to retry while the server is unreachable, such as during a restart.
PATIENCE_SECONDS = 60.0
AGAIN_SECONDS = 2.0
# Failures worth a retry: the server is unreachable, overloaded or shutting down.
PASSING = frozenset({Kind.TRANSIENT, Kind.TIMEOUT, Kind.OVERLOADED, Kind.RATE_LIMIT, Kind.CANCELLED})
# The gate of the server has its own limits; this timeout is for a server that no longer responds.
DELIVERY_SECONDS = 3_600.0


class RemoteRequests:
    """The interface of `Requests` for the requests of a server."""

    def __init__(self, server: Server, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._server = server
        self._sleep = sleep

    def submit(self, text: str, *, strict: bool | None = None, place: str = PLACE) -> Submitted:
        """File a request under its own id; filing the same text again has no effect. Errors name `place` as its origin."""
        # Validated here, because the server would give a request without an id a number.
        read_request(text, place=place)
        return self.new(text, strict=strict, place=place)

    def new(
        self, request: Mapping[str, object] | str | bytes, *, strict: bool | None = None, place: str = PLACE
    ) -> Submitted:
        """File a request, given as fields or as text; without an id it gets the next number of the day.

        The server may be stricter than `strict` asks for.
        """
        text = write_request(request) if isinstance(request, Mapping) else request
        # Validated here too, because the server does not know the file name for its error.
        written = read_request(text, place=place, strict=bool(strict), numbered=False).text
        query = [("strict", "true")] if strict else []
        found = self._server.ask("POST", REQUESTS, shapes.SUBMITTED, query=query, body={"yaml": written}).document
        return Submitted(filed=read_filed(found), warnings=tuple(found["warnings"]), merged=found["merged"])

    def list(self, status: Status | None = None, *, limit: int = MAX_LISTED) -> Filings:
        """The newest requests, up to `limit`, in the order in which they were filed."""
        query = [("limit", str(max(1, min(limit, MAX_LISTED)))), *([] if status is None else [("status", str(status))])]
        found = self._server.ask("GET", REQUESTS, shapes.FILED_LIST, query=query).document
        return [read_filed(filed) for filed in found["requests"]]

    def show(self, request_id: str) -> Filed:
        """The request of that id; raises NOT_FOUND."""
        return self._filed("GET", request_id)

    def history(self, request_id: str, after: int = 0) -> Events:
        """The events of a request after that number."""
        place, query = _news_of(request_id, after, 0)
        return _read_news(self._server.ask("GET", place, shapes.HISTORY, query=query), after)[1]

    async def watch(self, request_id: str, after: int = 0) -> AsyncGenerator[Event, None]:
        """Yield the events of a request until it is final; retries while the server is unreachable."""
        status, events = await self._news_now(request_id, after)
        while True:
            for event in events:
                after = event.number
                yield event
            if status.is_final:
                return
            status, events = await self._later_news(request_id, after)

    async def until_over(self, request_id: str) -> Filed:
        """Wait until a request is final."""
        async for _ in self.watch(request_id):
            pass
        return read_filed((await self._server.ask_async("GET", _place_of(request_id), shapes.FILED_ANSWER)).document)

    def find_open(self, name: str) -> Filed | None:
        """The pending or building request for a tool of that name, or None."""
        return next((filed for filed in self.list() if filed.name == name and not filed.status.is_final), None)

    def join(self, filed: Filed, experiment: str) -> Filed:
        """Have an experiment wait for an open request."""
        text = set_field(filed.text, "experiment_blocked", experiment)
        # Without an id it is merged into the open request, or filed as a new one if that has ended meanwhile.
        fields = RequestText(text, PLACE).root().values
        return self.new({name: value for name, value in fields.items() if name != "id"}).filed

    def package(self, request_id: str) -> Path | None:
        """None, because the folder that a person is to fill is on the machine of the server."""
        return None

    async def deliver(self, request_id: str, path: Path, say: Callable[[str], None] | None = None) -> Filed:
        """Send the package that a person made to be proved and published; it is read here with the same limits."""
        files = await asyncio.to_thread(self._read, request_id, path)
        if say is not None:
            say(f"sending {len(files)} files to be proved" if len(files) > 1 else "sending 1 file to be proved")
        place, body = f"{_place_of(request_id)}/deliver", _body_of(files)
        answer = await self._server.ask_async("POST", place, shapes.FILED_ANSWER, body=body, seconds=DELIVERY_SECONDS)
        return read_filed(answer.document)

    def cancel(self, request_id: str, reason: str = "") -> Filed:
        """Cancel a request; a builder that works on it stops."""
        return self._filed("POST", request_id, "/cancel", body={"reason": reason})

    def retry(self, request_id: str) -> Filed:
        """Build a failed or cancelled request again."""
        return self._filed("POST", request_id, "/retry", body={})

    def allow(self, request_id: str, allowance: Allowance) -> Filed:
        """Add what the operator allows to a request."""
        return self._filed("PUT", request_id, "/allowance", body=_spell_allowance(allowance))

    def experiments(self) -> Experiments:
        """All experiments that wait or waited for a tool."""
        found = self._server.ask("GET", "/experiments", shapes.EXPERIMENTS).document
        return [read_experiment(one) for one in found["experiments"]]

    def _filed(
        self,
        method: str,
        request_id: str,
        act: str = "",
        *,
        body: Mapping[str, object] | None = None,
    ) -> Filed:
        answer = self._server.ask(method, _place_of(request_id) + act, shapes.FILED_ANSWER, body=body)
        return read_filed(answer.document)

    async def _news_now(self, request_id: str, after: int, wait: int = 0) -> News:
        place, query = _news_of(request_id, after, wait)
        return _read_news(await self._server.ask_async("GET", place, shapes.HISTORY, query=query), after)

    async def _later_news(self, request_id: str, after: int) -> News:
        """Wait for further events; retries while the server is unreachable, for at most PATIENCE_SECONDS."""
        began, wait = time.monotonic(), WAIT_SECONDS
        while True:
            asked = time.monotonic()
            try:
                status, events = await self._news_now(request_id, after, wait)
            except ToolError as problem:
                if problem.kind not in PASSING or time.monotonic() - began > PATIENCE_SECONDS:
                    raise
                # A server with too many listeners still answers a request that does not wait.
                wait = 0 if problem.kind is Kind.OVERLOADED else WAIT_SECONDS
                await self._sleep(AGAIN_SECONDS)
                continue
            # Limits the rate of requests to a server that answers without waiting.
            if not events and not status.is_final and (left := QUIET_SECONDS - (time.monotonic() - asked)) > 0:
                await self._sleep(left)
            return status, events

    def _read(self, request_id: str, path: Path) -> Mapping[str, bytes]:
        request = read_request(self.show(request_id).text)
        try:
            return read_candidate(path, request).files
        except ToolError as problem:
            # In the form of an error of the gate, which would read the package on a local crib.
            raise ToolError(Kind.VALIDATION, problem.message, details={"complaints": [problem.message]}) from problem


def _news_of(request_id: str, after: int, wait: int) -> tuple[str, Query]:
    """The path and the query for the events after a number, with how long the server waits for new ones."""
    query = [("after", str(after)), *([("wait", str(wait))] if wait else [])]
    return f"{_place_of(request_id)}/history", query


def _read_news(answer: Answer, after: int) -> News:
    found = answer.document
    events = sorted((read_event(event) for event in found["history"]), key=lambda event: event.number)
    return Status(found["status"]), [event for event in events if event.number > after]


def _place_of(request_id: str) -> str:
    if not request_id or request_id in {".", ".."}:
        raise ToolError(Kind.NOT_FOUND, f"there is no request {request_id!r}; list them with: crib request list")
    return f"{REQUESTS}/{quote(request_id, safe='')}"


def _body_of(files: Mapping[str, bytes]) -> dict[str, object]:
    """The JSON of files: UTF-8 files as text, all others as base64."""
    texts: dict[str, str] = {}
    binary: dict[str, str] = {}
    for path, content in files.items():
        try:
            texts[path] = content.decode()
        except UnicodeDecodeError:
            binary[path] = base64.b64encode(content).decode()
    return {"files": texts, "binary": binary}


def _spell_allowance(allowance: Allowance) -> dict[str, object]:
    return {
        "capabilities": sorted(allowance.capabilities),
        "hosts": list(allowance.hosts),
        "answers": [answer.to_json() for answer in allowance.answers],
        "unproved": allowance.unproved,
    }
