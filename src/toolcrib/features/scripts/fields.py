"""Read the fields that a script's metadata must have, and its actions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.features.scripts.metadata import warn_of_unknown_keys
from toolcrib.features.scripts.schemas import DeclaredSchemas, read_schemas
from toolcrib.lib.positions import SHOWN
from toolcrib.lib.system_tools import FILESYSTEM, HTTP_CLIENT, PRIMITIVE, SUBPROCESS
from toolcrib.lib.yaml import name_type
from toolcrib.model.tool import MAX_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from toolcrib.features.scripts.metadata import MetadataReport
    from toolcrib.lib.positions import Steps


NAME = re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)*")
VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+")
# Types that need no executor: those that execute other tools, and libraries.
NEEDS_NO_EXECUTOR = frozenset({"primitive", "runtime", "library"})
SAMPLES = {
    "tool_id": "deploy-service",
    "tool_type": "script",
    "version": "1.0.0",
    "description": "What the tool does",
    "executor_id": "python_runtime",
}
PRIMITIVES = frozenset({SUBPROCESS, HTTP_CLIENT, FILESYSTEM})
RUNTIMES = {"javascript": "node_runtime", "bash": "bash"}
KEYS = ("name", "description", "parameters", "input_schema", "outputs", "output_schema")


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """What a tool is and what runs it; a field that was refused is empty."""

    name: str
    category: str
    tool_type: str
    version: str
    description: str
    executor: str | None


def read_identity(report: MetadataReport, root: Path) -> Identity:
    """Read the six fields; the file of a code tool may name it."""
    tool_type = _text(report, "tool_type")
    return Identity(
        name=_name(report),
        category=_category(report, root),
        tool_type=tool_type,
        version=_version(report),
        description=_text(report, "description"),
        executor=_executor(report, tool_type),
    )


def suggest_name(text: str) -> str:
    """The nearest name in kebab-case."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", text[:MAX_NAME])
    return re.sub(r"[^a-z0-9]+", "-", apart.lower()).strip("-") or SAMPLES["tool_id"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Form:
    """Something that can be called: the tool, one action of it, or one of several functions of its file."""

    name: str
    description: str
    declared: DeclaredSchemas
    at: Steps = ()
    action: str = ""
    function: str = ""


def read_forms(report: MetadataReport, identity: Identity) -> list[Form]:
    """What can be called: the actions, and the tool itself if it has none or declares parameters of its own."""
    declared = read_schemas(report, (), report.fields)
    itself = Form(name=identity.name, description=identity.description, declared=declared, at=("tool_id",))
    actions = [_action(report, identity, declared, *found) for found in _entries(report)]
    forms = [itself, *actions] if declared.inputs is not None or not actions else actions
    _refuse_equal_names(report, forms)
    return forms


def _name(report: MetadataReport) -> str:
    if report.metadata.plain and "tool_id" not in report.metadata.slips:
        return _text(report, "tool_id")
    is_missing = "tool_id" not in {*report.fields, *report.metadata.refused, *report.metadata.slips}
    if is_missing:
        name = report.metadata.path.stem
        cure = f"rename it, or write {report.write('tool_id', suggest_name(name))}"
        subject = "the name of the file"
        if not report.metadata.language:
            text = f"is missing, so the file names the tool; write {report.write('tool_id', suggest_name(name))}"
            report.warn(("tool_id",), text)
    else:
        name = _text(report, "tool_id")
        cure = f"write {report.write('tool_id', suggest_name(name))}"
        subject = ""
    if not name:
        return ""
    text = f"{subject or repr(name[:SHOWN])} is not in kebab-case; {cure}"
    if not NAME.fullmatch(name):
        report.refuse(("tool_id",), text)
        return ""
    if len(name) > MAX_NAME:
        report.refuse(("tool_id",), f"is longer than {MAX_NAME} characters; shorten it")
        return ""
    if "_" in name:
        report.warn(("tool_id",), text)
    return name


def _category(report: MetadataReport, root: Path) -> str:
    path = report.metadata.path
    folder = path.parent
    if folder == root or root not in folder.parents:
        report.refuse(
            ("category",),
            f"the file must lie in a sub-folder of {root}, which is then its category; move it into one",
        )
        return ""
    expected = folder.relative_to(root).as_posix()
    written = _text(report, "category", expected)
    if written and written != expected:
        text = f"{written[:SHOWN]!r} is not the folder of the file; write {report.write('category', expected)}"
        report.refuse(("category",), text)
    return written


def _version(report: MetadataReport) -> str:
    version = _text(report, "version")
    if version and (not VERSION.fullmatch(version) or len(version) > MAX_NAME):
        report.refuse(("version",), f"{version[:SHOWN]!r} is not X.Y.Z; write {report.write('version', '1.0.0')}")
    return version


def _executor(report: MetadataReport, tool_type: str) -> str | None:
    if "executor_id" not in report.fields or report.fields["executor_id"] is not None:
        return _last_part(report, _text(report, "executor_id")) or None
    if tool_type == PRIMITIVE and (name := _platform_name(report)):
        report.warn(
            ("executor_id",), f"null means the platform's own {name}; name it as executor, and remove this file"
        )
    if tool_type and tool_type not in NEEDS_NO_EXECUTOR:
        text = f"null is for {', '.join(sorted(NEEDS_NO_EXECUTOR))}; name what runs a {tool_type[:SHOWN]!r}"
        report.refuse(("executor_id",), f"{text}: {report.write('executor_id', _sample(report, 'executor_id'))}")
    return None


def _last_part(report: MetadataReport, executor: str) -> str:
    """The name of an executor that is written as the path to its file."""
    if "/" not in executor:
        return executor
    name = executor.rstrip("/").rpartition("/")[2].removesuffix(".yaml").removesuffix(".py")
    report.warn(("executor_id",), f"{executor[:SHOWN]!r} is a path; write {report.write('executor_id', name)}")
    return name


def _platform_name(report: MetadataReport) -> str:
    """The primitive of the platform that the file is called like; empty if there is none."""
    written = report.fields.get("tool_id", report.metadata.path.stem)
    name = str(written).replace("-", "_")
    return name if name in PRIMITIVES else ""


def _sample(report: MetadataReport, name: str) -> str:
    """A sample value, in the notation of this language."""
    return RUNTIMES.get(report.metadata.language, SAMPLES[name]) if name == "executor_id" else SAMPLES[name]


def _text(report: MetadataReport, name: str, sample: str = "") -> str:
    cure = f"write {report.write(name, sample or _sample(report, name))}"
    if name in report.metadata.refused:
        return ""
    if name in report.metadata.slips:
        cure = f"write {report.metadata.notation.spell(name)} instead of {report.metadata.slips[name][:SHOWN]}"
    if name not in report.fields:
        report.refuse((name,), f"is missing; {cure}")
        return ""
    value = report.fields[name]
    if not isinstance(value, str):
        report.refuse((name,), f"must be text, not {name_type(value)}; {cure}")
        return ""
    if not value.strip():
        report.refuse((name,), f"is empty; {cure}")
    return value.strip()


def _entries(report: MetadataReport) -> Iterator[tuple[Steps, object, object]]:
    """The position, name and definition of each action, from a mapping or a list."""
    written = report.fields.get("actions", {})
    if isinstance(written, dict):
        yield from ((("actions", name), name, entry) for name, entry in written.items())
    elif isinstance(written, list):
        for index, entry in enumerate(written):
            yield ("actions", index), entry.get("name") if isinstance(entry, dict) else None, entry
    else:
        report.refuse(("actions",), f"must be a mapping or a list, not {name_type(written)}; write one key per action")


def _action(
    report: MetadataReport, identity: Identity, common: DeclaredSchemas, at: Steps, name: object, entry: object
) -> Form:
    written = entry if isinstance(entry, dict) else {}
    if entry is not None and not isinstance(entry, dict):
        report.refuse(at, f"must be a mapping, not {name_type(entry)}; write description and parameters")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        sample = suggest_name(name) if isinstance(name, str) else "deploy"
        report.refuse(at, f"{name!r:.{SHOWN}} cannot be the name of an action; write {sample}")
        name = ""
    warn_of_unknown_keys(report, at, written, KEYS)
    joint = "_" if "_" in identity.name else "-"
    full_name = f"{identity.name}{joint}{name}"
    if len(full_name) > MAX_NAME:
        report.refuse(at, f"{full_name[:SHOWN]} is longer than {MAX_NAME} characters; shorten one of the names")
    declared = read_schemas(report, at, written)
    if declared.outputs is None:
        declared = DeclaredSchemas(inputs=declared.inputs, outputs=common.outputs)
    description = _description(report, at, written, identity)
    return Form(name=full_name, description=description, declared=declared, at=at, action=name)


def _description(report: MetadataReport, at: Steps, written: dict[str, object], identity: Identity) -> str:
    text = written.get("description")
    if isinstance(text, str) and text.strip():
        return text.strip()
    if text is not None:
        report.refuse((*at, "description"), "must be text that is not empty; write what the action does")
    else:
        report.warn(at, "has no description; write what the action does")
    return identity.description


def _refuse_equal_names(report: MetadataReport, forms: list[Form]) -> None:
    seen: set[str] = set()
    for form in forms:
        slug = form.name.replace("_", "-")
        if slug in seen:
            report.refuse(form.at, f"there are two of the name {slug}; rename one")
        seen.add(slug)
