"""What an endpoint takes and answers: parameters, bodies and replies, from which checks and OpenAPI are derived."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    """Where a parameter stands."""

    PATH = "path"
    QUERY = "query"
    HEADER = "header"


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameter:
    """A parameter. `key` names it among the components of the API; `too_long` is what a client is told of a longer text."""

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

    `keys` are the only ones that are accepted; None leaves that to the handler, as `open_keys` asks for. An `optional` body
    may be empty. `comments` may stand in what people write by hand. With `yaml_example` the body may also be YAML.
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
class Reply:
    """A successful answer: of a schema, of another media type as plain text, or without a body."""

    description: str
    schema: str = ""
    media_type: str = ""
    headers: tuple[str, ...] = ()
    links: Schema | None = None


def closed(required: tuple[str, ...] = (), **properties: object) -> dict[str, object]:
    """An object that has no other keys than these."""
    return {"type": "object", "required": list(required), "properties": properties, "additionalProperties": False}


def open_to_more(required: tuple[str, ...] = (), **properties: object) -> dict[str, object]:
    """An object that may have further keys."""
    return {**closed(required, **properties), "additionalProperties": True}


def ref(kind: str, name: str) -> dict[str, object]:
    """A reference to a component."""
    return {"$ref": f"#/components/{kind}/{name}"}


def schema(name: str) -> dict[str, object]:
    """A reference to a schema."""
    return ref("schemas", name)


def page(key: str, item: str, **more: object) -> dict[str, object]:
    """Some of many, and the token that asks for the next ones."""
    token = {**OPTIONAL_TEXT, "description": "Asks for the next page; null behind the last."}
    items = {"type": "array", "items": schema(item)}
    return closed((key, "nextPageToken"), **{key: items, "nextPageToken": token}, **more)


def in_path(name: str, description: str, schema: Schema, *, example: object, key: str = "") -> Parameter:
    """A part of a path."""
    return Parameter(
        name=name, place=Place.PATH, description=description, schema=schema, key=key or name, example=example
    )


def in_header(name: str, description: str, *, key: str, **more: object) -> Parameter:
    """A header."""
    return Parameter(name=name, place=Place.HEADER, description=description, schema={**TEXT, **more}, key=key)


def text(
    name: str, description: str, *, most: int = MAX_TEXT, too_long: str = "", example: object = None, **more: object
) -> Parameter:
    """A text in the query."""
    return Parameter(
        name=name,
        place=Place.QUERY,
        description=description,
        schema={**TEXT, **more, "maxLength": most},
        key=name,
        example=example,
        too_long=too_long or f"longer than {most} letters; write less",
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
    """A parameter that is on or off; off where it is absent."""
    return Parameter(
        name=name, place=Place.QUERY, description=description, schema={**SWITCH, "default": False}, key=name
    )


def whole(
    name: str, description: str, least: int, most: int = UNBOUNDED, default: int | None = None, *, key: str = ""
) -> Parameter:
    """A whole number in the query."""
    shape: dict[str, object] = {"type": "integer", "minimum": least, "maximum": most}
    shape |= {} if default is None else {"default": default}
    return Parameter(name=name, place=Place.QUERY, description=description, schema=shape, key=key or name)


def words(name: str, description: str, items: Schema) -> Parameter:
    """A list in the query, written with commas or repeated."""
    return Parameter(
        name=name,
        place=Place.QUERY,
        description=f"{description} With commas, or repeated.",
        schema={"type": "array", "items": items, "minItems": 1, "maxItems": MAX_LISTED},
        key=name,
    )


# What several features list, search and change with.
INCLUDE_DISABLED = switch("includeDisabled", "Also what is switched off.")
TAGS = words("tags", "Only tools that have all of these tags.", {**TEXT, "pattern": "^[^,]+$"})
PAGE_SIZE = whole("pageSize", "How many at most.", 1, MAX_PAGE)
PAGE_TOKEN = text(
    "pageToken",
    "`nextPageToken` of the page before, with the other parameters as they were.",
    most=MAX_TOKEN,
    too_long="is none that this server gave out; begin again without it",
)
TYPED = text("q", "What was typed.", pattern=r"\S", example="wea")
QUESTION = text("question", "A question in plain words, in place of `q`.", pattern=r"\S")
REQUEST_ID = in_header(
    "X-Request-Id",
    "How to name this request in answers, logs and the journal: up to 64 ASCII letters, digits, '.', '_' and '-'. "
    "For any other text an id is made.",
    key="requestID",
)
NOTHING = Body(name="Nothing", schema=closed(()), example={})
NOTHING_AT_ALL = Body(name="Nothing", schema=closed(()), example={}, optional=True)
