"""The HTTP endpoint of the screen Health: what `crib doctor` says."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Protocol

from toolcrib.features.project.health_report import ReportedCrib, about, protected_names, setting_lines
from toolcrib.infra.settings import BY_DEFAULT
from toolcrib.model.call import Scope
from toolcrib.toolkit.http import answer_json
from toolcrib.toolkit.http.contract import Reply
from toolcrib.toolkit.http.endpoint import Endpoint, EndpointTable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.toolkit.http import Answer, Request
    from toolcrib.toolkit.http.endpoint import Host


class DoctorCrib(ReportedCrib, Protocol):
    """What the endpoint uses of a crib besides."""

    async def sandbox_report(self) -> dict[str, Mapping[str, object]]:
        """What the sandbox guarantees here."""


class DoctorEndpoints:
    """Report on the project and the machine."""

    def __init__(self, crib: DoctorCrib) -> None:
        self._crib = crib

    async def read(self, request: Request) -> Answer:
        """GET /ui/doctor."""
        sandbox = await self._crib.sandbox_report()
        lines = setting_lines(self._crib.settings)
        settings = [asdict(one) for one in lines if one.where != BY_DEFAULT]
        return answer_json(
            {
                "about": dict(about(self._crib)),
                "settings": settings,
                "sandbox": sandbox,
                "protected": protected_names(self._crib.settings, sandbox),
            }
        )


def _make(host: Host) -> DoctorEndpoints:
    return DoctorEndpoints(host.crib)


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
        ),
    ),
)
