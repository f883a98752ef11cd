"""Derive JSON Schemas from the signatures and type hints of a syntax tree, without evaluating them.

The schemas are the same as for functions of the host with the same hints. A hint that is only known when the file runs
accepts any JSON, with a warning; the process that runs the file converts the value by the real hint.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from toolcrib.lib.python_declarations import (
    ARRAYS,
    CLASSES,
    FOREIGN,
    IN_MODELS,
    OBJECTS,
    PLAIN,
    RESULTS,
    SETS,
    STREAMS,
    TUPLES,
    TYPE_NAMES,
    array_schema,
    bound_words,
    described,
    enum_schema,
    enumeration,
    mapping_schema,
    read_docstring,
    read_docstring_type,
    tuple_schema,
)
from toolcrib.lib.python_source import UNKNOWN, AnyFunction, ClassKind, ClassTable, literal
from toolcrib.lib.schema import accepts
from toolcrib.lib.schema_structure import any_of, is_json, object_schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.lib.python_declarations import Docstring
    from toolcrib.lib.python_source import ClassField

# Schema of a parameter without a hint, by the type of its default; an integer default allows any number.
OF_DEFAULTS: dict[type, Schema] = {
    bool: {"type": "boolean"},
    int: {"type": "number"},
    float: {"type": "number"},
    str: {"type": "string"},
    list: {"type": "array"},
    dict: {"type": "object"},
}

Schema = dict[str, object]

MAX_HINTS = 2_000
MAX_DEPTH = 24
MAX_QUOTED = 1_000
WRAPPERS = frozenset({"Final", "NotRequired", "ReadOnly", "Required"})
AWAITED = frozenset({"Awaitable", "Coroutine"})
# Hints for which a JSON array is converted to another type than a list.
MADE_OF_LISTS = SETS | TUPLES | {"deque", "Deque", "Iterator", "Generator"}
# The most common hints, unless the file redefines the name.
BUILT_IN: dict[str, Schema] = {name: PLAIN[name] for name in ("str", "int", "float", "bool")}
SIMPLE: dict[str, Schema] = {
    **PLAIN,
    "Any": {},
    "LiteralString": {"type": "string"},
    "Text": {"type": "string"},
    "NoneType": PLAIN["None"],
    **dict.fromkeys(ARRAYS | TUPLES, array_schema({})),
    **dict.fromkeys(SETS, array_schema({}, unique=True)),
    **{name: {"type": "object"} for name in OBJECTS},
}
# Annotations whose first argument is the constraint.
NOTES = {
    "Ge": "ge",
    "Gt": "gt",
    "Le": "le",
    "Lt": "lt",
    "MultipleOf": "multiple_of",
    "MinLen": "min_length",
    "MaxLen": "max_length",
    "Doc": "description",
}
CONTEXTS = frozenset({"toolcrib.Context", "toolcrib.model.call.Context"})
NOT_READ = "cannot be read without running the file, so any JSON is accepted there and converted when the file runs"
NOT_READ_CURE = "define it in this file, or write a plain type"
NOT_MADE = "cannot be made from JSON, so a call that gives it fails"
NOT_MADE_CURE = "make it a dataclass, a TypedDict, an Enum or a pydantic model"


class HintError(Exception):
    """A hint that is refused."""


class SyntaxHints:
    """Reads the hints of one file. A hint that is not understood accepts any value, and adds to `warnings`.

    `unfolded` says that a class, alias or quoted hint was expanded, so that the schemas may be larger than the file. Recursive
    classes are put into `definitions`. `converts` says that some JSON values must be converted to other types.
    """

    def __init__(self, module: ast.Module, table: ClassTable | None = None) -> None:
        self.warnings: list[str] = []
        self.definitions: dict[str, object] = {}
        self.unfolded = False
        self.converts = False
        self.of_results = False
        self._table = table or ClassTable(module)
        self._opened: list[str] = []
        self._recursive: set[str] = set()
        self._models = 0
        self._count = 0
        self._depth = 0

    def read(self, node: ast.expr) -> Schema:
        """The schema of a hint."""
        self._count += 1
        self._depth += 1
        try:
            if self._count > MAX_HINTS or self._depth > MAX_DEPTH:
                message = "unfolds to too many types; make it smaller"
                raise HintError(message)
            if isinstance(node, ast.Name) and node.id in BUILT_IN and not self._table.holds(node.id):
                return BUILT_IN[node.id]
            return self._read(node)
        finally:
            self._depth -= 1

    def read_typed_dict(self, node: ast.expr) -> Schema | None:
        """The schema of `**others: Unpack[…]`; None for any other hint."""
        if isinstance(node, ast.Subscript) and self._table.name(node.value) == "Unpack":
            schema = self.read(node.slice)
            return schema if "properties" in schema else None
        return None

    def with_default(self, schema: Schema, default: ast.expr) -> Schema:
        """The schema with a default that is a literal, a member of an enum, or an object made from one text."""
        value = self._default(default)
        if not is_json(value):
            return schema
        if value is None and not self._accepts(schema, None):
            schema = any_of([schema, PLAIN["None"]])
        return {**schema, "default": value} if self._accepts(schema, value) else schema

    def _accepts(self, schema: Schema, value: object) -> bool:
        unfinished = {name: {"type": "object"} for name in self._opened} if self._opened else {}
        return accepts(schema, value, {**unfinished, **self.definitions})

    def _default(self, node: ast.expr) -> object:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return self._table.member(node.value.id, node.attr)
        if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
            schema = CLASSES.get(self._table.full_name(node.func), {})
            value = literal(node.args[0])
            return (
                value if isinstance(value, str) and schema.get("type") in ("string", ["string", "number"]) else UNKNOWN
            )
        return literal(node)

    def _read(self, node: ast.expr) -> Schema:
        if isinstance(node, ast.Constant):
            return self._constant(node.value)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return any_of([self.read(member) for member in _members(node)])
        if isinstance(node, ast.Subscript):
            return self._subscript(node)
        if isinstance(node, ast.Call):
            return self._made(node)
        return self._named(node)

    def _constant(self, value: object) -> Schema:
        if value is None:
            return PLAIN["None"]
        if isinstance(value, str) and len(value) <= MAX_QUOTED:
            try:
                expression = ast.parse(value, mode="eval").body
            except (SyntaxError, ValueError):
                return self._unknown(repr(value))
            return self._within(repr(value), lambda: self.read(expression))
        return self._unknown(repr(value))

    def _named(self, node: ast.expr) -> Schema:
        name = self._table.name(node)
        if (known := self._table.find(node)) is not None:
            return self._within(known.name, lambda: self._class(known), is_class=True)
        if (alias := self._table.alias(node)) is not None:
            return self._within(name, lambda: self.read(alias))
        if name in SIMPLE:
            self.converts |= name in MADE_OF_LISTS
            return SIMPLE[name]
        if (schema := self._of_class(self._table.full_name(node))) is not None:
            self.converts = True
            return schema
        if self._table.full_name(node) in CONTEXTS:
            message = "a file runs in a process of its own and gets no Context; register the function with @tool"
            raise HintError(message)
        if self.of_results and name in STREAMS:
            return {"type": "array"}
        return self._unknown(ast.unparse(node))

    def _of_class(self, name: str) -> Schema | None:
        if self._models and name in IN_MODELS:
            return IN_MODELS[name]
        if self.of_results and name in RESULTS:
            return RESULTS[name]
        return CLASSES.get(name) or FOREIGN.get(name)

    def _subscript(self, node: ast.Subscript) -> Schema:
        name = self._table.name(node.value)
        parts = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        forms: dict[str, Callable[[list[ast.expr]], Schema]] = {
            "Annotated": self._annotated,
            "Literal": self._literal,
            "Optional": self._optional,
            "Union": self._union,
            **dict.fromkeys(TUPLES, self._tuple),
            **dict.fromkeys(WRAPPERS, lambda parts: self.read(parts[0])),
        }
        if name in forms and (parts or name in TUPLES):
            return forms[name](parts)
        if name in ARRAYS | SETS or (self.of_results and name in STREAMS):
            self.converts |= name in MADE_OF_LISTS
            return array_schema(self.read(parts[0]), unique=name in SETS)
        if self.of_results and name in AWAITED:
            return self.read(parts[-1])
        if name in OBJECTS:
            return self._mapping(name, parts)
        # A generic class such as os.PathLike[str]; its parameters are ignored.
        known = self._of_class(self._table.full_name(node.value)) is not None or self._table.find(node.value)
        return self._named(node.value) if known else self._unknown(ast.unparse(node))

    def _optional(self, parts: list[ast.expr]) -> Schema:
        return any_of([self.read(parts[0]), PLAIN["None"]])

    def _union(self, parts: list[ast.expr]) -> Schema:
        return any_of([self.read(part) for part in parts])

    def _tuple(self, parts: list[ast.expr]) -> Schema:
        self.converts = True
        if parts and isinstance(last := parts[-1], ast.Constant) and last.value is Ellipsis:
            return array_schema(self.read(parts[0]))
        return tuple_schema([self.read(part) for part in parts])

    def _mapping(self, name: str, parts: list[ast.expr]) -> Schema:
        key = self.read(parts[0])
        value = PLAIN["int"] if name == "Counter" else self.read(parts[1]) if len(parts) > 1 else {}
        schema = mapping_schema(key, value)
        if schema is None:
            message = "the keys of a JSON object are text; use dict[str, …]"
            raise HintError(message)
        self.converts |= "propertyNames" in schema or name == "Counter"
        return schema

    def _literal(self, parts: list[ast.expr]) -> Schema:
        members = [self._default(part) if isinstance(part, ast.Attribute) else literal(part) for part in parts]
        self.converts |= any(isinstance(part, ast.Attribute) for part in parts)
        if all(is_json(member) and type(member) in TYPE_NAMES for member in members):
            return enumeration(members)
        return self._unknown("Literal with other than JSON")

    def _annotated(self, parts: list[ast.expr]) -> Schema:
        schema = dict(self.read(parts[0]))
        for note in parts[1:]:
            self._note(schema, note)
        return schema

    def _note(self, schema: Schema, note: ast.expr) -> None:
        """Add the constraints of an annotation to the schema; those that cannot be read are checked when the file runs."""
        if isinstance(note, ast.Constant) and isinstance(note.value, str) and is_json(note.value):
            schema["description"] = note.value
        if not isinstance(note, ast.Call):
            return
        self.converts = True
        said = {word.arg: literal(word.value) for word in note.keywords if word.arg}
        first = NOTES.get(self._table.name(note.func).rpartition(".")[2])
        if first and note.args:
            said[first] = literal(note.args[0])
        words = {"description": "description", "documentation": "description", **bound_words(schema)}
        for name, value in said.items():
            if name in words and type(value) in (int, float, str) and is_json(value):
                schema[words[name]] = value

    def _made(self, node: ast.Call) -> Schema:
        """The schema of `NewType("Id", int)` and `TypeVar("T", bound=int)`."""
        name = self._table.name(node.func)
        if name == "NewType" and len(node.args) == 2:  # noqa: PLR2004 - the name and the type
            return self.read(node.args[1])
        if name == "TypeVar":
            bound = next((word.value for word in node.keywords if word.arg == "bound"), None)
            return {} if bound is None else self.read(bound)
        return self._unknown(ast.unparse(node))

    def _class(self, known: ClassKind) -> Schema:
        if known.kind == "enum":
            self.converts = True
            return self._enum(known)
        if known.kind == "":
            self.warnings.append(f"{known.name} {NOT_MADE}; {NOT_MADE_CURE}")
            return {}
        self.converts |= known.kind != "typed dict"
        return self._record(known)

    def _enum(self, known: ClassKind) -> Schema:
        members = known.members
        if not members or (self.of_results and any(value is UNKNOWN for _, value in members)):
            return self._unknown(known.name)
        return enum_schema([(name, () if value is UNKNOWN else value) for name, value in members])

    def _record(self, known: ClassKind) -> Schema:
        texts = read_docstring(known.docstring).arguments
        self._models += known.kind == "model"
        try:
            fields = [field for field in known.fields if field.is_given or (self.of_results and field.is_written)]
            properties = {field.key: self._field(field, texts.get(field.name, "")) for field in fields}
        finally:
            self._models -= known.kind == "model"
        required = [field.key for field in fields if field.is_required]
        return object_schema(properties, required, closed=known.kind != "model")

    def _field(self, field: ClassField, text: str) -> Schema:
        schema = self.read(field.hint) if field.hint is not None else {}
        if field.note is not None:
            schema = dict(schema)
            self._note(schema, field.note)
        schema = described(schema, text if is_json(text) else "")
        return schema if field.default is None else self.with_default(schema, field.default)

    def _within(self, name: str, read: Callable[[], Schema], *, is_class: bool = False) -> Schema:
        """Read the definition of a name; a class may be recursive, a recursive alias accepts any value there."""
        if name in self._opened and is_class:
            self._recursive.add(name)
            return {"$ref": f"#/$defs/{name}"}
        if name in self._opened:
            return self._unknown(f"{name} inside of {name}")
        self.unfolded = True
        self._opened.append(name)
        try:
            schema = read()
        finally:
            self._opened.pop()
        if name not in self._recursive:
            return schema
        self.definitions[name] = schema
        return {"$ref": f"#/$defs/{name}"}

    def _unknown(self, text: str) -> Schema:
        self.converts = True
        self.warnings.append(f"the hint {text[:80]} {NOT_READ}; {NOT_READ_CURE}")
        return {}


def _members(node: ast.expr) -> list[ast.expr]:
    """The members of `a | b | c`, in order; the tree nests to the left, too deep for recursion."""
    members: list[ast.expr] = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        members.append(node.right)
        node = node.left
    return [node, *reversed(members)]


def read_parameters(
    function: AnyFunction, hints: SyntaxHints, docstring: Docstring, *, skip: frozenset[str] = frozenset()
) -> Schema:
    """The arguments of a function as the schema of an object, without the parameters to `skip`, which the host provides.

    `*items` becomes the array `items`, and `**others` leaves the schema open.
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
    """The schema of the return value; None if the hint is missing, or only known when the file runs."""
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
    """Text that every JSON library can serialise: lone surrogates are replaced."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _property(argument: ast.arg, default: ast.expr | None, hints: SyntaxHints, docstring: Docstring) -> Schema:
    schema = _hint(argument, hints) if argument.annotation else _guess(argument, default, hints, docstring)
    schema = described(schema, _text(argument, docstring))
    return schema if default is None else hints.with_default(schema, default)


def _text(argument: ast.arg, docstring: Docstring) -> str:
    return writable(docstring.arguments.get(argument.arg, ""))


def _guess(argument: ast.arg, default: ast.expr | None, hints: SyntaxHints, docstring: Docstring) -> Schema:
    """The schema of a parameter without a hint: from the docstring, else from its default."""
    if (said := docstring.types.get(argument.arg)) and (schema := read_docstring_type(said)) is not None:
        return schema
    value = None if default is None else literal(default)
    if (schema := OF_DEFAULTS.get(type(value))) is not None:
        return schema
    return _hint(argument, hints)


def _open(schema: Schema, argument: ast.arg, hints: SyntaxHints) -> None:
    """Allow additional arguments for `**others`; `Unpack[…]` names them."""
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
