"""The schemas of a document: what is refused in them, each problem at its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.dialects.platform.report import show
from toolcrib.pure.schema import schema_problems

if TYPE_CHECKING:
    from collections.abc import Collection

    from toolcrib.dialects.platform.fields import Fields

OBJECT = '"type": "object"'


def read_arguments(document: Fields, name: str, secrets: Collection[str]) -> dict[str, object]:
    """The schema of the arguments, which are always an object, none of them named like a secret."""
    schema = read_schema(document, name)
    if schema is None:
        return {}
    _refuse_secrets(document, name, schema, secrets)
    if "type" not in schema:
        document.warn(name, f"does not say that the arguments are an object; write {OBJECT}")
        return {"type": "object", **schema}
    if schema["type"] != "object":
        document.refuse(name, f"the arguments are an object, not {show(schema['type'])}; write {OBJECT}")
    return schema


def read_schema(document: Fields, name: str) -> dict[str, object] | None:
    """The schema that a key holds; None if there is none or it is refused."""
    schema = document.part(name)
    if schema is None:
        return None
    problems = schema_problems(schema.values)
    for place, problem in problems:
        at = (*schema.at, *(int(step) if step.isdecimal() else step for step in place))
        document.report.refuse(at, problem if ";" in problem else f"{problem}; correct it")
    return None if problems else dict(schema.values)


def _refuse_secrets(document: Fields, name: str, schema: dict[str, object], secrets: Collection[str]) -> None:
    properties = schema.get("properties")
    for argument in properties if isinstance(properties, dict) else ():
        if argument in secrets:
            at = (*document.at, name, "properties", argument)
            document.report.refuse(at, "is the name of a secret; choose another name for the argument")
