"""Types as requests write them, and the nested fields below a list or an object, as JSON Schema."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolcrib.model.errors import ToolError
from toolcrib.pure.requests.fields import MAX_NAME, checked_text, name_type
from toolcrib.pure.requests.report import show
from toolcrib.pure.schema import object_schema, type_alias

if TYPE_CHECKING:
    from toolcrib.pure.requests.report import Report, Steps

    Schema = dict[str, object]

OWN_TYPES = ("string", "integer", "boolean", "list", "object")
CHOICES = ", ".join(OWN_TYPES)
MAX_FIELDS = 256
MAX_DESCRIPTION = 4_000
NOTES = frozenset({"description", "required", "optional", "default", "example", "examples"})
DEFINITION = frozenset({"type", "schema", "description", "optional"})

_NULLABLE = re.compile(r"(.*[^\s|])\s*\|\s*null")
_OPTIONAL = re.compile(r"(.*\S)\s*\(optional\)", re.IGNORECASE)
# Other people's words that JSON has no type for.
_TEXTS = frozenset({"datetime"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Word:
    """A type that was written: its schema without null, whether null fits too, and how the document would write it.

    `own` says that it is one of the document's five.
    """

    schema: Schema
    spelled: str
    own: bool
    nullable: bool = False
    optional: bool = False


def parse_type(written: object) -> Word | None:
    """What a type means; None if nobody knows."""
    if not isinstance(written, str):
        return None
    text = written.strip()
    optional = _OPTIONAL.fullmatch(text)
    text = optional[1] if optional else text
    nullable = _NULLABLE.fullmatch(text)
    base = nullable[1] if nullable else text
    schema = _base_schema(base)
    if schema is None:
        return None
    return Word(
        schema=schema,
        spelled=_spell(schema),
        own=base in OWN_TYPES,
        nullable=nullable is not None,
        optional=optional is not None,
    )


def read_type(report: Report, at: Steps, written: object) -> Word | None:
    """What a type means; refused where nobody knows, with a warning where it is not one of the document's words."""
    if written is None:
        report.refuse(at, f"has no type; write type: and one of {CHOICES}")
        return None
    word = parse_type(written)
    if word is None:
        report.refuse(at, f"the type {show(written)} is unknown; write one of {CHOICES}, or TYPE | null in quotes")
    elif not word.own:
        report.warn(at, f"the type {show(written)} is understood as {word.spelled}; write one of {CHOICES}")
    return word


def complete(report: Report, at: Steps, word: Word, schema: object, *, asks: bool) -> Schema:
    """The schema of a type with the nested fields that `schema` gives it; `asks` warns of a list or object without them."""
    kind = word.schema.get("type")
    if schema is None:
        if asks and _is_open(word.schema):
            report.warn(at, "says nothing about what is in it, so anything may be; write schema: and its fields")
        return _with_null(word.schema, nullable=word.nullable)
    at = (*at, "schema")
    items = word.schema.get("items", {"type": "object"})
    if kind == "array" and items == {"type": "object"}:
        return _with_null({**word.schema, "items": read_element(report, at, schema)}, nullable=word.nullable)
    if kind == "object" and isinstance(schema, dict):
        return _with_null({**word.schema, **_read_fields(report, at, schema)}, nullable=word.nullable)
    if kind == "object":
        report.refuse(at, f"must be a mapping, not {name_type(schema)}; write one field per line: name: type")
    else:
        report.refuse(at, f"is for a list or an object, not for {word.spelled}; remove it, or write type: object")
    return {}


def read_element(report: Report, at: Steps, entry: object) -> Schema:
    """The schema of one nested field, or of each element of a list."""
    if isinstance(entry, dict):
        return _read_definition(report, at, entry) if _is_definition(entry) else _read_fields(report, at, entry)
    if isinstance(entry, list) and len(entry) == 1:
        report.warn(at, "is understood as a list of what stands in it; write type: list and schema:")
        return {"type": "array", "items": read_element(report, (*at, 0), entry[0])}
    if isinstance(entry, list):
        report.refuse(at, "must be a mapping, not a list; write one field per line: name: type")
        return {}
    word = read_type(report, at, entry)
    if word is None:
        return {}
    return complete(report, at, without_option(report, at, word), None, asks=True)


