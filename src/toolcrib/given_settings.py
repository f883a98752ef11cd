"""Types of the settings tables that `Crib(...)` takes as parameters; for type checkers, never imported at run time."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.core.call_state import CallsSettings
    from toolcrib.core.catalog import CatalogSettings
    from toolcrib.core.grants import GrantsSettings
    from toolcrib.core.resources import ModulesSettings
    from toolcrib.features.access.settings import AccessSettings
    from toolcrib.features.approvals import ApprovalsSettings
    from toolcrib.features.approvals.webhook import NotifySettings
    from toolcrib.features.audit import AuditSettings
    from toolcrib.features.builtins import BuiltinsSettings
    from toolcrib.features.bundles import BundlesSettings, SearchSettings
    from toolcrib.features.depots import DepotsSettings
    from toolcrib.features.ecosystems.settings import EcosystemsSettings
    from toolcrib.features.folders import FoldersSettings
    from toolcrib.features.http_tools import HttpToolsSettings
    from toolcrib.features.requests.settings import BuilderSettings, QueueSettings, RequestsSettings
    from toolcrib.features.run_history.settings import RunHistorySettings
    from toolcrib.features.safety_rules.settings import SafetyRulesSettings
    from toolcrib.features.scripts import ScriptsSettings
    from toolcrib.features.sql_tools import SqlToolsSettings
    from toolcrib.infra.egress import EgressSettings
    from toolcrib.infra.sandbox import SandboxSettings
    from toolcrib.infra.secrets import SecretsSettings
    from toolcrib.infra.settings import Table as SettingsTable
    from toolcrib.infra.settings import WorkspaceSettings

    Given = Mapping[str, object] | None


class GivenSettings(TypedDict, total=False):
    """The tables of `toolcrib.toml` that `Crib(...)` takes by their names, as mappings or typed."""

    access: AccessSettings | Given
    approvals: ApprovalsSettings | Given
    audit: AuditSettings | Given
    builder: BuilderSettings | Given
    builtins: BuiltinsSettings | Given
    bundles: BundlesSettings | Given
    calls: CallsSettings | Given
    catalog: CatalogSettings | Given
    depots: DepotsSettings | Given
    ecosystems: EcosystemsSettings | Given
    egress: EgressSettings | Given
    folders: FoldersSettings | Given
    grants: GrantsSettings | Given
    http_tools: HttpToolsSettings | Given
    mcp: SettingsTable | Given
    modules: ModulesSettings | Given
    notify: NotifySettings | Given
    queue: QueueSettings | Given
    requests: RequestsSettings | Given
    run_history: RunHistorySettings | Given
    safety_rules: SafetyRulesSettings | Given
    sandbox: SandboxSettings | Given
    scripts: ScriptsSettings | Given
    search: SearchSettings | Given
    secrets: SecretsSettings | Given
    server: SettingsTable | Given
    sql_tools: SqlToolsSettings | Given
    workspace: WorkspaceSettings | Given
