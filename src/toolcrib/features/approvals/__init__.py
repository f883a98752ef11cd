"""Approvals: calls that wait until a person other than the caller has approved them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.infra.settings import Table, read_positive, read_switch, setting

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins
    from toolcrib.core.resources import Resources


class ApprovalsSettings(Table, name="approvals"):
    """Calls that wait until a person approves them."""

    seconds: int = setting(
        default=3_600,
        read=read_positive,
        opens=False,
        summary="how long a call may wait for a person's approval, and how long the approval then holds",
    )
    wait_seconds: int = setting(
        default=20,
        read=read_positive,
        opens=False,
        summary="how long a call of an MCP client waits for a person before it is answered",
    )
    pending: int = setting(
        default=1_000,
        read=read_positive,
        opens=False,
        summary="how many calls may wait for approval at once; those of one caller may be a tenth of them",
    )
    elicitation: bool = setting(
        default=False,
        read=read_switch,
        summary="whether an MCP client that can ask its user is asked for approval, and its answer taken for that of a person",
    )


def register(plugins: Plugins) -> None:
    """Add the stored approvals, their commands and their endpoints."""
    plugins.add_resource("approvals", "toolcrib.features.approvals.approvals:Approvals", given=_for_approvals)
    plugins.add_resource("webhook", "toolcrib.features.approvals.webhook:Webhook", given=_for_webhook)
    plugins.add_endpoints("toolcrib.features.approvals.endpoints:endpoints")
    plugins.add_command(
        "approvals", "toolcrib.features.approvals.commands:approvals", "Approve or refuse calls that wait for a person."
    )
    plugins.add_screen("approvals")
    plugins.add_settings("approvals", ApprovalsSettings)
    plugins.add_settings("notify", "toolcrib.features.approvals.webhook:NotifySettings")


def _for_approvals(resources: Resources) -> dict[str, object]:
    data, approvals = resources.data, resources.settings["approvals"]
    return {
        "store": lambda: data.store,
        "key": lambda: data.key,
        "hide": data.secrets.masking.hide_in,
        "seconds": approvals.seconds,
        "max_pending": approvals.pending,
        "find": resources.get("find"),
        "record": resources.record,
        "holder_of": lambda caller: resources.get("tokens").holder(caller),
        "tell": resources.get("webhook").tell if resources.settings.explicit("notify").get("webhook") else None,
    }


def _for_webhook(resources: Resources) -> dict[str, object]:
    notify, server = resources.settings["notify"], resources.settings["server"]
    return {
        "url": notify.webhook,
        "page": notify.page or f"http://{server.host}:{server.port}",
        "private": resources.settings["egress"].private,
    }
