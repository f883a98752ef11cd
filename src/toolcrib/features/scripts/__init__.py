"""Scripts with metadata in any language, and the executor chains that run them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.core.file_source import FileSource
from toolcrib.core.resources import LazyFormat, code_around
from toolcrib.core.sources import Rank, ToolList
from toolcrib.infra.files import list_files
from toolcrib.infra.settings import PROJECT_SCRIPTS, USER_SCRIPTS, Table, read_words, setting
from toolcrib.lib import __version__

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins
    from toolcrib.core.resources import Resources


class ScriptsSettings(Table, name="scripts"):
    """Where scripts with metadata are found."""

    folders: tuple[str, ...] = setting(
        default=(PROJECT_SCRIPTS, USER_SCRIPTS),
        read=read_words,
        opens=False,
        summary="folders of scripts with metadata, relative to the project; of equal names the one in the earlier folder counts",
    )


# Tools of these kinds are run by their chain of executors.
EXECUTED_KINDS = (
    *("script", "subprocess", "http", "docker", "filesystem"),
    *("runtime", "primitive", "library", "sink"),
)
# Programs and documents in folders of tools; trees of scripts have a format of their own.
PROGRAM_SUFFIXES = (
    *(".sh", ".bash", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts"),
    *(".yaml", ".yml", ".toml", ".json"),
)


def register(plugins: Plugins) -> None:
    """Add trees of scripts, the system's executors, and the runner that follows chains of executors."""
    for kind in EXECUTED_KINDS:
        plugins.add_runner(kind, "toolcrib.features.scripts.runner:ExecutorRunner", given=_for_runner)
    plugins.add_resource("script_trees", _script_trees)
    plugins.add_resource("environments", _environments_folder)
    plugins.add_resource("script_format", "toolcrib.features.scripts.format:ScriptFile", given=lambda _: {})
    plugins.add_resource("origins", "toolcrib.infra.programs.origins:Origins", given=_for_origins)
    plugins.add_resource("scripts", "toolcrib.features.scripts.facade:Scripts")
    plugins.add_format("toolcrib.features.scripts.program_files:ProgramFile", suffixes=PROGRAM_SUFFIXES, in_trees=False)
    plugins.add_source("scripts", _script_sources)
    plugins.add_resource("system_tools", "toolcrib.lib.system_tools:system_tools", given=lambda _: {})
    plugins.add_source("system", _system_source)
    plugins.add_protected_paths(_protected_paths)
    plugins.add_command("sink", "toolcrib.features.scripts.commands:sink", "Stream lines of standard input to a sink.")
    plugins.add_command(
        "prepare", "toolcrib.features.scripts.commands:prepare", "Install what a Python script asks for."
    )
    plugins.add_settings("scripts", ScriptsSettings)


def _script_trees(resources: Resources) -> dict[str, Path]:
    """The trees by the bundle of each, in their order; a Crib without a project has only those it is given."""
    trees: dict[str, Path] = {}
    settings = resources.settings
    if settings.root is None and "scripts.folders" not in settings.places:
        return trees
    for written in settings.table(ScriptsSettings).folders:
        path = _tree(resources, written)
        if path is None or path in trees.values():
            continue
        bundle = "user" if written.startswith("~") else "project" if written == PROJECT_SCRIPTS else path.name
        trees.setdefault(bundle, path)
    return trees


def _environments_folder(resources: Resources) -> Path | None:
    """The folder of environments of single tools, outside our data, which no tool can read.

    None if there is no home, or if it lies in the project: a project must not bring prepared environments along.
    """
    home, root = resources.environment.get("HOME", ""), resources.settings.root
    cache = Path(resources.environment.get("XDG_CACHE_HOME") or Path(home, ".cache"))
    if not cache.is_absolute() or (root is not None and cache.resolve().is_relative_to(root.resolve())):
        return None
    return cache / "toolcrib" / "environments"


def _for_origins(resources: Resources) -> dict[str, object]:
    folders = [*resources.tool_folders(), *resources.get("script_trees").values()]
    return {"find": resources.get("entries_near"), "folders": folders}


def _tree(resources: Resources, written: str) -> Path | None:
    """Where a tree lies; None if it lies in a home and there is none, or if it is a link that leads out of the project."""
    if written == "~" or written.startswith("~/"):
        home = resources.environment.get("HOME")
        return Path(home, written[2:]) if home and Path(home).is_absolute() else None
    root = resources.settings.root
    path = Path(written) if root is None else root / written
    is_link_out = written == PROJECT_SCRIPTS and root is not None and root.resolve() not in path.resolve().parents
    return None if is_link_out else path


def _script_sources(resources: Resources) -> list[FileSource]:
    """The trees of scripts; formats of installed packages are asked before our own."""
    formats = resources.formats(in_trees=True)
    return [
        FileSource(
            path,
            bundle,
            [*formats, LazyFormat(partial(resources.make, "script_format", root=path))],
            rank=Rank.SCRIPTS,
            is_tree=True,
            root=resources.settings.root,
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
        "hidden": resources.get("origins").hidden_from,
        "egress": lambda: resources.get("egress"),
        "jail": lambda: resources.get("jail"),
        "http": lambda: resources.get("http_requests"),
        "variable": resources.variable,
        "variables": resources.granted_names,
        "search_path": resources.environment.get("PATH", ""),
        # Where the upward search for installed packages ends.
        "roots": (*(() if settings.root is None else (settings.root,)), *trees.values()),
        "environments": resources.get("environments"),
        "version": settings["http_tools"].version or __version__,
        "observe": resources.observe,
        "valves": (lambda tool: resources.get("valves").values(tool)) if settings.explicit("ecosystems") else None,
    }


def _protected_paths(resources: Resources) -> list[Path]:
    """The trees, what is installed for programs of the project, and the environments of single tools."""
    root, trees = resources.settings.root, list(resources.get("script_trees").values())
    environments = resources.get("environments")
    paths = [*trees, *([] if environments is None else [environments])]
    if root is None:
        return paths
    trees += [folder for folder in resources.tool_folders() if _has_program(resources, folder)]
    return [*paths, *code_around([path for path in trees if path.is_relative_to(root) and path.exists()], root)]


def _has_program(resources: Resources, folder: Path) -> bool:
    return any(name.endswith(PROGRAM_SUFFIXES) for name in list_files(folder, resources.package_marks).files)
