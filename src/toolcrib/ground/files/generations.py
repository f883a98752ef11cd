"""A small file for each space of a store; it changes with every write, so that others need not look at every document."""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.ground.files.disk import DISK, Disk
from toolcrib.ground.files.faults import UnsyncedError, explained
from toolcrib.ground.files.folders import make_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MARK_BYTES = 16
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Generations:
    """Marks of spaces: random, so that no two writers need to agree on the next, and of one size, so that none lacks room.

    Marks are not synced. After a power loss an old one may be there again, which is why the boot of the machine counts too.
    """

    def __init__(self, folder: Path, *, disk: Disk = DISK) -> None:
        self._folder = folder
        self._disk = disk

    def read(self, space: str) -> str:
        """What changes with every mark."""
        path = self._folder / space
        with explained(str(path)):
            try:
                descriptor = os.open(path, _READ)
            except FileNotFoundError:
                return self._boot
            try:
                return f"{self._boot}.{os.read(descriptor, MARK_BYTES).hex()}"
            finally:
                os.close(descriptor)

    @contextmanager
    def marking(self, space: str) -> Iterator[Callable[[], None]]:
        """What marks the space, to be called when a document has changed; what can fail fails before that."""
        make_folder(self._folder)
        descriptor = self._disk.open(self._folder / space, _WRITE)
        try:
            if os.fstat(descriptor).st_size < MARK_BYTES:
                self._disk.overwrite(descriptor, os.urandom(MARK_BYTES))
            yield lambda: self._mark(descriptor)
        finally:
            os.close(descriptor)

    def _mark(self, descriptor: int) -> None:
        try:
            self._disk.overwrite(descriptor, os.urandom(MARK_BYTES))
        except OSError as error:
            raise UnsyncedError(error.errno, error.strerror) from None

    @cached_property
    def _boot(self) -> str:
        try:
            return BOOT_ID.read_text().strip()
        except OSError:
            return ""
