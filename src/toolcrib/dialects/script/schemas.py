"""What a tool takes and gives: `parameters` and `input_schema`, `outputs` and `output_schema`, as JSON Schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.dialects.script.checking import checked
from toolcrib.dialects.script.merging import merge_schemas
from toolcrib.dialects.script.metadata import name_type
from toolcrib.dialects.script.parameters import read_parameter_list, translate_types
from toolcrib.pure.schema import check_parameters, check_schema, object_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.dialects.script.checking import Check
    from toolcrib.dialects.script.metadata import Report, Steps

    Schema = dict[str, object]

SCHEMA_WORDS = frozenset(
    {"$ref", "$schema", "$defs", "allOf", "anyOf", "const", "enum", "items", "oneOf", "properties", "required"}
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Declared:
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


def read_schemas(report: Report, at: Steps, written: Mapping[str, object]) -> Declared:
    """The schemas that the tool at the top of a file, or one of its actions, declares."""
    return Declared(inputs=_inputs(report, at, written), outputs=_outputs(report, at, written))


def _inputs(report: Report, at: Steps, written: Mapping[str, object]) -> Schema | None:
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


def _outputs(report: Report, at: Steps, written: Mapping[str, object]) -> Schema | None:
    described = given = None
    if "outputs" in written:
        described = _described(report, (*at, "outputs"), written["outputs"])
    if "output_schema" in written:
        given = _schema(report, (*at, "output_schema"), written["output_schema"], check_schema)
    if described is not None and given is not None:
        _warn_of_differences(report, at, ("outputs", "output_schema"), (described, given))
    return described if given is None else given


def _schema(report: Report, at: Steps, value: object, check: Check) -> Schema | None:
    if not isinstance(value, dict):
        report.refuse(at, f"must be a JSON Schema, not {name_type(value)}; write type: object and its properties")
        return None
    return checked(report, at, value, check)


def _described(report: Report, at: Steps, value: object) -> Schema | None:
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


def _warn_of_differences(report: Report, at: Steps, fields: tuple[str, str], schemas: tuple[Schema, Schema]) -> None:
    names = [_names(schema) for schema in schemas]
    for mine, other in ((0, 1), (1, 0)):
        only = [name for name in names[mine] if name not in names[other]]
        if only:
            where = fields[other]
            report.warn((*at, fields[mine]), f"{', '.join(only[:20])} not in {where}; declare the same names in both")


def _names(schema: Schema) -> list[str]:
    properties = schema.get("properties")
    return list(properties) if isinstance(properties, dict) else []
