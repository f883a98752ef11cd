"""A list of parameters as the closed schema of an object."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolcrib.dialects.script.checking import checked
from toolcrib.dialects.script.metadata import SHOWN, name_type, warn_of_strangers
from toolcrib.model.errors import ToolError
from toolcrib.pure.schema import accepts, any_of, object_schema, type_alias, with_default

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.dialects.script.metadata import Report, Steps

    Schema = dict[str, object]

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
OWN_TYPES = ("string", "integer", "float", "boolean", "object", "array")
JSON_TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
KEYWORDS = (
    *("description", "minimum", "maximum", "minLength", "maxLength", "pattern", "enum"),
    *("exclusiveMinimum", "exclusiveMaximum", "multipleOf", "format", "const", "title", "examples"),
    *("items", "minItems", "maxItems", "uniqueItems", "properties", "additionalProperties"),
)
KEYS = ("name", "type", "required", "default", *KEYWORDS)
NUMBERS = frozenset({"integer", "number"})
# A constraint binds values of one type only; on another it does nothing, and its author should know.
BINDS = {
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), NUMBERS),
    **dict.fromkeys(("minLength", "maxLength", "pattern", "format"), frozenset({"string"})),
    **dict.fromkeys(("items", "minItems", "maxItems", "uniqueItems"), frozenset({"array"})),
    **dict.fromkeys(("properties", "additionalProperties"), frozenset({"object"})),
}


def read_parameter_list(report: Report, at: Steps, value: object) -> Schema | None:
    """The schema of the arguments; None if there is no list."""
    if not isinstance(value, list):
        report.refuse(at, f"must be a list, not {name_type(value)}; write one item per parameter: - name: …")
        return None
    properties: Schema = {}
    required: list[str] = []
    for index, entry in enumerate(value):
        name = _name(report, (*at, index), entry)
        schema = _read_parameter(report, (*at, index), entry) if isinstance(entry, dict) else None
        if name in properties:
            report.refuse((*at, index, "name"), f"{name!r} stands twice; remove one")
        elif name and schema is not None:
            properties[name] = schema
            required += [name] if entry.get("required") is True else []
    return object_schema(properties, required)


def translate_types(report: Report, at: Steps, schema: Mapping[str, object], given: Steps | None = None) -> Schema:
    """The schema with the words that people use for types, at every depth, in those of JSON Schema.

    `given` is where the properties are written, if not below the schema itself.
    """
    translated = dict(schema)
    kind = schema.get("type")
    if isinstance(kind, str) and kind not in JSON_TYPES:
        del translated["type"]
        translated |= _type(report, (*at, "type"), kind) or {}
    properties, items = schema.get("properties"), schema.get("items")
    if isinstance(properties, dict):
        inside = (*at, "properties") if given is None else given
        translated["properties"] = {
            name: translate_types(report, (*inside, name), entry) if isinstance(entry, dict) else entry
            for name, entry in properties.items()
        }
    if isinstance(items, dict):
        translated["items"] = translate_types(report, (*at, "items"), items)
    return translated


def _name(report: Report, at: Steps, entry: object) -> str:
    if not isinstance(entry, dict):
        report.refuse(at, f"must be a mapping with name and type, not {name_type(entry)}; write - name: …")
        return ""
    name = entry.get("name")
    if name is None:
        report.refuse(at, "has no name; write name: service_name")
    elif not isinstance(name, str) or not NAME.fullmatch(name):
        text = f"{name!r:.{SHOWN}} cannot be the name of an argument; use up to 64 letters, digits, '_', '-' or '.'"
        report.refuse((*at, "name"), text)
    else:
        return name
    return ""


def _read_parameter(report: Report, at: Steps, entry: dict[str, object]) -> Schema | None:
    warn_of_strangers(report, at, entry, KEYS)
    before = len(report.problems)
    if not isinstance(entry.get("required", False), bool):
        report.refuse((*at, "required"), f"must be true or false, not {entry['required']!r:.40}")
    if entry.get("type") is None:
        report.refuse(at, f'has no type; write type: {", ".join(OWN_TYPES)} (null in quotes: "null")')
        return None
    schema = _type(report, (*at, "type"), entry["type"])
    if entry.get("enum") is not None and not (isinstance(entry["enum"], list) and entry["enum"]):
        report.refuse((*at, "enum"), "must be a list of at least one value; write the values or remove it")
    if schema is None or len(report.problems) > before:
        return None
    _warn_of_idle_constraints(report, at, entry, schema)
    schema |= {word: entry[word] for word in KEYWORDS if word in entry}
    schema = translate_types(report, at, schema)
    return None if checked(report, at, schema) is None else _with_default(report, at, entry, schema)


def _type(report: Report, at: Steps, written: object) -> Schema | None:
    words = written if isinstance(written, list) and written else [written]
    members: list[Schema] = []
    for word in words:
        try:
            members.append(type_alias(word) if isinstance(word, str) else type_alias(str(written)))
        except ToolError:
            report.refuse(at, f"{word!r:.{SHOWN}} is unknown; write one of {', '.join(OWN_TYPES)}")
            return None
        if word not in JSON_TYPES and word not in OWN_TYPES:
            report.warn(at, f"{word!r:.{SHOWN}} is understood as {members[-1]}; write one of {', '.join(OWN_TYPES)}")
    return any_of(members)


def _warn_of_idle_constraints(report: Report, at: Steps, entry: Mapping[str, object], schema: Schema) -> None:
    kinds = schema.get("type")
    known = {kinds} if isinstance(kinds, str) else set(kinds) if isinstance(kinds, list) else JSON_TYPES
    for word, bound in BINDS.items():
        if word in entry and known.isdisjoint(bound):
            report.warn((*at, word), f"binds nothing of type {' or '.join(sorted(known))}; remove it")


def _with_default(report: Report, at: Steps, entry: Mapping[str, object], schema: Schema) -> Schema:
    if "default" not in entry:
        return schema
    default = entry["default"]
    if entry.get("required") is True:
        report.warn((*at, "required"), "has a default, so nobody needs to give it; write required: false")
    if default is None:
        return with_default(schema, None)
    if not accepts(schema, default):
        report.warn((*at, "default"), f"{default!r:.{SHOWN}} does not fit the parameter itself; correct one of them")
    return {**schema, "default": default}
