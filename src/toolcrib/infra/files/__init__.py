"""Files: the calls of the file system that everything else builds on: fallible writes, private folders, stamps, bounded reads and listings."""

from __future__ import annotations

import errno
import os
import stat
import time
from contextlib import contextmanager, suppress
from dataclasses import field
from itertools import islice
from typing import TYPE_CHECKING

from toolcrib.lib.names import is_foreign
from toolcrib.model.errors import Kind, ToolError
from toolcrib.values.records import record

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path


PRIVATE_FOLDER = 0o700
# Sixteen at once sync a thousand files in 0.15 s; one after the other they take 4 s.
SYNC_THREADS = 16
RENAME_EXCHANGE = 2
OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# File system timestamps are coarse: a file this young may change again with the same timestamp.
RACY_NANOSECONDS = 50_000_000
Stamp = tuple[int, ...]
ABSENT: Stamp = ()

_APPEND = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
_OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Disk:
    """The calls of the operating system; names are relative to the open folder."""

    def open(self, path: str | Path, flags: int, mode: int = 0o600, *, folder: int | None = None) -> int:
        """Open or create a file, or open a folder."""
        return os.open(path, flags, mode, dir_fd=folder)

    def write(self, descriptor: int, data: bytes | memoryview) -> int:
        """Write some of the data at the current position; returns how much."""
        return os.write(descriptor, data)

    def overwrite(self, descriptor: int, data: bytes) -> int:
        """Write some of the data at the beginning of the file; returns how much."""
        return os.pwrite(descriptor, data, 0)

    def sync(self, descriptor: int) -> None:
        """Flush a file or a folder to the disk."""
        os.fsync(descriptor)

    def sync_files(self, names: Sequence[str], *, folder: int) -> None:
        """Flush many files of a folder; at once, because the file system then commits them together."""
        from concurrent.futures import ThreadPoolExecutor

        def flush(name: str) -> None:
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

        with ThreadPoolExecutor(SYNC_THREADS, "toolcrib-sync") as threads:
            for _ in threads.map(flush, names):
                pass

    def touch(self, descriptor: int) -> None:
        """Set the modification time to now; file systems read the clock only every few milliseconds."""
        now = time.time_ns()
        os.utime(descriptor, ns=(now, now))

    def link(self, name: str, new: str, *, folder: int) -> None:
        """Create a hard link."""
        os.link(name, new, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)

    def rename(self, name: str, new: str, *, folder: int) -> None:
        """Rename a file or a folder, replacing the target."""
        os.rename(name, new, src_dir_fd=folder, dst_dir_fd=folder)

    def exchange(self, name: str, other: str, *, folder: int) -> None:
        """Swap two names atomically; one step, so that no reader finds either of them missing."""
        import ctypes

        library = ctypes.CDLL(None, use_errno=True)
        if library.renameat2(folder, os.fsencode(name), folder, os.fsencode(other), RENAME_EXCHANGE):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def unlink(self, name: str, *, folder: int) -> None:
        """Remove a name."""
        os.unlink(name, dir_fd=folder)

    def make_folder(self, name: str, mode: int, *, folder: int) -> None:
        """Create a folder."""
        os.mkdir(name, mode, dir_fd=folder)


DISK = Disk()


def make_folder(folder: Path) -> None:
    """Create a folder with its parents, durably."""
    if folder.is_dir():
        return
    # One by one: mkdir with `parents` would create readable parents.
    make_folder(folder.parent)
    folder.mkdir(PRIVATE_FOLDER, exist_ok=True)
    _sync(folder.parent)


def append(path: Path, lines: bytes | bytearray, *, synced: bool = False) -> None:
    """Append lines to a file; one that a crash tore is ended first. `synced` lines are durable."""
    make_folder(path.parent)
    descriptor = os.open(path, _APPEND, 0o600)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "something else stands in place of its file")
        if status.st_size > 0 and os.pread(descriptor, 1, status.st_size - 1) != b"\n":
            lines = b"\n" + lines
        while lines:
            lines = lines[os.write(descriptor, lines) :]
        if synced:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
    if synced and not status.st_size:
        _sync(path.parent)


