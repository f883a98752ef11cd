"""What a running server knows about itself; the layers around the application and its own routes share it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from toolcrib.faces.http.admission import Admission
from toolcrib.faces.http.connections import Connections
from toolcrib.faces.http.metrics import HttpMetrics

if TYPE_CHECKING:
    from toolcrib.faces.http.limits import Exchange
    from toolcrib.ground.settings import Settings


class Service:
    """Whether the server is ready for work, who may come in, who is being answered, and what has been counted.

    `ending` is set when the server ends, for those whose answer would go on and on. The application opens every call of a
    tool with `async with service.admission:`, and answers `/readyz` by `service.ready` and `/metrics` with
    `service.metrics_text()`.
    """

    def __init__(self, settings: Settings) -> None:
        self.ending = asyncio.Event()
        self.admission = Admission(settings.http_concurrency, settings.http_queue)
        self.connections = Connections(settings.http_connections, settings.http_address_connections)
        self.exchanges: set[Exchange] = set()
        self.metrics = HttpMetrics()

    @property
    def ready(self) -> bool:
        """Whether the server takes on work."""
        return not self.ending.is_set()

    def look(self, now: float) -> None:
        """Stop every request that is due."""
        for exchange in tuple(self.exchanges):
            exchange.look(now)

    def metrics_text(self) -> str:
        """Everything that is counted, in the text format of Prometheus."""
        admission, connections = self.admission, self.connections
        return self.metrics.text(
            gauges={
                "toolcrib_ready": int(self.ready),
                "toolcrib_calls_running": admission.running,
                "toolcrib_calls_queued": admission.queued,
                "toolcrib_http_connections": connections.total,
                "toolcrib_http_requests_in_flight": len(self.exchanges),
            },
            counters={
                "toolcrib_calls_refused_total": admission.refused,
                "toolcrib_http_connections_refused_total": connections.refused,
            },
        )
