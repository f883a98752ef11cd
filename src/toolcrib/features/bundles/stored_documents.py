"""Read the documents of bundles and tools from the store.

They are stored as `bundles/<bundle>/bundle.json` and `bundles/<bundle>/<slug>@<version>.json`. The slot of a tool is
`<bundle>/<slug>@<version>`, encoded as for file names; it is unique and never changes. Times are RFC 3339 in UTC with
milliseconds, so that they sort as strings.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from toolcrib.features.bundles.format import MAX_STORED_BYTES, read_stored_bundle, read_stored_tool
from toolcrib.lib.document_format import from_filename, read_time, to_filename
from toolcrib.lib.names import is_uuid7, slug_of, stable_id
from toolcrib.model.bundle import Bundle
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import slug_problem, version_problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolcrib.model.bundle import Kept
    from toolcrib.model.protocols import Store
    from toolcrib.model.tool import Tool

SPACE = "bundles"
BUNDLE_FILE = "bundle.json"
DASH = "_02d_"
DIGEST = "digest"
# Keys that can change without changing the tool.
UNSTRUCTURAL = frozenset({"isEnabled", "createdAt", "modifiedAt", "toggledAt", DIGEST})
REMEMBERED = 4_000
ETAG_DIGITS = 24

_TOOL_KEY = re.compile(rf"{SPACE}/([^/@]+/[^/@]+@[^/@]+)\.json")


def write_time(seconds: float) -> str:
    """Format a time given in seconds since 1970."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds_of(text: str) -> float:
    """Parse a time to seconds since 1970."""
    return datetime.fromisoformat(text).timestamp()


class Label(NamedTuple):
    """The parts of a slot; slug and version are truncated if the file name is."""

    bundle: str
    slug: str
    version: str


def check_bundle_id(bundle_id: object) -> str:
    """The id in lower case; refuses an invalid one."""
    if isinstance(bundle_id, str) and is_uuid7(bundle_id):
        return bundle_id.lower()
    raise ToolError(Kind.VALIDATION, f"{bundle_id!r:.80} is not the id of a bundle; ids are UUIDs of version 7")


def bundle_key(bundle_id: str) -> str:
    """The key of a bundle's own document."""
    return f"{SPACE}/{bundle_id}/{BUNDLE_FILE}"


def folder_of(bundle_id: str) -> str:
    """The key prefix of a bundle."""
    return f"{SPACE}/{bundle_id}/"


def slot_of(bundle_id: str, slug: str, version: str) -> str:
    """The slot of a tool."""
    name = to_filename(slug)
    # A file name must not begin with a dash, which programs take for an option.
    name = f"{DASH}{name[1:]}" if name.startswith("-") else name
    return f"{bundle_id}/{name}@{to_filename(version)}"


def check_slot(bundle_id: str, slug: str, version: str) -> str:
    """The slot for any spelling of a tool's name; refuses an invalid name or version."""
    for text, problem in ((slug, slug_problem(slug_of(slug))), (version, version_problem(version))):
        if problem:
            raise ToolError(Kind.VALIDATION, f"{text[:80]!r}: {problem}")
    return slot_of(bundle_id, slug_of(slug), version)


def tool_key(slot: str) -> str:
    """The key of a tool's document."""
    return f"{SPACE}/{slot}.json"


def slot_at(key: str) -> str | None:
    """The slot of a key; None if it is not the key of a tool."""
    found = _TOOL_KEY.fullmatch(key)
    return None if found is None else found[1]


def read_slot(slot: str) -> Label:
    """Split a slot into its parts."""
    bundle, _, name = slot.partition("/")
    slug, _, version = name.partition("@")
    slug = f"-{slug.removeprefix(DASH)}" if slug.startswith(DASH) else slug
    return Label(bundle, from_filename(slug) or slug, from_filename(version) or version)


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredTool:
    """A tool as read from its document. `content` is a hash of the bytes; a broken document has a `problem` and no tool."""

    slot: str
    id: str
    slug: str
    version: str
    content: str
    stamp: str
    bundle: str = ""
    tool: Tool | None = None
    document: Mapping[str, object] = field(default_factory=dict)
    enabled: bool = True
    created_at: str = ""
    modified_at: str = ""
    toggled_at: str = ""
    warnings: tuple[str, ...] = ()
    problem: str = ""

    @property
    def key(self) -> str:
        """The key of its document."""
        return tool_key(self.slot)


