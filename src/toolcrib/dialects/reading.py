"""A plain `.py` file whose public function is the tool. It is read by its syntax tree; nothing of it runs before it is called.

The file names the tool. Its public function is the one named like the file, else `run`, else the only one. A file runs in
a process of its own and gets JSON, so a hint that JSON has no value for is understood as its JSON and comes with a warning.
"""

from __future__ import annotations

import ast
import re
import warnings
from typing import TYPE_CHECKING

from toolcrib.dialects.syntax import HintError, SyntaxHints, literal
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Origin, Script, Tool
from toolcrib.pure.docstring import read_docstring
from toolcrib.pure.schema import check_schema, is_json, object_schema, with_default

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    AnyFunction = ast.FunctionDef | ast.AsyncFunctionDef
    Schema = dict[str, object]

MAX_BYTES = 256_000
# A smaller file in which every name stands for itself cannot hold a schema past our limits; checking it would take as long as reading it.
SURELY_SMALL = 16_000
ENCODING = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
BASE_TOOL_CURE = "name its module in `modules` of toolcrib.toml, or use `crib run FILE`"


def read_plain_file(path: Path, code: bytes) -> Tool:
    """The one tool of the file."""
    place = str(path)
    module = _parse(code, place)
    _refuse_base_tools(module, place)
    function = _public_function(module, path)
    place = f"{place}:{function.lineno}"
    _refuse_declarations(function, place)
    try:
        return _tool(path, code, module, function, place)
    except HintError as error:
        raise ToolError(Kind.VALIDATION, f"{place}: {error}") from None
    except RecursionError:
        raise ToolError(Kind.VALIDATION, f"{place}: nested too deeply; make it simpler") from None


def _parse(code: bytes, place: str) -> ast.Module:
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


def _refuse_base_tools(module: ast.Module, place: str) -> None:
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


def _tool(path: Path, code: bytes, module: ast.Module, function: AnyFunction, place: str) -> Tool:
    hints = SyntaxHints(module)
    docstring = read_docstring(ast.get_docstring(function, clean=False))
    parameters = _parameters(function, hints, docstring.arguments)
    output_schema = _output_schema(function, hints)
    if len(code) > SURELY_SMALL or hints.unfolded:
        check_schema(parameters, f"{place}: parameters")
        check_schema(output_schema or {}, f"{place}: the answer")
    description = docstring.summary or read_docstring(ast.get_docstring(module, clean=False)).summary
    problems = [f"{place}: {problem}" for problem in hints.warnings]
    if not description:
        description = path.stem.replace("_", " ").replace("-", " ").capitalize()
        problems.append(f"{place}: nothing describes {function.name}; write a docstring")
    try:
        return Tool(
            name=path.stem,
            description=_writable(description),
            documentation=_writable(docstring.description),
            parameters=parameters,
            output_schema=output_schema,
            run=Script(path=path, code=code, language="python", entry=function.name),
            source_type="file",
            origin=Origin(place=str(path), line=function.lineno),
            warnings=tuple(problems),
        )
    except ToolError as error:
        raise ToolError(error.kind, f"{path}: {error.message}") from None


def _parameters(function: AnyFunction, hints: SyntaxHints, texts: Mapping[str, str]) -> Schema:
    arguments = function.args
    if arguments.vararg is not None:
        name = arguments.vararg.arg
        message = f"*{name} cannot be given by name; write {name}: list instead"
        raise HintError(message)
    if arguments.posonlyargs:
        message = f"{arguments.posonlyargs[0].arg} cannot be given by name; remove the '/'"
        raise HintError(message)
    defaults: list[ast.expr | None] = [None] * (len(arguments.args) - len(arguments.defaults))
    defaults += arguments.defaults
    properties: Schema = {}
    required = []
    for argument, default in zip(arguments.args + arguments.kwonlyargs, defaults + arguments.kw_defaults, strict=True):
        properties[argument.arg] = _property(argument, default, hints, texts.get(argument.arg, ""))
        if default is None:
            required.append(argument.arg)
    schema = object_schema(properties, required)
    if arguments.kwarg is not None:
        schema["additionalProperties"] = _hint(arguments.kwarg, hints) or True
    return schema


def _property(argument: ast.arg, default: ast.expr | None, hints: SyntaxHints, text: str) -> Schema:
    schema = _hint(argument, hints)
    value = NotImplemented if default is None else literal(default)
    if is_json(value):
        schema = with_default(schema, value)
    return {"description": _writable(text), **schema} if text else schema


def _hint(argument: ast.arg, hints: SyntaxHints) -> Schema:
    known = len(hints.warnings)
    if argument.annotation is None:
        hints.warnings.append("has no type hint, so any value is accepted; add one")
    try:
        return hints.read(argument.annotation) if argument.annotation else {}
    except HintError as error:
        message = f"parameter {argument.arg}: {error}"
        raise HintError(message) from None
    finally:
        hints.warnings[known:] = [f"parameter {argument.arg}: {problem}" for problem in hints.warnings[known:]]


def _output_schema(function: AnyFunction, hints: SyntaxHints) -> Schema | None:
    """The schema of the answer; None if the hint is missing or not plain JSON."""
    if function.returns is None:
        return None
    known = len(hints.warnings)
    try:
        schema = hints.read(function.returns)
    except HintError:
        return None
    understood = len(hints.warnings) == known
    del hints.warnings[known:]
    return (schema or None) if understood else None


def _writable(text: str) -> str:
    """Text that every JSON library can write: a lone surrogate is no character."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
