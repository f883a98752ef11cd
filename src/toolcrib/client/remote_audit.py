"""List the audit trail of a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolcrib.client.shapes import AUDIT_PAGE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from toolcrib.client.server import Server


class RemoteAudit:
    """The events of a server."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def events(self, **filters: str) -> Iterator[Mapping[str, Any]]:
        """The events, the newest first, with the filters of `AuditLog`."""
        return self._server.list("/audit", [pair for pair in filters.items() if pair[1]], "events", AUDIT_PAGE)
