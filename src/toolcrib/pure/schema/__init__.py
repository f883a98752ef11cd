"""JSON Schema 2020-12: refuse a schema that is wrong or unbounded, check values, explain refusals, fill in defaults."""

from __future__ import annotations

from toolcrib.pure.schema.check import Validator, check_parameters, check_schema, compile_schema
from toolcrib.pure.schema.defaults import accepts, fill_defaults, with_default
from toolcrib.pure.schema.words import any_of, bound_integers, holds_text, is_json, object_schema, type_alias

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
    "type_alias",
    "with_default",
]


def explain_problems(validator: Validator, value: object, schema: object) -> list[str]:
    """One sentence per problem that names the path, the value and the rule."""
    # Only a refusal needs the words for it.
    from toolcrib.pure.schema import explain

    return explain.explain_problems(validator, value, schema)
