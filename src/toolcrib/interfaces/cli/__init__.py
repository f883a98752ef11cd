"""The command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.core.plugins import Plugins


def register(plugins: Plugins) -> None:
    """Add the commands that find, call and check tools, and those around a project."""
    plugins.add_command("list", "toolcrib.interfaces.cli.commands:list_", "List the tools.")
    plugins.add_command("show", "toolcrib.interfaces.cli.commands:show", "Show everything about a tool.")
    plugins.add_command("call", "toolcrib.interfaces.cli.commands:call", "Call a tool.")
    plugins.add_command("explain", "toolcrib.interfaces.cli.commands:explain", "Explain why a call would run or not.")
    plugins.add_command("run", "toolcrib.interfaces.cli.commands:run_file", "List or call the tools of a Python file.")
    plugins.add_command("result", "toolcrib.interfaces.cli.commands:result", "Print the rest of a large result.")
    plugins.add_command("version", "toolcrib.interfaces.cli.commands:version", "Print the version.")
    plugins.add_command(
        "completion", "toolcrib.interfaces.cli.program:completion", "Print the completion script of a shell."
    )
    plugins.add_command(
        "init", "toolcrib.interfaces.cli.project_commands:init", "Write a project with a first tool and its test."
    )
    plugins.add_command(
        "check", "toolcrib.interfaces.cli.project_commands:check", "Report what is wrong with the tools."
    )
    plugins.add_command(
        "doctor", "toolcrib.interfaces.cli.project_commands:doctor", "Show versions, settings, sandbox and problems."
    )
    plugins.add_command(
        "costs", "toolcrib.interfaces.cli.project_commands:costs", "Sum up what the calls of this project cost."
    )
    plugins.add_command(
        "latency", "toolcrib.interfaces.cli.project_commands:latency", "Show how long the calls of this project took."
    )
