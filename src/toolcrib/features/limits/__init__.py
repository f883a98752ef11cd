"""Rate limits of tools and quotas of callers, counted for all processes of a machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins
    from toolcrib.core.resources import Resources


def register(plugins: Plugins) -> None:
    """Add the rate limits and quotas that the pipeline checks."""
    plugins.add_resource("usage_ledger", "toolcrib.infra.usage_ledger:UsageLedger", given=_for_ledger)
    plugins.add_resource(
        "call_limits",
        "toolcrib.features.limits.call_limits:CallLimits",
        given=lambda resources: {"ledger": resources.get("usage_ledger")},
    )


def _for_ledger(resources: Resources) -> dict[str, object]:
    if resources.data.path is not None:
        resources.data.folder()
    return {"path": resources.data.file("limits.sqlite3")}
