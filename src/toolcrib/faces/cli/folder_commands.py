"""The commands around tool folders: write, build, test, and hand tools to models."""

from __future__ import annotations

import click

from toolcrib.faces.cli.group import complete_tool, json_option, project_option
from toolcrib.faces.cli.opening import open_crib
from toolcrib.model.session import MODES
from toolcrib.pure.export import Provider

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
    from toolcrib.faces.cli.building import start_folder

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
    from toolcrib.faces.cli.building import build_folders, watch_folders

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
    from toolcrib.faces.cli.building import show_registry

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
    from toolcrib.faces.cli.testing import try_tools
    from toolcrib.journal.memory import MemoryJournal

    # What is only tried is no part of what happened.
    with open_crib(project, grants=grants, journal=MemoryJournal()) as crib:
        return try_tools(crib, names, cases=cases, mode=mode, agreed=agreed, as_json=as_json)


@click.command("doc")
@click.argument("name", shell_complete=complete_tool)
@project_option
@click.pass_obj
def doc(project: str | None, name: str) -> int:
    """Print the whole documentation of a tool."""
    from toolcrib.faces.cli.exporting import print_documentation

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
    from toolcrib.faces.cli.exporting import print_prompt

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
    from toolcrib.faces.cli.exporting import print_export

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
    from toolcrib.faces.cli.costs import say_latencies

    with open_crib(project) as crib:
        return say_latencies(crib, as_json=as_json)
