"""The JSON Schemas of Python types, by their full names: one table for hints that are objects and for hints in syntax trees."""

from __future__ import annotations

Schema = dict[str, object]

DIGITS = r"^-?\d+(\.\d+)?$"
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
    "uuid.UUID": {"type": "string", "format": "uuid"},
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
RESULTS: dict[str, Schema] = {"decimal.Decimal": {"type": "string", "pattern": DIGITS}}
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
