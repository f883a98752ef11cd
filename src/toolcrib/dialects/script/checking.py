"""Schemas are checked where they are written, and what is wrong with one is told at its line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.model.errors import ToolError
from toolcrib.pure.schema import check_schema
from toolcrib.pure.schema.graph import parse_pointer

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.dialects.script.metadata import Report, Steps

    Schema = dict[str, object]
    Check = Callable[[object, str], None]

PLACE = "schema"


def checked(
    report: Report, at: Steps, schema: Schema, check: Check = check_schema, *, only_names: bool = False
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