def make_private_file(path: Path, *, synced: bool = False) -> None:
    """Create an empty file with mode 0600 for SQLite, which would use the umask; `synced` makes its name durable, too."""
    make_folder(path.parent)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        if synced:
            # SQLite syncs the directory for its journals, not for the file itself.
            _sync(path.parent)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, OPEN_FOLDER)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def way_to(root: Path, names: Sequence[str], *, make: bool = False, disk: Disk = DISK) -> Iterator[tuple[int, ...]]:
    """Open the root and the folders below it, the last one last; no name may be a link.

    With `make`, missing folders are created durably.
    """
    if make:
        make_folder(root)
    step = _make_and_enter if make else enter
    way = [disk.open(root, OPEN_FOLDER)]
    try:
        for name in names:
            way.append(step(way[-1], name, disk))
        yield tuple(way)
    finally:
        for descriptor in reversed(way):
            os.close(descriptor)


def enter(folder: int, name: str, disk: Disk = DISK) -> int:
    """Open a folder in an open folder; its name may not be a link."""
    try:
        return disk.open(name, OPEN_FOLDER | os.O_NOFOLLOW, folder=folder)
    except NotADirectoryError:
        if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            message = f"{name!r} is a link where a folder of our own should be; put the folder itself there"
            raise ToolError(Kind.BLOCKED, message) from None
        raise


def stamp_of(status: os.stat_result) -> Stamp:
    """A value that changes when the file or folder does."""
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_mode, status.st_dev


def settled_stamp(status: os.stat_result) -> Stamp | None:
    """The stamp, or None if a change right now might not alter it."""
    # Unlike the modification time, the ctime cannot be set back.
    return stamp_of(status) if time.time_ns() - status.st_ctime_ns > RACY_NANOSECONDS else None


def is_as_it_was(path: str, stamp: Stamp | None) -> bool:
    """Whether the file or folder still has this stamp; without one it is unknown."""
    if stamp is None:
        return False
    try:
        return stamp_of(os.stat(path)) == stamp  # noqa: PTH116 - every call waits for this, and a Path takes twice as long
    except OSError:
        return stamp == ABSENT


def read_small(path: Path, limit: int) -> bytes | None:
    """The content of a regular file, following links; None if there is none, it is unreadable, or larger than `limit`."""
    data = read_beginning(path, limit + 1)
    return None if data is None or len(data) > limit else data


def read_beginning(path: Path | str, limit: int) -> bytes | None:
    """The first bytes of a regular file, following links; None if there is none or it is unreadable."""
    try:
        # Checked before it is opened: opening a device may have an effect.
        if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116 - the same call as the next ones
            return None
        descriptor = os.open(path, _OPEN)
    except (OSError, ValueError):
        return None
    try:
        return read_at_most(descriptor, limit) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
    except OSError:
        return None
    finally:
        os.close(descriptor)


