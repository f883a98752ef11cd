"""Sources of tools that are read by formats: folders of files, tool folders, and stored documents."""

from __future__ import annotations

import logging
import threading
from dataclasses import field, replace
from itertools import chain
from pathlib import Path, PurePath
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from toolcrib.core.sources import ListedSource, NameIndex, Rank
from toolcrib.infra.collector_pause import COLLECTOR_PAUSE
from toolcrib.infra.files import (
    FileListing,
    check_letters,
    is_as_it_was,
    is_small_file,
    list_files,
    read_stamped,
    refused,
    stamp_on_disk,
    stamps_within,
)
from toolcrib.lib.names import bundle_below, slug_of, version_order
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.tool import Broken, Entry
from toolcrib.values.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from toolcrib.infra.files import Stamp
    from toolcrib.model.protocols import Format, Store
    from toolcrib.model.session import Session
    from toolcrib.model.tool import Tool


logger = logging.getLogger("toolcrib.catalog")
MAX_FILE_BYTES = 256_000
# How long a change of a stored document by another process may go unnoticed.
LOOK_SECONDS = 0.1


@record
class ReadFile:
    """The tools of a file when it was last read, and the stamps of all files it depends on; without stamps it is read again.

    `beside` are the other files that its tools run, or that its problem names; they are not tools themselves.
    """

    bundle: str = ""
    stamps: Mapping[str, Stamp | None] = field(default_factory=dict)
    entries: tuple[Entry, ...] = ()
    problem: ToolError | None = None
    beside: frozenset[str] = frozenset()


class Place(NamedTuple):
    """A slug, its file and bundle, and the tool of that slug or the reason why it is broken."""

    slug: str
    file: str
    bundle: str
    found: Entry | Broken


class Contents:
    """The tools of the files of a folder, by name, and the files of each slug."""

    def __init__(self, changes: int) -> None:
        self.changes = changes
        self.entries: list[Entry] = []
        self.names = NameIndex()
        self.files: dict[str, list[str]] = {}
        # The bundles by the folders of their files.
        self.bundles: dict[str, str] = {}

    def add(self, place: Place) -> None:
        """Add a tool, after those that were added before."""
        if place.bundle:
            self.bundles[place.file.rpartition("/")[0]] = place.bundle
        self.files.setdefault(place.slug, []).append(place.file)
        if isinstance(place.found, Entry):
            self.entries.append(place.found)
            self.names.add(place.found)
        else:
            self.names.add_broken(place.slug, PurePath(place.file).stem, place.found)


