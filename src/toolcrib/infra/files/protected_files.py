"""Find the protected files of a workspace: secrets, before each job that can read it, and what Git runs or obeys.

Names that do not exist yet need no search, because no job can create them. The entries of a folder are cached while its ctime
stays the same, which no process can set.
"""

# ruff: noqa: PTH110, PTH111, PTH112, PTH116 - pathlib would take several times as long, and every job waits for it
from __future__ import annotations

import errno
import os
import re
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.lib.protected_names import CLOSED, REPOSITORIES, fold, is_secret, is_secret_file, judge
from toolcrib.model.errors import Kind, ToolError
from toolcrib.values.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


MAX_SECRETS = 500
MAX_ENTRIES = 1_000_000
# Installed packages are public and count as runtime; a repository's own files are readable.
GIT = ".git"
SKIPPED = frozenset({"node_modules", ".venv", "venv", "__pycache__", *REPOSITORIES})
# Gone, or too deep for any path: a job cannot move a folder with a secret that far down.
_NOTHING_TO_FIND = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG})
# File system timestamps are coarse: a folder that changed just now may change again with the same ctime.
_SETTLED_NANOSECONDS = 100_000_000


@record(kw_only=False)
class _Folder:
    """The secrets, folders and repositories found in a folder, and its ctime; 0 if it may have changed since."""

    changed: int
    inode: int
    folders: tuple[str, ...]
    secrets: tuple[str, ...]
    repositories: tuple[str, ...]
    entries: int


class SecretFiles:
    """The secret files below one folder; `opened` are names that the operator opened."""

    def __init__(self, root: Path, opened: tuple[str, ...] = ()) -> None:
        self._root = os.path.realpath(root)
        self._opened = opened
        self._known: dict[str, _Folder] = {}
        self._found: tuple[Path, ...] = ()
        self._lock = threading.Lock()

    def find(self) -> tuple[Path, ...]:
        """The secrets that exist now; raises LIMIT_EXCEEDED if there are too many entries to check."""
        with self._lock:
            if not self._known or not self._is_unchanged():
                self._found = tuple(map(Path, sorted(set(self._walk()))))
            return self._found

    def find_repositories(self) -> tuple[Path, ...]:
        """The `.git` of every repository there; raises as `find` does."""
        self.find()
        with self._lock:
            return tuple(Path(place) for folder in self._known.values() for place in folder.repositories)

    def _is_unchanged(self) -> bool:
        for place, known in self._known.items():
            try:
                facts = os.stat(place, follow_symlinks=False)
            except OSError:
                return False
            if facts.st_ctime_ns != known.changed or facts.st_ino != known.inode:
                return False
        return True

    def _walk(self) -> Iterator[str]:
        known, self._known = self._known, {}
        seen: dict[str, _Folder] = {}
        waiting, entries, found = [self._root], 0, 0
        while waiting:
            place = waiting.pop()
            folder = self._look_at(place, known.get(place))
            if folder is None:
                continue
            seen[place] = folder
            entries += folder.entries
            found += len(folder.secrets)
            if entries > MAX_ENTRIES or found > MAX_SECRETS:
                raise self._too_many("files" if entries > MAX_ENTRIES else "secrets")
            waiting += folder.folders
            yield from folder.secrets
        self._known = seen

    def _look_at(self, place: str, known: _Folder | None) -> _Folder | None:
        """Scan the folder, None if it is gone.

        An unreadable folder counts as a secret as a whole: a job may have removed the permission and could restore it.
        """
        try:
            facts = os.stat(place, follow_symlinks=False)
            if known is not None and (known.changed, known.inode) == (facts.st_ctime_ns, facts.st_ino):
                return known
            is_settled = time.time_ns() - facts.st_ctime_ns > _SETTLED_NANOSECONDS
            if os.access(place, os.R_OK | os.X_OK):
                return self._read(place, facts.st_ctime_ns if is_settled else 0, facts.st_ino)
        except OSError as problem:
            if problem.errno in _NOTHING_TO_FIND:
                return None
        return _Folder(0, 0, (), (place,), (), 0)

    def _read(self, place: str, changed: int, inode: int) -> _Folder:
        folders, secrets, repositories, entries = [], [], [], 0
        with os.scandir(place) as scan:
            for entry in scan:
                entries += 1
                part = fold(entry.name)
                if is_secret(part) or is_secret_file(part):
                    secrets += self._resolve(entry)
                if part in REPOSITORIES:
                    repositories.append(entry.path)
                if entry.is_dir(follow_symlinks=False) and part not in SKIPPED and not is_secret(part):
                    folders.append(entry.path)
        return _Folder(changed, inode, tuple(folders), tuple(secrets), tuple(repositories), entries)

    def _resolve(self, entry: os.DirEntry[str]) -> list[str]:
        """The file or folder itself, or the target of a link in the workspace."""
        path = entry.path[len(self._root) :]
        if judge(path, opened=self._opened, is_folder=entry.is_dir()) != CLOSED:
            return []
        if not entry.is_symlink():
            return [entry.path]
        real = os.path.realpath(entry.path)
        return [real] if real.startswith(f"{self._root}/") and os.path.exists(real) else []

    def _too_many(self, what: str) -> ToolError:
        message = (
            f"the workspace {self._root} holds too many {what} to protect all its secrets from tools "
            f"(at most {MAX_ENTRIES} files and {MAX_SECRETS} secrets); set workspace.folder to a smaller one"
        )
        return ToolError(Kind.LIMIT_EXCEEDED, message)


