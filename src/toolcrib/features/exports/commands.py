"""`crib doc`, `crib prompt` and `crib export`: print the documentation of tools, for people and for models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import click

from toolcrib.lib.export_schemas import Provider
from toolcrib.model.tool import MODES
from toolcrib.toolkit.cli import Answer, ExitCode, complain, count, mention_problems, say_json, say_text
from toolcrib.toolkit.cli.group import answers, complete_tool, example, json_option, pass_opener, project_option
from toolcrib.toolkit.cli.tool_tables import unknown_tool
from toolcrib.toolkit.client_protocol import ProjectCrib

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolcrib.lib.export_schemas import Export
    from toolcrib.lib.presentation import Prompt
    from toolcrib.toolkit.cli.group import Opener

EXAMPLES = "examples"


class ExportsCrib(ProjectCrib, Protocol):
    """What these commands use of a crib."""

    def prompt(self, mode: str, *, max_characters: int | None = None, max_tokens: int | None = None) -> Prompt:
        """The description of the tools of a mode for a system prompt, within a budget."""

    def export(self, provider: str, *, mode: str | None = None, strict: bool = False) -> list[Export]:
        """The tools in the format of a provider, each with what that format cannot express."""


@click.command("doc", epilog=example("crib doc order_status"))
@click.argument("name", shell_complete=complete_tool)
@project_option
@answers("tool", "documentation")
@pass_opener
def doc(opener: Opener[ExportsCrib], name: str) -> Answer:
    """Print the whole documentation of a tool."""
    with opener.open_local() as crib:
        entry = crib.find(name)
        if entry is None:
            raise unknown_tool(crib, name)
        text = entry.tool.documentation or entry.tool.description
        say_text(text)
        return Answer({"tool": entry.tool.address, "documentation": text})


@click.command("prompt", epilog=example("crib prompt --mode voice"))
@click.option("--mode", type=click.Choice(sorted(MODES)), default="text", show_default=True, help="The agent's mode.")
@click.option("--max-characters", type=click.IntRange(min=1), help="Its maximum length.")
@click.option("--max-tokens", type=click.IntRange(min=1), help="Its maximum number of tokens, by estimate.")
@project_option
@json_option
@pass_opener
def prompt(
    opener: Opener[ExportsCrib], *, mode: str, max_characters: int | None, max_tokens: int | None, as_json: bool
) -> int:
    """Print the description of the tools for a system prompt.

    Tools that do not fit the budget are left out whole, and named on standard error.
    """
    with opener.open_local() as crib:
        found = crib.prompt(mode, max_characters=max_characters, max_tokens=max_tokens)
        if as_json:
            say_json(
                {
                    "mode": mode,
                    "text": found.text,
                    "included": list(found.included),
                    "leftOut": list(found.left_out),
                    "characters": found.characters,
                    "tokensEstimated": found.tokens,
                }
            )
            return ExitCode.DONE
        if found.text:
            say_text(found.text)
        if found.left_out:
            complain(f"left out for the budget: {', '.join(found.left_out)}")
        mention_problems(crib)
        return ExitCode.DONE


@click.command("export", epilog=example("crib export --for openai count_words"))
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_tool)
@click.option(
    "--for",
    "provider",
    required=True,
    type=click.Choice([str(provider) for provider in Provider]),
    help="The provider.",
)
@click.option("--strict", is_flag=True, help="In the provider's strict mode, where it has one.")
@click.option("--lossless", is_flag=True, help="End with exit code 1 if anything is lost.")
@click.option("--mode", type=click.Choice(sorted(MODES)), help="Only tools of this mode.")
@project_option
@json_option
@pass_opener
def export(
    opener: Opener[ExportsCrib],
    names: tuple[str, ...],
    *,
    provider: str,
    strict: bool,
    lossless: bool,
    mode: str | None,
    as_json: bool,
) -> int:
    """Print the tools in the format of a model provider.

    Standard output is the list of definitions. What the provider cannot express is listed on standard error, or beside the
    definitions with --json.
    """
    with opener.open_local() as crib:
        wanted = {name: crib.find(name) for name in names}
        if unknown := [name for name, entry in wanted.items() if entry is None]:
            raise unknown_tool(crib, unknown[0])
        exports = crib.export(provider, mode=mode, strict=strict)
        if wanted:
            addresses = {entry.tool.address for entry in wanted.values() if entry is not None}
            exports = [each for each in exports if each.tool.address in addresses]
            for missing in sorted(addresses - {each.tool.address for each in exports}):
                complain(f"{missing} is not offered to models here; see: crib show {missing}")
        definitions = [each.definition for each in exports]
        losses = [_describe_loss(each) for each in exports if each.losses]
        say_json({"tools": definitions, "losses": losses} if as_json else definitions)
        is_lossy = any(loss.keyword != EXAMPLES for each in exports for loss in each.losses)
        if not as_json:
            _complain_losses(exports)
        mention_problems(crib)
        return ExitCode.FAILED if lossless and is_lossy else ExitCode.DONE


def _complain_losses(exports: Sequence[Export]) -> None:
    """Print each loss; those of examples, which most providers do not support, are only counted."""
    for export in exports:
        for loss in export.losses:
            if loss.keyword != EXAMPLES:
                complain(f"{export.tool.name}: {loss}")
    without = [export.tool.name for export in exports if any(loss.keyword == EXAMPLES for loss in export.losses)]
    if without:
        complain(f"the examples of {count(len(without), 'tool')} are not all shown to the model; --json names them")


def _describe_loss(export: Export) -> dict[str, object]:
    return {
        "tool": export.tool.name,
        "losses": [{"path": loss.path, "keyword": loss.keyword, "text": loss.text} for loss in export.losses],
    }
