"""Locks between processes and threads: a lock is a file that is never deleted, released when its process ends.

It uses `flock`, because `lockf` is released as soon as any descriptor of the file is closed in the process. Waiting
happens in the kernel; polling would starve the process that polls least often.

Each lock has a second file, its queue: a process takes the queue first and releases it when it has the lock. The kernel
grants a lock to whichever process asks next, usually a running one that wants it again rather than one that has yet to
wake up; with the queue, that process waits behind those that are waiting already.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import threading
import time
from collections import deque
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from toolcrib.infra.files import make_folder
from toolcrib.infra.files.durable import explained, fault, show_path
from toolcrib.model.errors import Kind, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator

PRIVATE_FILE = 0o600
HELD_LOCKS = Path("/proc/locks")
WAITING = fcntl.LOCK_EX
AT_ONCE = fcntl.LOCK_EX | fcntl.LOCK_NB
# Local file systems, by their statfs type, whose locks one kernel manages. Not among them: NFS, SMB, AFS, Ceph and the
# like, FUSE and 9p (folders of another machine, of a VM host, of Windows), where the other side may lock without this
# kernel knowing; FAT, which has no hard links.
LOCAL = {
    0xEF53: "ext4",
    0x58465342: "xfs",
    0x9123683E: "btrfs",
    0x2FC12FC1: "zfs",
    0xF2F52010: "f2fs",
    0xCA451A4E: "bcachefs",
    0x794C7630: "overlayfs",
    0x01021994: "tmpfs",
    0x858458F6: "ramfs",
}
REMOTE = {
    0x6969: "NFS",
    0xFE534D42: "SMB",
    0xFF534D42: "SMB",
    0x517B: "SMB",
    0x65735546: "FUSE",
    0x01021997: "9p",
    0x00C36400: "Ceph",
    0x5346414F: "AFS",
    0x4D44: "FAT",
}
# How long a process waits in the queue before it tries to bypass it: the first one may be frozen, and must not block
# the others.
PATIENCE = 1.0

_OPEN = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_STATFS_BYTES = 512  # more than the structure has on any system; the type comes first
_NUMBER = 0xFFFFFFFF


class Locks:
    """The locks in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._resolved: Path | None = None

    @contextmanager
    def hold(self, name: str, seconds: float) -> Iterator[None]:
        """Hold the lock exclusively among all threads and processes; raises TRANSIENT at the deadline."""
        deadline = time.monotonic() + seconds
        path = self._place() / f"{name}.lock"
        lock = _KNOWN.find(path)
        if lock.mine:
            raise held_already(name)
        with explained(str(path)):
            held = lock.acquire(deadline)
        if not held:
            raise not_free(name, seconds, holder_of(path))
        try:
            yield
        finally:
            lock.release()

    def _place(self) -> Path:
        if self._resolved is None:
            with explained(str(self._folder)):
                make_folder(self._folder)
                check_lockable(self._folder)
                self._resolved = self._folder.resolve()
        return self._resolved


def take(path: Path, operation: int) -> int | None:
    """Lock the file and return its descriptor; None if another process holds it and the operation does not wait."""
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
        os.close(descriptor)  # the file was deleted nevertheless, and the next one would lock another


def give_back(descriptor: int) -> None:
    """Unlock explicitly, not only by closing: a forked child may hold the same descriptor."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


def holder_of(path: Path) -> int | None:
    """The process that holds the lock, if the kernel reports it."""
    try:
        status = path.stat()
        lines = HELD_LOCKS.read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return None
    place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    for line in lines:
        # 12: FLOCK  ADVISORY  WRITE 4711 fd:01:2097 0 EOF; a waiting process has an arrow before the kind
        words = line.split()
        if words[1:2] == ["FLOCK"] and words[5:6] == [place]:
            return int(words[4]) if words[4].isdecimal() else None
    return None


def check_lockable(folder: Path) -> None:
    """Refuse a folder on a file system whose locks other machines might not see."""
    number = kind_of(folder)
    if number in LOCAL:
        return
    name = REMOTE.get(number, f"a file system of the unknown kind {number:#x}")
    message = (
        f"{show_path(str(folder))} lies on {name}, whose locks may not hold between processes; "
        f"keep the project on a local disk ({', '.join(LOCAL.values())})"
    )
    raise ToolError(Kind.PERMANENT, message, details={"path": str(folder), "file_system": name})


def kind_of(folder: Path) -> int:
    """The statfs type of the file system."""
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    status = ctypes.create_string_buffer(_STATFS_BYTES)
    if library.statfs(os.fsencode(folder), status):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return ctypes.c_long.from_buffer(status).value & _NUMBER


class Turns:
    """A fair lock between threads: granted in FIFO order."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._holder: int | None = None
        self._waiting: deque[_Waiter] = deque()

    @property
    def mine(self) -> bool:
        """Whether this thread holds it."""
        return self._holder == threading.get_ident()

    def enter(self, deadline: float) -> bool:
        """Wait for the turn of this thread, which must not hold it; False at the deadline (time.monotonic)."""
        with self._mutex:
            if self._holder is None:
                self._holder = threading.get_ident()
                return True
            waiter = _Waiter()
            self._waiting.append(waiter)
        try:
            waiter.called.wait(max(0.0, deadline - time.monotonic()))
        except BaseException:
            if not self._withdraw(waiter):
                self.leave()
            raise
        return not self._withdraw(waiter)

    def leave(self) -> None:
        """Release it to the next thread."""
        with self._mutex:
            if not self._waiting:
                self._holder = None
                return
            waiter = self._waiting.popleft()
            self._holder = waiter.thread
            waiter.called.set()

    def _withdraw(self, waiter: _Waiter) -> bool:
        """Stop waiting; False if the turn has come meanwhile."""
        with self._mutex:
            if waiter.called.is_set():
                return False
            self._waiting.remove(waiter)
            return True


