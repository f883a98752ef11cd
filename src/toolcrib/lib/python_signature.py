"""Parse Python source, and read signatures and hints from its syntax tree: by their names, never evaluated."""

from __future__ import annotations

import ast
import re
import warnings
from typing import TYPE_CHECKING

from toolcrib.lib.schema import with_default
from toolcrib.lib.schema_structure import any_of, is_json, object_schema
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

AnyFunction = ast.FunctionDef | ast.AsyncFunctionDef
Schema = dict[str, object]

MAX_BYTES = 256_000
ENCODING = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
BASE_TOOL_CURE = "name its module in modules.tools of toolcrib.toml, or use `crib run FILE`"
MAX_HINTS = 2_000
MAX_DEPTH = 24
MAX_QUOTED = 1_000
MAX_IMPORTS = 100
HOMES = ("typing.", "typing_extensions.", "collections.abc.", "collections.", "enum.", "dataclasses.")
ARRAYS = frozenset({"Collection", "Iterable", "List", "MutableSequence", "Sequence", "Tuple", "list", "tuple"})
SETS = frozenset({"AbstractSet", "FrozenSet", "MutableSet", "Set", "frozenset", "set"})
OBJECTS = frozenset({"Dict", "Mapping", "MutableMapping", "OrderedDict", "dict"})
WRAPPERS = frozenset({"Final", "NotRequired", "ReadOnly", "Required"})
PLAIN: dict[str, Schema] = {
    **{name: {"type": "string"} for name in ("str", "Text", "LiteralString")},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "None": {"type": "null"},
    **{name: {} for name in ("Any", "object")},
    **{name: {"type": "array"} for name in ARRAYS},
    **{name: {"type": "array", "uniqueItems": True} for name in SETS},
    **{name: {"type": "object"} for name in OBJECTS},
}
# Python has a class for these and JSON has not: the function gets text.
TEXTS: dict[str, Schema] = {
    "datetime.date": {"type": "string", "format": "date"},
    "datetime.datetime": {"type": "string", "format": "date-time"},
    "decimal.Decimal": {"type": "string"},
    "pathlib.Path": {"type": "string"},
    "uuid.UUID": {"type": "string", "format": "uuid"},
}
CONTEXTS = frozenset({"toolcrib.Context", "toolcrib.model.call.Context"})


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


class HintError(Exception):
    """A hint that cannot be let in."""