def read_stamped(path: Path, limit: int) -> tuple[Stamp | None, bytes]:
    """The stamp and the bytes of a file, both from one descriptor; never blocks, even on a device or a pipe."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(path)
        if not stat.S_ISREG(status.st_mode):
            raise ToolError(Kind.VALIDATION, f"{path}: is not a regular file; move it away")
        code = read_at_most(descriptor, limit + 1, status.st_size)
    finally:
        os.close(descriptor)
    if len(code) > limit:
        message = f"{path}: has more than {limit} bytes, too many for a tool file; move data out of the code"
        raise ToolError(Kind.LIMIT_EXCEEDED, message)
    return settled_stamp(status), code


def read_at_most(descriptor: int, limit: int, expected: int | None = None) -> bytes:
    """Read from here on, up to the limit. Of a regular file whose size is known, one read tells its end too."""
    chunks: list[bytes] = []
    left = limit
    if expected is not None and expected < limit:
        # A buffer of the whole limit would be made and dropped for every small file.
        chunk = os.read(descriptor, expected + 1)
        if len(chunk) == expected:
            return chunk
        chunks.append(chunk)
        left -= len(chunk)
    while left > 0 and (chunk := os.read(descriptor, left)):
        chunks.append(chunk)
        left -= len(chunk)
    return b"".join(chunks)


def _make_and_enter(folder: int, name: str, disk: Disk) -> int:
    while True:
        try:
            return enter(folder, name, disk)
        except FileNotFoundError:
            # Another process may create or discard it at the same time.
            with suppress(FileExistsError):
                disk.make_folder(name, PRIVATE_FOLDER, folder=folder)
            disk.sync(folder)


# Deleted files that a process still holds open: they use disk space but no folder shows them.

PROCESSES = "/proc"


def measure_unlinked(folder: str) -> int:
    """The bytes on disk of deleted files of the folder that a process still holds open.

    Processes that cannot be inspected count nothing; those of a maker are our own. A file that is only mapped is not
    found.
    """
    found: dict[tuple[int, int], int] = {}
    for descriptor in _open_files(f"{folder.rstrip('/')}/"):
        with suppress(OSError):  # closed meanwhile
            facts = descriptor.stat()
            if stat.S_ISREG(facts.st_mode) and facts.st_nlink == 0:
                found[facts.st_dev, facts.st_ino] = facts.st_blocks * 512
    return sum(found.values())


def _open_files(beginning: str) -> Iterator[os.DirEntry[str]]:
    """The open descriptors of all processes whose path starts like this."""
    for process in _entries(PROCESSES):
        if process.name.isdecimal():
            yield from (one for one in _entries(f"{process.path}/fd") if _target(one.path).startswith(beginning))


def _target(path: str) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115 - thousands of paths: a Path for each would be slow
    except OSError:
        return ""


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """The entries of a folder; empty if it is unreadable or gone."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


@contextmanager
def commit_or_rollback(connection: sqlite3.Connection) -> Iterator[None]:
    """End the open transaction of a database: with all its changes, or, if something fails, with none."""
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


# Listings of folders: bounded, with the stamps that tell whether a listing is still good.

MAX_DEPTH = 12
MAX_FOLDERS = 1_000
MAX_NAMES = 50_000
MAX_PACKAGE_NAMES = 500

# The four files of a tool folder.
SCHEMA = "schema.json"
SUMMARY = "doc_summary.md"
DOCUMENTATION = "doc.md"
HANDLERS = {"handler.js": "javascript", "handler.py": "python"}
MARKS = (SCHEMA, SUMMARY, DOCUMENTATION, *HANDLERS)
# A folder with one of these files is one thing, not a folder of tools.
PACKAGE_MARKS = frozenset({"__init__.py", *MARKS})

# What package managers and interpreters fill; hidden folders are left out too.
FOREIGN = frozenset({"node_modules", "__pycache__", "venv"})
PYTHON_ENVIRONMENT = "pyvenv.cfg"
# Files and folders whose names begin so hold no tools: hidden ones, and helpers.
NO_TOOL = (".", "_")


@record
class FileListing:
    """The names of files and of packages, relative to the folder; the stamp of every folder that was listed; problems."""

    files: set[str] = field(default_factory=set)
    packages: set[str] = field(default_factory=set)
    stamps: dict[str, Stamp | None] = field(default_factory=dict)
    problems: list[ToolError] = field(default_factory=list)


def list_files(root: Path, marks: Collection[str] = ()) -> FileListing:
    """List a folder with every folder below it; what is beyond the bounds is left out and reported.

    A folder that has one of the files `marks` is a package, whose files are not listed.
    """
    walk = _Walk(root, frozenset(marks))
    level = [""]
    try:
        # Level by level: should there be too much, what lies further up is there.
        while level:
            level = [below for folder in level for below in walk.visit(folder)]
    except ToolError as problem:
        walk.listing.problems.append(problem)
    return walk.listing


def stamps_within(folder: str) -> dict[str, Stamp | None]:
    """The stamps of a folder and of everything in it; where there is more than a package has, that nothing is known of it."""
    stamps: dict[str, Stamp | None] = {}
    waiting = [folder]
    try:
        while waiting:
            path = waiting.pop()
            status = os.lstat(path)
            stamps[path] = settled_stamp(status)
            if stat.S_ISDIR(status.st_mode):
                waiting += _names_in(path)
            if len(stamps) + len(waiting) > MAX_PACKAGE_NAMES:
                return {folder: None}
    except OSError:
        return {folder: None}
    return stamps


