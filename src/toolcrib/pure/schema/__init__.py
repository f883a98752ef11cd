"""JSON Schema 2020-12: refuse a schema that is wrong or unbounded, check values, explain refusals, fill in defaults."""

from toolcrib.pure.schema.check import Validator, check_parameters, check_schema, compile_schema
from toolcrib.pure.schema.defaults import accepts, fill_defaults, with_default
from toolcrib.pure.schema.explain import explain_problems
from toolcrib.pure.schema.words import any_of, is_json, object_schema, type_alias

__all__ = [
    "Validator",
    "accepts",
    "any_of",
    "check_parameters",
    "check_schema",
    "compile_schema",
    "explain_problems",
    "fill_defaults",
    "is_json",
    "object_schema",
    "type_alias",
    "with_default",
]
