"""Change files in the writable folders on behalf of a job, unless their name is protected.

A job that may write has no right of its own to change anything there: Landlock refuses it. The calls that would wait for
the supervisor, which reads the path once, judges it, and performs the call with its own copy. What a thread of the job
writes over the path meanwhile therefore changes nothing. A call that leads elsewhere goes on, to be judged by Landlock.

Every path is opened in the job's own view of the files, so that what is mounted read-only there stays so.
"""

# ruff: noqa: PTH101, PTH115, PTH118, PTH120, PTH123 - pathlib would take a third of the start
from __future__ import annotations

import errno
import fcntl
import functools
import json
import os
import stat
import struct

from toolcrib.infra.sandbox.child import system
from toolcrib.infra.sandbox.child.notifications import (
    DONE,
    GO_ON,
    LATER,
    Oversight,
    Sight,
    ask_about,
    can_perform,
    pick,
)
from toolcrib.lib.protected_names import is_in_repository, judge

TYPE_CHECKING = False  # see system
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, Self

    from toolcrib.infra.sandbox.child.notifications import Notice

    Numbers = tuple[int | None, int | None]

# The numbers are those of x86_64 and of aarch64.
CALLS: dict[str, Numbers] = {
    "open": (2, None),
    "openat": (257, 56),
    "creat": (85, None),
    "truncate": (76, 45),
    "mkdir": (83, None),
    "mkdirat": (258, 34),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "rmdir": (84, None),
    "unlink": (87, None),
    "unlinkat": (263, 35),
    "rename": (82, None),
    "renameat": (264, 38),
    "renameat2": (316, 276),
    "link": (86, None),
    "linkat": (265, 37),
    "symlink": (88, None),
    "symlinkat": (266, 36),
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
}
_RENAME = (316, 276)
_OPEN = 437  # openat2 has this number on both

# Those opened for nothing but reading never wait.
_CHANGES = os.O_ACCMODE | os.O_CREAT | os.O_TRUNC
_WITHOUT_NAME = 0o20000000
_NAME_ONLY = getattr(os, "O_PATH", 0)  # of Linux
_WORD = 0xFFFFFFFF
_STAY_ON_LINK, _REMOVE_FOLDER, _FOLLOW_LINK = 0x100, 0x200, 0x400
_EXCHANGE = 2
_NO_MAGIC, _NO_LINKS, _WITHIN_ROOT = 0x02, 0x04, 0x10
_MAX_LINKS = 40
_HERE = -100
_OF_PROCESSES = ("/proc",)
_NOT_OURS = (*_OF_PROCESSES, "/dev", "/sys")
_CAPABILITIES_VERSION = 0x20080522
_CAPABILITIES = (b"CapEff", b"CapPrm", b"CapInh")
_PROTECTED = errno.EPERM
_MODE, _OWNER = 0o7777, 0o700


def is_needed(walls: dict[str, Any]) -> bool:
    """Whether a job behind these walls changes files only through a broker."""
    return bool(walls["write"]) and not walls["open"]


@functools.cache
def _names() -> dict[int, str]:
    """The calls that change files, by their numbers here."""
    return {number: name for name, numbers in CALLS.items() if (number := pick(numbers)) is not None}


@functools.cache
def build_filter() -> list[bytes]:
    """What makes these calls wait, those that open a file only where they may change one."""
    flags = {"open": (1, _CHANGES), "openat": (2, _CHANGES)}
    conditions = {number: flags[name] for number, name in _names().items() if name in flags}
    return ask_about(_names(), conditions=conditions)


