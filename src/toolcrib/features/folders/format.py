"""Read the four files of a folder into a tool, or into a list of all its problems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.features.folders.documentation import doc_examples, failure_modes, missing_sections, unix_lines
from toolcrib.features.folders.handler_source import check_javascript, check_python
from toolcrib.features.folders.report import FolderReport
from toolcrib.features.folders.schema_file import NOTHING_DECLARED, read_declaration, read_fields
from toolcrib.infra.files import DOCUMENTATION, HANDLERS, SCHEMA, SUMMARY
from toolcrib.infra.files.tool_folder import spell_name, spell_root
from toolcrib.lib.documents import decode
from toolcrib.lib.icons import ICONS
from toolcrib.lib.positions import SHOWN
from toolcrib.lib.schema import compile_schema, fill_defaults
from toolcrib.lib.schema_problems import explain_problems
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Behaviour, Handler, Limits, Origin, SideEffects, Tool

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from toolcrib.features.folders.documentation import DocExample
    from toolcrib.features.folders.report import SchemaFile
    from toolcrib.features.folders.schema_file import Declaration

MAX_SUMMARY = 249
MAX_SUMMARY_LINES = 4
# The build supplies it where it is not there.
ERROR_TYPES = "_core/error-types.js"
CHECKS = {"javascript": check_javascript, "python": check_python}
KINDS = "write an error type such as VALIDATION, TRANSIENT or CONFLICT"
# How long a tool that the conversation waits for may take, in milliseconds.
BUDGETS = {"voice": 800, "text": 2000}
QUICK = frozenset({Behaviour.RETRIEVAL, Behaviour.UTILITY})
CAN_WRITE = frozenset({"fs.write", "shell.execute"})


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadFolder:
    """The tool of a folder, or its problems. Each line is `PATH:LINE: what; cure`."""

    tool: Tool | None
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def read_tool(
    root: Path,
    folder: str,
    files: Mapping[str, bytes],
    shared: Mapping[str, bytes],
    *,
    registry: str = "",
    unread: Collection[str] = (),
) -> ReadFolder:
    """Read one folder from the bytes of its files; `registry` is the version of the registry that it is loaded from.

    `unread` are paths of the folder that lie there and could not be read: these are not reported again, and there is no tool.
    """
    tool, report = build_tool(root, folder, files, shared, registry, unread)
    return ReadFolder(tool=tool, problems=report.problems, warnings=report.warnings)


def build_tool(
    root: Path,
    folder: str,
    files: Mapping[str, bytes],
    shared: Mapping[str, bytes],
    registry: str,
    unread: Collection[str],
) -> tuple[Tool | None, FolderReport]:
    """The tool, or None if anything is wrong; the report says what."""
    report = FolderReport(
        f"{spell_root(root)}/{spell_name(folder)}", {path.removeprefix(f"{folder}/") for path in unread}
    )
    own = {path.removeprefix(f"{folder}/"): code for path, code in files.items()}
    language = _check_handler(report, own, folder, {*files, *shared, *unread, ERROR_TYPES})
    declared = _declaration(report, folder, own)
    summary = _summary(report, own)
    documentation = _documentation(report, own)
    if report.problems or unread:
        return None, report
    examples = _examples(report, documentation, declared)
    hosts = declared.options.hosts
    tool = Tool(
        name=declared.name,
        description=declared.description,
        parameters=declared.parameters,
        output_schema=declared.options.output_schema,
        run=Handler(
            root=root, folder=folder, language=language, files=files, shared=shared, registry=registry, hosts=hosts
        ),
        version=declared.version,
        display_name=declared.options.display_name,
        source_type="folder",
        behaviour=declared.behaviour,
        side_effects=declared.side_effects,
        idempotent=declared.idempotent is True,
        requires_confirmation=declared.requires_confirmation,
        modes=declared.modes,
        requires=declared.options.requires,
        limits=Limits(
            timeout_ms=declared.options.timeout_ms,
            latency_budget_ms=declared.latency_budget_ms,
            calls_per_minute=declared.options.calls_per_minute,
        ),
        tags=declared.options.tags,
        summary=summary,
        documentation=documentation,
        examples=examples,
        metadata={ICONS: list(declared.options.icons)} if declared.options.icons else {},
        origin=Origin(place=str(root / folder / SCHEMA)),
        warnings=report.warnings,
    )
    return tool, report


def warn_of_practices(file: SchemaFile, declared: Declaration) -> None:
    """Refuse what the category forbids, and warn about what is unusual for it."""
    if declared.behaviour is Behaviour.RETRIEVAL:
        _check_retrieval(file, declared)
    _warn_of_effects(file, declared)
    _warn_of_budget(file, declared)


def _check_handler(report: FolderReport, own: Mapping[str, bytes], folder: str, known: Collection[str]) -> str:
    """The language of the handler; empty if there is not exactly one."""
    found = [name for name in HANDLERS if name in own]
    if not found:
        if not report.unread & HANDLERS.keys():
            report.refuse("handler.js", 1, "is missing; write it, or handler.py, with an `execute` that runs the tool")
        return ""
    for name in found:
        CHECKS[HANDLERS[name]](report, name, own[name], folder, known)
    if len(found) > 1:
        report.refuse(found[1], 1, f"stands beside {found[0]}; keep one of the two")
        return ""
    return HANDLERS[found[0]]


def _declaration(report: FolderReport, folder: str, own: Mapping[str, bytes]) -> Declaration:
    if SCHEMA not in own:
        report.refuse(SCHEMA, 1, "is missing; write the fields of the tool in it")
        return NOTHING_DECLARED
    file = read_fields(report, SCHEMA, own[SCHEMA])
    if file is None:
        return NOTHING_DECLARED
    declared = read_declaration(file, folder)
    warn_of_practices(file, declared)
    return declared


def _summary(report: FolderReport, own: Mapping[str, bytes]) -> str:
    text = _text(report, own, SUMMARY, "what a system prompt says of the tool").rstrip("\n")
    if len(text) > MAX_SUMMARY:
        report.refuse(SUMMARY, 1, f"has {len(text)} characters; shorten it to at most {MAX_SUMMARY}")
    lines = text.count("\n") + 1
    if lines > MAX_SUMMARY_LINES:
        report.warn(SUMMARY, 1, f"has {lines} lines; {MAX_SUMMARY_LINES} are enough for a system prompt")
    return text


def _documentation(report: FolderReport, own: Mapping[str, bytes]) -> str:
    before = len(report.problems)
    text = _text(report, own, DOCUMENTATION, "all there is to read about the tool")
    if len(report.problems) > before:
        return ""
    for name in missing_sections(text):
        cure = f'write "## {name}" on a line of its own, outside of code and comments'
        report.refuse(DOCUMENTATION, 1, f"Missing required section: {name}; {cure}")
    for mode in failure_modes(text):
        if not mode.known:
            report.warn(DOCUMENTATION, mode.line, f"{mode.name[:SHOWN]!r} is not an error type; {KINDS}")
    return text


def _text(report: FolderReport, own: Mapping[str, bytes], name: str, meaning: str) -> str:
    """The text of a file; empty, with a problem, if it is missing or not text."""
    if name not in own:
        report.refuse(name, 1, f"is missing; write {meaning} in it")
        return ""
    try:
        text = unix_lines(decode(own[name], f"{report.place}/{name}"))
    except ToolError as error:
        report.refuse_error(name, error)
        return ""
    if "\0" in text:
        report.refuse(name, text.count("\n", 0, text.index("\0")) + 1, "holds a NUL character; remove it")
        return ""
    if not text.strip():
        report.refuse(name, 1, f"is empty; write {meaning} in it")
        return ""
    return text


def _examples(report: FolderReport, documentation: str, declared: Declaration) -> tuple[dict[str, object], ...]:
    """The arguments of the calls that the documentation shows to succeed; of those that the schema refuses the author is told."""
    shown = doc_examples(documentation)
    if not shown:
        return ()
    validator = compile_schema(declared.parameters)
    fill = fill_defaults(declared.parameters)
    fitting = []
    for example in shown:
        if example.problem:
            report.warn(DOCUMENTATION, example.line, f"{_name(example)}: {example.problem}")
        if not example.is_json:
            text = "its arguments are read from JavaScript; write them as JSON, in a block that begins with ```json"
            report.warn(DOCUMENTATION, example.line, f"{_name(example)}: {text}")
        if example.arguments is None:
            continue
        arguments = fill(example.arguments) if fill else example.arguments
        misfits = explain_problems(validator, arguments, declared.parameters)
        if misfits and example.expected_error != Kind.VALIDATION:
            text = f"the schema refuses its arguments ({'; '.join(misfits[:3])}); correct them"
            report.warn(DOCUMENTATION, example.line, f"{_name(example)}: {text}")
        # A call that is shown to fail is none for a model to follow; one that waits for a person is.
        is_followed = example.expected_error in ("", Kind.CONFIRMATION_REQUIRED)
        if not misfits and is_followed and not example.problem:
            fitting.append(example.arguments)
    return tuple(fitting)


def _name(example: DocExample) -> str:
    return example.title[:SHOWN] or "example"


def _check_retrieval(file: SchemaFile, declared: Declaration) -> None:
    if declared.idempotent is False:
        text = 'a retrieval tool must be idempotent; write "idempotent": true, or another category'
        file.refuse(("idempotent",), f"idempotent: {text}")
    if declared.side_effects is SideEffects.WRITES:
        text = 'a retrieval tool must not write; write "sideEffects": "read_only", or another category'
        file.refuse(("sideEffects",), f"sideEffects: {text}")


def _warn_of_effects(file: SchemaFile, declared: Declaration) -> None:
    effects = declared.side_effects
    if effects is None:
        return
    at = ("sideEffects",)
    if declared.behaviour is Behaviour.ACTION and effects is not SideEffects.WRITES:
        file.warn(at, f'sideEffects: an action that does not write ({effects}); write "writes", or another category')
    if declared.behaviour is Behaviour.UTILITY and effects is not SideEffects.NONE:
        file.warn(at, f'sideEffects: a utility usually has none ({effects}); write "none", or another category')
    writing = sorted(CAN_WRITE & declared.options.requires)
    if writing and effects is not SideEffects.WRITES:
        text = f'{effects}, yet the tool requires {", ".join(writing)}, which can write; write "writes"'
        file.warn(at, f"sideEffects: {text}, or require less")


def _warn_of_budget(file: SchemaFile, declared: Declaration) -> None:
    budget = declared.latency_budget_ms
    if declared.behaviour not in QUICK or budget is None:
        return
    for mode, most in BUDGETS.items():
        if mode in declared.modes and budget > most:
            text = f"{budget} ms is long for a {declared.behaviour} tool in {mode} mode; make it {most} or less"
            file.warn(("latencyBudgetMs",), f"latencyBudgetMs: {text}")
