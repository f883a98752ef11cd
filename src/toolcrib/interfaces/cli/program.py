"""The program as Click sees it: the group of all commands, how it runs one, and what it says of wrong words."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click
from click.shell_completion import get_completion_class, shell_complete

from toolcrib.interfaces.cli.command_table import COMMANDS
from toolcrib.toolkit.cli.console import MEANINGS, ExitCode, WrongUseError, log_on_stderr, on_one_line, say
from toolcrib.toolkit.cli.group import LazyGroup, project_option
from toolcrib.toolkit.cli.options import URL, is_local

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolcrib.core.client_protocol import ProjectCrib
    from toolcrib.toolkit.cli.opener import Opener

PROGRAM = "crib"
COMPLETE_VARIABLE = "_CRIB_COMPLETE"
EXIT_CODES = "\b\nExit codes:\n" + "\n".join(f"  {code:>3}  {meaning}" for code, meaning in MEANINGS.items())


def run(words: Sequence[str], opener: Opener[ProjectCrib]) -> int:
    """Run one command, which opens cribs with the opener; the exit code."""
    # Not cli.main(): it would end the process itself when a reader goes away or a shell asks for completions.
    if instruction := os.environ.get(COMPLETE_VARIABLE):
        return shell_complete(cli, {"obj": opener}, PROGRAM, COMPLETE_VARIABLE, instruction)
    try:
        with log_on_stderr(), cli.make_context(PROGRAM, list(words), obj=opener) as context:
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


@click.group(cls=LazyGroup, references=COMMANDS, epilog=EXIT_CODES, no_args_is_help=True)
@project_option
def cli() -> None:
    """Write a tool down once; any agent finds it and calls it under guard.

    A project is a folder with a toolcrib.toml, or the current folder; its tools lie in tools/.
    """


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> int:
    """Print the completion script of a shell.

    It completes commands and names of tools: eval "$(crib completion bash)"
    """
    completer = get_completion_class(shell)
    if completer is None:
        raise click.UsageError(f"Click does not know the shell {shell}")
    say(completer(cli, {}, PROGRAM, COMPLETE_VARIABLE).source())
    return ExitCode.DONE


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
