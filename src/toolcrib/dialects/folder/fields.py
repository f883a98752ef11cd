"""The fields of `schema.json`: ten that every tool has, and some that it may have."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from toolcrib.dialects.folder.options import OPTIONAL, Options, read_options
from toolcrib.dialects.folder.positions import line_of_fault
from toolcrib.dialects.folder.report import SchemaFile, guesses, show
from toolcrib.dialects.folder.schemas import read_parameters
from toolcrib.model.errors import ToolError
from toolcrib.model.session import MODES
from toolcrib.model.tool import MAX_NAME, Behaviour, SideEffects, check_slug
from toolcrib.pure.documents import decode, read_json

if TYPE_CHECKING:
    from enum import StrEnum

    from toolcrib.dialects.folder.report import Report

VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+")
# Each required field, with what could stand there.
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
class Declaration:
    """What a tool says about itself; a field that was refused is None or empty."""

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


def read_fields(report: Report, name: str, code: bytes) -> SchemaFile | None:
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
    """Read every field; what is wrong is noted in the file."""
    expected = folder.replace("-", "_")
    for name, sample in {**REQUIRED, "toolId": f'"{expected}"'}.items():
        if name not in file.fields:
            file.refuse((), f'Missing required field: {name}; write "{name}": {sample}')
    _warn_of_strangers(file)
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


def _warn_of_strangers(file: SchemaFile) -> None:
    known = (*REQUIRED, *OPTIONAL, *UNREAD)
    strangers = [name for name in file.fields if name not in known]
    meant = guesses(strangers, known)
    for name in strangers:
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
        file.refuse((name,), f"{name}: {show(value)} is no boolean; write true or false")
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
    """Note what is wrong with a field that is there; that one is missing has been said."""
    if name not in file.fields:
        return
    file.refuse((name,), f'{name}: {show(file.fields[name])} {problem}; write "{name}": {REQUIRED[name]}')
