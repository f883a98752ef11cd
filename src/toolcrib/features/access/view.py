"""Filter which tools, resources and prompts a limited caller sees and may use, for all interfaces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.core.sources import spellings
from toolcrib.lib.names import HOST, slug_of
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import MODES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from toolcrib.infra.settings import Table
    from toolcrib.model.tool import Tool

MAX_WORDS = 1_000
MAX_LETTERS = 400
KINDS = ("tools", "bundles", "tags")


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolView:
    """Limits on what a caller sees; a tool must meet every limit that is set: tools, bundles, tags and mode.

    `tools` are patterns such as `name` or `bundle/name`, either with `@version`, or `bundle/*`. A caller with a `mode` sees the
    tools of that mode, and its calls are made in it. `within` is another view, whose limits must be met too.
    """

    tools: frozenset[str] | None = None
    bundles: frozenset[str] | None = None
    tags: frozenset[str] | None = None
    mode: str | None = None
    within: ToolView | None = None

    def shows(self, tool: Tool) -> bool:
        """Whether the tool may be seen and called."""
        if self.tools is not None and self.tools.isdisjoint(spellings(tool, tool.bundle or HOST)):
            return False
        if not self._holds_for(tool.bundle, tool.tags, tool.modes):
            return False
        return self.within is None or self.within.shows(tool)

    def shows_published(self, name: str, bundle: str, tags: Iterable[str], modes: Collection[str] | None) -> bool:
        """Whether a resource or a prompt may be seen and read; `tools` matches its name as that of a tool."""
        if self.tools is not None:
            slug, place = slug_of(name), bundle or HOST
            if self.tools.isdisjoint((slug, f"{place}/{slug}", f"{place}/*")):
                return False
        if not self._holds_for(bundle, tags, modes):
            return False
        return self.within is None or self.within.shows_published(name, bundle, tags, modes)

    def _holds_for(self, bundle: str, tags: Iterable[str], modes: Collection[str] | None) -> bool:
        """Whether the limits other than names hold."""
        if self.bundles is not None and (bundle or HOST) not in self.bundles:
            return False
        if self.tags is not None and self.tags.isdisjoint(tag.casefold() for tag in tags):
            return False
        return self.mode is None or modes is None or self.mode in modes

    def mode_of(self, asked: str | None) -> str | None:
        """The mode of a call; raises ToolError if `asked` is another one than the view's."""
        mode = self.mode or (None if self.within is None else self.within.mode)
        if mode is None or asked in (None, mode):
            return mode or asked
        raise ToolError(Kind.MODE_RESTRICTED, f"this caller makes its calls in {mode} mode; leave the mode out")

    def to_json(self) -> dict[str, object]:
        """The limits that are set, as they are stored and shown."""
        words = {kind: getattr(self, kind) for kind in KINDS}
        found: dict[str, object] = {kind: sorted(limit) for kind, limit in words.items() if limit is not None}
        return found | ({} if self.mode is None else {"mode": self.mode})


# The view of a caller that is not authenticated yet.
NOTHING = ToolView(tools=frozenset())


def make_view(
    *,
    tools: Iterable[str] | None = None,
    bundles: Iterable[str] | None = None,
    tags: Iterable[str] | None = None,
    mode: str | None = None,
) -> ToolView | None:
    """The view with these limits, or None if there are none; an empty list shows no tool.

    Raises ToolError for an invalid limit.
    """
    if mode and mode not in MODES:
        raise ToolError(Kind.VALIDATION, f"there is no mode {mode[:80]!r}; use {' or '.join(sorted(MODES))}")
    view = ToolView(
        tools=None if tools is None else frozenset(map(_fold_name, _checked("tools", tools))),
        bundles=None if bundles is None else frozenset(_checked("bundles", bundles)),
        tags=None if tags is None else frozenset(tag.casefold() for tag in _checked("tags", tags)),
        mode=mode or None,
    )
    return None if view == ToolView() else view


def view_from_settings(table: Table) -> ToolView | None:
    """The view that the keys `tools`, `bundles`, `tags` and `mode` of a table describe; None if none of them is set."""
    return make_view(**{kind: getattr(table, kind) for kind in (*KINDS, "mode") if kind in table.explicit_keys})


def read_view(document: object) -> ToolView | None:
    """The view of a stored document; raises ValueError for an invalid one, so that it is never read as no limit."""
    if document is None:
        return None
    if not isinstance(document, dict) or not document or not document.keys() <= {*KINDS, "mode"}:
        raise ValueError
    limits = {kind: document[kind] for kind in KINDS if kind in document}
    mode = document.get("mode")
    if not all(isinstance(limit, list) for limit in limits.values()) or not isinstance(mode, str | None):
        raise ValueError
    return make_view(**limits, mode=mode)


def both(first: ToolView | None, second: ToolView | None) -> ToolView | None:
    """The view that shows only what both show."""
    if first is None or second is None or first == second:
        return first or second
    return ToolView(
        tools=first.tools,
        bundles=first.bundles,
        tags=first.tags,
        mode=first.mode,
        within=both(first.within, second),
    )


def _fold_name(word: str) -> str:
    """The pattern with dashes for underscores in the tool's name; the bundle stays as written, since a similar one may exist."""
    bundle, slash, name = word.rpartition("/")
    return f"{bundle}{slash}{slug_of(name)}"


def _checked(kind: str, words: Iterable[str]) -> list[str]:
    given: Iterable[object] = words
    found = [word.strip() if isinstance(word, str) else "" for word in given]
    if len(found) > MAX_WORDS or not all(0 < len(word) <= MAX_LETTERS and word.isprintable() for word in found):
        message = f"{kind}: name at most {MAX_WORDS}, each with 1 to {MAX_LETTERS} letters"
        raise ToolError(Kind.VALIDATION, message)
    return found
