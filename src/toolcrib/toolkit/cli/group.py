"""Make commands of Click: a group that loads commands when they are used, commands that read their own words, shared options."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from toolcrib.lib.lazy import load
from toolcrib.lib.names import did_you_mean
from toolcrib.model.errors import ToolError
from toolcrib.toolkit.cli.console import say
from toolcrib.toolkit.cli.options import PROJECT, URL, wants_help

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.core.client_protocol import ProjectCrib
    from toolcrib.toolkit.cli.opener import Opener
    from toolcrib.toolkit.cli.options import Option

# How a command that reads its own words is declared, and how its help names these words.
READS_ITS_OWN_WORDS = {"ignore_unknown_options": True, "allow_interspersed_args": False}
CALL_WORDS = "NAME [KEY=VALUE]..."

# The object of Click's context is an Opener; see toolkit.cli.opener.
pass_opener = click.pass_obj


class LazyGroup(click.Group):
    """A group that knows each command by name, lazy reference and summary, and loads it when it is used.

    A command that does not exist is met with the one that was perhaps meant.
    """

    def __init__(self, *, references: Mapping[str, tuple[str, str]], **attributes: object) -> None:
        super().__init__(**attributes)  # type: ignore[arg-type]  # as Click declares them
        self.references = references

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands, in the order of the alphabet."""
        return sorted(self.references)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, loaded."""
        if cmd_name not in self.references:
            return None
        command: click.Command = load(self.references[cmd_name][0])
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command."""
        if not ctx.resilient_parsing and args and args[0] not in self.references and not args[0].startswith("-"):
            hint = did_you_mean(args[0], self.references) or f"commands are {', '.join(self.references)}"
            raise click.UsageError(f"There is no command {args[0]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with their summaries; none is loaded for it."""
        names = self.list_commands(ctx)
        # As Click does it: two spaces before the names and four behind the longest.
        limit = formatter.width - 6 - max(map(len, names))
        rows = [(name, click.Command(name, help=self.references[name][1]).get_short_help_str(limit)) for name in names]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of a command; none is loaded for it."""
        names = (name for name in self.list_commands(ctx) if name.startswith(incomplete))
        commands = [CompletionItem(name, help=self.references[name][1]) for name in names]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]


class WordsCommand(click.Command):
    """A command that reads its words itself, with options of its own; Click shows its help."""

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


def complete_tool(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """The names of tools; only the first word of a command that reads its own words is one."""
    if ctx.params.get("words") or ctx.params.get("url"):
        return []
    opener: Opener[ProjectCrib] = ctx.obj
    try:
        with opener.open_local() as crib:
            return sorted(tool.name for tool in crib.tools if tool.name.startswith(incomplete))
    except ToolError:
        return []


def _remember_project(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None:
        ctx.obj = ctx.obj.in_folder(value)


def _spell(option: Option) -> str:
    return f"{', '.join(sorted(option.spellings, key=len))} {option.value}".rstrip()


project_option = click.option(
    *reversed(PROJECT.spellings),
    "project",
    metavar=PROJECT.value,
    help=PROJECT.help,
    callback=_remember_project,
    expose_value=False,
)
url_option = click.option(URL.name, "url", metavar=URL.value, help=URL.help)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
