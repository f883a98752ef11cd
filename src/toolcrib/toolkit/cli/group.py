"""Building blocks of Click commands: the opener of cribs, commands that parse their own words, shared options, new files."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TypeVar

import click

from toolcrib.model.errors import ToolError
from toolcrib.toolkit.cli import JSON, PROJECT, URL, WrongUseError, say, wants_help

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Self

    from toolcrib.model.protocols import Journal
    from toolcrib.model.tool import Tool
    from toolcrib.toolkit.cli import Granted, Option
    from toolcrib.toolkit.client_protocol import AnyCrib, CallingCrib, ProjectCrib


LocalT_co = TypeVar("LocalT_co", covariant=True)
CommandT = TypeVar("CommandT", bound="Callable[..., object] | click.Command")


class Opener(Protocol[LocalT_co]):
    """Opens cribs. Its type parameter is the protocol of a local crib that the command uses."""

    def in_folder(self, project: str) -> Self:
        """An opener for the named project folder."""

    @property
    def folder(self) -> Path:
        """The named project folder, else the project around the current folder, else the current folder."""

    def open_local(
        self,
        *,
        grants: Granted | None = None,
        tools: Iterable[Tool] = (),
        observe: bool = False,
        journal: Journal | None = None,
    ) -> LocalT_co:
        """The crib of the project; without a project, one that stores nothing on disk."""

    def open_folder(self, folder: Path, *, caller: str) -> LocalT_co:
        """The crib of exactly this folder, even if another project was named."""

    def open_calling(
        self, url: str | None, *, grants: Granted | None = None, tools: Iterable[Tool] = (), observe: bool = False
    ) -> CallingCrib:
        """The crib at the URL, else that of the project, to make calls."""

    def open_any(self, url: str | None, *, grants: Granted | None = None) -> AnyCrib:
        """The crib at the URL, else that of the project."""

    def open_durable(self, url: str | None) -> AnyCrib:
        """The same; refuses a crib that stores nothing on disk."""


# Click settings of a command that parses its own words, and how its help shows these words.
READS_ITS_OWN_WORDS = {"ignore_unknown_options": True, "allow_interspersed_args": False}
CALL_WORDS = "NAME [KEY=VALUE]..."

# The object of Click's context is an Opener.
pass_opener = click.pass_obj


class WordsCommand(click.Command):
    """A command that parses its words and options itself; Click shows its help."""

    options: tuple[Option, ...] = ()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Show help if `--help` is anywhere among the words; all other words are left to the command."""
        if wants_help(args) and not ctx.resilient_parsing:
            say(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the options of the command."""
        rows = [(_spell(option), option.help) for option in self.options]
        with formatter.section("Options"):
            formatter.write_dl(rows)


def example(*lines: str) -> str:
    """The epilog of a command's help: examples of command lines."""
    heading = "Example:" if len(lines) == 1 else "Examples:"
    return "\n".join(["\b", heading, *(f"  {line}" for line in lines)])


def complete_tool(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Complete the name of a tool, which is the first word of a `WordsCommand`."""
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
json_option = click.option(JSON.name, "as_json", is_flag=True, help=JSON.help)


class AnswerOption(click.Option):
    """`--json` of a command that returns an `Answer` whose facts have these keys."""

    def __init__(self, words: Sequence[str], *, keys: Sequence[str], help: str) -> None:  # noqa: A002 - Click's name for it
        super().__init__(words, is_flag=True, expose_value=False, help=help)
        self.keys = tuple(keys)


def answers(*keys: str) -> Callable[[CommandT], CommandT]:
    """Add `--json` to a command; its help lists the keys of the printed facts."""
    return click.option(JSON.name, cls=AnswerOption, keys=keys, help=f"Print JSON: {', '.join(keys)}.")


# `--json` of a command whose standard output is used for another protocol.
json_errors = click.option(JSON.name, is_flag=True, expose_value=False, help="Print an error before the start as JSON.")


def write_files(root: Path, files: Mapping[str, str]) -> list[dict[str, object]]:
    """Write the files that do not exist yet, and report which."""
    with explain_failure():
        return [report_file(name, written=write_new(root / name, text)) for name, text in files.items()]


def write_new(path: Path, text: str) -> bool:
    """Write a new file; False if the name exists, even as a dangling link."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        return False
    return True


def report_file(name: str, *, written: bool) -> dict[str, object]:
    """Report whether a file was written or kept."""
    say(f"{'wrote' if written else 'kept '}  {name}")
    return {"file": name, "written": written}


@contextmanager
def explain_failure() -> Iterator[None]:
    """Convert an OSError into a WrongUseError with its cure."""
    try:
        yield
    except OSError as problem:
        raise WrongUseError(
            f"{problem.filename}: {problem.strerror}; name a folder that can be written to"
        ) from problem
