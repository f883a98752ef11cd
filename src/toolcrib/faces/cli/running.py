"""`crib run FILE`: the tools of one Python file, which is trusted as code of the host program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.faces.cli.calling import call_tool
from toolcrib.faces.cli.codes import ExitCode, WrongUseError
from toolcrib.faces.cli.listing import say_tools
from toolcrib.faces.cli.opening import open_crib
from toolcrib.faces.cli.printing import complain
from toolcrib.faces.cli.reading import CALL_OPTIONS, GRANT, PROJECT, read_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolcrib.crib import Crib


def run_command(words: Sequence[str], project: str | None) -> ExitCode:
    """`crib run FILE [NAME key=value …]`."""
    from toolcrib.compat.modules import load_file, tools_in

    line = read_line(words, CALL_OPTIONS)
    if not line.words:
        raise WrongUseError("name a file: crib run FILE [NAME key=value …]")
    file, *call = line.words
    if not Path(file).is_file():
        raise WrongUseError(f"{file} is not a file; name a Python file that holds tools")
    tools, problems = tools_in(load_file(Path(file)))
    for problem in problems:
        complain(problem.message)
    folder = line.last(PROJECT.name) or project

    def opened(grants: frozenset[str]) -> Crib:
        return open_crib(folder, grants=grants, tools=tools)

    if call:
        return call_tool(line, call, opened)
    with opened(line.all(GRANT.name)) as crib:
        addresses = {tool.address for tool in tools}
        say_tools(crib, [entry for entry in crib.entries if entry.tool.address in addresses])
    return ExitCode.FAILED if problems else ExitCode.DONE
