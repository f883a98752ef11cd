"""What the endpoints of the HTTP interface itself are made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.toolkit.http.endpoint import Host

if TYPE_CHECKING:
    from toolcrib.interfaces.http.server_state import Service
    from toolcrib.interfaces.http.session_store import SessionStore
    from toolcrib.toolkit.http.endpoint import EndpointTable


@dataclass(frozen=True, kw_only=True)
class HttpHost(Host):
    """A host with what only this interface knows; `tables` are those of all endpoints, for the description of the API."""

    service: Service
    sessions: SessionStore
    tables: tuple[EndpointTable, ...]
    needs_token: bool
