"""`crib add`: copy files that are tools into the project, and say what each became."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolcrib.features.project.addition import gather, place, try_out, write
from toolcrib.model.errors import ToolError
from toolcrib.toolkit.cli import CommandError, ExitCode, on_one_line, require_project, say, say_json
from toolcrib.toolkit.cli.group import example, explain_failure, json_option, pass_opener, project_option

if TYPE_CHECKING:
    from toolcrib.features.project.addition import Added, AddingCrib
    from toolcrib.toolkit.cli.group import Opener


@click.command("add", epilog=example("crib add ~/scripts/resize.py"))
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@click.option("--replace", is_flag=True, help="Replace existing files.")
@project_option
@json_option
@pass_opener
def add(opener: Opener[AddingCrib], files: tuple[Path, ...], *, replace: bool, as_json: bool) -> int:
    """Copy a file that is a tool into the project.

    Also copies a tool folder. Prints the tool that each file is, and what is missing before it can be called. Name files that
    belong together, such as definitions in JSON and their functions, in one command. If one of them is not a tool, nothing is
    copied. No file is run.

    Example: crib add ~/downloads/greet.py
    """
    with opener.open_local() as crib:
        require_project(crib.settings)
        try:
            placed = place(crib.settings, [gather(path) for path in files], replace=replace)
            added = try_out(opener, crib, placed)
        except ToolError as problem:
            raise CommandError(problem.kind, f"{problem.message}\nnothing was copied") from problem
        targets = [each.target for each in placed]
        # Many names are longer than the text of an event.
        adding = crib.audit.record("tool.added", ", ".join(targets), facts={"files": targets})
        with adding, explain_failure():
            write(crib.settings, placed)
    if as_json:
        say_json([tool.facts() for tool in added])
        return ExitCode.DONE
    for tool in added:
        say(on_one_line(_sentence(tool)))
        for warning in tool.warnings:
            say(f"  warning: {on_one_line(warning)}")
    return ExitCode.DONE


def _sentence(tool: Added) -> str:
    """What a file became, in one sentence, followed by what is missing."""
    takes = ", ".join(tool.parameters) if tool.parameters else "no arguments"
    became = f"{tool.file} is the tool {tool.name} ({tool.kind}), which takes {takes}"
    return f"{became}; it needs {'; and '.join(tool.missing)}" if tool.missing else f"{became}; nothing is missing"
