"""Choose the tools that are offered to models, and write prompts and provider definitions for them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from toolcrib.core.sources import current_view
from toolcrib.features.exports.framework_tools import hand_over
from toolcrib.lib.export_schemas import Provider
from toolcrib.lib.export_schemas.definitions import export_tools
from toolcrib.lib.presentation import write_prompt
from toolcrib.model.errors import Kind, ToolError
from toolcrib.toolkit.tool_facts import offered_tools, without_failing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from toolcrib.core.resources import Resources
    from toolcrib.features.exports.chat import Host
    from toolcrib.lib.export_schemas import Export
    from toolcrib.lib.presentation import Prompt
    from toolcrib.model.tool import Entry, Tool

# The number of cached lists of offered tools, one per mode and view of a caller.
MAX_KEPT = 256


class Exports:
    """The exports of one Crib."""

    def __init__(self, resources: Resources) -> None:
        self._examples = resources.get("examples")
        self._grants = resources.grants
        self._offered: dict[object, tuple[object, tuple[Tool, ...]]] = {}

    def offered(
        self,
        entries: Callable[[], Iterable[Entry]],
        find: Callable[[str], Entry | None],
        mode: str | None,
        made_of: tuple[object, ...],
    ) -> tuple[Tool, ...]:
        """The tools that may be offered to a model, without the examples that are known to fail.

        The list is cached until `made_of`, which identifies the contents of the catalog, changes.
        """
        kind = mode, current_view()
        known, tools = self._offered.get(kind, (None, ()))
        if known != made_of:
            tools = offered_tools(entries(), find, mode, self._grants)
            if len(self._offered) >= MAX_KEPT:
                self._offered.clear()
            self._offered[kind] = made_of, tools
        return without_failing(tools, self._examples.failing())

    def offered_among(
        self, names: Iterable[str], require: Callable[[str], Entry], mode: str | None
    ) -> tuple[Tool, ...]:
        """Those of the named tools that may be offered to a model; `require` raises for an unknown name.

        Raises CAPABILITY_MISSING, with the line to write into the settings, for one that lacks a grant.
        """
        found: list[Tool] = []
        for name in dict.fromkeys(names):
            entry = require(name)
            # An address names exactly that tool, even if its bare name means another one.
            if missing := self._grants.missing(entry.tool):
                raise self._grants.refusal(entry.tool, missing)
            found += offered_tools([entry], partial(_always, entry), mode, self._grants)
        return without_failing(found, self._examples.failing())

    def prompt(
        self, tools: tuple[Tool, ...], mode: str, *, max_characters: int | None = None, max_tokens: int | None = None
    ) -> Prompt:
        """The part of a system prompt that describes the tools of a mode, within a budget."""
        return write_prompt(tools, mode, max_characters=max_characters, max_tokens=max_tokens)

    def hand_over(self, framework: str, crib: Host, options: Mapping[str, Any]) -> list[Any]:
        """The tools as objects of another agent framework."""
        return hand_over(framework, crib, options)

    def export(self, tools: tuple[Tool, ...], provider: str, *, strict: bool) -> list[Export]:
        """The tools in the format of a provider, each with what that format cannot express."""
        return export_tools(tools, read_provider(provider), strict=strict)


def _always(entry: Entry, _: str) -> Entry:
    return entry


def read_provider(name: str) -> Provider:
    """The provider of that name; raises ToolError if there is none."""
    if name not in set(Provider):
        raise ToolError(Kind.VALIDATION, f"there is no provider {name!r:.80}; use {', '.join(Provider)}")
    return Provider(name)
