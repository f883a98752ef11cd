"""Build a registry: check every tool folder, and write the file atomically if nothing is wrong."""

from __future__ import annotations

import fcntl
import json
import os
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Protocol, cast

from toolcrib.features.folders.build_files import (
    ERROR_TYPES,
    FILE_MODE,
    REGISTRY,
    Cache,
    error_types,
    hash_files,
    hash_of,
    keep_out_of_git,
    opened,
    read_commit,
    read_content,
    supply_error_types,
    version_of,
)
from toolcrib.features.folders.format import read_tool
from toolcrib.features.folders.registry import MAX_REGISTRY_BYTES, entry_of, read_claims
from toolcrib.infra.files import DOCUMENTATION, HANDLERS, durable
from toolcrib.infra.files.durable import explained, replace_in, sweep_in
from toolcrib.infra.files.tool_folder import spell_name, spell_root, tool_folders
from toolcrib.lib.names import is_foreign, slug_of
from toolcrib.model.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from toolcrib.features.folders.build_files import Content, Entry, Files, Hashes
    from toolcrib.features.folders.format import ReadFolder

    Stamp = tuple[int, int, int, int]

SECONDS = 0.3
MAX_FILES = 200_000
# File systems tell times apart only by their tick: a file this young may be changed again without a new time.
RACY_NANOSECONDS = 50_000_000


