"""Decide whether a file of code is called as a function or run as a program, from its metadata and its code."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from toolcrib.features.scripts.python_code import PROGRAM, EntryPoint
from toolcrib.lib.bash_program import read_bash_program, uses_odd_places
from toolcrib.lib.command_line import COMMAND_LINE, SPREAD, CommandLine
from toolcrib.lib.documents import decode
from toolcrib.lib.javascript_program import JavaScriptProgram, is_positional, read_javascript_program
from toolcrib.lib.python_program import read_python_program
from toolcrib.model.tool import Convention

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.features.scripts.fields import Form
    from toolcrib.features.scripts.metadata import Metadata, MetadataReport

    Schema = dict[str, object]

BASH, JAVASCRIPT = "bash", "javascript"
# Keys with which the author declares it explicitly.
DECLARES = ("args", "stdin", "command", "shell")
FUNCTION = "function"


@dataclass(frozen=True, kw_only=True, slots=True)
class Use:
    """How one form of a tool is used: its entry, what it takes if that is certain, and what the runner has to know."""

    entry: EntryPoint = PROGRAM
    inputs: Schema | None = None
    config: Mapping[str, object] = field(default_factory=dict)


def read_program(metadata: Metadata) -> JavaScriptProgram | None:
    """What the code says; None for a language that is read elsewhere."""
    if metadata.module is not None:
        line = read_python_program(metadata.module)
        return None if line is None else JavaScriptProgram(summary=line.summary, line=line)
    if metadata.language not in {BASH, JAVASCRIPT}:
        return None
    return _read(metadata.language, metadata.code, metadata.path.stem, str(metadata.path))


def decide_use(report: MetadataReport, config: Mapping[str, object], form: Form) -> Use:
    """How a form is used; problems are reported."""
    program = read_program(report.metadata)
    if program is None or any(name in config for name in DECLARES):
        return Use()
    if form.function or (program.signature is not None and not form.action):
        return _called(report, program, form)
    if program.line is None:
        return _unusable(report, program, form)
    line = program.line.actions.get(form.action) if form.action else program.line
    if line is None:
        return Use()
    chosen = _undeclared(report, line) if form.declared.names is None else _matched(report, line, form)
    if chosen is None:
        return Use()
    return Use(inputs=chosen.to_schema(), config={COMMAND_LINE: chosen.to_config()})


@lru_cache(maxsize=8)
def _read(language: str, code: bytes, stem: str, place: str) -> JavaScriptProgram:
    if language == BASH:
        line = read_bash_program(code)
        return JavaScriptProgram(summary=line.summary, line=line)
    return read_javascript_program(decode(code, place).replace("\r\n", "\n"), stem, place)


def _called(report: MetadataReport, program: JavaScriptProgram, form: Form) -> Use:
    """A function that the file exports."""
    if form.function:
        for number, text in program.warnings if form.function == next(iter(program.functions)) else ():
            report.warn_line(number, text)
        program = program.functions[form.function]
    signature, declared = program.signature, form.declared.names
    if signature is None:
        report.refuse_line(program.number, program.problem)
        return Use()
    for text in signature.warnings:
        report.warn_line(program.number, text)
    for number, text in program.warnings if not form.function else ():
        report.warn_line(number, text)
    entry = EntryPoint(convention=Convention.KEYWORDS, name=program.entry)
    taken = signature.schema.get("properties")
    names = frozenset(taken) if isinstance(taken, dict) else frozenset()
    is_closed = signature.schema.get("additionalProperties") is False
    if declared is not None and signature.style == "names" and (missing := sorted(declared - names)) and is_closed:
        text = f"{program.entry} does not take {', '.join(missing)}, so it never gets it; add it to the function"
        report.refuse_line(program.number, text)
    return Use(entry=entry, inputs=signature.schema, config={FUNCTION: signature.to_config()})


def _unusable(report: MetadataReport, program: JavaScriptProgram, form: Form) -> Use:
    """A file whose code offers nothing to call; one that is a library need not."""
    if not program.problem or form.action:
        return Use()
    if program.is_empty and not report.metadata.plain:
        report.warn_line(program.number, f"a call of it does nothing: {program.problem}")
    else:
        report.refuse_line(program.number, program.problem)
    return Use()


def _undeclared(report: MetadataReport, line: CommandLine) -> CommandLine | None:
    """Nothing is declared: the code says it, unless it takes any words at all."""
    takes_anything = all(one.takes == SPREAD and not one.option for one in line.parameters) and not line.stdin
    if takes_anything and not report.metadata.plain:
        return None
    for number, text in line.problems:
        report.refuse_line(number, text)
    for number, text in line.warnings:
        report.warn_line(number, text)
    return line


def _matched(report: MetadataReport, line: CommandLine, form: Form) -> CommandLine | None:
    """Arguments are declared: they are what the code reads by the same names, or in the same order."""
    declared = form.declared.names or frozenset()
    if not declared or declared <= {*line.names}:
        return line if declared else None
    if not _reads_places(report.metadata, line):
        return None
    properties = (form.declared.inputs or {}).get("properties")
    ordered = list(properties) if isinstance(properties, dict) else []
    places = [one for one in line.parameters if not one.option]
    if len(places) == len(line.parameters) == len(ordered) and not any(one.takes == SPREAD for one in places):
        renamed = [replace(one, name=name) for one, name in zip(places, ordered, strict=True)]
        report.warn(("parameters",), f"are taken by their places, in this order; write {_sample(report, ordered)}")
        return replace(line, parameters=tuple(renamed))
    text = f"the file reads its arguments by their places; say which is which: {_sample(report, ordered)}"
    report.refuse(("parameters",), text)
    return None


def _sample(report: MetadataReport, names: list[str]) -> str:
    words = ", ".join(f'"{{{name}}}"' for name in names)
    return report.write("args", f"[{words}]")


def _reads_places(metadata: Metadata, line: CommandLine) -> bool:
    """Whether the code takes its first word for a value, where a call with `--name value` would put a name."""
    return uses_odd_places(metadata.code) if metadata.language == BASH else is_positional(line)
