"""`flock` on files that are never deleted: to take, to give back, and to ask who holds one."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from pathlib import Path

from toolcrib.ground.files.faults import fault
from toolcrib.ground.files.folders import make_folder

PRIVATE_FILE = 0o600
HELD_LOCKS = Path("/proc/locks")
WAITING = fcntl.LOCK_EX
AT_ONCE = fcntl.LOCK_EX | fcntl.LOCK_NB

_OPEN = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def take(path: Path, operation: int) -> int | None:
    """The descriptor of the locked file; None if somebody else has it and the operation is not to wait."""
    while True:
        descriptor = _open(path)
        try:
            fcntl.flock(descriptor, operation)
            if _is_still(path, descriptor):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # somebody deleted the file after all, and the next one would lock another


def give_back(descriptor: int) -> None:
    """Let go of the lock by saying so, and not only by closing: a forked child may hold the same descriptor."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


def holder_of(path: Path) -> int | None:
    """The process that holds the lock, where the kernel tells."""
    try:
        status = path.stat()
        lines = HELD_LOCKS.read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return None
    place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    for line in lines:
        # 12: FLOCK  ADVISORY  WRITE 4711 fd:01:2097 0 EOF; whoever waits has an arrow before the kind
        words = line.split()
        if words[1:2] == ["FLOCK"] and words[5:6] == [place]:
            return int(words[4]) if words[4].isdecimal() else None
    return None


def _open(path: Path) -> int:
    try:
        descriptor = os.open(path, _OPEN, PRIVATE_FILE)
    except FileNotFoundError:
        make_folder(path.parent)
        descriptor = os.open(path, _OPEN, PRIVATE_FILE)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise fault(errno.ENXIO)


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False
