"""Decide how a file that runs as a program is given its arguments, from what its author declares and what its code reads."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from toolcrib.lib.bash_program import read_bash_program, uses_odd_places
from toolcrib.lib.command_line import SPREAD, CommandLine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.features.scripts.fields import Form
    from toolcrib.features.scripts.metadata import Report

READERS = {"bash": read_bash_program}
# With one of these the author says it himself.
DECLARES = ("args", "stdin", "command", "shell")


def read_program(report: Report, config: Mapping[str, object], form: Form) -> CommandLine | None:
    """How the program takes its arguments; None where its author says so, or where it is told with `--name value`."""
    metadata = report.metadata
    reader = READERS.get(metadata.language)
    if reader is None or form.action or any(name in config for name in DECLARES):
        return None
    line = reader(metadata.code)
    declared = form.declared.names
    if declared is None:
        return _undeclared(report, line)
    return _matched(report, line, declared, form)


def _undeclared(report: Report, line: CommandLine) -> CommandLine | None:
    """Nothing is declared: the code says it, unless it takes any words at all."""
    takes_anything = all(one.takes == SPREAD and not one.option for one in line.parameters) and not line.stdin
    if takes_anything and not report.metadata.plain:
        return None
    for number, text in line.problems:
        report.refuse_line(number, text)
    for number, text in line.warnings:
        report.warn_line(number, text)
    return line


def _matched(report: Report, line: CommandLine, declared: frozenset[str], form: Form) -> CommandLine | None:
    """Arguments are declared: they are what the code reads by the same names, or in the same order."""
    if not declared:
        return None
    if declared <= {*line.names}:
        return line
    places = [one for one in line.parameters if not one.option]
    if not uses_odd_places(report.metadata.code):
        return None
    if len(places) == len(line.parameters) == len(declared) and not any(one.takes == SPREAD for one in places):
        properties = (form.declared.inputs or {}).get("properties")
        ordered = list(properties) if isinstance(properties, dict) else []
        renamed = [replace(one, name=name) for one, name in zip(places, ordered, strict=True)]
        words = ", ".join(f'"{{{name}}}"' for name in ordered)
        text = f"is taken in this order by the places $1, $2 …; write {report.write('args', f'[{words}]')}"
        report.warn(("parameters",), text)
        return replace(line, parameters=tuple(renamed))
    words = ", ".join(f'"{{{name}}}"' for name in sorted(declared))
    text = f"the file reads its arguments by their places; say which is which: {report.write('args', f'[{words}]')}"
    report.refuse(("parameters",), text)
    return None
