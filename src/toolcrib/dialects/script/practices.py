"""What a good tool does beyond what it must; advice, told as warnings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from toolcrib.dialects.script.metadata import Report, Steps
    from toolcrib.dialects.script.optional import Options
    from toolcrib.dialects.script.required import Identity

SNAKE_CASE = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
SAYS_HOW = re.compile(r"\b[\w-]+\.(?:py|js|mjs|cjs|sh|bash)\b", re.IGNORECASE)
SAYS_ERRORS = re.compile(r"\b(?:errors?|exceptions?|fails?|failures?|raises?|refuses?|invalid)\b", re.IGNORECASE)
BOUNDLESS = ("string", "integer", "float", "number")
CONSTRAINTS = frozenset(
    {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern"}
    | {"enum", "const", "format"}
)
# What a tool with this executor cannot do without.
IMPLIED = {"http_client": "net.http", "subprocess": "shell.execute", "bash": "shell.execute", "filesystem": "fs.read"}
SHELL = "shell.execute"
CALLED = frozenset({"script", "http", "subprocess", "docker", "filesystem"})


def implied_capabilities(executor: str | None) -> frozenset[str]:
    """What the executor itself requires, declared or not; where a request leads is for its author to say."""
    return frozenset({SHELL}) if IMPLIED.get(executor or "") == SHELL else frozenset()


def warn_of_practices(report: Report, identity: Identity, options: Options, kind: str) -> None:
    """Warn of everything that could be better."""
    _capabilities(report, identity, options)
    _parameters(report)
    if SAYS_HOW.search(identity.description):
        report.warn(("description",), "names a file, which says how it is done; say what the tool does")
    if kind in CALLED:
        _name(report, identity)
        _advice(report, options)
    if kind == "runtime" and identity.executor is None and not options.config.get("command"):
        report.warn(("config",), "a runtime without executor runs nothing; write config: {command: …}")


def _capabilities(report: Report, identity: Identity, options: Options) -> None:
    implied = IMPLIED.get(identity.executor or "")
    if implied is None:
        return
    family = implied if implied == SHELL else f"{implied.partition('.')[0]}."
    if not any(capability.startswith(family) for capability in options.requires):
        report.warn(("requires",), f"{identity.executor} needs {implied}, which is not listed; add it to requires")


def _name(report: Report, identity: Identity) -> None:
    if identity.name.isalnum():
        report.warn(("tool_id",), f"{identity.name!r} says little; name the action and its object, such as resize-pool")


def _advice(report: Report, options: Options) -> None:
    """One warning for all that is not documented."""
    fields = report.fields
    shown = options.documentation
    texts = (str(fields.get("description")), report.metadata.docstring, *shown.texts, str(options.metadata))
    missing = []
    if not (shown.texts or shown.examples):
        missing.append("examples")
    if not fields.keys() & {"outputs", "output_schema", "actions"} and not report.metadata.module:
        missing.append("outputs")
    if "timeout" not in fields:
        missing.append("a timeout")
    if not SAYS_ERRORS.search("\n".join(texts)):
        missing.append("the errors to expect")
    if missing:
        report.warn((), f"says nothing about {', '.join(missing)}; add documentation, outputs or timeout")


def _parameters(report: Report) -> None:
    for at, parameters, is_constrained in _lists(report.fields):
        entries = [(index, entry) for index, entry in enumerate(parameters) if isinstance(entry, dict)]
        for index, entry in entries:
            _parameter(report, (*at, index), entry)
        loose = [str(entry.get("name")) for _, entry in entries if _is_loose(entry)]
        if loose and not is_constrained:
            report.warn(at, f"nothing constrains {', '.join(loose[:20])}; add minimum, maximum, pattern or enum")


def _parameter(report: Report, at: Steps, entry: Mapping[str, object]) -> None:
    name = entry.get("name")
    if isinstance(name, str) and not SNAKE_CASE.fullmatch(name):
        report.warn((*at, "name"), f"{name[:80]!r} is not in snake_case; rename it")
    if not entry.get("description"):
        report.warn(at, "has no description; write what it means")
    if "required" not in entry:
        report.warn(at, "does not say whether it is required; write required: false")


def _is_loose(entry: Mapping[str, object]) -> bool:
    return entry.get("type") in BOUNDLESS and CONSTRAINTS.isdisjoint(entry)


def _lists(fields: Mapping[str, object]) -> Iterator[tuple[Steps, list[object], bool]]:
    """Every list of parameters, of the tool and of its actions, and whether a schema stands beside it."""
    actions = fields.get("actions")
    named: list[tuple[str | int, object]] = []
    if isinstance(actions, dict):
        named = [*actions.items()]
    elif isinstance(actions, list):
        named = [*enumerate(actions)]
    places: list[tuple[Steps, object]] = [((), fields), *((("actions", name), entry) for name, entry in named)]
    for at, written in places:
        parameters = written.get("parameters") if isinstance(written, dict) else None
        if isinstance(written, dict) and isinstance(parameters, list):
            yield (*at, "parameters"), parameters, "input_schema" in written
