"""Landlock: from now on this process and all it starts reach only the files that they were given."""

from __future__ import annotations

import functools
import os
import stat
import struct

from toolcrib.ground.sandbox import system

TYPE_CHECKING = False  # see system
if TYPE_CHECKING:
    from collections.abc import Iterable

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION = 1
_PATH_BENEATH = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE_DIR, _REMOVE_FILE = 1 << 4, 1 << 5
_MAKE_CHAR, _MAKE_DIR, _MAKE_REG, _MAKE_SOCK, _MAKE_FIFO, _MAKE_BLOCK, _MAKE_SYM = (1 << bit for bit in range(6, 13))
_REFER, _TRUNCATE, _IOCTL_DEVICE = 1 << 13, 1 << 14, 1 << 15

READ = READ_FILE | READ_DIR
# Devices and sockets are not made by anybody; what could be bound to a socket's name is closed as well.
WRITE = WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _MAKE_FIFO | _MAKE_SYM | _REFER | _TRUNCATE
USE_DEVICE = READ_FILE | WRITE_FILE | _TRUNCATE | _IOCTL_DEVICE
_OF_FILES = EXECUTE | USE_DEVICE

_FILE_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
_NETWORK_SINCE, _SCOPES_SINCE = 4, 6
_TCP = 0b11  # to listen and to connect
_SCOPES = 0b11  # abstract sockets and signals


@functools.cache
def version() -> int:
    """What the kernel offers of it; 0 means nothing."""
    if not system.HAS_SUBREAPER:
        return 0
    try:
        return system.invoke("syscall", _CREATE_RULESET, None, 0, _ASK_VERSION)
    except OSError:
        return 0


def restrict(rules: Iterable[tuple[str | int, int]], *, tcp: bool) -> None:
    """Let go of everything but these rights on these files and folders; what is not there gives no right.

    A place is a path, or the descriptor of what is meant. `tcp` leaves the network as it is, for a process that has one of its own.
    """
    ruleset, handled = _create(tcp=tcp)
    try:
        for place, rights in rules:
            _allow(ruleset, place, rights & handled)
        system.invoke("syscall", _RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def rehearse() -> None:
    """Do all of it but the restricting; see `python.rehearse`."""
    ruleset, handled = _create(tcp=False)
    _allow(ruleset, "/", READ & handled)
    os.close(ruleset)


def _create(*, tcp: bool) -> tuple[int, int]:
    """A new set of rules, and the rights on files that it is about."""
    offered = version()
    handled = _FILE_RIGHTS[min(offered, max(_FILE_RIGHTS))]
    attributes = [handled]
    if offered >= _NETWORK_SINCE:
        attributes.append(0 if tcp else _TCP)
    if offered >= _SCOPES_SINCE:
        attributes.append(_SCOPES)
    packed = struct.pack(f"={len(attributes)}Q", *attributes)
    return system.invoke("syscall", _CREATE_RULESET, packed, len(packed), 0), handled


def _allow(ruleset: int, place: str | int, rights: int) -> None:
    if isinstance(place, int):
        _add_rule(ruleset, place, rights)
        return
    try:
        descriptor = os.open(place, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        _add_rule(ruleset, descriptor, rights)
    finally:
        os.close(descriptor)


def _add_rule(ruleset: int, place: int, rights: int) -> None:
    if not stat.S_ISDIR(os.fstat(place).st_mode):
        rights &= _OF_FILES
    if rights:
        system.invoke("syscall", _ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, place), 0)
