"""Fill the catalog of a Crib with its sources of tools, in the order of equal names."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from toolcrib.core.catalog import Rank
from toolcrib.core.file_source import DocumentSource, Folder, Packages
from toolcrib.core.settings import ModulesSettings
from toolcrib.lib.schema import check_parameters, check_schema
from toolcrib.model.errors import Kind, SettingsError, ToolError
from toolcrib.model.tool import Tool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from toolcrib.core.catalog import Catalog
    from toolcrib.core.plugins import Plugins
    from toolcrib.core.resources import Resources


def fill_catalog(catalog: Catalog, tools: Iterable[object], resources: Resources) -> None:
    """Add every source of tools, the one that is meant first of equal names first."""
    if callable(tools):
        raise SettingsError("tools is a list: write Crib(tools=[…])")
    for tool in tools:
        catalog.add(as_tool(tool, resources.plugins))
    if resources.settings.table(ModulesSettings).tools:
        _add_tools(catalog, resources.get("host_modules").tools(), resources.plugins)
    sources: list[tuple[int, Callable[[], Iterable[Any]]]] = [
        (part.options["rank"], partial(part.make, resources)) for part in resources.plugins.parts("sources")
    ]
    sources.append((Rank.TOOL_FOLDERS, lambda: _tool_folders(resources)))
    sources.append((Rank.DOCUMENTS, lambda: _document_sources(resources)))
    sources.append((Rank.PACKAGES, lambda: [part.load() for part in resources.plugins.parts("tools")]))
    for _, make in sorted(sources, key=lambda source: source[0]):
        for source in make():
            if isinstance(source, Tool):
                _add_tools(catalog, [source], resources.plugins)
            else:
                catalog.add_source(source)


def as_tool(value: object, plugins: Plugins) -> Tool:
    """A Tool as it is, or the Tool that a converter makes of the value."""
    if isinstance(value, Tool):
        check_parameters(value.parameters, f"{value.name}: parameters")
        if value.output_schema is not None:
            check_schema(value.output_schema, f"{value.name}: output schema")
        return value
    for converter in plugins.converters():
        if converter.converts(value):
            return converter.convert(value)
    raise ToolError(
        Kind.VALIDATION, f"{value!r:.80} is no tool; hand over a function, a Tool, or an instance of BaseTool"
    )


def _tool_folders(resources: Resources) -> list[Folder]:
    """The folders of the settings: single files, and folders that hold a description."""
    settings = resources.settings
    found: list[Folder] = []
    for path in resources.tool_folders():
        found.append(Folder(path, path.name, resources.formats()))
        found += [Packages(path, path.name, [reader], name) for name, reader in resources.folder_formats()]
        if "catalog.folders" in settings.places and not path.is_dir():
            message = f"{path} is not a folder; make it, or change {settings.where('catalog.folders')}"
            resources.plugins.problems.append(ToolError(Kind.NOT_FOUND, message))
    return found


def _document_sources(resources: Resources) -> list[DocumentSource]:
    """The spaces of the store that a package has a format for."""
    data = resources.data
    return [DocumentSource(lambda: data.store, space, reader) for space, reader in resources.document_formats()]


def _add_tools(catalog: Catalog, tools: Iterable[Tool], plugins: Plugins) -> None:
    for tool in tools:
        try:
            catalog.add(tool)
        except ToolError as problem:
            plugins.problems.append(problem)
