"""Approvals: calls that wait until a person other than the caller has approved them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins
    from toolcrib.core.resources import Resources


def register(plugins: Plugins) -> None:
    """Add the stored approvals, their commands and their endpoints."""
    plugins.add_resource("approvals", "toolcrib.features.approvals.approvals:Approvals", given=_for_approvals)
    plugins.add_endpoints("toolcrib.features.approvals.endpoints:endpoints")
    plugins.add_command(
        "approvals", "toolcrib.features.approvals.commands:approvals", "Approve or refuse calls that wait for a person."
    )
    plugins.add_screen("approvals")
    plugins.add_settings("approvals", "toolcrib.features.approvals.settings:ApprovalsSettings")


def _for_approvals(resources: Resources) -> dict[str, object]:
    data, approvals = resources.data, resources.settings["approvals"]
    return {
        "store": lambda: data.store,
        "key": lambda: data.key,
        "hide": data.secrets.masking.hide_in,
        "seconds": approvals.seconds,
        "max_pending": approvals.pending,
        "find": resources.get("find"),
    }
