"""Make commands of Click: what opens the crib of a command, commands that read their own words, and shared options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

import click

from toolcrib.model.errors import ToolError
from toolcrib.toolkit.cli.console import say
from toolcrib.toolkit.cli.options import PROJECT, URL, wants_help

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from typing import Self

    from toolcrib.core.client_protocol import AnyCrib, CallingCrib, ProjectCrib
    from toolcrib.model.protocols import Journal
    from toolcrib.model.tool import Tool
    from toolcrib.toolkit.cli.options import Option


LocalT_co = TypeVar("LocalT_co", covariant=True)


class Opener(Protocol[LocalT_co]):
    """Opens cribs. Its parameter is what a command uses of a crib of this machine, as a protocol of the command's own."""

    def in_folder(self, project: str) -> Self:
        """The same for a project folder that was named."""

    @property
    def folder(self) -> Path:
        """The project folder that was named, else the one around the current folder, else that folder."""

    def open_local(
        self,
        *,
        grants: Iterable[str] = (),
        tools: Iterable[Tool] = (),
        observe: bool = False,
        journal: Journal | None = None,
    ) -> LocalT_co:
        """The crib of the project, or one that keeps nothing on disk where there is no project."""

    def open_folder(self, folder: Path, *, caller: str) -> LocalT_co:
        """The crib of exactly this folder, whatever project was named."""

    def open_calling(
        self, url: str | None, *, grants: Iterable[str] = (), tools: Iterable[Tool] = (), observe: bool = False
    ) -> CallingCrib:
        """The crib behind the URL if there is one, else that of the project, to make calls."""

    def open_any(self, url: str | None, *, grants: Iterable[str] = ()) -> AnyCrib:
        """The crib behind the URL if there is one, else that of the project."""

    def open_durable(self, url: str | None) -> AnyCrib:
        """The same; refuses a crib that forgets everything when the command ends."""


# How a command that reads its own words is declared, and how its help names these words.
READS_ITS_OWN_WORDS = {"ignore_unknown_options": True, "allow_interspersed_args": False}
CALL_WORDS = "NAME [KEY=VALUE]..."

# The object of Click's context is an Opener; see toolkit.cli.opener.
pass_opener = click.pass_obj


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
