"""Change files in the writable folders on behalf of a job, unless their name is protected.

Landlock denies a job that may write every change of its own there. Its system calls are notified to the supervisor,
which reads the path once, checks it, and performs the call with its own copy. Another thread of the job that overwrites
the path meanwhile changes nothing. A call on any other path continues and is checked by Landlock.

A job that may use `only` some names there can read nothing by itself either: every file that it opens is notified.

Every path is opened through the job's own root, so that its read-only mounts apply.
"""

# ruff: noqa: PTH101, PTH115, PTH120, PTH123 - pathlib would take a third of the start
from __future__ import annotations

import errno
import functools
import json
import os
import stat
import struct

from toolcrib.infra.sandbox import system
from toolcrib.infra.sandbox.child.broker_files import (
    Opened,
    Place,
    RepositoryMarker,
    WaitsForReader,
    open_file,
    with_folders,
)
from toolcrib.infra.sandbox.child.notifications import (
    DONE,
    GO_ON,
    LATER,
    NotificationListener,
    ProcessView,
    ask_about,
    can_perform,
    pick,
)
from toolcrib.lib.protected_names import judge

TYPE_CHECKING = False  # see system
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from toolcrib.infra.sandbox.child.notifications import Notice

    Numbers = tuple[int | None, int | None]

# The numbers for x86_64 and aarch64.
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

# Calls that only open for reading are not notified.
_CHANGES = os.O_ACCMODE | os.O_CREAT | os.O_TRUNC
_WITHOUT_NAME = 0o20000000
_NAME_ONLY = getattr(os, "O_PATH", 0)  # Linux only
_WORD = 0xFFFFFFFF
_STAY_ON_LINK, _REMOVE_FOLDER, _FOLLOW_LINK = 0x100, 0x200, 0x400
_EXCHANGE = 2
_NO_MAGIC, _NO_LINKS, _WITHIN_ROOT = 0x02, 0x04, 0x10
_MAX_LINKS = 40
_HERE = -100
_OF_PROCESSES = ("/proc",)
_NOT_OURS = (*_OF_PROCESSES, "/dev", "/sys")
_CAPABILITIES = (b"CapEff", b"CapPrm", b"CapInh")
_PROTECTED = errno.EPERM
# How many refused paths are named, at most.
_MOST_REFUSED = 3
_MODE, _OWNER = 0o7777, 0o700


def is_needed(policy: dict[str, Any]) -> bool:
    """Whether a job under this policy changes files only through a broker."""
    return bool(policy["write"]) and not policy["unconfined"]


@functools.cache
def _names() -> dict[int, str]:
    """The calls that change files, by their numbers on this architecture."""
    return {number: name for name, numbers in CALLS.items() if (number := pick(numbers)) is not None}


@functools.cache
def build_filter(*, reads: bool = False) -> list[bytes]:
    """The filter that notifies these calls; those that open a file only with flags that may change it, unless it also `reads`."""
    flags = {} if reads else {"open": (1, _CHANGES), "openat": (2, _CHANGES)}
    conditions = {number: flags[name] for number, name in _names().items() if name in flags}
    return ask_about(_names(), conditions=conditions)


