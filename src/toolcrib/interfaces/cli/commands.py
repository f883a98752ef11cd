"""The commands as Click sees them. This file is imported only when Click is needed; each command is one line of work."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolcrib.features.access.commands import secret, token
from toolcrib.features.bundles.commands import bundle, disable, enable, search, serve
from toolcrib.features.depots.commands import depot, publish, pull
from toolcrib.features.folders.commands import build, doc, export, latency, new, prompt, registry, test
from toolcrib.features.requests.commands import builder, demo, experiments, request
from toolcrib.interfaces.cli.call_command import call_command, call_tool, make_call
from toolcrib.interfaces.cli.open_crib import LocalCrib, open_any, open_crib
from toolcrib.interfaces.cli.project import check_tools, report_health, start_project
from toolcrib.lib.version import __version__
from toolcrib.toolkit.cli.console import (
    MEANINGS,
    ExitCode,
    WrongUseError,
    code_of_explanation,
    complain,
    log_on_stderr,
    on_one_line,
    say,
    say_facts,
    say_json,
    say_table,
    say_text,
)
from toolcrib.toolkit.cli.group import (
    CallCommand,
    Commands,
    ExplainCommand,
    RunCommand,
    SinkCommand,
    complete_tool,
    json_option,
    project_option,
    url_option,
)
from toolcrib.toolkit.cli.options import (
    EXPLAIN_OPTIONS,
    GRANT,
    PROJECT,
    RUN_OPTIONS,
    URL,
    is_local,
    read_line,
    refuse_url,
)
from toolcrib.toolkit.cli.tool_tables import list_tools, offer_of, say_tools, show_tool

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolcrib.core.client_protocol import AnyCrib
    from toolcrib.model.verdict import Finding


# MERGED toolcrib.faces.cli.explaining

# `crib explain`: whether the tool is there, whether models see it, and what each gate would say to a call.

COLUMNS = ("gate", "verdict", "reason", "rule", "where", "cure")


def explain_command(words: Sequence[str], project: str | None) -> ExitCode:
    """`crib explain NAME key=value …`: ends as the call would."""
    line = read_line(words, EXPLAIN_OPTIONS)
    if not line.words:
        raise WrongUseError("name a tool: crib explain NAME key=value …; list the tools with: crib list")
    with open_any(line.last(PROJECT.name) or project, line.last(URL.name), grants=line.all(GRANT.name)) as crib:
        explanation = crib.explain(make_call(crib, line, line.words))
        standing = dict(_standing(crib, line.words[0]))
    if line.has("--json"):
        say_json({"standing": standing, **explanation.to_json()})
        return code_of_explanation(explanation)
    say_facts(standing.items())
    say("")
    say_table(COLUMNS, map(_row, explanation.findings))
    say("")
    refusal = explanation.refusal
    say("The call would run." if refusal is None else f"The call would be refused by the gate {refusal.gate}.")
    return code_of_explanation(explanation)


def _standing(crib: AnyCrib, name: str) -> Iterator[tuple[str, str]]:
    """How the tool stands before anybody calls it: what to look at when a model does not call it."""
    facts = crib.show_tool(name)
    if facts is None:
        hint = crib.suggest(name) or "list the tools with: crib list"
        yield "registered", f"no, nothing goes by {name[:200]!r}; {hint}"
        return
    place = facts["origin"]
    yield "registered", f"yes, as {facts['address']}" + (f", written in {place}" if place else "")
    yield "exact name", facts["name"]
    yield "enabled", "yes" if facts["enabled"] else f"no: {facts['reason']}; {facts['cure']}"
    yield "offered to models", offer_of(facts)


def _row(finding: Finding) -> tuple[str, ...]:
    facts = finding.to_json()
    facts["verdict"] = facts["decision"]
    return tuple(str(facts.get(column, "")) for column in COLUMNS)


# MERGED toolcrib.faces.cli.running

# `crib run FILE`: the tools of one Python file, which is trusted as code of the host program.


def run_command(words: Sequence[str], project: str | None) -> ExitCode:
    """`crib run FILE [NAME key=value …]`."""
    from toolcrib.core.host_modules import load_file, tools_in

    refuse_url(words, "crib run")
    line = read_line(words, RUN_OPTIONS)
    if not line.words:
        raise WrongUseError("name a file: crib run FILE [NAME key=value …]")
    file, *call = line.words
    if not Path(file).is_file():
        raise WrongUseError(f"{file} is not a file; name a Python file that holds tools")
    tools, problems = tools_in(load_file(Path(file)))
    for problem in problems:
        complain(problem.message)
    folder = line.last(PROJECT.name) or project

    def opened(grants: frozenset[str]) -> LocalCrib:
        return LocalCrib(open_crib(folder, grants=grants, tools=tools))

    if call:
        return call_tool(line, call, opened)
    with opened(line.all(GRANT.name)) as crib:
        addresses = {tool.address for tool in tools}
        say_tools(facts for facts in crib.list_tools() if facts["address"] in addresses)
    return ExitCode.FAILED if problems else ExitCode.DONE


PROGRAM = "crib"
COMPLETE_VARIABLE = "_CRIB_COMPLETE"
EXIT_CODES = "\b\nExit codes:\n" + "\n".join(f"  {code:>3}  {meaning}" for code, meaning in MEANINGS.items())
CALL_WORDS = "NAME [KEY=VALUE]..."
CALL_HELP = """Call a tool.

