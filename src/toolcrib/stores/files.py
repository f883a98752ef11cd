"""Documents as files, for the eyes of their owner; what was kept survives the process."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING

from toolcrib.ground.files.atomic import create_in, discard_in, remove_in, replace_in, sweep_in, sweep_trash_in
from toolcrib.ground.files.disk import DISK, Disk
from toolcrib.ground.files.faults import explained, show
from toolcrib.ground.files.folders import enter, way_to
from toolcrib.ground.files.generations import Generations
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.protocols import LOCK_SECONDS
from toolcrib.stores.keys import check_key, check_lock, check_prefix, check_space, read_folder
from toolcrib.stores.listing import Listing, stamp_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from toolcrib.ground.files.locks import Locks

PRIVATE_FILE = 0o600

_DOCUMENT = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class FileStore:
    """Keeps each document in a file of its own below one folder; of many creators, in whichever process, one wins.

    A key whose path is a folder, or leads through a file, is the key of no document. Something else in the place of a
    document is listed like one and reported to whoever asks for it, and a link is not followed. Names that begin with a dot
    are no keys: under such names lie the locks and the marks of the store, and what is half written or half deleted. A
    folder counts as one even when nothing is left in it.
    """

    def __init__(self, root: Path, *, disk: Disk = DISK) -> None:
        self._root = root
        self._disk = disk
        self._listing = Listing(root, disk=disk)
        self._generations = Generations(root / ".generations", disk=disk)
        self._settled: set[int] = set()

    def get(self, key: str) -> bytes | None:
        """The document, or None."""
        check_key(key)
        with self._explained(key):
            try:
                with way_to(self._root, key.split("/")[:-1]) as way:
                    return self._read(way[-1], key)
            except (FileNotFoundError, NotADirectoryError):
                return None

    def create(self, key: str, document: bytes) -> bool:
        """Keep a new document; False if the key is taken."""
        check_key(key)
        space, name = _ends(key)
        with self._explained(key), self._generations.marking(space) as mark, self._way_for(key) as way:
            if not create_in(way[-1], name, document, mode=PRIVATE_FILE, disk=self._disk):
                return False
            self._tell(way)
            mark()
        return True

    def replace(self, key: str, document: bytes) -> None:
        """Keep a document in place of the one that may be there."""
        check_key(key)
        space, name = _ends(key)
        with self._explained(key), self._generations.marking(space) as mark, self._way_for(key) as way:
            with suppress(FileNotFoundError):
                self._check_document(way[-1], key)
            replace_in(way[-1], name, document, mode=PRIVATE_FILE, disk=self._disk)
            self._tell(way)
            mark()

    def remove(self, key: str) -> bool:
        """Forget a document; False if there is none."""
        check_key(key)
        space, name = _ends(key)
        with self._explained(key):
            try:
                with way_to(self._root, key.split("/")[:-1]) as way:
                    if not self._check_document(way[-1], key):
                        return False
                    with self._generations.marking(space) as mark:
                        remove_in(way[-1], name, disk=self._disk)
                        self._tell(way)
                        mark()
            except (FileNotFoundError, NotADirectoryError):
                return False
        return True

    def keys(self, prefix: str = "") -> list[str]:
        """The keys that begin so, sorted."""
        return sorted(self.stamps(prefix))

    def stamp(self, key: str) -> str | None:
        """What changes whenever the document does; None if there is none."""
        status = self._status(key)
        return None if status is None else stamp_of(status)

    def changed_at(self, key: str) -> float | None:
        """When the document last changed; None if there is none."""
        status = self._status(key)
        return None if status is None else status.st_mtime

    def stamps(self, prefix: str) -> dict[str, str]:
        """The stamps of all documents whose keys begin so."""
        check_prefix(prefix)
        with self._explained(prefix):
            return self._listing.documents(prefix)

    def folders(self, prefix: str) -> dict[str, str]:
        """The words that follow `prefix/` in longer keys, each with a stamp of its own."""
        words = read_folder(prefix)
        with self._explained(prefix):
            return self._listing.folders(words)

    def strangers(self, prefix: str) -> list[str]:
        """What lies directly in a folder and is neither a document nor the store's own, by name."""
        words = read_folder(prefix)
        with self._explained(prefix):
            return self._listing.strangers(words)

    def discard(self, prefix: str) -> None:
        """Forget everything below a folder at once."""
        *parents, name = read_folder(prefix)
        space = (*parents, name)[0]
        with self._explained(prefix), suppress(FileNotFoundError), way_to(self._root, parents) as way:
            os.close(enter(way[-1], name))  # it is there, and neither a file nor a link
            with self._generations.marking(space) as mark:
                discard_in(way[-1], name, disk=self._disk)
                self._tell(way)
                mark()

    def generation(self, space: str) -> str:
        """What changes with every document of the space that is created, replaced or removed through a store."""
        check_space(space)
        return self._generations.read(space)

    def lock(self, name: str, seconds: float = LOCK_SECONDS) -> AbstractContextManager[None]:
        """Be the only one, of all processes and threads, to hold the name; raises TRANSIENT at the deadline."""
        check_lock(name)
        return self._locks.hold(name, seconds)

    @cached_property
    def _locks(self) -> Locks:
        from toolcrib.ground.files.locks import Locks

        return Locks(self._root / ".locks")

    def _status(self, key: str) -> os.stat_result | None:
        check_key(key)
        with self._explained(key):
            try:
                status = os.lstat(self._root / key)
            except (FileNotFoundError, NotADirectoryError):
                return None
        return None if stat.S_ISDIR(status.st_mode) else status

    def _explained(self, key: str) -> AbstractContextManager[None]:
        return explained(str(self._root / key))

    @contextmanager
    def _way_for(self, key: str) -> Iterator[tuple[int, ...]]:
        """The folders of a document that is to be written, made and ready for it."""
        with way_to(self._root, key.split("/")[:-1], make=True, disk=self._disk) as way:
            self._settle(way)
            yield way

    def _settle(self, way: tuple[int, ...]) -> None:
        """Once in the life of a store: what others made and left may be neither on the disk nor of use to anybody."""
        number = os.fstat(way[-1]).st_ino
        if number in self._settled:
            return
        sweep_in(way[-1], disk=self._disk)
        sweep_trash_in(way[-2], disk=self._disk)
        for folder in way[:-1]:
            self._disk.sync(folder)
        self._settled.add(number)

    def _tell(self, way: tuple[int, ...]) -> None:
        """Change the stamps of the folders: two changes within a tick of the kernel's clock must not look like one."""
        for folder in way[1:]:
            with suppress(OSError):  # of a folder of somebody else's the kernel tells, though not to the nanosecond
                self._disk.touch(folder)

    def _read(self, folder: int, key: str) -> bytes | None:
        if not self._check_document(folder, key):
            return None
        with os.fdopen(os.open(_ends(key)[1], _DOCUMENT, dir_fd=folder), "rb") as file:
            return file.read()

    def _check_document(self, folder: int, key: str) -> bool:
        """Whether it is a document and not a folder; raises for anything else."""
        status = os.stat(_ends(key)[1], dir_fd=folder, follow_symlinks=False)
        if stat.S_ISREG(status.st_mode):
            return True
        if stat.S_ISDIR(status.st_mode):
            return False
        message = f"{show(str(self._root / key))} is not a regular file; move it away"
        raise ToolError(Kind.VALIDATION, message, details={"path": str(self._root / key)})


def _ends(key: str) -> tuple[str, str]:
    """The first word of a key and the last."""
    return key.partition("/")[0], key.rpartition("/")[2]
