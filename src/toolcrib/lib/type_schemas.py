"""The JSON Schemas of Python types, by their names: one table for hints that are objects, in syntax trees, and in docstrings."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from toolcrib.lib.schema_structure import any_of, is_json

if TYPE_CHECKING:
    from collections.abc import Callable

Schema = dict[str, object]

DIGITS = r"^-?\d+(\.\d+)?$"
# Python reads a UUID without dashes too.
HEXADECIMAL = "^[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}$"
CLOCK = r"^\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:\d{2})?$"
# RFC 3339 demands a zone, which Python's datetimes may lack.
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
# Classes that JSON has no value for, as arguments.
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
# Where a result is written in one form and an argument may have several.
RESULTS: dict[str, Schema] = {
    "decimal.Decimal": {"type": "string", "pattern": DIGITS},
    "uuid.UUID": {"type": "string", "format": "uuid"},
}
# Inside of a pydantic model, which reads and writes these itself.
IN_MODELS: dict[str, Schema] = {
    "datetime.datetime": {"type": ["string", "number"]},
    "datetime.date": {"type": ["string", "number"]},
    "datetime.time": {"type": ["string", "number"]},
    "datetime.timedelta": {"type": ["number", "string"]},
    "bytes": {"type": "string"},
}
# Classes of packages that a file may use and Toolcrib never imports.
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

# Names under collections.abc, typing and builtins alike.
ARRAYS = frozenset(
    ("list", "List", "Sequence", "MutableSequence", "Collection", "Iterable", "Iterator", "Generator", "deque", "Deque")
)
SETS = frozenset({"set", "frozenset", "Set", "FrozenSet", "AbstractSet", "MutableSet"})
TUPLES = frozenset({"tuple", "Tuple"})
STREAMS = frozenset({"AsyncIterator", "AsyncIterable", "AsyncGenerator"})
OBJECTS = frozenset({"dict", "Dict", "Mapping", "MutableMapping", "OrderedDict", "Counter"})

# What notes of Annotated say, in the words of a schema.
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
    """The keyword of a schema for each bound that a note may set."""
    return {**BOUNDS, **LENGTHS.get(str(schema.get("type")), TEXT_LENGTHS)}


def enumeration(values: list[object]) -> Schema:
    """The schema of one of these values."""
    names = {TYPE_NAMES[type(value)] for value in values}
    return {**({"type": names.pop()} if len(names) == 1 else {}), "enum": values}


def enum_schema(members: list[tuple[str, object]]) -> Schema:
    """The schema of an enum: the name of each member, and its value where that is JSON."""
    if not all(type(value) in TYPE_NAMES for _, value in members):
        return enumeration([name for name, _ in members])
    schema = enumeration([value for _, value in members])
    if all(isinstance(value, str) for _, value in members) or len(members) > MAX_MEANINGS:
        return schema
    return {**schema, "description": ", ".join(f"{value}: {name}" for name, value in members)}


def array_schema(item: Schema, *, unique: bool = False) -> Schema:
    """The schema of a list of such items."""
    return {"type": "array", **({"items": item} if item else {}), **({"uniqueItems": True} if unique else {})}


def tuple_schema(items: list[Schema]) -> Schema:
    """The schema of a list with a fixed place for each item."""
    return {"type": "array", "prefixItems": items, "minItems": len(items), "items": False}


def mapping_schema(key: Schema, value: Schema) -> Schema | None:
    """The schema of an object with such keys and values; None for keys that text cannot write."""
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
    """The schema with a description, unless its author wrote one into the hint; what the type itself says is kept."""
    own = schema.get("description")
    if not text or (own is not None and own not in TYPE_TEXTS and "enum" not in schema):
        return schema
    return {**schema, "description": f"{text} ({own})" if own else text}


# Types that docstrings name: `int`, `list of str`, `{'a', 'b'}`, `str, optional`; only what JSON has values for.

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
# Types around another one, each with the schema that it makes of that one's.
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
    """The schema of a type as people write it; None if it is anything else than plain JSON."""
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
    """The values of `{'a', 'b'}`, as NumPy writes them; in the order of the text."""
    try:
        node = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return None
    values = [item.value for item in node.elts if isinstance(item, ast.Constant)] if isinstance(node, ast.Set) else []
    if not values or not all(type(value) in TYPE_NAMES and is_json(value) for value in values):
        return None
    return enumeration(list(values))
