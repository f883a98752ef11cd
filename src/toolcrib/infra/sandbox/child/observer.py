"""Observe what a job does: decode its system calls into effects on files, connections and programs."""

from __future__ import annotations

import errno
import json
import os
import socket
import struct

from toolcrib.infra.sandbox import system
from toolcrib.infra.sandbox.child import seccomp
from toolcrib.infra.sandbox.child.notifications import (
    EXECVE,
    EXECVEAT,
    GO_ON,
    LATER,
    SENDMSG,
    NotificationListener,
    ProcessView,
    Starts,
    pick,
)

TYPE_CHECKING = False  # see system

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from toolcrib.infra.sandbox.child.broker import Broker
    from toolcrib.infra.sandbox.child.notifications import Notice

    Numbers = tuple[int | None, int | None]
    Place = tuple[int | None, int | None, int]

READ, WRITE, CONNECT, START = "read", "write", "connect", "start"
UNREADABLE = "(it could not be read)"
MAX_EFFECTS = 10_000
MAX_CHARACTERS = 2_000_000
MORE = "more"  # stands for all effects beyond the limit
# Devices and files that every process may use.
_DEVICES = frozenset(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty"))
_OWN_PROCESS = "/proc/self"
_KIND, _CONNECTED = 0xF, frozenset({socket.SOCK_STREAM, socket.SOCK_SEQPACKET})
_REFUSED = frozenset({errno.EPERM, errno.EACCES})
_REACHABLE = ("inet", "127.", "[::1]")  # in its own network namespace


class Observer:
    """Record the effects of a job's system calls, and refuse those that a filter would refuse.

    `is_program` says that the job starts with an execve, which is not an effect. `broker` performs the calls that
    change files, if the job may write.
    """

    def __init__(self, policy: dict[str, Any], *, is_program: bool, broker: Broker | None = None) -> None:
        self._broker = broker
        self._policy = policy
        self._calls = observed_calls()
        self._access = AccessRules(policy, "")
        self._has_mounts = False
        self._may_start = Starts(None if policy["programs"] else int(is_program))
        self._begins = is_program
        self._room = MAX_CHARACTERS
        self._seen: dict[tuple[str, str], bool] = {}
        self.notifications = NotificationListener(self._handshake)

    def report(self) -> list[list[object]]:
        """Every effect once: act, target, and whether it was denied."""
        return [[act, what, denied] for (act, what), denied in self._seen.items()]

    @property
    def refused(self) -> list[str]:
        """The protected paths that the broker refused to change."""
        return [] if self._broker is None else self._broker.refused

    def leave(self) -> None:
        """Release the broker."""
        if self._broker is not None:
            self._broker.leave()

    def _handshake(self, words: bytes) -> Callable[[Notice], int]:
        facts = json.loads(words)
        self._access = AccessRules(self._policy, facts["own"])
        self._has_mounts = facts["mounts"]
        if self._broker is not None:
            self._broker.begin(facts["own"])
        return self._answer

    def _answer(self, notice: Notice) -> int:
        """Record the effects of a call and return its answer."""
        name = self._calls[notice.call]
        is_start = name in STARTS
        answer = self._may_start(notice) if is_start else self._refusal(name, notice.arguments)
        if is_start and self._begins:
            self._begins = False
            return answer
        effects = read_call(name, notice)
        if answer == GO_ON and self._broker is not None and self._broker.answers(notice.call):
            answer = self._broker.answer(notice)
        if answer != LATER and notice.still_waits():
            for act, what in effects:
                self._note(act, what, refused=answer in _REFUSED)
        return answer

    def _refusal(self, name: str, arguments: tuple[int, ...]) -> int:
        network = self._policy["network"]
        # Without network no socket is ever connected; unix sockets may be created so that their target is recorded.
        if name == "socket" and not network and arguments[0] == socket.AF_UNIX and arguments[1] & _KIND in _CONNECTED:
            return GO_ON
        refused = seccomp.refuses(name, arguments, network=network, mounts=self._has_mounts)
        return errno.EPERM if refused else GO_ON

    def _note(self, act: str, what: str, *, refused: bool) -> None:
        # A path may contain any byte; the report is text.
        key = act, os.fsencode(what).decode("utf-8", "replace")
        if (act in {READ, WRITE} and self._access.is_own(what)) or key in self._seen or (MORE, "") in self._seen:
            return
        self._room -= len(what)
        if self._room < 0 or len(self._seen) >= MAX_EFFECTS:
            self._seen[MORE, ""] = False
            return
        self._seen[key] = refused or self._is_denied(act, what)

    def _is_denied(self, act: str, what: str) -> bool:
        """Derived from the policy, because the result of a call that continues is unknown."""
        if act == CONNECT:
            return not (self._policy["network"] and what.startswith(_REACHABLE))
        if act == START:
            return not (self._policy["programs"] and self._access.may_read(what))
        return not (self._access.may_read(what) if act == READ else self._access.may_write(what))


class AccessRules:
    """The policy applied to paths without links; `own` is the job's private folder."""

    def __init__(self, policy: dict[str, Any], own: str) -> None:
        self._own = (*system.real_paths([own] if own else []), _OWN_PROCESS)
        self._read = system.real_paths(policy["read"])
        self._write = system.real_paths(policy["write"])
        self._closed = system.real_paths(policy["closed"])
        self._fixed = system.real_paths(policy["fixed"])

    def is_own(self, path: str) -> bool:
        """Whether it belongs to the job: its folder, its process, a pipe, memory."""
        is_file = path.startswith("/") and not path.startswith("/memfd:")
        return path != UNREADABLE and (not is_file or path in _DEVICES or system.is_in(path, self._own))

    def may_read(self, path: str) -> bool:
        """Whether the policy allows reading it."""
        return system.is_in(path, (*self._read, *self._own)) and not system.is_in(path, self._closed)

    def may_write(self, path: str) -> bool:
        """Whether the policy allows changing it."""
        return system.is_in(path, self._write) and not system.is_in(path, (*self._closed, *self._fixed))


# Decoding system calls: what they open and change, which addresses they use, what they start.

# The numbers for x86_64 and aarch64.
STARTS: dict[str, Numbers] = {"execve": EXECVE, "execveat": EXECVEAT}
CONNECTIONS: dict[str, Numbers] = {
    "socket": (41, 198),
    "connect": (42, 203),
    "bind": (49, 200),
    "sendto": (44, 206),
    "sendmsg": SENDMSG,
    "sendmmsg": (307, 269),
}
OPENINGS: dict[str, Numbers] = {"open": (2, None), "openat": (257, 56), "openat2": (437, 437)}
# The paths that a call changes: the index of the folder argument, of the path argument, and whether a final link is
# followed or which argument decides it.
_FOLLOW, _STAY = -1, -2
CHANGES: dict[str, tuple[Numbers, tuple[Place, ...]]] = {
    "creat": ((85, None), ((None, 0, _FOLLOW),)),
    "truncate": ((76, 45), ((None, 0, _FOLLOW),)),
    "mkdir": ((83, None), ((None, 0, _STAY),)),
    "mkdirat": ((258, 34), ((0, 1, _STAY),)),
    "mknod": ((133, None), ((None, 0, _STAY),)),
    "mknodat": ((259, 33), ((0, 1, _STAY),)),
    "rmdir": ((84, None), ((None, 0, _STAY),)),
    "unlink": ((87, None), ((None, 0, _STAY),)),
    "unlinkat": ((263, 35), ((0, 1, _STAY),)),
    "rename": ((82, None), ((None, 0, _STAY), (None, 1, _STAY))),
    "renameat": ((264, 38), ((0, 1, _STAY), (2, 3, _STAY))),
    "renameat2": ((316, 276), ((0, 1, _STAY), (2, 3, _STAY))),
    "link": ((86, None), ((None, 0, _STAY), (None, 1, _STAY))),
    "linkat": ((265, 37), ((0, 1, _STAY), (2, 3, _STAY))),
    "symlink": ((88, None), ((None, 1, _STAY),)),
    "symlinkat": ((266, 36), ((1, 2, _STAY),)),
    "chmod": ((90, None), ((None, 0, _FOLLOW),)),
    "fchmod": ((91, 52), ((0, None, _FOLLOW),)),
    "fchmodat": ((268, 53), ((0, 1, _FOLLOW),)),
    "fchmodat2": ((452, 452), ((0, 1, 3),)),
    "chown": ((92, None), ((None, 0, _FOLLOW),)),
    "lchown": ((94, None), ((None, 0, _STAY),)),
    "fchown": ((93, 55), ((0, None, _FOLLOW),)),
    "fchownat": ((260, 54), ((0, 1, 4),)),
    "utime": ((132, None), ((None, 0, _FOLLOW),)),
    "utimes": ((235, None), ((None, 0, _FOLLOW),)),
    "futimesat": ((261, None), ((0, 1, _FOLLOW),)),
    "utimensat": ((280, 88), ((0, 1, 3),)),
    "setxattr": ((188, 5), ((None, 0, _FOLLOW),)),
    "lsetxattr": ((189, 6), ((None, 0, _STAY),)),
    "fsetxattr": ((190, 7), ((0, None, _FOLLOW),)),
    "setxattrat": ((463, 463), ((0, 1, 2),)),
    "removexattr": ((197, 14), ((None, 0, _FOLLOW),)),
    "lremovexattr": ((198, 15), ((None, 0, _STAY),)),
    "fremovexattr": ((199, 16), ((0, None, _FOLLOW),)),
    "removexattrat": ((466, 466), ((0, 1, 2),)),
    "file_setattr": ((469, 469), ((0, 1, 4),)),
}
_STAY_ON_LINK = 0x100  # AT_SYMLINK_NOFOLLOW
_ADDRESS_BYTES = 128
_MESSAGE_HEAD = struct.Struct("=QI")
_MESSAGE_BYTES = 64
_MAX_MESSAGES = 1024  # the kernel sends no more at once


def observed_calls() -> dict[int, str]:
    """The calls with effects, by their numbers on this architecture."""
    changes = {name: numbers for name, (numbers, _) in CHANGES.items()}
    everything = {**STARTS, **CONNECTIONS, **OPENINGS, **changes}
    return {number: name for name, numbers in everything.items() if (number := pick(numbers)) is not None}


def read_call(name: str, notice: Notice) -> list[tuple[str, str]]:
    """The effects of the call: act, and path, address or program.

    Arguments that cannot be read are reported as unreadable, not left out.
    """
    try:
        return list(_read(name, ProcessView(notice.process), notice.arguments))
    except (OSError, ValueError):
        return [(_act_of(name), UNREADABLE)]


def _act_of(name: str) -> str:
    if name in STARTS:
        return START
    if name in CONNECTIONS:
        return CONNECT
    return WRITE if name in CHANGES else READ


def _read(name: str, view: ProcessView, arguments: tuple[int, ...]) -> Iterator[tuple[str, str]]:
    if name in CHANGES:
        for place in CHANGES[name][1]:
            yield WRITE, _changed(view, arguments, place)
    elif name in OPENINGS:
        yield from _opened(view, *_opening(name, view, arguments))
    elif name in STARTS:
        folder, path = (None, arguments[0]) if name == "execve" else arguments[:2]
        yield START, view.path(folder, path, follow=True)
    elif name == "socket":
        if arguments[0] != socket.AF_UNIX:  # harmless before it is connected
            yield CONNECT, _family(arguments[0])
    else:
        for address, size in _addresses(name, view, arguments):
            if text := _address(view.read(address, min(size, _ADDRESS_BYTES)) if size else b""):
                yield CONNECT, text


def _changed(view: ProcessView, arguments: tuple[int, ...], place: Place) -> str:
    folder, path, follow = place
    stays = follow == _STAY or (follow >= 0 and bool(arguments[follow] & _STAY_ON_LINK))
    # Without a path such a call means the descriptor itself.
    address = None if path is None or arguments[path] == 0 else arguments[path]
    return view.path(None if folder is None else arguments[folder], address, follow=not stays)


def _opening(name: str, view: ProcessView, arguments: tuple[int, ...]) -> tuple[int | None, int, int]:
    """The folder, path and flags of a call that opens a file."""
    if name == "open":
        return None, arguments[0], arguments[1]
    if name == "openat":
        return arguments[0], arguments[1], arguments[2]
    (flags,) = struct.unpack("=Q", view.read(arguments[2], 8))
    return arguments[0], arguments[1], flags


def _opened(view: ProcessView, folder: int | None, path: int, flags: int) -> Iterator[tuple[str, str]]:
    if flags & os.O_PATH:  # O_PATH neither reads nor changes the file
        return
    found = view.path(folder, path, follow=not flags & os.O_NOFOLLOW)
    access = flags & os.O_ACCMODE
    if access != os.O_WRONLY:
        yield READ, found
    if access != os.O_RDONLY or flags & (os.O_CREAT | os.O_TRUNC):
        yield WRITE, found


def _addresses(name: str, view: ProcessView, arguments: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """The memory locations of the call's socket addresses, with their sizes."""
    if name in {"connect", "bind"}:
        yield arguments[1], arguments[2]
    elif name == "sendto":
        yield arguments[4], arguments[5]
    else:
        count = min(arguments[2] & 0xFFFFFFFF, _MAX_MESSAGES) if name == "sendmmsg" else 1
        for number in range(count):
            head = view.read(arguments[1] + number * _MESSAGE_BYTES, _MESSAGE_HEAD.size)
            if len(head) < _MESSAGE_HEAD.size:
                raise ValueError("the message is not there")
            yield _MESSAGE_HEAD.unpack(head)


def _address(data: bytes) -> str:
    """Format a socket address; empty for none, as of a message on a connected socket."""
    if len(data) < 2:  # noqa: PLR2004 - sa_family
        return ""
    (tree,) = struct.unpack("=H", data[:2])
    if tree == socket.AF_INET:
        return f"{socket.inet_ntop(tree, data[4:8])}:{int.from_bytes(data[2:4])}"
    if tree == socket.AF_INET6:
        return f"[{socket.inet_ntop(tree, data[8:24])}]:{int.from_bytes(data[2:4])}"
    if tree == socket.AF_UNIX:
        name = data[2:]
        return "unix:" + os.fsdecode(b"@" + name[1:] if name[:1] == b"\0" else name.partition(b"\0")[0])
    return "" if tree == socket.AF_UNSPEC else _family(tree)


def _family(number: int) -> str:
    """The name of an address family, such as `inet`."""
    try:
        return socket.AddressFamily(number).name.removeprefix("AF_").lower()
    except ValueError:
        return f"family {number}"
