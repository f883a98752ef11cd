"""Whether what a request comes to can be checked at all: its schemas, and the words that a model reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.builder.gate.nouns import Check, complain
from toolcrib.pure.schema import schema_problems
from toolcrib.pure.schema.graph import write_pointer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolcrib.builder.gate.nouns import Complaint
    from toolcrib.model.toolrequest import ToolRequest


def check_schemas(request: ToolRequest) -> list[Complaint]:
    """What is wrong with the request itself; whoever makes the tool cannot cure that."""
    return [complain(Check.SCHEMA, f"the request {text}") for text in _problems(request)]


def _problems(request: ToolRequest) -> Iterator[str]:
    if not request.description.strip():
        yield "has no description; write what the tool does"
    for given in request.inputs:
        if not given.description.strip():
            yield f"has no description for the input {given.name}; write what it means"
    if request.parameters.get("type") != "object" or request.parameters.get("additionalProperties") is not False:
        yield 'leaves its inputs open; their schema says "type": "object" and "additionalProperties": false'
    for what, schema in (("inputs", request.parameters), ("outputs", request.output_schema)):
        for place, problem in () if schema is None else schema_problems(schema):
            yield f"has {what} that cannot be checked: {write_pointer(place)}: {problem}; make them simpler"
