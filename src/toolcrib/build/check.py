"""Checking every tool folder of a root: all that is wrong with any of them, found in one run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from toolcrib.build.cache import Cache
from toolcrib.build.content import hash_files, hash_of, read_content, version_of
from toolcrib.build.surroundings import ERROR_TYPES, error_types
from toolcrib.dialects.folder.files import DOCUMENTATION, HANDLERS, spell_name, spell_root
from toolcrib.model.errors import ToolError
from toolcrib.pure.names import slug_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from toolcrib.build.cache import Entry
    from toolcrib.build.content import Content, Files, Hashes


@dataclass(frozen=True, kw_only=True, slots=True)
class Checked:
    """What a look at every folder came to. `tools` are the entries of a registry, by the names of the tools.

    A tool with a problem has no entry. `version` is that of the content as it was read, whether it can be built or not.
    """

    version: str
    tools: Mapping[str, Entry]
    shared: Hashes
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def check_folders(root: Path, *, cache: Path | None = None, say: Callable[[str], None] | None = None) -> Checked:
    """Read and check every tool folder of the root, in the order of their names; nothing of them runs.

    `cache` is a file that remembers folders without problems, so that an unchanged one costs no more than its hash;
    `say` hears the name of each folder that is looked into. Raises ToolError if the root itself cannot be read.
    """
    check = _Check(root, read_content(root), Cache(cache), say)
    check.run()
    return check.result()


class _Check:
    """One run over all folders, which gathers as it goes."""

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
        # Of a folder that was not read whole nothing is known for good.
        key = "" if self._content.unread[folder] else hash_of({**hashes, **self._shared_hashes})
        entry = self._cache.get(key) or self._read(folder, files, key)
        if entry is None:
            return
        self._warnings += [f"{self._place}/{warning}" for warning in cast("list[str]", entry["warnings"])]
        if is_alone:
            self._tools[folder.replace("-", "_")] = {**entry, **_facts(folder, hashes)}

    def _read(self, folder: str, files: Files, key: str) -> Entry | None:
        """Check a folder of which nothing is known yet."""
        from toolcrib.build.entries import entry_of
        from toolcrib.dialects.folder import read_tool

        if self._say is not None:
            self._say(folder)
        reading = read_tool(self._root, folder, files, self._shared, unread=self._content.unread[folder])
        if reading.tool is None or reading.problems:
            self._problems += reading.problems
            self._warnings += reading.warnings
            return None
        # A registry that is moved along with its root stays the same, whatever the root is called.
        warnings = tuple(warning.removeprefix(f"{self._place}/") for warning in reading.warnings)
        try:
            entry = entry_of(reading.tool, warnings)
        except ToolError as problem:
            self._problems.append(problem.message)
            return None
        self._cache.put(key, entry)
        return entry


def _with_error_types(content: Content) -> Files:
    """What the folders share once they are built: the module of error types is supplied where there is none."""
    if not content.folders or ERROR_TYPES in content.shared:
        return content.shared
    return {**content.shared, ERROR_TYPES: error_types()}


def _facts(folder: str, hashes: Hashes) -> Entry:
    """What says which bytes were checked; it comes from these bytes, and never from a cache."""
    handler = next(path for path in hashes if path in {f"{folder}/{name}" for name in HANDLERS})
    return {
        "folder": folder,
        "documentation": f"{folder}/{DOCUMENTATION}",
        "handlerPath": handler,
        "files": hashes,
        "hash": hash_of(hashes),
    }


def _clashes(folders: list[str], place: str) -> dict[str, list[str]]:
    """What is wrong with folders that would be tools of one name."""
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
    """What is to be said of plain files that are tools of the same name as a folder beside them."""
    by_slug = {slug_of(folder): folder for folder in folders}
    for file in sorted(root.glob("*.py")) if folders else ():
        folder = by_slug.get(slug_of(file.stem))
        if folder is not None:
            place = f"{spell_root(root)}/{spell_name(file.name)}"
            yield f"{place}:1: is a tool of the same name as the folder {folder}, which is the one called; rename one of them"


def _others(folder: str, alike: list[str]) -> str:
    return " and ".join(other for other in alike if other != folder)