# What Git runs or obeys outside of the repository's own folder.

MAX_BYTES = 1_000_000
HOOKS = "hookspath"
# Names end in `path` where a file is meant that Git reads as configuration or runs: `include.path`, `difftool.x.path`.
FILES = ("path", "fsmonitor")
BOOLEANS = frozenset({"true", "false", "yes", "no", "on", "off", "0", "1"})
MAX_CONFIGS = 50


def find_git_paths(workspace: Path, repositories: Iterable[Path] = ()) -> tuple[str, ...]:
    """Paths below the workspace that Git runs or obeys: folders of hooks, included settings, programs by their path.

    They are those of the repository in the workspace, of every one around it, and of the `repositories`, each named by its `.git`.
    """
    root = workspace.resolve()
    around = (folder / GIT for folder in (root, *root.parents))
    places = {place for repository in {*around, *repositories} for place in _find_paths(repository)}
    found = {place.relative_to(root) for place in places if place.is_relative_to(root)}
    return tuple(sorted("" if place == Path() else str(place) for place in found))


def find_repositories_around(workspace: Path, path: str) -> list[Path]:
    """Where the repositories lie that a path below the workspace may belong to."""
    folders = path.strip("/").split("/")[:-1]
    return [workspace.joinpath(*folders[:depth], GIT) for depth in range(1, len(folders) + 1)]


def _find_paths(place: Path) -> Iterator[Path]:
    repository = _find_repository(place)
    if repository is None:
        return
    common = _follow(repository, _read(repository / "commondir")) or repository
    hooks = Path(os.path.realpath(common / "hooks"))
    if hooks != Path(os.path.realpath(common)) / "hooks":
        yield hooks
    configs = [common / "config", common / "config.worktree", repository / "config.worktree"]
    for config in configs:
        for name, found in _read_paths(config, place.parent):
            is_folder = os.path.isdir(found)
            if name.endswith(HOOKS) or not is_folder:
                yield found
            # It may be included, and so be read for more.
            if not is_folder and found not in configs and len(configs) < MAX_CONFIGS:
                configs.append(found)


def _find_repository(place: Path) -> Path | None:
    """The repository folder, possibly named by a .git file; None if there is none."""
    if place.is_dir():
        return place
    word, _, target = _read(place).partition(":")
    return _follow(place.parent, target) if word == "gitdir" else None


def _follow(folder: Path, text: str) -> Path | None:
    return folder / text.strip() if text.strip() else None


def _read_paths(config: Path, tree: Path) -> Iterator[tuple[str, Path]]:
    """What the settings in a file name: all values, whichever Git would use, from the working tree and from the file itself."""
    for name, value in _read_settings(_read(config)):
        for folder in (tree, config.parent):
            yield name, Path(os.path.realpath(folder / os.path.expanduser(value)))


def _read(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return opened.read(MAX_BYTES).decode("utf-8", "replace").replace("\0", "")
    except OSError:
        return ""


def _read_settings(text: str) -> Iterator[tuple[str, str]]:
    """The settings that name a file or a folder, in small letters, each value as it stands, without a comment and without further words."""
    for line in text.splitlines():
        name, _, value = line.partition("=")
        name, value = name.strip().lower(), value.strip()
        if name.endswith(FILES) and value.lower() not in BOOLEANS:
            words = value.replace('"', " ").split()
            forms = {value.strip('"'), re.split("[#;]", value)[0].strip(' "'), *words[:1]}
            yield from ((name, form) for form in sorted(forms) if form)
