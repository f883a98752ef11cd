"""The commands around a project: `crib init`, `check` and `doctor`."""

from __future__ import annotations

import sys
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import click

from toolcrib.features.project.health_report import about, list_problems, protected_names, setting_lines
from toolcrib.features.scripts.observation import observe_tool
from toolcrib.infra.plain_code import run_async
from toolcrib.infra.settings import BY_DEFAULT, DATA_FOLDER, FILE_NAME
from toolcrib.interfaces.cli import perform
from toolcrib.lib.names import read_address
from toolcrib.toolkit.cli import Answer, ExitCode, count, excerpts_of, indented, on_one_line, paint, say, say_json
from toolcrib.toolkit.cli.console_tables import say_facts, say_table
from toolcrib.toolkit.cli.group import (
    answers,
    complete_tool,
    example,
    explain_failure,
    json_option,
    pass_opener,
    project_option,
    report_file,
    write_files,
    write_new,
)
from toolcrib.toolkit.cli.progress import working
from toolcrib.toolkit.cli.tool_tables import unknown_tool
from toolcrib.toolkit.tool_facts import NOT_BUILT, place_of, shadow_of, unbuilt_facts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from toolcrib.crib import Crib
    from toolcrib.features.project.health_report import SettingLine
    from toolcrib.model.tool import Tool
    from toolcrib.toolkit.cli.group import Opener


SETTINGS = """\
# Settings of this project. `crib doctor` shows what differs from the default, and where it is set.

# What tools may use: every tool the files of this project, and one tool more. The built-in fetch needs "net.http",
# shell needs "shell.execute". A tool without its grants is not offered to models.
# [grants]
# "*" = ["fs.*"]
# "shell" = ["shell.execute"]

# How long a call may take if its tool does not say.
# [calls]
# timeout_ms = 30000

# Tools that cannot be called: by name, or "builtin/*" for all that come with Toolcrib.
# [catalog]
# disabled = ["shell"]
"""

TOOL = '''\
"""A first tool. The function named like the file is the tool; its hints and its docstring are what a model is told."""


def greet(name: str, times: int = 1) -> str:
    """Greet a person by name.

    Args:
        name: Who is greeted.
        times: How many times.
    """
    return " ".join([f"Hello, {name}!"] * times)
'''

TEST = '''\
"""The test of tools/greet.py: the plain function, and the tool as an agent calls it."""

from pathlib import Path
from runpy import run_path

from toolcrib import Crib

PROJECT = Path(__file__).parent.parent


def test_greet_says_the_name_as_often_as_asked():
    greet = run_path(str(PROJECT / "tools" / "greet.py"))["greet"]
    assert greet("Ada", times=2) == "Hello, Ada! Hello, Ada!"


def test_an_agent_gets_the_greeting():
    with Crib(PROJECT) as crib:
        result = crib.call_sync("greet", name="Ada")
    assert result.value == "Hello, Ada!"


def test_an_agent_that_forgets_the_name_is_told():
    with Crib(PROJECT) as crib:
        result = crib.call_sync("greet")
    assert "name" in result.error.message
'''

FILES = {FILE_NAME: SETTINGS, "tools/greet.py": TOOL, "tests/test_greet.py": TEST}
IGNORED = f"{DATA_FOLDER}/"
# Files of a folder that pytest reads for all folders below it, up to one that has a pytest.ini.
PYTEST_FILES = ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg", "conftest.py")
PYTEST = {"pytest.ini": "# Keeps the settings of pytest in the folders above from applying here.\n[pytest]\n"}


@click.command("init", epilog=example("crib init shop"))
@click.argument("folder", default=".", metavar="[DIR]", type=click.Path(file_okay=False))
@answers("folder", "files")
def init(folder: str) -> Answer:
    """Write a project with a first tool and its test.

    Nothing that is there is overwritten.
    """
    return start_project(folder)


