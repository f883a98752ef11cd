"""The forms of a tool: itself, or one for each of its actions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.dialects.script.metadata import SHOWN, name_type, warn_of_strangers
from toolcrib.dialects.script.required import NAME, suggest_name
from toolcrib.dialects.script.schemas import Declared, read_schemas
from toolcrib.model.tool import MAX_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolcrib.dialects.script.metadata import Report, Steps
    from toolcrib.dialects.script.required import Identity

KEYS = ("name", "description", "parameters", "input_schema", "outputs", "output_schema")


@dataclass(frozen=True, kw_only=True, slots=True)
class Form:
    """Something that can be called: the tool, or one action of it."""

    name: str
    description: str
    declared: Declared
    at: Steps = ()
    action: str = ""


def read_forms(report: Report, identity: Identity) -> list[Form]:
    """What of the tool can be called: its actions, and itself if it has none or says what it takes without one."""
    declared = read_schemas(report, (), report.fields)
    itself = Form(name=identity.name, description=identity.description, declared=declared, at=("tool_id",))
    actions = [_action(report, identity, declared, *found) for found in _entries(report)]
    forms = [itself, *actions] if declared.inputs is not None or not actions else actions
    _refuse_equal_names(report, forms)
    return forms


def _entries(report: Report) -> Iterator[tuple[Steps, object, object]]:
    """Where each action stands, its name and what is written about it; a mapping of names or a list."""
    written = report.fields.get("actions", {})
    if isinstance(written, dict):
        yield from ((("actions", name), name, entry) for name, entry in written.items())
    elif isinstance(written, list):
        for index, entry in enumerate(written):
            yield ("actions", index), entry.get("name") if isinstance(entry, dict) else None, entry
    else:
        report.refuse(("actions",), f"must be a mapping or a list, not {name_type(written)}; write one key per action")


def _action(report: Report, identity: Identity, common: Declared, at: Steps, name: object, entry: object) -> Form:
    written = entry if isinstance(entry, dict) else {}
    if entry is not None and not isinstance(entry, dict):
        report.refuse(at, f"must be a mapping, not {name_type(entry)}; write description and parameters")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        sample = suggest_name(name) if isinstance(name, str) else "deploy"
        report.refuse(at, f"{name!r:.{SHOWN}} cannot be the name of an action; write {sample}")
        name = ""
    warn_of_strangers(report, at, written, KEYS)
    joint = "_" if "_" in identity.name else "-"
    full_name = f"{identity.name}{joint}{name}"
    if len(full_name) > MAX_NAME:
        report.refuse(at, f"{full_name[:SHOWN]} is longer than {MAX_NAME} characters; shorten one of the names")
    declared = read_schemas(report, at, written)
    if declared.outputs is None:
        declared = Declared(inputs=declared.inputs, outputs=common.outputs)
    description = _description(report, at, written, identity)
    return Form(name=full_name, description=description, declared=declared, at=at, action=name)


def _description(report: Report, at: Steps, written: dict[str, object], identity: Identity) -> str:
    text = written.get("description")
    if isinstance(text, str) and text.strip():
        return text.strip()
    if text is not None:
        report.refuse((*at, "description"), "must be text that is not empty; write what the action does")
    else:
        report.warn(at, "has no description; write what the action does")
    return identity.description


def _refuse_equal_names(report: Report, forms: list[Form]) -> None:
    seen: set[str] = set()
    for form in forms:
        slug = form.name.replace("_", "-")
        if slug in seen:
            report.refuse(form.at, f"there are two of the name {slug}; rename one")
        seen.add(slug)
