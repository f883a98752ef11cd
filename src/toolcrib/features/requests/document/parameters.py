"""Translate the inputs and outputs of a request into JSON Schema, from the type names that requests use."""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from toolcrib.features.requests.document.fields import checked_text, show
from toolcrib.lib.schema import accepts, check_schema, with_default
from toolcrib.lib.schema_structure import object_schema, type_alias
from toolcrib.lib.yaml import name_type
from toolcrib.model.errors import ToolError
from toolcrib.model.tool import MAX_NAME
from toolcrib.model.toolrequest import MISSING, Input, Output

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.features.requests.document.fields import RequestFields, RequestReport, Steps

    Schema = dict[str, object]

Entry = TypeVar("Entry", Input, Output)

OWN_TYPES = ("string", "integer", "boolean", "list", "object")
CHOICES = ", ".join(OWN_TYPES)
MAX_FIELDS = 256
MAX_DESCRIPTION = 4_000
NOTES = frozenset({"description", "required", "optional", "default", "example", "examples"})
DEFINITION = frozenset({"type", "schema", "description", "optional"})
MAX_ITEMS = 64
INPUT_KEYS = ("name", "type", "description", "required", "default")
# Read, but not in the document's own table.
ODD_INPUT_KEYS = ("optional", "example", "examples", "schema")
OUTPUT_KEYS = ("name", "type", "schema")
ODD_OUTPUT_KEYS = ("description", "optional")
OUTPUT_NAME = re.compile(rf"[A-Za-z_][A-Za-z0-9_.-]{{0,{MAX_NAME - 1}}}")

_NULLABLE = re.compile(r"(.*[^\s|])\s*\|\s*null")
_OPTIONAL = re.compile(r"(.*\S)\s*\(optional\)", re.IGNORECASE)
# Type names of other formats that mean text.
_TEXTS = frozenset({"datetime"})


def read_inputs(root: RequestFields) -> tuple[Input, ...]:
    """The arguments of the tool."""
    return _read_entries(root, "inputs", _read_input)


def read_outputs(root: RequestFields) -> tuple[Output, ...] | None:
    """The values of its answer; None if the request does not say."""
    found = _read_entries(root, "outputs", _read_output)
    if root.values.get("outputs") == []:
        root.warn("outputs", "is empty, so the answer may be anything; write what the tool gives back")
    return found or None


def parameters_of(root: RequestFields, inputs: tuple[Input, ...]) -> Schema:
    """The closed schema of the arguments."""
    schema = object_schema({given.name: given.schema for given in inputs}, [one.name for one in inputs if one.required])
    _check(root, "inputs", schema)
    return schema


def output_schema_of(root: RequestFields, outputs: tuple[Output, ...] | None) -> Schema | None:
    """The schema of the answer, every output in it required; None if the request does not say."""
    if outputs is None:
        return None
    schema = object_schema({given.name: given.schema for given in outputs}, [one.name for one in outputs])
    _check(root, "outputs", schema)
    return schema


def is_argument_name(name: str) -> bool:
    """Whether Python code can name an argument so: `f(name=…)`."""
    return 0 < len(name) <= MAX_NAME and name.isascii() and name.isidentifier() and not keyword.iskeyword(name)


def _read_entries(root: RequestFields, name: str, read: Callable[[RequestFields], Entry | None]) -> tuple[Entry, ...]:
    """The entries of a list that are valid, each name once."""
    found: dict[str, Entry] = {}
    for entry in root.entries(name, MAX_ITEMS, "name: …"):
        given = read(entry)
        if given is not None and given.name in found:
            entry.refuse("name", f"{given.name!r} stands twice; remove one")
        elif given is not None:
            found[given.name] = given
    return tuple(found.values())


def _read_input(entry: RequestFields) -> Input | None:
    before = entry.report.refused
    _warn_of_odd_keys(entry, INPUT_KEYS, ODD_INPUT_KEYS)
    name = entry.required_text("name", "repo", longest=MAX_NAME)
    if name.strip() and not is_argument_name(name):
        entry.refuse(
            "name", f"{show(name)} cannot be an argument in Python; use letters, digits and '_', and no keyword"
        )
    description = entry.required_text("description", "what it is for", longest=MAX_DESCRIPTION)
    schema, optional = _input_type(entry)
    required = _is_required(entry, optional=optional)
    if entry.report.refused > before:
        return None
    default = entry.values.get("default", MISSING)
    if default is not MISSING:
        schema = _with_default(entry, schema, default, required=required)
    return Input(
        name=name,
        schema={**schema, "description": description},
        description=description,
        required=required,
        default=default,
        samples=_samples(entry, schema),
    )


