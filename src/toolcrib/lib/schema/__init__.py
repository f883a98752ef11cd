"""JSON Schema 2020-12: refuse a schema that is wrong or unbounded, check values, explain refusals, fill in defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.lib.schema.check import (
    Validator,
    accepts,
    check_parameters,
    check_schema,
    compile_schema,
    fill_defaults,
    with_default,
)
from toolcrib.lib.schema.structure import any_of, bound_integers, holds_text, is_json, object_schema, type_alias

if TYPE_CHECKING:
    from toolcrib.lib.schema.check import Fault

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


def explain_problems(validator: Validator, value: object, schema: object) -> list[str]:
    """One sentence per problem that names the path, the value and the rule."""
    # Only a refusal needs the words for it.
    from toolcrib.lib.schema import explain

    return explain.explain_problems(validator, value, schema)


def schema_problems(schema: object) -> list[Fault]:
    """The place and the words of everything that is wrong with a schema; none for one that `check_schema` lets in."""
    # Only a schema that was refused needs more than the first word about it.
    from toolcrib.lib.schema import explain as problems

    return problems.schema_problems(schema)