class SyntaxHints:
    """Reads the hints of one file. What is not understood accepts any value, and `warnings` says so.

    `unfolded` tells that a name stood for more than itself, so that the schemas may be larger than the file.
    """

    def __init__(self, module: ast.Module) -> None:
        self.warnings: list[str] = []
        self.unfolded = False
        self._names: dict[str, str] = {}
        self._classes: dict[str, ast.ClassDef] = {}
        self._aliases: dict[str, ast.expr] = {}
        self._opened: list[str] = []
        self._count = 0
        self._depth = 0
        for statement in module.body:
            self._note(statement)

    def read(self, node: ast.expr) -> Schema:
        """The schema of a hint."""
        self._count += 1
        self._depth += 1
        try:
            if self._count > MAX_HINTS or self._depth > MAX_DEPTH:
                message = "unfolds to too many types; make it smaller"
                raise HintError(message)
            return self._read(node)
        finally:
            self._depth -= 1

    def name(self, node: ast.expr) -> str:
        """What a name means: `Optional` for `t.Optional` after `import typing as t`; empty if it is no name."""
        name = self._full_name(node)
        home = next((home for home in HOMES if name.startswith(home)), "")
        return name.removeprefix(home)

    def _full_name(self, node: ast.expr) -> str:
        if isinstance(node, ast.Name):
            return self._names.get(node.id, node.id)
        holder = self._full_name(node.value) if isinstance(node, ast.Attribute) else ""
        return f"{holder}.{node.attr}" if isinstance(node, ast.Attribute) and holder else ""

    def _read(self, node: ast.expr) -> Schema:
        if isinstance(node, ast.Constant):
            return self._constant(node.value)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return any_of([self.read(member) for member in _members(node)])
        if isinstance(node, ast.Subscript):
            return self._subscript(self.name(node.value), node.slice, node)
        return self._named(self.name(node), node)

    def _note(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                package = alias.name.partition(".")[0]
                self._names[alias.asname or package] = alias.name if alias.asname else package
        elif isinstance(statement, ast.ImportFrom) and statement.level == 0:
            for alias in statement.names:
                self._names[alias.asname or alias.name] = f"{statement.module}.{alias.name}"
        elif isinstance(statement, ast.ClassDef):
            self._classes[statement.name] = statement
        elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            if isinstance(target := statement.targets[0], ast.Name):
                self._aliases[target.id] = statement.value
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value:
            self._aliases[statement.target.id] = statement.value

    def _constant(self, value: object) -> Schema:
        if value is None:
            return PLAIN["None"]
        if isinstance(value, str) and len(value) <= MAX_QUOTED:
            try:
                return self._within(value, lambda: self.read(ast.parse(value, mode="eval").body))
            except SyntaxError:
                pass
        return self._unknown(repr(value))

    def _named(self, name: str, node: ast.expr) -> Schema:
        if name in self._classes:
            return self._within(name, lambda: self._class(self._classes[name]))
        if name in self._aliases:
            return self._within(name, lambda: self.read(self._aliases[name]))
        if name in PLAIN:
            return PLAIN[name]
        if name in TEXTS:
            self.warnings.append(f"a file gets JSON, so {name} arrives as text; write str")
            return TEXTS[name]
        if name in CONTEXTS:
            message = "a file runs in a process of its own and gets no Context; register the function with @tool"
            raise HintError(message)
        return self._unknown(ast.unparse(node))

    def _subscript(self, name: str, inner: ast.expr, node: ast.expr) -> Schema:
        parts = list(inner.elts) if isinstance(inner, ast.Tuple) else [inner]
        forms = {
            "Annotated": self._annotated,
            "Literal": self._literal,
            "Optional": self._optional,
            "Union": self._union,
        }
        forms |= {"Tuple": self._tuple, "tuple": self._tuple}
        if name in forms and parts:
            return forms[name](parts)
        if name in WRAPPERS:
            return self.read(inner)
        if name in ARRAYS | SETS:
            return {**PLAIN[name], "items": self.read(inner)}
        if name in OBJECTS and len(parts) == 2:  # noqa: PLR2004 - keys and values
            return self._mapping(*map(self.read, parts))
        return self._unknown(ast.unparse(node))

    def _optional(self, parts: list[ast.expr]) -> Schema:
        return any_of([self.read(parts[0]), PLAIN["None"]])

    def _union(self, parts: list[ast.expr]) -> Schema:
        return any_of([self.read(part) for part in parts])

    def _tuple(self, parts: list[ast.expr]) -> Schema:
        if isinstance(last := parts[-1], ast.Constant) and last.value is Ellipsis:
            return {"type": "array", "items": self.read(parts[0])}
        items = [self.read(part) for part in parts]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "items": False}

    def _mapping(self, key: Schema, value: Schema) -> Schema:
        if key.get("type", "string") != "string":
            message = "the keys of a JSON object are text; use dict[str, …]"
            raise HintError(message)
        return {"type": "object", **({"additionalProperties": value} if value else {})}

    def _literal(self, parts: list[ast.expr]) -> Schema:
        members = [literal(part) for part in parts]
        return {"enum": members} if all(map(is_json, members)) else self._unknown("Literal with other than JSON")

    def _annotated(self, parts: list[ast.expr]) -> Schema:
        texts = [part.value for part in parts[1:] if isinstance(part, ast.Constant) and isinstance(part.value, str)]
        schema = self.read(parts[0])
        return {**schema, "description": texts[0]} if texts and is_json(texts[0]) else schema

    def _class(self, node: ast.ClassDef) -> Schema:
        bases = {self.name(base) for base in node.bases}
        if bases & {"Enum", "IntEnum", "StrEnum"}:
            self.warnings.append(f"a file gets JSON, so {node.name} arrives as the value of a member; write Literal[…]")
            return self._enum(node)
        decorators = {self.name(item.func if isinstance(item, ast.Call) else item) for item in node.decorator_list}
        if "dataclass" in decorators or "NamedTuple" in bases:
            self.warnings.append(f"a file gets JSON, so {node.name} arrives as a dict; write a TypedDict")
            return self._record(node)
        if "TypedDict" in bases or any(self._is_typed_dict(base) for base in bases):
            return self._record(node)
        return self._unknown(node.name)

    def _is_typed_dict(self, name: str) -> bool:
        node = self._classes.get(name)
        return node is not None and any(self.name(base) == "TypedDict" for base in node.bases)

    def _enum(self, node: ast.ClassDef) -> Schema:
        values = [literal(item.value) for item in node.body if isinstance(item, ast.Assign)]
        return {"enum": values} if values and all(map(is_json, values)) else {}

    def _record(self, node: ast.ClassDef) -> Schema:
        fields = {name: (hint, required) for name, hint, required in self._fields(node, set())}
        properties = {name: self.read(hint) for name, (hint, _) in fields.items()}
        return object_schema(properties, [name for name, (_, required) in fields.items() if required])

    def _fields(self, node: ast.ClassDef, seen: set[str]) -> Iterator[tuple[str, ast.expr, bool]]:
        """The fields of the bases and then its own, each with whether it is required; `seen` keeps a circle of bases from turning for ever."""
        if node.name in seen:
            return
        seen.add(node.name)
        for base in node.bases:
            if (parent := self._classes.get(self.name(base))) is not None:
                yield from self._fields(parent, seen)
        total = not any(word.arg == "total" and literal(word.value) is False for word in node.keywords)
        for item in node.body:
            if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                mark = self.name(item.annotation.value) if isinstance(item.annotation, ast.Subscript) else ""
                required = mark == "Required" or (total and item.value is None and mark != "NotRequired")
                yield item.target.id, item.annotation, required

    def _within(self, name: str, read: Callable[[], Schema]) -> Schema:
        """Read what a name stands for; a name that contains itself accepts any value there."""
        if name in self._opened:
            return self._unknown(f"{name} inside of {name}")
        self.unfolded = True
        self._opened.append(name)
        try:
            return read()
        finally:
            self._opened.pop()

    def _unknown(self, text: str) -> Schema:
        self.warnings.append(f"the hint {text[:80]} is not understood, so any value is accepted; write a plain type")
        return {}


