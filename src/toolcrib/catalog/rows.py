"""What an index is told of a tool."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from toolcrib.search.nouns import Row

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from toolcrib.catalog.documents import Shelved
    from toolcrib.model.tool import Tool

MAX_PARAMETERS = 100


def row_of(shelved: Shelved) -> Row:
    """The row of a tool of the store."""
    bundle = shelved.slot.partition("/")[0]
    if shelved.tool is None:
        return Row(
            id=shelved.slot,
            bundle=bundle,
            slug=shelved.slug,
            version=shelved.version,
            enabled=False,
            key=shelved.key,
            stamp=shelved.stamp,
            problem=shelved.problem,
        )
    return row_of_tool(
        shelved.tool,
        slot=shelved.slot,
        enabled=shelved.enabled,
        created_at=shelved.created_at,
        modified_at=shelved.modified_at,
        key=shelved.key,
        stamp=shelved.stamp,
    )


def row_of_tool(
    tool: Tool,
    *,
    slot: str,
    enabled: bool,
    created_at: str = "",
    modified_at: str = "",
    key: str = "",
    stamp: str = "",
) -> Row:
    """The row of any tool."""
    return Row(
        id=slot,
        bundle=slot.partition("/")[0],
        slug=tool.slug,
        version=tool.version,
        name=tool.name,
        display_name=tool.display_name,
        description=tool.description,
        tags=tool.tags,
        parameters=tuple(parameters_of(tool.parameters)),
        enabled=enabled,
        created_at=created_at,
        modified_at=modified_at,
        key=key,
        stamp=stamp,
    )


def parameters_of(schema: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """The names of arguments, given their schema, with what is said of each."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return
    for name, argument in islice(properties.items(), MAX_PARAMETERS):
        description = argument.get("description") if isinstance(argument, dict) else None
        yield str(name), description if isinstance(description, str) else ""
