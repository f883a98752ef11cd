"""A scratch folder on disk, for a worker that cannot have one in memory; its supervisor measures and removes it."""

# ruff: noqa: PTH102, PTH106, PTH110, PTH208 - pathlib would take a third of the start
from __future__ import annotations

import errno
import os
import stat

_PARENT = "/tmp"  # noqa: S108 - the name that is made there cannot be guessed, and is nobody's if it exists
_PREFIX = "toolcrib-scratch-"
_SMALLEST = 4096  # an entry takes room even if there is nothing in it


def name() -> str:
    """Where this process would have such a folder made."""
    return f"{_PARENT}/{_PREFIX}{os.getpid()}-{os.urandom(8).hex()}"


def make(path: str) -> None:
    """Make it; those that a supervisor could not remove any more go first."""
    for entry in os.listdir(_PARENT):
        if entry.startswith(_PREFIX) and not _is_in_use(entry):
            remove(f"{_PARENT}/{entry}")
    os.mkdir(path, 0o700)


def remove(path: str) -> None:
    """Remove it, if it was made, with all that is in it."""
    try:
        top = _open_folder(path)
        try:
            _empty(top)
        finally:
            os.close(top)
        os.rmdir(path)
    except OSError:
        return


def measure(path: str, limit: int) -> int:
    """The bytes that it takes on disk, counted until the limit is passed."""
    total = 0
    folders = [path]
    while folders and total <= limit:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    facts = entry.stat(follow_symlinks=False)
                    total += max(facts.st_blocks * 512, _SMALLEST)
                    if stat.S_ISDIR(facts.st_mode):
                        folders.append(entry.path)
        except OSError as problem:
            if problem.errno == errno.ENAMETOOLONG:  # what cannot be looked into counts as too much
                return limit + 1
    return total


def _is_in_use(entry: str) -> bool:
    process = entry.removeprefix(_PREFIX).partition("-")[0]
    return not process.isdecimal() or os.path.exists(f"/proc/{process}")


def _empty(top: int) -> None:
    """Go down and up again with one descriptor, so that nothing is too deep to be reached."""
    folder = os.dup(top)
    way: list[str] = []
    ahead = [_unlink_files(folder)]
    try:
        while ahead[-1] or way:
            if ahead[-1]:
                way.append(ahead[-1].pop())
                folder = _replace(folder, _open_folder(way[-1], folder))
                ahead.append(_unlink_files(folder))
            else:
                ahead.pop()
                folder = _replace(folder, _open_folder("..", folder))
                os.rmdir(way.pop(), dir_fd=folder)
    finally:
        os.close(folder)


def _unlink_files(folder: int) -> list[str]:
    """Leave only the folders of a folder; their names."""
    folders = []
    for entry in os.listdir(folder):
        if stat.S_ISDIR(os.stat(entry, dir_fd=folder, follow_symlinks=False).st_mode):
            folders.append(entry)
        else:
            os.unlink(entry, dir_fd=folder)
    return folders


def _replace(old: int, new: int) -> int:
    os.close(old)
    return new


def _open_folder(path: str, parent: int | None = None) -> int:
    os.chmod(path, 0o700, dir_fd=parent)
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
