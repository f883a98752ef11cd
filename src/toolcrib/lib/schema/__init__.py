"""JSON Schema 2020-12: refuse a schema that is wrong or unbounded, check values, explain refusals, fill in defaults."""

from __future__ import annotations

from toolcrib.lib.schema.check import (
    Validator,
    accepts,
    check_parameters,
    check_schema,
    compile_schema,
    fill_defaults,
    with_default,
)
from toolcrib.lib.schema.explain import explain_problems, schema_problems
from toolcrib.lib.schema.structure import any_of, bound_integers, holds_text, is_json, object_schema, type_alias

__all__ = [
    "Validator",
    "accepts",
    "any_of",
    "bound_integers",
    "check_parameters",
    "check_schema",
    "compile_schema",
    "explain_problems",
    "fill_defaults",
    "holds_text",
    "is_json",
    "object_schema",
    "schema_problems",
    "type_alias",
    "with_default",
]