class Documents:
    """Read bundles and tools from a store, with a cache that is valid as long as the stamp. Threads may share it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read: OrderedDict[str, StoredTool] = OrderedDict()
        self._lock = threading.Lock()

    def bundle(self, bundle_id: str) -> Bundle | None:
        """Read the document of a bundle; raises ToolError for a broken one."""
        data = self._get(bundle_key(bundle_id))
        return None if data is None else read_stored_bundle(data, bundle_id=bundle_id)

    def tool(self, slot: str, bundle: Bundle, name: str) -> StoredTool | None:
        """Read the document of a tool; `name` is the name of its bundle in addresses."""
        # Read the stamp first: after a change in between the cached stamp is old, and the document is read again.
        stamp = self._store.stamp(tool_key(slot))
        if stamp is None:
            self.forget(slot)
            return None
        blank = _blank(slot, stamp, name)
        try:
            data = self._get(tool_key(slot))
        except ToolError as problem:
            # Without its stamp, so that it is read again even if the file does not change.
            return replace(blank, stamp="", enabled=False, problem=problem.message)
        if data is None:
            self.forget(slot)
            return None
        known, blank = self._read.get(slot), replace(blank, content=_digest(data))
        if known is not None and (known.content, known.stamp, known.bundle) == (blank.content, stamp, name):
            return known
        return self._remember(self._reading(blank, data, bundle), known)

    def quick_tool(self, slot: str, bundle: Bundle, name: str) -> StoredTool | None:
        """The same as `tool`, but from the cache if the stamp is unchanged."""
        known = self._read.get(slot)
        if known is not None and known.bundle == name and known.stamp == self._store.stamp(known.key):
            return known
        return self.tool(slot, bundle, name)

    def data(self, slot: str) -> bytes | None:
        """The bytes of a tool's document; None if it cannot be read."""
        try:
            return self._get(tool_key(slot))
        except ToolError:
            return None

    def unchanged(self, slot: str) -> dict[str, object] | None:
        """The document of a tool that is as it was written, and so was checked then; None if it must be checked again."""
        data = self.data(slot)
        try:
            document = None if data is None else json.loads(data)
        except (ValueError, RecursionError):
            return None
        if not isinstance(document, dict) or document.get(DIGEST) != structural_digest(document):
            return None
        return document if slot == _slot_in(document) else None

    def forget(self, slot: str) -> None:
        """Remove a tool from the cache."""
        with self._lock:
            self._read.pop(slot, None)

    def _get(self, key: str) -> bytes | None:
        """Read a document; an error names its key instead of its path."""
        try:
            return self._store.get(key, MAX_STORED_BYTES)
        except ToolError as problem:
            if problem.retryable:
                raise
            path = problem.details.get("path")
            message = problem.message.replace(str(path), key) if path else f"{key} cannot be read"
            raise ToolError(Kind.VALIDATION, message) from None

    def _remember(self, stored_tool: StoredTool, known: StoredTool | None) -> StoredTool:
        if (
            known is not None
            and known.tool is not None
            and stored_tool.tool is not None
            and _is_same(known, stored_tool)
        ):
            # Keep the same object, because plans are cached by it.
            stored_tool = replace(stored_tool, tool=known.tool)
        with self._lock:
            self._read[stored_tool.slot] = stored_tool
            self._read.move_to_end(stored_tool.slot)
            if len(self._read) > REMEMBERED:
                self._read.popitem(last=False)
        return stored_tool

    def _reading(self, blank: StoredTool, data: bytes, bundle: Bundle) -> StoredTool:
        try:
            return self._fill_in(blank, data, bundle)
        except ToolError as problem:
            return replace(blank, enabled=False, problem=problem.message)

    def _fill_in(self, blank: StoredTool, data: bytes, bundle: Bundle) -> StoredTool:
        reading = read_stored_tool(data, bundle=bundle, place=blank.key)
        tool, document = reading.tool, reading.document
        right = tool_key(slot_of(bundle.id, tool.slug, tool.version))
        if right != blank.key:
            raise ToolError(Kind.VALIDATION, f"{blank.key}: contains {tool.slug}@{tool.version}; name the file {right}")
        return replace(
            blank,
            **_times(document, self._store.changed_at(blank.key)),
            id=tool.id,
            slug=tool.slug,
            version=tool.version,
            tool=tool if tool.bundle == blank.bundle else replace(tool, bundle=blank.bundle),
            document={key: value for key, value in document.items() if key != DIGEST},
            enabled=document.get("isEnabled") is not False,
            warnings=reading.warnings,
        )


def _slot_in(document: Mapping[str, object]) -> str:
    """The slot that a document says it has; empty where it says none."""
    words = [document.get(name) for name in ("bundleID", "slug", "version")]
    return slot_of(*map(str, words)) if all(isinstance(word, str) for word in words) else ""


def _blank(slot: str, stamp: str, bundle: str) -> StoredTool:
    """What the slot says about a tool before its document is read."""
    label = read_slot(slot)
    return StoredTool(
        slot=slot,
        id=stable_id("slot", slot),
        slug=label.slug,
        version=label.version,
        content="",
        stamp=stamp,
        bundle=bundle,
    )


def structural_digest(document: Mapping[str, object]) -> str:
    """A digest that changes with the tool itself, not with its state or its formatting."""
    structure = {name: value for name, value in document.items() if name not in UNSTRUCTURAL}
    return _digest(json.dumps(structure, sort_keys=True, separators=(",", ":")).encode())


def _times(document: Mapping[str, object], changed_at: float | None) -> dict[str, str]:
    """When the tool was created, changed and toggled; a stale digest means a change by hand, at the file's time."""
    by_hand = "" if changed_at is None else write_time(changed_at)
    created_at = read_time(document.get("createdAt")) or by_hand
    modified_at = read_time(document.get("modifiedAt")) or created_at
    if document.get(DIGEST) != structural_digest(document):
        modified_at = by_hand or modified_at
    return {
        "created_at": created_at,
        "modified_at": max(created_at, modified_at),
        "toggled_at": read_time(document.get("toggledAt")) or "",
    }


def _is_same(one: StoredTool, other: StoredTool) -> bool:
    """Whether both are the same tool, apart from their state."""
    return (
        one.bundle == other.bundle
        and one.id == other.id
        and structural_digest(one.document) == structural_digest(other.document)
    )


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def etag_of(kept: Bundle | Kept) -> str:
    """The ETag, with quotes: it changes with the document, and with whether the tool can be used."""
    facts = repr(kept) if isinstance(kept, Bundle) else f"{kept.id} {kept.stamp} {kept.reason}"
    return f'"{hashlib.sha256(facts.encode("utf-8", "surrogatepass")).hexdigest()[:ETAG_DIGITS]}"'


def check_match(if_match: str, there: Bundle | Kept | None) -> None:
    """Refuse a change if the ETag is not current; without one nothing is refused."""
    etag = "" if there is None else etag_of(there)
    if if_match in ("", etag):
        return
    what = "does not exist" if there is None else "has changed"
    raise ToolError(Kind.CONFLICT, f"the resource {what}; read it again", details={"etag": etag})