def held_already(name: str) -> ToolError:
    """The error for a lock that the thread holds already."""
    message = f"this thread holds the lock {name!r} already; take it once, around everything that needs it"
    return ToolError(Kind.INTERNAL, message, details={"lock": name})


def not_free(name: str, seconds: float, pid: int | None = None) -> ToolError:
    """The error at the deadline, with the process that holds the lock if known."""
    holder = "another process" if pid is None else f"process {pid}"
    message = f"the lock {name!r} was not free within {seconds:g} s, {holder} holds it; try again"
    return ToolError(Kind.TRANSIENT, message, retryable=True, details={"lock": name, "pid": pid})


class _Known:
    """The locks of this process, by path, so that threads share one queue per file."""

    def __init__(self) -> None:
        self._watching = False
        self._start_anew()

    def find(self, path: Path) -> _FileLock:
        with self._mutex:
            if not self._watching:
                os.register_at_fork(after_in_child=self._forget)
                self._watching = True
            return self._locks.setdefault(str(path), _FileLock(path))

    def _start_anew(self) -> None:
        self._mutex = threading.Lock()
        self._locks: WeakValueDictionary[str, _FileLock] = WeakValueDictionary()

    def _forget(self) -> None:
        """In a forked child: it holds no lock, even if threads of the parent do."""
        held = list(self._locks.values())
        self._start_anew()
        for lock in held:
            lock.abandon()


_KNOWN = _Known()


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


class _Waiter:
    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.called = threading.Event()


class _FileLock:
    """One lock in this process: threads queue up, and the first one competes with other processes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._queue = path.with_suffix(".line")
        self._turns = Turns()
        self._mutex = threading.Lock()
        self._seeking = False
        self._request: _LockRequest | None = None
        self._descriptor: int | None = None

    @property
    def mine(self) -> bool:
        return self._turns.mine

    def acquire(self, deadline: float) -> bool:
        if not self._turns.enter(deadline):
            return False
        try:
            self._descriptor = self._take_in_turn(AT_ONCE)
            if self._descriptor is None:
                self._descriptor = self._wait(deadline)
        finally:
            if self._descriptor is None:
                self._turns.leave()
        return self._descriptor is not None

    def release(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:  # a forked child leaves a block that its parent entered
            return
        give_back(descriptor)
        self._turns.leave()

    def abandon(self) -> None:
        """In a forked child: close the descriptor without releasing the parent's lock."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _take_in_turn(self, operation: int) -> int | None:
        place = take(self._queue, operation)
        if place is None:
            return None
        try:
            return take(self._path, operation)
        finally:
            give_back(place)

    def _wait(self, deadline: float) -> int | None:
        """Wait for a helper thread that waits in the kernel, where waiting cannot be cancelled."""
        request = self._ask()
        try:
            bypassed = self._watch(request, deadline)
        except BaseException:
            self._withdraw(request)
            if request.descriptor is not None:
                give_back(request.descriptor)
            raise
        self._withdraw(request)
        if bypassed is not None:
            return bypassed
        if request.error is not None:
            raise request.error
        return request.descriptor

    def _watch(self, request: _LockRequest, deadline: float) -> int | None:
        """Wait until the request is granted or the deadline has passed; the descriptor if the queue was bypassed."""
        while (left := deadline - time.monotonic()) > PATIENCE:
            if request.granted.wait(PATIENCE):
                return None
            descriptor = take(self._path, AT_ONCE)
            if descriptor is not None:
                return descriptor
        request.granted.wait(max(0.0, left))
        return None

    def _ask(self) -> _LockRequest:
        request = _LockRequest()
        with self._mutex:
            if not self._seeking:
                threading.Thread(target=self._seek, name=f"lock {self._path.name}", daemon=True).start()
                self._seeking = True
            self._request = request
        return request

    def _withdraw(self, request: _LockRequest) -> None:
        """From now on the request is already granted, or never."""
        with self._mutex:
            if self._request is request:
                self._request = None

    def _seek(self) -> None:
        """In the helper: acquire the lock for the thread that is waiting by then, or release it if none is."""
        descriptor, error = None, None
        try:
            descriptor = self._take_in_turn(WAITING)
        except OSError as problem:
            error = problem
        with self._mutex:
            self._seeking = False
            request, self._request = self._request, None
            if request is not None:
                request.grant(descriptor, error)
            elif descriptor is not None:
                give_back(descriptor)


class _LockRequest:
    """The request of one thread to the helper."""

    def __init__(self) -> None:
        self.granted = threading.Event()
        self.descriptor: int | None = None
        self.error: OSError | None = None

    def grant(self, descriptor: int | None, error: OSError | None) -> None:
        self.descriptor, self.error = descriptor, error
        self.granted.set()
