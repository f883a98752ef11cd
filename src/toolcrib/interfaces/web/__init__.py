"""The web page: see, try and approve tools in a browser. Its source is in web/, and `make page` builds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins


def register(plugins: Plugins) -> None:
    """Add `/ui/`, `/`, which redirects a browser there, and `crib page`."""
    plugins.add_command(
        "page", "toolcrib.interfaces.web.commands:page", "Print a link that signs you in to the web page."
    )
    plugins.add_endpoints("toolcrib.interfaces.web.endpoints:endpoints")
