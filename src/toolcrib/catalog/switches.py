"""Which tools the operator switched off."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Entry
from toolcrib.pure.names import action_of, did_you_mean, slug_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from toolcrib.model.tool import Tool


# What the bundle of the host program's own tools is called.
HOST = "host"


class Switches:
    """Words that switch tools off: a name, `name@version`, `bundle/name`, `bundle/name@version` or `bundle/*`.

    The name of a tool with actions switches off every action, `name.action` that one. Dashes and underscores are the same letter here, so that no spelling leaves a tool switched on by mistake.
    """

    def __init__(self, disabled: frozenset[str], where: str) -> None:
        self._words = {slug_of(word): word for word in sorted(disabled)}
        self._where = where
        # Why a tool was switched off through the catalogue; empty if it was not.
        self.moved: Callable[[Tool], str] = lambda _: ""

    def entry(self, tool: Tool) -> Entry:
        """The tool with its switch."""
        entry = self.by_word(tool)
        if entry.enabled and (reason := self.moved(tool)):
            whole = f"'{tool.bundle or HOST}/*'" if "bundle" in reason else tool.name
            return Entry(tool=tool, enabled=False, reason=reason, cure=f"switch it on with: crib enable {whole}")
        return entry

    def by_word(self, tool: Tool) -> Entry:
        """The tool with the switch of the operator alone."""
        hit = self._word_for(tool) if self._words else None
        if hit is None:
            return Entry(tool=tool)
        reason = f"{hit!r} stands in {self._where}"
        return Entry(tool=tool, enabled=False, reason=reason, cure=f"take {hit!r} out of {self._where}")

    def _word_for(self, tool: Tool) -> str | None:
        return next((self._words[spelling] for spelling in _spellings(tool) if spelling in self._words), None)

    def idle(self, tools: Iterable[Tool], others: Iterable[str]) -> Iterator[ToolError]:
        """The words that switch nothing off: none of the tools, and none of the other names."""
        if not self._words:
            return
        tools = list(tools)
        used = {spelling for tool in tools for spelling in _spellings(tool)} | {slug_of(name) for name in others}
        for spelling, word in self._words.items():
            if spelling not in used:
                hint = did_you_mean(word, {tool.name for tool in tools}) or "see the names with: crib list"
                yield ToolError(Kind.VALIDATION, f"{self._where}: {word!r} is the name of no tool; {hint}")


def _spellings(tool: Tool) -> tuple[str, ...]:
    bundle = slug_of(tool.bundle)
    version = slug_of(tool.version)
    action = action_of(tool)
    names = (tool.slug,) if action is None else (tool.slug, str(action), action.whole)
    spellings = ((name, f"{bundle}/{name}", f"{name}@{version}", f"{bundle}/{name}@{version}") for name in names)
    return (*chain.from_iterable(spellings), f"{bundle}/*")
