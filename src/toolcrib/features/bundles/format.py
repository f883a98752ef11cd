"""Read documents of bundles and tools, from clients and from the store.

A person may edit a stored file: it is JSON with comments, and problems name their line.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from toolcrib.features.bundles.definition import (
    BUNDLE_COMPUTED,
    COMPUTED,
    MAX_DISPLAY_NAME,
    StoredAddress,
    build_tool,
    check_built_in,
    check_id,
    check_slug_of,
    read_tool_id,
    refuse_other,
)
from toolcrib.lib.document_fields import Fields, Report, open_document
from toolcrib.lib.document_format import SCHEMA_VERSION, read_time, write_tool
from toolcrib.lib.documents import MAX_DEFINITION_BYTES, check_plain, read_jsonc, without_comments
from toolcrib.lib.names import new_id, stable_id
from toolcrib.lib.positions import json_lines, line_of_fault, show
from toolcrib.model.bundle import Bundle
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from toolcrib.lib.positions import Steps
    from toolcrib.model.tool import Tool

REQUIRED = {"slug": '"weather"', "displayName": '"Weather"', "isEnabled": "true"}
OPTIONAL = ("description", "bundleID", "isBuiltIn")
MAX_DESCRIPTION = 10_000
# The limit of a definition plus times and comments.
MAX_STORED_BYTES = 1_000_000
# A line break, two spaces for each of 64 levels, and a character.
LONGEST_LINE = 130
TIMES = ("createdAt", "modifiedAt", "toggledAt", "softDeletedAt")


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadDocument:
    """A document that was read: the tool, the document as it is stored, and warnings."""

    tool: Tool
    document: dict[str, object]
    warnings: tuple[str, ...] = ()


def read_bundle(document: Mapping[str, object], *, bundle_id: str) -> Bundle:
    """Read the document of a bundle; computed keys are accepted and ignored."""
    fields = open_document(document)
    for name, meant in fields.unknown_keys((*REQUIRED, *OPTIONAL, *BUNDLE_COMPUTED)):
        fields.refuse(
            name, f"is not a key of a bundle; write {meant}" if meant else "is not a key of a bundle; remove it"
        )
    return _read(fields, bundle_id, schema_version=SCHEMA_VERSION, times={})


def read_stored_bundle(data: bytes, *, bundle_id: str, place: str = "") -> Bundle:
    """Read a stored document, which a person may have edited; raises ToolError for a broken one."""
    fields = read_fields(data, place or f"bundles/{bundle_id}/bundle.json")
    return _read(fields, bundle_id, schema_version=fields.text("schemaVersion"), times=read_times(fields))


def _read(document: Fields, bundle_id: str, *, schema_version: str, times: Mapping[str, str]) -> Bundle:
    check_id(document, "bundleID", bundle_id)
    refuse_other(document, "bundleID", bundle_id)
    document.require(REQUIRED)
    check_built_in(document)
    slug = document.text("slug")
    if isinstance(document.values.get("slug"), str):
        check_slug_of(document, slug)
    bundle = Bundle(
        id=bundle_id.lower(),
        slug=slug,
        display_name=document.text("displayName", may_be_empty=False, longest=MAX_DISPLAY_NAME),
        description=document.text("description", longest=MAX_DESCRIPTION),
        enabled=document.switch("isEnabled") is True,
        schema_version=schema_version,
        created_at=times.get("createdAt", ""),
        modified_at=times.get("modifiedAt", ""),
        toggled_at=times.get("toggledAt", ""),
        soft_deleted_at=times.get("softDeletedAt", ""),
    )
    document.report.raise_problems()
    return bundle


def read_tool(
    document: Mapping[str, object],
    *,
    bundle_id: str,
    slug: str,
    version: str,
    bundle: str = "",
    secrets: Collection[str] = (),
    place: str = "",
) -> ReadDocument:
    """Read the document of a new tool; one error has all problems, listed in `details.problems`.

    `bundle` is the slug of its bundle. Computed keys are accepted and ignored, so that a tool can be written as it was read.
    """
    fields = open_document(document, place)
    address = StoredAddress(bundle_id=bundle_id, slug=slug, version=version)
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
    return ReadDocument(tool=tool, document=stored, warnings=tool.warnings)


def read_stored_tool(data: bytes, *, bundle: Bundle, place: str) -> ReadDocument:
    """Read a stored document, which a person may have edited; raises ToolError for a broken one.

    Without an id it gets a stable one derived from its address.
    """
    fields = read_fields(data, place)
    fields.require({"slug": '"weather"', "version": '"v1"'})
    address = StoredAddress(bundle_id=bundle.id, slug=fields.text("slug"), version=fields.text("version"))
    tool_id = read_tool_id(fields, lambda: stable_id("tool", address.bundle_id, address.slug, address.version))
    times = read_times(fields)
    tool = build_tool(fields, address, tool_id=tool_id, bundle=bundle.slug, place=place)
    return ReadDocument(tool=tool, document={**fields.values, "toolID": tool_id, **times}, warnings=tool.warnings)


def _check_size(document: dict[str, object], place: str) -> None:
    # Writing it on many lines takes ten times as long as on one, and makes each character at most a line.
    if len(json.dumps(document)) * LONGEST_LINE <= MAX_DEFINITION_BYTES:
        return
    size = len(write_tool(document))
    if size > MAX_DEFINITION_BYTES:
        message = (
            f"{place or 'tool'}: has {size} bytes as it is stored, the limit is {MAX_DEFINITION_BYTES}; shorten it"
        )
        raise ToolError(Kind.LIMIT_EXCEEDED, message, details={"size": size, "limit": MAX_DEFINITION_BYTES})


def read_fields(data: bytes, place: str) -> Fields:
    """Parse a stored document to its fields."""
    try:
        document = read_jsonc(data, place, max_bytes=MAX_STORED_BYTES)
        check_plain(document, place=place)
    except ToolError as error:
        raise _with_line(error, data, place) from None
    if isinstance(document, dict):
        return Fields(Report(place, _Lines(data, place).line), document)
    message = f"{place}:1: must be a JSON object, not {show(document)}; write it between {{ and }}"
    raise ToolError(Kind.VALIDATION, message, details={"line": 1})


def read_times(document: Fields) -> dict[str, str]:
    """The times in the document, normalized."""
    times: dict[str, str] = {}
    for name in TIMES:
        value = document.values.get(name) or ""
        time = read_time(value) if value else ""
        if time is None:
            document.refuse(name, f'{show(value)} is not a time; write it like "2024-05-14T13:44:00Z", or remove it')
        elif time:
            times[name] = time
    return times


def _with_line(error: ToolError, data: bytes, place: str) -> ToolError:
    """Add the line of the fault to an error that has none."""
    if error.kind is not Kind.VALIDATION or "line" in error.details:
        return error
    line = line_of_fault(without_comments(data, place, max_bytes=MAX_STORED_BYTES).encode())
    return error.replace(reason=f"{place}:{line}{error.reason.removeprefix(place)}", details={"line": line})


class _Lines:
    """Line numbers of keys in a file, computed on first use."""

    def __init__(self, data: bytes, place: str) -> None:
        self._data = data
        self._place = place

    @cached_property
    def _lines(self) -> dict[Steps, int]:
        return {(): 1, **json_lines(without_comments(self._data, self._place, max_bytes=MAX_STORED_BYTES))}

    def line(self, at: Steps) -> int:
        """The line of a key or an item, or of the nearest enclosing one."""
        while at not in self._lines:
            at = at[:-1]
        return self._lines[at]
