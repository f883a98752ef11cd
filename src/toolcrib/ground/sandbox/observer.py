"""What a job did and tried, as its supervisor saw it."""

from __future__ import annotations

import errno
import json
import os
import socket

from toolcrib.ground.sandbox import seccomp
from toolcrib.ground.sandbox.calls import CONNECT, READ, START, STARTS, UNREADABLE, WRITE, observed_calls, read_call
from toolcrib.ground.sandbox.notify import GO_ON, Oversight, Starts

TYPE_CHECKING = False  # see system
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from toolcrib.ground.sandbox.notify import Notice

MAX_EFFECTS = 10_000
MAX_CHARACTERS = 2_000_000
MORE = "more"  # the act that stands for all that found no room

# What a process has of its own, whatever its walls.
_DEVICES = frozenset(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty"))
_OWN_PROCESS = "/proc/self"
_KIND, _CONNECTED = 0xF, frozenset({socket.SOCK_STREAM, socket.SOCK_SEQPACKET})
_REACHABLE = ("inet", "127.", "[::1]")  # in a network of its own


def introduce(own: str, *, mounts: bool) -> bytes:
    """What a worker has to say of itself: the folder that is its own, and whether it sees files by mounts of its own."""
    return json.dumps({"own": own, "mounts": mounts}).encode()


class Observer:
    """Takes note of what the calls of a job do, and refuses those that a filter would refuse unseen.

    `is_program` says that the job begins with the start of a program, which is none of its effects.
    """

    def __init__(self, walls: dict[str, Any], *, is_program: bool) -> None:
        self._walls = walls
        self._calls = observed_calls()
        self._reach = Reach(walls, "")
        self._has_mounts = False
        self._may_start = Starts(None if walls["programs"] else int(is_program))
        self._begins = is_program
        self._room = MAX_CHARACTERS
        self._seen: dict[tuple[str, str], bool] = {}
        self.oversight = Oversight(self._meet)

    def report(self) -> list[list[object]]:
        """Every effect once: the act, on what, and whether the walls kept the job from it."""
        return [[act, what, denied] for (act, what), denied in self._seen.items()]

    def _meet(self, words: bytes) -> Callable[[Notice], int]:
        facts = json.loads(words)
        self._reach = Reach(self._walls, facts["own"])
        self._has_mounts = facts["mounts"]
        return self._answer

    def _answer(self, notice: Notice) -> int:
        """Take note of a call, and say whether it may go on."""
        name = self._calls[notice.call]
        is_start = name in STARTS
        answer = self._may_start(notice) if is_start else self._refusal(name, notice.arguments)
        if is_start and self._begins:
            self._begins = False
            return answer
        effects = read_call(name, notice)
        if notice.still_waits():
            for act, what in effects:
                self._note(act, what, refused=answer != GO_ON)
        return answer

    def _refusal(self, name: str, arguments: tuple[int, ...]) -> int:
        network = self._walls["network"]
        # Without a network no socket is ever connected. These may be made, so that it is seen where they should have led.
        if name == "socket" and not network and arguments[0] == socket.AF_UNIX and arguments[1] & _KIND in _CONNECTED:
            return GO_ON
        refused = seccomp.refuses(name, arguments, network=network, mounts=self._has_mounts)
        return errno.EPERM if refused else GO_ON

    def _note(self, act: str, what: str, *, refused: bool) -> None:
        # A path may hold any byte; what is told to the host is text.
        key = act, os.fsencode(what).decode("utf-8", "replace")
        if (act in {READ, WRITE} and self._reach.is_own(what)) or key in self._seen or (MORE, "") in self._seen:
            return
        self._room -= len(what)
        if self._room < 0 or len(self._seen) >= MAX_EFFECTS:
            self._seen[MORE, ""] = False
            return
        self._seen[key] = refused or self._is_denied(act, what)

    def _is_denied(self, act: str, what: str) -> bool:
        """By the walls, because nobody learns what becomes of a call that goes on."""
        if act == CONNECT:
            return not (self._walls["network"] and what.startswith(_REACHABLE))
        if act == START:
            return not (self._walls["programs"] and self._reach.may_read(what))
        return not (self._reach.may_read(what) if act == READ else self._reach.may_write(what))


class Reach:
    """The walls as a judge of paths that have no links in them; `own` is the job's own folder."""

    def __init__(self, walls: dict[str, Any], own: str) -> None:
        self._own = (*_real([own] if own else []), _OWN_PROCESS)
        self._read = _real(walls["read"])
        self._write = _real(walls["write"])
        self._closed = _real(walls["closed"])
        self._fixed = _real(walls["fixed"])

    def is_own(self, path: str) -> bool:
        """Whether it is the job's own: its folder, its process, a pipe, memory."""
        is_file = path.startswith("/") and not path.startswith("/memfd:")
        return path != UNREADABLE and (not is_file or path in _DEVICES or _is_in(path, self._own))

    def may_read(self, path: str) -> bool:
        """Whether the walls let it be read."""
        return _is_in(path, (*self._read, *self._own)) and not _is_in(path, self._closed)

    def may_write(self, path: str) -> bool:
        """Whether the walls let it be changed."""
        return _is_in(path, self._write) and not _is_in(path, (*self._closed, *self._fixed))


def _real(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(os.path.realpath(path) for path in paths))


def _is_in(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder.rstrip('/')}/") for folder in folders)
