"""The client of a Toolcrib server: `Crib.connect(url)` has the interface of a local Crib."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins


def register(plugins: Plugins) -> None:
    """Add the resource that `Crib.connect` creates."""
    plugins.add_resource("remote_crib", "toolcrib.client.remote_crib:RemoteCrib", given=lambda _: {})
