"""HTTP endpoints of the run history: each caller records, lists and clears its own runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from toolcrib.model.call import Scope
from toolcrib.model.errors import Kind, ToolError
from toolcrib.toolkit.http import Answer, answer_json, read_body, text_of
from toolcrib.toolkit.http.contract import ANYTHING, SWITCH, TEXT, Body, Reply, closed, text
from toolcrib.toolkit.http.endpoint import Endpoint, EndpointTable

if TYPE_CHECKING:
    from toolcrib.features.run_history.history import RunHistory
    from toolcrib.toolkit.http import Request
    from toolcrib.toolkit.http.concurrency import Threads
    from toolcrib.toolkit.http.endpoint import Host

PATH = "/ui/runs"
RUN_BODY = Body(
    name="Run",
    schema=closed(("tool", "arguments", "ok"), tool=TEXT, arguments=ANYTHING, ok=SWITCH, outcome=TEXT),
    example={"tool": "weather/current@v1", "arguments": {"city": "Oslo"}, "ok": True, "outcome": "4 °C"},
)


class HistoryCrib(Protocol):
    """What the endpoints use of a crib."""

    @property
    def run_history(self) -> RunHistory:
        """The stored runs."""


class RunEndpoints:
    """Record, list and clear the runs of the caller."""

    def __init__(self, history: RunHistory, threads: Threads) -> None:
        self._history = history
        self._threads = threads

    async def list(self, request: Request) -> Answer:
        """GET /ui/runs."""
        runs = await self._threads.read(self._history.list, request.caller, request.query.text("tool"))
        return answer_json({"enabled": self._history.enabled, "runs": runs})

    async def note(self, request: Request) -> Answer:
        """POST /ui/runs."""
        body = await read_body(request)
        tool, arguments = text_of(body, "tool"), body.get("arguments")
        if not tool or not isinstance(arguments, dict):
            raise ToolError(Kind.VALIDATION, "body: write the address of the tool, and the arguments as an object")
        run_id = await self._threads.write(
            self._history.note,
            request.caller,
            tool,
            arguments,
            ok=body.get("ok") is True,
            outcome=text_of(body, "outcome") or "",
        )
        return answer_json({"id": run_id}, status=201)

    async def clear(self, request: Request) -> Answer:
        """DELETE /ui/runs."""
        await self._threads.write(self._history.clear, request.caller)
        return Answer(status=204)


def _make(host: Host) -> RunEndpoints:
    crib: HistoryCrib = host.crib
    return RunEndpoints(crib.run_history, host.threads)


endpoints = (
    EndpointTable(
        tag="runs",
        summary="What a person ran on the web page.",
        make=_make,
        described=False,
        endpoints=(
            Endpoint(
                name="listRuns",
                method="GET",
                path=PATH,
                handler=RunEndpoints.list,
                scope=Scope.INVOKE,
                summary="List one's own runs.",
                query=(text("tool", "Only of the tool with this address."),),
                replies={200: Reply(description="The runs, the newest first.")},
            ),
            Endpoint(
                name="noteRun",
                method="POST",
                path=PATH,
                handler=RunEndpoints.note,
                scope=Scope.INVOKE,
                summary="Note a run.",
                body=RUN_BODY,
                refusals=(409, 413),
                replies={201: Reply(description="It is stored.")},
            ),
            Endpoint(
                name="clearRuns",
                method="DELETE",
                path=PATH,
                handler=RunEndpoints.clear,
                scope=Scope.INVOKE,
                summary="Forget one's own runs.",
                replies={204: Reply(description="None is stored.")},
            ),
        ),
    ),
)
