"""The six fields that every tool has."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.dialects.script.metadata import SHOWN, name_type
from toolcrib.model.tool import MAX_NAME

if TYPE_CHECKING:
    from pathlib import Path

    from toolcrib.dialects.script.metadata import Report

NAME = re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)*")
VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+")
# What can do without an executor: what executes others, and what is never executed.
NEEDS_NO_EXECUTOR = frozenset({"primitive", "runtime", "library"})
SAMPLES = {
    "tool_id": "deploy-service",
    "tool_type": "script",
    "version": "1.0.0",
    "description": "What the tool does",
    "executor_id": "python_runtime",
}
RUNTIMES = {"javascript": "node_runtime", "bash": "bash"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """What a tool is and what runs it; a field that was refused is empty."""

    name: str
    category: str
    tool_type: str
    version: str
    description: str
    executor: str | None


def read_identity(report: Report, root: Path) -> Identity:
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


def _name(report: Report) -> str:
    is_code = bool(report.metadata.language)
    if is_code and "tool_id" not in {*report.fields, *report.metadata.refused}:
        name = report.metadata.path.stem
        cure = f"rename it, or write {report.write('tool_id', suggest_name(name))}"
        subject = "the name of the file"
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


def _category(report: Report, root: Path) -> str:
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


def _version(report: Report) -> str:
    version = _text(report, "version")
    if version and (not VERSION.fullmatch(version) or len(version) > MAX_NAME):
        report.refuse(("version",), f"{version[:SHOWN]!r} is not X.Y.Z; write {report.write('version', '1.0.0')}")
    return version


def _executor(report: Report, tool_type: str) -> str | None:
    if "executor_id" not in report.fields or report.fields["executor_id"] is not None:
        return _text(report, "executor_id") or None
    if tool_type and tool_type not in NEEDS_NO_EXECUTOR:
        text = f"null is for {', '.join(sorted(NEEDS_NO_EXECUTOR))}; name what runs a {tool_type[:SHOWN]!r}"
        report.refuse(("executor_id",), f"{text}: {report.write('executor_id', _sample(report, 'executor_id'))}")
    return None


def _sample(report: Report, name: str) -> str:
    """What could stand there, in a file of this language."""
    return RUNTIMES.get(report.metadata.language, SAMPLES[name]) if name == "executor_id" else SAMPLES[name]


def _text(report: Report, name: str, sample: str = "") -> str:
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