class Broker:
    """Answer the calls of one job that change files; files `covered` by other content cannot be moved."""

    def __init__(self, policy: dict[str, Any], covered: Iterable[str] = ()) -> None:
        if not can_perform():
            raise OSError("no job may write here: checking file names needs Linux 5.9 or newer")
        self._policy = policy
        self._covered = tuple(covered)
        self._opened: list[str] = policy["opened"]
        self._only = frozenset(policy["only"])
        self._own: tuple[str, ...] = _NOT_OURS
        self._root = -1
        self._roots: tuple[str, ...] = ()
        self._held: frozenset[str] = frozenset()
        self._capabilities: tuple[int, ...] = ()
        self.refused: list[str] = []  # the first protected paths that the job tried to change
        self.notifications = NotificationListener(self._handshake)

    def report(self) -> list[list[object]]:
        """No effects: a broker does not record any."""
        return []

    def begin(self, own: str) -> None:
        """Prepare for calls of the job; `own` is its private folder."""
        self._own = (own, *_NOT_OURS)

    def leave(self) -> None:
        """Close the job's root and restore the capabilities that were dropped."""
        if self._root >= 0:
            os.close(self._root)
            self._root = -1
        if self._capabilities:
            system.set_capabilities(*self._capabilities)

    def answers(self, number: int) -> bool:
        """Whether it answers calls with this number."""
        return number in _names()

    def answer(self, notice: Notice) -> int:
        """Perform a pending call, refuse it, or let it continue."""
        call = _Call(_names()[notice.call], notice)
        try:
            if self._root < 0:
                self._enter(notice.process)
            return _PERFORMED[call.name](self, call)
        except WaitsForReader:
            return LATER
        except OSError as problem:
            return problem.errno or errno.EIO
        except ValueError:
            return errno.EFAULT

    def open(self, call: _Call) -> int:
        """Open a file for writing, or create it."""
        flags, mode = call.flags_and_mode()
        access = flags & os.O_ACCMODE
        if flags & _NAME_ONLY or not (flags & _CHANGES or self._only):
            return GO_ON
        if flags & os.O_TRUNC and access == os.O_RDONLY:  # older kernels allow this without the right to write
            return errno.EACCES
        is_new = bool(flags & os.O_CREAT and flags & os.O_EXCL)
        with self._find(call, *call.first, follow=not (flags & os.O_NOFOLLOW or is_new)) as place:
            if not self._is_ours(place.real):
                return GO_ON
            if flags & _WITHOUT_NAME:
                return errno.EOPNOTSUPP  # programs have a fallback
            if access != os.O_WRONLY and not self._only and not system.is_in(place.real, self._readable):
                return errno.EACCES
            self._refuse(place.real, is_folder=False)
            # If it is removed at this moment, the new file is accessible to its owner only.
            bits = mode & _OWNER if place.is_there else mode & _MODE & ~call.view.umask()
            call.check()
            with Opened(open_file(place, flags, bits)) as file:
                if self._only:
                    _refuse_second_name(file)
                # Closed here before the job continues, which could not execute a file that is open for writing.
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
            folders = [place.is_folder() for place in ((source, target) if flags & _EXCHANGE else (source,))]
            for is_folder in folders:
                for place in (source, target):
                    self._refuse(place.real, is_folder=is_folder)
            call.check()
            # With a slash the kernel refuses a file that another job put in the place of the folder meanwhile.
            ends = ["/" if is_folder else "" for is_folder in folders * 2]
            names = os.fsencode(source.name + ends[0]), os.fsencode(target.name + ends[1])
            system.invoke("syscall", pick(_RENAME), source.parent, names[0], target.parent, names[1], flags)
        return DONE

    def link(self, call: _Call) -> int:
        """Create a hard link."""
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
        """Create a symbolic link."""
        target = call.view.text(call[0])
        where = (None, 1) if call.name == "symlink" else (1, 2)
        return self._make(call, where, lambda place: os.symlink(target, place.name, dir_fd=place.parent))

    def make_folder(self, call: _Call) -> int:
        """Create a folder."""
        mode = call.after_path & _MODE & ~call.view.umask()
        return self._make(
            call, call.first, lambda place: os.mkdir(place.name, mode, dir_fd=place.parent), is_folder=True
        )

    def make_node(self, call: _Call) -> int:
        """Create an empty file or a named pipe, but no device."""
        mode = call.after_path & _WORD
        if stat.S_IFMT(mode) not in {0, stat.S_IFREG, stat.S_IFIFO}:
            return errno.EACCES
        mode &= ~call.view.umask()
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
                # A folder around what is protected is removed only if it is empty.
                self._refuse(place.real, is_folder=is_folder, is_new=is_folder)
            call.check()
            remove = os.rmdir if is_folder else os.unlink
            remove(place.name, dir_fd=place.parent)
        return DONE

    def truncate(self, call: _Call) -> int:
        """Truncate a file; before its third ABI version Landlock does not check that."""
        size = call.after_path
        if size > self._policy["disk_bytes"]:  # the job's RLIMIT_FSIZE does not apply to this process
            return errno.EFBIG
        with self._find(call, *call.first, follow=True) as place:
            if self._is_ours(place.real):
                self._refuse(place.real, is_folder=False)
            elif not system.is_in(place.real, self._own[:1]):
                return errno.EACCES
            call.check()
            with Opened(open_file(place, os.O_WRONLY, 0)) as file:
                os.ftruncate(file, size)
        return DONE

    def change_mode(self, call: _Call) -> int:
        """Change the mode of a file, which Landlock does not check; what is read-only to the job stays so."""
        if call.name == "fchmod":
            with Opened(call.view.descriptor(call[0])) as file:
                return self._give_mode(call, file, call[1] & _MODE)
        follow = call.name != "fchmodat2" or not call[3] & _STAY_ON_LINK
        with self._find(call, *call.first, follow=follow) as place:
            if place.parent < 0:
                return errno.EPERM
            name = os.open(place.name, _NAME_ONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place.parent)
            with Opened(name) as file:
                return self._give_mode(call, file, call.after_path & _MODE)

    def _handshake(self, words: bytes) -> Callable[[Notice], int]:
        self.begin(json.loads(words)["own"])
        return self.answer

    def _enter(self, process: int) -> None:
        """Open the root of a process of the job, shared by all of them, and drop to its privileges."""
        self._root = os.open(f"/proc/{process}/root", _NAME_ONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        policy = self._policy
        self._roots = system.real_paths(policy["write"])
        # If one of these or a folder around it were renamed, another file could take its place.
        kept = system.real_paths([*policy["fixed"], *policy["closed"], *policy["masked"], *self._covered])
        self._held = frozenset(with_folders(kept, self._roots))
        os.umask(0)  # the umask of the job applies
        self._capabilities = _give_up_capabilities()

    @functools.cached_property
    def _readable(self) -> tuple[str, ...]:
        return system.real_paths(set(self._policy["read"]).difference(self._policy["listed"]))

    def _find(self, call: _Call, folder: int | None, path: int, *, follow: bool = False) -> Place:
        """Resolve a path in the job's view, read once, and keep its folder open, wherever that is moved."""
        text = call.view.text(call[path])
        if not text:
            raise OSError(errno.ENOENT, "no path")
        if not text.startswith("/"):
            text = f"{call.view.folder(_HERE if folder is None else call[folder])}/{text}"
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
            place = Place(parent, name, os.readlink(f"/proc/self/fd/{parent}"))
            if system.is_in(place.real, _OF_PROCESSES):  # links in it depend on the reading process
                place.close()
                break
            target = place.read_link() if follow else ""
            if not target:
                return place
            place.close()
            text = target if target.startswith("/") else f"{os.path.dirname(place.real)}/{target}"
        return self._find_through_process(call, folder, path, follow=follow)

    def _find_through_process(self, call: _Call, folder: int | None, path: int, *, follow: bool) -> Place:
        """As `_find`, link by link, for paths through /proc or without a final name."""
        real = call.view.path(None if folder is None else call[folder], call[path], follow=follow)
        head, _, name = real.rpartition("/")
        if not name or not (self._is_ours(real) or system.is_in(real, self._own[:1])):
            return Place(-1, "", real)
        parent = self._open_folder(head, _NO_LINKS)
        return Place(parent, name, os.readlink(f"/proc/self/fd/{parent}"))

    def _open_folder(self, path: str, links: int) -> int:
        how = struct.pack("=3Q", _NAME_ONLY | os.O_DIRECTORY | os.O_CLOEXEC, 0, _WITHIN_ROOT | links)
        return system.invoke("syscall", _OPEN, self._root, os.fsencode(path or "/"), how, len(how))

    def _answer_to_move(self, source: Place, target: Place) -> int | None:
        """The answer if not both paths are writable for the job, or the source must not be moved."""
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
        make: Callable[[Place], None],
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
        """Whether the path, which contains no links, is writable for the job."""
        return system.is_in(path, self._roots) and not system.is_in(path, self._own)

    def _refuse(self, real: str, *, is_folder: bool, is_new: bool = False) -> None:
        """Raise OSError if the name is protected."""
        if self._only:
            if is_folder or real not in self._only:
                raise OSError(_PROTECTED, "not one of its names")
            return
        root = max((root for root in self._roots if system.is_in(real, (root,))), key=len)
        if judge(
            real[len(root) :],
            opened=self._opened,
            hooks=self._policy["hooks"],
            is_folder=is_folder,
            is_new_folder=is_folder and is_new,
            is_repository=RepositoryMarker(root),
        ):
            path = real[len(root) :].lstrip("/")
            if path not in self.refused and len(self.refused) < _MOST_REFUSED:
                self.refused.append(path)
            raise OSError(_PROTECTED, "protected")

    def _refuse_new(self, place: Place, *, is_folder: bool) -> None:
        """Raise OSError if the path exists or is protected."""
        if place.exists():
            raise OSError(errno.EEXIST, "exists")
        self._refuse(place.real, is_folder=is_folder, is_new=True)


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
    """A pending call, with access to its process."""

    __slots__ = ("name", "notice", "view")

    def __init__(self, name: str, notice: Notice) -> None:
        self.name = name
        self.notice = notice
        self.view = ProcessView(notice.process)

    def __getitem__(self, place: int) -> int:
        return self.notice.arguments[place]

    @property
    def first(self) -> tuple[int | None, int]:
        """The indexes of the folder and path arguments."""
        return (0, 1) if self._has_folder else (None, 0)

    @property
    def both(self) -> tuple[tuple[int | None, int], tuple[int | None, int]]:
        """The indexes of both pairs of folder and path arguments."""
        return ((0, 1), (2, 3)) if self._has_folder else ((None, 0), (None, 1))

    @property
    def after_path(self) -> int:
        """The argument after the path."""
        return self[self.first[1] + 1]

    def flags_and_mode(self) -> tuple[int, int]:
        """The flags and the mode of a call that opens a file."""
        if self.name == "creat":
            return os.O_CREAT | os.O_WRONLY | os.O_TRUNC, self[1]
        flags = self.first[1] + 1
        return self[flags] & _WORD, self[flags + 1]

    def check(self) -> None:
        """Check that the call is still pending, so that its process ID was not reused while reading."""
        if not self.notice.still_waits():
            raise OSError(errno.ESRCH, "gone")

    @property
    def _has_folder(self) -> bool:
        return "at" in self.name and self.name not in {"creat", "truncate"}


def _refuse_second_name(file: int) -> None:
    """Raise OSError for a file that has another name, which may be none of the job's."""
    facts = os.fstat(file)
    if stat.S_ISREG(facts.st_mode) and facts.st_nlink > 1:
        raise OSError(_PROTECTED, "has another name")


def _give_up_capabilities() -> tuple[int, ...]:
    """Drop to the privileges of the job until it has ended; returns the previous capabilities, if any."""
    held = {}
    with open("/proc/self/status", "rb") as file:
        for line in file:
            name, _, value = line.partition(b":")
            if name in _CAPABILITIES:
                held[name] = int(value, 16)
    effective, permitted, inheritable = (held.get(name, 0) for name in _CAPABILITIES)
    if not effective:
        return ()
    system.set_capabilities(0, permitted, inheritable)
    return effective, permitted, inheritable
