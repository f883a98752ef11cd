"""Rows of the search index, the roster of bundles, and a lookup of slots by file names."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING

import orjson

from toolcrib.features.bundles.stored_documents import (
    DIGEST,
    SPACE,
    read_slot,
    slot_at,
    slot_of,
    structural_digest,
    tool_key,
)
from toolcrib.infra.search import Row
from toolcrib.lib.document_format import CUT, read_time
from toolcrib.model.bundle import Bundle

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from toolcrib.features.bundles.stored_documents import StoredTool
    from toolcrib.model.protocols import Store
    from toolcrib.model.tool import Tool


MAX_PARAMETERS = 100
TEXTS = ("slug", "version", "toolID", "displayName")
BROKEN_SLUG = "broken"
LOOK_SECONDS = 0.1


def row_of(stored_tool: StoredTool) -> Row:
    """The row of a stored tool."""
    row = Row(
        id=stored_tool.slot,
        bundle=stored_tool.slot.partition("/")[0],
        slug=stored_tool.slug,
        version=stored_tool.version,
        enabled=stored_tool.enabled,
        created_at=stored_tool.created_at,
        modified_at=stored_tool.modified_at,
        key=stored_tool.key,
        stamp=stored_tool.stamp,
        problem=stored_tool.problem,
    )
    return row if stored_tool.tool is None else _described(row, stored_tool.tool)


def row_of_tool(tool: Tool, *, slot: str, enabled: bool) -> Row:
    """The row of a tool of another source."""
    row = Row(id=slot, bundle=slot.partition("/")[0], slug=tool.slug, version=tool.version, enabled=enabled)
    return _described(row, tool)


def _described(row: Row, tool: Tool) -> Row:
    return replace(
        row,
        name=tool.name,
        display_name=tool.display_name,
        description=tool.description,
        tags=tool.tags,
        parameters=tuple(parameters_of(tool.parameters)),
    )


def parameters_of(schema: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """The names of the arguments in a schema with their descriptions."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return
    for name, argument in islice(properties.items(), MAX_PARAMETERS):
        description = argument.get("description") if isinstance(argument, dict) else None
        yield str(name), description if isinstance(description, str) else ""


def light_row(data: bytes, *, slot: str, stamp: str) -> Row | None:
    """Fast path: the row of a document without validating it; None falls back to the full reader.

    A document with a digest of its own structure was validated before it was written. It is validated again as soon as the
    tool is shown or called.
    """
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(document, dict) or not _is_usual(document, slot):
        return None
    created_at, modified_at = read_time(document.get("createdAt")), read_time(document.get("modifiedAt"))
    if not created_at or not modified_at or document.get(DIGEST) != structural_digest(document):
        return None
    return Row(
        id=slot,
        bundle=slot.partition("/")[0],
        slug=document["slug"],
        version=document["version"],
        name=document["slug"],
        display_name=document["displayName"],
        description=document.get("description", ""),
        tags=tuple(document.get("tags", ())),
        parameters=tuple(parameters_of(document["argSchema"])),
        enabled=document["isEnabled"],
        created_at=created_at,
        modified_at=max(created_at, modified_at),
        key=tool_key(slot),
        stamp=stamp,
    )


def _is_usual(document: Mapping[str, object], slot: str) -> bool:
    """Whether every key that a row needs is present and of the right type."""
    bundle = slot.partition("/")[0]
    tags = document.get("tags", [])
    return (
        all(isinstance(document.get(name), str) for name in TEXTS)
        and isinstance(document.get("description", ""), str)
        and isinstance(document.get("isEnabled"), bool)
        and isinstance(document.get("argSchema"), dict)
        and isinstance(tags, list)
        and all(isinstance(tag, str) for tag in tags)
        and document.get("bundleID") == bundle
        and slot_of(bundle, str(document["slug"]), str(document["version"])) == slot
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Roster:
    """The bundles of a store by their ids.

    `problems` has the errors of bundles that cannot be read, which are disabled. `names` has the name of each in addresses:
    its slug if a lookup of the slug finds it, else its id. `meant` maps a slug to the id that a lookup finds.
    """

    bundles: Mapping[str, Bundle] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    meant: Mapping[str, str] = field(default_factory=dict)

    def find(self, word: str) -> str | None:
        """The id of the bundle with an id or a slug."""
        return word.lower() if word.lower() in self.bundles else self.meant.get(word)


def make_roster(
    bundles: Mapping[str, Bundle], problems: Mapping[str, str] | None = None, taken: Collection[str] = ()
) -> Roster:
    """Name every bundle; of several with one slug the oldest gets it, unless another source has it."""
    problems = problems or {}
    meant: dict[str, str] = {}
    live = (bundle for bundle in bundles.values() if not bundle.soft_deleted_at and bundle.id not in problems)
    for bundle in sorted(live, key=lambda bundle: (bundle.created_at, bundle.id)):
        meant.setdefault(bundle.slug, bundle.id)
    names = {
        bundle.id: bundle.slug if meant.get(bundle.slug) == bundle.id and bundle.slug not in taken else bundle.id
        for bundle in bundles.values()
    }
    return Roster(bundles=bundles, problems=problems, names=names, meant=meant)


def is_on(bundle: Bundle) -> bool:
    """Whether a bundle is enabled and not deleted."""
    return bundle.enabled and not bundle.soft_deleted_at


def stand_in(bundle_id: str) -> Bundle:
    """A placeholder for a bundle whose document cannot be read."""
    return Bundle(id=bundle_id, slug=BROKEN_SLUG, display_name=bundle_id, enabled=False)


class SlugFiles:
    """Find slots by the slug in their file names, for calls that cannot wait for the index.

    File names are listed again at most every LOOK_SECONDS. Threads may share the object.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen: tuple[float, Mapping[str, list[str]]] = (0.0, {})

    def slots(self, slug: str) -> list[str]:
        """The slots of all tools with that slug."""
        return self._look().get(_spelling(slot_of("", slug, "")), [])

    def slugs(self, read: Callable[[str], str]) -> Iterator[str]:
        """Every slug; `read` gets it from the document if the file name is truncated."""
        for spelling, slots in self._look().items():
            yield read(slots[0]) if CUT in spelling else read_slot(slots[0]).slug

    def _look(self) -> Mapping[str, list[str]]:
        until, seen = self._seen
        if monotonic() < until:
            return seen
        found: dict[str, list[str]] = {}
        for key in self._store.keys(f"{SPACE}/"):
            if slot := slot_at(key):
                found.setdefault(_spelling(slot), []).append(slot)
        self._seen = monotonic() + LOOK_SECONDS, found
        return found


def _spelling(slot: str) -> str:
    return slot.partition("/")[2].partition("@")[0]
