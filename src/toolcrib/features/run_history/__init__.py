"""Run history of the web page: the tools that a person ran, with their arguments, which the journal does not record."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins
    from toolcrib.core.resources import Resources


def register(plugins: Plugins) -> None:
    """Add the stored runs, their endpoints and their settings."""
    plugins.add_resource("run_history", "toolcrib.features.run_history.history:RunHistory", given=_for_history)
    plugins.add_endpoints("toolcrib.features.run_history.endpoints:endpoints")
    plugins.add_settings("run_history", "toolcrib.features.run_history.settings:RunHistorySettings")
    plugins.add_screen("history")


def _for_history(resources: Resources) -> dict[str, object]:
    data, settings = resources.data, resources.settings["run_history"]
    return {
        "store": lambda: data.store,
        "hide": data.secrets.masking.hide_in,
        "kept": settings.kept if settings.enabled else 0,
    }
