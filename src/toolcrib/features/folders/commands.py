"""The commands around tool folders: write one, build all, and look at the registry that agents load."""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

import click

from toolcrib.features.folders.starter import starter_files
from toolcrib.lib.names import slug_of
from toolcrib.toolkit.cli import (
    Answer,
    ExitCode,
    WrongUseError,
    complain,
    count,
    on_one_line,
    say,
    say_json,
    say_json_line,
)
from toolcrib.toolkit.cli.console_tables import say_facts
from toolcrib.toolkit.cli.group import (
    answers,
    complete_tool,
    example,
    json_option,
    pass_opener,
    project_option,
    write_files,
)
from toolcrib.toolkit.cli.progress import working
from toolcrib.toolkit.client_protocol import ProjectCrib

if TYPE_CHECKING:
    from pathlib import Path

    from toolcrib.features.folders.build import Built
    from toolcrib.features.folders.registry import Registry
    from toolcrib.features.folders.source import Registries
    from toolcrib.toolkit.cli.group import Opener


class FoldersCrib(ProjectCrib, Protocol):
    """What these commands use of a crib."""

    @property
    def registries(self) -> Registries:
        """The registries of tool folders that are in force here, and the way to build them."""


@click.command("new", epilog=example("crib new order-status --python"))
@click.argument("name", metavar="NAME")
@click.option("--python", "python", is_flag=True, help="Write handler.py instead of handler.js.")
@project_option
@answers("tool", "folder", "files")
@pass_opener
def new(opener: Opener[FoldersCrib], name: str, *, python: bool) -> Answer:
    """Write a tool folder that passes the build, and its test.

    Nothing that is there is overwritten.
    """
    return start_folder(name, opener.folder, language="python" if python else "javascript")


@click.command("build", epilog=example("crib build --strict"))
@click.option("--strict", is_flag=True, help="Warnings count as problems.")
@click.option("--watch", is_flag=True, help="Build again whenever a file changes, until interrupted.")
@project_option
@json_option
@pass_opener
def build(opener: Opener[FoldersCrib], *, strict: bool, watch: bool, as_json: bool) -> int:
    """Check every tool folder and write the registry.

    Every problem of every folder is named with file, line and cure. With any problem the registry that is there stays as it
    is. What was built counts from the next start of an agent, or at once where the setting watch is on. With --watch and --json
    every build is one line.
    """
    with opener.open_local() as crib:
        if watch:
            return watch_folders(crib, strict=strict, as_json=as_json)
        return build_folders(crib, strict=strict, as_json=as_json)


@click.command("registry", epilog=example("crib registry order_status"))
@click.argument("name", required=False, shell_complete=complete_tool)
@project_option
@json_option
@pass_opener
def registry(opener: Opener[FoldersCrib], name: str | None, *, as_json: bool) -> int:
    """Show which registry is loaded, and whether it is stale.

    With a name: whether it holds that tool. The exit code is 1 if there is none, if it is stale or does not hold the tool.
    """
    with opener.open_local() as crib:
        return show_registry(crib, name, as_json=as_json)


def start_folder(name: str, root: Path, *, language: str) -> Answer:
    """`crib new NAME`: a tool folder and its test, in the project."""
    files = starter_files(name, language)
    folder = next(iter(files)).rpartition("/")[0]
    if (root / folder).exists():
        raise WrongUseError(f"{folder} is already there; choose another name, or change what it holds")
    written = write_files(root, files)
    tool = name.replace("-", "_")
    say("")
    say("Next:")
    say("  crib build")
    say(f"  crib test {tool}")
    say(f"  crib call {tool} text='Every tool has its place'")
    return Answer({"tool": tool, "folder": folder, "files": written})


def build_folders(crib: FoldersCrib, *, strict: bool, as_json: bool) -> ExitCode:
    """`crib build`."""
    with working("building the tool folders"):
        builds = crib.registries.build(strict=strict)
    if as_json:
        say_json([_facts(crib, built) for built in builds])
    else:
        for built in builds:
            _report(crib, built)
    if not builds:
        complain(
            f"there is no folder of tools here; make one with: crib new NAME ({crib.settings.where('catalog.folders')})"
        )
        return ExitCode.FAILED
    return ExitCode.DONE if all(built.ok for built in builds) else ExitCode.FAILED


def watch_folders(crib: FoldersCrib, *, strict: bool, as_json: bool) -> ExitCode:
    """`crib build --watch`: until interrupted; with `--json` every build is one line."""

    def report(built: Built) -> None:
        if as_json:
            say_json_line(_facts(crib, built))
        else:
            _report(crib, built)
        # Output to a pipe is buffered otherwise.
        if sys.stdout is not None:
            sys.stdout.flush()

    say("building at every change; end it with Ctrl-C")
    with suppress(KeyboardInterrupt):
        crib.registries.watch(report, threading.Event(), strict=strict)
    return ExitCode.DONE


def show_registry(crib: FoldersCrib, name: str | None, *, as_json: bool) -> ExitCode:
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


def _report(crib: FoldersCrib, built: Built) -> None:
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


def _facts(crib: FoldersCrib, built: Built) -> dict[str, object]:
    return {
        "ok": built.ok,
        "registry": _place(crib, built.path),
        "version": built.version,
        "written": built.written,
        "tools": list(built.tools),
        "problems": list(built.problems),
        "warnings": list(built.warnings),
    }


def _describe(crib: FoldersCrib, registry: Registry) -> dict[str, object]:
    return {
        "registry": _place(crib, registry.path),
        "version": registry.version,
        "commit": registry.git_commit,
        "problem": registry.problem,
        "tools": [tool.name for tool in registry.tools],
    }


def _holds(crib: FoldersCrib, name: str) -> bool:
    slug = slug_of(name)
    return any(tool.slug == slug for registry in crib.registries.loaded for tool in registry.tools)


def _place(crib: FoldersCrib, path: Path) -> str:
    root = crib.settings.root
    return str(path.relative_to(root) if root is not None and path.is_relative_to(root) else path)
