"""The commands around tool folders: write, build, test, and hand tools to models."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolcrib.interfaces.cli.open_crib import find_here, open_crib
from toolcrib.interfaces.cli.project import write_files
from toolcrib.lib.export_schemas.targets import Provider
from toolcrib.lib.names import slug_of
from toolcrib.model.session import MODES
from toolcrib.toolkit.cli.console import ExitCode, WrongUseError, complain, count, on_one_line, say, say_facts, say_json
from toolcrib.toolkit.cli.group import complete_tool, json_option, project_option

if TYPE_CHECKING:
    from toolcrib.crib import Crib
    from toolcrib.features.folders.build import Built
    from toolcrib.features.folders.registry import Registry


# MERGED toolcrib.faces.cli.building

# `crib new`, `crib build` and `crib registry`: tool folders, from the first file to what agents load.


def start_folder(name: str, project: str | None, *, language: str) -> ExitCode:
    """`crib new NAME`: a tool folder and its test, in the project."""
    from toolcrib.features.folders.starter import starter_files

    root = find_here() if project is None else Path(project)
    files = starter_files(name, language)
    folder = next(iter(files)).rpartition("/")[0]
    if (root / folder).exists():
        raise WrongUseError(f"{folder} is already there; choose another name, or change what it holds")
    write_files(root, files)
    say("")
    say("Next:")
    say("  crib build")
    say(f"  crib test {name.replace('-', '_')}")
    say(f"  crib call {name.replace('-', '_')} text='Every tool has its place'")
    return ExitCode.DONE


def build_folders(crib: Crib, *, strict: bool, as_json: bool) -> ExitCode:
    """`crib build`."""
    builds = crib.registries.build(strict=strict)
    if as_json:
        say_json([_facts(crib, built) for built in builds])
    else:
        for built in builds:
            _report(crib, built)
    if not builds:
        complain(f"there is no folder of tools here; make one with: crib new NAME ({crib.settings.where('tools')})")
        return ExitCode.FAILED
    return ExitCode.DONE if all(built.ok for built in builds) else ExitCode.FAILED


def watch_folders(crib: Crib, *, strict: bool) -> ExitCode:
    """`crib build --watch`: until interrupted."""
    say("building at every change; end it with Ctrl-C")
    with suppress(KeyboardInterrupt):
        crib.registries.watch(lambda built: _report(crib, built), threading.Event(), strict=strict)
    return ExitCode.DONE


def show_registry(crib: Crib, name: str | None, *, as_json: bool) -> ExitCode:
    """`crib registry [NAME]`."""
    loaded = crib.registries.loaded
    stale = crib.registries.unbuilt()
    facts = [_describe(crib, registry) for registry in loaded]
    unbuilt = [
        {"tool": folder.name, "folder": _place(crib, root / folder.folder), "reason": folder.reason}
        for root, folder in stale
    ]
    holds = None if name is None else _holds(crib, name)
    is_right = bool(loaded) and not stale and holds is not False and not any(registry.problem for registry in loaded)
    if as_json:
        say_json({"registries": facts, "stale": unbuilt, **({} if name is None else {"name": name, "holds": holds})})
        return ExitCode.DONE if is_right else ExitCode.FAILED
    if not loaded:
        say("no registry is loaded; build one with: crib build")
    for registry in facts:
        say_facts((key, str(value)) for key, value in registry.items() if key != "tools")
        tools = registry["tools"]
        say_facts([("tools", ", ".join(tools) if isinstance(tools, list) and tools else "none")])
    for folder in unbuilt:
        say(on_one_line(f"stale: {folder['folder']}: {folder['reason']}; run: crib build"))
    if loaded and not stale:
        say("it is up to date")
    if name is not None:
        say(on_one_line(f"{name}: {'it holds this tool' if holds else 'it does not hold this tool'}"))
    return ExitCode.DONE if is_right else ExitCode.FAILED


def _report(crib: Crib, built: Built) -> None:
    for problem in built.problems:
        say(f"problem: {on_one_line(problem)}")
    for warning in built.warnings:
        say(f"warning: {on_one_line(warning)}")
    place = _place(crib, built.path)
    if not built.ok:
        rest = f"{place} stays as it was" if built.has_registry else "nothing was written"
        say(f"{count(len(built.problems), 'problem')}; {rest}")
        return
    state = "wrote" if built.written else "kept"
    counts = f"{count(len(built.tools), 'tool')}, {count(len(built.warnings), 'warning')}"
    say(f"{state} {place}: {counts}, version {built.version}")


def _facts(crib: Crib, built: Built) -> dict[str, object]:
    return {
        "ok": built.ok,
        "registry": _place(crib, built.path),
        "version": built.version,
        "written": built.written,
        "tools": list(built.tools),
        "problems": list(built.problems),
        "warnings": list(built.warnings),
    }


def _describe(crib: Crib, registry: Registry) -> dict[str, object]:
    return {
        "registry": _place(crib, registry.path),
        "version": registry.version,
        "commit": registry.git_commit,
        "problem": registry.problem,
        "tools": [tool.name for tool in registry.tools],
    }


def _holds(crib: Crib, name: str) -> bool:
    slug = slug_of(name)
    return any(tool.slug == slug for registry in crib.registries.loaded for tool in registry.tools)


def _place(crib: Crib, path: Path) -> str:
    root = crib.settings.root
    return str(path.relative_to(root) if root is not None and path.is_relative_to(root) else path)


mode_option = click.option("--mode", type=click.Choice(sorted(MODES)), help="Only tools of this mode.")


@click.command("new")
@click.argument("name", metavar="NAME")
@click.option("--python", "python", is_flag=True, help="Write handler.py instead of handler.js.")
@project_option
@click.pass_obj
def new(project: str | None, name: str, *, python: bool) -> int:
    """Write a tool folder that passes the build, and its test.

    Nothing that is there is overwritten.
    """
    return start_folder(name, project, language="python" if python else "javascript")


@click.command("build")
@click.option("--strict", is_flag=True, help="Warnings count as problems.")
@click.option("--watch", is_flag=True, help="Build again whenever a file changes, until interrupted.")
@project_option
@json_option
@click.pass_obj
def build(project: str | None, *, strict: bool, watch: bool, as_json: bool) -> int:
    """Check every tool folder and write the registry.

    Every problem of every folder is named with file, line and cure. With any problem the registry that is there stays as it
    is. What was built counts from the next start of an agent, or at once where the setting watch is on.
    """
    with open_crib(project) as crib:
        return watch_folders(crib, strict=strict) if watch else build_folders(crib, strict=strict, as_json=as_json)


@click.command("registry")
@click.argument("name", required=False, shell_complete=complete_tool)
@project_option
@json_option
@click.pass_obj
def registry(project: str | None, name: str | None, *, as_json: bool) -> int:
    """Show which registry is loaded, and whether it is stale.

    With a name: whether it holds that tool. The exit code is 1 if there is none, if it is stale or does not hold the tool.
    """
    with open_crib(project) as crib:
        return show_registry(crib, name, as_json=as_json)


@click.command("test")
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_tool)
@click.option("--cases", metavar="FILE", help="Only the cases of this file, for the one tool that is named.")
@click.option("--mode", type=click.Choice(sorted(MODES)), help="In this mode, where a case does not say one.")
@click.option("--grant", "grants", multiple=True, metavar="CAPABILITY", help="Grant it for the test; repeatable.")
@click.option("--yes", "agreed", is_flag=True, help="Confirm what recorded cases call; they may not all be yours.")
@project_option
@json_option
@click.pass_obj
def test(
    project: str | None,
    names: tuple[str, ...],
    *,
    cases: str | None,
    mode: str | None,
    grants: tuple[str, ...],
    agreed: bool,
    as_json: bool,
) -> int:
    """Run what tools show as examples, and their recorded cases.

    Each runs through every gate and in the sandbox, with a scripted client that notes what it is sent. The exit code is 1 if
    any of them does not come to what it says.
    """
    from toolcrib.core.journal import MemoryJournal
    from toolcrib.features.testing.commands import try_tools

    # What is only tried is no part of what happened.
    with open_crib(project, grants=grants, journal=MemoryJournal()) as crib:
        return try_tools(crib, names, cases=cases, mode=mode, agreed=agreed, as_json=as_json)


@click.command("doc")
@click.argument("name", shell_complete=complete_tool)
@project_option
@click.pass_obj
def doc(project: str | None, name: str) -> int:
    """Print the whole documentation of a tool."""
    from toolcrib.features.exports.commands import print_documentation

    with open_crib(project) as crib:
        return print_documentation(crib, name)


@click.command("prompt")
@click.option("--mode", type=click.Choice(sorted(MODES)), default="text", show_default=True, help="The agent's mode.")
@click.option("--max-characters", type=click.IntRange(min=1), help="How long it may be.")
@click.option("--max-tokens", type=click.IntRange(min=1), help="How many tokens it may take, by estimate.")
@project_option
@json_option
@click.pass_obj
def prompt(project: str | None, *, mode: str, max_characters: int | None, max_tokens: int | None, as_json: bool) -> int:
    """Print what a system prompt says of the tools of a mode.

    Tools that do not fit the budget are left out whole, and named on standard error.
    """
    from toolcrib.features.exports.commands import print_prompt

    with open_crib(project) as crib:
        return print_prompt(crib, mode, max_characters=max_characters, max_tokens=max_tokens, as_json=as_json)


@click.command("export")
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_tool)
@click.option(
    "--for", "provider", required=True, type=click.Choice([str(provider) for provider in Provider]), help="For whom."
)
@click.option("--strict", is_flag=True, help="In the provider's strict mode, where it has one.")
@click.option("--lossless", is_flag=True, help="End with exit code 1 if anything is lost.")
@mode_option
@project_option
@json_option
@click.pass_obj
def export(
    project: str | None,
    names: tuple[str, ...],
    *,
    provider: str,
    strict: bool,
    lossless: bool,
    mode: str | None,
    as_json: bool,
) -> int:
    """Print the tools as a model provider takes them.

    Standard output is the list of definitions. What the provider cannot express is listed on standard error, or beside the
    definitions with --json.
    """
    from toolcrib.features.exports.commands import print_export

    with open_crib(project) as crib:
        return print_export(crib, provider, names, strict=strict, lossless=lossless, mode=mode, as_json=as_json)


@click.command("latency")
@project_option
@json_option
@click.pass_obj
def latency(project: str | None, *, as_json: bool) -> int:
    """Show how long the calls of this project took.

    By tool, from the journal: median, 95th and 99th percentile, and how many were over the tool's budget.
    """
    from toolcrib.interfaces.cli.project import say_latencies

    with open_crib(project) as crib:
        return say_latencies(crib, as_json=as_json)
