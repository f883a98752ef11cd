"""What a wished-for tool takes and gives back: the lists of inputs and outputs, and the schemas they amount to."""

from __future__ import annotations

import keyword
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from toolcrib.model.errors import ToolError
from toolcrib.model.toolrequest import MISSING, Input, Output
from toolcrib.pure.requests.fields import MAX_NAME
from toolcrib.pure.requests.report import show
from toolcrib.pure.requests.schemas import (
    MAX_DESCRIPTION,
    complete,
    read_description,
    read_type,
    without_option,
)
from toolcrib.pure.schema import accepts, check_schema, object_schema, with_default

if TYPE_CHECKING:
    from toolcrib.pure.requests.fields import Fields

    Schema = dict[str, object]

MAX_ITEMS = 64
INPUT_KEYS = ("name", "type", "description", "required", "default")
# Read, but not in the document's own table.
ODD_INPUT_KEYS = ("optional", "example", "examples", "schema")
OUTPUT_KEYS = ("name", "type", "schema")
ODD_OUTPUT_KEYS = ("description", "optional")
OUTPUT_NAME = re.compile(rf"[A-Za-z_][A-Za-z0-9_.-]{{0,{MAX_NAME - 1}}}")


def read_inputs(root: Fields) -> tuple[Input, ...]:
    """The arguments of the tool."""
    found: dict[str, Input] = {}
    for entry in root.entries("inputs", MAX_ITEMS, "name: …"):
        given = _read_input(entry)
        if given is not None and _is_new(entry, given.name, found):
            found[given.name] = given
    return tuple(found.values())


def read_outputs(root: Fields) -> tuple[Output, ...] | None:
    """The values of its answer; None where the request says nothing about them."""
    found: dict[str, Output] = {}
    for entry in root.entries("outputs", MAX_ITEMS, "name: …"):
        given = _read_output(entry)
        if given is not None and _is_new(entry, given.name, found):
            found[given.name] = given
    if root.values.get("outputs") == []:
        root.warn("outputs", "is empty, so the answer may be anything; write what the tool gives back")
    return tuple(found.values()) or None


def parameters_of(root: Fields, inputs: tuple[Input, ...]) -> Schema:
    """The closed schema of the arguments."""
    schema = object_schema({given.name: given.schema for given in inputs}, [one.name for one in inputs if one.required])
    _check(root, "inputs", schema)
    return schema


def output_schema_of(root: Fields, outputs: tuple[Output, ...] | None) -> Schema | None:
    """The schema of the answer, every output in it required; None where the request says nothing about it."""
    if outputs is None:
        return None
    schema = object_schema({given.name: given.schema for given in outputs}, [one.name for one in outputs])
    _check(root, "outputs", schema)
    return schema


def is_argument_name(name: str) -> bool:
    """Whether Python code can name an argument so: `f(name=…)`."""
    return 0 < len(name) <= MAX_NAME and name.isascii() and name.isidentifier() and not keyword.iskeyword(name)


def _read_input(entry: Fields) -> Input | None:
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


def _input_type(entry: Fields) -> tuple[Schema, bool]:
    """The schema of an input, and whether its type says that it is optional."""
    word = read_type(entry.report, _type_place(entry), entry.values.get("type"))
    if word is None:
        return {}, False
    if word.nullable:
        entry.warn("type", f"null is for outputs; write type: {word.spelled} and leave the argument out instead")
    if word.optional:
        entry.warn("type", f"is optional by itself; write type: {word.spelled}")
    return complete(entry.report, entry.at, word, entry.values.get("schema"), asks=False), word.optional


def _is_required(entry: Fields, *, optional: bool) -> bool:
    required, marked = entry.switch("required"), entry.switch("optional")
    if required is True and (optional or marked is True):
        entry.refuse("required", "is true although the input is optional; remove one of them")
    if required is not None or marked is None:
        return required is True
    return marked is False


def _with_default(entry: Fields, schema: Schema, default: object, *, required: bool) -> Schema:
    if required:
        entry.warn("required", "has a default, so nobody needs to give it; remove one of them")
    if not accepts(schema, default):
        entry.warn("default", f"{show(default)} is not of the type of the input; correct one of them")
    return with_default(schema, default)


def _samples(entry: Fields, schema: Schema) -> tuple[object, ...]:
    found = []
    given = [((*entry.at, "example"), entry.values["example"])] if "example" in entry.values else []
    for at, sample in (*given, *entry.items("examples", MAX_ITEMS)):
        if accepts(schema, sample):
            found.append(sample)
        else:
            entry.report.warn(at, f"{show(sample)} is not of the type of the input; correct one of them")
    return tuple(found)


def _read_output(entry: Fields) -> Output | None:
    before = entry.report.refused
    _warn_of_odd_keys(entry, OUTPUT_KEYS, ODD_OUTPUT_KEYS)
    name = entry.required_text("name", "users", longest=MAX_NAME)
    if name.strip() and not OUTPUT_NAME.fullmatch(name):
        entry.refuse("name", f"{show(name)} cannot be the name of an output; use letters, digits, '_', '-' and '.'")
    word = read_type(entry.report, _type_place(entry), entry.values.get("type"))
    if word is None:
        return None
    if entry.switch("optional"):
        word = replace(word, optional=True)
    word = without_option(entry.report, entry.at, word)
    schema = complete(entry.report, entry.at, word, entry.values.get("schema"), asks=True)
    schema |= read_description(entry.report, entry.at, dict(entry.values))
    if entry.report.refused > before:
        return None
    return Output(name=name, schema=schema, is_list=word.schema.get("type") == "array")


def _type_place(entry: Fields) -> tuple[str | int, ...]:
    return (*entry.at, "type") if "type" in entry.values else entry.at


def _warn_of_odd_keys(entry: Fields, known: tuple[str, ...], odd: tuple[str, ...]) -> None:
    for name in odd:
        if name in entry.values:
            entry.warn(name, f"is read, but the format has only {', '.join(known)}")
    entry.warn_of_strangers({*known, *odd})


def _is_new(entry: Fields, name: str, found: dict[str, Input] | dict[str, Output]) -> bool:
    if name in found:
        entry.refuse("name", f"{name!r} stands twice; remove one")
    return name not in found


def _check(root: Fields, name: str, schema: Schema) -> None:
    """Refuse what no check of a call could bear: too many parts, or too deep."""
    try:
        check_schema(schema, name)
    except ToolError as error:
        root.refuse(name, error.message.removeprefix(f"{name}: "))
