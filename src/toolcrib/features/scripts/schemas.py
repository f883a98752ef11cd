"""Read the arguments and results that a script declares: `parameters` and `input_schema`, `outputs` and `output_schema`, as JSON Schema.

Arguments that are declared twice, as a list of parameters and as a schema, must satisfy both. Problems are reported at
the line where the schema is written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.features.scripts.metadata import warn_of_unknown_keys
from toolcrib.lib.positions import SHOWN
from toolcrib.lib.schema import accepts, check_parameters, check_schema, with_default
from toolcrib.lib.schema_structure import any_of, object_schema, parse_pointer, type_alias
from toolcrib.lib.yaml import name_type
from toolcrib.model.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolcrib.features.scripts.metadata import MetadataReport
    from toolcrib.lib.positions import Steps

    Schema = dict[str, object]
    Check = Callable[[object, str], None]

PLACE = "schema"
# Keywords that constrain a value independently of other keywords.
ANNOTATIONS = frozenset({"default", "deprecated", "description", "examples", "title"})
INDEPENDENT = ANNOTATIONS | frozenset(
    {"const", "enum", "exclusiveMaximum", "exclusiveMinimum", "format", "maxItems", "maxLength", "maximum", "minItems"}
    | {"minLength", "minimum", "multipleOf", "pattern", "type", "uniqueItems"}
)
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
# Each constraint applies to one type only; on another type it has no effect, which is worth a warning.
BINDS = {
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), NUMBERS),
    **dict.fromkeys(("minLength", "maxLength", "pattern", "format"), frozenset({"string"})),
    **dict.fromkeys(("items", "minItems", "maxItems", "uniqueItems"), frozenset({"array"})),
    **dict.fromkeys(("properties", "additionalProperties"), frozenset({"object"})),
}
SCHEMA_WORDS = frozenset(
    {"$ref", "$schema", "$defs", "allOf", "anyOf", "const", "enum", "items", "oneOf", "properties", "required"}
)


@dataclass(frozen=True, kw_only=True, slots=True)
class DeclaredSchemas:
    """What the author declares; None where nothing is said. `names` are those of the arguments."""

    inputs: Schema | None
    outputs: Schema | None

    @property
    def names(self) -> frozenset[str] | None:
        """The names of the declared arguments; None if none are declared."""
        properties = None if self.inputs is None else self.inputs.get("properties")
        return frozenset(properties) if isinstance(properties, dict) else None

    @property
    def sure(self) -> frozenset[str]:
        """The names that every call has: required ones, and those with a default."""
        schema = self.inputs or {}
        properties, required = schema.get("properties"), schema.get("required")
        entries = properties.items() if isinstance(properties, dict) else ()
        filled = {name for name, entry in entries if isinstance(entry, dict) and "default" in entry}
        return frozenset(filled | set(required if isinstance(required, list) else ()))


def read_schemas(report: MetadataReport, at: Steps, written: Mapping[str, object]) -> DeclaredSchemas:
    """The schemas that the tool at the top of a file, or one of its actions, declares."""
    return DeclaredSchemas(inputs=_inputs(report, at, written), outputs=_outputs(report, at, written))


def checked(
    report: MetadataReport, at: Steps, schema: Schema, check: Check = check_schema, *, only_names: bool = False
) -> Schema | None:
    """The schema, or None if it is refused; `only_names` says that its author wrote nothing but its properties."""
    try:
        check(schema, PLACE)
    except ToolError as error:
        pointer = str(error.details.get("pointer", "#"))
        steps = tuple(int(step) if step.isdigit() else step for step in parse_pointer(pointer))
        steps = steps[1:] if only_names else steps
        problem = error.message.removeprefix(f"{PLACE}: ").removeprefix(f"{pointer}: ")
        report.refuse((*at, *steps), problem if ";" in problem else f"{problem}; correct it")
        return None
    return schema


def merge_schemas(listed: Mapping[str, object], given: Mapping[str, object]) -> Schema:
    """One closed schema that accepts what both accept; a name that only one of them declares is judged by that one."""
    ours, theirs = _properties(listed), _properties(given)
    properties = {name: _merge(ours[name], theirs[name]) if name in theirs else ours[name] for name in ours}
    properties |= {name: schema for name, schema in theirs.items() if name not in ours}
    return {
        **given,
        "properties": properties,
        "required": list(dict.fromkeys((*_required(given), *_required(listed)))),
        "additionalProperties": False,
    }


def read_parameter_list(report: MetadataReport, at: Steps, value: object) -> Schema | None:
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


def translate_types(
    report: MetadataReport, at: Steps, schema: Mapping[str, object], given: Steps | None = None
) -> Schema:
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


def _merge(ours: object, theirs: object) -> object:
    if not isinstance(ours, dict) or not isinstance(theirs, dict):
        return {"allOf": [ours, theirs]}
    shared = ours.keys() & theirs.keys()
    is_independent = ours.keys() <= INDEPENDENT or theirs.keys() <= INDEPENDENT
    if is_independent and all(name in ANNOTATIONS or ours[name] == theirs[name] for name in shared):
        return {**theirs, **ours}
    # Defaults are looked for at the top of a property.
    notes = {name: value for name, value in {**theirs, **ours}.items() if name in ANNOTATIONS}
    return {**notes, "allOf": [_bare(ours), _bare(theirs)]}


def _bare(schema: Schema) -> Schema:
    return {name: value for name, value in schema.items() if name not in ANNOTATIONS}


def _properties(schema: Mapping[str, object]) -> dict[str, object]:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _required(schema: Mapping[str, object]) -> list[str]:
    required = schema.get("required")
    return required if isinstance(required, list) else []


def _name(report: MetadataReport, at: Steps, entry: object) -> str:
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


def _read_parameter(report: MetadataReport, at: Steps, entry: dict[str, object]) -> Schema | None:
    warn_of_unknown_keys(report, at, entry, KEYS)
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


def _type(report: MetadataReport, at: Steps, written: object) -> Schema | None:
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


def _warn_of_idle_constraints(report: MetadataReport, at: Steps, entry: Mapping[str, object], schema: Schema) -> None:
    kinds = schema.get("type")
    known = {kinds} if isinstance(kinds, str) else set(kinds) if isinstance(kinds, list) else JSON_TYPES
    for word, bound in BINDS.items():
        if word in entry and known.isdisjoint(bound):
            report.warn((*at, word), f"binds nothing of type {' or '.join(sorted(known))}; remove it")


def _with_default(report: MetadataReport, at: Steps, entry: Mapping[str, object], schema: Schema) -> Schema:
    if "default" not in entry:
        return schema
    default = entry["default"]
    if entry.get("required") is True:
        report.warn((*at, "required"), "has a default, so a call may omit it; write required: false")
    if default is None:
        return with_default(schema, None)
    if not accepts(schema, default):
        report.warn((*at, "default"), f"{default!r:.{SHOWN}} does not fit the parameter itself; correct one of them")
    return {**schema, "default": default}


def _inputs(report: MetadataReport, at: Steps, written: Mapping[str, object]) -> Schema | None:
    listed = given = None
    if "parameters" in written:
        listed = read_parameter_list(report, (*at, "parameters"), written["parameters"])
    if "input_schema" in written:
        given = _schema(report, (*at, "input_schema"), written["input_schema"], check_parameters)
    if listed is None or given is None:
        return given if listed is None else listed
    merged = merge_schemas(listed, given)
    _warn_of_differences(report, at, ("parameters", "input_schema"), (listed, given))
    return checked(report, (*at, "input_schema"), merged, check_parameters)


def _outputs(report: MetadataReport, at: Steps, written: Mapping[str, object]) -> Schema | None:
    described = given = None
    if "outputs" in written:
        described = _described(report, (*at, "outputs"), written["outputs"])
    if "output_schema" in written:
        given = _schema(report, (*at, "output_schema"), written["output_schema"], check_schema)
    if described is not None and given is not None:
        _warn_of_differences(report, at, ("outputs", "output_schema"), (described, given))
    return described if given is None else given


def _schema(report: MetadataReport, at: Steps, value: object, check: Check) -> Schema | None:
    if not isinstance(value, dict):
        report.refuse(at, f"must be a JSON Schema, not {name_type(value)}; write type: object and its properties")
        return None
    return checked(report, at, value, check)


def _described(report: MetadataReport, at: Steps, value: object) -> Schema | None:
    """The outputs as a schema: they are one, or they name the parts of the answer."""
    if isinstance(value, list):
        listed = read_parameter_list(report, at, value)
        return None if listed is None else {name: listed[name] for name in listed if name != "additionalProperties"}
    if not isinstance(value, dict):
        report.refuse(at, f"must be a schema, or a mapping of names, not {name_type(value)}; write type: object")
        return None
    if isinstance(value.get("type"), str | list) or not SCHEMA_WORDS.isdisjoint(value):
        return checked(report, at, translate_types(report, at, value))
    properties = {name: {"type": entry} if isinstance(entry, str) else entry for name, entry in value.items()}
    schema = object_schema(properties, closed=False)
    return checked(report, at, translate_types(report, at, schema, given=at), only_names=True)


def _warn_of_differences(
    report: MetadataReport, at: Steps, fields: tuple[str, str], schemas: tuple[Schema, Schema]
) -> None:
    names = [_names(schema) for schema in schemas]
    for mine, other in ((0, 1), (1, 0)):
        only = [name for name in names[mine] if name not in names[other]]
        if only:
            where = fields[other]
            report.warn((*at, fields[mine]), f"{', '.join(only[:20])} not in {where}; declare the same names in both")


def _names(schema: Schema) -> list[str]:
    properties = schema.get("properties")
    return list(properties) if isinstance(properties, dict) else []