def _input_type(entry: RequestFields) -> tuple[Schema, bool]:
    """The schema of an input, and whether its type says that it is optional."""
    word = _read_type(entry.report, _type_place(entry), entry.values.get("type"))
    if word is None:
        return {}, False
    if word.nullable:
        entry.warn("type", f"null is for outputs; write type: {word.spelled} and leave the argument out instead")
    if word.optional:
        entry.warn("type", f"is optional by itself; write type: {word.spelled}")
    return _complete(entry.report, entry.at, word, entry.values.get("schema"), asks=False), word.optional


def _is_required(entry: RequestFields, *, optional: bool) -> bool:
    required, marked = entry.switch("required"), entry.switch("optional")
    if required is True and (optional or marked is True):
        entry.refuse("required", "is true although the input is optional; remove one of them")
    if required is not None or marked is None:
        return required is True
    return marked is False


def _with_default(entry: RequestFields, schema: Schema, default: object, *, required: bool) -> Schema:
    if required:
        entry.warn("required", "has a default, so it may be left out; remove one of them")
    if not accepts(schema, default):
        entry.warn("default", f"{show(default)} is not of the type of the input; correct one of them")
    return with_default(schema, default)


def _samples(entry: RequestFields, schema: Schema) -> tuple[object, ...]:
    found = []
    given = [((*entry.at, "example"), entry.values["example"])] if "example" in entry.values else []
    for at, sample in (*given, *entry.items("examples", MAX_ITEMS)):
        if accepts(schema, sample):
            found.append(sample)
        else:
            entry.report.warn(at, f"{show(sample)} is not of the type of the input; correct one of them")
    return tuple(found)


def _read_output(entry: RequestFields) -> Output | None:
    before = entry.report.refused
    _warn_of_odd_keys(entry, OUTPUT_KEYS, ODD_OUTPUT_KEYS)
    name = entry.required_text("name", "users", longest=MAX_NAME)
    if name.strip() and not OUTPUT_NAME.fullmatch(name):
        entry.refuse("name", f"{show(name)} cannot be the name of an output; use letters, digits, '_', '-' and '.'")
    word = _read_type(entry.report, _type_place(entry), entry.values.get("type"))
    if word is None:
        return None
    if entry.switch("optional"):
        word = replace(word, optional=True)
    word = _without_option(entry.report, entry.at, word)
    schema = _complete(entry.report, entry.at, word, entry.values.get("schema"), asks=True)
    schema |= _read_description(entry.report, entry.at, dict(entry.values))
    if entry.report.refused > before:
        return None
    return Output(name=name, schema=schema, is_list=word.schema.get("type") == "array")


def _type_place(entry: RequestFields) -> tuple[str | int, ...]:
    return (*entry.at, "type") if "type" in entry.values else entry.at


def _warn_of_odd_keys(entry: RequestFields, known: tuple[str, ...], odd: tuple[str, ...]) -> None:
    for name in odd:
        if name in entry.values:
            entry.warn(name, f"is read, but the format has only {', '.join(known)}")
    entry.warn_of_unknown_keys({*known, *odd})


def _check(root: RequestFields, name: str, schema: Schema) -> None:
    """Refuse a schema that is too large or too deep to check calls with."""
    try:
        check_schema(schema, name)
    except ToolError as error:
        root.refuse(name, error.message.removeprefix(f"{name}: "))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Word:
    """A type that was written: its schema without null, whether null fits too, and how the document would write it.

    `own` says that it is one of the document's five.
    """

    schema: Schema
    spelled: str
    own: bool
    nullable: bool = False
    optional: bool = False


def _parse_type(written: object) -> _Word | None:
    """What a type means; None if it is unknown."""
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
    return _Word(
        schema=schema,
        spelled=_spell(schema),
        own=base in OWN_TYPES,
        nullable=nullable is not None,
        optional=optional is not None,
    )


def _read_type(report: RequestReport, at: Steps, written: object) -> _Word | None:
    """What a type means; refused if it is unknown, with a warning if it is not one of the document's words."""
    if written is None:
        report.refuse(at, f"has no type; write type: and one of {CHOICES}")
        return None
    word = _parse_type(written)
    if word is None:
        report.refuse(at, f"the type {show(written)} is unknown; write one of {CHOICES}, or TYPE | null in quotes")
    elif not word.own:
        report.warn(at, f"the type {show(written)} is understood as {word.spelled}; write one of {CHOICES}")
    return word


