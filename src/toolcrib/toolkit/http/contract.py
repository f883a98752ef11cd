"""Parameters, bodies and replies of endpoints, from which validation and OpenAPI are derived."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, cast
from urllib.parse import parse_qsl

from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Schema = Mapping[str, object]


MAX_PAGE = 256
MAX_TOKEN = 4_096
MAX_TEXT = 1_000
MAX_LISTED = 256
# The largest number that a query can hold; a parameter with this bound has none.
UNBOUNDED = 10**15 - 1

TEXT: dict[str, object] = {"type": "string"}
SWITCH: dict[str, object] = {"type": "boolean"}
ANYTHING: dict[str, object] = {"type": "object", "additionalProperties": True}
WHOLE: dict[str, object] = {"type": "integer", "minimum": 0}
TIME: dict[str, object] = {**TEXT, "format": "date-time"}
OPTIONAL_TIME: dict[str, object] = {"type": ["string", "null"], "format": "date-time"}
OPTIONAL_TEXT: dict[str, object] = {"type": ["string", "null"]}
OPTIONAL_WHOLE: dict[str, object] = {"type": ["integer", "null"], "minimum": 1, "maximum": 2**31 - 1}


class Place(StrEnum):
    """Where a parameter is sent."""

    PATH = "path"
    QUERY = "query"
    HEADER = "header"


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameter:
    """A parameter. `key` is its name among the components of OpenAPI; `too_long` is the message for a string over its limit."""

    name: str
    place: Place
    description: str
    schema: Schema
    key: str
    example: object = None
    too_long: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Body:
    """A body that is one JSON object.

    Only `keys` are accepted; with `open_keys` they are None and the handler checks them. An `optional` body may be empty.
    `comments` allows comments in the JSON. With `yaml_example` the body may also be YAML.
    """

    name: str
    schema: Schema
    example: object
    open_keys: bool = False
    optional: bool = False
    comments: bool = False
    yaml_example: str = ""
    keys: frozenset[str] | None = field(init=False)

    def __post_init__(self) -> None:
        properties = self.schema["properties"]
        keys = None if self.open_keys or not isinstance(properties, dict) else frozenset(properties)
        object.__setattr__(self, "keys", keys)


@dataclass(frozen=True, kw_only=True, slots=True)
class RawBody:
    """A body of another media type than JSON, which the handler reads with `read_raw`."""

    media_type: str
    description: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """A successful response: JSON of a schema, another media type, or no body."""

    description: str
    schema: str = ""
    media_type: str = ""
    headers: tuple[str, ...] = ()
    links: Schema | None = None


def closed(required: tuple[str, ...] = (), **properties: object) -> dict[str, object]:
    """The schema of an object with these keys and no others."""
    return {"type": "object", "required": list(required), "properties": properties, "additionalProperties": False}


def open_to_more(required: tuple[str, ...] = (), **properties: object) -> dict[str, object]:
    """The schema of an object that may have further keys."""
    return {**closed(required, **properties), "additionalProperties": True}


def ref(kind: str, name: str) -> dict[str, object]:
    """A reference to a component."""
    return {"$ref": f"#/components/{kind}/{name}"}


def schema(name: str) -> dict[str, object]:
    """A reference to a schema."""
    return ref("schemas", name)


# Not `const`: a generator of clients writes broken code for `const` of an optional boolean.
ONLY_TRUE: dict[str, object] = {**SWITCH, "not": {"const": False}}
ONLY_FALSE: dict[str, object] = {**SWITCH, "not": {"const": True}}
# A key that is there only while it is true.
INDEXING: dict[str, object] = {
    **ONLY_TRUE,
    "description": "Stored tools are still being indexed, and more of them may be there; absent otherwise.",
}


def page(key: str, item: str, **more: object) -> dict[str, object]:
    """The schema of a page of items with the token of the next page."""
    token = {**OPTIONAL_TEXT, "description": "Asks for the next page; null on the last page."}
    items = {"type": "array", "items": schema(item)}
    return closed((key, "nextPageToken"), **{key: items, "nextPageToken": token}, **more)


def in_path(name: str, description: str, schema: Schema, *, example: object, key: str = "") -> Parameter:
    """A path parameter."""
    return Parameter(
        name=name, place=Place.PATH, description=description, schema=schema, key=key or name, example=example
    )


def in_header(name: str, description: str, *, key: str, **more: object) -> Parameter:
    """A header parameter."""
    return Parameter(name=name, place=Place.HEADER, description=description, schema={**TEXT, **more}, key=key)


def text(
    name: str,
    description: str,
    *,
    most: int = MAX_TEXT,
    too_long: str = "",
    example: object = None,
    key: str = "",
    **more: object,
) -> Parameter:
    """A string in the query."""
    return Parameter(
        name=name,
        place=Place.QUERY,
        description=description,
        schema={**TEXT, **more, "maxLength": most},
        key=key or name,
        example=example,
        too_long=too_long or f"longer than {most} characters; shorten it",
    )


def choice(name: str, description: str, words: tuple[str, ...], *, key: str = "") -> Parameter:
    """One of some words in the query."""
    return Parameter(
        name=name,
        place=Place.QUERY,
        description=description,
        schema={**TEXT, "enum": list(words)},
        key=key or name,
    )


def switch(name: str, description: str) -> Parameter:
    """A boolean in the query, false by default."""
    return Parameter(
        name=name, place=Place.QUERY, description=description, schema={**SWITCH, "default": False}, key=name
    )


def whole(
    name: str, description: str, least: int, most: int = UNBOUNDED, default: int | None = None, *, key: str = ""
) -> Parameter:
    """An integer in the query."""
    shape: dict[str, object] = {"type": "integer", "minimum": least, "maximum": most}
    shape |= {} if default is None else {"default": default}
    return Parameter(name=name, place=Place.QUERY, description=description, schema=shape, key=key or name)


def words(name: str, description: str, items: Schema) -> Parameter:
    """A list in the query, separated by commas or repeated."""
    return Parameter(
        name=name,
        place=Place.QUERY,
        description=f"{description} Separated by commas, or repeated.",
        schema={"type": "array", "items": items, "minItems": 1, "maxItems": MAX_LISTED},
        key=name,
    )


# Parameters that several features share.
INCLUDE_DISABLED = switch("includeDisabled", "Include what is disabled.")
TAGS = words("tags", "Only tools that have all of these tags.", {**TEXT, "pattern": "^[^,]+$"})
PAGE_SIZE = whole("pageSize", "Maximum number of items.", 1, MAX_PAGE)
PAGE_TOKEN = text(
    "pageToken",
    "`nextPageToken` of the previous page, with the other parameters unchanged.",
    most=MAX_TOKEN,
    too_long="is not a token of this server; start again without it",
)
TYPED = text("q", "What was typed.", pattern=r"\S", example="wea")
QUESTION = text("question", "A question in plain language, instead of `q`.", pattern=r"\S")
REQUEST_ID = in_header(
    "X-Request-Id",
    "The id of this request in responses, logs and the journal: up to 64 ASCII letters, digits, '.', '_' and '-'. "
    "Any other value is replaced by a generated id.",
    key="requestID",
)
SESSION_HEADER = in_header("Toolcrib-Session", "The id of a session that the caller opened.", key="session")
NOTHING = Body(name="Nothing", schema=closed(()), example={})
NOTHING_AT_ALL = Body(name="Nothing", schema=closed(()), example={}, optional=True)


MAX_PARAMETERS = 1_024
_HALF_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_DIGITS = re.compile(r"[0-9]{1,15}")


class Query:
    """The parameters of a query, parsed to their types."""

    def __init__(self, values: Mapping[str, object], given: frozenset[str]) -> None:
        self._values = values
        self._given = given

    def has(self, name: str) -> bool:
        """Whether the parameter was given."""
        return name in self._given

    def text(self, name: str) -> str:
        """A string; empty if it is absent."""
        return cast("str", self._values.get(name, ""))

    def words(self, name: str) -> tuple[str, ...]:
        """A list; empty if it is absent."""
        return cast("tuple[str, ...]", self._values.get(name, ()))

    def switch(self, name: str) -> bool:
        """A boolean; false if it is absent."""
        return cast("bool", self._values.get(name, False))

    def number(self, name: str) -> int | None:
        """An integer; its default if it is absent, or None."""
        return cast("int | None", self._values.get(name))


class QueryReader:
    """Parse the query of one endpoint."""

    def __init__(self, parameters: Iterable[Parameter]) -> None:
        self._known = {parameter.name: parameter for parameter in parameters}
        self._defaults = {
            name: parameter.schema["default"]
            for name, parameter in self._known.items()
            if "default" in parameter.schema
        }
        self._absent = Query(self._defaults, frozenset())

    def read(self, raw: bytes) -> Query:
        """Parse a query; raises for a parameter that is unknown, repeated or invalid."""
        if not raw:
            return self._absent
        found: dict[str, list[str]] = {}
        for name, value in _pairs(raw):
            parameter = self._known.get(name)
            if parameter is None:
                hint = f"known are {', '.join(sorted(self._known))}" if self._known else "this path takes none"
                raise ToolError(Kind.VALIDATION, f"query: unknown parameter {name[:80]!r}; {hint}")
            if name in found and parameter.schema["type"] != "array":
                raise ToolError(Kind.VALIDATION, f"query: {name} is repeated; write it once")
            found.setdefault(name, []).append(value)
        values = {name: _value(self._known[name], given) for name, given in found.items()}
        return Query({**self._defaults, **values}, frozenset(found))


def _pairs(raw: bytes) -> list[tuple[str, str]]:
    try:
        if _HALF_ESCAPE.search(raw):
            raise ValueError
        return parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MAX_PARAMETERS)
    except ValueError:
        message = "query: malformed; write name=value pairs, with non-ASCII characters as percent-encoded UTF-8"
        raise ToolError(Kind.VALIDATION, message) from None


def _value(parameter: Parameter, given: list[str]) -> object:
    kind = parameter.schema["type"]
    if kind == "array":
        return _words(parameter, given)
    [value] = given
    if kind == "boolean":
        if value not in ("true", "false"):
            raise _bad(parameter, f"write true or false, not {value[:80]!r}")
        return value == "true"
    if kind == "integer":
        return _number(parameter, value)
    return _text(parameter, value)


def _words(parameter: Parameter, given: list[str]) -> tuple[str, ...]:
    """A list, separated by commas, by repeating the parameter, or both."""
    words = [word for value in given for word in value.split(",")]
    if "" in words:
        raise _bad(parameter, "has an empty item; write words, or leave the parameter out")
    most = cast("int", parameter.schema["maxItems"])
    if len(words) > most:
        raise _bad(parameter, f"has more than {most} items; send several requests")
    return tuple(words)


def _number(parameter: Parameter, value: str) -> int:
    least, most = cast("int", parameter.schema["minimum"]), cast("int", parameter.schema["maximum"])
    number = int(value) if _DIGITS.fullmatch(value) else -1
    if not least <= number <= most:
        bounds = f"of at least {least}" if most == UNBOUNDED else f"from {least} to {most}"
        raise _bad(parameter, f"write an integer {bounds}, not {value[:80]!r}")
    return number


def _text(parameter: Parameter, value: str) -> str:
    words = parameter.schema.get("enum")
    if isinstance(words, list):
        if value not in words:
            raise _bad(parameter, f"write one of {', '.join(words)}")
    elif len(value) > cast("int", parameter.schema["maxLength"]):
        raise _bad(parameter, parameter.too_long)
    return value


def _bad(parameter: Parameter, reason: str) -> ToolError:
    return ToolError(Kind.VALIDATION, f"query: {parameter.name}: {reason}")
