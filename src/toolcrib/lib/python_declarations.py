"""JSON Schemas of Python types by name, and the parsing of docstrings.

One table of types serves hints that are objects, hints in syntax trees, and docstrings. Docstrings may have Google, NumPy or
Sphinx style.
"""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import field
from types import FunctionType
from typing import TYPE_CHECKING

from toolcrib.lib.schema_structure import any_of, is_json
from toolcrib.model.tool import Function
from toolcrib.values.records import record

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeGuard


Schema = dict[str, object]

DIGITS = r"^-?\d+(\.\d+)?$"
# Python also accepts a UUID without dashes.
HEXADECIMAL = "^[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}$"
CLOCK = r"^\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:\d{2})?$"
# RFC 3339 requires a time zone, which Python's datetimes may lack.
MOMENT = r"^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?([Zz]|[+-]\d{2}:\d{2})?$"

PLAIN: dict[str, Schema] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "None": {"type": "null"},
    "typing.Any": {},
    "object": {},
    "typing.LiteralString": {"type": "string"},
}
# Classes without a JSON value of their own: the schema of an argument.
CLASSES: dict[str, Schema] = {
    "datetime.datetime": {"type": "string", "pattern": MOMENT, "description": "date and time, ISO 8601"},
    "datetime.date": {"type": "string", "format": "date"},
    "datetime.time": {"type": "string", "pattern": CLOCK},
    "datetime.timedelta": {"type": "number", "description": "seconds"},
    "uuid.UUID": {"type": "string", "pattern": HEXADECIMAL, "description": "UUID"},
    "decimal.Decimal": {"type": ["string", "number"], "pattern": DIGITS},
    "bytes": {"type": "string", "contentEncoding": "base64"},
    **{f"pathlib.{name}": {"type": "string"} for name in ("Path", "PosixPath", "PurePath", "PurePosixPath")},
    "os.PathLike": {"type": "string"},
    "ipaddress.IPv4Address": {"type": "string", "format": "ipv4"},
    "ipaddress.IPv6Address": {"type": "string", "format": "ipv6"},
    **{
        f"ipaddress.{name}": {"type": "string"}
        for name in ("IPv4Network", "IPv6Network", "IPv4Interface", "IPv6Interface")
    },
}
TYPE_TEXTS = frozenset(schema["description"] for schema in CLASSES.values() if "description" in schema)
# Classes whose results have one form while arguments may have several.
RESULTS: dict[str, Schema] = {
    "decimal.Decimal": {"type": "string", "pattern": DIGITS},
    "uuid.UUID": {"type": "string", "format": "uuid"},
}
# Inside a pydantic model, which converts these itself.
IN_MODELS: dict[str, Schema] = {
    "datetime.datetime": {"type": ["string", "number"]},
    "datetime.date": {"type": ["string", "number"]},
    "datetime.time": {"type": ["string", "number"]},
    "datetime.timedelta": {"type": ["number", "string"]},
    "bytes": {"type": "string"},
}
# Classes of packages that a file may use; Toolcrib itself never imports them.
FOREIGN: dict[str, Schema] = {
    "numpy.ndarray": {"type": "array"},
    **{f"numpy.{name}": {"type": "number"} for name in ("float16", "float32", "float64", "double")},
    **{
        f"numpy.{name}": {"type": "integer"}
        for name in ("int8", "int16", "int32", "int64", "uint8", "uint32", "uint64")
    },
    "numpy.bool_": {"type": "boolean"},
    "pandas.DataFrame": {"type": "array", "items": {"type": "object"}},
    "pandas.Series": {"type": ["array", "object"]},
    **{f"pydantic.{name}": {"type": "string"} for name in ("EmailStr", "HttpUrl", "AnyUrl", "AnyHttpUrl", "SecretStr")},
    "pydantic.PositiveInt": {"type": "integer", "exclusiveMinimum": 0},
    "pydantic.NonNegativeInt": {"type": "integer", "minimum": 0},
    "pydantic.PositiveFloat": {"type": "number", "exclusiveMinimum": 0},
    "pydantic.NonNegativeFloat": {"type": "number", "minimum": 0},
    "pydantic.StrictStr": {"type": "string"},
    "pydantic.StrictInt": {"type": "integer"},
    "pydantic.StrictBool": {"type": "boolean"},
}

