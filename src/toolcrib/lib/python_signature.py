"""Parse Python source, and read signatures from its syntax tree: the parameters as a schema, and the schema of the answer."""

from __future__ import annotations

import ast
import re
import warnings
from typing import TYPE_CHECKING

from toolcrib.lib.python_classes import literal
from toolcrib.lib.python_hints import HintError
from toolcrib.lib.schema_structure import object_schema
from toolcrib.lib.type_schemas import array_schema, described, read_docstring_type
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolcrib.lib.docstring import Docstring
    from toolcrib.lib.python_hints import Schema, SyntaxHints

AnyFunction = ast.FunctionDef | ast.AsyncFunctionDef

MAX_BYTES = 256_000
ENCODING = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
BASE_TOOL_CURE = "name its module in modules.tools of toolcrib.toml, or use `crib run FILE`"
MAX_IMPORTS = 100
# What a parameter without a hint takes, by its default: an integer may stand for any number.
OF_DEFAULTS: dict[type, Schema] = {
    bool: {"type": "boolean"},
    int: {"type": "number"},
    float: {"type": "number"},
    str: {"type": "string"},
    list: {"type": "array"},
    dict: {"type": "object"},
}


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
        if isinstance(statement, ast.ClassDef) and any(last_name(base) == "BaseTool" for base in statement.bases):
            message = (
                f"{place}:{statement.lineno}: {statement.name} is a BaseTool, whose schema only running code can tell"
            )
            raise ToolError(Kind.VALIDATION, f"{message}; {BASE_TOOL_CURE}")


def last_name(node: ast.expr) -> str:
    """The name that an expression ends in, such as `tool` of `toolcrib.tool`; empty if it is no name."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def read_parameters(
    function: AnyFunction, hints: SyntaxHints, docstring: Docstring, *, skip: frozenset[str] = frozenset()
) -> Schema:
    """The arguments of a function as the schema of an object; parameters to skip are given by someone else.

    `*items` is the list `items`, and `**others` leaves the schema open.
    """
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    defaults += arguments.defaults
    properties: Schema = {}
    required = []
    for argument, default in zip(positional + arguments.kwonlyargs, defaults + arguments.kw_defaults, strict=True):
        if argument.arg in skip:
            continue
        properties[argument.arg] = _property(argument, default, hints, docstring)
        if default is None:
            required.append(argument.arg)
    if arguments.vararg is not None:
        items = array_schema(_hint(arguments.vararg, hints))
        properties[arguments.vararg.arg] = described(items, _text(arguments.vararg, docstring))
    schema = object_schema(properties, required)
    if arguments.kwarg is not None:
        _open(schema, arguments.kwarg, hints)
    return {**schema, "$defs": hints.definitions} if hints.definitions else schema


def read_answer(function: AnyFunction, hints: SyntaxHints) -> Schema | None:
    """The schema of the answer; None if the hint is missing, or only the running file knows it."""
    if function.returns is None:
        return None
    known, definitions, converts = len(hints.warnings), hints.definitions, hints.converts
    hints.of_results, hints.definitions = True, {}
    try:
        schema = hints.read(function.returns)
        understood = len(hints.warnings) == known
        if schema and hints.definitions:
            schema = {**schema, "$defs": hints.definitions}
    except HintError:
        return None
    finally:
        del hints.warnings[known:]
        hints.of_results, hints.definitions, hints.converts = False, definitions, converts
    return (schema or None) if understood else None


def writable(text: str) -> str:
    """Text that every JSON library can write: a lone surrogate is no character."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _property(argument: ast.arg, default: ast.expr | None, hints: SyntaxHints, docstring: Docstring) -> Schema:
    schema = _hint(argument, hints) if argument.annotation else _guess(argument, default, hints, docstring)
    schema = described(schema, _text(argument, docstring))
    return schema if default is None else hints.with_default(schema, default)


def _text(argument: ast.arg, docstring: Docstring) -> str:
    return writable(docstring.arguments.get(argument.arg, ""))


def _guess(argument: ast.arg, default: ast.expr | None, hints: SyntaxHints, docstring: Docstring) -> Schema:
    """What a parameter without a hint takes: what the docstring says, else what its default is."""
    if (said := docstring.types.get(argument.arg)) and (schema := read_docstring_type(said)) is not None:
        return schema
    value = None if default is None else literal(default)
    if (schema := OF_DEFAULTS.get(type(value))) is not None:
        return schema
    return _hint(argument, hints)


def _open(schema: Schema, argument: ast.arg, hints: SyntaxHints) -> None:
    """Let in what no parameter names; `**others: Unpack[…]` names them."""
    named = None if argument.annotation is None else hints.read_typed_dict(argument.annotation)
    if named is None:
        schema["additionalProperties"] = (_hint(argument, hints) if argument.annotation else {}) or True
        return
    schema["properties"] = {**_mapping(schema), **_mapping(named)}
    schema["required"] = [*_names(schema), *_names(named)]


def _mapping(schema: Schema) -> Schema:
    properties = schema["properties"]
    return properties if isinstance(properties, dict) else {}


def _names(schema: Schema) -> list[object]:
    required = schema["required"]
    return required if isinstance(required, list) else []


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


def top_imports(module: ast.Module) -> tuple[str, ...]:
    """The modules that the first level of a file imports by their full name."""
    found = dict.fromkeys(name for statement in module.body for name in _imported(statement))
    return tuple(found)[:MAX_IMPORTS]


def _imported(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.Import):
        yield from (alias.name for alias in statement.names)
    elif isinstance(statement, ast.ImportFrom) and statement.level == 0 and statement.module != "__future__":
        yield statement.module or ""
