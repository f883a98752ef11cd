"""`crib test`: run the examples of tools and their recorded cases."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import click

from toolcrib.core.journal import MemoryJournal
from toolcrib.features.testing.case_files import find_cases, from_root, read_file
from toolcrib.features.testing.cases import CaseResult, TriedCrib, try_cases
from toolcrib.lib.names import BUILTIN_BUNDLE, read_address, slug_of
from toolcrib.model.errors import ToolError
from toolcrib.model.tool import MODES
from toolcrib.toolkit.cli import (
    ExitCode,
    WrongUseError,
    complain,
    count,
    mention_problems,
    on_one_line,
    read_grants,
    say,
    say_json,
)
from toolcrib.toolkit.cli.group import complete_tool, example, json_option, pass_opener, project_option
from toolcrib.toolkit.cli.tool_tables import unknown_tool
from toolcrib.toolkit.client_protocol import ProjectCrib
from toolcrib.toolkit.tool_facts import NOT_OFFERED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolcrib.features.testing.examples import Examples
    from toolcrib.model.tool import Tool
    from toolcrib.toolkit.cli.group import Opener
    from toolcrib.toolkit.tool_facts import UnbuiltFolder, UnbuiltFolders

INDENT = " " * len("skipped  ")


class TestingCrib(ProjectCrib, TriedCrib, Protocol):
    """What the command uses of a crib."""

    @property
    def registries(self) -> UnbuiltFolders:
        """The tool folders that are not built."""

    @property
    def examples(self) -> Examples:
        """The record of failing examples."""


@click.command("test", epilog=example("crib test order_status"))
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_tool)
@click.option("--cases", metavar="FILE", help="Only the cases of this file, for the one tool that is named.")
@click.option("--mode", type=click.Choice(sorted(MODES)), help="The mode of cases that name none.")
@click.option(
    "--grant", "grants", multiple=True, metavar="CAPABILITY", help="Grant it to the tools for the test; repeatable."
)
@click.option("--yes", "agreed", is_flag=True, help="Confirm what recorded cases call; they may not all be yours.")
@project_option
@json_option
@pass_opener
def test(
    opener: Opener[TestingCrib],
    names: tuple[str, ...],
    *,
    cases: str | None,
    mode: str | None,
    grants: tuple[str, ...],
    agreed: bool,
    as_json: bool,
) -> int:
    """Run the examples of tools, and their recorded cases.

    Each runs through every gate and in the sandbox, with a scripted client that records what it is sent. The exit code is 1 if
    any of them fails.
    """
    # Trial calls are not written to the journal.
    granted = read_grants(grants, *(names or ("*",)))
    with opener.open_local(grants=granted, journal=MemoryJournal()) as crib:
        return try_tools(crib, names, cases=cases, mode=mode, agreed=agreed, as_json=as_json)


@dataclass(frozen=True, slots=True)
class CaseReport:
    """The results of the cases, tool by tool; each is printed as it ends, unless the output is JSON."""

    as_json: bool
    results: list[tuple[str, CaseResult]] = field(default_factory=list)
    untested: list[str] = field(default_factory=list)

    def add(self, tool: str, result: CaseResult) -> None:
        """Add the result of a case."""
        self.results.append((tool, result))
        if self.as_json:
            return
        for line in _lines(tool, result):
            say(line)
        # Output to a pipe is buffered otherwise.
        if sys.stdout is not None:
            sys.stdout.flush()

    @property
    def failed(self) -> bool:
        """Whether any case failed."""
        return any(result.failed for _, result in self.results)

    def close(self) -> None:
        """Print the summary."""
        if self.as_json:
            cases = [{"tool": tool, **result.to_json()} for tool, result in self.results]
            say_json({"ok": not self.failed, "cases": cases, "untested": self.untested})
            return
        results = [result for _, result in self.results]
        counts = (
            (sum(result.passed for result in results), "ok"),
            (sum(result.failed for result in results), "failed"),
            (sum(bool(result.skipped) for result in results), "skipped"),
        )
        warnings = sum(len(result.warnings) for result in results)
        told = [f"{number} {word}" for number, word in counts] + [count(warnings, "warning")]
        say(f"{count(len(results), 'case')}: {', '.join(told)}")


def try_tools(
    crib: TestingCrib,
    names: Sequence[str],
    *,
    cases: str | None = None,
    mode: str | None = None,
    agreed: bool = False,
    as_json: bool = False,
) -> ExitCode:
    """`crib test [NAME…] [--cases FILE]`: run the examples and recorded cases of the tools."""
    if cases is not None and len(names) != 1:
        raise WrongUseError("a file of cases is for one tool; write: crib test NAME --cases FILE")
    report = CaseReport(as_json)
    unbuilt = [each for each in crib.registries.unbuilt() if not names or any(_means(name, *each) for name in names)]
    for name in names:
        if crib.find(name) is None and not any(_means(name, *each) for each in unbuilt):
            raise unknown_tool(crib, name)
    _add_unbuilt(crib, report, unbuilt)
    for tool in _tools(crib, names):
        _try_tool(crib, tool, report, cases, mode, agreed=agreed)
    report.close()
    if not names:
        mention_problems(crib)
        return ExitCode.FAILED if report.failed else ExitCode.DONE
    for name in report.untested:
        complain(f"{name} has no examples and no cases; write tests/cases/{name}.yaml")
    return ExitCode.FAILED if report.failed or report.untested else ExitCode.DONE


def _tools(crib: TestingCrib, names: Sequence[str]) -> Iterator[Tool]:
    if not names:
        yield from (tool for tool in crib.tools if tool.kind not in NOT_OFFERED and tool.bundle != BUILTIN_BUNDLE)
    for name in names:
        entry = crib.find(name)
        if entry is not None:
            yield entry.tool


def _try_tool(
    crib: TestingCrib, tool: Tool, report: CaseReport, file: str | None, mode: str | None, *, agreed: bool
) -> None:
    cases = find_cases(tool, crib.settings.root) if file is None else read_file(Path(file))
    if not cases:
        report.untested.append(tool.name)
    results = try_cases(crib, tool, cases, mode=mode, heard=lambda result: report.add(tool.name, result), agreed=agreed)
    try:
        crib.examples.remember(tool, zip(cases, results, strict=True))
    except ToolError as problem:
        complain(f"which examples of {tool.name} failed is not remembered: {problem.message}")


def _means(name: str, root: Path, folder: UnbuiltFolder) -> bool:
    """Whether a name is that of a folder that is not built."""
    address = read_address(name)
    return address.bundle in (None, root.name) and slug_of(address.name) == slug_of(folder.name)


def _add_unbuilt(crib: TestingCrib, report: CaseReport, unbuilt: list[tuple[Path, UnbuiltFolder]]) -> None:
    """Report each folder that is not built as a failure: its cases cannot run, which must not look like success."""
    for root, folder in unbuilt:
        problem = f"it is not built ({folder.reason}); run: crib build"
        place = from_root(crib.settings.root, str(root / folder.folder))
        report.add(folder.name, CaseResult(name="build", place=place, passed=False, reasons=(problem,)))


def _lines(tool: str, result: CaseResult) -> Iterator[str]:
    mark = "skipped" if result.skipped else "ok" if result.passed else "FAIL"
    facts = ", ".join(filter(None, (result.place, "" if result.skipped else f"{result.seconds:.3f} s")))
    yield f"{mark:<7}  {on_one_line(f'{tool}: {result.name}')} ({on_one_line(facts)})"
    for reason in (result.skipped, *result.reasons):
        if reason:
            yield f"{INDENT}{on_one_line(reason)}"
    for warning in result.warnings:
        yield f"{INDENT}warning: {on_one_line(warning)}"