class FileSource(ListedSource):
    """The tools of one folder and of those below it, each of which is a bundle; with `is_tree` all are one bundle.

    Files are named by their path in the folder. A folder with a file of the names `marks` is a package, whose files are helpers. A file in which no format finds a tool is left out. A lookup by name checks
    only the folders and the files of that name for changes; `entries` checks every file.
    """

    settled = False

    def __init__(
        self,
        path: Path,
        bundle: str,
        formats: Sequence[Format],
        *,
        rank: float = Rank.TOOL_FOLDERS,
        is_tree: bool = False,
        marks: Collection[str] = (),
        root: Path | None = None,
    ) -> None:
        self.path = path
        # Callers see the path within the project, not the absolute one.
        is_inside = root is not None and path.is_relative_to(root)
        self._shown = path.relative_to(root).as_posix() if root is not None and is_inside else path.name
        self.bundle = bundle
        self.rank = rank
        self._formats = formats
        self._is_tree = is_tree
        self._marks = marks
        self._files: dict[str, ReadFile] = {}
        self._listing = FileListing()
        self._changes = 0
        self._contents = Contents(-1)
        self._reading = threading.RLock()

    @property
    def files(self) -> list[tuple[str, ReadFile]]:
        """The tool files, further up before further down, by name, without files that belong to another tool."""
        owned = {path for file in self._files.values() for path in file.beside}
        found = [(name, file) for name, file in self._files.items() if not owned or str(self._path(name)) not in owned]
        return sorted(found, key=lambda each: (not self._is_tree and each[0].count("/"), each[0]))

    @property
    def bundles(self) -> Collection[str]:  # type: ignore[override]  # they change with the folders
        """Its own bundle, and those of the folders below it that hold tools."""
        if self._is_tree:
            return (self.bundle,)
        with self._reading:
            self.refresh_names()
            return {self.bundle, *self._current().bundles.values()}

    @property
    def homes(self) -> Mapping[str, str]:  # type: ignore[override]  # they change with the folders
        """The folders that hold tools, with the bundle of each."""
        with self._reading:
            found = self._current().bundles
            return {str(self.path / ("" if self._is_tree else folder)): bundle for folder, bundle in found.items()}

    def find(
        self, name: str, bundle: str | None, version: str | None, session: Session | None
    ) -> Entry | Broken | None:
        """The tool of that name, as its file is now."""
        with self._reading:
            if not self.refresh_names():
                current = self._current()
                for file in current.files.get(current.names.slug_of(name), ()):
                    self.refresh_file(file)
            return self._current().names.find(name, bundle, version)

    def entries(self, session: Session | None = None) -> list[Entry]:
        """Every tool as its file is now, by file name; among equal names the highest version first."""
        with self._reading:
            self.refresh()
            return self._current().entries

    def generation(self) -> int:
        """The number of changes seen so far; checks now whether files were added or removed."""
        with self._reading:
            self.refresh_names()
            return self._changes

    def problems(self) -> list[ToolError]:
        """Why files or folders could not be read; several problems of a file are separate errors."""
        with self._reading:
            self.refresh()
            broken = (file.problem for _, file in self.files if file.problem is not None)
            return [*self._listing.problems, *chain.from_iterable(map(_one_by_one, broken))]

    def _current(self) -> Contents:
        """The tools of the files as they were last read."""
        if self._contents.changes != self._changes:
            self._contents = Contents(self._changes)
            for place in newest_first(self._places()):
                self._contents.add(place)
        return self._contents

    def _places(self) -> Iterator[Place]:
        for name, file in self.files:
            yield from (Place(entry.tool.slug, name, file.bundle, entry) for entry in file.entries)
            if file.problem is not None:
                reason = file.problem.message.replace(str(self.path), self._shown)
                # The file may still name the tool; otherwise the file name does.
                ids = file.problem.details.get("tool_ids")
                stems = () if file.entries else (PurePath(name).stem, file.problem.details.get("tool_id"))
                known = (*stems, *(ids if isinstance(ids, list) else ()))
                for slug in dict.fromkeys(slug_of(spelling) for spelling in known if isinstance(spelling, str)):
                    yield Place(slug, name, file.bundle, Broken(f"its file is broken: {reason}"))

    def refresh(self) -> bool:
        """Check every file; True if anything changed."""
        before = [problem.message for problem in self._listing.problems]
        self._listing = self._list()
        gone = self._files.keys() - self._listing.files
        for name in gone:
            del self._files[name]
        with COLLECTOR_PAUSE:
            changed = [self._look_at(name) for name in sorted(self._listing.files)]
        is_changed = bool(gone) or any(changed) or before != [problem.message for problem in self._listing.problems]
        self._changes += is_changed
        return is_changed

    def refresh_names(self) -> bool:
        """Check every file if any was added or removed; True if anything changed."""
        stamps = self._listing.stamps
        return not (stamps and all(is_as_it_was(path, stamp) for path, stamp in stamps.items())) and self.refresh()

    def refresh_file(self, name: str) -> bool:
        """Check one known file; True if it changed."""
        is_changed = name in self._files and self._look_at(name)
        self._changes += is_changed
        return is_changed

    def _list(self) -> FileListing:
        return list_files(self.path, self._marks)

    def _path(self, name: str) -> Path:
        """The path of the file of that name."""
        return self.path / name

    def _stamps_around(self, path: Path) -> dict[str, Stamp | None]:
        """The stamps of the other files that a file depends on."""
        return {}

    def _look_at(self, name: str) -> bool:
        known = self._files.get(name)
        if known is not None and _is_as_it_was(known):
            return False
        path = self._path(name)
        readers = [reader for reader in self._formats if reader.reads(path)]
        found = self._read(name, path, readers) if readers else None
        if found is None:
            return self._files.pop(name, None) is not None
        is_alike = known is not None and _alike(known, found)
        # Unchanged tools stay the same objects, so that their plans stay valid.
        self._files[name] = replace(found, entries=known.entries) if known is not None and is_alike else found
        return not is_alike

    def _read(self, name: str, path: Path, readers: Iterable[Format]) -> ReadFile | None:
        """Read the file with the first format that finds a tool in it; None if there is no such file."""
        folder = "" if self._is_tree else name.rpartition("/")[0]
        bundle = refusal = ""
        try:
            bundle = bundle_below(self.bundle, folder)
        except ToolError as problem:
            refusal = f"{path}: {problem.message}"
        try:
            if not str(path).isascii():
                check_letters(path.parent, path.name)
            # Before reading, so that a change meanwhile leaves a stamp that differs.
            stamps = self._stamps_around(path)
            stamps[str(path)], code = read_stamped(path, MAX_FILE_BYTES)
        except IsADirectoryError:
            return None
        except FileNotFoundError as problem:
            return ReadFile(problem=refused(path, problem)) if path.is_symlink() else None
        except OSError as problem:
            return ReadFile(problem=refused(path, problem))
        except ToolError as problem:
            return ReadFile(problem=problem)
        found = None
        for reader in readers:
            found = translate(path, reader, bundle, code, stamps)
            if found.entries or found.problem is not None:
                if refusal:
                    found = replace(found, entries=(), problem=ToolError(Kind.VALIDATION, refusal))
                return replace(found, bundle=bundle)
        return found


