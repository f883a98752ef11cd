"""Read `schema.json`: its ten required fields, the optional ones and its schemas, with problems and warnings."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from toolcrib.features.folders.report import SchemaFile
from toolcrib.lib.documents import decode, read_json
from toolcrib.lib.http_syntax import parse_hosts
from toolcrib.lib.icons import ICONS, read_icons
from toolcrib.lib.names import is_capability, near_misses
from toolcrib.lib.positions import SHOWN, line_of_fault, show, spell
from toolcrib.lib.schema import compile_schema
from toolcrib.lib.schema_problems import misfitting_choices, misfitting_defaults, schema_problems
from toolcrib.lib.schema_structure import Graph
from toolcrib.model.errors import ToolError
from toolcrib.model.tool import (
    MAX_CALLS_KEY,
    MAX_CALLS_PER_MINUTE,
    MAX_NAME,
    MODES,
    Behaviour,
    SideEffects,
    check_slug,
)

if TYPE_CHECKING:
    from enum import StrEnum

    from toolcrib.features.folders.report import FolderReport
    from toolcrib.lib.icons import Icon
    from toolcrib.lib.positions import Steps
    from toolcrib.lib.schema_structure import Place

    Part = tuple[Steps, Mapping[str, object]]

INVALID = "Invalid JSON Schema"
FORMATS = ("email", "date-time", "uri", "uuid", "ipv4", "ipv6")
KEYWORDS = frozenset(
    {"$schema", "$id", "$ref", "$defs", "$anchor", "$dynamicRef", "$dynamicAnchor", "$vocabulary", "$comment"}
    | {"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "properties", "patternProperties"}
    | {"additionalProperties", "propertyNames", "items", "prefixItems", "contains", "unevaluatedItems"}
    | {"unevaluatedProperties", "type", "enum", "const", "multipleOf", "maximum", "exclusiveMaximum", "minimum"}
    | {"exclusiveMinimum", "maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "maxContains"}
    | {"minContains", "maxProperties", "minProperties", "required", "dependentRequired", "title", "description"}
    | {"default", "deprecated", "readOnly", "writeOnly", "examples", "format", "contentEncoding"}
    | {"contentMediaType", "contentSchema", "definitions"}
)
# Keywords of older drafts, known only if "$schema" names such a draft.
OLDER = frozenset({"id", "dependencies", "additionalItems", "$recursiveRef", "$recursiveAnchor"})
CURRENT = "2020-12"
MAX_REASONS = 3
MAX_GUESSES = 20
OPTIONAL = ("requires", "hosts", "outputSchema", "timeoutMs", "limits", "tags", "displayName", ICONS)
MAX_TIMEOUT_MS = 7 * 24 * 3600 * 1000
VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+")
# Each required field with a sample value.
REQUIRED = {
    "toolId": '"my_tool"',
    "version": '"1.0.0"',
    "description": '"What the tool does"',
    "category": '"retrieval"',
    "sideEffects": '"read_only"',
    "idempotent": "true",
    "requiresConfirmation": "false",
    "allowedModes": '["text", "voice"]',
    "latencyBudgetMs": "1000",
    "parameters": '{"type": "object", "additionalProperties": false, "properties": {}}',
}
UNREAD = frozenset({"$schema", "$comment"})
Word = TypeVar("Word", bound="StrEnum")


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """The optional fields of a tool."""

    requires: frozenset[str] = frozenset()
    hosts: tuple[str, ...] | None = None
    output_schema: dict[str, object] | None = None
    timeout_ms: int | None = None
    calls_per_minute: int | None = None
    tags: tuple[str, ...] = ()
    display_name: str = ""
    icons: tuple[Icon, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Declaration:
    """The declared fields of a tool; a refused field is None or empty."""

    name: str = ""
    version: str = ""
    description: str = ""
    behaviour: Behaviour | None = None
    side_effects: SideEffects | None = None
    idempotent: bool | None = None
    requires_confirmation: bool = True
    modes: frozenset[str] = frozenset()
    latency_budget_ms: int | None = None
    parameters: dict[str, object] = field(default_factory=dict)
    options: Options = Options()


NOTHING_DECLARED = Declaration()


def read_fields(report: FolderReport, name: str, code: bytes) -> SchemaFile | None:
    """The fields of the file; None if it holds no JSON object."""
    place = f"{report.place}/{name}"
    try:
        text = decode(code, place)
        fields = read_json(text, place=place)
    except ToolError as error:
        report.refuse_error(name, error, line=line_of_fault(code))
        return None
    if isinstance(fields, dict):
        return SchemaFile(report, name, text, fields)
    report.refuse(name, 1, f"must be a JSON object, not {show(fields)}; write the fields of the tool between braces")
    return None


def read_declaration(file: SchemaFile, folder: str) -> Declaration:
    """Read every field; problems are added to the report."""
    expected = folder.replace("-", "_")
    for name, sample in {**REQUIRED, "toolId": f'"{expected}"'}.items():
        if name not in file.fields:
            file.refuse((), f'Missing required field: {name}; write "{name}": {sample}')
    _warn_of_unknown_fields(file)
    confirmed = _switch(file, "requiresConfirmation")
    return Declaration(
        name=_name(file, expected),
        version=_version(file),
        description=_description(file),
        behaviour=_word(file, "category", Behaviour),
        side_effects=_word(file, "sideEffects", SideEffects),
        idempotent=_switch(file, "idempotent"),
        requires_confirmation=confirmed is not False,
        modes=_modes(file),
        latency_budget_ms=_budget(file),
        parameters=read_parameters(file, "parameters"),
        options=read_options(file),
    )


def read_options(file: SchemaFile) -> Options:
    """Read the optional fields; refused values are omitted."""
    return Options(
        requires=_requires(file),
        hosts=_hosts(file),
        output_schema=read_schema(file, "outputSchema") or None,
        timeout_ms=_timeout(file),
        calls_per_minute=_rate(file),
        tags=_texts(file, "tags"),
        display_name=_display_name(file),
        icons=_icons(file),
    )


def read_schema(file: SchemaFile, name: str) -> dict[str, object]:
    """The schema in a field; empty if it is missing or refused."""
    if name not in file.fields:
        return {}
    schema = file.fields[name]
    if not isinstance(schema, dict):
        file.refuse((name,), f'{INVALID}: {name}: {show(schema)} is not a schema; write {{"type": "object"}}')
        return {}
    problems = schema_problems(schema)
    for place, problem in problems:
        at = (name, *_steps(schema, place))
        cure = "" if ";" in problem else "; correct it"
        file.refuse(at, f"{INVALID}: {spell(at)}: {problem}{cure}")
    return {} if problems else schema


def read_parameters(file: SchemaFile, name: str) -> dict[str, object]:
    """The schema of the arguments: a closed object with supported formats only."""
    schema = read_schema(file, name)
    written = file.fields.get(name)
    if not isinstance(written, dict):
        return {}
    if written.get("type") != "object":
        file.refuse((name, "type"), f'{INVALID}: {name}: the arguments are an object; write "type": "object"')
    if written.get("additionalProperties") is not False:
        problem = 'unknown arguments would pass; write "additionalProperties": false'
        file.refuse((name, "additionalProperties"), f"{INVALID}: {name}: {problem}")
    nodes = Graph(written).nodes.items()
    parts = [((name, *_steps(written, place)), node.schema) for place, node in nodes]
    for at, part in parts:
        _check_format(file, at, part)
    if schema:
        _check_defaults(file, name, schema)
        _warn_of_choices(file, name, schema)
        _warn_of_keywords(file, parts, schema)
        for at, part in parts:
            _warn_of_properties(file, at, part)
            _warn_of_undefined(file, at, part)
    return schema


def _check_format(file: SchemaFile, at: Steps, schema: Mapping[str, object]) -> None:
    written = schema.get("format")
    if isinstance(written, str) and written not in FORMATS:
        at = (*at, "format")
        file.refuse(at, f"{INVALID}: {spell(at)}: {show(written)} is not supported; write one of {', '.join(FORMATS)}")


def _check_defaults(file: SchemaFile, name: str, schema: dict[str, object]) -> None:
    """Refuse a default that its own schema rejects: every call that relies on it would fail."""
    for place, default, reasons in misfitting_defaults(schema):
        at, shown = (name, *_steps(schema, place)), show(default)
        told = (
            reasons[0] if reasons[0].startswith(shown) else f"{shown} is refused ({'; '.join(reasons[:MAX_REASONS])})"
        )
        file.refuse(at, f"{INVALID}: {spell(at)}: the default {told}; write one that fits, or remove it")


def _warn_of_choices(file: SchemaFile, name: str, schema: dict[str, object]) -> None:
    for place, value in misfitting_choices(schema):
        at = (name, *_steps(schema, place))
        file.warn(
            at, f"{spell(at)}: {show(value)} is not of the type beside it, so it is never taken; correct one of the two"
        )


def _warn_of_keywords(file: SchemaFile, parts: list[Part], root: Mapping[str, object]) -> None:
    known = KEYWORDS if CURRENT in str(root.get("$schema", CURRENT)) else KEYWORDS | OLDER
    unknown = [(at, word) for at, part in parts for word in part if word not in known]
    meant = dict(near_misses([word[:SHOWN] for _, word in unknown[:MAX_GUESSES]], KEYWORDS))
    for at, word in unknown:
        cure = f"write {meant[word]}" if word in meant else "remove it, since nothing checks it"
        file.warn((*at, word), f"{spell(at)}: unknown keyword {show(word)}; {cure}")


def _warn_of_properties(file: SchemaFile, at: Steps, schema: Mapping[str, object]) -> None:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return
    for name, entry in properties.items():
        if isinstance(entry, Mapping) and not entry.get("description") and "$ref" not in entry:
            here = (*at, "properties", name)
            file.warn(here, f"{spell(here)}: has no description; write what it means")


def _warn_of_undefined(file: SchemaFile, at: Steps, schema: Mapping[str, object]) -> None:
    """Warn about a property that is required but not allowed: no arguments satisfy such a schema."""
    required = schema.get("required")
    if schema.get("additionalProperties") is not False or not isinstance(required, list):
        return
    properties = _mapping(schema.get("properties"))
    for index, name in enumerate(required):
        if name not in properties and not _matches_a_pattern(schema, name):
            here = (*at, "required", index)
            cure = "define it under properties, or every call is refused"
            file.warn(here, f"{spell(here)}: required but undefined: {name}; {cure}")


def _matches_a_pattern(schema: Mapping[str, object], name: str) -> bool:
    patterns = _mapping(schema.get("patternProperties"))
    lone = {"patternProperties": dict.fromkeys(patterns, True), "additionalProperties": False}
    return bool(patterns) and compile_schema(lone).is_valid({name: None})


def _steps(schema: object, place: Place) -> Steps:
    """The place with array indexes as integers."""
    steps: list[str | int] = []
    for step in place:
        index = int(step) if isinstance(schema, list) and step.isdecimal() else None
        steps.append(step if index is None else index)
        if isinstance(schema, list):
            schema = schema[index] if index is not None and index < len(schema) else None
        else:
            schema = schema.get(step) if isinstance(schema, Mapping) else None
    return tuple(steps)


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _requires(file: SchemaFile) -> frozenset[str]:
    capabilities = _texts(file, "requires")
    for index, capability in enumerate(capabilities):
        if not is_capability(capability):
            text = f"requires: {show(capability)} is not in dotted notation; write it like fs.write"
            file.refuse(("requires", index), text)
    return frozenset(capabilities)


def _hosts(file: SchemaFile) -> tuple[str, ...] | None:
    if "hosts" not in file.fields:
        return None
    hosts = _texts(file, "hosts")
    if not hosts:
        return ()
    for index, host in enumerate(hosts):
        try:
            parse_hosts([host])
        except ToolError as error:
            file.refuse(("hosts", index), f"hosts: {error.message}")
    return hosts


def _timeout(file: SchemaFile) -> int | None:
    if "timeoutMs" not in file.fields:
        return None
    timeout = file.fields["timeoutMs"]
    if isinstance(timeout, int) and not isinstance(timeout, bool) and 0 < timeout <= MAX_TIMEOUT_MS:
        return timeout
    text = f"must be a whole number of milliseconds from 1 to {MAX_TIMEOUT_MS}"
    file.refuse(("timeoutMs",), f'timeoutMs: {show(timeout)} {text}; write "timeoutMs": 30000')
    return None


def _rate(file: SchemaFile) -> int | None:
    """How often the tool may be called in a minute."""
    limits = file.fields.get("limits", {})
    sample = f'write "limits": {{"{MAX_CALLS_KEY}": 60}}'
    if not isinstance(limits, dict) or not limits.keys() <= {MAX_CALLS_KEY}:
        file.refuse(("limits",), f"limits: {show(limits)} must be an object with {MAX_CALLS_KEY}; {sample}")
        return None
    if MAX_CALLS_KEY not in limits:
        return None
    rate = limits[MAX_CALLS_KEY]
    if isinstance(rate, int) and not isinstance(rate, bool) and 0 < rate <= MAX_CALLS_PER_MINUTE:
        return rate
    text = f"{show(rate)} must be a whole number from 1 to {MAX_CALLS_PER_MINUTE}"
    file.refuse(("limits", MAX_CALLS_KEY), f"limits: {MAX_CALLS_KEY}: {text}; {sample}")
    return None


def _texts(file: SchemaFile, name: str) -> tuple[str, ...]:
    value = file.fields.get(name, [])
    if not isinstance(value, list):
        file.refuse((name,), f'{name}: {show(value)} is not a list; write "{name}": […]')
        return ()
    for index, item in enumerate(value):
        if not isinstance(item, str) or not item.strip():
            file.refuse((name, index), f"{name}: {show(item)} is not text; write it in quotes")
    return tuple(item for item in value if isinstance(item, str) and item.strip())


def _display_name(file: SchemaFile) -> str:
    value = file.fields.get("displayName", "")
    if isinstance(value, str) and (value.strip() or "displayName" not in file.fields):
        return value.strip()
    file.refuse(("displayName",), f"displayName: {show(value)} is not a name; write it in quotes, or remove it")
    return ""


def _icons(file: SchemaFile) -> tuple[Icon, ...]:
    icons, problems = read_icons(file.fields.get(ICONS))
    for at, problem in problems:
        file.warn(at, f"{spell(at)}: {problem}; it is not shown")
    return tuple(icons)


def _warn_of_unknown_fields(file: SchemaFile) -> None:
    known = (*REQUIRED, *OPTIONAL, *UNREAD)
    unknown = [name for name in file.fields if name not in known]
    meant = dict(near_misses([word[:SHOWN] for word in unknown[:MAX_GUESSES]], known))
    for name in unknown:
        cure = f"write {meant[name]}" if name in meant else "remove it"
        file.warn((name,), f"{show(name)} is not read; {cure}")


def _name(file: SchemaFile, expected: str) -> str:
    try:
        check_slug(expected.replace("_", "-"), expected)
    except ToolError:
        cure = f"rename it with 1 to {MAX_NAME} letters, digits and dashes"
        file.refuse(("toolId",), f"the folder {show(expected)} cannot name a tool; {cure}")
        return ""
    if "toolId" not in file.fields:
        return ""
    name = file.fields["toolId"]
    if name != expected:
        cure = f'write "toolId": "{expected}", or rename the folder'
        file.refuse(("toolId",), f"toolId doesn't match directory: {show(name)}; {cure}")
        return ""
    return expected


def _version(file: SchemaFile) -> str:
    version = file.fields.get("version")
    if isinstance(version, str) and VERSION.fullmatch(version) and len(version) <= MAX_NAME:
        return version
    _refuse(file, "version", "is not major.minor.patch")
    return ""


def _description(file: SchemaFile) -> str:
    description = file.fields.get("description")
    if isinstance(description, str) and description.strip():
        return description.strip()
    _refuse(file, "description", "says nothing")
    return ""


def _word(file: SchemaFile, name: str, words: type[Word]) -> Word | None:
    if name not in file.fields:
        return None
    value = file.fields[name]
    if isinstance(value, str) and value in [*words]:
        return words(value)
    file.refuse((name,), f"{name}: {show(value)} is unknown; write one of {', '.join(words)}")
    return None


def _switch(file: SchemaFile, name: str) -> bool | None:
    value = file.fields.get(name)
    if name in file.fields and not isinstance(value, bool):
        file.refuse((name,), f"{name}: {show(value)} is not a boolean; write true or false")
    return value if isinstance(value, bool) else None


def _modes(file: SchemaFile) -> frozenset[str]:
    name = "allowedModes"
    modes = file.fields.get(name)
    if not isinstance(modes, list) or not modes:
        _refuse(file, name, "must be a list of at least one mode")
        return frozenset()
    for index, mode in enumerate(modes):
        if not isinstance(mode, str) or mode not in MODES:
            file.refuse((name, index), f"{name}: {show(mode)} is unknown; write one of {', '.join(sorted(MODES))}")
    return frozenset(mode for mode in modes if isinstance(mode, str))


def _budget(file: SchemaFile) -> int | None:
    name = "latencyBudgetMs"
    budget = file.fields.get(name)
    if isinstance(budget, int | float) and not isinstance(budget, bool) and budget > 0:
        return math.ceil(budget)
    _refuse(file, name, "must be a number of milliseconds greater than 0")
    return None


def _refuse(file: SchemaFile, name: str, problem: str) -> None:
    """Report an invalid field; a missing one has been reported already."""
    if name not in file.fields:
        return
    file.refuse((name,), f'{name}: {show(file.fields[name])} {problem}; write "{name}": {REQUIRED[name]}')
