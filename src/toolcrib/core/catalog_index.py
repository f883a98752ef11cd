"""The index of the catalog: every tool by address and slug, and which of them are disabled."""

from __future__ import annotations

from itertools import chain
from time import monotonic
from typing import TYPE_CHECKING

from toolcrib.core.sources import BUILTIN_BUNDLE, SYSTEM_BUNDLE
from toolcrib.lib.names import action_of, did_you_mean, function_name, slug_of
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Entry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from toolcrib.core.resources import Resources
    from toolcrib.model.tool import Tool

# What the bundle of the host program's own tools is called.
HOST = "host"
NAMED_ACTIONS = 10
# Where the switches are stored that were moved while a Crib ran.
SWITCHES = "switches"
LOOK_SECONDS = 0.1


class Index:
    """Entries by address and by slug, the slugs of the names that models are shown, and the actions of each tool.

    What cannot be told apart is a problem.
    """

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.addresses: dict[str, Entry] = {}
        self.slugs: dict[str, list[Entry]] = {}
        self.shown: dict[str, str] = {}
        self.actions: dict[str, list[str]] = {}
        self.problems: list[ToolError] = []
        for entry in entries:
            self._add(entry)
        for slug, (entry, *_) in self.slugs.items():
            self._add_shown(slug, entry)

    def name_actions(self, slug: str) -> str:
        """The actions of the tool that the slug is, or begins with before a dot."""
        whole = slug if slug in self.actions else slug.rpartition(".")[0]
        named = [f"{whole}.{action}" for action in dict.fromkeys(self.actions.get(whole, ()))]
        return f"{whole} has the actions {', '.join(named[:NAMED_ACTIONS])}" if named else ""

    def _add(self, entry: Entry) -> None:
        tool = entry.tool
        first = self.addresses.setdefault(tool.address, entry)
        if first is not entry:
            # The host program may put a tool of its own in the place of one that comes with Toolcrib.
            if tool.bundle not in (BUILTIN_BUNDLE, SYSTEM_BUNDLE):
                there = first.tool.origin or "the host program"
                message = f"{tool.origin}: {tool.address} is already defined in {there}; rename one of them"
                self.problems.append(ToolError(Kind.CONFLICT, message))
            return
        self.slugs.setdefault(tool.slug, []).append(entry)
        if action := action_of(tool):
            self.actions.setdefault(action.whole, []).append(action.action)

    def _add_shown(self, slug: str, entry: Entry) -> None:
        """The name that models are shown; a tool that is really called so comes first."""
        visible = function_name(entry.tool.name)
        meant = slug_of(visible)
        meant = meant if meant in self.slugs else self.shown.setdefault(visible, slug)
        if meant != slug:
            other = self.slugs[meant][0].tool.address
            message = f"{entry.tool.address} and {other} look alike to models; rename one of them"
            self.problems.append(ToolError(Kind.CONFLICT, message))


class StoredSwitches:
    """The switches that were moved while a Crib ran; what stores them is only loaded if there are any."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._look_at = 0.0

    def generation(self) -> object:
        """The switches themselves: another object whenever one was moved, here at once, elsewhere at most a moment ago."""
        if not self._resources.has_made("bundles"):
            now = monotonic()
            if now < self._look_at:
                return None
            self._look_at = now + LOOK_SECONDS
        bundles = self._resources.stored_bundles(SWITCHES)
        return None if bundles is None else bundles.switches or None

    def why_off(self, tool: Tool) -> str:
        """Why the tool was disabled; empty if it was not."""
        bundles = self._resources.stored_bundles(SWITCHES)
        return "" if bundles is None else bundles.switched_off(tool)


class Switches:
    """Words that disable tools: a name, `name@version`, `bundle/name`, `bundle/name@version` or `bundle/*`.

    The name of a tool with actions disables every action, `name.action` that one. Dashes and underscores are the same letter
    here, so that no spelling leaves a tool enabled by mistake. `stored` are switches that were moved while a Crib ran.
    """

    def __init__(self, disabled: frozenset[str], where: str) -> None:
        self._words = {slug_of(word): word for word in sorted(disabled)}
        self._where = where
        self.stored: StoredSwitches | None = None

    def apply(self, entry: Entry) -> Entry:
        """The entry, disabled if any switch of it is off."""
        entry = self.apply_words(entry)
        reason = self.stored.why_off(entry.tool) if entry.enabled and self.stored is not None else ""
        if not reason:
            return entry
        tool = entry.tool
        whole = f"'{tool.bundle or HOST}/*'" if "bundle" in reason else tool.name
        return Entry(tool=tool, enabled=False, reason=reason, cure=f"enable it with: crib enable {whole}")

    def apply_words(self, entry: Entry) -> Entry:
        """The entry, disabled if a word of the operator disables it."""
        hit = self._word_for(entry.tool) if self._words else None
        if hit is None:
            return entry
        reason = f"{hit!r} stands in {self._where}"
        return Entry(tool=entry.tool, enabled=False, reason=reason, cure=f"take {hit!r} out of {self._where}")

    def idle(self, tools: list[Tool], is_name: Callable[[str], bool]) -> Iterator[ToolError]:
        """The words that disable nothing: they are spellings of none of the tools, and no other name."""
        if not self._words:
            return
        used = {spelling for tool in tools for spelling in _spellings(tool)}
        for spelling, word in self._words.items():
            if spelling not in used and not is_name(word):
                hint = did_you_mean(word, {tool.name for tool in tools}) or "see the names with: crib list"
                yield ToolError(Kind.VALIDATION, f"{self._where}: {word!r} is the name of no tool; {hint}")

    def _word_for(self, tool: Tool) -> str | None:
        return next((self._words[spelling] for spelling in _spellings(tool) if spelling in self._words), None)


def _spellings(tool: Tool) -> tuple[str, ...]:
    bundle = slug_of(tool.bundle)
    version = slug_of(tool.version)
    action = action_of(tool)
    names = (tool.slug,) if action is None else (tool.slug, str(action), action.whole)
    spellings = ((name, f"{bundle}/{name}", f"{name}@{version}", f"{bundle}/{name}@{version}") for name in names)
    return (*chain.from_iterable(spellings), f"{bundle}/*")
