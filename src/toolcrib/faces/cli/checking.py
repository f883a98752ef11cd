"""`crib check` and `crib doctor`: what is wrong with the tools, and how everything is set up here."""

from __future__ import annotations

import asyncio
import platform
import sys
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib import __version__
from toolcrib.crib import DATA_FOLDER
from toolcrib.crib.facts import NOT_BUILT, place_of, shadow_of, unbuilt_facts
from toolcrib.faces.cli.codes import ExitCode
from toolcrib.faces.cli.listing import complain_unknown
from toolcrib.faces.cli.printing import count, on_one_line, say, say_facts, say_json, say_table
from toolcrib.ground.settings import BY_DEFAULT, FILE_NAME
from toolcrib.ground.settings.readers import CustomRule
from toolcrib.model.errors import ToolError
from toolcrib.pure.names import read_address

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from toolcrib.crib import Crib
    from toolcrib.model.tool import Tool

NO_SETTINGS = frozenset({"root", "places"})
JOBS = {"plain": "files of code", "network": "those with a network", "program": "programs"}


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
        say_json({**dict(_about(crib)), "settings": places, "sandbox": sandbox, "problems": problems})
        return ExitCode.DONE
    say_facts(_about(crib))
    say("")
    say_table(("setting", "value", "set in"), [(name, _show(value), where) for name, value, where in settings])
    say("")
    say_table(("sandbox for", "guarantees", "missing", "by"), [_walls(name, found) for name, found in sandbox.items()])
    say("")
    say_facts([("problem", text) for text in problems] or [("problems", "none")])
    return ExitCode.DONE


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