def start_project(folder: str) -> Answer:
    """`crib init [DIR]`: write the files that do not exist yet, and print the next steps."""
    root = Path(folder)
    is_inside = not _has_pytest(root) and any(map(_has_pytest, root.resolve().parents))
    files = write_files(root, FILES | PYTEST if is_inside else FILES)
    with explain_failure():
        files.append(report_file(".gitignore", written=_ignore(root / ".gitignore")))
    say("")
    say("Next:")
    if root.resolve() != Path.cwd():
        say(f"  cd {on_one_line(folder)}")
    say("  crib call greet name=Ada")
    say("  crib list")
    say("  pytest    (pip install pytest)")
    return Answer({"folder": folder, "files": files})


def _has_pytest(folder: Path) -> bool:
    return any((folder / name).is_file() for name in PYTEST_FILES)


def _ignore(path: Path) -> bool:
    """Add our data folder to .gitignore; existing lines stay."""
    if write_new(path, f"{IGNORED}\n"):
        return True
    text = path.read_text(encoding="utf-8", errors="surrogateescape")
    if IGNORED in (line.strip().removeprefix("/") for line in text.splitlines()):
        return False
    gap = "" if not text or text.endswith("\n") else "\n"
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{gap}{IGNORED}\n")
    return True


JOBS = {"plain": "files of code", "network": "those with a network", "program": "programs"}


