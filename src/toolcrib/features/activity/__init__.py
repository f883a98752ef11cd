"""Activity: numbers, durations, errors and costs of calls, from the journal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins
    from toolcrib.core.resources import Resources


def register(plugins: Plugins) -> None:
    """Add the screen with its endpoint, and the commands `crib stats` and `crib logs`."""
    plugins.add_resource("latencies", "toolcrib.features.activity.statistics:sum_latencies", given=_lines)
    plugins.add_resource("costs", "toolcrib.features.activity.statistics:sum_costs", given=_lines)
    plugins.add_command(
        "stats",
        "toolcrib.features.activity.commands:stats",
        "Show calls, times, errors, costs, and what is left of limits.",
    )
    plugins.add_command("logs", "toolcrib.features.activity.logs:logs", "Show calls, and logs of the server, readably.")
    plugins.add_screen("activity")
    plugins.add_endpoints("toolcrib.features.activity.endpoints:endpoints")


def _lines(resources: Resources) -> dict[str, object]:
    return {"lines": resources.data.journal.read()}
