"""Documents of tools, as clients send them and as they lie in the store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.dialects.platform.addresses import Address, read_tool_id
from toolcrib.dialects.platform.building import build_tool
from toolcrib.dialects.platform.fields import open_document
from toolcrib.dialects.platform.stored import read_fields, read_times
from toolcrib.dialects.platform.wire import COMPUTED
from toolcrib.dialects.platform.writing import write_tool
from toolcrib.model.errors import Kind, ToolError
from toolcrib.pure.documents import MAX_DEFINITION_BYTES
from toolcrib.pure.ids import new_id, stable_id

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from toolcrib.model.bundle import Bundle
    from toolcrib.model.tool import Tool


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """What a document came to: the tool, the document as the store holds it, and what its author should know."""

    tool: Tool
    document: dict[str, object]
    warnings: tuple[str, ...] = ()


def read_tool(
    document: Mapping[str, object],
    *,
    bundle_id: str,
    slug: str,
    version: str,
    bundle: str = "",
    secrets: Collection[str] = (),
    place: str = "",
) -> Reading:
    """Read the document of a new tool; everything that is wrong with it is told in one error, `details.problems` lists it.

    `bundle` is the slug of its bundle. What the platform works out itself is accepted and left out, so that a tool can be
    written as it was read.
    """
    fields = open_document(document, place)
    address = Address(bundle_id=bundle_id, slug=slug, version=version)
    tool_id = read_tool_id(fields, new_id)
    tool = build_tool(fields, address, tool_id=tool_id, bundle=bundle, secrets=secrets, place=place)
    identity = {
        "schemaVersion": fields.values["schemaVersion"],
        "bundleID": bundle_id.lower(),
        "toolID": tool_id,
        "slug": slug,
        "version": version,
    }
    kept = {name: value for name, value in fields.values.items() if name not in COMPUTED}
    stored = {**identity, **kept, **identity}
    _check_size(stored, place)
    return Reading(tool=tool, document=stored, warnings=tool.warnings)


def read_stored_tool(data: bytes, *, bundle: Bundle, place: str) -> Reading:
    """Read a document of the store, which a person may have changed; raises ToolError that says what is broken.

    One that names no id has the one that its address gives it everywhere.
    """
    fields = read_fields(data, place)
    fields.require({"slug": '"weather"', "version": '"v1"'})
    address = Address(bundle_id=bundle.id, slug=fields.text("slug"), version=fields.text("version"))
    tool_id = read_tool_id(fields, lambda: stable_id("tool", address.bundle_id, address.slug, address.version))
    times = read_times(fields)
    tool = build_tool(fields, address, tool_id=tool_id, bundle=bundle.slug, place=place)
    return Reading(tool=tool, document={**fields.values, "toolID": tool_id, **times}, warnings=tool.warnings)


def _check_size(document: dict[str, object], place: str) -> None:
    size = len(write_tool(document))
    if size > MAX_DEFINITION_BYTES:
        message = (
            f"{place or 'tool'}: has {size} bytes as it is stored, the limit is {MAX_DEFINITION_BYTES}; shorten it"
        )
        raise ToolError(Kind.LIMIT_EXCEEDED, message, details={"size": size, "limit": MAX_DEFINITION_BYTES})
