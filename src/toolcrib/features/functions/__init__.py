"""Functions of the host program as tools: `@tool`, schemas from type hints, and their runner."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins


def register(plugins: Plugins) -> None:
    """Add the runner of functions, their conversion to Tools, and the modules of the host program that define them."""
    plugins.add_runner(
        "function",
        "toolcrib.features.functions.runner:FunctionRunner",
        given=lambda resources: {"functions": resources.functions},
    )
    plugins.add_resource("host_modules", "toolcrib.features.functions.host_modules:HostModules")
    plugins.add_converter("function", "toolcrib.features.functions.definition:FunctionConverter")