def _complete(report: RequestReport, at: Steps, word: _Word, schema: object, *, asks: bool) -> Schema:
    """The schema of a type with the nested fields that `schema` gives it; `asks` warns of a list or object without them."""
    kind = word.schema.get("type")
    if schema is None:
        if asks and _is_open(word.schema):
            report.warn(at, "says nothing about what is in it, so anything may be; write schema: and its fields")
        return _with_null(word.schema, nullable=word.nullable)
    at = (*at, "schema")
    items = word.schema.get("items", {"type": "object"})
    if kind == "array" and items == {"type": "object"}:
        return _with_null({**word.schema, "items": _read_element(report, at, schema)}, nullable=word.nullable)
    if kind == "object" and isinstance(schema, dict):
        return _with_null({**word.schema, **_read_fields(report, at, schema)}, nullable=word.nullable)
    if kind == "object":
        report.refuse(at, f"must be a mapping, not {name_type(schema)}; write one field per line: name: type")
    else:
        report.refuse(at, f"is for a list or an object, not for {word.spelled}; remove it, or write type: object")
    return {}


def _read_element(report: RequestReport, at: Steps, entry: object) -> Schema:
    """The schema of one nested field, or of each element of a list."""
    if isinstance(entry, dict):
        return _read_definition(report, at, entry) if _is_definition(entry) else _read_fields(report, at, entry)
    if isinstance(entry, list) and len(entry) == 1:
        report.warn(at, "is understood as a list of what stands in it; write type: list and schema:")
        return {"type": "array", "items": _read_element(report, (*at, 0), entry[0])}
    if isinstance(entry, list):
        report.refuse(at, "must be a mapping, not a list; write one field per line: name: type")
        return {}
    word = _read_type(report, at, entry)
    if word is None:
        return {}
    return _complete(report, at, _without_option(report, at, word), None, asks=True)


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
    # Keywords for the parts of an object or array do not apply to null.
    return {**schema, "type": [kind, "null"]} if isinstance(kind, str) else {"anyOf": [schema, {"type": "null"}]}


def _is_open(schema: Schema) -> bool:
    if schema.get("type") == "array":
        items = schema.get("items", {"type": "object"})
        return isinstance(items, dict) and _is_open(items)
    return schema == {"type": "object"}


def _is_definition(entry: Schema) -> bool:
    """Whether a mapping describes one value, or names the fields of an object: one of them may be called `type`."""
    known = _parse_type(entry.get("type")) is not None
    if "schema" in entry:
        return known or ("type" not in entry and isinstance(entry["schema"], dict))
    return known and all(name == "type" or _is_note(name, value) for name, value in entry.items())


def _looks_like_json_schema(entry: Schema) -> bool:
    inner = {"object": "properties", "array": "items"}.get(str(entry.get("type")), "")
    return isinstance(entry.get(inner), dict)


def _is_note(name: str, value: object) -> bool:
    return name in NOTES and _parse_type(value) is None and not isinstance(value, dict)


def _read_definition(report: RequestReport, at: Steps, entry: Schema) -> Schema:
    if "type" not in entry:
        report.warn(at, "has no type and is understood as object; write type: object")
    word = _read_type(report, (*at, "type"), entry.get("type", "object"))
    if word is None:
        return {}
    for name in entry:
        if name not in DEFINITION:
            report.warn((*at, name), "is not read in a schema; remove it")
    if entry.get("optional") is True:
        word = replace(word, optional=True)
    schema = _complete(report, at, _without_option(report, at, word), entry.get("schema"), asks=True)
    return {**schema, **_read_description(report, at, entry)}


def _read_description(report: RequestReport, at: Steps, entry: Schema) -> Schema:
    """The description of a value."""
    text = entry.get("description")
    if text is None:
        return {}
    if not isinstance(text, str):
        report.refuse((*at, "description"), f"must be text, not {show(text)}; write it in quotes")
        return {}
    return {"description": checked_text(report, (*at, "description"), text, MAX_DESCRIPTION)}


def _without_option(report: RequestReport, at: Steps, word: _Word) -> _Word:
    """Read an optional output as nullable: every answer has all its keys."""
    if not word.optional:
        return word
    report.warn(at, f'is optional, which is understood as null; write "{word.spelled} | null"')
    return replace(word, nullable=True, optional=False)


def _read_fields(report: RequestReport, at: Steps, entry: Schema) -> Schema:
    if not entry or len(entry) > MAX_FIELDS:
        report.refuse(at, f"has {len(entry)} fields; write 1 to {MAX_FIELDS} of them: name: type")
        return {}
    if _looks_like_json_schema(entry):
        report.warn(at, "looks like JSON Schema, but its keys are read as names of fields; write name: type for each")
    properties: Schema = {}
    for name, written in entry.items():
        if not 0 < len(name) <= MAX_NAME or not name.isprintable():
            report.refuse((*at, name), f"cannot be the name of a field; use 1 to {MAX_NAME} characters")
            continue
        properties[name] = _read_element(report, (*at, name), written)
    return object_schema(properties, sorted(properties), closed=False)
