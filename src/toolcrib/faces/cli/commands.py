"""The commands as Click sees them. This file is imported only when Click is needed; each command is one line of work."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from toolcrib import __version__
from toolcrib.faces.cli.calling import call_command
from toolcrib.faces.cli.checking import check_tools, report_health
from toolcrib.faces.cli.codes import MEANINGS, ExitCode, WrongUseError
from toolcrib.faces.cli.explaining import explain_command
from toolcrib.faces.cli.listing import list_tools, show_tool
from toolcrib.faces.cli.logs import log_on_stderr
from toolcrib.faces.cli.opening import open_crib
from toolcrib.faces.cli.printing import complain, say, say_json, say_text
from toolcrib.faces.cli.reading import CALL_OPTIONS, EXPLAIN_OPTIONS, PROJECT, wants_help
from toolcrib.faces.cli.running import run_command
from toolcrib.faces.cli.sinking import SINK_OPTIONS
from toolcrib.faces.cli.starting import start_project
from toolcrib.model.errors import ToolError
from toolcrib.pure.names import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolcrib.faces.cli.reading import Option

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
    except click.UsageError as problem:
        place = problem.ctx.command_path if problem.ctx is not None else PROGRAM
        raise WrongUseError(f"{problem.format_message()} See: {place} --help") from problem


class Commands(click.Group):
    """The group; a command that does not exist is met with the one that was perhaps meant."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command."""
        if not ctx.resilient_parsing and args and args[0] not in self.commands and not args[0].startswith("-"):
            hint = did_you_mean(args[0], self.commands) or f"commands are {', '.join(self.commands)}"
            raise click.UsageError(f"There is no command {args[0]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)


class WordsCommand(click.Command):
    """A command that reads its words itself, with the options of `reading`; Click shows its help."""

    options: tuple[Option, ...] = ()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Show help wherever it is asked for; every other word is left to the command."""
        if wants_help(args) and not ctx.resilient_parsing:
            say(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the options that the command reads."""
        rows = [(_spell(option), option.help) for option in self.options]
        with formatter.section("Options"):
            formatter.write_dl(rows)


class CallCommand(WordsCommand):
    """One that makes calls."""

    options = CALL_OPTIONS


class SinkCommand(WordsCommand):
    """One that feeds a sink."""

    options = SINK_OPTIONS


class ExplainCommand(WordsCommand):
    """One that explains calls."""

    options = EXPLAIN_OPTIONS


def _spell(option: Option) -> str:
    return f"{', '.join(sorted(option.spellings, key=len))} {option.value}".rstrip()


def _remember_project(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None:
        ctx.obj = value


def _complete_tool(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """The names of tools; only the first word of a command that reads its own words is one."""
    if ctx.params.get("words"):
        return []
    try:
        with open_crib(ctx.obj) as crib:
            return sorted(tool.name for tool in crib.tools if tool.name.startswith(incomplete))
    except ToolError:
        return []


project_option = click.option(
    *reversed(PROJECT.spellings),
    "project",
    metavar=PROJECT.value,
    help=PROJECT.help,
    callback=_remember_project,
    expose_value=False,
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


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
@json_option
@click.pass_obj
def list_(project: str | None, tags: tuple[str, ...], *, executors: bool, as_json: bool) -> int:
    """List the tools."""
    with open_crib(project) as crib:
        return list_tools(crib, as_json=as_json, tags=tags, executors=executors)


@cli.command("show")
@click.argument("name", shell_complete=_complete_tool)
@project_option
@json_option
@click.pass_obj
def show(project: str | None, name: str, *, as_json: bool) -> int:
    """Show everything about a tool."""
    with open_crib(project) as crib:
        return show_tool(crib, name, as_json=as_json)


@cli.command("call", cls=CallCommand, help=CALL_HELP, context_settings=READS_ITS_OWN_WORDS)
@click.argument("words", nargs=-1, metavar=CALL_WORDS, type=click.UNPROCESSED, shell_complete=_complete_tool)
@click.pass_obj
def call(project: str | None, words: tuple[str, ...]) -> int:
    """Call a tool."""
    return call_command(words, project)


@cli.command("explain", cls=ExplainCommand, context_settings=READS_ITS_OWN_WORDS)
@click.argument("words", nargs=-1, metavar=CALL_WORDS, type=click.UNPROCESSED, shell_complete=_complete_tool)
@click.pass_obj
def explain(project: str | None, words: tuple[str, ...]) -> int:
    """Say why a call would run or not.

    Every gate judges the call, and nothing runs. The exit code is that of the call.
    """
    return explain_command(words, project)


@cli.command("run", cls=CallCommand, context_settings=READS_ITS_OWN_WORDS)
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
@click.pass_obj
def result(project: str | None, handle: str, *, offset: int, length: int | None) -> int:
    """Print the rest of a large result."""
    with open_crib(project) as crib:
        piece = crib.read_result(handle, offset=offset, length=length or sys.maxsize)
    say_text(piece.text)
    if piece.next is not None:
        complain(f"{piece.total - piece.next} letters are left; the next one has --offset {piece.next}")
    return ExitCode.DONE


@cli.command("check")
@click.argument("names", nargs=-1, metavar="[NAME]... | --observe NAME [KEY=VALUE]...", shell_complete=_complete_tool)
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
        from toolcrib.faces.cli.observing import observe_tool

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
@click.argument("words", nargs=-1, metavar=CALL_WORDS, type=click.UNPROCESSED, shell_complete=_complete_tool)
@click.pass_obj
def sink(project: str | None, words: tuple[str, ...]) -> int:
    """Stream lines of standard input to a sink.

    Each line is one event. When the command ends, what the sink writes is on disk.
    """
    from toolcrib.faces.cli.sinking import sink_command

    return sink_command(words, project)


@cli.command("prepare")
@click.argument("name", shell_complete=_complete_tool)
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
    from toolcrib.faces.cli.costs import say_costs

    with open_crib(project) as crib:
        return say_costs(crib, as_json=as_json)


@cli.command("publish")
@click.argument("name", shell_complete=_complete_tool)
@click.option("--to", "place", required=True, metavar="DIR", help="The folder of the depot; it is made if needed.")
@click.option(
    "--with", "files", multiple=True, metavar="FILE", help="A further file, from the tool's folder; repeatable."
)
@click.option("--sign", "key", metavar="KEYFILE", help="Sign it with this key (see: crib depot key).")
@project_option
@click.pass_obj
def publish(project: str | None, name: str, place: str, files: tuple[str, ...], key: str | None) -> int:
    """Publish a tool to a depot.

    A depot is a folder; any web server that serves it makes it one that can be pulled from elsewhere.
    """
    from toolcrib.faces.cli.sharing import publish_tool

    with open_crib(project) as crib:
        return publish_tool(crib, name, place, files=files, key=key)


@cli.command("pull")
@click.argument("name", metavar="NAME[@VERSION]")
@click.option("--from", "place", required=True, metavar="DIR|URL", help="The depot: a folder or a web address.")
@click.option("--replace", is_flag=True, help="Put the new files where other ones are.")
@project_option
@click.pass_obj
def pull(project: str | None, name: str, place: str, *, replace: bool) -> int:
    """Pull a tool from a depot.

    Without a version the one published last. All files arrive, each with the hash it was published with, or none.
    """
    from toolcrib.faces.cli.sharing import pull_tool

    with open_crib(project) as crib:
        return pull_tool(crib, name, place, replace=replace)


@cli.group("depot")
def depot() -> None:
    """Look into a depot, and make keys to sign with."""


@depot.command("list")
@click.argument("place", metavar="DIR|URL")
@project_option
@json_option
@click.pass_obj
def depot_list(project: str | None, place: str, *, as_json: bool) -> int:
    """List the tools of a depot with their versions, oldest first."""
    from toolcrib.faces.cli.sharing import list_depot

    with open_crib(project) as crib:
        private = crib.settings.egress_private
    return list_depot(place, as_json=as_json, private=private)


@depot.command("key")
@click.argument("file", metavar="FILE")
def depot_key(file: str) -> int:
    """Make a key to sign with, if there is none; print its public half.

    The public half belongs into depot.keys of whoever should trust it.
    """
    from toolcrib.faces.cli.sharing import show_key

    return show_key(file)


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
