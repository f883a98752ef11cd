"""Read the documents of bundles and tools from the store.

They lie at `bundles/<bundle>/bundle.json` and `bundles/<bundle>/<slug>@<version>.json`. The slot of a tool is
`<bundle>/<slug>@<version>` in the spelling of file names: one for each tool, and the same for ever. Points in time are RFC 3339 in
UTC with milliseconds, so that the later one is the greater text.
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
# What changes in a document without the tool being another one.
UNSTRUCTURAL = frozenset({"isEnabled", "createdAt", "modifiedAt", "toggledAt", DIGEST})
REMEMBERED = 4_000
ETAG_DIGITS = 24

_TOOL_KEY = re.compile(rf"{SPACE}/([^/@]+/[^/@]+@[^/@]+)\.json")


def write_time(seconds: float) -> str:
    """The text of a point in time, given in seconds since 1970."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds_of(text: str) -> float:
    """The point in time that a text names, in seconds since 1970."""
    return datetime.fromisoformat(text).timestamp()


class Label(NamedTuple):
    """What a slot says of its tool; slug and version are shortened where the name of its file is."""

    bundle: str
    slug: str
    version: str


def check_bundle_id(bundle_id: object) -> str:
    """The id in its usual spelling; refuses what is none."""
    if isinstance(bundle_id, str) and is_uuid7(bundle_id):
        return bundle_id.lower()
    raise ToolError(Kind.VALIDATION, f"{bundle_id!r:.80} is no id of a bundle; ids are UUIDs of version 7")


def bundle_key(bundle_id: str) -> str:
    """The key of a bundle's own document."""
    return f"{SPACE}/{bundle_id}/{BUNDLE_FILE}"


def folder_of(bundle_id: str) -> str:
    """What the keys of everything in a bundle begin with."""
    return f"{SPACE}/{bundle_id}/"


def slot_of(bundle_id: str, slug: str, version: str) -> str:
    """The slot of a tool."""
    name = to_filename(slug)
    # No key has a word that begins with a dash, which programs take for an option.
    name = f"{DASH}{name[1:]}" if name.startswith("-") else name
    return f"{bundle_id}/{name}@{to_filename(version)}"


def check_slot(bundle_id: str, slug: str, version: str) -> str:
    """The slot of a tool that is looked for, by any spelling of its name; refuses what no tool can be called."""
    for text, problem in ((slug, slug_problem(slug_of(slug))), (version, version_problem(version))):
        if problem:
            raise ToolError(Kind.VALIDATION, f"{text[:80]!r}: {problem}")
    return slot_of(bundle_id, slug_of(slug), version)


def tool_key(slot: str) -> str:
    """The key of a tool's document."""
    return f"{SPACE}/{slot}.json"


def slot_at(key: str) -> str | None:
    """The slot that a key belongs to; None for the key of anything but a tool."""
    found = _TOOL_KEY.fullmatch(key)
    return None if found is None else found[1]


def read_slot(slot: str) -> Label:
    """Take a slot apart."""
    bundle, _, name = slot.partition("/")
    slug, _, version = name.partition("@")
    slug = f"-{slug.removeprefix(DASH)}" if slug.startswith(DASH) else slug
    return Label(bundle, from_filename(slug) or slug, from_filename(version) or version)


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredTool:
    """A tool as its document says it. `content` names the very bytes; a broken document has a `problem` and no tool."""

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
    """Reads bundles and tools from a store; what was read is remembered for as long as its stamp stays. Threads may share it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read: OrderedDict[str, StoredTool] = OrderedDict()
        self._lock = threading.Lock()

    def bundle(self, bundle_id: str) -> Bundle | None:
        """The bundle as its document is now; raises ToolError for a broken one."""
        data = self._get(bundle_key(bundle_id))
        return None if data is None else read_stored_bundle(data, bundle_id=bundle_id)

    def tool(self, slot: str, bundle: Bundle, name: str) -> StoredTool | None:
        """The tool in the slot as its document is now; `name` is what its bundle is called in addresses."""
        # The stamp first: of what is changed in between, an old one is remembered, and it is read again.
        stamp = self._store.stamp(tool_key(slot))
        if stamp is None:
            self.forget(slot)
            return None
        blank = _blank(slot, stamp, name)
        try:
            data = self._get(tool_key(slot))
        except ToolError as problem:
            # Without its stamp: what could not be read is tried again, also when nothing about the file changes.
            return replace(blank, stamp="", enabled=False, problem=problem.message)
        if data is None:
            self.forget(slot)
            return None
        known, blank = self._read.get(slot), replace(blank, content=_digest(data))
        if known is not None and (known.content, known.stamp, known.bundle) == (blank.content, stamp, name):
            return known
        return self._remember(self._reading(blank, data, bundle), known)

    def quick_tool(self, slot: str, bundle: Bundle, name: str) -> StoredTool | None:
        """Likewise, but a document is not read again whose stamp is the same."""
        known = self._read.get(slot)
        if known is not None and known.bundle == name and known.stamp == self._store.stamp(known.key):
            return known
        return self.tool(slot, bundle, name)

    def data(self, slot: str) -> bytes | None:
        """The bytes of a tool's document; None where there are none to be had."""
        try:
            return self._get(tool_key(slot))
        except ToolError:
            return None

    def forget(self, slot: str) -> None:
        """Remember nothing of a tool."""
        with self._lock:
            self._read.pop(slot, None)

    def _get(self, key: str) -> bytes | None:
        """The bytes of a document; an error names its key, and not where the store lies."""
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
            # Plans are made for this very object.
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
            raise ToolError(Kind.VALIDATION, f"{blank.key}: holds {tool.slug}@{tool.version}; name the file {right}")
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


def _blank(slot: str, stamp: str, bundle: str) -> StoredTool:
    """What is known of a tool before its document is read."""
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
    """What changes when the tool itself does, and not when it is switched or when only its layout changes."""
    structure = {name: value for name, value in document.items() if name not in UNSTRUCTURAL}
    return _digest(json.dumps(structure, sort_keys=True, separators=(",", ":")).encode())


def _times(document: Mapping[str, object], changed_at: float | None) -> dict[str, str]:
    """When the tool was made, changed and switched; a change that no digest in the document covers was made by hand."""
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
    """Whether both are the same tool, however they are switched."""
    return (
        one.bundle == other.bundle
        and one.id == other.id
        and structural_digest(one.document) == structural_digest(other.document)
    )


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def etag_of(kept: Bundle | Kept) -> str:
    """The entity tag, with its quotes: another one whenever what is written down is another, or whether it can be used."""
    facts = repr(kept) if isinstance(kept, Bundle) else f"{kept.id} {kept.stamp} {kept.reason}"
    return f'"{hashlib.sha256(facts.encode("utf-8", "surrogatepass")).hexdigest()[:ETAG_DIGITS]}"'


def check_match(if_match: str, there: Bundle | Kept | None) -> None:
    """Refuse to change what is not what the client has read; without a tag nothing is refused."""
    etag = "" if there is None else etag_of(there)
    if if_match in ("", etag):
        return
    what = "is not there" if there is None else "was changed meanwhile"
    raise ToolError(Kind.CONFLICT, f"what you want to change {what}; read it again", details={"etag": etag})