def stamp_on_disk(path: str) -> Stamp | None:
    """The stamp of a file that was just read, or was found to be missing."""
    try:
        return settled_stamp(os.stat(path))  # noqa: PTH116 - as above
    except OSError:
        return ABSENT


def refused(path: Path | str, problem: OSError) -> ToolError:
    """The problem of a file or folder that the system does not let us read."""
    return ToolError(Kind.PERMANENT, f"{path}: {problem.strerror}; fix it or move it away")


class _Walk:
    """One walk through the folders, which adds to the listing as it goes."""

    def __init__(self, root: Path, marks: frozenset[str]) -> None:
        self.listing = FileListing()
        self._root = str(root)
        self._marks = marks
        self._names = 0

    def visit(self, folder: str) -> list[str]:
        """List one folder, named from the root; the folders in it that are to be visited next."""
        path = f"{self._root}/{folder}" if folder else self._root
        if folder.count("/") >= MAX_DEPTH:
            raise _left_out(path, f"it lies more than {MAX_DEPTH} folders deep; move it further up")
        if len(self.listing.stamps) >= MAX_FOLDERS:
            raise _left_out(path, f"there are more than {MAX_FOLDERS:,} folders; move away what holds no tools")
        names, folders = self._list(path)
        if folder and PYTHON_ENVIRONMENT in names:
            return []
        if folder and not self._marks.isdisjoint(names):
            self.listing.packages.add(folder)
            return []
        before = f"{folder}/" if folder else ""
        self.listing.files.update(before + name for name in names if not name.startswith(NO_TOOL))
        return [before + name for name in sorted(folders) if self._may_hold_tools(path, name)]

    def _list(self, path: str) -> tuple[list[str], list[str]]:
        """The names of files and of folders in it; a link to a folder is not followed and counts as a file."""
        stamps, problems = self.listing.stamps, self.listing.problems
        names: list[str] = []
        folders: list[str] = []
        try:
            # Before the names are read: what comes or goes in between changes the stamp once more.
            stamps[path] = settled_stamp(os.stat(path))  # noqa: PTH116 - paths are texts here, see stamps.is_as_it_was
            with os.scandir(path) as entries:
                for entry in islice(entries, MAX_NAMES - self._names + 1):
                    (folders if entry.is_dir(follow_symlinks=False) else names).append(entry.name)
        except FileNotFoundError:
            stamps[path] = ABSENT
        except (PermissionError, NotADirectoryError) as problem:
            problems.append(refused(path, problem))
        except OSError as problem:
            # It may be over at the next look, without any change to the folder.
            stamps[path] = None
            problems.append(refused(path, problem))
        self._names += len(names) + len(folders)
        if self._names > MAX_NAMES:
            raise _left_out(path, f"there are more than {MAX_NAMES:,} files; move away what is not a tool")
        return names, folders

    def _may_hold_tools(self, parent: str, name: str) -> bool:
        if name.startswith(NO_TOOL) or name in FOREIGN:
            return False
        try:
            check_letters(parent, name)
        except ToolError as problem:
            self.listing.problems.append(problem)
            return False
        return True


def is_tool_folder(folder: Path | str) -> bool:
    """Whether a folder has one of the files of a tool folder."""
    return any(os.path.lexists(f"{folder}/{name}") for name in MARKS)


def is_small_file(path: str, max_bytes: int) -> bool:
    """Whether there is a regular file, and no link, of at most so many bytes."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size <= max_bytes


def _names_in(folder: str) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.path for entry in islice(entries, MAX_PACKAGE_NAMES + 1) if not is_foreign(entry.name)]


def check_letters(parent: Path | str, name: str) -> None:
    """Refuse a name that could not be printed."""
    try:
        name.encode()
    except UnicodeEncodeError:
        message = f"{parent}: the name {os.fsencode(name)!r} is not UTF-8; rename it"
        raise ToolError(Kind.VALIDATION, message) from None


def _left_out(path: str, reason: str) -> ToolError:
    return ToolError(Kind.LIMIT_EXCEEDED, f"{path} is left out with all that comes after it: {reason}")
