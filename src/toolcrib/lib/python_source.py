"""A plain `.py` file whose public function is the tool. It is read by its syntax tree; nothing of it runs before it is called.

The file names the tool. Its public function is the one named like the file, else `run`, else the only one. A file runs in
a process of its own and gets JSON, so a hint that JSON has no value for is understood as its JSON and comes with a warning.
"""

from __future__ import annotations

import ast
import re
import warnings
from typing import TYPE_CHECKING

from toolcrib.lib.docstring import read_docstring
from toolcrib.lib.names import is_capability
from toolcrib.lib.python_signature import (
    HintError,
    SyntaxHints,
    literal,
    read_answer,
    read_parameters,
    top_imports,
    writable,
)
from toolcrib.lib.schema import check_schema
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Chained, Origin, Script, Tool

if TYPE_CHECKING:
    from pathlib import Path

    from toolcrib.lib.python_signature import AnyFunction

MAX_BYTES = 256_000
# A smaller file in which every name stands for itself cannot hold a schema past our limits; checking it would take as long as reading it.
SURELY_SMALL = 16_000
ENCODING = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
REQUIRES = "__requires__"
BASE_TOOL_CURE = "name its module in modules.tools of toolcrib.toml, or use `crib run FILE`"


def read_plain_file(path: Path, code: bytes) -> Tool:
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


def parse_python(code: bytes, place: str) -> ast.Module:
    """The syntax tree of a file; raises ToolError with the line that is wrong."""
    if len(code) > MAX_BYTES:
        raise ToolError(Kind.LIMIT_EXCEEDED, f"{place}: larger than {MAX_BYTES:,} bytes; move data out of the code")
    if b"\0" in code:
        raise ToolError(Kind.VALIDATION, f"{place}: holds a NUL byte; write it as text")
    for line in code.split(b"\n", 2)[:2]:
        # Python would read the same bytes as another program than the one that is read here.
        if (found := ENCODING.match(line)) and found[1].lower() not in (b"utf-8", b"utf8"):
            message = f"{place}: declares the encoding {found[1].decode()!r:.40}; save it as UTF-8 and remove that line"
            raise ToolError(Kind.VALIDATION, message)
    try:
        text = code.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ToolError(Kind.VALIDATION, f"{place}: not UTF-8 at byte {error.start}; save it as UTF-8") from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text, place)
    except SyntaxError as error:
        raise ToolError(Kind.VALIDATION, f"{place}:{error.lineno or 1}: {error.msg}; correct the line") from None
    except (RecursionError, MemoryError, ValueError):
        raise ToolError(Kind.VALIDATION, f"{place}: nested too deeply to be read; make it simpler") from None


def refuse_base_tools(module: ast.Module, place: str) -> None:
    """Refuse a class whose schema is a call."""
    for statement in module.body:
        if isinstance(statement, ast.ClassDef) and any(_last_name(base) == "BaseTool" for base in statement.bases):
            message = (
                f"{place}:{statement.lineno}: {statement.name} is a BaseTool, whose schema only running code can tell"
            )
            raise ToolError(Kind.VALIDATION, f"{message}; {BASE_TOOL_CURE}")


def _refuse_declarations(function: AnyFunction, place: str) -> None:
    """Refuse what only running code would obey: a file that asks to be confirmed must not run unasked."""
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and _last_name(decorator.func) == "tool":
            message = f"{place}: what @tool(…) declares is not read in a folder of files"
            raise ToolError(Kind.VALIDATION, f"{message}; {BASE_TOOL_CURE}")


def _last_name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


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
    parameters = read_parameters(function, hints, docstring.arguments)
    output_schema = read_answer(function, hints)
    if len(code) > SURELY_SMALL or hints.unfolded:
        check_schema(parameters, f"{place}: parameters")
        check_schema(output_schema or {}, f"{place}: the answer")
    description = docstring.summary or read_docstring(ast.get_docstring(module, clean=False)).summary
    problems = [f"{place}: {problem}" for problem in hints.warnings]
    if not description:
        description = path.stem.replace("_", " ").replace("-", " ").capitalize()
        problems.append(f"{place}: nothing describes {function.name}; write a docstring")
    script = Script(path=path, code=code, language="python", entry=function.name, imports=top_imports(module))
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
