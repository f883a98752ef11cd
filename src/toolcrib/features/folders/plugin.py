"""Register tool folders: four files each, checked by a build and loaded from its registry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.core.catalog import Rank
from toolcrib.core.resources import INSTALLED, PROJECT_SCRIPTS

if TYPE_CHECKING:
    from pathlib import Path

    from toolcrib.core.plugins import Plugins
    from toolcrib.core.resources import Resources

REGISTRY = "tool_registry.json"


def register(plugins: Plugins) -> None:
    """Add the registries and what runs their handlers."""
    plugins.add_runner("handler", "toolcrib.features.folders.runner:HandlerRunner", given=_for_runner)
    plugins.add_resource("tool_folders", "toolcrib.features.folders.facade:ToolFolders")
    plugins.add_resource("registries", "toolcrib.features.folders.source:Registries")
    plugins.add_source("registries", _sources, rank=Rank.REGISTRIES)
    plugins.add_protected_paths(_protected_paths)
    plugins.add_command(
        "new", "toolcrib.features.folders.commands:new", "Write a tool folder that passes the build, and its test."
    )
    plugins.add_command(
        "build", "toolcrib.features.folders.commands:build", "Check every tool folder and write the registry."
    )
    plugins.add_command(
        "registry",
        "toolcrib.features.folders.commands:registry",
        "Show which registry is loaded, and whether it is stale.",
    )
    plugins.add_settings("folders", "toolcrib.features.folders.settings:FoldersSettings")


def _sources(resources: Resources) -> list[object]:
    """The registries; a Crib without a project has no folders that could be built."""
    return [] if resources.settings.root is None else [resources.get("registries")]


def _for_runner(resources: Resources) -> dict[str, object]:
    folders = resources.settings["folders"]
    return {
        "sandbox": resources.get("sandbox"),
        "workspace_policy": resources.get("workspace_policy"),
        "commands": lambda: resources.make("host_commands"),
        "egress": lambda: resources.get("egress"),
        "workers": folders.workers,
        "environments": resources.get("environments"),
        "fresh": folders.fresh,
        "observe": resources.observe,
    }


def _protected_paths(resources: Resources) -> list[Path]:
    """What is installed for the handlers of the project, which counts as their runtime."""
    root = resources.settings.root
    if root is None:
        return []
    inside = [folder for folder in resources.tool_folders() if folder.is_relative_to(root)]
    if not any((folder / REGISTRY).exists() for folder in inside):
        return []
    return [root / PROJECT_SCRIPTS.partition("/")[0], *(root / name for name in INSTALLED)]
