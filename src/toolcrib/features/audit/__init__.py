"""The audit trail: who decided and changed what, in a hash chain that outlasts the journal of calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.infra.settings import FILE_NAME, Table, read_positive, setting

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins
    from toolcrib.core.resources import Resources


def _read_days(name: str, value: object) -> int:
    return 0 if value == 0 and not isinstance(value, bool) else read_positive(name, value)


class AuditSettings(Table, name="audit"):
    """The audit trail."""

    keep_days: int = setting(
        default=0, read=_read_days, summary="how many days of the audit trail are kept; 0 keeps it for ever"
    )


def register(plugins: Plugins) -> None:
    """Add the audit trail, its command and its endpoint."""
    plugins.add_resource("audit", "toolcrib.features.audit.log:AuditLog", given=_for_audit)
    plugins.add_endpoints("toolcrib.features.audit.endpoints:endpoints")
    plugins.add_command(
        "audit", "toolcrib.features.audit.commands:audit", "Show, export and verify who decided and changed what."
    )
    plugins.add_settings("audit", AuditSettings)


def _for_audit(resources: Resources) -> dict[str, object]:
    settings, data = resources.settings, resources.data
    return {
        "folder": data.folder() / "audit",
        "caller": resources.get("caller"),
        "settings": (settings.root or data.folder()) / FILE_NAME,
        "keep_days": settings.table(AuditSettings).keep_days,
        "hide": data.mask.value,
    }
