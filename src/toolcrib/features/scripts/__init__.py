"""Scripts with metadata in any language, and the executor chains that run them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from toolcrib.core.file_source import FileSource
from toolcrib.core.resources import INSTALLED, PROJECT_SCRIPTS, LazyFormat
from toolcrib.core.sources import Rank, ToolList
from toolcrib.lib import __version__

if TYPE_CHECKING:
    from pathlib import Path

    from toolcrib.core.plugins import Plugins
    from toolcrib.core.resources import Resources

# What runs tools of these kinds is found along their chain of executors.
EXECUTED_KINDS = (
    *("script", "subprocess", "http", "docker", "filesystem"),
    *("runtime", "primitive", "library", "sink"),
)


def register(plugins: Plugins) -> None:
    """Add trees of scripts, the system's executors, and the runner that follows chains of executors."""
    for kind in EXECUTED_KINDS:
        plugins.add_runner(kind, "toolcrib.features.scripts.runner:ExecutorRunner", given=_for_runner)
    plugins.add_resource("script_trees", "toolcrib.features.scripts.source:script_trees")
    plugins.add_resource("environments", "toolcrib.features.scripts.source:environments_folder")
    plugins.add_resource("script_format", "toolcrib.features.scripts.format:ScriptFile", given=lambda _: {})
    plugins.add_resource("scripts", "toolcrib.features.scripts.facade:Scripts")
    plugins.add_resource("script_format", "toolcrib.features.scripts.format:ScriptFile", given=lambda _: {})
    plugins.add_source("scripts", _script_sources)
    plugins.add_resource("system_tools", "toolcrib.lib.system_tools:system_tools", given=lambda _: {})
    plugins.add_source("system", _system_source)
    plugins.add_protected_paths(_protected_paths)
    plugins.add_command("sink", "toolcrib.features.scripts.commands:sink", "Stream lines of standard input to a sink.")
    plugins.add_command(
        "prepare", "toolcrib.features.scripts.commands:prepare", "Install what a Python script asks for."
    )
    plugins.add_settings("scripts", "toolcrib.features.scripts.settings:ScriptsSettings")


def _script_sources(resources: Resources) -> list[FileSource]:
    """The trees of scripts; formats of installed packages are asked before our own."""
    formats = resources.formats(in_trees=True)
    return [
        FileSource(
            path,
            bundle,
            [*formats, LazyFormat(partial(resources.make, "script_format", root=path))],
            rank=Rank.SCRIPTS,
            deep=True,
        )
        for bundle, path in resources.get("script_trees").items()
    ]


def _system_source(resources: Resources) -> list[ToolList]:
    return [ToolList(Rank.SYSTEM, resources.get("system_tools"))]


def _for_runner(resources: Resources) -> dict[str, object]:
    settings, trees = resources.settings, resources.get("script_trees")
    return {
        "sandbox": resources.get("sandbox"),
        "workspace_policy": resources.get("workspace_policy"),
        "find": resources.find_below,
        "egress": lambda: resources.get("egress"),
        "jail": lambda: resources.get("jail"),
        "variable": resources.variable,
        "search_path": resources.environment.get("PATH", ""),
        # Where the upward search for installed packages ends.
        "roots": (*(() if settings.root is None else (settings.root,)), *trees.values()),
        "environments": resources.get("environments"),
        "version": __version__,
        "observe": resources.observe,
    }


def _protected_paths(resources: Resources) -> list[Path]:
    """The trees, what is installed for those of the project, and the environments of single tools."""
    root, trees = resources.settings.root, list(resources.get("script_trees").values())
    environments = resources.get("environments")
    paths = [*trees, *([] if environments is None else [environments])]
    if root is None or not any(path.is_relative_to(root) and path.exists() for path in trees):
        return paths
    return [*paths, root / PROJECT_SCRIPTS.partition("/")[0], *(root / name for name in INSTALLED)]
