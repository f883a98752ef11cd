"""`crib check` and `crib doctor`: what is wrong with the tools, and how everything is set up here."""

from __future__ import annotations

import asyncio
import platform
import sys
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolcrib.core.describe import NOT_BUILT, place_of, shadow_of, unbuilt_facts
from toolcrib.core.project_data import DATA_FOLDER
from toolcrib.features.scripts.observation import observe_tool
from toolcrib.infra.settings import BY_DEFAULT, FILE_NAME
from toolcrib.infra.settings.readers import CustomRule
from toolcrib.interfaces.cli.call_command import perform
from toolcrib.lib.names import read_address
from toolcrib.lib.protected_names import ASKED, CLOSED, FIXED, TABLE
from toolcrib.lib.version import __version__
from toolcrib.model.errors import ToolError
from toolcrib.toolkit.cli.console import ExitCode, count, on_one_line, say, say_facts, say_json, say_table
from toolcrib.toolkit.cli.group import complete_tool, json_option, pass_opener, project_option
from toolcrib.toolkit.cli.tool_tables import complain_unknown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from toolcrib.crib import Crib
    from toolcrib.model.tool import Tool
    from toolcrib.toolkit.cli.opener import Opener

ACCESS = {
    CLOSED: "neither read nor written",
    FIXED: "never written",
    ASKED: "written if confirmed, never by files of code",
}
NEEDED_TO_WRITE = ("mounts", "landlock", "seccomp")
NO_SETTINGS = frozenset({"root", "places"})
JOBS = {"plain": "files of code", "network": "those with a network", "program": "programs"}


@click.command("check")
@click.argument("names", nargs=-1, metavar="[NAME]... | --observe NAME [KEY=VALUE]...", shell_complete=complete_tool)
@click.option("--strict", is_flag=True, help="Warnings count as problems.")
@click.option("--observe", is_flag=True, help="Run one tool and compare what it does with what it declares.")
@click.option("--grant", "grants", multiple=True, metavar="CAPABILITY", help="With --observe: grant it; repeatable.")
@click.option("--yes", "agreed", is_flag=True, help="With --observe: confirm the call.")
@project_option
@json_option
@pass_opener
def check(
    opener: Opener[Crib],
    names: tuple[str, ...],
    grants: tuple[str, ...],
    *,
    strict: bool,
    observe: bool,
    agreed: bool,
    as_json: bool,
) -> int:
    """Report what is wrong with the tools.

    Every tool is loaded and made ready, none is run. What is wrong is named with file, line and cure.

    With --observe one tool runs, with its examples or the arguments given, and what it did is held against what it
    declares: an effect that it does not declare fails, a declaration without an effect is suggested for removal.
    """
    if observe:
        return observe_tool(names, opener, perform, grants=grants, agreed=agreed, as_json=as_json)
    with opener.open_local() as crib:
        return check_tools(crib, names, strict=strict, as_json=as_json)


@click.command("doctor")
@project_option
@json_option
@pass_opener
def doctor(opener: Opener[Crib], *, as_json: bool) -> int:
    """Show how everything is set up here.

    Versions, folders, the settings in force and where each one is set, what the sandbox guarantees, and problems.
    """
    with opener.open_local() as crib:
        return report_health(crib, as_json=as_json)


def check_tools(crib: Crib, names: Sequence[str], *, strict: bool, as_json: bool = False) -> ExitCode:
    """`crib check [NAME…]`. What could not be read has no name, so it is always reported."""
    tools = list(crib.tools)
    if names:
        found = {name: crib.find(name) for name in names}
        if unknown := [name for name, entry in found.items() if entry is None]:
            _say_all("problem", _problems(crib, []))
            return complain_unknown(crib, unknown[0])
        tools = [entry.tool for entry in found.values() if entry is not None]
    folder_problems, folder_warnings = crib.registries.check()
    problems = [*_problems(crib, tools), *folder_problems]
    warnings = [warning for tool in tools for warning in (*crib.warnings(tool), *_hidden_by(crib, tool))]
    warnings += [warning for warning in (*folder_warnings, *_unbuilt(crib, folder_problems)) if warning not in warnings]
    if as_json:
        say_json({"tools": len(tools), "problems": problems, "warnings": warnings})
    else:
        _say_all("problem", problems)
        _say_all("warning", warnings)
        say(f"{count(len(tools), 'tool')}, {count(len(problems), 'problem')}, {count(len(warnings), 'warning')}")
    return ExitCode.FAILED if problems or (strict and warnings) else ExitCode.DONE


