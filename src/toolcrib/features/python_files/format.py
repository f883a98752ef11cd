"""Read plain `.py` files whose public function is the tool: by their syntax tree; nothing of a file runs before it is called.

The file names the tool. Its public function is the one named like the file, else `run`, else the only one.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from toolcrib.lib.docstring import read_docstring
from toolcrib.lib.names import is_capability
from toolcrib.lib.python_classes import literal
from toolcrib.lib.python_hints import HintError, SyntaxHints
from toolcrib.lib.python_signature import (
    BASE_TOOL_CURE,
    last_name,
    parse_python,
    read_answer,
    read_parameters,
    refuse_base_tools,
    top_imports,
    writable,
)
from toolcrib.lib.schema import check_schema
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Chained, Origin, Script, Tool

if TYPE_CHECKING:
    from pathlib import Path

    from toolcrib.lib.python_signature import AnyFunction

OTHER_FILES = frozenset({"conftest", "setup"})
# A smaller file in which every name stands for itself cannot hold a schema past our limits; checking it would take as long as reading it.
SURELY_SMALL = 16_000
REQUIRES = "__requires__"


class PlainFile:
    """Reads plain Python files."""

    name = "plain"

    def reads(self, path: Path) -> bool:
        """Whether the file may hold a tool: hidden files, tests and set-up files do not."""
        stem = path.stem
        return (
            path.suffix == ".py" and stem[:1] not in "_." and not stem.startswith("test_") and stem not in OTHER_FILES
        )

    def read(self, path: Path, code: bytes) -> list[Tool]:
        """The one tool of the file."""
        return [_read(path, code)]


def _read(path: Path, code: bytes) -> Tool:
    """The one tool of the file."""
    place = str(path)
    module = parse_python(code, place)
    refuse_base_tools(module, place)
    function = _public_function(module, path)
    place = f"{place}:{function.lineno}"
    _refuse_declarations(function, place)
    try:
        return _tool(path, code, module, function, place)
    except HintError as error:
        raise ToolError(Kind.VALIDATION, f"{place}: {error}") from None
    except RecursionError:
        raise ToolError(Kind.VALIDATION, f"{place}: nested too deeply; make it simpler") from None


def _refuse_declarations(function: AnyFunction, place: str) -> None:
    """Refuse what only running code would obey: a file that asks to be confirmed must not run unasked."""
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and last_name(decorator.func) == "tool":
            message = f"{place}: what @tool(…) declares is not read in a folder of files"
            raise ToolError(Kind.VALIDATION, f"{message}; {BASE_TOOL_CURE}")


def _public_function(module: ast.Module, path: Path) -> AnyFunction:
    public = {
        statement.name: statement
        for statement in module.body
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and not statement.name.startswith("_")
    }
    wanted = path.stem.replace("-", "_")
    if len(public) == 1:
        return next(iter(public.values()))
    if found := public.get(wanted) or public.get("run"):
        return found
    if not public:
        message = f"{path}: no public function; write `def {wanted}(…):`, or begin the file's name with '_'"
        raise ToolError(Kind.VALIDATION, message)
    names = ", ".join(list(public)[:20])
    message = (
        f"{path}: which function is the tool? found {names}; name one `{wanted}` or `run`, or begin the others with '_'"
    )
    raise ToolError(Kind.VALIDATION, message)


def _requires(module: ast.Module, path: Path) -> frozenset[str] | None:
    """The capabilities that the file lists under `__requires__`; None if it does not."""
    for statement in module.body:
        if not isinstance(statement, ast.Assign) or not any(map(_is_requires, statement.targets)):
            continue
        words = literal(statement.value)
        if isinstance(words, list | tuple) and all(isinstance(word, str) and is_capability(word) for word in words):
            return frozenset(words)
        message = f'{path}:{statement.lineno}: {REQUIRES}: write a list of dotted names, such as ["fs.read"]'
        raise ToolError(Kind.VALIDATION, message)
    return None


def _is_requires(target: ast.expr) -> bool:
    return isinstance(target, ast.Name) and target.id == REQUIRES


def _executed(script: Script) -> Chained:
    """A file with capabilities takes the way that can give them: through the runtime of its language."""
    return Chained(
        kind=script.kind, tool_type="file", executor="python_runtime", folder=script.path.parent, script=script
    )


def _tool(path: Path, code: bytes, module: ast.Module, function: AnyFunction, place: str) -> Tool:
    hints = SyntaxHints(module)
    docstring = read_docstring(ast.get_docstring(function, clean=False))
    parameters = read_parameters(function, hints, docstring)
    output_schema = read_answer(function, hints)
    if len(code) > SURELY_SMALL or hints.unfolded:
        check_schema(parameters, f"{place}: parameters")
        check_schema(output_schema or {}, f"{place}: the answer")
    description = docstring.summary or read_docstring(ast.get_docstring(module, clean=False)).summary
    problems = [f"{place}: {problem}" for problem in hints.warnings]
    if not description:
        description = path.stem.replace("_", " ").replace("-", " ").capitalize()
        problems.append(f"{place}: nothing describes {function.name}; write a docstring")
    # What converts arguments needs typing; a warm process has it ready.
    imports = tuple(dict.fromkeys((*top_imports(module), *(("typing",) if hints.converts else ()))))
    script = Script(path=path, code=code, language="python", entry=function.name, imports=imports)
    requires = _requires(module, path)
    try:
        return Tool(
            name=path.stem,
            description=writable(description),
            documentation=writable(docstring.description),
            parameters=parameters,
            output_schema=output_schema,
            run=script if requires is None else _executed(script),
            requires=requires or frozenset(),
            source_type="file",
            origin=Origin(place=str(path), line=function.lineno),
            warnings=tuple(problems),
        )
    except ToolError as error:
        raise ToolError(error.kind, f"{path}: {error.message}") from None