class Broker:
    """Answers the calls of one job that change files; those that are `covered` by other content stay where they are."""

    def __init__(self, walls: dict[str, Any], covered: Iterable[str] = ()) -> None:
        if not can_perform():
            raise OSError(
                "no job may write here: the kernel is older than 5.9 and cannot have the names of files judged"
            )
        self._walls = walls
        self._covered = tuple(covered)
        self._opened: list[str] = walls["opened"]
        self._own: tuple[str, ...] = _NOT_OURS
        self._root = -1
        self._roots: tuple[str, ...] = ()
        self._held: frozenset[str] = frozenset()
        self._capabilities = b""
        self.oversight = Oversight(self._meet)

    def report(self) -> list[list[object]]:
        """No effects: it takes note of nothing."""
        return []

    def begin(self, own: str) -> None:
        """Expect calls of the job, whose own folder this is."""
        self._own = (own, *_NOT_OURS)

    def leave(self) -> None:
        """Let go of the job's view of the files, and have the privileges back that were given up."""
        if self._root >= 0:
            os.close(self._root)
            self._root = -1
        if self._capabilities:
            _set_capabilities(self._capabilities)

    def answers(self, number: int) -> bool:
        """Whether it answers the calls with this number."""
        return number in _names()

    def answer(self, notice: Notice) -> int:
        """Perform a call that waits, refuse it, or let it go on."""
        call = _Call(_names()[notice.call], notice)
        try:
            if self._root < 0:
                self._enter(notice.process)
            return _PERFORMED[call.name](self, call)
        except _WaitsForReader:
            return LATER
        except OSError as problem:
            return problem.errno or errno.EIO
        except ValueError:
            return errno.EFAULT

    def open(self, call: _Call) -> int:
        """Open a file to be changed, or made."""
        flags, mode = call.flags_and_mode()
        access = flags & os.O_ACCMODE
        if flags & _NAME_ONLY or not flags & _CHANGES:
            return GO_ON
        if flags & os.O_TRUNC and access == os.O_RDONLY:  # older kernels let it through without the right to write
            return errno.EACCES
        is_new = bool(flags & os.O_CREAT and flags & os.O_EXCL)
        with self._find(call, *call.first, follow=not (flags & os.O_NOFOLLOW or is_new)) as place:
            if not self._is_ours(place.real):
                return GO_ON
            if flags & _WITHOUT_NAME:
                return errno.EOPNOTSUPP  # programs know what to do without
            if access != os.O_WRONLY and not _is_in(place.real, self._readable):
                return errno.EACCES
            self._refuse(place.real, is_folder=False)
            # Should it go at this moment, what is made in its place is its owner's alone.
            bits = mode & _OWNER if place.is_there else mode & _MODE & ~call.sight.umask()
            call.check()
            with _Opened(_open_file(place, flags, bits)) as file:
                # Closed here before the job goes on, which could not start it as a program while it is open for writing.
                return call.notice.give(file, close_on_exec=bool(flags & os.O_CLOEXEC))

    def rename(self, call: _Call) -> int:
        """Rename a file or folder, or exchange two."""
        old, new = call.both
        flags = call[4] & _WORD if call.name == "renameat2" else 0
        with self._find(call, *old) as source, self._find(call, *new) as target:
            if (answer := self._answer_to_move(source, target)) is not None:
                return answer
            if target.real in self._held:
                return errno.EBUSY
            for place in (source, target) if flags & _EXCHANGE else (source,):
                is_folder = place.is_folder()
                for each in (source, target):
                    self._refuse(each.real, is_folder=is_folder, moves=is_folder)
            call.check()
            names = os.fsencode(source.name), os.fsencode(target.name)
            system.invoke("syscall", pick(_RENAME), source.parent, names[0], target.parent, names[1], flags)
        return DONE

    def link(self, call: _Call) -> int:
        """Give a file another name."""
        old, new = call.both
        follow = call.name == "linkat" and bool(call[4] & _FOLLOW_LINK)
        with self._find(call, *old, follow=follow) as source, self._find(call, *new) as target:
            if (answer := self._answer_to_move(source, target)) is not None:
                return answer
            self._refuse(source.real, is_folder=False)
            self._refuse_new(target, is_folder=False)
            call.check()
            folders = {"src_dir_fd": source.parent, "dst_dir_fd": target.parent}
            os.link(source.name, target.name, **folders, follow_symlinks=False)
        return DONE

    def symlink(self, call: _Call) -> int:
        """Make a symbolic link."""
        target = call.sight.text(call[0])
        where = (None, 1) if call.name == "symlink" else (1, 2)
        return self._make(call, where, lambda place: os.symlink(target, place.name, dir_fd=place.parent))

    def make_folder(self, call: _Call) -> int:
        """Make a folder."""
        mode = call.after_path & _MODE & ~call.sight.umask()
        return self._make(
            call, call.first, lambda place: os.mkdir(place.name, mode, dir_fd=place.parent), is_folder=True
        )

    def make_node(self, call: _Call) -> int:
        """Make an empty file or a named pipe, and no device."""
        mode = call.after_path & _WORD
        if stat.S_IFMT(mode) not in {0, stat.S_IFREG, stat.S_IFIFO}:
            return errno.EACCES
        mode &= ~call.sight.umask()
        return self._make(call, call.first, lambda place: os.mknod(place.name, mode, dir_fd=place.parent))

    def remove(self, call: _Call) -> int:
        """Remove a file or an empty folder."""
        is_folder = call.name == "rmdir" or (call.name == "unlinkat" and bool(call.after_path & _REMOVE_FOLDER))
        with self._find(call, *call.first) as place:
            if not self._is_ours(place.real):
                return GO_ON
            if place.real in self._held:
                return errno.EBUSY
            if place.exists():
                self._refuse(place.real, is_folder=is_folder)
            call.check()
            remove = os.rmdir if is_folder else os.unlink
            remove(place.name, dir_fd=place.parent)
        return DONE

    def truncate(self, call: _Call) -> int:
        """Cut a file off; only from Landlock's third version on does that need a right of its own."""
        size = call.after_path
        if size > self._walls["disk_bytes"]:  # the limit of the job, which does not hold for us
            return errno.EFBIG
        with self._find(call, *call.first, follow=True) as place:
            if self._is_ours(place.real):
                self._refuse(place.real, is_folder=False)
            elif not _is_in(place.real, self._own[:1]):
                return errno.EACCES
            call.check()
            with _Opened(_open_file(place, os.O_WRONLY, 0)) as file:
                os.ftruncate(file, size)
        return DONE

    def change_mode(self, call: _Call) -> int:
        """Change the mode of a file, about which Landlock knows nothing; what is read-only to the job stays so."""
        if call.name == "fchmod":
            with _Opened(call.sight.descriptor(call[0])) as file:
                return self._give_mode(call, file, call[1] & _MODE)
        follow = call.name != "fchmodat2" or not call[3] & _STAY_ON_LINK
        with self._find(call, *call.first, follow=follow) as place:
            if place.parent < 0:
                return errno.EPERM
            name = os.open(place.name, _NAME_ONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place.parent)
            with _Opened(name) as file:
                return self._give_mode(call, file, call.after_path & _MODE)

    def _meet(self, words: bytes) -> Callable[[Notice], int]:
        self.begin(json.loads(words)["own"])
        return self.answer

    def _enter(self, process: int) -> None:
        """Take the view of a process of the job, which is the same for all of them, and no more privilege than it has."""
        self._root = os.open(f"/proc/{process}/root", _NAME_ONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        walls = self._walls
        self._roots = _real(walls["write"])
        # With one of them renamed, or the folder around it, something else could take its place.
        kept = _real([*walls["fixed"], *walls["closed"], *walls["masked"], *self._covered])
        self._held = frozenset(_with_folders(kept, self._roots))
        os.umask(0)  # that of the job holds
        self._capabilities = _give_up_capabilities()

    @functools.cached_property
    def _readable(self) -> tuple[str, ...]:
        return _real(set(self._walls["read"]).difference(self._walls["listed"]))

    def _find(self, call: _Call, folder: int | None, path: int, *, follow: bool = False) -> _Place:
        """Where a path leads in the job's view, read once; the folder around it is held open, wherever it is moved to."""
        text = call.sight.text(call[path])
        if not text:
            raise OSError(errno.ENOENT, "no path")
        if not text.startswith("/"):
            text = f"{call.sight.folder(_HERE if folder is None else call[folder])}/{text}"
        for _ in range(_MAX_LINKS):
            head, _, name = text.rstrip("/").rpartition("/")
            if name in {"", ".", ".."} or not text.startswith("/"):
                break
            try:
                parent = self._open_folder(head, _NO_MAGIC)
            except OSError as problem:
                if problem.errno == errno.ELOOP:
                    break
                raise
            place = _Place(parent, name, os.readlink(f"/proc/self/fd/{parent}"))
            if _is_in(place.real, _OF_PROCESSES):  # it has words for the process that asks, which are ours here
                place.close()
                break
            target = place.read_link() if follow else ""
            if not target:
                return place
            place.close()
            text = target if target.startswith("/") else f"{os.path.dirname(place.real)}/{target}"
        return self._find_by_sight(call, folder, path, follow=follow)

    def _find_by_sight(self, call: _Call, folder: int | None, path: int, *, follow: bool) -> _Place:
        """As `_find`, link by link, for what leads through a process or ends in no name."""
        real = call.sight.path(None if folder is None else call[folder], call[path], follow=follow)
        head, _, name = real.rpartition("/")
        if not name or not (self._is_ours(real) or _is_in(real, self._own[:1])):
            return _Place(-1, "", real)
        parent = self._open_folder(head, _NO_LINKS)
        return _Place(parent, name, os.readlink(f"/proc/self/fd/{parent}"))

    def _open_folder(self, path: str, links: int) -> int:
        how = struct.pack("=3Q", _NAME_ONLY | os.O_DIRECTORY | os.O_CLOEXEC, 0, _WITHIN_ROOT | links)
        return system.invoke("syscall", _OPEN, self._root, os.fsencode(path or "/"), how, len(how))

    def _answer_to_move(self, source: _Place, target: _Place) -> int | None:
        """The answer if not both lie where the job may write, or the former is not to be moved."""
        ours = self._is_ours(source.real), self._is_ours(target.real)
        if not any(ours):
            return GO_ON
        if not all(ours):
            return errno.EXDEV
        return errno.EBUSY if source.real in self._held else None

    def _make(
        self,
        call: _Call,
        where: tuple[int | None, int],
        make: Callable[[_Place], None],
        *,
        is_folder: bool = False,
    ) -> int:
        with self._find(call, *where) as place:
            if not self._is_ours(place.real):
                return GO_ON
            self._refuse_new(place, is_folder=is_folder)
            call.check()
            make(place)
        return DONE

    def _give_mode(self, call: _Call, file: int, mode: int) -> int:
        real = os.readlink(f"/proc/self/fd/{file}")
        if self._is_ours(real):
            self._refuse(real, is_folder=stat.S_ISDIR(os.fstat(file).st_mode))
        call.check()
        os.chmod(f"/proc/self/fd/{file}", mode)
        return DONE

    def _is_ours(self, path: str) -> bool:
        """Whether the path, which has no links in it, lies where the job may write."""
        return _is_in(path, self._roots) and not _is_in(path, self._own)

    def _refuse(self, real: str, *, is_folder: bool, moves: bool = False) -> None:
        """Raise OSError if the name is protected; a folder that `moves` carries names along, so none leaves or enters a repository."""
        root = max((root for root in self._roots if _is_in(real, (root,))), key=len)
        path, is_repository = real[len(root) :], Mark(root)
        hooks: list[str] = self._walls["hooks"]
        if judge(path, opened=self._opened, hooks=hooks, is_folder=is_folder, is_repository=is_repository):
            raise OSError(_PROTECTED, "protected")
        if moves and is_in_repository(path, is_repository):
            raise OSError(_PROTECTED, "in a repository")

    def _refuse_new(self, place: _Place, *, is_folder: bool) -> None:
        """Raise OSError if there is something already, or never may be."""
        if place.exists():
            raise OSError(errno.EEXIST, "exists")
        self._refuse(place.real, is_folder=is_folder)


_PERFORMED: dict[str, Callable[[Broker, _Call], int]] = {
    **dict.fromkeys(("open", "openat", "creat"), Broker.open),
    **dict.fromkeys(("rename", "renameat", "renameat2"), Broker.rename),
    **dict.fromkeys(("link", "linkat"), Broker.link),
    **dict.fromkeys(("symlink", "symlinkat"), Broker.symlink),
    **dict.fromkeys(("mkdir", "mkdirat"), Broker.make_folder),
    **dict.fromkeys(("mknod", "mknodat"), Broker.make_node),
    **dict.fromkeys(("unlink", "unlinkat", "rmdir"), Broker.remove),
    "truncate": Broker.truncate,
    **dict.fromkeys(("chmod", "fchmod", "fchmodat", "fchmodat2"), Broker.change_mode),
}


class _Call:
    """A call that waits, with what its process means by its arguments."""

    __slots__ = ("name", "notice", "sight")

    def __init__(self, name: str, notice: Notice) -> None:
        self.name = name
        self.notice = notice
        self.sight = Sight(notice.process)

    def __getitem__(self, place: int) -> int:
        return self.notice.arguments[place]

    @property
    def first(self) -> tuple[int | None, int]:
        """Where the folder and the path stand among the arguments."""
        return (0, 1) if self._has_folder else (None, 0)

    @property
    def both(self) -> tuple[tuple[int | None, int], tuple[int | None, int]]:
        """Where two folders and paths stand."""
        return ((0, 1), (2, 3)) if self._has_folder else ((None, 0), (None, 1))

    @property
    def after_path(self) -> int:
        """The argument behind the path."""
        return self[self.first[1] + 1]

    def flags_and_mode(self) -> tuple[int, int]:
        """Of a call that opens."""
        if self.name == "creat":
            return os.O_CREAT | os.O_WRONLY | os.O_TRUNC, self[1]
        flags = self.first[1] + 1
        return self[flags] & _WORD, self[flags + 1]

    def check(self) -> None:
        """What was read is the call's own only if it still waits: the number of a process that ended is soon another's."""
        if not self.notice.still_waits():
            raise OSError(errno.ESRCH, "gone")

    @property
    def _has_folder(self) -> bool:
        return "at" in self.name and self.name not in {"creat", "truncate"}


class Mark:
    """Tells whether a folder below this root holds what makes it a repository: a file or a link of that name."""

    def __init__(self, root: str) -> None:
        self._root = root

    def __call__(self, folder: str) -> bool:
        """Whether it is one."""
        try:
            facts = os.lstat(os.path.join(self._root, folder.lstrip("/"), "HEAD"))
        except OSError:
            return False
        return not stat.S_ISDIR(facts.st_mode)


class _Opened:
    """A descriptor that is closed when the block is left."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __enter__(self) -> int:
        return self._descriptor

    def __exit__(self, *exception: object) -> None:
        os.close(self._descriptor)


class _WaitsForReader(Exception):  # noqa: N818 - it says what is the matter
    """A pipe is to be opened for writing that no process has open for reading yet."""


class _Place:
    """A name in a folder that is held open, with the path of both; without a folder it is no file's.

    `is_there` says that something was seen to have the name.
    """

    __slots__ = ("is_there", "name", "parent", "real")

    def __init__(self, parent: int, name: str, folder: str) -> None:
        self.is_there = False
        self.parent = parent
        self.name = name
        self.real = f"{folder.rstrip('/')}/{name}" if name else folder

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the folder."""
        if self.parent >= 0:
            os.close(self.parent)
            self.parent = -1

    def exists(self) -> bool:
        """Whether anything has the name."""
        try:
            os.stat(self.name, dir_fd=self.parent, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def is_folder(self) -> bool:
        """Whether a folder has the name; raises OSError if nothing has."""
        return stat.S_ISDIR(os.stat(self.name, dir_fd=self.parent, follow_symlinks=False).st_mode)

    def is_pipe(self) -> bool:
        """Whether a named pipe has the name."""
        return stat.S_ISFIFO(os.stat(self.name, dir_fd=self.parent, follow_symlinks=False).st_mode)

    def read_link(self) -> str:
        """Where a link of this name leads; empty if there is none."""
        try:
            return os.readlink(self.name, dir_fd=self.parent)
        except OSError as problem:
            self.is_there = problem.errno == errno.EINVAL
            return ""


def _open_file(place: _Place, flags: int, mode: int) -> int:
    """Open the file itself, without waiting for anything."""
    asked = flags & ~(os.O_CLOEXEC | os.O_NONBLOCK)
    quick = asked | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
    try:
        file = os.open(place.name, quick, mode, dir_fd=place.parent)
    except OSError as problem:
        if problem.errno == errno.ENXIO and not flags & os.O_NONBLOCK and place.is_pipe():
            raise _WaitsForReader from problem
        raise
    kind = os.fstat(file).st_mode
    if not (stat.S_ISREG(kind) or stat.S_ISFIFO(kind)):
        os.close(file)
        raise OSError(errno.EACCES, "neither a file nor a pipe")
    if not flags & os.O_NONBLOCK:
        fcntl.fcntl(file, fcntl.F_SETFL, fcntl.fcntl(file, fcntl.F_GETFL) & ~os.O_NONBLOCK)
    return file


def _real(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(os.path.realpath, paths)))


def _is_in(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder.rstrip('/')}/") for folder in folders)


def _with_folders(paths: Iterable[str], roots: Iterable[str]) -> Iterator[str]:
    """These paths and the folders around them, up to the writable ones."""
    for root in roots:
        for path in paths:
            place = path
            while place != root and _is_in(place, (root,)):
                yield place
                place = os.path.dirname(place)
        yield root


def _give_up_capabilities() -> bytes:
    """Have no more privilege than the job, until it has ended; what there was before, empty if there was none."""
    held = {}
    with open("/proc/self/status", "rb") as file:
        for line in file:
            name, _, value = line.partition(b":")
            if name in _CAPABILITIES:
                held[name] = int(value, 16)
    effective, permitted, inheritable = (held.get(name, 0) for name in _CAPABILITIES)
    if not effective:
        return b""
    _set_capabilities(_pack_capabilities(0, permitted, inheritable))
    return _pack_capabilities(effective, permitted, inheritable)


def _pack_capabilities(*sets: int) -> bytes:
    """The kernel takes the lower halves of the three sets first."""
    return struct.pack("=6I", *(each & _WORD for each in sets), *(each >> 32 for each in sets))


def _set_capabilities(capabilities: bytes) -> None:
    system.invoke("capset", struct.pack("=Ii", _CAPABILITIES_VERSION, 0), capabilities)
