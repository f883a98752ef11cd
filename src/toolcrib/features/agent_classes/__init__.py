"""Tools of existing agent code: `BaseTool`, `ToolRegistry`, and the import paths of the original."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins

CLASSES = "toolcrib.features.agent_classes.classes"


def register(plugins: Plugins) -> None:
    """Add the conversion of instances and classes to Tools, and the import paths that agent code uses."""
    # A module that never imported the classes defines no tool of them.
    plugins.add_converter(
        "agent class", "toolcrib.features.agent_classes.classes:AgentClassConverter", if_imported=CLASSES
    )
    plugins.add_module_context("toolcrib.features.agent_classes.import_paths:document_imports")
