"""Put a bundle with its tools into a ZIP archive, and read one: documents and a list of their hashes, without secrets.

    manifest.json                     the format, and path, size and SHA-256 of every other file
    bundle.json                       the bundle
    tools/<slug>@<version>.json       one version of a tool, under the name that its file has in the store

Ids of tools and times are left out: they belong to the store. The same bundle always gives the same bytes.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.features.bundles.definition import COMPUTED
from toolcrib.features.bundles.stored_documents import BUNDLE_FILE, slot_of
from toolcrib.lib.document_format import bundle_document, write_tool
from toolcrib.lib.documents import MAX_DEFINITION_BYTES, read_json
from toolcrib.lib.zip_archive import ArchiveLimits, read_archive, write_archive
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolcrib.model.bundle import Bundle

    Document = Mapping[str, object]

FORMAT = "toolcrib-bundle-1"
MANIFEST = "manifest.json"
TOOLS = "tools/"
LIMITS = ArchiveLimits()
# The bundle and the manifest are the other two entries.
MAX_TOOLS = LIMITS.entries - 2
# Keys that the store sets, and not the author of a tool.
STORE_KEYS = COMPUTED | {"toolID", "bundleID"}
MAX_MANIFEST_BYTES = 1_000_000
# The files, and what the format adds to each.
MAX_ARCHIVE_BYTES = LIMITS.total_bytes + 1_000 * LIMITS.entries


@dataclass(frozen=True, kw_only=True, slots=True)
class Archive:
    """The documents of an archive; those of the tools by their path in it."""

    bundle: Document
    tools: Mapping[str, Document]

    @property
    def bundle_id(self) -> str:
        """The id that the bundle had where it was exported."""
        return str(self.bundle.get("bundleID", ""))


def files_of(bundle: Bundle, documents: Iterable[Document]) -> dict[str, bytes]:
    """The files of an archive by path, without its manifest."""
    files = {BUNDLE_FILE: write_tool(bundle_document(bundle))}
    for document in documents:
        identity = {name: document[name] for name in ("schemaVersion", "slug", "version")}
        rest = {name: value for name, value in document.items() if name not in STORE_KEYS}
        files[path_of(str(document["slug"]), str(document["version"]))] = write_tool({**identity, **rest})
    if len(files) > MAX_TOOLS + 1:
        message = f"the bundle {bundle.slug} has {len(files) - 1} tools, and an archive holds {MAX_TOOLS}; split it"
        raise ToolError(Kind.LIMIT_EXCEEDED, message, details={"limit": MAX_TOOLS})
    return files


def pack(files: Mapping[str, bytes]) -> bytes:
    """The archive of these files and of their hashes."""
    manifest = {"format": FORMAT, "files": [_hashed(path, files[path]) for path in sorted(files)]}
    return write_archive({**files, MANIFEST: write_tool(manifest)}, LIMITS)


def unpack(data: bytes) -> Archive:
    """The documents of an archive that holds exactly what its manifest lists; raises ToolError for any other."""
    files = read_archive(data, LIMITS)
    _check_manifest(files)
    documents = {path: _document(path, content) for path, content in files.items() if path != MANIFEST}
    if BUNDLE_FILE not in documents:
        raise _refusal(f"{BUNDLE_FILE} is missing")
    bundle = documents.pop(BUNDLE_FILE)
    for path, document in documents.items():
        slug, version = document.get("slug"), document.get("version")
        if not isinstance(slug, str) or not isinstance(version, str) or path != path_of(slug, version):
            raise _refusal(f"{path} is not the path of a tool with that slug and version; export the bundle again")
    return Archive(bundle=bundle, tools=documents)


def path_of(slug: str, version: str) -> str:
    """Where the document of a tool stands in an archive."""
    return f"{TOOLS}{slot_of('', slug, version)[1:]}.json"


def _check_manifest(files: Mapping[str, bytes]) -> None:
    """Refuse an archive whose files are not those of its manifest, byte for byte."""
    if MANIFEST not in files:
        raise _refusal(
            f"{MANIFEST} with the hashes is missing; export the bundle with crib bundle export, or unpack "
            "the files and load them with crib bundle load"
        )
    manifest = _document(MANIFEST, files[MANIFEST], MAX_MANIFEST_BYTES)
    if manifest.get("format") != FORMAT:
        raise _refusal(f"its format is {manifest.get('format')!r:.80}, and only {FORMAT!r} is known here")
    listed = manifest.get("files")
    present = {path: _hashed(path, content) for path, content in files.items() if path != MANIFEST}
    said = (
        {str(file.get("path")): file for file in listed if isinstance(file, dict)} if isinstance(listed, list) else {}
    )
    if not isinstance(listed, list) or len(listed) != len(said) or said.keys() != present.keys():
        odd = sorted(said.keys() ^ present.keys())[:3]
        raise _refusal(f"its files are not those that {MANIFEST} lists ({', '.join(odd) or 'one is listed twice'})")
    for path, facts in present.items():
        if said[path].get("bytes") != facts["bytes"] or not _is_same(said[path].get("sha256"), facts["sha256"]):
            raise _refusal(f"{path} is not the file that {MANIFEST} lists: its size or its hash differs")


def _is_same(said: object, hashed: object) -> bool:
    return isinstance(said, str) and said.isascii() and hmac.compare_digest(said, str(hashed))


def _hashed(path: str, content: bytes) -> dict[str, object]:
    return {"path": path, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def _document(path: str, content: bytes, max_bytes: int = MAX_DEFINITION_BYTES) -> dict[str, object]:
    document = read_json(content, place=path, max_bytes=max_bytes)
    if not isinstance(document, dict):
        raise _refusal(f"{path} is not a JSON object")
    return document


def _refusal(reason: str) -> ToolError:
    return ToolError(Kind.VALIDATION, f"the archive was refused: {reason}")
