"""The files of a root of tool folders: read once, and known by their hashes from then on."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from toolcrib.dialects.folder import Survey

    Files = Mapping[str, bytes]
    Hashes = Mapping[str, str]

VERSION_SERIES = "1.0"
VERSION_LETTERS = 16
NO_CONTENT = f"{VERSION_SERIES}.{'0' * VERSION_LETTERS}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Content:
    """What lies in a root: the bytes of each tool folder and of the folders they share, by their paths from the root.

    A folder of which anything could not be read has problems, and its files are those that could; `unread` are the paths
    of the others. Of shared folders with a problem nothing is taken.
    """

    folders: Mapping[str, Files]
    shared: Files
    problems: Mapping[str, tuple[str, ...]]
    unread: Mapping[str, frozenset[str]]
    shared_problems: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """The names of all tool folders, in their order."""
        return sorted({*self.folders, *self.problems})


def read_content(root: Path) -> Content:
    """Read every tool folder and every shared one; raises ToolError if the root itself cannot be listed."""
    from toolcrib.dialects.folder import survey_folder, survey_shared, tool_folders

    surveys = {folder: survey_folder(root, folder) for folder in tool_folders(root)}
    shared = survey_shared(root)
    return Content(
        folders={folder: survey.files for folder, survey in surveys.items() if survey.files or not survey.problems},
        shared={} if shared.problems else shared.files,
        problems={folder: _told(survey) for folder, survey in surveys.items() if survey.problems},
        unread={folder: survey.unread for folder, survey in surveys.items()},
        shared_problems=_told(shared),
    )


def _told(survey: Survey) -> tuple[str, ...]:
    return tuple(problem.message for problem in survey.problems)


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
