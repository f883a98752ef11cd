"""Read `.py` files that are programs: one tool, or one for each sub-command.

The parameters are read from the syntax tree: from the declarations of `argparse`, `click` and `typer`, or from the uses of
`sys.argv` and standard input. A file with a function of its own name, or with the list `__tools__`, is not read as a program
but by the format of plain files.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from toolcrib.features.python_files.format import (
    TOOLS,
    PlainFile,
    choose_functions,
    find_assignment,
    may_hold_tool,
    parse_file,
    read_requires,
)
from toolcrib.lib.command_line import COMMAND_LINE
from toolcrib.lib.python_declarations import read_docstring
from toolcrib.lib.python_hints import writable
from toolcrib.lib.python_program import read_python_program
from toolcrib.lib.python_script import read_python_script
from toolcrib.lib.schema import check_parameters
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Chained, Convention, Origin, Script, Tool

if TYPE_CHECKING:
    from pathlib import Path

    from toolcrib.features.python_files.format import ParsedFile
    from toolcrib.lib.command_line import CommandLine


class PythonProgram:
    """Reads Python files that are programs."""

    name = "program"

    def reads(self, path: Path) -> bool:
        """Whether the file may hold a tool."""
        return may_hold_tool(path)

    def read(self, path: Path, code: bytes) -> list[Tool]:
        """The tools of the program; none for a file of functions."""
        file = parse_file(path, code)
        if _is_of_functions(file):
            return []
        line = read_python_program(file.module) or _script(file)
        if line is None:
            return []
        if line.problems:
            problems = [f"{path}:{number}: {text}" for number, text in line.problems]
            raise ToolError(Kind.VALIDATION, "\n".join(problems), details={"problems": problems})
        about = read_docstring(ast.get_docstring(file.module, clean=False)).summary
        actions = line.actions or {"": line}
        return [_program(file, action, part, part.summary or line.summary or about) for action, part in actions.items()]


class ProgramOrPlainFile(PlainFile):
    """Reads any Python file that needs no framework, as a program or as functions; for callers that take a single format."""

    def read(self, path: Path, code: bytes) -> list[Tool]:
        """The tools of the program, else those of the functions."""
        return PythonProgram().read(path, code) or super().read(path, code)


def _is_of_functions(file: ParsedFile) -> bool:
    """Whether the functions of the file are its tools, although it is also a program."""
    named = {file.path.stem.replace("-", "_"), "run"}
    functions = [node for node in file.module.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    takes_something = any(node.name in named and (node.args.args or node.args.kwonlyargs) for node in functions)
    return takes_something or find_assignment(file.module, TOOLS) is not None


def _script(file: ParsedFile) -> CommandLine | None:
    """The command line of a script; None if a function of the file is certainly the tool."""
    try:
        has_main = all(function.name == "main" for function in choose_functions(file))
    except ToolError:
        has_main = True
    return read_python_script(file.module, file.code.decode("utf-8", "replace"), has_main=has_main)


def _program(file: ParsedFile, action: str, line: CommandLine, summary: str) -> Tool:
    path, requires = file.path, read_requires(file)
    joint = "_" if "_" in path.stem or "-" not in path.stem else "-"
    script = Script(path=path, code=file.code, language="python", entry="", convention=Convention.ARGV)
    run = Chained(
        kind=script.kind,
        tool_type="file",
        executor="python_runtime",
        folder=path.parent,
        config={COMMAND_LINE: line.to_config()},
        script=script,
        action=action,
    )
    parameters = line.to_schema()
    check_parameters(parameters, f"{path}: parameters")
    name = f"{path.stem}{joint}{action.replace('-', joint)}" if action else path.stem
    about = [] if summary else [f"{path}:1: nothing describes it; write a docstring at its top"]
    try:
        return Tool(
            name=name,
            description=writable(summary) or path.stem.replace("_", " ").capitalize(),
            parameters=parameters,
            run=run,
            requires=requires or frozenset(),
            source_type="file",
            origin=Origin(place=str(path)),
            warnings=tuple(about),
        )
    except ToolError as error:
        raise error.replace(reason=f"{path}: {error.reason}") from None
