"""Files of other agent frameworks as tools, unchanged, and read without being run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins

# A file without any of these words belongs to no other framework; the format is not loaded for it.
MENTIONS = (
    *(
        b"langchain",
        b"crewai",
        b"smolagents",
        b"pydantic_ai",
        b"function_tool",
        b"FunctionTool",
        b"mcp",
        b"class Tools",
    ),
    *(b'"parameters"', b"'parameters'", b"input_schema", b"function_declarations", b"functionDeclarations"),
)


def register(plugins: Plugins) -> None:
    """Add the format of such files, which comes before that of plain files, and the values of their valves."""
    plugins.add_format(
        "toolcrib.features.ecosystems.format:FrameworkFile",
        suffixes=(".py", ".json"),
        in_trees=False,
        mentions=MENTIONS,
    )
    plugins.add_settings("ecosystems", "toolcrib.features.ecosystems.settings:EcosystemsSettings")
    plugins.add_resource("valves", "toolcrib.features.ecosystems.valves:Valves")
