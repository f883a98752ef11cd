"""The web page: see, try and approve tools in a browser. Its source lies in web/, and `make page` builds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins


def register(plugins: Plugins) -> None:
    """Add `/ui/`, and `/`, which leads a browser there."""
    plugins.add_endpoints("toolcrib.interfaces.web.endpoints:endpoints")