@click.command("check", epilog=example("crib check", "crib check count_words --observe text='a b a'"))
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

    Every tool is loaded and prepared, none is run. Each problem is printed with file, line and cure, also what keeps a tool from
    running on this machine: a missing program, package, variable or secret. The exit code is 1 if there is a problem.

    With --observe one tool runs, with its examples or the arguments given, and what it did is compared with what it
    declares: an effect that it does not declare fails, a declaration without an effect is suggested for removal.
    """
    if observe:
        return observe_tool(names, opener, perform, grants=grants, agreed=agreed, as_json=as_json)
    with opener.open_local() as crib, working("checking the tools"):
        return check_tools(crib, names, strict=strict, as_json=as_json)


@click.command("doctor", epilog=example("crib doctor --all"))
@click.option("--all", "everything", is_flag=True, help="Show every setting with what it means, also the defaults.")
@project_option
@json_option
@pass_opener
def doctor(opener: Opener[Crib], *, everything: bool, as_json: bool) -> int:
    """Show versions, settings, sandbox and problems.

    Also folders, the settings that differ from the defaults and where each is set, and what the sandbox guarantees. The exit code is
    1 if there is a problem, as that of crib check.
    """
    with opener.open_local() as crib, working("looking at the project and the sandbox"):
        return report_health(crib, everything=everything, as_json=as_json)


def check_tools(crib: Crib, names: Sequence[str], *, strict: bool, as_json: bool = False) -> ExitCode:
    """`crib check [NAME…]`. A file that cannot be read has no name, so it is always reported."""
    crib.plugins.register_all()
    entries = list(crib.entries)
    if names:
        found = {name: crib.find(name) for name in names}
        if unknown := [name for name, entry in found.items() if entry is None]:
            _say_all("problem", list_problems(crib, []))
            raise unknown_tool(crib, unknown[0])
        entries = [entry for entry in found.values() if entry is not None]
    tools = [entry.tool for entry in entries]
    folder_problems, folder_warnings = crib.registries.check()
    run_async(crib.probe_sandbox())
    problems = [*list_problems(crib, entries), *folder_problems]
    warnings = [warning for tool in tools for warning in (*crib.warnings(tool), *_hidden_by(crib, tool))]
    warnings += [] if names else [*crib.misleading_tools(), *crib.grants.warnings(crib.unstored_entries)]
    warnings += [warning for warning in (*folder_warnings, *_unbuilt(crib, folder_problems)) if warning not in warnings]
    ignored = [] if names else crib.ignored_files()
    if as_json:
        say_json({"tools": len(tools), "problems": problems, "warnings": warnings, "ignored": ignored})
    else:
        _say_all("problem", problems, excerpts_of(crib.problems))
        _say_all("warning", warnings)
        _say_all("ignored", ignored)
        say(f"{count(len(tools), 'tool')}, {count(len(problems), 'problem')}, {count(len(warnings), 'warning')}")
    return ExitCode.FAILED if problems or (strict and warnings) else ExitCode.DONE


def report_health(crib: Crib, *, everything: bool, as_json: bool) -> ExitCode:
    """`crib doctor`."""
    crib.plugins.register_all()
    settings = [line for line in setting_lines(crib.settings) if everything or line.where != BY_DEFAULT]
    sandbox = run_async(crib.sandbox_report())
    problems = list_problems(crib, crib.entries)
    warnings = list(crib.grants.warnings(crib.unstored_entries))
    code = ExitCode.FAILED if problems else ExitCode.DONE
    if as_json:
        places = {line.name: {"value": line.value, "where": line.where, "about": line.about} for line in settings}
        report = {
            **dict(about(crib)),
            "settings": places,
            "sandbox": sandbox,
            "protected": protected_names(crib.settings, sandbox),
        }
        say_json({**report, "problems": problems, "warnings": warnings})
        return code
    say_facts(about(crib))
    say("")
    _say_settings(settings, everything=everything)
    say("")
    say_table(("sandbox for", "guarantees", "missing", "by"), [_policy(name, found) for name, found in sandbox.items()])
    say("")
    say_table(
        ("in the workspace", "names"),
        [(what, ", ".join(names)) for what, names in protected_names(crib.settings, sandbox).items()],
    )
    say("")
    say_facts([("problem", text) for text in problems] or [("problems", "none")])
    say_facts([("warning", text) for text in warnings])
    return code


def _policy(profile: str, found: Mapping[str, object]) -> tuple[str, ...]:
    return (JOBS[profile], *(_show_setting(found[name]) for name in ("guarantees", "missing", "layers")))


COLOURS = {"problem": "red", "warning": "yellow", "ignored": "grey"}


def _say_all(what: str, texts: Sequence[str], excerpts: Mapping[str, str] = MappingProxyType({})) -> None:
    for text in texts:
        say(f"{paint(f'{what}:', COLOURS[what], sys.stdout)} {on_one_line(text)}")
        if text in excerpts:
            say(indented(excerpts[text]))


def _unbuilt(crib: Crib, problems: Sequence[str]) -> Iterator[str]:
    """The folders that only need to be built; problems of the others are reported already."""
    for facts in unbuilt_facts(crib):
        folder, reason = facts["origin"], facts["reason"].removeprefix(f"{NOT_BUILT}: ")
        if not any(problem.startswith(folder) for problem in problems):
            yield f"{folder} is {NOT_BUILT} ({reason}); {facts['cure']}"


def _hidden_by(crib: Crib, tool: Tool) -> Iterator[str]:
    """A warning for each tool that this one shadows; an older version does not count."""
    for address in shadow_of(crib, tool).over:
        if read_address(address).bundle != tool.bundle:
            yield f"{place_of(crib, tool) or tool.address} hides {address}; call that one by its address"


def _say_settings(lines: Sequence[SettingLine], *, everything: bool) -> None:
    if everything:
        columns = ("setting", "value", "set in", "about")
        say_table(columns, [(line.name, _show_setting(line.value), line.where, line.about) for line in lines])
    elif lines:
        say_table(
            ("setting", "value", "set in"), [(line.name, _show_setting(line.value), line.where) for line in lines]
        )
    else:
        say("settings: all as by default; crib doctor --all lists them")


def _show_setting(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(str(item["name"]) if isinstance(item, dict) else str(item) for item in value) or "-"
    if value is None or value == "":
        return "-"
    return str(value).lower() if isinstance(value, bool) else str(value)
