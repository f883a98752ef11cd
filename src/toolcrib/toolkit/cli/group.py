"""What the commands are made of: the group, commands that read their own words, and options that several share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from toolcrib.features.scripts.commands import SINK_OPTIONS
from toolcrib.interfaces.cli.open_crib import open_crib
from toolcrib.lib.names import did_you_mean
from toolcrib.model.errors import ToolError
from toolcrib.toolkit.cli.console import say
from toolcrib.toolkit.cli.options import CALL_OPTIONS, EXPLAIN_OPTIONS, PROJECT, RUN_OPTIONS, URL, wants_help

if TYPE_CHECKING:
    from toolcrib.toolkit.cli.options import Option


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


class RunCommand(WordsCommand):
    """One that makes calls of a file's tools."""

    options = RUN_OPTIONS


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


def complete_tool(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """The names of tools; only the first word of a command that reads its own words is one."""
    if ctx.params.get("words") or ctx.params.get("url"):
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
url_option = click.option(URL.name, "url", metavar=URL.value, help=URL.help)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
