"""The HTTP endpoint of the audit trail."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from toolcrib.features.audit.log import TEXTS
from toolcrib.model.bundle import Page
from toolcrib.model.call import Scope
from toolcrib.model.errors import Kind, ToolError
from toolcrib.toolkit.http import answer_page, contract
from toolcrib.toolkit.http.contract import Reply, text
from toolcrib.toolkit.http.endpoint import Endpoint, EndpointTable

if TYPE_CHECKING:
    from toolcrib.features.audit.commands import AuditCrib
    from toolcrib.toolkit.http import Answer, Request
    from toolcrib.toolkit.http.endpoint import Host

FILTERS = (
    text("since", "Only since this date or time.", example="2026-11-18T09:30:00Z"),
    text("actor", "Only of this actor, by id or name."),
    text("what", "Only of a kind such as `tool` or `call.approved`, or about exactly this.", key="auditWhat"),
)
EVENT = {"number": contract.WHOLE, "facts": contract.ANYTHING, **dict.fromkeys(TEXTS, contract.TEXT)}


class AuditEndpoints:
    """List the audit trail."""

    def __init__(self, host: Host) -> None:
        self._crib: AuditCrib = host.crib
        self._threads = host.threads

    async def read(self, request: Request) -> Answer:
        """GET /audit."""
        query = request.query
        size, token = query.number("pageSize") or contract.MAX_PAGE, query.text("pageToken") or "0"
        if not token.isdecimal():
            raise ToolError(Kind.VALIDATION, "query: pageToken: is not a token of this list; start again without it")
        filters = {each.name: query.text(each.name) for each in FILTERS}
        events = self._crib.audit.events(**filters, before=int(token))
        found = await self._threads.read(lambda: list(islice(events, size + 1)))
        more = str(found[size - 1]["number"]) if len(found) > size else ""
        return answer_page("events", found[:size], Page(items=(), next_token=more))


endpoints = (
    EndpointTable(
        tag="audit",
        summary="Who decided and changed what.",
        make=AuditEndpoints,
        schemas={
            "AuditEvent": contract.closed(tuple(EVENT), **EVENT),
            "AuditPage": contract.page("events", "AuditEvent"),
        },
        endpoints=(
            Endpoint(
                name="listAudit",
                method="GET",
                path="/audit",
                handler=AuditEndpoints.read,
                # It names every caller.
                scope=Scope.MANAGE,
                summary="List decisions and changes, the newest first.",
                query=(*FILTERS, contract.PAGE_SIZE, contract.PAGE_TOKEN),
                replies={200: Reply(description="A page of events.", schema="AuditPage")},
            ),
        ),
    ),
)
