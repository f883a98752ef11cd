"""Which tools a Crib has: those of the host program, of modules, of folders, of plug-ins, and our own."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from toolcrib.core.file_source import Folder, Packages
from toolcrib.lib.schema.check import check_parameters, check_schema
from toolcrib.model.errors import Kind, SettingsError, ToolError
from toolcrib.model.tool import Function, Tool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from toolcrib.core.catalog import Catalog
    from toolcrib.core.resources import Parts
    from toolcrib.features.agent_classes.classes import BaseTool
    from toolcrib.features.scripts.format import ScriptFile

    AnyTool = Callable[..., object] | BaseTool | Tool

BUILTIN_BUNDLE = "builtin"
SYSTEM_BUNDLE = "system"


def fill_catalog(catalog: Catalog, tools: Iterable[AnyTool], parts: Parts) -> None:
    """Name every source of tools, the one that is meant first of equal names first."""
    if callable(tools):
        raise SettingsError("tools is a list: write Crib(tools=[…])")
    for tool in tools:
        catalog.add(as_tool(tool))
    for name in parts.settings.modules:
        _add_module(catalog, name, parts)
    _add_folders(catalog, parts)
    _add_scripts(catalog, parts)
    _add_tools(catalog, parts.plugins.tools, parts)
    if parts.settings.builtins:
        catalog.add_later(BUILTIN_BUNDLE, parts.builtins)
    catalog.add_later(SYSTEM_BUNDLE, _system_tools)


def as_tool(tool: AnyTool) -> Tool:
    """A Tool as it is, the Tool of a function, or that of an agent-side tool."""
    if isinstance(tool, Tool):
        check_parameters(tool.parameters, f"{tool.name}: parameters")
        if tool.output_schema is not None:
            check_schema(tool.output_schema, f"{tool.name}: output schema")
        return tool
    if callable(tool):
        from toolcrib.features.functions.decorators import tool_of

        return tool_of(tool)
    from toolcrib.features.agent_classes.classes import tool_from

    return tool_from(tool)


def _add_folders(catalog: Catalog, parts: Parts) -> None:
    settings = parts.settings
    if settings.root is None:
        return
    for folder in settings.tools:
        path = settings.root / folder
        catalog.add_folder(Folder(path, path.name, parts.plugins.dialects))
        catalog.add_folder(Packages(path, path.name, [_BuiltPackages()], "tool.json"))
        if "tools" in settings.places and not path.is_dir():
            message = f"{path} is not a folder; make it, or change {settings.where('tools')}"
            parts.plugins.problems.append(ToolError(Kind.NOT_FOUND, message))


class _BuiltPackages:
    """Reads what was built and published; who does that is only loaded where there is something to read."""

    name = "built"

    def reads(self, path: Path) -> bool:
        """Whether it may describe a package: nothing else is listed for this dialect."""
        return path.suffix == ".json"

    def read(self, path: Path, code: bytes) -> list[Tool]:
        """The one tool of the package; none if the file is somebody else's."""
        from toolcrib.features.requests.format import read_package

        return read_package(path, code)


class _Scripts:
    """Reads scripts with metadata; the format is only loaded where there is a file to read."""

    name = "script"

    def __init__(self, root: Path) -> None:
        self._root = root

    def reads(self, path: Path) -> bool:
        """Whether the file may hold a tool."""
        return self._format.reads(path)

    def read(self, path: Path, code: bytes) -> list[Tool]:
        """The tools of the file."""
        return self._format.read(path, code)

    @cached_property
    def _format(self) -> ScriptFile:
        from toolcrib.features.scripts.format import ScriptFile

        return ScriptFile(self._root)


def _add_scripts(catalog: Catalog, parts: Parts) -> None:
    plugged_in = parts.plugins.dialects[1:]
    for bundle, path in parts.script_trees().items():
        catalog.add_folder(Folder(path, bundle, [*plugged_in, _Scripts(path)], deep=True))


def _system_tools() -> list[Tool]:
    from toolcrib.lib.system_tools import system_tools

    return system_tools()


def _add_module(catalog: Catalog, name: str, parts: Parts) -> None:
    """Register what a module of the host program holds; what cannot be loaded is reported and the rest goes on."""
    from toolcrib.core.host_modules import functions_in, load_module, rules_in, tools_in

    settings, problems = parts.settings, parts.plugins.problems
    try:
        module = load_module(name, settings.root)
        tools, found = tools_in(module)
    except ToolError as problem:
        problems.append(problem)
        return
    problems += found
    parts.functions |= functions_in(module)
    if rules_in(module) and name not in settings.rule_modules:
        message = f"module {name!r} holds rules that nobody obeys; name it in rule_modules too"
        problems.append(ToolError(Kind.VALIDATION, message))
    _add_tools(catalog, [tool for tool in tools if not _is_listed_elsewhere(tool, name, settings.modules)], parts)


def _is_listed_elsewhere(tool: Tool, name: str, modules: tuple[str, ...]) -> bool:
    """Whether another of the modules defines the function, so that this one only imports it."""
    home = getattr(tool.run.call, "__module__", name) if isinstance(tool.run, Function) else name
    return home != name and home in modules


def _add_tools(catalog: Catalog, tools: Iterable[Tool], parts: Parts) -> None:
    for tool in tools:
        try:
            catalog.add(tool)
        except ToolError as problem:
            parts.plugins.problems.append(problem)
