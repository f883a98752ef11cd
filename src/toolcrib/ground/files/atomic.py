"""A file appears whole or not at all: a temporary file, synced, one step into place, and the folder synced."""

from __future__ import annotations

import fcntl
import os
import re
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from toolcrib.ground.files.faults import UnsyncedError

if TYPE_CHECKING:
    from collections.abc import Iterator

_TEMPORARY = re.compile(r"\.crib-[0-9a-f]{16}\.part")
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def create_in(folder: int, name: str, data: bytes, *, mode: int) -> bool:
    """Add a file to the folder; False, and nothing changes, if the name is taken."""
    with _written(folder, data, mode=mode) as temporary:
        try:
            os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except FileExistsError:
            return False
        try:
            os.fsync(folder)
        except OSError:
            # Who is told that it failed will try again, and must not find the name taken by their own attempt.
            with suppress(OSError):
                os.unlink(name, dir_fd=folder)
            raise
    return True


def replace_in(folder: int, name: str, data: bytes, *, mode: int, old: os.stat_result | None = None) -> None:
    """Put a new file in place of whatever has the name, with the owner and permissions of the old one if it is given."""
    with _written(folder, data, mode=mode, old=old) as temporary:
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        try:
            os.fsync(folder)
        except OSError as error:
            raise UnsyncedError(error.errno, error.strerror) from None


def sweep_in(folder: int) -> int:
    """Remove the temporary files of writers that were killed; the number of them."""
    return sum(_remove_abandoned(folder, name) for name in os.listdir(folder) if _TEMPORARY.fullmatch(name))


def read_at_most(descriptor: int, limit: int) -> bytes:
    """The bytes from here on, but no more than the limit."""
    chunks: list[bytes] = []
    room = limit
    while room > 0 and (chunk := os.read(descriptor, room)):
        chunks.append(chunk)
        room -= len(chunk)
    return b"".join(chunks)


@contextmanager
def _written(folder: int, data: bytes, *, mode: int, old: os.stat_result | None = None) -> Iterator[str]:
    """The name of a temporary file that holds the data on disk; it is gone afterwards, whatever happens."""
    name, descriptor = _open_temporary(folder, mode if old is None else 0o600)
    try:
        try:
            _write_all(descriptor, data)
            if old is not None:
                _take_after(descriptor, old)
            os.fsync(descriptor)
            yield name
        finally:
            # A name that was renamed into place, or that cannot be removed now, is no reason to fail: `sweep_in` finds it.
            with suppress(OSError):
                os.unlink(name, dir_fd=folder)
    finally:
        os.close(descriptor)


def _open_temporary(folder: int, mode: int) -> tuple[str, int]:
    """A new file that is locked for as long as its writer lives, which tells `sweep_in` not to touch it."""
    while True:
        name = f".crib-{os.urandom(8).hex()}.part"
        descriptor = os.open(name, _NEW, mode, dir_fd=folder)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_nlink:
                return name, descriptor
        except BlockingIOError:
            pass  # a sweep came between opening and locking, and removes it
        except BaseException:
            os.close(descriptor)
            with suppress(OSError):
                os.unlink(name, dir_fd=folder)
            raise
        os.close(descriptor)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _take_after(descriptor: int, old: os.stat_result) -> None:
    with suppress(PermissionError):  # only root may give a file away
        os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, old.st_mode & 0o777)


def _remove_abandoned(folder: int, name: str) -> bool:
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Still under the lock, so that no writer can lock the file after it was judged and before it is gone.
        os.unlink(name, dir_fd=folder)
    except OSError:  # its writer lives, or just finished, or it is nothing of ours
        return False
    finally:
        os.close(descriptor)
    return True