# Names in collections.abc, typing and builtins.
ARRAYS = frozenset(
    ("list", "List", "Sequence", "MutableSequence", "Collection", "Iterable", "Iterator", "Generator", "deque", "Deque")
)
SETS = frozenset({"set", "frozenset", "Set", "FrozenSet", "AbstractSet", "MutableSet"})
TUPLES = frozenset({"tuple", "Tuple"})
STREAMS = frozenset({"AsyncIterator", "AsyncIterable", "AsyncGenerator"})
OBJECTS = frozenset({"dict", "Dict", "Mapping", "MutableMapping", "OrderedDict", "Counter"})

# Constraints of Annotated, with the keyword of a schema.
BOUNDS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
    "pattern": "pattern",
}
LENGTHS = {
    "array": {"min_length": "minItems", "max_length": "maxItems"},
    "object": {"min_length": "minProperties", "max_length": "maxProperties"},
}
TEXT_LENGTHS = {"min_length": "minLength", "max_length": "maxLength"}
TYPE_NAMES = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
MAX_MEANINGS = 50


def bound_words(schema: Schema) -> dict[str, str]:
    """The keyword of a schema for each constraint that an annotation may set."""
    return {**BOUNDS, **LENGTHS.get(str(schema.get("type")), TEXT_LENGTHS)}


def enumeration(values: list[object]) -> Schema:
    """The schema of one of these values."""
    names = {TYPE_NAMES[type(value)] for value in values}
    return {**({"type": names.pop()} if len(names) == 1 else {}), "enum": values}


def enum_schema(members: list[tuple[str, object]]) -> Schema:
    """The schema of an enum: its values if they are all JSON scalars, otherwise the names of its members."""
    if not all(type(value) in TYPE_NAMES for _, value in members):
        return enumeration([name for name, _ in members])
    schema = enumeration([value for _, value in members])
    if all(isinstance(value, str) for _, value in members) or len(members) > MAX_MEANINGS:
        return schema
    return {**schema, "description": ", ".join(f"{value}: {name}" for name, value in members)}


def array_schema(item: Schema, *, unique: bool = False) -> Schema:
    """The schema of an array of such items."""
    return {"type": "array", **({"items": item} if item else {}), **({"uniqueItems": True} if unique else {})}


def tuple_schema(items: list[Schema]) -> Schema:
    """The schema of an array with a fixed position for each item."""
    return {"type": "array", "prefixItems": items, "minItems": len(items), "items": False}


def mapping_schema(key: Schema, value: Schema) -> Schema | None:
    """The schema of an object with such keys and values; None for keys that are not text or numbers."""
    kind = key.get("type", "string")
    names = {"integer": r"^-?\d+$", "number": r"^-?\d+(\.\d+)?$"}
    schema: Schema = {"type": "object"}
    if kind in names and key.keys() == {"type"}:
        schema["propertyNames"] = {"pattern": names[str(kind)]}
    elif kind != "string":
        return None
    elif key.keys() > {"type"}:
        schema["propertyNames"] = key
    return {**schema, "additionalProperties": value} if value else schema


def described(schema: Schema, text: str) -> Schema:
    """The schema with a description, unless the hint has one; the description of the type itself is appended."""
    own = schema.get("description")
    if not text or (own is not None and own not in TYPE_TEXTS and "enum" not in schema):
        return schema
    return {**schema, "description": f"{text} ({own})" if own else text}


# Types in docstrings: `int`, `list of str`, `{'a', 'b'}`, `str, optional`; only those with JSON values.

MAX_LETTERS = 200
DOCSTRING_WORDS: dict[str, Schema] = {
    **{word: {"type": "string"} for word in ("str", "string", "text")},
    **{word: {"type": "integer"} for word in ("int", "integer")},
    **{word: {"type": "number"} for word in ("float", "number", "double", "numeric")},
    **{word: {"type": "boolean"} for word in ("bool", "boolean")},
    **{word: {"type": "array"} for word in ("list", "array", "sequence", "iterable")},
    **{word: {"type": "object"} for word in ("dict", "dictionary", "mapping", "object")},
    **{word: {"type": "null"} for word in ("none", "null")},
}
EXTRAS = re.compile(r"\b(?:optional|required|default(?:s to|=|:)?\s*\S*|by default)\s*$")
# Container types, each with the function that builds its schema from that of the inner type.
WRAPPERS: tuple[tuple[re.Pattern[str], Callable[[Schema], Schema]], ...] = (
    (re.compile(r"(?:list|array|sequence|iterable)s? of (\w+?)s?"), array_schema),
    (re.compile(r"(?:list|sequence|iterable)\[(.+)\]"), array_schema),
    (re.compile(r"optional\[(.+)\]"), lambda inner: any_of([inner, {"type": "null"}])),
    (
        re.compile(r"(?:dict|mapping)\[str(?:ing)?, ?(.+)\]"),
        lambda inner: {"type": "object", "additionalProperties": inner},
    ),
)
MAX_DEPTH = 4


