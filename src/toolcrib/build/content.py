"""The files of a root of tool folders: read once, and known by their hashes from then on."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolcrib.model.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    Files = Mapping[str, bytes]
    Hashes = Mapping[str, str]

VERSION_SERIES = "1.0"
VERSION_LETTERS = 16
NO_CONTENT = f"{VERSION_SERIES}.{'0' * VERSION_LETTERS}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Content:
    """What lies in a root: the bytes of each tool folder and of the folders they share, by their paths from the root.

    A folder that could not be read has a problem in place of files.
    """

    folders: Mapping[str, Files]
    shared: Files
    problems: Mapping[str, str]
    shared_problem: str = ""


def read_content(root: Path) -> Content:
    """Read every tool folder and every shared one; raises ToolError if the root itself cannot be listed."""
    from toolcrib.dialects.folder import collect_files, shared_files, tool_folders

    folders: dict[str, Files] = {}
    problems: dict[str, str] = {}
    for folder in tool_folders(root):
        try:
            folders[folder] = collect_files(root, folder)
        except ToolError as problem:
            problems[folder] = problem.message
    try:
        shared, shared_problem = shared_files(root), ""
    except ToolError as problem:
        shared, shared_problem = {}, problem.message
    return Content(folders=folders, shared=shared, problems=problems, shared_problem=shared_problem)


def hash_files(files: Files) -> dict[str, str]:
    """The SHA-256 of each file, by path."""
    return {path: hashlib.sha256(files[path]).hexdigest() for path in sorted(files)}


def hash_of(hashes: Hashes) -> str:
    """One SHA-256 over paths and hashes, each behind its length, so that none can run into the next."""
    digest = hashlib.sha256()
    for path in sorted(hashes):
        for part in (path.encode("utf-8", "surrogateescape"), hashes[path].encode()):
            digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def version_of(folders: Iterable[Hashes], shared: Hashes) -> str:
    """The version of a registry: another one as soon as any byte of any tool, or of what tools share, is another."""
    everything: dict[str, str] = {}
    for hashes in folders:
        everything.update(hashes)
    if not everything:
        return NO_CONTENT
    return f"{VERSION_SERIES}.{hash_of({**everything, **shared})[:VERSION_LETTERS]}"
