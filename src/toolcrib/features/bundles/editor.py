"""Write, switch and delete bundles and tools, each under the lock of its bundle."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolcrib.features.bundles.archive import STORE_KEYS, files_of, pack
from toolcrib.features.bundles.format import read_bundle, read_stored_tool, read_tool
from toolcrib.features.bundles.other_sources import source_id, tool_word
from toolcrib.features.bundles.stored_documents import (
    BUNDLE_FILE,
    DIGEST,
    SPACE,
    bundle_key,
    check_bundle_id,
    check_match,
    check_slot,
    folder_of,
    read_slot,
    slot_at,
    slot_of,
    structural_digest,
    tool_key,
    write_time,
)
from toolcrib.lib.document_format import is_newer, write_bundle, write_tool
from toolcrib.lib.names import RESERVED_BUNDLES
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Registered, is_document

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from toolcrib.features.bundles.archive import Archive
    from toolcrib.features.bundles.index_sync import IndexSync
    from toolcrib.features.bundles.lookup import Lookup
    from toolcrib.features.bundles.other_sources import Overlay, Sources
    from toolcrib.features.bundles.stored_documents import Documents, StoredTool
    from toolcrib.infra.search.index import Index
    from toolcrib.lib.audit_trail import Recorder
    from toolcrib.model.bundle import Bundle, Kept
    from toolcrib.model.protocols import Store
    from toolcrib.model.tool import Tool

# Below this distance from the limit the count of the index is not exact enough.
COUNTED_ROUGHLY = 1_000
# How long a write waits for an index that is not complete.
INDEX_SECONDS = 0.3
STORE_LOCK = "store"
SHOWN_PROBLEMS = 50


@dataclass(frozen=True, kw_only=True, slots=True)
class Editor:
    """Write bundles and tools, each under the lock of its bundle; a write is acknowledged once it is on disk."""

    store: Store
    index: Index
    documents: Documents
    syncing: IndexSync
    sources: Sources
    overlay: Overlay
    lookup: Lookup
    secrets: Callable[[], Collection[str]]
    holds_secret: Callable[[str], bool]
    max_tools: int
    record: Recorder
    root: Path | None
    clock: Callable[[], float]

    def put_bundle(self, bundle_id: str, document: Mapping[str, object], *, if_match: str = "") -> tuple[Bundle, bool]:
        """Create a bundle (True) or replace it (False); its tools stay.

        A soft-deleted bundle is restored.
        """
        bundle_id = check_bundle_id(bundle_id)
        self._refuse_others(bundle_id)
        wanted = read_bundle(document, bundle_id=bundle_id)
        with self._locked(bundle_id):
            before = self._stored_or_none(bundle_id)
            check_match(if_match, before)
            if before is not None:
                _refuse_newer(before.schema_version, f"the bundle {bundle_id}")
            if before is None or before.slug != wanted.slug:
                self._refuse_name_of_others(wanted.slug)
            now = write_time(self.clock())
            created_at = now if before is None else before.created_at or now
            earlier = "" if before is None else before.modified_at
            bundle = replace(wanted, created_at=created_at, modified_at=max(created_at, now, earlier))
            if before is not None:
                moved = before.enabled != wanted.enabled
                bundle = replace(bundle, toggled_at=now if moved else before.toggled_at)
            with self.record("bundle.saved", bundle.slug, facts={"enabled": bundle.enabled}):
                self.store.replace(bundle_key(bundle_id), write_bundle(bundle))
                self.syncing.put_bundle(bundle)
        return bundle, before is None

    def switch_bundle(self, bundle_id: str, enabled: bool, *, if_match: str = "") -> Bundle:  # noqa: FBT001 - the flag is the point of the method
        """Enable or disable a bundle of any owner."""
        bundle_id = check_bundle_id(bundle_id)
        if self.lookup.other(bundle_id) is not None:
            return self._switch_other_bundle(bundle_id, enabled=enabled, if_match=if_match)
        with self._locked(bundle_id):
            bundle = self.lookup.stored(bundle_id)
            _refuse_deleted(bundle)
            check_match(if_match, bundle)
            if bundle.enabled == enabled:
                return bundle
            with self._switching("bundle", bundle.slug, enabled=enabled):
                return self._write_bundle(replace(bundle, enabled=enabled, toggled_at=write_time(self.clock())))

    def export_bundle(self, bundle_id: str) -> bytes:
        """A stored bundle and all its tools as an archive; the same content gives the same bytes."""
        bundle_id = check_bundle_id(bundle_id)
        other = self.lookup.other(bundle_id)
        if other is not None:
            message = f"the bundle {other.slug} belongs to {other.owner} and has no documents; copy its files instead"
            raise ToolError(Kind.BLOCKED, message)
        # Under the lock, so that all documents are of one moment.
        with self._locked(bundle_id):
            bundle = self.lookup.stored(bundle_id)
            _refuse_deleted(bundle)
            slots = [slot for key in self.store.keys(folder_of(bundle_id)) if (slot := slot_at(key))]
            documents = [self._document(slot, bundle) for slot in slots]
        files = files_of(bundle, documents)
        for path, content in files.items():
            if self.holds_secret(content.decode()):
                message = f"{path} holds the value of a stored secret, so the bundle is not exported; write ${{secret:NAME}} there"
                raise ToolError(Kind.BLOCKED, message)
        return pack(files)

    def import_bundle(self, bundle_id: str, archive: Archive, *, slug: str = "", enable: bool = False) -> Bundle:
        """Store the bundle of an archive with all its tools, or nothing; disabled unless `enable`.

        It gets this id and, where one is given, this slug. Only a deleted bundle is replaced; any other is a conflict.
        """
        bundle_id = check_bundle_id(bundle_id)
        self._refuse_others(bundle_id)
        said = {name: value for name, value in archive.bundle.items() if name != "bundleID"}
        wanted = read_bundle({**said, "isEnabled": enable, **({"slug": slug} if slug else {})}, bundle_id=bundle_id)
        now = write_time(self.clock())
        bundle = replace(wanted, created_at=now, modified_at=now)
        documents = {
            tool_key(slot).rpartition("/")[2]: data for slot, data in self._read_archive(archive, bundle, now).items()
        }
        documents[BUNDLE_FILE] = write_bundle(bundle)
        with self._counted(len(archive.tools)), self._locked(bundle_id):
            before = self._stored_or_none(bundle_id)
            self._refuse_present(bundle, before, archive)
            with self.record("bundle.imported", bundle.slug, facts={"enabled": enable}):
                if not self.store.create_folder(folder_of(bundle_id), documents, replacing=before is not None):
                    raise _bundle_taken(bundle, archive)
                self.syncing.put_folder(bundle)
        return bundle

    def _read_archive(self, archive: Archive, bundle: Bundle, now: str) -> dict[str, bytes]:
        """The documents of the tools as they are stored, by slot; one error has the problems of all."""
        documents: dict[str, bytes] = {}
        problems: list[str] = []
        secrets = self.secrets()
        for path, document in archive.tools.items():
            slug, version = str(document["slug"]), str(document["version"])
            said = {name: value for name, value in document.items() if name not in STORE_KEYS}
            try:
                reading = read_tool(
                    said,
                    bundle_id=bundle.id,
                    slug=slug,
                    version=version,
                    bundle=bundle.slug,
                    secrets=secrets,
                    place=path,
                )
            except ToolError as problem:
                problems += problem.message.splitlines()
                if len(problems) >= SHOWN_PROBLEMS:
                    break
                continue
            stored = {**reading.document, "createdAt": now, "modifiedAt": now}
            documents[slot_of(bundle.id, slug, version)] = write_tool({**stored, DIGEST: structural_digest(stored)})
        if problems:
            message = "\n".join(["the archive was refused, and nothing was imported:", *problems[:SHOWN_PROBLEMS]])
            raise ToolError(Kind.VALIDATION, message, details={"problems": problems[:SHOWN_PROBLEMS]})
        return documents

    def _refuse_present(self, bundle: Bundle, before: Bundle | None, archive: Archive) -> None:
        """Refuse to import over anything but a deleted, empty bundle, and beside one with the same slug."""
        self._refuse_name_of_others(bundle.slug)
        if before is not None and not (before.soft_deleted_at and self._is_empty(bundle.id)):
            raise _bundle_taken(bundle, archive)
        others = self.syncing.roster.bundles.values()
        same = [other for other in others if other.slug == bundle.slug and other.id != bundle.id]
        if any(not other.soft_deleted_at for other in same):
            message = f"there is a bundle {bundle.slug} already, {same[0].id}; nothing was imported. Give this one another slug"
            raise ToolError(Kind.CONFLICT, message, details={"bundleID": same[0].id})

    def _document(self, slot: str, bundle: Bundle) -> Mapping[str, object]:
        """The document of a tool for an archive; refuses a broken one."""
        unchanged = self.documents.unchanged(slot)
        if unchanged is not None:
            return unchanged
        tool = self._there(slot, bundle)
        if tool.tool is None:
            raise ToolError(Kind.CONFLICT, f"{tool.problem}; repair or delete it, then export the bundle")
        return tool.document

    def delete_bundle(self, bundle_id: str, if_match: str) -> Bundle:
        """Soft-delete an empty bundle: writing it again restores it until it is removed for good."""
        bundle_id = check_bundle_id(bundle_id)
        self._refuse_others(bundle_id)
        with self._locked(bundle_id):
            bundle = self.lookup.stored(bundle_id)
            _refuse_deleted(bundle)
            check_match(if_match, bundle)
            tools = [slot for key in self.store.keys(folder_of(bundle_id)) if (slot := slot_at(key))]
            if tools:
                message = f"the bundle {bundle.slug} is not empty; delete its tools first (tools: {len(tools)})"
                raise ToolError(Kind.CONFLICT, message, details={"count": len(tools)})
            with self.record("bundle.deleted", bundle.slug):
                return self._write_bundle(replace(bundle, soft_deleted_at=write_time(self.clock())))

    def remove_bundle(self, bundle_id: str, is_due: Callable[[Bundle], bool]) -> bool:
        """Remove a bundle for good if it is still due and still empty."""
        with self._locked(bundle_id):
            bundle = self.documents.bundle(bundle_id)
            if bundle is None or not is_due(bundle) or not self._is_empty(bundle_id):
                return False
            self.store.discard(folder_of(bundle_id))
            self.syncing.remove_bundle(bundle_id)
        return True

    def put_tool(self, bundle_id: str, slug: str, version: str, document: Mapping[str, object], if_match: str) -> Kept:
        """Write a new tool; of concurrent writers of one slug and version, in any process, one wins."""
        bundle_id = check_bundle_id(bundle_id)
        self.refuse_file(bundle_id, slug, version)
        self._refuse_others(bundle_id)
        bundle = self._open_bundle(bundle_id)
        reading = read_tool(
            document,
            bundle_id=bundle_id,
            slug=slug,
            version=version,
            bundle=self.lookup.name_of(bundle),
            secrets=self.secrets(),
        )
        slot = slot_of(bundle_id, slug, version)
        with self._counted(), self._changing(bundle_id):
            # Read again under the lock.
            bundle = self._open_bundle(bundle_id)
            self._refuse_taken(slot, bundle, if_match)
            self._refuse_known_id(reading.tool)
            now = write_time(self.clock())
            stored = {**reading.document, "createdAt": now, "modifiedAt": now}
            stored[DIGEST] = structural_digest(stored)
            data = write_tool(stored)
            # Refuse now what the next reader would refuse, so that an acknowledged tool is usable.
            read_stored_tool(data, bundle=bundle, place=f"{slug}@{version}")
            with self.record("tool.saved", reading.tool.address, facts={"hash": reading.tool.content_hash}):
                if not self.store.create(tool_key(slot), data):
                    raise _taken(slug, version)
                return self._written(slot, bundle)

    def switch_tool(self, bundle_id: str, slug: str, version: str, enabled: bool, *, if_match: str = "") -> Kept:  # noqa: FBT001 - the flag is the point of the method
        """Enable or disable a tool of any owner; the tool itself stays the same."""
        bundle_id = check_bundle_id(bundle_id)
        if self.lookup.other(bundle_id) is not None:
            return self._switch_other_tool(bundle_id, slug, version, enabled=enabled, if_match=if_match)
        slot = check_slot(bundle_id, slug, version)
        with self._changing(bundle_id):
            bundle = self._open_bundle(bundle_id)
            stored_tool = self._there(slot, bundle)
            kept = self.lookup.kept(stored_tool, bundle)
            check_match(if_match, kept)
            if stored_tool.tool is None:
                raise ToolError(Kind.CONFLICT, f"{stored_tool.problem}; repair the file before the tool is switched")
            _refuse_newer(str(stored_tool.document.get("schemaVersion")), f"{slug}@{version}")
            if stored_tool.enabled == enabled:
                return kept
            with self._switching("tool", stored_tool.tool.address, enabled=enabled):
                self.store.replace(
                    tool_key(slot), write_tool(_switched(stored_tool, enabled, write_time(self.clock())))
                )
                return self._written(slot, bundle)

    def delete_tool(self, bundle_id: str, slug: str, version: str, *, if_match: str = "") -> None:
        """Remove a tool for good, even a broken one."""
        bundle_id = check_bundle_id(bundle_id)
        self.refuse_file(bundle_id, slug, version)
        self._refuse_others(bundle_id)
        slot = check_slot(bundle_id, slug, version)
        with self._changing(bundle_id):
            bundle = self.lookup.stored(bundle_id)
            check_match(if_match, self.lookup.kept(self._there(slot, bundle), bundle))
            with self.record("tool.deleted", f"{bundle.slug}/{slug}@{version}"):
                if not self.store.remove(tool_key(slot)):
                    raise _missing(slot)
                self.syncing.remove_tool(slot)

    def _write_bundle(self, bundle: Bundle) -> Bundle:
        _refuse_newer(bundle.schema_version, f"the bundle {bundle.slug}")
        self.store.replace(bundle_key(bundle.id), write_bundle(bundle))
        self.syncing.put_bundle(bundle)
        return bundle

    def _switch_other_bundle(self, bundle_id: str, *, enabled: bool, if_match: str) -> Bundle:
        with self._locked(bundle_id):
            bundle = self.lookup.other(bundle_id)
            check_match(if_match, bundle)
            with self._switching("bundle", bundle.slug if bundle else bundle_id, enabled=enabled):
                self.overlay.switch(bundle_id, "", enabled=enabled)
            self._notify_of_switch()
            bundle = self.lookup.other(bundle_id)
        if bundle is None:
            raise ToolError(Kind.NOT_FOUND, f"there is no bundle {bundle_id}")
        return bundle

    def _switch_other_tool(self, bundle_id: str, slug: str, version: str, *, enabled: bool, if_match: str) -> Kept:
        with self._locked(bundle_id):
            before = self.lookup.tool(bundle_id, slug, version, {})
            check_match(if_match, before)
            if not before.bundle.enabled:
                raise _bundle_off(before.bundle)
            if before.tool is not None:
                with self._switching("tool", before.tool.address, enabled=enabled):
                    self.overlay.switch(bundle_id, tool_word(before.tool), enabled=enabled)
            self._notify_of_switch()
            return self.lookup.tool(bundle_id, slug, version, {})

    def disable_ahead(self, bundle: str, words: Iterable[str]) -> None:
        """Disable tools of another source, by slug and version, before their files arrive."""
        bundle_id = source_id(bundle)
        with self._locked(bundle_id):
            for word in words:
                self.overlay.switch(bundle_id, word, enabled=False)
            self._notify_of_switch()

    def _switching(self, noun: str, name: str, *, enabled: bool) -> AbstractContextManager[None]:
        return self.record(f"{noun}.{'enabled' if enabled else 'disabled'}", name)

    def _notify_of_switch(self) -> None:
        self.sources.look_again()
        self.lookup.forget()

    def _open_bundle(self, bundle_id: str) -> Bundle:
        """A bundle whose tools can be changed."""
        bundle = self.lookup.stored(bundle_id)
        _refuse_deleted(bundle)
        if not bundle.enabled:
            raise _bundle_off(bundle)
        return bundle

    def _stored_or_none(self, bundle_id: str) -> Bundle | None:
        try:
            return self.lookup.stored(bundle_id)
        except ToolError as problem:
            if problem.kind is Kind.NOT_FOUND:
                return None
            raise

    def _there(self, slot: str, bundle: Bundle) -> StoredTool:
        stored_tool = self.documents.tool(slot, bundle, self.lookup.name_of(bundle))
        if stored_tool is None:
            raise _missing(slot)
        return stored_tool

    def _written(self, slot: str, bundle: Bundle) -> Kept:
        stored_tool = self._there(slot, bundle)
        self.syncing.put_tool(stored_tool)
        return self.lookup.kept(stored_tool, bundle)

    def _refuse_taken(self, slot: str, bundle: Bundle, if_match: str) -> None:
        stored_tool = self.documents.tool(slot, bundle, self.lookup.name_of(bundle))
        check_match(if_match, None if stored_tool is None else self.lookup.kept(stored_tool, bundle))
        if stored_tool is not None:
            raise _taken(stored_tool.slug, stored_tool.version)

    def _refuse_name_of_others(self, slug: str) -> None:
        """Refuse the slug of a bundle of another source: `builtin/read-file` must keep its meaning."""
        if slug in RESERVED_BUNDLES or slug in self.sources.look().names:
            message = f"the slug {slug!r} belongs to tools of another source; choose another"
            raise ToolError(Kind.CONFLICT, message)

    def _refuse_others(self, bundle_id: str) -> None:
        if bundle_id in map(source_id, ("builtin", "system", "")):
            raise ToolError(
                Kind.BLOCKED, "this is the id of a bundle of the platform; it can only be enabled or disabled"
            )
        other = self.lookup.other(bundle_id)
        if other is not None:
            whose = "comes with Toolcrib" if other.built_in else f"belongs to {other.owner}"
            message = f"the bundle {other.slug} {whose} and is read-only here; it can only be enabled or disabled"
            raise ToolError(Kind.BLOCKED, message)

    def refuse_file(self, bundle_id: str, slug: str, version: str) -> None:
        """Refuse to change a tool whose document is a file of the project."""
        entry = self.sources.look().entries.get(slot_of(bundle_id.lower(), slug, version))
        tool = None if entry is None else entry.tool
        if tool is None or tool.origin is None or not (is_document(tool) or isinstance(tool.run, Registered)):
            return
        file = os.path.relpath(tool.origin.place, self.root or ".")
        message = f"{slug}@{version} is the document {file}; edit or remove that file"
        raise ToolError(Kind.CONFLICT, message, details={"file": file})

    def _refuse_known_id(self, tool: Tool) -> None:
        """Refuse the id of another tool with this slug: a copied document has it, and calls are counted by id."""
        for row in self.index.named(tool.slug):
            with suppress(ToolError):  # a broken document has no id to compare
                entry = self.lookup.entry(row.bundle, row.slug, row.version) if row.key else None
                known = "" if entry is None else entry.tool.id
                if known == tool.id:
                    break
        else:
            return
        message = f"toolID {tool.id} is that of {row.slug}@{row.version}; leave it out, and a new one is made"
        raise ToolError(Kind.CONFLICT, message)

    def _is_empty(self, bundle_id: str) -> bool:
        """Whether the folder of a bundle contains only its own document, and no file of another program."""
        others = [key for key in self.store.keys(folder_of(bundle_id)) if key != bundle_key(bundle_id)]
        return not others and not self.store.other_files(folder_of(bundle_id).rstrip("/"))

    @contextmanager
    def _changing(self, bundle_id: str) -> Iterator[None]:
        """Hold the lock of a bundle while one tool is written or removed."""
        with self._locked(bundle_id), self.syncing.noting(bundle_id):
            yield

    def _locked(self, bundle_id: str) -> AbstractContextManager[None]:
        return self.store.lock(f"bundle/{bundle_id}")

    @contextmanager
    def _counted(self, more: int = 1) -> Iterator[None]:
        """Enforce `max_tools` for so many more: near the limit, documents are counted under the lock of the store."""
        is_complete = self.syncing.look(INDEX_SECONDS)
        if is_complete and self.index.count() + more + COUNTED_ROUGHLY <= self.max_tools:
            yield
            return
        with self.store.lock(STORE_LOCK):
            count = sum(1 for key in self.store.keys(f"{SPACE}/") if slot_at(key))
            if count + more > self.max_tools:
                message = (
                    f"there are {count} tools, and bundles.max_tools is {self.max_tools}; delete some, or raise it"
                )
                raise ToolError(Kind.LIMIT_EXCEEDED, message, details={"limit": self.max_tools})
            yield


def _switched(stored_tool: StoredTool, enabled: bool, now: str) -> dict[str, object]:  # noqa: FBT001 - named where it is called
    """The document, enabled or disabled; the times when the tool was created and changed stay the same."""
    stored = {
        **stored_tool.document,
        "isEnabled": enabled,
        "createdAt": stored_tool.created_at,
        "modifiedAt": stored_tool.modified_at,
        "toggledAt": now,
    }
    return {**stored, DIGEST: structural_digest(stored)}


def _refuse_deleted(bundle: Bundle) -> None:
    if bundle.soft_deleted_at:
        message = f"the bundle {bundle.slug} is being deleted; write it again with PUT to have it back"
        raise ToolError(Kind.CONFLICT, message)


def _refuse_newer(schema_version: str, what: str) -> None:
    if is_newer(schema_version):
        raise ToolError(Kind.BLOCKED, f"{what} was written by a later version of Toolcrib, which alone can change it")


def _bundle_taken(bundle: Bundle, archive: Archive) -> ToolError:
    pairs = [f"{document['slug']}@{document['version']}" for document in archive.tools.values()]
    message = (
        f"there is a bundle {bundle.id} already, and nothing was imported; import the archive as another bundle, or delete "
        "that one first"
    )
    return ToolError(Kind.CONFLICT, message, details={"bundleID": bundle.id, "tools": pairs[:SHOWN_PROBLEMS]})


def _bundle_off(bundle: Bundle) -> ToolError:
    return ToolError(Kind.DISABLED, f"the bundle {bundle.slug} is disabled; enable it first")


def _taken(slug: str, version: str) -> ToolError:
    message = f"there is a tool {slug}@{version} in this bundle already; delete it first, or write another version"
    return ToolError(Kind.CONFLICT, message)


def _missing(slot: str) -> ToolError:
    label = read_slot(slot)
    return ToolError(Kind.NOT_FOUND, f"there is no tool {label.slug}@{label.version} in the bundle {label.bundle}")
