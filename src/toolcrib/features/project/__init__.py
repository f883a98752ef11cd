"""The resources of every project: sandbox, egress, workspace, stored documents and secrets, configured by the settings."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from toolcrib.model.tool import MEGABYTE

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins
    from toolcrib.core.resources import Resources


def register(plugins: Plugins) -> None:
    """Add the resources, each created from the settings on first use, and the commands and endpoints of the project."""
    plugins.add_resource("sandbox", "toolcrib.infra.sandbox.host:Sandbox", given=_for_sandbox)
    plugins.add_resource("protected_files", "toolcrib.infra.files.protected_files:ProtectedFolders", given=lambda _: {})
    plugins.add_resource("workspace_policy", "toolcrib.infra.sandbox.jobs:WorkspacePolicy", given=_for_workspace_policy)
    plugins.add_resource(
        "egress",
        "toolcrib.infra.egress.client:Egress",
        given=lambda resources: {
            "private": resources.settings["egress"].private,
            "allowed": resources.settings["http_tools"].hosts,
        },
    )
    plugins.add_resource(
        "child_channel",
        "toolcrib.infra.programs.child_channel:ChildChannel",
        given=lambda resources: {"sandbox": resources.get("sandbox")},
    )
    plugins.add_resource("granted_variables", "toolcrib.infra.secrets.grants:GrantedVariables")
    plugins.add_resource("jail", "toolcrib.features.project.workspace:open_jail")
    plugins.add_resource("confirmed_jail", "toolcrib.features.project.workspace:open_confirmed_jail")
    plugins.add_resource("secrets", "toolcrib.features.project.secrets:open_secrets")
    plugins.add_resource("key", "toolcrib.features.project.secrets:open_key")
    plugins.add_resource("store", lambda resources: resources.make_store())
    plugins.add_store("memory", "toolcrib.infra.storage:MemoryStore", given=lambda _: {})
    plugins.add_store(
        "files",
        "toolcrib.infra.storage.file_store:FileStore",
        given=lambda resources: {"root": resources.data.path},
    )
    plugins.add_resource("confirmations", "toolcrib.core.confirmations:Confirmations", given=_for_confirmations)
    plugins.add_resource("session", "toolcrib.model.session:Session", given=lambda _: {})
    plugins.add_resource("kept_results", "toolcrib.infra.storage.expiring:KeptResults", given=_for_expiring)
    plugins.add_resource("confirmations_in_store", "toolcrib.infra.storage.expiring:UsedInStore", given=_for_expiring)
    plugins.add_resource("expiring", "toolcrib.infra.storage.expiring:Expiring", given=_for_expiring)
    plugins.add_resource("host_commands", "toolcrib.infra.programs.executables:Executables", given=_for_commands)
    plugins.add_resource("readiness", "toolcrib.features.project.readiness:Readiness")
    plugins.add_check("toolcrib.features.project.workspace:check_private_addresses")
    plugins.add_command("add", "toolcrib.features.project.commands:add", "Copy a file that is a tool into the project.")
    plugins.add_endpoints("toolcrib.features.project.endpoints:endpoints")
    plugins.add_settings("project", "toolcrib.infra.settings:ProjectSettings")
    plugins.add_settings("workspace", "toolcrib.infra.settings:WorkspaceSettings")
    plugins.add_settings("catalog", "toolcrib.core.catalog:CatalogSettings")
    plugins.add_settings("modules", "toolcrib.core.resources:ModulesSettings")
    plugins.add_settings("grants", "toolcrib.core.grants:GrantsSettings")
    plugins.add_settings("calls", "toolcrib.core.call_state:CallsSettings")
    plugins.add_settings("sandbox", "toolcrib.infra.sandbox:SandboxSettings")
    plugins.add_settings("egress", "toolcrib.infra.egress:EgressSettings")
    plugins.add_settings("secrets", "toolcrib.infra.secrets:SecretsSettings")


def _for_sandbox(resources: Resources) -> dict[str, object]:
    given = resources.settings.explicit("sandbox")
    return {
        **{key: given[key] for key in ("require", "jobs", "queue") if key in given},
        "cache": resources.data.file("sandbox.json"),
        "runtime": resources.environment.get("XDG_RUNTIME_DIR", ""),
        "workspace": resources.settings.workspace,
        "protected": partial(resources.get, "protected_files"),
    }


def _for_workspace_policy(resources: Resources) -> dict[str, object]:
    """The parts of the workspace that file tools may read and write."""
    settings, data = resources.settings, resources.data.path
    bounds: dict[str, object] = {}
    if settings.explicit("sandbox"):
        sandbox = settings["sandbox"]
        bounds["memory_bytes"] = sandbox.memory_mb * MEGABYTE
        bounds["processes"] = sandbox.processes
        bounds["disk_bytes"] = sandbox.disk_mb * MEGABYTE
    return {
        "workspace": settings.workspace,
        "opened": settings["workspace"].open,
        "closed": () if data is None else (data,),
        "fixed": tuple(resources.protected_paths()),
        "unwritable": _why_unwritable(resources),
        **bounds,
    }


def _for_expiring(resources: Resources) -> dict[str, object]:
    """The store as a function, because it is created on first use."""
    return {"store": lambda: resources.data.store}


def _for_confirmations(resources: Resources) -> dict[str, object]:
    seconds = resources.settings["calls"].confirmation_seconds
    # A store of the host program may be shared by several machines; the file of limits is local to this machine.
    used = "confirmations_in_store" if resources.is_lent("store") else "usage_ledger"
    return {
        "key": lambda: resources.data.derive_key("confirmation"),
        "used": lambda: resources.get(used),
        "seconds": seconds,
    }


def _for_commands(resources: Resources) -> dict[str, object]:
    """Where programs for tools are found; an installation in the project is used only below these roots."""
    settings, trees = resources.settings, resources.get("script_trees")
    return {
        "search_path": resources.environment.get("PATH", ""),
        "roots": (*(() if settings.root is None else (settings.root,)), *trees.values()),
        "workspace": settings.workspace,
    }


def _why_unwritable(resources: Resources) -> str:
    settings = resources.settings
    root, workspace = settings.root, settings.workspace
    if not resources.runs_host_modules or root is None:
        return ""
    modules = settings["modules"]
    packages = [root / name.partition(".")[0] for name in (*modules.tools, *modules.rules)]
    if not root.is_relative_to(workspace) and not any(map(workspace.is_relative_to, packages)):
        return ""
    return (
        f"the workspace {workspace} holds modules that run in the host's process, so no file of code may write there; "
        "set workspace.folder to one of its own"
    )