def read_docstring_type(text: str) -> Schema | None:
    """The schema of a type in a docstring; None if it is not one of JSON."""
    if len(text) > MAX_LETTERS:
        return None
    words = text.strip().strip("`")
    while (shorter := EXTRAS.sub("", words).rstrip(" ,;(")) != words:
        words = shorter
    return _read(words, 0)


def _read(text: str, depth: int) -> Schema | None:
    plain = text.strip().strip("`").lower()
    if plain in DOCSTRING_WORDS or depth > MAX_DEPTH:
        return DOCSTRING_WORDS.get(plain)
    if plain.startswith("{"):
        return _choices(text.strip())
    for pattern, wrap in WRAPPERS:
        if found := pattern.fullmatch(plain):
            inner = _read(found[1], depth + 1)
            return None if inner is None else wrap(inner)
    parts = re.split(r" or |\|", text)
    members = [_read(part, depth + 1) for part in parts] if len(parts) > 1 else [None]
    return None if None in members else any_of([member for member in members if member is not None])


def _choices(text: str) -> Schema | None:
    """The values of `{'a', 'b'}`, as in NumPy style, in order."""
    try:
        node = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return None
    values = [item.value for item in node.elts if isinstance(item, ast.Constant)] if isinstance(node, ast.Set) else []
    if not values or not all(type(value) in TYPE_NAMES and is_json(value) for value in values):
        return None
    return enumeration(list(values))


ARGUMENTS = frozenset(
    {"args", "arguments", "attributes", "keyword args", "keyword arguments", "other parameters", "parameters", "params"}
)
OTHERS = frozenset(
    {"example", "examples", "note", "notes", "raises", "references", "return", "returns", "see also", "todo", "usage"}
    | {"warning", "warnings", "warns", "yield", "yields"}
)
# Docstrings of untrusted files are parsed too: to match in linear time, adjacent parts of a pattern must not overlap.
FIELD = re.compile(r"[:@]([a-z]+)([^:]*):(.*)")
GOOGLE_ARGUMENT = re.compile(r"(\*{0,2}\w+)[ \t]*(?:\(([^)]*)\)[ \t]*)?:(?:\s(.*)|$)")
NUMPY_ARGUMENT = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::(.*))?$")
FIELD_ARGUMENTS = frozenset({"arg", "argument", "attribute", "key", "keyword", "kwarg", "param", "parameter"})


@record
class Docstring:
    """A parsed docstring."""

    summary: str = ""
    description: str = ""
    arguments: dict[str, str] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)


NOTHING = Docstring()


def read_docstring(text: str | None) -> Docstring:
    """Parse a docstring of any of the three styles."""
    if not text or not text.strip():
        return NOTHING
    lines = [line.rstrip() for line in inspect.cleandoc(text).split("\n")]
    prose: list[str] = []
    found = Docstring()
    index = 0
    while index < len(lines):
        index = _read_block(lines, index, prose, found)
    summary, _, description = "\n".join(prose).strip().partition("\n\n")
    return Docstring(
        summary=" ".join(summary.split()),
        description=description.strip(),
        arguments=found.arguments,
        types=found.types,
    )


