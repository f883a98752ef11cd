"""Build a Tool from its document, and serialize bundles and tools for clients."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolcrib.features.bundles.fields import read_implementation
from toolcrib.features.sql_tools.description import capabilities_of, side_effects_of
from toolcrib.features.sql_tools.rows import describe_output
from toolcrib.lib.document_fields import Fields
from toolcrib.lib.document_format import SCHEMA_VERSION, bundle_document, remark_on
from toolcrib.lib.icons import ICONS, read_icons
from toolcrib.lib.names import is_uuid7
from toolcrib.lib.positions import show
from toolcrib.lib.schema_problems import schema_problems
from toolcrib.model.bundle import Owner
from toolcrib.model.tool import (
    MAX_CALLS_KEY,
    MAX_CALLS_PER_MINUTE,
    MAX_NAME,
    ONCE,
    READING_METHODS,
    REPEATABLE_METHODS,
    Http,
    Limits,
    Origin,
    SideEffects,
    Sql,
    Tool,
    slug_problem,
    version_problem,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from toolcrib.features.bundles.fields import Implementation
    from toolcrib.model.bundle import Bundle, Found, Kept

SAMPLE_ID = "018faf50-b7b6-7a01-9a05-a22a6e0af101"
OBJECT = '"type": "object"'
# Computed keys: a client may send them back with a document that it has read; they are ignored.
COMPUTED = frozenset(
    {"id", "bundleSlug", "effectiveEnabled", "disabledReason", "source", "createdAt", "modifiedAt", "toggledAt"}
    | {"softDeletedAt", "callCount", "lastCalledAt", "warnings", "match", "score", "digest"}
)
ADDRESS = frozenset({"bundleID", "toolID", "slug", "version"})
BUNDLE_COMPUTED = frozenset({"source", "schemaVersion", "createdAt", "modifiedAt", "toggledAt", "softDeletedAt"})

# Each required key with an example value.
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
OPTIONAL = ("description", "isBuiltIn", "tags", "preProcessors", MAX_CALLS_KEY, ICONS)
KNOWN = frozenset({*REQUIRED, *IDENTITY, *OPTIONAL, *COMPUTED})
MAX_DISPLAY_NAME = 256
MAX_TAGS = 50
TAG = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]*")


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredAddress:
    """The address of a stored tool."""

    bundle_id: str
    slug: str
    version: str


def check_address(document: Fields, address: StoredAddress) -> None:
    """Refuse an invalid address, and a document with a different one."""
    check_id(document, "bundleID", address.bundle_id)
    check_slug_of(document, address.slug)
    if problem := version_problem(address.version):
        document.refuse("version", f"{show(address.version)}: {problem}")
    refuse_other(document, "bundleID", address.bundle_id)
    refuse_other(document, "slug", address.slug)
    refuse_other(document, "version", address.version)


def check_id(document: Fields, name: str, id_: object) -> None:
    """Refuse an id that is not a UUID of version 7."""
    if not is_uuid7(id_):
        document.refuse(name, f'{show(id_)} is not a UUID of version 7; write one such as "{SAMPLE_ID}"')


def check_slug_of(document: Fields, slug: str) -> None:
    """Refuse an invalid slug."""
    if problem := slug_problem(slug):
        document.refuse("slug", f"{show(slug)}: {problem}")


def read_tool_id(document: Fields, otherwise: Callable[[], str]) -> str:
    """The id under `toolID` or `id`, else the result of `otherwise`."""
    written = [(name, document.values[name]) for name in ("toolID", "id") if name in document]
    for name, id_ in written:
        check_id(document, name, id_)
    ids = {str(id_).lower() for _, id_ in written}
    if len(ids) > 1:
        document.refuse("id", "differs from toolID; remove one of the two")
    return ids.pop() if ids else otherwise()


def refuse_other(document: Fields, name: str, expected: str) -> None:
    """Refuse a document whose bundle, slug or version differs from its address."""
    value = document.values.get(name, expected)
    # Ids are case-insensitive.
    is_same = value == expected or (name == "bundleID" and str(value).lower() == expected.lower())
    if not is_same:
        document.refuse(name, f"{show(value)} differs from {show(expected)}, its address; write that, or leave it out")


def read_arguments(document: Fields, name: str, secrets: Collection[str]) -> dict[str, object]:
    """The schema of the arguments: an object, without properties named like a secret."""
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
    """The schema under a key; None if it is absent or refused."""
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


def build_tool(
    document: Fields,
    address: StoredAddress,
    *,
    tool_id: str,
    bundle: str,
    secrets: Collection[str] = (),
    place: str = "",
) -> Tool:
    """Build the tool; raises one ToolError for all problems of the document."""
    check_address(document, address)
    document.require(_samples(document))
    check_schema_version(document)
    check_built_in(document)
    document.switch("isEnabled")
    description = _description(document)
    display_name = document.text("displayName", may_be_empty=False, longest=MAX_DISPLAY_NAME)
    parameters = read_arguments(document, "argSchema", secrets)
    output_schema = read_schema(document, "outputSchema")
    run = read_implementation(document, parameters, secrets)
    tags = _tags(document)
    metadata = _metadata(document)
    rate = _rate(document)
    document.warn_of_unknown_keys(KNOWN)
    document.report.raise_problems()
    if isinstance(run, Sql):
        output_schema = output_schema or describe_output(run)
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
        side_effects=_side_effects(run),
        idempotent=_is_idempotent(run),
        requires_confirmation=isinstance(run, Sql) and run.write and run.confirm,
        requires=_capabilities(run),
        limits=_limits(run, rate),
        tags=tags,
        metadata=metadata,
        origin=Origin(place=place) if place else None,
        warnings=tuple(document.report.warnings),
    )


def _samples(document: Fields) -> dict[str, str]:
    """The required keys with example values; that of `impl` fits the type."""
    if document.values.get("type") == "sql":
        return {**REQUIRED, "impl": '{"database": "shop.sqlite", "statement": "SELECT …"}'}
    if document.values.get("type") == "go":
        return {**REQUIRED, "impl": '{"goFunc": "the key of a registered function"}'}
    return REQUIRED


def check_schema_version(document: Fields) -> None:
    """Warn of an unknown schema version; any string is accepted."""
    version = document.text("schemaVersion", may_be_empty=False)
    if version.strip() and (remark := remark_on(version)):
        document.warn("schemaVersion", f"{show(version)} {remark}")


def check_built_in(document: Fields) -> None:
    """Refuse a document that claims to be built in."""
    if document.switch("isBuiltIn"):
        document.refuse("isBuiltIn", "only what comes with Toolcrib is built in; write false, or leave it out")


def _description(document: Fields) -> str:
    description = document.text("description")
    if not description.strip() and isinstance(document.values.get("description", ""), str):
        document.warn("description", "is empty; write what the tool does, because models choose tools by it")
    return description


def _tags(document: Fields) -> tuple[str, ...]:
    tags: list[str] = []
    for index, tag in enumerate(document.items("tags", at_most=MAX_TAGS)):
        at = (*document.at, "tags", index)
        if not isinstance(tag, str) or TAG.fullmatch(tag) is None or len(tag) > MAX_NAME:
            rule = f"use up to {MAX_NAME} ASCII letters, digits, '_' and '-', with a letter or '_' first"
            document.report.refuse(at, f"{show(tag)} is not a tag; {rule}")
        elif tag in tags:
            document.report.refuse(at, f"{show(tag)} is repeated; remove one")
        else:
            tags.append(tag)
    return tuple(tags)


def _metadata(document: Fields) -> dict[str, object]:
    """The icons, and keys that are stored with the tool but not used."""
    icons, problems = read_icons(document.values.get(ICONS))
    for at, problem in problems:
        document.report.warn((*document.at, *at), f"{problem}; it is not shown")
    found: dict[str, object] = {ICONS: icons} if icons else {}
    if steps := document.items("preProcessors"):
        document.warn("preProcessors", "are stored but not executed; prepare the arguments before the call")
        found["preProcessors"] = steps
    return found


def _methods(run: Http) -> frozenset[str]:
    return frozenset(call.method for call in run.calls)


def _side_effects(run: Implementation) -> SideEffects | None:
    if isinstance(run, Sql):
        return side_effects_of(run)
    if not isinstance(run, Http):
        return None
    return SideEffects.READ_ONLY if _methods(run) <= READING_METHODS else SideEffects.WRITES


def _is_idempotent(run: Implementation) -> bool:
    if isinstance(run, Sql):
        return not run.write
    return isinstance(run, Http) and _methods(run) <= REPEATABLE_METHODS


def _capabilities(run: Implementation) -> frozenset[str]:
    if isinstance(run, Sql):
        return capabilities_of(run)
    return frozenset({"net.http"} if isinstance(run, Http) else ())


def _rate(document: Fields) -> int | None:
    """How often the tool may be called in a minute, which stands at the top of the document or in `impl`."""
    written = document.values.get("impl")
    impl = Fields(document.report, written, (*document.at, "impl")) if isinstance(written, dict) else document
    if MAX_CALLS_KEY in document and impl is not document and MAX_CALLS_KEY in impl:
        impl.refuse(MAX_CALLS_KEY, "stands at the top of the document too; write it once")
    place = document if MAX_CALLS_KEY in document else impl
    if MAX_CALLS_KEY not in place:
        return None
    return place.whole(MAX_CALLS_KEY, at_least=1, at_most=MAX_CALLS_PER_MINUTE, default=60)


def _limits(run: Implementation, rate: int | None) -> Limits:
    """Retries are per request; the call as a whole is made once."""
    if isinstance(run, Sql):
        return Limits(timeout_ms=run.timeout_ms, calls_per_minute=rate, retry=ONCE)
    if not isinstance(run, Http):
        return Limits(calls_per_minute=rate, retry=ONCE)
    milliseconds = sum(call.timeout_ms for call in run.calls)
    return Limits(timeout_ms=milliseconds, calls_per_minute=rate, retry=ONCE)


def bundle_to_wire(bundle: Bundle) -> dict[str, object]:
    """A bundle as clients read it; a time that never happened is null."""
    return {
        **bundle_document(bundle),
        "isBuiltIn": bundle.built_in,
        "source": str(bundle.owner),
        "createdAt": bundle.created_at or None,
        "modifiedAt": bundle.modified_at or None,
        "toggledAt": bundle.toggled_at or None,
        "softDeletedAt": bundle.soft_deleted_at or None,
    }


def tool_to_wire(kept: Kept) -> dict[str, object]:
    """A tool as clients read it: every key of its document, and its current state.

    For a broken document only the certain keys are there. A time that never happened is null.
    """
    return {
        "schemaVersion": SCHEMA_VERSION,
        "bundleID": kept.bundle.id,
        "bundleSlug": kept.bundle.slug,
        "toolID": kept.id,
        "slug": kept.slug,
        "version": kept.version,
        **({} if kept.tool is None else _describe(kept.tool)),
        **{name: value for name, value in kept.document.items() if name not in COMPUTED | ADDRESS},
        **_state(kept),
    }


def found_to_wire(found: Found) -> dict[str, object]:
    """A search result: the tool, how it matched, and its score."""
    return {**tool_to_wire(found.kept), "match": found.tier, "score": found.score}


def _describe(tool: Tool) -> dict[str, object]:
    """The keys that a tool of any format has."""
    return {
        "displayName": tool.display_name or tool.name,
        "description": tool.description,
        "type": "sql" if isinstance(tool.run, Sql) else "http" if _makes_requests(tool) else "go",
        "argSchema": tool.parameters,
        "outputSchema": tool.output_schema or {},
        "impl": {"kind": tool.kind},
        "tags": list(tool.tags),
    }


def _makes_requests(tool: Tool) -> bool:
    """Whether calls use HTTP, by the kind of the tool or the capabilities it requires."""
    return isinstance(tool.run, Http) or tool.kind == "http" or "net.http" in tool.requires


def _state(kept: Kept) -> dict[str, object]:
    """The keys that change over time."""
    return {
        "isEnabled": kept.enabled,
        "isBuiltIn": kept.bundle.built_in,
        "effectiveEnabled": kept.usable,
        "disabledReason": kept.reason,
        "source": _source(kept),
        "createdAt": kept.created_at or None,
        "modifiedAt": kept.modified_at or None,
        "toggledAt": kept.toggled_at or None,
        "callCount": kept.calls,
        "lastCalledAt": kept.last_called_at or None,
        "warnings": list(kept.warnings),
    }


def _source(kept: Kept) -> str:
    """Its owner, or for a file the format of the file."""
    if kept.bundle.owner is Owner.FILES and kept.tool is not None and kept.tool.source_type:
        return kept.tool.source_type
    return str(kept.bundle.owner)
