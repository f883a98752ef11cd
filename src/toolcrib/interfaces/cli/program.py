"""The Click program: the lazy group of all commands, how one is run, and errors of wrong usage."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem, get_completion_class, shell_complete

from toolcrib.core.plugins import Plugins
from toolcrib.lib import __version__
from toolcrib.lib.names import did_you_mean
from toolcrib.toolkit.cli import (
    MEANINGS,
    URL,
    Answer,
    ExitCode,
    WrongUseError,
    is_local,
    log_on_stderr,
    on_one_line,
    say,
    say_answer,
)
from toolcrib.toolkit.cli.group import answers, example, project_option

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from toolcrib.core.plugins import Part
    from toolcrib.toolkit.cli.group import Opener
    from toolcrib.toolkit.client_protocol import ProjectCrib

PROGRAM = "crib"
COMPLETE_VARIABLE = "_CRIB_COMPLETE"
# The sections of the help, and the order of their commands. Commands of other packages are listed under a separate heading.
HEADINGS = {
    "Daily commands": ("init", "add", "list", "show", "search", "call", "explain", "check", "test", "serve", "mcp"),
    "Write and prove tools": ("new", "build", "registry", "run", "prepare", "sink", "sql", "doc"),
    "Store and share tools": ("bundle", "enable", "disable", "publish", "pull", "depot"),
    "Missing tools": ("request", "builder", "experiments", "demo"),
    "Give tools to models": ("export", "prompt"),
    "Approve and allow": ("approvals", "audit", "token", "secret", "page"),
    "Look closer": ("doctor", "logs", "stats", "result"),
    "This program": ("help", "version", "completion"),
}
OTHERS = "Other commands"
EXIT_CODES = "\b\nExit codes:\n" + "\n".join(f"  {code:>3}  {meaning}" for code, meaning in MEANINGS.items())


class Commands(click.Group):
    """The group of all registered commands; each is loaded when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands, sorted."""
        return sorted(_all_commands())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, loaded."""
        # A command of ours is found without looking for other packages, which takes time.
        found = Plugins().parts("commands", cmd_name)
        part = found[0] if found else _all_commands().get(cmd_name)
        if part is None:
            return None
        command: click.Command = part.load()
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; the error for an unknown one suggests another."""
        name = args[0]
        if not ctx.resilient_parsing and not name.startswith("-") and self.get_command(ctx, name) is None:
            commands = self.list_commands(ctx)
            hint = did_you_mean(name, commands) or f"commands are {', '.join(commands)}"
            raise click.UsageError(f"There is no command {name!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands under their headings with their summaries, without loading them."""
        commands = _all_commands()
        # As Click does it: two spaces before the names and four after the longest.
        longest = max(map(len, commands))
        limit = formatter.width - 6 - longest
        for heading, names in _sections(commands).items():
            with formatter.section(heading):
                # One width for all sections, so that their columns align.
                formatter.write_dl([(name.ljust(longest), _summary(commands[name], limit)) for name in names])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of a command, without loading any."""
        commands = _all_commands()
        names = [name for name in sorted(commands) if name.startswith(incomplete)]
        items = [CompletionItem(name, help=_summary(commands[name])) for name in names]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]


def run(words: Sequence[str], opener: Opener[ProjectCrib]) -> int:
    """Run one command, which opens cribs with the opener; returns the exit code."""
    # Not cli.main(), which ends the process itself on a closed pipe and for shell completion.
    if instruction := os.environ.get(COMPLETE_VARIABLE):
        return shell_complete(cli, {"obj": opener}, PROGRAM, COMPLETE_VARIABLE, instruction)
    try:
        with log_on_stderr(), cli.make_context(PROGRAM, list(words), obj=opener) as context:
            ended = cli.invoke(context)
            return say_answer(ended) if isinstance(ended, Answer) else int(ended or ExitCode.DONE)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.exceptions.NoArgsIsHelpError as help_wanted:
        say(help_wanted.format_message())
        return ExitCode.WRONG_USE
    except click.NoSuchOption as problem:
        raise _explain_option(problem) from problem
    except click.UsageError as problem:
        raise _explain(problem) from problem


@click.group(
    cls=Commands, epilog=EXIT_CODES, no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, message="%(version)s", help="Print the version and exit.")
@project_option
def cli() -> None:
    """Write a tool once; any agent finds it and calls it under guard.

    A project is a folder with a toolcrib.toml, or the current folder; its tools lie in tools/.
    """


@click.command("help", epilog=example("crib help bundle load"))
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@answers("command", "text")
@click.pass_context
def help_(context: click.Context, words: tuple[str, ...]) -> Answer:
    """Show how a command is used."""
    shown = context.find_root()
    for word in words:
        if not isinstance(shown.command, click.Group):
            raise click.UsageError(f"{shown.command_path} has no commands of its own", shown)
        _, command, _ = shown.command.resolve_command(shown, [word])
        if command is not None:
            shown = command.context_class(command, info_name=word, parent=shown, **command.context_settings)
    text = shown.get_help()
    say(text)
    return Answer({"command": shown.command_path, "text": text})


@click.command("completion", epilog=example('eval "$(crib completion bash)"'))
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@answers("shell", "script")
def completion(shell: str) -> Answer:
    """Print the completion script of a shell.

    It completes commands and names of tools.
    """
    completer = get_completion_class(shell)
    if completer is None:
        raise click.UsageError(f"Click does not know the shell {shell}")
    script = completer(cli, {}, PROGRAM, COMPLETE_VARIABLE).source()
    say(script)
    return Answer({"shell": shell, "script": script})


def _explain(problem: click.UsageError) -> WrongUseError:
    message = on_one_line(problem.format_message())
    end = "" if message.endswith((".", "?")) else "."
    return WrongUseError(f"{message}{end} See: {_place(problem)} --help")


def _explain_option(problem: click.NoSuchOption) -> WrongUseError:
    """The error of an unknown option; `--url` may only be in the wrong place."""
    if problem.option_name != URL.name:
        return _explain(problem)
    if problem.ctx is not None and isinstance(problem.ctx.command, click.Group):
        return WrongUseError(f"{URL.name} belongs to a command; write: {PROGRAM} list {URL.name} {URL.value}")
    return is_local(_place(problem))


def _place(problem: click.UsageError) -> str:
    return problem.ctx.command_path if problem.ctx is not None else PROGRAM


def _sections(commands: Collection[str]) -> dict[str, list[str]]:
    """The commands under their headings; a heading without commands is left out."""
    known = {name for names in HEADINGS.values() for name in names}
    sections = {heading: [name for name in names if name in commands] for heading, names in HEADINGS.items()}
    sections[OTHERS] = sorted(name for name in commands if name not in known)
    return {heading: names for heading, names in sections.items() if names}


def _all_commands() -> dict[str, Part]:
    """Every command by its name, including those of other packages; ours win."""
    plugins = Plugins()
    plugins.start()
    return {part.name: part for part in reversed(plugins.parts("commands"))}


def _summary(part: Part, limit: int = 80) -> str:
    return click.Command(part.name, help=part.options["summary"]).get_short_help_str(limit)
