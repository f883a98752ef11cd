"""Find the secrets that lie in a workspace, before each job that can see it.

Names that do not exist yet need no search: no job can make them. What a folder holds is remembered as long as the
kernel's time of its last change stays the same, which nobody can set.
"""

# ruff: noqa: PTH110, PTH116 - pathlib would take several times as long, and every job waits for it
from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.lib.protected_names import CLOSED, REPOSITORIES, fold, is_secret, is_secret_file, judge
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_SECRETS = 500
MAX_ENTRIES = 1_000_000
# What is installed there is public and counts as runtime; a repository's own files are readable.
SKIPPED = frozenset({"node_modules", ".venv", "venv", "__pycache__", *REPOSITORIES})
# The clock of a file system moves in steps: a folder that changed just now may change once more within one of them.
_SETTLED_NANOSECONDS = 100_000_000


@dataclass(frozen=True, slots=True)
class _Folder:
    """What was found in a folder, and when it had last changed."""

    changed: tuple[int, int, int]
    folders: tuple[str, ...]
    secrets: tuple[str, ...]
    entries: int


class SecretFiles:
    """The secrets below one folder; `opened` are names that the operator opened."""

    def __init__(self, root: Path, opened: tuple[str, ...] = ()) -> None:
        self._root = os.path.realpath(root)
        self._opened = opened
        self._known: dict[str, _Folder] = {}
        self._lock = threading.Lock()

    def find(self) -> tuple[Path, ...]:
        """Those that are there now; raises LIMIT_EXCEEDED where there are too many to be sure."""
        with self._lock:
            return tuple(map(Path, sorted(set(self._find()))))

    def _find(self) -> Iterator[str]:
        known, self._known = self._known, {}
        waiting, entries, found = [self._root], 0, 0
        while waiting:
            place = waiting.pop()
            folder = self._look_at(place, known.get(place))
            if folder is None:
                continue
            self._known[place] = folder
            entries += folder.entries
            found += len(folder.secrets)
            if entries > MAX_ENTRIES or found > MAX_SECRETS:
                raise self._too_many("files" if entries > MAX_ENTRIES else "secrets")
            waiting += folder.folders
            yield from folder.secrets

    def _look_at(self, place: str, known: _Folder | None) -> _Folder | None:
        """What the folder holds; None for one that is gone, or that nobody of this user can look into."""
        try:
            facts = os.stat(place, follow_symlinks=False)
            changed = facts.st_ctime_ns, facts.st_dev, facts.st_ino
            if known is not None and known.changed == changed:
                return known
            folder = self._read(place, changed)
        except OSError:
            return None
        is_settled = time.time_ns() - changed[0] > _SETTLED_NANOSECONDS
        return folder if is_settled else _Folder((0, 0, 0), folder.folders, folder.secrets, folder.entries)

    def _read(self, place: str, changed: tuple[int, int, int]) -> _Folder:
        folders, secrets, entries = [], [], 0
        with os.scandir(place) as scan:
            for entry in scan:
                entries += 1
                part = fold(entry.name)
                if is_secret(part) or is_secret_file(part):
                    secrets += self._resolve(entry)
                if entry.is_dir(follow_symlinks=False) and part not in SKIPPED and not is_secret(part):
                    folders.append(entry.path)
        return _Folder(changed, tuple(folders), tuple(secrets), entries)

    def _resolve(self, entry: os.DirEntry[str]) -> list[str]:
        """The file or folder itself, or what a link of such a name leads to in the workspace."""
        path = entry.path[len(self._root) :]
        if judge(path, opened=self._opened, is_folder=entry.is_dir()) != CLOSED:
            return []
        real = os.path.realpath(entry.path) if entry.is_symlink() else entry.path
        return [real] if real.startswith(f"{self._root}/") and os.path.exists(real) else []

    def _too_many(self, what: str) -> ToolError:
        message = (
            f"the workspace {self._root} holds too many {what} to keep tools from all its secrets "
            f"(at most {MAX_ENTRIES} files and {MAX_SECRETS} secrets); set workspace to a smaller folder"
        )
        return ToolError(Kind.LIMIT_EXCEEDED, message)
