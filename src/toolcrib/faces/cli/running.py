"""`crib run FILE`: the tools of one Python file, which is trusted as code of the host program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.faces.cli.calling import call_tool
from toolcrib.faces.cli.codes import ExitCode, WrongUseError
from toolcrib.faces.cli.listing import say_tools
from toolcrib.faces.cli.opening import LocalCrib, open_crib
from toolcrib.faces.cli.printing import complain
from toolcrib.faces.cli.reading import GRANT, PROJECT, RUN_OPTIONS, read_line, refuse_url

if TYPE_CHECKING:
    from collections.abc import Sequence


def run_command(words: Sequence[str], project: str | None) -> ExitCode:
    """`crib run FILE [NAME key=value …]`."""
    from toolcrib.compat.modules import load_file, tools_in

    refuse_url(words, "crib run")
    line = read_line(words, RUN_OPTIONS)
    if not line.words:
        raise WrongUseError("name a file: crib run FILE [NAME key=value …]")
    file, *call = line.words
    if not Path(file).is_file():
        raise WrongUseError(f"{file} is not a file; name a Python file that holds tools")
    tools, problems = tools_in(load_file(Path(file)))
    for problem in problems:
        complain(problem.message)
    folder = line.last(PROJECT.name) or project

    def opened(grants: frozenset[str]) -> LocalCrib:
        return LocalCrib(open_crib(folder, grants=grants, tools=tools))

    if call:
        return call_tool(line, call, opened)
    with opened(line.all(GRANT.name)) as crib:
        addresses = {tool.address for tool in tools}
        say_tools(facts for facts in crib.list_tools() if facts["address"] in addresses)
    return ExitCode.FAILED if problems else ExitCode.DONE
