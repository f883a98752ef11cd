"""Write files atomically, so that what was acknowledged survives a power loss.

The steps: write a temporary file, sync it, link or rename it into place, sync the folder. A failure leaves nothing
behind. New folders and files are accessible to their owner only. Errors name the path and the cure.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from toolcrib.infra.files import DISK, OPEN_FOLDER, PRIVATE_FOLDER, Disk, make_folder, read_at_most
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

SHOWN_PATH = 200
PRIVATE_FILE = 0o600

_MEANINGS: dict[int, tuple[Kind, str]] = {
    errno.ENOENT: (Kind.NOT_FOUND, "does not exist; list the folder to see what does"),
    errno.ENOTDIR: (Kind.VALIDATION, "goes through something that is not a folder; list the folders on the way"),
    errno.EISDIR: (Kind.VALIDATION, "is a folder; name a file in it"),
    errno.ENXIO: (Kind.VALIDATION, "is not a regular file; name a regular file"),
    errno.ENAMETOOLONG: (Kind.VALIDATION, "is too long or too deep; use shorter names"),
    errno.EXDEV: (Kind.BLOCKED, "leads out of the workspace; use a path inside it, and only relative links"),
    errno.ELOOP: (Kind.BLOCKED, "goes through too many links; name the file itself"),
    errno.EAGAIN: (Kind.TRANSIENT, "changed while it was opened; try again"),
    errno.EACCES: (Kind.PERMANENT, "is not permitted; change the permissions of the file or its folder"),
    errno.EPERM: (Kind.PERMANENT, "is not permitted; change the permissions of the file or its folder"),
    errno.EROFS: (Kind.PERMANENT, "lies on a read-only file system; use another folder"),
    errno.ENOSPC: (Kind.PERMANENT, "has no room: the disk is full; free some space"),
    errno.EDQUOT: (Kind.PERMANENT, "has no room: the quota is used up; free some space"),
    errno.EMFILE: (Kind.PERMANENT, "cannot be opened: too many open files; raise the limit of open files"),
    errno.ENFILE: (Kind.PERMANENT, "cannot be opened: too many open files; raise the limit of open files"),
    errno.EIO: (Kind.PERMANENT, "cannot be reached: the disk reports an error; check the disk"),
}
_TEMPORARY = re.compile(r"\.crib-[0-9a-f]{16}\.part")
_TRASH = re.compile(r"\.crib-[0-9a-f]{16}\.trash")
_STAGED = re.compile(r"\.crib-[0-9a-f]{16}\.staged")
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def create(path: Path, data: bytes) -> bool:
    """Write a new file; False, without a change, if it exists. Of many concurrent creators one wins."""
    with explained(str(path)), _folder_of(path) as folder:
        return create_in(folder, path.name, data, mode=PRIVATE_FILE)


def replace(path: Path, data: bytes, *, mode: int = PRIVATE_FILE, old: os.stat_result | None = None) -> None:
    """Write or replace a file, with the owner and permissions of the old one if given; a reader sees the old or the new content."""
    with explained(str(path)), _folder_of(path) as folder:
        replace_in(folder, path.name, data, mode=mode, old=old)


def read(path: Path, limit: int) -> bytes | None:
    """The content of a file of at most `limit` bytes, or None if there is none."""
    with explained(str(path)):
        try:
            descriptor = os.open(path, _FILE)
        except FileNotFoundError:
            return None
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ToolError(Kind.VALIDATION, f"{show_path(str(path))} is not a regular file; move it away")
            data = read_at_most(descriptor, limit + 1)
        finally:
            os.close(descriptor)
    if len(data) > limit:
        message = f"{show_path(str(path))} has more than {limit} bytes; move it away or make it smaller"
        raise ToolError(Kind.LIMIT_EXCEEDED, message, details={"limit": limit})
    return data


def sweep(folder: Path) -> int:
    """Remove the temporary files of killed writers; returns their number."""
    with explained(str(folder)):
        try:
            descriptor = os.open(folder, OPEN_FOLDER)
        except FileNotFoundError:
            return 0
        try:
            return sweep_in(descriptor)
        finally:
            os.close(descriptor)


class UnsyncedError(OSError):
    """The new content is in place, but may not survive a power loss."""


def fault(number: int) -> OSError:
    """The OSError for an errno."""
    return OSError(number, os.strerror(number))


def show_path(path: str) -> str:
    """The path as quoted in messages."""
    return repr(path if len(path) <= SHOWN_PATH else f"{path[:SHOWN_PATH]}…")


@contextmanager
def explained(path: str) -> Iterator[None]:
    """Translate an OSError about the path into a ToolError."""
    try:
        yield
    except OSError as error:
        raise _explain(path, error) from error


def create_in(folder: int, name: str, data: bytes, *, mode: int, disk: Disk = DISK) -> bool:
    """Add a file to the folder; False, without a change, if the name exists."""
    with _written(folder, data, mode=mode, disk=disk) as temporary:
        try:
            disk.link(temporary, name, folder=folder)
        except FileExistsError:
            return False
        try:
            disk.sync(folder)
        except OSError as error:
            _take_back(folder, name, error, disk)
            raise
    return True


def replace_in(
    folder: int, name: str, data: bytes, *, mode: int, old: os.stat_result | None = None, disk: Disk = DISK
) -> None:
    """Write or replace a file, with the owner and permissions of the old one if given."""
    with _written(folder, data, mode=mode, old=old, disk=disk) as temporary:
        disk.rename(temporary, name, folder=folder)
        _sync_change(folder, disk)


def remove_in(folder: int, name: str, *, disk: Disk = DISK) -> None:
    """Remove a file from the folder."""
    disk.unlink(name, folder=folder)
    _sync_change(folder, disk)


def discard_in(folder: int, name: str, *, disk: Disk = DISK) -> None:
    """Remove a folder with its content from the folder, atomically."""
    trash = f".crib-{os.urandom(8).hex()}.trash"
    disk.rename(name, trash, folder=folder)
    _sync_change(folder, disk)
    _delete(folder, trash)


def create_folder_in(
    folder: int, name: str, files: Mapping[str, bytes], *, mode: int, replacing: bool = False, disk: Disk = DISK
) -> bool:
    """Add a folder with its files, atomically: others see all of them or none.

    If the name exists, nothing changes (False), or, when `replacing`, the old folder goes in the same step.
    """
    with _staged(folder, disk) as (staged, descriptor):
        for file, data in files.items():
            _write_file(descriptor, file, data, mode, disk)
        disk.sync_files(list(files), folder=descriptor)
        disk.sync(descriptor)
        try:
            if replacing:
                disk.exchange(staged, name, folder=folder)
            else:
                # The system replaces an empty folder, and refuses any other.
                disk.rename(staged, name, folder=folder)
        except OSError as error:
            if error.errno in (errno.EEXIST, errno.ENOTEMPTY):
                return False
            raise
        _sync_change(folder, disk)
    return True


def sweep_in(folder: int, *, disk: Disk = DISK) -> int:
    """Remove the temporary files of killed writers; returns their number."""
    return sum(_remove_abandoned(folder, name, disk) for name in os.listdir(folder) if is_temporary(name))


def sweep_trash_in(folder: int, *, disk: Disk = DISK) -> None:
    """Delete the remains of discarded folders, and folders that killed writers had staged."""
    names = os.listdir(folder)
    trash = [name for name in names if is_trash(name)]
    # Locked until it is deleted: a writer that has just made its folder finds it locked, and makes another.
    staged = {name: lock for name in names if is_staged(name) and (lock := _lock_abandoned(folder, name)) is not None}
    try:
        if trash or staged:
            # The rename must be durable before anything inside is deleted: half a folder must not reappear under the old name.
            disk.sync(folder)
        for name in (*trash, *staged):
            _delete(folder, name)
    finally:
        for lock in staged.values():
            os.close(lock)


def is_temporary(name: str) -> bool:
    """Whether it is the name of a temporary file, of a live writer or a dead one."""
    return _TEMPORARY.fullmatch(name) is not None


def is_staged(name: str) -> bool:
    """Whether it is the name of a folder that is being written, or of one that was replaced."""
    return _STAGED.fullmatch(name) is not None


def is_trash(name: str) -> bool:
    """Whether it is the name of a discarded folder."""
    return _TRASH.fullmatch(name) is not None


def _explain(path: str, error: OSError) -> ToolError:
    unknown = (Kind.PERMANENT, f"fails with: {error.strerror}; check the file and its disk")
    kind, meaning = _MEANINGS.get(error.errno or 0, unknown)
    return ToolError(
        kind,
        f"{show_path(path)} {meaning}",
        retryable=kind is Kind.TRANSIENT,
        partial_side_effects=isinstance(error, UnsyncedError),
        details={"path": path[:SHOWN_PATH]},
    )


@contextmanager
def _written(folder: int, data: bytes, *, mode: int, disk: Disk, old: os.stat_result | None = None) -> Iterator[str]:
    """The name of a synced temporary file with the data; it is removed at the end in any case."""
    name, descriptor = _open_temporary(folder, mode if old is None else 0o600, disk)
    try:
        try:
            _write_all(descriptor, data, disk)
            if old is not None:
                _take_after(descriptor, old)
            disk.touch(descriptor)
            disk.sync(descriptor)
            yield name
        finally:
            # A file that was renamed, or cannot be removed now, is no reason to fail: `sweep_in` finds it.
            with suppress(OSError):
                disk.unlink(name, folder=folder)
    finally:
        os.close(descriptor)


@contextmanager
def _staged(folder: int, disk: Disk) -> Iterator[tuple[str, int]]:
    """A new folder under a name that no reader looks at, locked while its writer lives; what has the name at the end goes."""
    name, descriptor = _open_staged(folder, disk)
    try:
        yield name, descriptor
    except UnsyncedError:
        # The old folder may come back under its own name, so it stays; `sweep_trash_in` syncs before it deletes.
        raise
    except BaseException:
        _delete(folder, name)
        raise
    else:
        _delete(folder, name)
    finally:
        os.close(descriptor)


def _open_staged(folder: int, disk: Disk) -> tuple[str, int]:
    while True:
        name = f".crib-{os.urandom(8).hex()}.staged"
        disk.make_folder(name, PRIVATE_FOLDER, folder=folder)
        try:
            descriptor = disk.open(name, OPEN_FOLDER | os.O_NOFOLLOW, folder=folder)
        except FileNotFoundError:
            continue  # a sweep took it for one of a killed writer
        except BaseException:
            _delete(folder, name)
            raise
        with suppress(BlockingIOError):  # a sweep is about to remove it
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_nlink:
                return name, descriptor
        os.close(descriptor)


def _write_file(folder: int, name: str, data: bytes, mode: int, disk: Disk) -> None:
    descriptor = disk.open(name, _NEW, mode, folder=folder)
    try:
        _write_all(descriptor, data, disk)
        disk.touch(descriptor)
    finally:
        os.close(descriptor)


def _lock_abandoned(folder: int, name: str) -> int | None:
    """The lock of a staged folder whose writer is gone; None while it lives."""
    try:
        descriptor = os.open(name, OPEN_FOLDER | os.O_NOFOLLOW, dir_fd=folder)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _open_temporary(folder: int, mode: int, disk: Disk) -> tuple[str, int]:
    """Create a file that is locked while its writer lives, which tells `sweep_in` to leave it."""
    while True:
        name = f".crib-{os.urandom(8).hex()}.part"
        descriptor = disk.open(name, _NEW, mode, folder=folder)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_nlink:
                return name, descriptor
        except BlockingIOError:
            pass  # a sweep came between opening and locking, and removes it
        except BaseException:
            os.close(descriptor)
            with suppress(OSError):
                disk.unlink(name, folder=folder)
            raise
        os.close(descriptor)


def _write_all(descriptor: int, data: bytes, disk: Disk) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[disk.write(descriptor, rest) :]


def _take_after(descriptor: int, old: os.stat_result) -> None:
    with suppress(PermissionError):  # only root may change the owner
        os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, old.st_mode & 0o777)


def _take_back(folder: int, name: str, error: OSError, disk: Disk) -> None:
    """Remove the name again: a caller that retries after the failure must not find it taken."""
    try:
        disk.unlink(name, folder=folder)
    except OSError:
        raise UnsyncedError(error.errno, error.strerror) from None


def _sync_change(folder: int, disk: Disk) -> None:
    try:
        disk.sync(folder)
    except OSError as error:
        raise UnsyncedError(error.errno, error.strerror) from None


def _delete(folder: int, name: str) -> None:
    import shutil

    # Remains have an unused name; `sweep_trash_in` finds them.
    shutil.rmtree(name, ignore_errors=True, dir_fd=folder)


def _remove_abandoned(folder: int, name: str, disk: Disk) -> bool:
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Still under the lock, so that no writer can lock the file between the check and the removal.
        disk.unlink(name, folder=folder)
    except OSError:  # its writer is alive or just finished, or it is not ours
        return False
    finally:
        os.close(descriptor)
    return True


@contextmanager
def _folder_of(path: Path) -> Iterator[int]:
    make_folder(path.parent)
    descriptor = os.open(path.parent, OPEN_FOLDER)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
