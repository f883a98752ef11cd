"""The HTTP endpoint that records a run of the web page as a case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from toolcrib.features.testing.case_files import record_case
from toolcrib.model.call import Scope
from toolcrib.model.errors import Kind, ToolError
from toolcrib.toolkit.http import answer_json, read_body, text_of
from toolcrib.toolkit.http.contract import ANYTHING, TEXT, Body, Reply, closed
from toolcrib.toolkit.http.endpoint import Endpoint, EndpointTable

if TYPE_CHECKING:
    from toolcrib.infra.settings import Settings
    from toolcrib.model.tool import Entry
    from toolcrib.toolkit.http import Answer, Request
    from toolcrib.toolkit.http.concurrency import Threads
    from toolcrib.toolkit.http.endpoint import Host

CASE_BODY = Body(
    name="RecordedCase",
    schema=closed(("tool", "name", "arguments", "expect"), tool=TEXT, name=TEXT, arguments=ANYTHING, expect=ANYTHING),
    example={"tool": "tools/greet@1.0.0", "name": "greets", "arguments": {"name": "Ada"}, "expect": {"ok": True}},
)


class RecordingCrib(Protocol):
    """What the endpoint uses of a crib."""

    @property
    def settings(self) -> Settings:
        """The settings in force."""

    def find(self, name: str) -> Entry | None:
        """The tool of that name, slug or address."""


class CaseEndpoints:
    """Record cases."""

    def __init__(self, crib: RecordingCrib, threads: Threads) -> None:
        self._crib = crib
        self._threads = threads

    async def record(self, request: Request) -> Answer:
        """POST /ui/cases."""
        body = await read_body(request)
        entry = self._crib.find(text_of(body, "tool") or "")
        if entry is None:
            raise ToolError(Kind.NOT_FOUND, "body: tool: there is none by this address")
        case = {key: body.get(key) for key in ("name", "arguments", "expect")}
        place = await self._threads.write(record_case, entry.tool, self._crib.settings.root, case)
        return answer_json({"file": place}, status=201)


def _make(host: Host) -> CaseEndpoints:
    return CaseEndpoints(host.crib, host.threads)


endpoints = (
    EndpointTable(
        tag="cases",
        summary="Recorded cases of tools.",
        make=_make,
        described=False,
        endpoints=(
            Endpoint(
                name="recordCase",
                method="POST",
                path="/ui/cases",
                handler=CaseEndpoints.record,
                # It writes a file of the project.
                scope=Scope.MANAGE,
                summary="Record a run as a case that `crib test` tries.",
                body=CASE_BODY,
                refusals=(404, 409),
                replies={201: Reply(description="Where it stands.")},
            ),
        ),
    ),
)
