"""A crib behind a URL, used like one of this machine: `Crib.connect(url)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins


def register(plugins: Plugins) -> None:
    """Add what `Crib.connect` makes."""
    plugins.add_resource("remote_crib", "toolcrib.client.remote_crib:RemoteCrib", given=lambda _: {})