def literal(node: ast.expr) -> object:
    """The value of a literal, tuples as lists; NotImplemented for anything else."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return NotImplemented
    return list(value) if isinstance(value, tuple) else value


def read_parameters(
    function: AnyFunction, hints: SyntaxHints, texts: Mapping[str, str], *, skip: frozenset[str] = frozenset()
) -> Schema:
    """The arguments of a function as the schema of an object; parameters to skip are given by someone else."""
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
        if argument.arg in skip:
            continue
        properties[argument.arg] = _property(argument, default, hints, texts.get(argument.arg, ""))
        if default is None:
            required.append(argument.arg)
    schema = object_schema(properties, required)
    if arguments.kwarg is not None:
        schema["additionalProperties"] = _hint(arguments.kwarg, hints) or True
    return schema


def read_answer(function: AnyFunction, hints: SyntaxHints) -> Schema | None:
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


def writable(text: str) -> str:
    """Text that every JSON library can write: a lone surrogate is no character."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _property(argument: ast.arg, default: ast.expr | None, hints: SyntaxHints, text: str) -> Schema:
    schema = _hint(argument, hints)
    value = NotImplemented if default is None else literal(default)
    if is_json(value):
        schema = with_default(schema, value)
    return {"description": writable(text), **schema} if text else schema


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


def _members(node: ast.expr) -> list[ast.expr]:
    """The members of `a | b | c`, in order; the tree leans to the left and may be very deep."""
    members: list[ast.expr] = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        members.append(node.right)
        node = node.left
    return [node, *reversed(members)]


def top_imports(module: ast.Module) -> tuple[str, ...]:
    """The modules that the first level of a file imports by their full name."""
    found = dict.fromkeys(name for statement in module.body for name in _imported(statement))
    return tuple(found)[:MAX_IMPORTS]


def _imported(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.Import):
        yield from (alias.name for alias in statement.names)
    elif isinstance(statement, ast.ImportFrom) and statement.level == 0 and statement.module != "__future__":
        yield statement.module or ""
