"""Make the HTTP application of a crib, and end it as a server does: else it would leave its threads behind, hundreds of them in a whole run."""

from __future__ import annotations

from typing import Any

from toolcrib import Crib
from toolcrib.interfaces.http.app import App, make_app


def local_app(crib: Crib) -> App:
    """The application that `crib serve` runs on loopback, where clients need no token."""
    return make_app(crib, open_to_loopback=True)


async def end(app: App) -> None:
    """Send the events of a server that starts and ends."""
    events = iter(["lifespan.startup", "lifespan.shutdown"])

    async def receive() -> dict[str, Any]:
        return {"type": next(events)}

    async def send(message: object) -> None:
        assert isinstance(message, dict)
        assert message["type"].endswith(".complete"), message

    await app({"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}, receive, send)  # type: ignore[arg-type]