def _base_schema(text: str) -> Schema | None:
    if text.lower() in _TEXTS:
        return {"type": "string"}
    try:
        return type_alias(text)
    except ToolError:
        return None


def _spell(schema: Schema) -> str:
    """A schema of `type_alias` in the document's words."""
    kind = schema.get("type")
    if "anyOf" in schema or not isinstance(kind, str):
        return "a value of several types"
    items = schema.get("items")
    if isinstance(items, dict):
        return f"list of {_spell(items)}"
    return {"array": "list", "number": "a number", "null": "null alone"}.get(kind, kind)


def _with_null(schema: Schema, *, nullable: bool) -> Schema:
    if not nullable:
        return schema
    kind = schema.get("type")
    # What is said of the parts of an object or array says nothing about null.
    return {**schema, "type": [kind, "null"]} if isinstance(kind, str) else {"anyOf": [schema, {"type": "null"}]}


def _is_open(schema: Schema) -> bool:
    if schema.get("type") == "array":
        items = schema.get("items", {"type": "object"})
        return isinstance(items, dict) and _is_open(items)
    return schema == {"type": "object"}


def _is_definition(entry: Schema) -> bool:
    """Whether a mapping describes one value, or names the fields of an object: one of them may be called `type`."""
    known = parse_type(entry.get("type")) is not None
    if "schema" in entry:
        return known or ("type" not in entry and isinstance(entry["schema"], dict))
    return known and all(name == "type" or _is_note(name, value) for name, value in entry.items())


def _looks_like_json_schema(entry: Schema) -> bool:
    inner = {"object": "properties", "array": "items"}.get(str(entry.get("type")), "")
    return isinstance(entry.get(inner), dict)


def _is_note(name: str, value: object) -> bool:
    return name in NOTES and parse_type(value) is None and not isinstance(value, dict)


def _read_definition(report: Report, at: Steps, entry: Schema) -> Schema:
    if "type" not in entry:
        report.warn(at, "has no type and is understood as object; write type: object")
    word = read_type(report, (*at, "type"), entry.get("type", "object"))
    if word is None:
        return {}
    for name in entry:
        if name not in DEFINITION:
            report.warn((*at, name), "is not read in a schema; remove it")
    if entry.get("optional") is True:
        word = replace(word, optional=True)
    schema = complete(report, at, without_option(report, at, word), entry.get("schema"), asks=True)
    return {**schema, **read_description(report, at, entry)}


def read_description(report: Report, at: Steps, entry: Schema) -> Schema:
    """What is said about a value besides its type."""
    text = entry.get("description")
    if text is None:
        return {}
    if not isinstance(text, str):
        report.refuse((*at, "description"), f"must be text, not {show(text)}; write it in quotes")
        return {}
    return {"description": checked_text(report, (*at, "description"), text, MAX_DESCRIPTION)}


def without_option(report: Report, at: Steps, word: Word) -> Word:
    """What is optional in an answer may be null there: it is a key of its own that every answer has."""
    if not word.optional:
        return word
    report.warn(at, f'is optional, which is understood as null; write "{word.spelled} | null"')
    return replace(word, nullable=True, optional=False)


def _read_fields(report: Report, at: Steps, entry: Schema) -> Schema:
    if not entry or len(entry) > MAX_FIELDS:
        report.refuse(at, f"has {len(entry)} fields; write 1 to {MAX_FIELDS} of them: name: type")
        return {}
    if _looks_like_json_schema(entry):
        report.warn(at, "looks like JSON Schema, but its keys are read as names of fields; write name: type for each")
    properties: Schema = {}
    for name, written in entry.items():
        if not 0 < len(name) <= MAX_NAME or not name.isprintable():
            report.refuse((*at, name), f"cannot be the name of a field; use 1 to {MAX_NAME} letters")
            continue
        properties[name] = read_element(report, (*at, name), written)
    return object_schema(properties, sorted(properties), closed=False)