def build(root: Path, *, cache: Path | None = None, project: Path | None = None, strict: bool = False) -> Built:
    """Check every folder and write the registry of them; `strict` takes a warning for a problem.

    `cache` is a file that remembers folders without problems, `project` the folder whose `.gitignore` counts too.
    """
    path = root / REGISTRY
    try:
        with explained(str(root)), _one_at_a_time(root):
            checked = check_folders(root, cache=cache)
            problems = (*checked.problems, *(checked.warnings if strict else ()))
            written = not problems and _write(root, checked, project)
    except ToolError as problem:
        return Built(path=path, problems=(problem.message,), has_registry=os.path.lexists(path))
    return Built(
        path=path,
        version=checked.version,
        tools=tuple(checked.tools),
        problems=problems,
        warnings=() if strict else checked.warnings,
        written=written,
        has_registry=os.path.lexists(path),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Built:
    """The result of a build: the registry has this `version`, or it is unchanged and `problems` say why.

    `tools` are the names of those without a problem. `written` says whether the file is another one now; where it held
    these very bytes already it is left alone. `has_registry` says whether any is there, new or as it was.
    """

    path: Path
    version: str = ""
    tools: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    written: bool = False
    has_registry: bool = False

    @property
    def ok(self) -> bool:
        """Whether the registry matches the folders."""
        return not self.problems


def watch(
    root: Path,
    *,
    say: Callable[[Built], None],
    stop: Stop,
    cache: Path | None = None,
    project: Path | None = None,
    strict: bool = False,
) -> None:
    """Build at once and after every change, until it is time to stop; `say` gets the result of each build.

    While something is wrong with a folder the registry stays what it was.
    """
    seen: dict[str, Stamp] | None = None
    said: Built | None = None
    with suppress(KeyboardInterrupt):
        while True:
            stamps = _look(root)
            if stamps != seen:
                built = build(root, cache=cache, project=project, strict=strict)
                if built.written or said != replace(built, written=False):
                    say(built)
                said = replace(built, written=False)
                seen = stamps if _is_settled(stamps) else None
            if stop.wait(SECONDS):
                return


def check_folders(root: Path, *, cache: Path | None = None, say: Callable[[str], None] | None = None) -> Checked:
    """Read and check every tool folder of the root, in the order of their names; nothing of them runs.

    `cache` is a file that remembers folders without problems, so that an unchanged one costs no more than its hash;
    `say` is called with the name of each folder that is read. Raises ToolError if the root itself cannot be read.
    """
    check = _Check(root, read_content(root), Cache(cache), say)
    check.run()
    return check.result()


@dataclass(frozen=True, kw_only=True, slots=True)
class Checked:
    """The result of checking every folder. `tools` are the entries of a registry by tool name.

    A tool with a problem has no entry. `version` is that of the content as it was read, whether it can be built or not.
    """

    version: str
    tools: Mapping[str, Entry]
    shared: Hashes
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def encode_registry(checked: Checked, commit: str) -> bytes:
    """The bytes of the registry, which are the same for the same content."""
    document = {
        "registryVersion": checked.version,
        "gitCommit": commit,
        "shared": checked.shared,
        "tools": checked.tools,
    }
    # The standard library and not orjson: it keeps integers beyond 64 bit, which a schema may hold.
    return json.dumps(document, sort_keys=True, indent=2, ensure_ascii=False).encode() + b"\n"


class Stop(Protocol):
    """When to end, as a `threading.Event` says it."""

    def wait(self, timeout: float) -> bool:
        """Wait that long, or until it is time to end; whether it is."""


class _Check:
    """One pass over all folders, which collects their entries, problems and warnings."""

    def __init__(self, root: Path, content: Content, cache: Cache, say: Callable[[str], None] | None) -> None:
        self._root = root
        self._place = spell_root(root)
        self._content = content
        self._cache = cache
        self._say = say
        self._shared = _with_error_types(content)
        self._shared_hashes = hash_files(self._shared)
        self._hashes: dict[str, Hashes] = {}
        self._tools: dict[str, Entry] = {}
        self._problems: list[str] = []
        self._warnings: list[str] = []

    def run(self) -> None:
        content = self._content
        clashes = _clashes(content.names, self._place)
        self._problems += content.shared_problems
        for folder in content.names:
            found = [*content.problems.get(folder, ()), *clashes.get(folder, ())]
            self._problems += found
            if folder in content.folders:
                self._look_at(folder, content.folders[folder], is_alone=not found)
        self._warnings += _namesakes(self._root, content.names)
        self._cache.save()

    def result(self) -> Checked:
        return Checked(
            version=version_of(self._hashes.values(), self._shared_hashes),
            tools=self._tools,
            shared=self._shared_hashes,
            problems=tuple(self._problems),
            warnings=tuple(self._warnings),
        )

    def _look_at(self, folder: str, files: Files, *, is_alone: bool) -> None:
        hashes = self._hashes[folder] = hash_files(files)
        # A folder that was not read completely is not cached.
        key = "" if self._content.unread[folder] else hash_of({**hashes, **self._shared_hashes})
        entry = self._cache.get(key) or self._read(folder, files, key)
        if entry is None:
            return
        self._warnings += [f"{self._place}/{warning}" for warning in cast("list[str]", entry["warnings"])]
        if is_alone:
            self._tools[folder.replace("-", "_")] = {**entry, **_facts(folder, hashes)}

    def _read(self, folder: str, files: Files, key: str) -> Entry | None:
        """Check a folder of which nothing is known yet."""
        if self._say is not None:
            self._say(folder)
        reading = read_tool(self._root, folder, files, self._shared, unread=self._content.unread[folder])
        if reading.tool is None or reading.problems:
            self._problems += reading.problems
            self._warnings += reading.warnings
            return None
        # A registry that is moved with its root stays the same: paths are relative to the root.
        warnings = tuple(warning.removeprefix(f"{self._place}/") for warning in reading.warnings)
        try:
            entry = entry_of(reading.tool, warnings)
        except ToolError as problem:
            self._problems.append(problem.message)
            return None
        self._cache.put(key, entry)
        return entry


def _with_error_types(content: Content) -> Files:
    """The shared files, with the module of error types added if it is missing."""
    if not content.folders or ERROR_TYPES in content.shared:
        return content.shared
    return {**content.shared, ERROR_TYPES: error_types()}


def read_alone(root: Path, folder: str, files: Files) -> ReadFolder:
    """Read a tool folder that stands alone, with nothing beside it but the error types that every project has."""
    return read_tool(root, folder, files, {ERROR_TYPES: error_types()})


def _facts(folder: str, hashes: Hashes) -> Entry:
    """The folder and the hashes of the checked bytes, which never come from a cache."""
    handler = next(path for path in hashes if path in {f"{folder}/{name}" for name in HANDLERS})
    return {
        "folder": folder,
        "documentation": f"{folder}/{DOCUMENTATION}",
        "handlerPath": handler,
        "files": hashes,
        "hash": hash_of(hashes),
    }


def _clashes(folders: list[str], place: str) -> dict[str, list[str]]:
    """Problems of folders that would have the same tool name."""
    by_slug: dict[str, list[str]] = {}
    for folder in folders:
        by_slug.setdefault(slug_of(folder), []).append(folder)
    return {
        folder: [f"{place}/{folder}: would be the same tool as {_others(folder, alike)}; rename one of them"]
        for alike in by_slug.values()
        if len(alike) > 1
        for folder in alike
    }


def _namesakes(root: Path, folders: list[str]) -> Iterator[str]:
    """Warnings about plain files with the tool name of a folder beside them."""
    by_slug = {slug_of(folder): folder for folder in folders}
    for file in sorted(root.glob("*.py")) if folders else ():
        folder = by_slug.get(slug_of(file.stem))
        if folder is not None:
            place = f"{spell_root(root)}/{spell_name(file.name)}"
            yield f"{place}:1: is a tool of the same name as the folder {folder}, which is the one called; rename one of them"


def _others(folder: str, alike: list[str]) -> str:
    return " and ".join(other for other in alike if other != folder)


def _write(root: Path, checked: Checked, project: Path | None) -> bool:
    """Write the registry and its companion files; False if nothing changed."""
    path = root / REGISTRY
    data = encode_registry(checked, read_commit(root))
    if checked.tools:
        supply_error_types(root)
    keep_out_of_git(root, project)
    if _is_there(path, data):
        return False
    _check_that_it_loads(path, data)
    with explained(str(path)), opened(root) as folder:
        sweep_in(folder)
        replace_in(folder, REGISTRY, data, mode=FILE_MODE)
    return True


def _check_that_it_loads(path: Path, data: bytes) -> None:
    """Refuse to write a registry that cannot be loaded."""
    try:
        read_claims(data)
    except ToolError as problem:
        raise problem.replace(reason=f"{path}: {problem.reason}") from None


def _is_there(path: Path, data: bytes) -> bool:
    with suppress(ToolError):  # what is not a file that can be read is replaced
        return durable.read(path, MAX_REGISTRY_BYTES) == data
    return False


@contextmanager
def _one_at_a_time(root: Path) -> Iterator[None]:
    """Serialise builds of a root, so that the last one reads the latest files."""
    with opened(root) as folder:
        with suppress(OSError):  # some file systems keep no locks; there builds may overtake each other
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield


def _look(root: Path) -> dict[str, Stamp]:
    """The stamp of every file and folder that a build reads."""
    try:
        return {path: _stamp(path) for path in islice(_paths(root), MAX_FILES)}
    except (ToolError, OSError):  # the build says what is wrong with the root
        return {}


def _paths(root: Path) -> Iterator[str]:
    with os.scandir(root) as entries:
        shared = [entry.name for entry in entries if entry.name.startswith("_")]
    for name in (*tool_folders(root), *shared):
        for folder, folders, files in os.walk(root / name):
            folders[:] = [each for each in folders if not is_foreign(each)]
            yield folder
            yield from (f"{folder}/{file}" for file in files)


def _stamp(path: str) -> Stamp:
    try:
        facts = os.stat(path)  # noqa: PTH116 - paths are texts here, thousands of them three times a second
    except OSError:
        return (0, 0, 0, 0)
    return facts.st_mtime_ns, facts.st_ctime_ns, facts.st_size, facts.st_ino


def _is_settled(stamps: dict[str, Stamp]) -> bool:
    """Whether every later change would show in a stamp."""
    newest = max((changed for _, changed, _, _ in stamps.values()), default=0)
    return time.time_ns() - newest > RACY_NANOSECONDS
