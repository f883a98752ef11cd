"""Tool folders of four files: format, build, registry, handlers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.core.resources import code_around
from toolcrib.core.sources import LateSource, Rank
from toolcrib.infra.settings import Table, read_positive, read_switch, setting

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from toolcrib.core.plugins import Plugins
    from toolcrib.core.resources import Resources
    from toolcrib.model.protocols import Source


class FoldersSettings(Table, name="folders"):
    """Tool folders: their registry, and the processes of their handlers."""

    watch: bool = setting(
        default=False,
        read=read_switch,
        opens=False,
        summary="whether a new build of tool folders is loaded at once, or at the next start",
    )
    workers: int = setting(
        default=8,
        read=read_positive,
        opens=False,
        summary="how many processes of tool folders' handlers may be kept ready, over all tools",
    )
    fresh: bool = setting(
        default=False, read=read_switch, opens=False, summary="whether each call of a handler gets a process of its own"
    )


REGISTRY = "tool_registry.json"


def register(plugins: Plugins) -> None:
    """Add the registries and what runs their handlers."""
    plugins.add_runner("handler", "toolcrib.features.folders.runner:HandlerRunner", given=_for_runner)
    plugins.add_resource("tool_folders", "toolcrib.features.folders.facade:ToolFolders")
    plugins.add_resource("folder_reading", "toolcrib.features.folders.build:read_alone", given=lambda _: {})
    plugins.add_resource("registry_folders", "toolcrib.features.folders.registry_folders:registry_folders")
    plugins.add_resource("registries", "toolcrib.features.folders.source:Registries")
    plugins.add_source("registries", _sources)
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
    plugins.add_settings("folders", FoldersSettings)


def _sources(resources: Resources) -> Iterable[Source]:
    """The registries; where no folder was built and none is watched, they are only loaded to say what is not built."""
    if "folders.watch" in resources.settings.places or any(
        (folder.path / REGISTRY).exists() for folder in resources.make("registry_folders")
    ):
        return resources.get("registries").sources()  # type: ignore[no-any-return]  # so it is registered
    late = LateSource(Rank.TOOL_FOLDERS, lambda: resources.get("registries").sources(), is_empty=True)
    return [late] if resources.tool_folders() else []


def _for_runner(resources: Resources) -> dict[str, object]:
    folders = resources.settings["folders"]
    return {
        "sandbox": resources.get("sandbox"),
        "workspace_policy": resources.get("workspace_policy"),
        "commands": lambda: resources.make("host_commands"),
        "egress": lambda: resources.get("egress"),
        "variables": resources.lend_variables(),
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
    inside = [folder.path for folder in resources.make("registry_folders") if folder.path.is_relative_to(root)]
    return code_around([folder for folder in inside if (folder / REGISTRY).exists()], root)