def _read_block(lines: list[str], index: int, prose: list[str], into: Docstring) -> int:
    """Parse one line of prose, one field or one section; returns the index of the next line."""
    line = lines[index]
    if line[:1] in (":", "@") and (found := FIELD.match(line)):
        end = _end_of_indented(lines, index + 1)
        _read_field(found, lines[index + 1 : end], into)
        return end
    title = line.removesuffix(":").lower()
    if title not in ARGUMENTS and title not in OTHERS:
        prose.append(line)
        return index + 1
    if _is_underlined(lines, index):
        end = _end_of_underlined(lines, index + 2)
        body, pattern = lines[index + 2 : end], NUMPY_ARGUMENT
    elif line.endswith(":"):
        end = _end_of_indented(lines, index + 1)
        body, pattern = lines[index + 1 : end], GOOGLE_ARGUMENT
    else:
        prose.append(line)
        return index + 1
    if title in ARGUMENTS:
        _read_arguments(body, pattern, into)
    return end


def _read_field(found: re.Match[str], rest: list[str], into: Docstring) -> None:
    kind, names, text = found.groups()
    if kind in FIELD_ARGUMENTS and names.strip():
        *types, name = names.split()
        _keep(into.arguments, [name], [text, *rest])
        _keep(into.types, [name], types)
    elif kind == "type" and names.strip():
        _keep(into.types, names.split()[-1:], [text, *rest])


def _read_arguments(body: list[str], pattern: re.Pattern[str], into: Docstring) -> None:
    """Parse a section; each entry starts at its smallest indentation, and deeper lines continue the entry."""
    indentations = [len(line) - len(line.lstrip()) for line in body]
    margin = min((indentation for indentation, line in zip(indentations, body, strict=True) if line), default=0)
    names: list[str] = []
    text: list[str] = []
    for indentation, line in zip(indentations, body, strict=True):
        found = pattern.match(line[margin:]) if indentation == margin else None
        if found is None:
            text.append(line)
            continue
        _keep(into.arguments, names, text)
        names = [name.strip() for name in found[1].split(",")]
        text = [found[3] or ""] if pattern is GOOGLE_ARGUMENT else []
        if found[2]:
            _keep(into.types, names, [found[2]])
    _keep(into.arguments, names, text)


def _keep(arguments: dict[str, str], names: list[str], text: list[str]) -> None:
    if not names:
        return
    joined = " ".join(" ".join(text).split())
    for name in names:
        if joined and (bare := name.lstrip("*")):
            arguments.setdefault(bare, joined)


def _end_of_indented(lines: list[str], index: int) -> int:
    end = index
    while index < len(lines) and (not lines[index] or lines[index][0] in " \t"):
        index += 1
        if lines[index - 1]:
            end = index
    return end


def _end_of_underlined(lines: list[str], index: int) -> int:
    while index < len(lines) and not _is_underlined(lines, index):
        index += 1
    return index


def _is_underlined(lines: list[str], index: int) -> bool:
    below = lines[index + 1] if index + 1 < len(lines) else ""
    return len(below) > 2 and not below.strip("-") and bool(lines[index])  # noqa: PLR2004 - an underline is at least three dashes


# Generators

GENERATORS = inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR


def is_generator(function: object) -> bool:
    """Whether the function, or one that it wraps, is a generator."""
    if _is_plain(function):
        return bool(function.__code__.co_flags & GENERATORS)
    return is_async_generator(function) or any(map(inspect.isgeneratorfunction, _layers(function)))


def registered_function(function: Callable[..., object]) -> Function:
    """How a function that a document names by its key runs: with a context and all arguments."""
    called = (function, getattr(function, "__call__", None))  # noqa: B004 - its kind is checked, not its existence
    is_async = any(map(inspect.iscoroutinefunction, called)) or is_async_generator(function)
    return Function(call=function, is_async=is_async, takes_whole=True, yields=is_generator(function))


def is_async_generator(function: object) -> bool:
    """Whether the function, or one that it wraps, is an async generator."""
    if _is_plain(function):
        return bool(function.__code__.co_flags & inspect.CO_ASYNC_GENERATOR)
    return any(map(inspect.isasyncgenfunction, _layers(function)))


def _is_plain(function: object) -> TypeGuard[FunctionType]:
    """Whether it is a function that wraps none: most are, and its own flags say all, far quicker than `inspect` does."""
    return isinstance(function, FunctionType) and not hasattr(function, "__wrapped__")


def _layers(function: object) -> tuple[object, ...]:
    """The function, the function that it wraps, and the `__call__` of an object."""
    inner = inspect.unwrap(function) if callable(function) else function
    return function, inner, getattr(type(function), "__call__", None)  # noqa: B004 - its kind is checked, not its existence
