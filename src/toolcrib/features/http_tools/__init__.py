"""HTTP tools: request templates, extraction, retries."""

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
    plugins.add_check("toolcrib.features.http_tools.runner:check_hosts")
    plugins.add_screen("recipes")
    plugins.add_settings("http_tools", "toolcrib.features.http_tools.settings:HttpToolsSettings")


def _for_runner(resources: Resources) -> dict[str, object]:
    http_tools = resources.settings["http_tools"]
    return {
        "egress": lambda: resources.get("egress"),
        "hosts": http_tools.hosts,
        "secrets": resources.data.secrets,
        "version": http_tools.version or __version__,
        "max_retries": http_tools.max_retries,
        "max_sent_bytes": http_tools.max_sent_bytes,
        "max_response_bytes": http_tools.max_response_bytes,
    }
