"""Locks between processes and threads: a lock is a file that is never deleted, and whoever dies lets go of it.

`flock`, because `lockf` is lost as soon as any descriptor of the file is closed in the process. It is waited for in the
kernel and not by asking again and again, which would let whoever asks least often starve.

Beside each lock lies a second file, the line: whoever wants the lock takes the line first and lets go of it when it has the
lock. The kernel gives a lock to whoever comes next, which is a process that is running and wants it again rather than one
that must first wake up; with the line, it has to stand behind those who wait already.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from toolcrib.ground.files.faults import explained
from toolcrib.ground.files.flocks import AT_ONCE, WAITING, give_back, holder_of, take
from toolcrib.ground.files.folders import make_folder
from toolcrib.ground.files.mounts import check_lockable
from toolcrib.ground.files.turns import Turns, held_already, not_free

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# How long one waits in line before one looks past it: the first in it may be frozen, and must not hold up everybody.
PATIENCE = 1.0


class Locks:
    """The locks that are files of one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._resolved: Path | None = None

    @contextmanager
    def hold(self, name: str, seconds: float) -> Iterator[None]:
        """Be the only thread of all processes that holds the lock; raises TRANSIENT at the deadline."""
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


class _FileLock:
    """One lock in this process: its threads queue up, and the first of them deals with the other processes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._line = path.with_suffix(".line")
        self._turns = Turns()
        self._mutex = threading.Lock()
        self._seeking = False
        self._wish: _Wish | None = None
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
        if descriptor is None:  # a forked child comes out of what its parent went into
            return
        give_back(descriptor)
        self._turns.leave()

    def abandon(self) -> None:
        """In a forked child: let the descriptor go without letting go of the parent's lock."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _take_in_turn(self, operation: int) -> int | None:
        place = take(self._line, operation)
        if place is None:
            return None
        try:
            return take(self._path, operation)
        finally:
            give_back(place)

    def _wait(self, deadline: float) -> int | None:
        """Let a helper wait in the kernel, where nobody can be called back from, and wait for the helper."""
        wish = self._ask()
        try:
            past_the_line = self._watch(wish, deadline)
        except BaseException:
            self._withdraw(wish)
            if wish.descriptor is not None:
                give_back(wish.descriptor)
            raise
        self._withdraw(wish)
        if past_the_line is not None:
            return past_the_line
        if wish.error is not None:
            raise wish.error
        return wish.descriptor

    def _watch(self, wish: _Wish, deadline: float) -> int | None:
        """Wait until the wish is granted or the deadline is there; the descriptor if the lock was got past the line."""
        while (left := deadline - time.monotonic()) > PATIENCE:
            if wish.granted.wait(PATIENCE):
                return None
            descriptor = take(self._path, AT_ONCE)
            if descriptor is not None:
                return descriptor
        wish.granted.wait(max(0.0, left))
        return None

    def _ask(self) -> _Wish:
        wish = _Wish()
        with self._mutex:
            if not self._seeking:
                threading.Thread(target=self._seek, name=f"lock {self._path.name}", daemon=True).start()
                self._seeking = True
            self._wish = wish
        return wish

    def _withdraw(self, wish: _Wish) -> None:
        """From now on the wish is granted already, or never."""
        with self._mutex:
            if self._wish is wish:
                self._wish = None

    def _seek(self) -> None:
        """What the helper does: get the lock for whoever wants it by then, and give it back if nobody does."""
        descriptor, error = None, None
        try:
            descriptor = self._take_in_turn(WAITING)
        except OSError as problem:
            error = problem
        with self._mutex:
            self._seeking = False
            wish, self._wish = self._wish, None
            if wish is not None:
                wish.grant(descriptor, error)
            elif descriptor is not None:
                give_back(descriptor)


class _Wish:
    """What one thread waits for from the helper."""

    def __init__(self) -> None:
        self.granted = threading.Event()
        self.descriptor: int | None = None
        self.error: OSError | None = None

    def grant(self, descriptor: int | None, error: OSError | None) -> None:
        self.descriptor, self.error = descriptor, error
        self.granted.set()


class _Known:
    """The locks of this process, by path: whoever means the same file must queue up in the same place."""

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
        """In a forked child: nothing is held here, whatever the threads of the parent hold."""
        held = list(self._locks.values())
        self._start_anew()
        for lock in held:
            lock.abandon()


_KNOWN = _Known()
