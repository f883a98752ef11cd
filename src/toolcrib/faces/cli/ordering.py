"""Requests of a crib of this machine, as the commands use any."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from toolcrib.crib import Crib
    from toolcrib.model.toolrequest import Event, Filed


class LocalRequests:
    """Waits where the crib itself would have a loop wait."""

    def __init__(self, crib: Crib) -> None:
        self._crib = crib
        self._requests = requests = crib.requests
        self.submit = requests.submit
        self.new = requests.new
        self.list = requests.list
        self.show = requests.show
        self.history = requests.history
        self.package = requests.package
        self.cancel = requests.cancel
        self.retry = requests.retry
        self.allow = requests.allow
        self.experiments = requests.experiments

    def follow(self, request_id: str, hear: Callable[[Event], None]) -> Filed:
        """Hear what happens to a request until it is over."""

        async def listen() -> None:
            async for event in self._requests.watch(request_id):
                hear(event)

        self._crib.run_sync(listen())
        return self._requests.show(request_id)

    def deliver(self, request_id: str, path: Path, hear: Callable[[str], None]) -> Filed:
        """Have proved and published what was made for a request."""
        return self._crib.run_sync(self._requests.deliver(request_id, path, hear))