def report_health(crib: Crib, *, as_json: bool) -> ExitCode:
    """`crib doctor`."""
    settings = list(_settings(crib))
    problems = [problem.message for problem in crib.problems]
    sandbox = asyncio.run(crib.sandbox_report())
    if as_json:
        places = {name: {"value": value, "where": where} for name, value, where in settings}
        about = {**dict(_about(crib)), "settings": places, "sandbox": sandbox, "protected": _protected(crib, sandbox)}
        say_json({**about, "problems": problems})
        return ExitCode.DONE
    say_facts(_about(crib))
    say("")
    say_table(("setting", "value", "set in"), [(name, _show(value), where) for name, value, where in settings])
    say("")
    say_table(("sandbox for", "guarantees", "missing", "by"), [_walls(name, found) for name, found in sandbox.items()])
    say("")
    say_table(
        ("in the workspace", "names"), [(what, ", ".join(names)) for what, names in _protected(crib, sandbox).items()]
    )
    say("")
    say_facts([("problem", text) for text in problems] or [("problems", "none")])
    return ExitCode.DONE


def _protected(crib: Crib, sandbox: Mapping[str, Mapping[str, object]]) -> dict[str, list[str]]:
    """What is closed to tools, what the operator opened, and whether jobs can be kept from it here."""
    closed = {ACCESS[access]: list(names) for access, names in TABLE.items()}
    layers = str(sandbox["plain"]["layers"])
    missing = [layer for layer in NEEDED_TO_WRITE if layer not in layers]
    held = [f"by {layer}" for layer in NEEDED_TO_WRITE] if not missing else [f"no {layer}" for layer in missing]
    return {
        **closed,
        "opened by workspace_open": list(crib.settings.workspace_open) or ["nothing"],
        "fs.write of files of code is" + (" refused" if missing else " held"): held,
    }


def _walls(profile: str, found: Mapping[str, object]) -> tuple[str, ...]:
    return (JOBS[profile], *(_show(found[name]) for name in ("guarantees", "missing", "layers")))


def _problems(crib: Crib, tools: Sequence[Tool]) -> list[str]:
    """Everything that is wrong, each by itself: one file may hold several mistakes."""
    problems = [problem.message for problem in crib.problems]
    problems += [message for tool in tools if (message := _problem_with(crib, tool))]
    return [line for problem in problems for line in problem.splitlines()]


def _say_all(what: str, texts: Sequence[str]) -> None:
    for text in texts:
        say(f"{what}: {on_one_line(text)}")


def _problem_with(crib: Crib, tool: Tool) -> str:
    try:
        crib.check(tool)
    except ToolError as problem:
        return f"{place_of(crib, tool) or tool.address}: {problem.message}"
    return ""


def _unbuilt(crib: Crib, problems: Sequence[str]) -> Iterator[str]:
    """The folders that only need to be built; what is wrong with the others is told already."""
    for facts in unbuilt_facts(crib):
        folder, reason = facts["origin"], facts["reason"].removeprefix(f"{NOT_BUILT}: ")
        if not any(problem.startswith(folder) for problem in problems):
            yield f"{folder} is {NOT_BUILT} ({reason}); {facts['cure']}"


def _hidden_by(crib: Crib, tool: Tool) -> Iterator[str]:
    """A warning for each tool that the bare name does not find because it finds this one; an older version is none."""
    for address in shadow_of(crib, tool).over:
        if read_address(address).bundle != tool.bundle:
            yield f"{place_of(crib, tool) or tool.address} hides {address}; call that one by its address"


def _about(crib: Crib) -> Iterator[tuple[str, str]]:
    root = crib.settings.root or Path()
    yield "toolcrib", __version__
    yield "python", f"{platform.python_version()} ({sys.executable})"
    yield "platform", platform.platform()
    yield "caller", crib.caller
    yield "project", str(root)
    yield "settings file", _existing(root / FILE_NAME)
    for folder in crib.settings.tools:
        yield f"tools in {folder}", _existing(root / folder)
    yield "own data", _existing(root / DATA_FOLDER)
    yield "tools", str(len(crib.tools))


def _existing(path: Path) -> str:
    return str(path) if path.exists() else f"{path} (not there)"


def _settings(crib: Crib) -> Iterator[tuple[str, object, str]]:
    settings = crib.settings
    for field in fields(settings):
        if field.name not in NO_SETTINGS:
            yield field.name, _plain(getattr(settings, field.name)), settings.places.get(field.name, BY_DEFAULT)


def _plain(value: object) -> object:
    """A setting as JSON can say it."""
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, tuple):
        return [asdict(item) if isinstance(item, CustomRule) else item for item in value]
    return str(value) if isinstance(value, Path) else value


def _show(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(str(item["name"]) if isinstance(item, dict) else str(item) for item in value) or "-"
    return str(value).lower() if isinstance(value, bool) else str(value)
