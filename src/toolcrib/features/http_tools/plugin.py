"""Register tools that are HTTP requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.lib import __version__
from toolcrib.model.tool import Http

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins
    from toolcrib.core.resources import Resources


def register(plugins: Plugins) -> None:
    """Add the runner of HTTP tools; scripts have tools of the same kind, which their own runner runs."""
    plugins.add_runner("http", "toolcrib.features.http_tools.runner:HttpRunner", given=_for_runner, runs=Http)


def _for_runner(resources: Resources) -> dict[str, object]:
    settings = resources.settings
    return {
        "egress": lambda: resources.get("egress"),
        "hosts": settings.allowed_hosts,
        "secrets": resources.data.secrets,
        "version": settings.application_version or __version__,
        "max_retries": settings.max_retries,
        "max_sent_bytes": settings.max_sent_bytes,
        "max_response_bytes": settings.max_response_bytes,
    }
