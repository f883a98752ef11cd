"""`crib doc`, `crib prompt` and `crib export`: what models and their authors read of the tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.interfaces.cli.open_crib import mention_problems
from toolcrib.toolkit.cli.console import ExitCode, complain, count, say_json, say_text
from toolcrib.toolkit.cli.tool_tables import complain_unknown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolcrib.crib import Crib
    from toolcrib.lib.export_schemas.targets import Export

EXAMPLES = "examples"


def print_documentation(crib: Crib, name: str) -> ExitCode:
    """`crib doc NAME`."""
    entry = crib.find(name)
    if entry is None:
        return complain_unknown(crib, name)
    say_text(entry.tool.documentation or entry.tool.description)
    return ExitCode.DONE


def print_prompt(
    crib: Crib, mode: str, *, max_characters: int | None, max_tokens: int | None, as_json: bool
) -> ExitCode:
    """`crib prompt --mode MODE`."""
    prompt = crib.prompt(mode, max_characters=max_characters, max_tokens=max_tokens)
    if as_json:
        say_json(
            {
                "mode": mode,
                "text": prompt.text,
                "included": list(prompt.included),
                "leftOut": list(prompt.left_out),
                "characters": prompt.characters,
                "tokensEstimated": prompt.tokens,
            }
        )
        return ExitCode.DONE
    if prompt.text:
        say_text(prompt.text)
    if prompt.left_out:
        complain(f"left out for the budget: {', '.join(prompt.left_out)}")
    mention_problems(crib)
    return ExitCode.DONE


def print_export(
    crib: Crib, provider: str, names: Sequence[str], *, strict: bool, lossless: bool, mode: str | None, as_json: bool
) -> ExitCode:
    """`crib export --for PROVIDER`."""
    wanted = {name: crib.find(name) for name in names}
    if unknown := [name for name, entry in wanted.items() if entry is None]:
        return complain_unknown(crib, unknown[0])
    exports = crib.export(provider, mode=mode, strict=strict)
    if wanted:
        addresses = {entry.tool.address for entry in wanted.values() if entry is not None}
        exports = [export for export in exports if export.tool.address in addresses]
        for missing in sorted(addresses - {export.tool.address for export in exports}):
            complain(f"{missing} is not offered to models here; see: crib show {missing}")
    definitions = [export.definition for export in exports]
    losses = [_describe_loss(export) for export in exports if export.losses]
    say_json({"tools": definitions, "losses": losses} if as_json else definitions)
    is_lossy = any(loss.keyword != EXAMPLES for export in exports for loss in export.losses)
    if not as_json:
        _complain_losses(exports)
    mention_problems(crib)
    return ExitCode.FAILED if lossless and is_lossy else ExitCode.DONE


def _complain_losses(exports: Sequence[Export]) -> None:
    """Each by itself; examples, for which most providers have no place, are counted."""
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
