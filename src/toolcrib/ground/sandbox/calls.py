"""What the system calls of a process mean: what they open and change, whom they connect to, what they start."""

from __future__ import annotations

import os
import socket
import struct

from toolcrib.ground.sandbox.notify import EXECVE, EXECVEAT, SENDMSG, pick
from toolcrib.ground.sandbox.sight import Sight

TYPE_CHECKING = False  # see system
if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolcrib.ground.sandbox.notify import Notice

    Numbers = tuple[int | None, int | None]
    Place = tuple[int | None, int | None, int]

READ, WRITE, CONNECT, START = "read", "write", "connect", "start"
UNREADABLE = "(it could not be read)"

# The numbers are those of x86_64 and of aarch64.
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
# Behind the numbers stand the places that a call changes: the argument that is a folder, the one that is a path, and
# whether a link at its end is followed, or which argument says so.
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
_STAY_ON_LINK = 0x100  # the flag of the calls that take one

_ADDRESS_BYTES = 128
_MESSAGE_HEAD = struct.Struct("=QI")
_MESSAGE_BYTES = 64
_MAX_MESSAGES = 1024  # the kernel sends no more at once


def observed_calls() -> dict[int, str]:
    """The calls that tell what a process does, by their numbers here."""
    changes = {name: numbers for name, (numbers, _) in CHANGES.items()}
    everything = {**STARTS, **CONNECTIONS, **OPENINGS, **changes}
    return {number: name for name, numbers in everything.items() if (number := pick(numbers)) is not None}


def read_call(name: str, notice: Notice) -> list[tuple[str, str]]:
    """What the call does and to what: act and path, address or program.

    What the process does not let be read is named so, and not left out.
    """
    try:
        return list(_read(name, Sight(notice.process), notice.arguments))
    except (OSError, ValueError):
        return [(_act_of(name), UNREADABLE)]


def _act_of(name: str) -> str:
    if name in STARTS:
        return START
    if name in CONNECTIONS:
        return CONNECT
    return WRITE if name in CHANGES else READ


def _read(name: str, sight: Sight, arguments: tuple[int, ...]) -> Iterator[tuple[str, str]]:
    if name in CHANGES:
        for place in CHANGES[name][1]:
            yield WRITE, _changed(sight, arguments, place)
    elif name in OPENINGS:
        yield from _opened(sight, *_opening(name, sight, arguments))
    elif name in STARTS:
        folder, path = (None, arguments[0]) if name == "execve" else arguments[:2]
        yield START, sight.path(folder, path, follow=True)
    elif name == "socket":
        if arguments[0] != socket.AF_UNIX:  # which leads nowhere before it is connected
            yield CONNECT, _family(arguments[0])
    else:
        for address, size in _addresses(name, sight, arguments):
            if text := _address(sight.read(address, min(size, _ADDRESS_BYTES)) if size else b""):
                yield CONNECT, text


def _changed(sight: Sight, arguments: tuple[int, ...], place: Place) -> str:
    folder, path, follow = place
    stays = follow == _STAY or (follow >= 0 and bool(arguments[follow] & _STAY_ON_LINK))
    # Without a path such a call means the descriptor itself.
    address = None if path is None or arguments[path] == 0 else arguments[path]
    return sight.path(None if folder is None else arguments[folder], address, follow=not stays)


def _opening(name: str, sight: Sight, arguments: tuple[int, ...]) -> tuple[int | None, int, int]:
    """The folder, the path and the flags."""
    if name == "open":
        return None, arguments[0], arguments[1]
    if name == "openat":
        return arguments[0], arguments[1], arguments[2]
    (flags,) = struct.unpack("=Q", sight.read(arguments[2], 8))
    return arguments[0], arguments[1], flags


def _opened(sight: Sight, folder: int | None, path: int, flags: int) -> Iterator[tuple[str, str]]:
    if flags & os.O_PATH:  # a name for the file, which neither reads nor changes it
        return
    found = sight.path(folder, path, follow=not flags & os.O_NOFOLLOW)
    access = flags & os.O_ACCMODE
    if access != os.O_WRONLY:
        yield READ, found
    if access != os.O_RDONLY or flags & (os.O_CREAT | os.O_TRUNC):
        yield WRITE, found


def _addresses(name: str, sight: Sight, arguments: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Where in memory the call's addresses stand, with their sizes."""
    if name in {"connect", "bind"}:
        yield arguments[1], arguments[2]
    elif name == "sendto":
        yield arguments[4], arguments[5]
    else:
        count = min(arguments[2] & 0xFFFFFFFF, _MAX_MESSAGES) if name == "sendmmsg" else 1
        for number in range(count):
            head = sight.read(arguments[1] + number * _MESSAGE_BYTES, _MESSAGE_HEAD.size)
            if len(head) < _MESSAGE_HEAD.size:
                raise ValueError("the message is not there")
            yield _MESSAGE_HEAD.unpack(head)


def _address(data: bytes) -> str:
    """An address in words; empty for one that says nothing, as of a message on a connected socket."""
    if len(data) < 2:  # noqa: PLR2004 - the family
        return ""
    (family,) = struct.unpack("=H", data[:2])
    if family == socket.AF_INET:
        return f"{socket.inet_ntop(family, data[4:8])}:{int.from_bytes(data[2:4])}"
    if family == socket.AF_INET6:
        return f"[{socket.inet_ntop(family, data[8:24])}]:{int.from_bytes(data[2:4])}"
    if family == socket.AF_UNIX:
        name = data[2:]
        return "unix:" + os.fsdecode(b"@" + name[1:] if name[:1] == b"\0" else name.partition(b"\0")[0])
    return "" if family == socket.AF_UNSPEC else _family(family)


def _family(number: int) -> str:
    """A family of addresses in words, such as `inet`."""
    try:
        return socket.AddressFamily(number).name.removeprefix("AF_").lower()
    except ValueError:
        return f"family {number}"
