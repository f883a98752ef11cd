"""Resources and prompts that a project or a package publishes beside its tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins


def register(plugins: Plugins) -> None:
    """Add the resources and prompts of a Crib."""
    plugins.add_resource("publications", "toolcrib.features.publications.definitions:Publications")
