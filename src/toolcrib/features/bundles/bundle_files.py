"""`crib bundle load`, `new`, `put`, `export`, `import` and `remove`: move documents between files and bundles, local or on a server."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from toolcrib.features.bundles.archive import MAX_ARCHIVE_BYTES, unpack
from toolcrib.features.bundles.definition import COMPUTED
from toolcrib.features.bundles.format import read_bundle, read_tool
from toolcrib.features.bundles.written_forms import to_stored_form
from toolcrib.infra.files import durable
from toolcrib.lib.documents import read_jsonc
from toolcrib.lib.names import is_uuid7, new_id, read_address
from toolcrib.model.bundle import Bundle
from toolcrib.model.errors import Cure, Kind, ToolError
from toolcrib.model.tool import MAX_NAME
from toolcrib.toolkit.cli import (
    Answer,
    CommandError,
    ExitCode,
    WrongUseError,
    agrees,
    complain,
    count,
    on_one_line,
    say,
)
from toolcrib.toolkit.cli.tool_tables import unknown_tool

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from toolcrib.toolkit.client_protocol import AnyCrib

    Document = dict[str, object]

BUNDLE_FILE = "bundle.json"
MAX_FILE_BYTES = 256_000
# Optional keys of a document with their defaults.
DEFAULTS: Mapping[str, object] = {"description": "", "tags": []}
MADE, KEPT, REPLACED, RESTORED, DIFFERS = "made", "kept", "replaced", "restored", "differs"


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolFile:
    """The document of one version of a tool, and the file that it was read from."""

    path: Path
    slug: str
    version: str
    document: Document

    @property
    def label(self) -> str:
        """The version, as an address without its bundle."""
        return f"{self.slug}@{self.version}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """A bundle as its folder describes it, as it is stored now, and the tools to put into it."""

    described: Bundle
    stored: Bundle | None
    document: Document
    tools: list[ToolFile]


def load_bundle(crib: AnyCrib, folder: str, *, strict: bool = False) -> Answer:
    """`crib bundle load DIR`: store the bundle and the tools of a folder, if all of them are valid."""
    root = Path(folder)
    if not root.is_dir():
        raise WrongUseError(f"{root} is not a folder; name the one that holds {BUNDLE_FILE} and the tools")
    problems: list[str] = []
    warnings: list[str] = []
    load = _read_folder(crib, root, problems, warnings)
    if load is None or problems or (strict and warnings):
        raise _nothing_written([*problems, *(warnings if strict else [])])
    _print_warnings(warnings)
    bundle, word = _put_bundle(crib, load)
    done = [_put_tool(crib, bundle, tool, tool.path.name) for tool in load.tools]
    return _answer(bundle, done, warnings, {"bundle": word})


def make_bundle(crib: AnyCrib, slug: str, *, name: str, description: str) -> Answer:
    """`crib bundle new SLUG`: create an empty bundle and print its id."""
    if others := [bundle.id for bundle in crib.bundles.list_all() if bundle.slug == slug]:
        message = f"there is a bundle {slug!r:.80} already, {others[0]}; put tools into it, or take another slug"
        raise ToolError(Kind.CONFLICT, message)
    document = {"slug": slug, "displayName": name or slug, "description": description, "isEnabled": True}
    bundle, _ = crib.bundles.put_bundle(new_id(), document)
    say(bundle.id)
    return Answer({"id": bundle.id, "slug": bundle.slug})


def put_tool(crib: AnyCrib, name: str, file: str, *, strict: bool = False) -> Answer:
    """`crib bundle put BUNDLE FILE`: add the version of a tool that a file describes."""
    bundle = known_bundle(crib, name)
    problems: list[str] = []
    warnings: list[str] = []
    tools = list(_read_tools(crib, bundle, [Path(file)], problems, warnings))
    if problems or (strict and warnings):
        raise _nothing_written([*problems, *(warnings if strict else [])])
    _print_warnings(warnings)
    done = [_put_tool(crib, bundle, tool, f"{bundle.slug}/{tool.label}") for tool in tools]
    return _answer(bundle, done, warnings)


def _answer(
    bundle: Bundle, tools: list[Document], warnings: list[str], more: Mapping[str, object] = MappingProxyType({})
) -> Answer:
    """What was done with each tool; a version whose file differs from the stored one is a failure."""
    differs = any(tool["outcome"] == DIFFERS for tool in tools)
    facts = {"id": bundle.id, "slug": bundle.slug, **more, "tools": tools, "warnings": warnings}
    return Answer(facts, ExitCode.FAILED if differs else ExitCode.DONE)


def export_bundle(crib: AnyCrib, name: str, file: str | None, *, replace: bool) -> Answer:
    """`crib bundle export BUNDLE`: write its archive to a file."""
    bundle = known_bundle(crib, name)
    path = Path(file or f"{bundle.slug}.zip")
    data = crib.bundles.export_bundle(bundle.id)
    if replace:
        durable.replace(path, data)
    elif not durable.create(path, data):
        raise ToolError(Kind.CONFLICT, f"{path} is there already; name another with --to, or add --replace")
    tools = len(unpack(data).tools)
    say(on_one_line(f"exported {bundle.slug} to {path} ({count(tools, 'tool')}, {len(data)} bytes)"))
    return Answer({"id": bundle.id, "slug": bundle.slug, "file": str(path), "tools": tools, "bytes": len(data)})


def import_bundle(crib: AnyCrib, file: str, *, slug: str, enable: bool) -> Answer:
    """`crib bundle import FILE`: store the bundle of an archive."""
    data = durable.read(Path(file), MAX_ARCHIVE_BYTES)
    archive = unpack(data or b"")
    # Under another slug it is another bundle.
    bundle_id = new_id() if slug or not archive.bundle_id else archive.bundle_id
    bundle = crib.bundles.import_bundle(bundle_id, data or b"", slug=slug, enable=enable)
    say(on_one_line(f"imported {bundle.slug} ({bundle.id}) with {count(len(archive.tools), 'tool')}"))
    if not bundle.enabled:
        complain(on_one_line(f"it is disabled; look at its tools, then enable it with: crib enable '{bundle.slug}/*'"))
    return Answer({"id": bundle.id, "slug": bundle.slug, "enabled": bundle.enabled, "tools": len(archive.tools)})


def _print_warnings(warnings: Iterable[str]) -> None:
    for warning in warnings:
        complain(f"warning: {warning}")


def remove_tool(crib: AnyCrib, name: str, *, agreed: bool) -> Answer:
    """`crib bundle remove BUNDLE/SLUG@VERSION`: remove a version for good, once it is confirmed."""
    address = read_address(name)
    if address.bundle is None or address.version is None:
        raise WrongUseError(f"{name!r:.200} names no version in a bundle; write BUNDLE/SLUG@VERSION")
    bundle = known_bundle(crib, address.bundle)
    if crib.bundles.document(bundle.id, address.name, address.version) is None:
        raise unknown_tool(crib, name)
    if not (agreed or agrees(f"{name} will be removed for good. Remove it?")):
        message = f"{name} is not removed; confirm it with: --yes"
        raise CommandError(Kind.CONFIRMATION_REQUIRED, message, code=ExitCode.NEEDS_CONFIRMATION)
    crib.bundles.delete_tool(bundle.id, address.name, address.version)
    say(on_one_line(f"{bundle.slug}/{address.name}@{address.version} is removed"))
    return Answer({"bundle": bundle.slug, "slug": address.name, "version": address.version})


def known_bundle(crib: AnyCrib, name: str) -> Bundle:
    """The bundle of that slug or id; raises ToolError where there is none, or several."""
    found = [bundle for bundle in crib.bundles.list_all() if name in (bundle.slug, bundle.id)]
    if is_uuid7(name) and not found:
        return crib.bundles.bundle(name)
    if not found:
        raise ToolError(
            Kind.NOT_FOUND, f"there is no bundle {name!r:.80}", cure=Cure("list them with: crib bundle list")
        )
    if len(found) > 1:
        ids = ", ".join(bundle.id for bundle in found)
        raise ToolError(
            Kind.CONFLICT, f"{count(len(found), 'bundle')} are called {name!r:.80}; name one by its id: {ids}"
        )
    return found[0]


def _read_folder(crib: AnyCrib, root: Path, problems: list[str], warnings: list[str]) -> Load | None:
    """Read a folder; everything that is wrong is added to the problems."""
    place = root / BUNDLE_FILE
    is_described = any(_without_links([place], problems)) and place.is_file()
    document = _read_document(place, problems) if is_described else _named_by(root, warnings)
    stored = None if document is None else _stored_bundle(crib, document)
    bundle_id = new_id() if stored is None else stored.id
    described = Bundle(id=bundle_id, slug="")
    if document is not None:
        bundle_id = str(document.pop("bundleID", bundle_id))
        try:
            described = read_bundle(document, bundle_id=bundle_id)
        except ToolError as problem:
            problems += _lines_of(problem, place)
    paths = [path for path in sorted(root.glob("*.json")) if path.name != BUNDLE_FILE]
    tools = list(_read_tools(crib, described, _without_links(paths, problems), problems, warnings))
    problems += _repeated(tools)
    if document is None:
        return None
    load = Load(described=described, stored=stored, document=document, tools=tools)
    if not problems:
        problems += _why_closed(crib, load, place)
    return load


def _without_links(paths: Iterable[Path], problems: list[str]) -> Iterator[Path]:
    """Skip links and pipes: the folder may be untrusted, a link may lead to a private file, and a pipe never ends."""
    for path in paths:
        if path.is_symlink() or path.is_fifo():
            problems.append(f"{path}: is a link or a pipe, which is not followed; put a copy of what it means there")
        else:
            yield path


def _named_by(root: Path, warnings: list[str]) -> Document:
    """The document of a bundle that its folder alone describes."""
    slug = re.sub(r"[^\w-]+|_", "-", root.resolve().name).strip("-")[:MAX_NAME] or "bundle"
    warnings.append(
        f"{root / BUNDLE_FILE} is not there, so the folder names the bundle {slug}; write it: "
        f'{{"slug": "{slug}", "displayName": "{slug}", "isEnabled": true}}'
    )
    return {"slug": slug, "displayName": slug, "isEnabled": True}


def _read_tools(
    crib: AnyCrib, bundle: Bundle, paths: Iterable[Path], problems: list[str], warnings: list[str]
) -> Iterator[ToolFile]:
    """The tools of the files that are valid."""
    secrets = crib.secret_names()
    # Only validates the document: an invalid bundle may have no id.
    bundle_id = bundle.id if is_uuid7(bundle.id) else new_id()
    for path, written in _documents(paths, problems, warnings):
        try:
            document, told = to_stored_form(written, str(path))
        except ToolError as problem:
            problems.append(problem.message)
            continue
        warnings += told
        slug, version = document.get("slug"), document.get("version")
        if not isinstance(slug, str) or not isinstance(version, str):
            problems.append(f"{path}: write slug and version")
            continue
        # A copy may come from the folder of another bundle.
        document.pop("bundleID", None)
        try:
            read_tool(document, bundle_id=bundle_id, slug=slug, version=version, secrets=secrets)
        except ToolError as problem:
            problems += _lines_of(problem, path)
        else:
            yield ToolFile(path=path, slug=slug, version=version, document=document)


def _documents(paths: Iterable[Path], problems: list[str], warnings: list[str]) -> Iterator[tuple[Path, Document]]:
    """The documents of the files: one in each, or a list of several."""
    for path in paths:
        value = _read_value(path, problems)
        if value is not None and _has_comments(path):
            warnings.append(f"{path}: has comments, which JSON does not know; remove them")
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            yield from ((path, item) for item in value)
        elif isinstance(value, dict):
            yield path, value
        elif value is not None:
            problems.append(f"{path}: write an object, or a list of objects")


def _has_comments(path: Path) -> bool:
    """Whether a file that was read is JSON only without its comments."""
    try:
        json.loads(_read_file(path))
    except (ValueError, OSError, RecursionError, ToolError):
        return True
    return False


def _read_document(path: Path, problems: list[str]) -> Document | None:
    """The JSON object in a file, which may contain comments."""
    value = _read_value(path, problems)
    if value is None or isinstance(value, dict):
        return value
    problems.append(f"{path}: write an object")
    return None


def _read_value(path: Path, problems: list[str]) -> object:
    """The JSON in a file, which may contain comments; None if it cannot be read."""
    try:
        value = read_jsonc(_read_file(path), str(path))
    except ToolError as problem:
        problems.append(problem.message)
        return None
    except OSError as problem:
        problems.append(f"{path}: {problem.strerror}")
        return None
    if value is None:
        problems.append(f"{path}: write an object")
    return value


def _read_file(path: Path) -> bytes:
    with path.open("rb") as file:
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise ToolError(Kind.LIMIT_EXCEEDED, f"{path} has more than {MAX_FILE_BYTES} bytes; make it smaller")
    return data


def _stored_bundle(crib: AnyCrib, document: Document) -> Bundle | None:
    """The stored bundle that a document describes: by its id, else by its slug."""
    bundle_id = document.get("bundleID")
    if bundle_id is None:
        named = [bundle for bundle in crib.bundles.list_all() if bundle.slug == document.get("slug")]
        return known_bundle(crib, named[0].slug) if named else None
    if not isinstance(bundle_id, str) or not is_uuid7(bundle_id):
        return None
    try:
        return crib.bundles.bundle(bundle_id)
    except ToolError as problem:
        if problem.kind is Kind.NOT_FOUND:
            return None
        raise


def _repeated(tools: list[ToolFile]) -> Iterator[str]:
    first: dict[str, ToolFile] = {}
    for tool in tools:
        other = first.setdefault(tool.label, tool)
        if other is not tool:
            yield f"{tool.path}: {tool.label} is in {other.path.name} already, so it stands twice; give it another version"


def _why_closed(crib: AnyCrib, load: Load, place: Path) -> Iterator[str]:
    """Why tools cannot be put into the bundle: a disabled bundle accepts none."""
    is_new = load.stored is None or bool(load.stored.soft_deleted_at)
    if is_new and load.tools and not load.described.enabled:
        cure = f"write true, and disable it afterwards: crib disable '{load.described.slug}/*'"
        yield f"{place}: isEnabled: a disabled bundle accepts no tools; {cure}"
    if load.stored is None or is_new or load.stored.enabled:
        return
    for tool in load.tools:
        if crib.bundles.document(load.stored.id, tool.slug, tool.version) is None:
            cure = f"enable it first: crib enable '{load.stored.slug}/*'"
            yield f"{tool.path}: the bundle {load.stored.slug} is disabled and accepts no new tools; {cure}"


def _put_bundle(crib: AnyCrib, load: Load) -> tuple[Bundle, str]:
    """Write the bundle if it differs, and say what was done; whether it is enabled stays as it is."""
    stored, described, document = load.stored, load.described, load.document
    if stored is None:
        word = MADE
    elif stored.soft_deleted_at:
        word = RESTORED
    elif _described_by(stored) == _described_by(described):
        word = KEPT
    else:
        word, document = REPLACED, {**document, "isEnabled": stored.enabled}
    bundle = stored if stored is not None and word == KEPT else crib.bundles.put_bundle(described.id, document)[0]
    say(f"{word}  " + on_one_line(f"bundle {bundle.slug} ({bundle.id})"))
    return bundle, word


def _described_by(bundle: Bundle) -> tuple[str, ...]:
    return bundle.slug, bundle.display_name, bundle.description


def _put_tool(crib: AnyCrib, bundle: Bundle, tool: ToolFile, label: str) -> Document:
    """Add a tool, unless its version exists; print and return what was done."""
    there = crib.bundles.document(bundle.id, tool.slug, tool.version)
    if there is None:
        try:
            crib.bundles.put_tool(bundle.id, tool.slug, tool.version, tool.document)
        except ToolError as problem:
            raise problem.replace(reason=f"{tool.path}: {problem.reason}") from problem
        word = MADE
    else:
        word = KEPT if _is_same(tool.document, there) else DIFFERS
    cure = f": {tool.label} is kept as it was; give it another version" if word == DIFFERS else ""
    say(f"{word}  " + on_one_line(label + cure))
    return {"slug": tool.slug, "version": tool.version, "outcome": word}


def _is_same(document: Document, there: Mapping[str, object]) -> bool:
    """Whether a document equals the stored one, apart from `isEnabled`."""
    left_out = COMPUTED | {"toolID", "bundleID", "isEnabled", "isBuiltIn"}
    tool_id = str(document.get("toolID", document.get("id", there["toolID"]))).lower()
    # As JSON text, because True == 1 in Python.
    said, known = (
        json.dumps({**DEFAULTS, **{name: value for name, value in one.items() if name not in left_out}}, sort_keys=True)
        for one in (document, there)
    )
    return said == known and tool_id == there["toolID"]


def _lines_of(problem: ToolError, path: Path) -> list[str]:
    """The problems of a file, one per line with its path."""
    return [f"{path}: {line}" for line in problem.message.splitlines()]


def _nothing_written(problems: list[str]) -> CommandError:
    lines = [*map(on_one_line, problems), f"nothing is written; {count(len(problems), 'problem')}"]
    return CommandError(Kind.VALIDATION, "\n".join(lines))