def translate(
    path: Path, reader: Format, bundle: str, code: bytes, stamps: Mapping[str, Stamp | None] | None = None
) -> ReadFile:
    """Read a file or document with a format; an error affects only that file."""
    known = {} if stamps is None else stamps
    entries: list[Entry] = []
    problem: ToolError | None = None
    try:
        entries.extend(Entry(tool=tool.in_bundle(bundle)) for tool in reader.read(path, code))
    except ToolError as error:
        problem = error
    except Exception as error:
        # A format may belong to another package: its failure must only affect this file.
        logger.exception("%s could not be read by the format %s", path, reader.name)
        message = f"{path}: the format {reader.name!r} failed on it ({type(error).__name__}); see the log"
        return ReadFile(stamps=known, problem=ToolError(Kind.INTERNAL, message))
    if not entries and problem is None:
        return ReadFile(stamps=known)
    beside = frozenset(_other_files(path, entries, problem))
    stamps = {**known, **{other: stamp_on_disk(other) for other in beside}} if beside else known
    return ReadFile(stamps=stamps, entries=tuple(entries), problem=problem, beside=beside)


def _other_files(path: Path, entries: Iterable[Entry], problem: ToolError | None) -> Iterator[str]:
    for entry in entries:
        script = entry.tool.script
        # Nearly always the same Path object; comparing two paths takes longer.
        if script is not None and script.path is not path and script.path != path:
            yield str(script.path)
    beside = None if problem is None else problem.details.get("beside")
    yield from (str(other) for other in (beside if isinstance(beside, list) else ()))


