"""HTTP endpoints of the screen Health: the report of `crib doctor`, and what keeps tools from running here."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Protocol

from toolcrib.features.project.health_report import (
    CheckedCrib,
    ReportedCrib,
    about,
    find_obstacles,
    protected_names,
    setting_lines,
)
from toolcrib.infra.settings import BY_DEFAULT
from toolcrib.model.call import Scope
from toolcrib.toolkit.http import answer_json
from toolcrib.toolkit.http.contract import Reply, text
from toolcrib.toolkit.http.endpoint import Endpoint, EndpointTable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.model.tool import Entry
    from toolcrib.toolkit.http import Answer, Request
    from toolcrib.toolkit.http.concurrency import Threads
    from toolcrib.toolkit.http.endpoint import Host


class DoctorCrib(ReportedCrib, CheckedCrib, Protocol):
    """What the endpoints use of a crib besides."""

    def require(self, name: str) -> Entry:
        """The tool of that name, slug or address; raises ToolError if there is none."""

    async def probe_sandbox(self) -> None:
        """Find out what the sandbox guarantees here."""

    async def sandbox_report(self) -> dict[str, Mapping[str, object]]:
        """What the sandbox guarantees here."""


class DoctorEndpoints:
    """Report on the project and the machine."""

    def __init__(self, crib: DoctorCrib, threads: Threads) -> None:
        self._crib = crib
        self._threads = threads

    async def read(self, request: Request) -> Answer:
        """GET /ui/doctor."""
        sandbox = await self._crib.sandbox_report()
        lines = setting_lines(self._crib.settings)
        settings = [asdict(one) for one in lines if one.where != BY_DEFAULT]
        protected = await self._threads.read(protected_names, self._crib.settings, sandbox)
        return answer_json(
            {
                "about": dict(about(self._crib)),
                "settings": settings,
                "sandbox": sandbox,
                "protected": protected,
                "warnings": list(self._crib.grants.warnings(self._crib.unstored_entries)),
            }
        )

    async def obstacles(self, request: Request) -> Answer:
        """GET /ui/obstacles: of all tools, or of one."""
        await self._crib.probe_sandbox()
        return answer_json({"obstacles": await self._threads.read(self._find, request.query.text("name"))})

    def _find(self, name: str) -> list[dict[str, object]]:
        entries = [self._crib.require(name)] if name else self._crib.entries
        return [
            {"reason": reason, "tools": [{"name": tool.name, "address": tool.address} for tool in tools]}
            for reason, tools in find_obstacles(self._crib, entries).items()
        ]


def _make(host: Host) -> DoctorEndpoints:
    return DoctorEndpoints(host.crib, host.threads)


endpoints = (
    EndpointTable(
        tag="doctor",
        summary="What `crib doctor` says.",
        make=_make,
        described=False,
        endpoints=(
            Endpoint(
                name="readDoctor",
                method="GET",
                path="/ui/doctor",
                handler=DoctorEndpoints.read,
                # It names folders of the machine and every setting.
                scope=Scope.MANAGE,
                summary="Report versions, settings, sandbox and protected names.",
                replies={200: Reply(description="The report.")},
            ),
            Endpoint(
                name="readObstacles",
                method="GET",
                path="/ui/obstacles",
                handler=DoctorEndpoints.obstacles,
                # It names programs, variables and secrets that are missing on the machine.
                scope=Scope.MANAGE,
                summary="Report what keeps tools from running here.",
                query=(text("name", "Only of the tool of this name, slug or address."),),
                refusals=(404,),
                replies={200: Reply(description="Each obstacle, with its tools.")},
            ),
        ),
    ),
)
