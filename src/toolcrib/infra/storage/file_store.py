"""Store documents as files that only their owner can read, durably."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.infra.files import DISK, Disk, enter, make_folder, read_at_most, way_to
from toolcrib.infra.files.durable import (
    UnsyncedError,
    create_folder_in,
    create_in,
    discard_in,
    explained,
    is_staged,
    is_temporary,
    is_trash,
    remove_in,
    replace_in,
    show_path,
    sweep_in,
    sweep_trash_in,
)
from toolcrib.infra.files.locks import Locks
from toolcrib.infra.storage import (
    check_key,
    check_lock,
    check_prefix,
    check_size,
    check_space,
    is_key,
    is_prefix,
    read_folder,
)
from toolcrib.model.errors import Kind, ToolError
from toolcrib.model.protocols import LOCK_SECONDS, MAX_DOCUMENT_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

MARK_BYTES = 16
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

PRIVATE_FILE = 0o600

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_GONE = (FileNotFoundError, NotADirectoryError)


class FileStore:
    """Each document is a file below one folder; of many concurrent creators, in any process, one wins.

    A key whose path is a folder, or leads through a file, has no document. Anything else in the place of a document is
    listed like one and reported by `get`, and a link is not followed. Names that begin with a dot are not keys: the
    store uses them for locks, generation marks, temporary files and discarded folders. A folder is listed even if it is
    empty.
    """

    def __init__(self, root: Path, *, disk: Disk = DISK) -> None:
        self._root = root
        self._disk = disk
        self._listing = FolderLister(root, disk=disk)
        self._generations = Generations(root / ".generations", disk=disk)
        self._settled: set[int] = set()

    def get(self, key: str, limit: int = MAX_DOCUMENT_BYTES) -> bytes | None:
        """The document, or None; raises LIMIT_EXCEEDED, without reading further, for one of more than `limit` bytes."""
        check_key(key)
        with self._explained(key):
            try:
                with way_to(self._root, key.split("/")[:-1]) as way:
                    document = self._read(way[-1], key, limit)
            except _GONE:
                return None
        if document is not None:
            check_size(show_path(str(self._root / key)), len(document), limit, path=str(self._root / key))
        return document

    def create(self, key: str, document: bytes) -> bool:
        """Store a new document; False if the key exists."""
        check_key(key)
        space, name = _ends(key)
        with self._explained(key), self._generations.marking(space) as mark, self._way_for(key) as way:
            if not create_in(way[-1], name, document, mode=PRIVATE_FILE, disk=self._disk):
                return False
            self._touch(way)
            mark()
        return True

    def replace(self, key: str, document: bytes) -> None:
        """Store a document, replacing the one of this key."""
        check_key(key)
        space, name = _ends(key)
        with self._explained(key), self._generations.marking(space) as mark, self._way_for(key) as way:
            with suppress(FileNotFoundError):
                self._check_document(way[-1], key)
            replace_in(way[-1], name, document, mode=PRIVATE_FILE, disk=self._disk)
            self._touch(way)
            mark()

    def remove(self, key: str) -> bool:
        """Remove a document; False if there is none."""
        check_key(key)
        space, name = _ends(key)
        with self._explained(key):
            try:
                with way_to(self._root, key.split("/")[:-1]) as way:
                    if not self._check_document(way[-1], key):
                        return False
                    with self._generations.marking(space) as mark:
                        remove_in(way[-1], name, disk=self._disk)
                        self._touch(way)
                        mark()
            except _GONE:
                return False
        return True

    def keys(self, prefix: str = "") -> list[str]:
        """The keys with this prefix, sorted."""
        return sorted(self.stamps(prefix))

    def stamp(self, key: str) -> str | None:
        """A value that changes whenever the document does; None if there is none."""
        status = self._status(key)
        return None if status is None else stamp_of(status)

    def changed_at(self, key: str) -> float | None:
        """When the document last changed; None if there is none."""
        status = self._status(key)
        return None if status is None else status.st_mtime

    def stamps(self, prefix: str) -> dict[str, str]:
        """The stamps of all documents with this prefix."""
        check_prefix(prefix)
        with self._explained(prefix):
            return self._listing.documents(prefix)

    def folders(self, prefix: str) -> dict[str, str]:
        """The folders directly below `prefix`, each with a stamp."""
        words = read_folder(prefix)
        with self._explained(prefix):
            return self._listing.folders(words)

    def other_files(self, prefix: str) -> list[str]:
        """The entries of a folder that are neither documents nor the store's own, by name."""
        words = read_folder(prefix)
        with self._explained(prefix):
            return self._listing.other_files(words)

    def create_folder(self, prefix: str, documents: Mapping[str, bytes], *, replacing: bool = False) -> bool:
        """Store a folder of documents, by the last word of their keys, all of them or none; False if the folder exists.

        When `replacing`, an existing folder goes in the same step, and one that does not exist is an error.
        """
        *parents, name = words = read_folder(prefix)
        if not parents:
            raise ToolError(Kind.VALIDATION, f"{prefix!r:.80} is a whole space; name a folder in it")
        for word in documents:
            check_key(f"{'/'.join(words)}/{word}")
        with (
            self._explained(prefix),
            self._generations.marking(words[0]) as mark,
            way_to(self._root, parents, make=True, disk=self._disk) as way,
        ):
            self._settle(way)
            done = create_folder_in(way[-1], name, documents, mode=PRIVATE_FILE, replacing=replacing, disk=self._disk)
            if done:
                self._touch(way)
                mark()
        return done

    def discard(self, prefix: str) -> None:
        """Remove everything below a folder atomically."""
        *parents, name = read_folder(prefix)
        space = (*parents, name)[0]
        with self._explained(prefix), suppress(FileNotFoundError), way_to(self._root, parents) as way:
            os.close(enter(way[-1], name))  # it exists, and is neither a file nor a link
            with self._generations.marking(space) as mark:
                discard_in(way[-1], name, disk=self._disk)
                self._touch(way)
                mark()

    def generation(self, space: str) -> str:
        """A value that changes with every document of the space that is created, replaced or removed through a store."""
        check_space(space)
        return self._generations.read(space)

    def lock(self, name: str, seconds: float = LOCK_SECONDS) -> AbstractContextManager[None]:
        """Hold the name exclusively among all processes and threads; raises TRANSIENT at the deadline."""
        check_lock(name)
        return self._locks.hold(name, seconds)

    @cached_property
    def _locks(self) -> Locks:
        return Locks(self._root / ".locks")

    def _status(self, key: str) -> os.stat_result | None:
        check_key(key)
        with self._explained(key):
            try:
                status = os.lstat(self._root / key)
            except _GONE:
                return None
        return None if stat.S_ISDIR(status.st_mode) else status

    def _explained(self, key: str) -> AbstractContextManager[None]:
        return explained(str(self._root / key))

    @contextmanager
    def _way_for(self, key: str) -> Iterator[tuple[int, ...]]:
        """Open, and create if missing, the folders of a document to be written."""
        with way_to(self._root, key.split("/")[:-1], make=True, disk=self._disk) as way:
            self._settle(way)
            yield way

    def _settle(self, way: tuple[int, ...]) -> None:
        """Once per store: sync folders that other processes created, and remove what killed ones left."""
        number = os.fstat(way[-1]).st_ino
        if number in self._settled:
            return
        sweep_in(way[-1], disk=self._disk)
        sweep_trash_in(way[-2], disk=self._disk)
        for folder in way[:-1]:
            self._disk.sync(folder)
        self._settled.add(number)

    def _touch(self, way: tuple[int, ...]) -> None:
        """Touch the folders: two changes within one tick of the kernel's clock must not have the same stamp."""
        for folder in way[1:]:
            with suppress(OSError):  # a folder of another user; the kernel's own timestamp is less exact
                self._disk.touch(folder)

    def _read(self, folder: int, key: str, limit: int) -> bytes | None:
        """The document, up to one byte beyond the limit."""
        if not self._check_document(folder, key):
            return None
        descriptor = os.open(_ends(key)[1], _READ, dir_fd=folder)
        try:
            return read_at_most(descriptor, limit + 1)
        finally:
            os.close(descriptor)

    def _check_document(self, folder: int, key: str) -> bool:
        """Whether it is a document and not a folder; raises for anything else."""
        status = os.stat(_ends(key)[1], dir_fd=folder, follow_symlinks=False)
        if stat.S_ISREG(status.st_mode):
            return True
        if stat.S_ISDIR(status.st_mode):
            return False
        message = f"{show_path(str(self._root / key))} is not a regular file; move it away"
        raise ToolError(Kind.VALIDATION, message, details={"path": str(self._root / key)})