class PackageSource(FileSource):
    """The packages in a folder and those below it that the file `description` describes; each has the name of its folder."""

    def __init__(
        self,
        path: Path,
        bundle: str,
        formats: Sequence[Format],
        description: str,
        *,
        rank: float = Rank.TOOL_FOLDERS,
        marks: Collection[str] = (),
        root: Path | None = None,
    ) -> None:
        super().__init__(path, bundle, formats, rank=rank, marks={*marks, description}, root=root)
        self._description = description

    def _list(self) -> FileListing:
        """The packages with a description; problems of folders are reported by the source that lists their files."""
        found = list_files(self.path, self._marks)
        described = {name for name in found.packages if is_small_file(str(self._path(name)), MAX_FILE_BYTES)}
        return FileListing(files=described, stamps=found.stamps)

    def _path(self, name: str) -> Path:
        return self.path / name / self._description

    def _stamps_around(self, path: Path) -> dict[str, Stamp | None]:
        return stamps_within(str(path.parent))


class DocumentSource(ListedSource):
    """The documents in one space of the store, each read by a format; the space is the bundle of their tools.

    A change by another process is seen after at most LOOK_SECONDS.
    """

    rank = Rank.DOCUMENTS

    def __init__(self, store: Callable[[], Store], space: str, reader: Format) -> None:
        self.bundles = (space,)
        self._store = store
        self._space = space
        self._reader = reader
        self._look_at = 0.0
        self._generation = ""
        self._read: tuple[str, list[ReadFile]] | None = None

    def generation(self) -> str:
        """A value that changes with every document of the space."""
        now = monotonic()
        if now >= self._look_at:
            self._look_at = now + LOOK_SECONDS
            self._generation = self._store().generation(self._space)
        return self._generation

    def entries(self, session: Session | None = None) -> list[Entry]:
        """The tools of every document in the format."""
        return [entry for document in self._documents() for entry in document.entries]

    def problems(self) -> list[ToolError]:
        """Why documents could not be read."""
        return [document.problem for document in self._documents() if document.problem is not None]

    def _documents(self) -> list[ReadFile]:
        """Every document of the space, read again if any of them changed."""
        generation, known = self.generation(), self._read
        if known is None or known[0] != generation:
            store = self._store()
            keys = [key for key in store.keys(f"{self._space}/") if self._reader.reads(Path(key))]
            documents = ((Path(key), store.get(key)) for key in keys)
            read = [translate(path, self._reader, self._space, code) for path, code in documents if code is not None]
            known = self._read = generation, read
        return known[1]


def _is_as_it_was(known: ReadFile) -> bool:
    return bool(known.stamps) and all(is_as_it_was(path, stamp) for path, stamp in known.stamps.items())


def _alike(before: ReadFile, after: ReadFile) -> bool:
    if _said(before.problem) != _said(after.problem):
        return False
    return [_facts(entry.tool) for entry in before.entries] == [_facts(entry.tool) for entry in after.entries]


def _said(problem: ToolError | None) -> tuple[object, ...] | None:
    return None if problem is None else (problem.message, problem.details.get("tool_id"))


def _facts(tool: Tool) -> tuple[object, ...]:
    return tool.content_hash, tool.origin, tool.warnings


def newest_first(places: Iterable[Place]) -> Iterator[Place]:
    """The tools in the order of their files, but among equal names of a bundle the highest version first."""
    by_name: dict[tuple[str, str], list[Place]] = {}
    for place in places:
        by_name.setdefault((place.bundle, place.slug), []).append(place)
    for namesakes in by_name.values():
        if len(namesakes) > 1:
            namesakes.sort(key=_age, reverse=True)
        yield from namesakes


def _age(place: Place) -> tuple[object, ...]:
    """The sort key of a version; a broken file comes first, because its version is unknown."""
    return (False, version_order(place.found.tool.version)) if isinstance(place.found, Entry) else (True,)


def _one_by_one(problem: ToolError) -> Iterator[ToolError]:
    """Split the error of a file into one error for each of its problems."""
    texts = problem.details.get("problems")
    if not isinstance(texts, list) or not texts:
        yield problem
        return
    yield from (ToolError(problem.kind, str(text)) for text in texts)
