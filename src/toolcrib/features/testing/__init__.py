"""Examples as tests, recorded cases, and the pytest plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins


def register(plugins: Plugins) -> None:
    """Add the record of failing examples, `crib test`, and the endpoint that records cases."""
    plugins.add_resource(
        "examples",
        "toolcrib.features.testing.examples:Examples",
        given=lambda resources: {"file": resources.data.file("examples.json")},
    )
    plugins.add_endpoints("toolcrib.features.testing.endpoints:endpoints")
    plugins.add_screen("cases")
    plugins.add_command(
        "test", "toolcrib.features.testing.commands:test", "Run the examples of tools, and their recorded cases."
    )