class FolderLister:
    """Lists the folders below the root without following links. Remains of killed writers are removed on the way."""

    def __init__(self, root: Path, *, disk: Disk = DISK) -> None:
        self._root = root
        self._disk = disk

    def documents(self, prefix: str) -> dict[str, str]:
        """The keys with this prefix, each with its stamp; anything but a folder counts as a document."""
        *words, _ = prefix.split("/")
        with suppress(*_GONE), way_to(self._root, words) as way:
            found = self._documents_in(way[-1], "".join(f"{word}/" for word in words), prefix)
            if all(_stands(*step) for step in zip(way, words, way[1:], strict=False)):
                return found
        return {}

    def folders(self, words: Sequence[str]) -> dict[str, str]:
        """The folders in a folder, each with its stamp."""
        found: dict[str, str] = {}
        place = "/".join(words)
        with suppress(*_GONE), way_to(self._root, words) as way:
            for entry in self._scan(way[-1]):
                if is_prefix(f"{place}/{entry.name}") and entry.is_dir(follow_symlinks=False):
                    with suppress(FileNotFoundError):  # removed since it was listed
                        status = entry.stat(follow_symlinks=False)
                        found[entry.name] = f"{status.st_ino:x}.{status.st_mtime_ns:x}.{status.st_ctime_ns:x}"
        return found

    def other_files(self, words: Sequence[str]) -> list[str]:
        """The entries of a folder that are neither keys nor folders of keys nor remains of a writer."""
        place = "/".join(words)
        with suppress(*_GONE), way_to(self._root, words) as way:
            return sorted(
                entry.name
                for entry in self._scan(way[-1])
                if not (is_key(f"{place}/{entry.name}") or _is_remains(entry.name))
            )
        return []

    def _documents_in(self, folder: int, place: str, prefix: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for entry in self._scan(folder):
            key = f"{place}{entry.name}"
            with suppress(*_GONE):  # removed since it was listed
                if entry.is_dir(follow_symlinks=False):
                    if is_prefix(key) and f"{key}/".startswith(prefix[: len(key) + 1]):
                        found |= self._documents_below(folder, entry.name, key, prefix)
                elif key.startswith(prefix) and is_key(key):
                    found[key] = stamp_of(entry.stat(follow_symlinks=False))
        return found

    def _documents_below(self, parent: int, name: str, key: str, prefix: str) -> dict[str, str]:
        with _entered(parent, name) as folder:
            found = self._documents_in(folder, f"{key}/", prefix)
            return found if _stands(parent, name, folder) else {}

    def _scan(self, folder: int) -> Iterator[os.DirEntry[str]]:
        left = False
        with os.scandir(folder) as scan:
            for entry in scan:
                left = left or _is_remains(entry.name)
                yield entry
        if left:
            with suppress(OSError):  # a reader without write permission leaves it to a writer
                sweep_in(folder, disk=self._disk)
                sweep_trash_in(folder, disk=self._disk)


class Generations:
    """A generation mark for each space of a store: a small file that changes with every write.

    Readers compare it instead of checking every document. Marks are random, so that writers need not coordinate, and of
    one size, so that no write lacks space. They are not synced: after a power loss an old one may reappear, so the boot
    id is part of the generation.
    """

    def __init__(self, folder: Path, *, disk: Disk = DISK) -> None:
        self._folder = folder
        self._disk = disk

    def read(self, space: str) -> str:
        """A value that changes with every mark."""
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
        """Provides the function that marks the space, to be called after a change; what can fail fails before."""
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


def _is_remains(name: str) -> bool:
    """Whether a writer, alive or killed, uses the name while it works."""
    return is_temporary(name) or is_trash(name) or is_staged(name)


def stamp_of(status: os.stat_result) -> str:
    """A value that changes whenever the file does."""
    where, when = f"{status.st_dev:x}.{status.st_ino:x}", f"{status.st_mtime_ns:x}.{status.st_ctime_ns:x}"
    return f"{where}.{status.st_size:x}.{when}"


def _stands(parent: int, name: str, folder: int) -> bool:
    """Whether the folder still exists; if it was discarded while it was read, the listing may be incomplete."""
    try:
        return os.path.samestat(os.stat(name, dir_fd=parent, follow_symlinks=False), os.fstat(folder))
    except FileNotFoundError:
        return False


@contextmanager
def _entered(parent: int, name: str) -> Iterator[int]:
    descriptor = enter(parent, name)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _ends(key: str) -> tuple[str, str]:
    """The first and the last word of a key."""
    return key.partition("/")[0], key.rpartition("/")[2]