\b
key=value    a text, or what the tool's schema asks for: 5, true, [1, 2]
key:=json    any JSON value
key=@file    the text of a file; @- is standard input
"""
READS_ITS_OWN_WORDS = {"ignore_unknown_options": True, "allow_interspersed_args": False}


def run(words: Sequence[str]) -> int:
    """Run one command; the exit code."""
    from click.shell_completion import shell_complete

    # Not cli.main(): it would end the process itself when a reader goes away or a shell asks for completions.
    if instruction := os.environ.get(COMPLETE_VARIABLE):
        return shell_complete(cli, {}, PROGRAM, COMPLETE_VARIABLE, instruction)
    try:
        with log_on_stderr(), cli.make_context(PROGRAM, list(words)) as context:
            return int(cli.invoke(context) or ExitCode.DONE)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.exceptions.NoArgsIsHelpError as help_wanted:
        say(help_wanted.format_message())
        return ExitCode.WRONG_USE
    except click.NoSuchOption as problem:
        raise _explain_option(problem) from problem
    except click.UsageError as problem:
        raise _explain(problem) from problem


def _explain(problem: click.UsageError) -> WrongUseError:
    message = on_one_line(problem.format_message())
    end = "" if message.endswith((".", "?")) else "."
    return WrongUseError(f"{message}{end} See: {_place(problem)} --help")


def _explain_option(problem: click.NoSuchOption) -> WrongUseError:
    """What is said of an option that a command does not have; that of servers may only be in the wrong place."""
    if problem.option_name != URL.name:
        return _explain(problem)
    if problem.ctx is not None and isinstance(problem.ctx.command, click.Group):
        return WrongUseError(f"{URL.name} belongs to a command; write: {PROGRAM} list {URL.name} {URL.value}")
    return is_local(_place(problem))


def _place(problem: click.UsageError) -> str:
    return problem.ctx.command_path if problem.ctx is not None else PROGRAM


@click.group(cls=Commands, epilog=EXIT_CODES, no_args_is_help=True)
@project_option
def cli() -> None:
    """Write a tool down once; any agent finds it and calls it under guard.

    A project is a folder with a toolcrib.toml, or the current folder; its tools lie in tools/.
    """


@cli.command("init")
@click.argument("folder", default=".", metavar="[DIR]", type=click.Path(file_okay=False))
def init(folder: str) -> int:
    """Write a project with a first tool and its test.

    Nothing that is there is overwritten.
    """
    return start_project(folder)


@cli.command("list")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only tools with this tag; repeatable.")
@click.option(
    "--executors", is_flag=True, help="The platform's own primitives and runtimes instead, which execute tools."
)
@project_option
@url_option
@json_option
@click.pass_obj
def list_(project: str | None, tags: tuple[str, ...], *, url: str | None, executors: bool, as_json: bool) -> int:
    """List the tools."""
    with open_any(project, url) as crib:
        return list_tools(crib, as_json=as_json, tags=tags, executors=executors)


@cli.command("show")
@click.argument("name", shell_complete=complete_tool)
@project_option
@url_option
@json_option
@click.pass_obj
def show(project: str | None, name: str, *, url: str | None, as_json: bool) -> int:
    """Show everything about a tool."""
    with open_any(project, url) as crib:
        return show_tool(crib, name, as_json=as_json)


@cli.command("call", cls=CallCommand, help=CALL_HELP, context_settings=READS_ITS_OWN_WORDS)
@click.argument("words", nargs=-1, metavar=CALL_WORDS, type=click.UNPROCESSED, shell_complete=complete_tool)
@click.pass_obj
def call(project: str | None, words: tuple[str, ...]) -> int:
    """Call a tool."""
    return call_command(words, project)


@cli.command("explain", cls=ExplainCommand, context_settings=READS_ITS_OWN_WORDS)
@click.argument("words", nargs=-1, metavar=CALL_WORDS, type=click.UNPROCESSED, shell_complete=complete_tool)
@click.pass_obj
def explain(project: str | None, words: tuple[str, ...]) -> int:
    """Say why a call would run or not.

    Every gate judges the call, and nothing runs. The exit code is that of the call.
    """
    return explain_command(words, project)


@cli.command("run", cls=RunCommand, context_settings=READS_ITS_OWN_WORDS)
@click.argument("words", nargs=-1, metavar=f"FILE [{CALL_WORDS}]", type=click.UNPROCESSED)
@click.pass_obj
def run_file(project: str | None, words: tuple[str, ...]) -> int:
    """List or call the tools of a Python file.

    The file runs as code of your own, outside the sandbox.
    """
    return run_command(words, project)


@cli.command("result")
@click.argument("handle")
@click.option("--offset", type=click.IntRange(min=0), default=0, show_default=True, help="The first letter to print.")
@click.option("--length", type=click.IntRange(min=1), default=None, help="How many letters; without it all of them.")
@project_option
@url_option
@click.pass_obj
def result(project: str | None, handle: str, *, url: str | None, offset: int, length: int | None) -> int:
    """Print the rest of a large result."""
    with open_any(project, url) as crib:
        piece = crib.read_result(handle, offset=offset, length=length or sys.maxsize)
    say_text(piece.text)
    if piece.next is not None:
        complain(f"letters left: {piece.total - piece.next}; the next one has --offset {piece.next}")
    return ExitCode.DONE


@cli.command("check")
@click.argument("names", nargs=-1, metavar="[NAME]... | --observe NAME [KEY=VALUE]...", shell_complete=complete_tool)
@click.option("--strict", is_flag=True, help="Warnings count as problems.")
@click.option("--observe", is_flag=True, help="Run one tool and compare what it does with what it declares.")
@click.option("--grant", "grants", multiple=True, metavar="CAPABILITY", help="With --observe: grant it; repeatable.")
@click.option("--yes", "agreed", is_flag=True, help="With --observe: confirm the call.")
@project_option
@json_option
@click.pass_obj
def check(
    project: str | None,
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
        from toolcrib.features.scripts.commands import observe_tool

        return observe_tool(names, project, grants=grants, agreed=agreed, as_json=as_json)
    with open_crib(project) as crib:
        return check_tools(crib, names, strict=strict, as_json=as_json)


@cli.command("doctor")
@project_option
@json_option
@click.pass_obj
def doctor(project: str | None, *, as_json: bool) -> int:
    """Show how everything is set up here.

    Versions, folders, the settings in force and where each one is set, what the sandbox guarantees, and problems.
    """
    with open_crib(project) as crib:
        return report_health(crib, as_json=as_json)


@cli.command("sink", cls=SinkCommand, context_settings=READS_ITS_OWN_WORDS)
@click.argument("words", nargs=-1, metavar=CALL_WORDS, type=click.UNPROCESSED, shell_complete=complete_tool)
@click.pass_obj
def sink(project: str | None, words: tuple[str, ...]) -> int:
    """Stream lines of standard input to a sink.

    Each line is one event. When the command ends, what the sink writes is on disk.
    """
    from toolcrib.features.scripts.commands import sink_command

    return sink_command(words, project)


@cli.command("prepare")
@click.argument("name", shell_complete=complete_tool)
@project_option
@click.pass_obj
def prepare(project: str | None, name: str) -> int:
    """Install what a Python script asks for.

    Its dependencies go into an environment of its own, from wheels alone: nothing of them runs while they are installed.
    """
    with open_crib(project) as crib:
        environment = crib.prepare(name, complain)
    say(f"{name} asks for nothing" if environment is None else f"{name} runs with {environment}")
    return ExitCode.DONE


@cli.command("costs")
@project_option
@json_option
@click.pass_obj
def costs(project: str | None, *, as_json: bool) -> int:
    """Sum up what the calls of this project cost.

    By tool and currency, from the journal; a tool says what it costs in its metadata.
    """
    from toolcrib.interfaces.cli.project import say_costs

    with open_crib(project) as crib:
        return say_costs(crib, as_json=as_json)


@cli.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> int:
    """Print the completion script of a shell.

    It completes commands and names of tools: eval "$(crib completion bash)"
    """
    from click.shell_completion import get_completion_class

    completer = get_completion_class(shell)
    if completer is None:
        raise click.UsageError(f"Click does not know the shell {shell}")
    say(completer(cli, {}, PROGRAM, COMPLETE_VARIABLE).source())
    return ExitCode.DONE


@cli.command("version")
@json_option
def version(*, as_json: bool) -> int:
    """Print the version."""
    if as_json:
        say_json({"version": __version__})
    else:
        say(__version__)
    return ExitCode.DONE


for command in (
    *(serve, search, enable, disable, bundle, secret, token),
    *(request, builder, experiments, demo),
    *(new, build, registry, test, doc, prompt, export, latency, publish, pull, depot),
):
    cli.add_command(command)
