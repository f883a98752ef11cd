"""From the keys of a document to a Tool, or to everything that is wrong with it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from toolcrib.dialects.platform.addresses import check_address
from toolcrib.dialects.platform.report import show
from toolcrib.dialects.platform.requests import read_implementation
from toolcrib.dialects.platform.schemas import read_arguments, read_schema
from toolcrib.dialects.platform.versions import SCHEMA_VERSION, remark_on
from toolcrib.dialects.platform.wire import COMPUTED
from toolcrib.model.limits import ONCE, Limits
from toolcrib.model.tool import MAX_NAME, Http, Origin, SideEffects, Tool

if TYPE_CHECKING:
    from collections.abc import Collection

    from toolcrib.dialects.platform.addresses import Address
    from toolcrib.dialects.platform.fields import Fields
    from toolcrib.model.tool import Registered

# Each key that every tool has, with what could stand there.
REQUIRED = {
    "schemaVersion": f'"{SCHEMA_VERSION}"',
    "displayName": '"Weather report"',
    "type": '"http"',
    "isEnabled": "true",
    "argSchema": '{"type": "object"}',
    "outputSchema": "{}",
    "impl": '{"urlTemplate": "https://…"}',
}
IDENTITY = ("schemaVersion", "bundleID", "toolID", "slug", "version")
OPTIONAL = ("description", "isBuiltIn", "tags", "preProcessors")
KNOWN = frozenset({*REQUIRED, *IDENTITY, *OPTIONAL, *COMPUTED})
MAX_DISPLAY_NAME = 256
MAX_TAGS = 50
TAG = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]*")
READS = frozenset({"GET", "HEAD"})
REPEATABLE = READS | {"PUT", "DELETE"}


def build_tool(
    document: Fields,
    address: Address,
    *,
    tool_id: str,
    bundle: str,
    secrets: Collection[str] = (),
    place: str = "",
) -> Tool:
    """The tool that the document describes; raises one ToolError for all that is wrong with it."""
    check_address(document, address)
    document.require(REQUIRED)
    check_schema_version(document)
    check_built_in(document)
    document.switch("isEnabled")
    description = _description(document)
    display_name = document.text("displayName", may_be_empty=False, longest=MAX_DISPLAY_NAME)
    parameters = read_arguments(document, "argSchema", secrets)
    output_schema = read_schema(document, "outputSchema")
    run = read_implementation(document, parameters)
    tags = _tags(document)
    metadata = _metadata(document)
    document.warn_of_strangers(KNOWN)
    document.report.raise_problems()
    methods = _methods(run)
    return Tool(
        id=tool_id,
        name=address.slug,
        version=address.version,
        bundle=bundle,
        display_name=display_name,
        description=description,
        parameters=parameters,
        output_schema=output_schema or None,
        run=replace(run, bundle=address.bundle_id) if isinstance(run, Http) else run,
        source_type=str(document.values["type"]),
        side_effects=_side_effects(methods),
        idempotent=bool(methods) and methods <= REPEATABLE,
        requires=frozenset({"net.http"} if isinstance(run, Http) else ()),
        limits=_limits(run),
        tags=tags,
        metadata=metadata,
        origin=Origin(place=place) if place else None,
        warnings=document.report.warnings,
    )


def check_schema_version(document: Fields) -> None:
    """Warn of a version that is not ours; any text is taken."""
    version = document.text("schemaVersion", may_be_empty=False)
    if version.strip() and (remark := remark_on(version)):
        document.warn("schemaVersion", f"{show(version)} {remark}")


def check_built_in(document: Fields) -> None:
    """Refuse a document that passes itself off as part of Toolcrib."""
    if document.switch("isBuiltIn"):
        document.refuse("isBuiltIn", "only what comes with Toolcrib is built in; write false, or leave it out")


def _description(document: Fields) -> str:
    description = document.text("description")
    if not description.strip() and isinstance(document.values.get("description", ""), str):
        document.warn("description", "says nothing; write what the tool does, for models choose it by that")
    return description


def _tags(document: Fields) -> tuple[str, ...]:
    tags: list[str] = []
    for index, tag in enumerate(document.items("tags", at_most=MAX_TAGS)):
        at = (*document.at, "tags", index)
        if not isinstance(tag, str) or TAG.fullmatch(tag) is None or len(tag) > MAX_NAME:
            rule = f"use up to {MAX_NAME} ASCII letters, digits, '_' and '-', with a letter or '_' first"
            document.report.refuse(at, f"{show(tag)} is no tag; {rule}")
        elif tag in tags:
            document.report.refuse(at, f"{show(tag)} stands there twice; remove one")
        else:
            tags.append(tag)
    return tuple(tags)


def _metadata(document: Fields) -> dict[str, object]:
    """What counts as part of the tool although nothing here acts on it."""
    steps = document.items("preProcessors")
    if not steps:
        return {}
    document.warn("preProcessors", "are kept and not carried out; prepare the arguments before the call")
    return {"preProcessors": steps}


def _methods(run: Registered | Http) -> frozenset[str]:
    return frozenset(call.method for call in run.calls) if isinstance(run, Http) else frozenset()


def _side_effects(methods: frozenset[str]) -> SideEffects | None:
    if not methods:
        return None
    return SideEffects.READ_ONLY if methods <= READS else SideEffects.WRITES


def _limits(run: Registered | Http) -> Limits:
    """What repeats a request is the request itself; the call as a whole is made once."""
    if not isinstance(run, Http):
        return Limits(retry=ONCE)
    return Limits(timeout_ms=sum(call.timeout_ms for call in run.calls), retry=ONCE)
