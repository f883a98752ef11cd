"""Which tools the operator switched off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Entry
from toolcrib.pure.names import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolcrib.model.tool import Tool


class Switches:
    """Words that switch tools off: a name, `name@version`, `bundle/name`, `bundle/name@version` or `bundle/*`.

    Dashes and underscores are the same letter here, so that no spelling leaves a tool switched on by mistake.
    """

    def __init__(self, disabled: frozenset[str], where: str) -> None:
        self._words = {_fold(word): word for word in sorted(disabled)}
        self._where = where

    def entry(self, tool: Tool) -> Entry:
        """The tool with its switch."""
        if not self._words:
            return Entry(tool=tool)
        hit = next((self._words[spelling] for spelling in _spellings(tool) if spelling in self._words), None)
        if hit is None:
            return Entry(tool=tool)
        reason = f"{hit!r} stands in {self._where}"
        return Entry(tool=tool, enabled=False, reason=reason, cure=f"take {hit!r} out of {self._where}")

    def idle(self, tools: Iterable[Tool], others: Iterable[str]) -> Iterator[ToolError]:
        """The words that switch nothing off: none of the tools, and none of the other names."""
        if not self._words:
            return
        tools = list(tools)
        used = {spelling for tool in tools for spelling in _spellings(tool)} | {_fold(name) for name in others}
        for spelling, word in self._words.items():
            if spelling not in used:
                hint = did_you_mean(word, {tool.name for tool in tools}) or "see the names with: crib list"
                yield ToolError(Kind.VALIDATION, f"{self._where}: {word!r} is the name of no tool; {hint}")


def _spellings(tool: Tool) -> tuple[str, ...]:
    slug, bundle = _fold(tool.slug), _fold(tool.bundle)
    named = f"{bundle}/{slug}"
    versions = (f"{slug}@{tool.version}", f"{named}@{tool.version}")
    return (slug, named, *map(_fold, versions), f"{bundle}/*")


def _fold(word: str) -> str:
    return word.replace("_", "-")
