"""Plain Python files and Python programs as tools."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from toolcrib.model.tool import Script

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins
    from toolcrib.core.resources import Resources

# Words that every program contains one of; the format of programs is not loaded for a file without them.
MENTIONS = (b"argparse", b"click", b"typer", b"argv", b"stdin", b"input(", b"\nprint(")


def register(plugins: Plugins) -> None:
    """Add the formats of programs and of plain files, and their runner; folders of scripts have a format of their own."""
    plugins.add_format(
        "toolcrib.features.python_files.program_format:PythonProgram",
        suffixes=(".py",),
        in_trees=False,
        mentions=MENTIONS,
    )
    plugins.add_format("toolcrib.features.python_files.format:PlainFile", suffixes=(".py",), in_trees=False)
    plugins.add_resource(
        "plain_format", "toolcrib.features.python_files.program_format:ProgramOrPlainFile", given=lambda _: {}
    )
    plugins.add_runner(
        Script.kind, "toolcrib.features.python_files.runner:PythonFileRunner", given=_for_runner, runs=Script
    )


def _for_runner(resources: Resources) -> dict[str, object]:
    return {
        "sandbox": resources.get("sandbox"),
        "channel": partial(resources.get, "child_channel"),
        "workspace_policy": resources.get("workspace_policy"),
        "variables": resources.lend_variables(),
        "hidden": resources.get("origins").hidden_from,
        "observe": resources.observe,
    }
