"""Seccomp user notifications: chosen system calls of a worker wait until its supervisor has answered them.

    worker: install ── the listener, by descriptor ──▶ supervisor: NotificationListener ── each call ──▶ its answer

The filter is inherited by all descendants of the worker and cannot be removed; without the supervisor, the calls fail.
The filter of `seccomp` takes precedence: what it refuses is never notified.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import os
import resource
import select
import socket
import struct
import sys

from toolcrib.infra.sandbox import system

TYPE_CHECKING = False  # see system

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from typing import TypeVar

    T = TypeVar("T")
    # An argument index and the bits that make the call wait.
    Condition = tuple[int, int]
    Answer = Callable[["Notice"], int]

# An answer is the errno that the call fails with, or one of these: let the kernel perform the call, or return 0 because
# it was performed. A call that returns the number n is answered with -n - 1.
GO_ON, DONE = 0, -1
LATER = -(1 << 32)  # no answer yet: the call keeps waiting

# All numbers are given for both architectures.
_MACHINES = ("x86_64", "aarch64")
EXECVE = (59, 221)
EXECVEAT = (322, 281)
SENDMSG = (46, 211)
_SECCOMP = (317, 277)
_SET_MODE_FILTER = 1
_NEW_LISTENER = 1 << 3
# A call that is being performed is not restarted after a signal; older kernels do not support this.
_WAIT_WHILE_PERFORMED = 1 << 5

_LOAD, _EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
_CALL_OFFSET, _FIRST_ARGUMENT_OFFSET = 0, 16
_ARGUMENT_BYTES = 8
_ALLOW, _ASK, _FAIL = 0x7FFF0000, 0x7FC00000, 0x00050000

_RECEIVE, _SEND, _IS_VALID, _ADD_DESCRIPTOR = 0xC0502100, 0xC0182101, 0x40082102, 0x40182103
_NOTICE = struct.Struct("=QIIiIQ6Q")
_ANSWER = struct.Struct("=QqiI")
_ANSWER_GO_ON = 1
_DESCRIPTOR = struct.Struct("=QIIII")
_GO_ON_SINCE = (5, 5)
_ADD_DESCRIPTOR_SINCE = (5, 9)
_MAX_AT_ONCE = 64  # then the supervisor checks its deadline again
_ACTIONS = "/proc/sys/kernel/seccomp/actions_avail"
_MAX_WORDS = 8192

# If sendmsg itself is notified, the one that sends the listener is exempt on this descriptor. It is closed to the job
# afterwards, and high enough not to be in use.
_NOTIFY_DESCRIPTOR = 900


class Notice:
    """A pending call: its process, its number, and its six arguments."""

    __slots__ = ("_listener", "arguments", "call", "number", "process")

    def __init__(self, listener: int, number: int, process: int, call: int, arguments: tuple[int, ...]) -> None:
        self._listener = listener
        self.number = number
        self.process = process
        self.call = call
        self.arguments = arguments

    def still_waits(self) -> bool:
        """Whether the call is still pending, so that its process ID was not reused."""
        try:
            fcntl.ioctl(self._listener, _IS_VALID, struct.pack("=Q", self.number))
        except OSError:
            return False
        return True

    def give(self, descriptor: int, *, close_on_exec: bool) -> int:
        """Install a copy of this descriptor in the process; returns the answer with its number."""
        flags = os.O_CLOEXEC if close_on_exec else 0
        request = bytearray(_DESCRIPTOR.pack(self.number, 0, descriptor, 0, flags))
        given: int = fcntl.ioctl(self._listener, _ADD_DESCRIPTOR, request)
        return DONE - given


def is_available() -> bool:
    """Whether the kernel supports notifications that let a call continue."""
    return _offers(_GO_ON_SINCE)


@functools.cache
def can_perform() -> bool:
    """Whether the kernel supports performing calls, including those that open a file."""
    return _offers(_ADD_DESCRIPTOR_SINCE)


def _offers(release: tuple[int, int]) -> bool:
    if sys.platform != "linux" or sys.maxsize < 1 << 32 or os.uname().machine not in _MACHINES:
        return False
    try:
        major, minor = os.uname().release.split(".")[:2]
        with open(_ACTIONS, encoding="ascii") as file:  # noqa: PTH123 - see system
            is_offered = "user_notif" in file.read().split()
        return is_offered and (int(major), int(minor.partition("-")[0])) >= release
    except (OSError, ValueError):
        return False


def pick(numbers: tuple[T, T]) -> T:
    """The number for this architecture."""
    return numbers[_machine()]


@functools.cache
def _machine() -> int:
    return _MACHINES.index(os.uname().machine)


def install(calls: Collection[int], notify_socket: int, words: bytes) -> None:
    """Make these calls of this process and its descendants wait; `notify_socket` leads to the NotificationListener.

    `words` is a message for it. The socket is closed; no_new_privs must be set.
    """
    waits = pick(SENDMSG) in calls
    if waits:
        notify_socket = _move_up(notify_socket)
    install_filter(ask_about(calls, notify_socket if waits else None), notify_socket, words)
    if waits:
        _set_filter(_closing(notify_socket), 0)


def install_filter(program: list[bytes], notify_socket: int, words: bytes) -> None:
    """As `install`, with a filter that `ask_about` built earlier."""
    try:
        listener = _set_filter(program, _NEW_LISTENER | _WAIT_WHILE_PERFORMED)
    except OSError as problem:
        if problem.errno != errno.EINVAL:
            raise
        listener = _set_filter(program, _NEW_LISTENER)
    with socket.socket(fileno=notify_socket) as line:
        socket.send_fds(line, [words], [listener])
    os.close(listener)


class NotificationListener:
    """The supervisor's side; call `connect` or `adopt` before the worker starts.

    `meet` receives the worker's message and returns the function that answers every pending call.
    """

    def __init__(self, meet: Callable[[bytes], Answer]) -> None:
        self._handshake = meet
        self._answer: Answer | None = None
        self._ours: socket.socket | None = None
        self.theirs: socket.socket | None = None
        self._listener = -1
        self._later: list[Notice] = []
        self.is_over = False

    def connect(self) -> None:
        """Create a socket pair for a worker that is about to be forked."""
        self._ours, self.theirs = socket.socketpair()

    def adopt(self, ours: socket.socket) -> None:
        """Use an existing connection to a worker."""
        self._ours = ours

    def notify_socket(self) -> int | None:
        """In the worker: the descriptor to call `install` with."""
        if self._ours is not None:
            self._ours.detach()
        return None if self.theirs is None else self.theirs.detach()

    def begin(self) -> None:
        """In the supervisor, after the fork."""
        if self.theirs is not None:
            self.theirs.close()

    def fileno(self) -> int:
        """The descriptor to poll."""
        return self._ours.fileno() if self._answer is None and self._ours is not None else self._listener

    def serve(self) -> None:
        """Receive the listener, or answer pending calls; closes when no process is left."""
        if self._answer is None:
            self._answer = self._receive_listener()
            return
        for _ in range(_MAX_AT_ONCE):
            happened = _poll(self._listener)
            if not happened & select.POLLIN:  # a call that a signal interrupted does not wait any more
                if happened & select.POLLHUP:
                    self.close()
                return
            notice = _receive(self._listener)
            if notice is not None:
                self._reply(self._answer, notice)

    def retry(self) -> None:
        """Answer calls that were postponed."""
        waiting, self._later = self._later, []
        for notice in waiting:
            if self._answer is not None and notice.still_waits():
                self._reply(self._answer, notice)

    def _reply(self, answer: Answer, notice: Notice) -> None:
        said = answer(notice)
        if said == LATER:
            self._later.append(notice)
        else:
            _send(self._listener, notice, said)

    def close(self) -> None:
        """Stop answering: pending and later calls fail."""
        self.is_over = True
        if self._ours is not None:
            self._ours.close()
        if self._listener >= 0:
            os.close(self._listener)
            self._listener = -1

    def _receive_listener(self) -> Answer | None:
        words, descriptors = b"", list[int]()
        if self._ours is not None:
            with contextlib.suppress(OSError):
                words, descriptors, _, _ = socket.recv_fds(self._ours, _MAX_WORDS, 1)
        if not descriptors:
            self.close()
            return None
        self._listener = descriptors[0]
        return self._handshake(words)


class Starts:
    """Allow a number of program starts; None means any number."""

    def __init__(self, allowed: int | None) -> None:
        self._left = allowed

    def __call__(self, notice: Notice) -> int:
        """The answer to a call that starts a program."""
        if self._left == 0:
            return errno.EPERM
        if self._left is not None:
            self._left -= 1
        return GO_ON


def _poll(listener: int) -> int:
    """Whether a call is pending, without which receiving would block, and whether any process is left."""
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    return next((happened for _, happened in poll.poll(0)), 0)


def _receive(listener: int) -> Notice | None:
    """The next call, None if its process has ended meanwhile."""
    data = bytearray(_NOTICE.size)
    try:
        fcntl.ioctl(listener, _RECEIVE, data)
    except OSError:
        return None
    number, process, _, call, _, _, *arguments = _NOTICE.unpack(data)
    return Notice(listener, number, process, call, tuple(arguments))


def _send(listener: int, notice: Notice, answer: int) -> None:
    flags = _ANSWER_GO_ON if answer == GO_ON else 0
    value = DONE - answer if answer < GO_ON else 0
    try:
        fcntl.ioctl(listener, _SEND, _ANSWER.pack(notice.number, value, -max(answer, 0), flags))
    except OSError:
        return  # the process has ended meanwhile


def _move_up(descriptor: int) -> int:
    above = min(_NOTIFY_DESCRIPTOR, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 1)
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, above)
    os.close(descriptor)
    return moved


def ask_about(
    calls: Iterable[int], notify_socket: int | None = None, conditions: Mapping[int, Condition] | None = None
) -> list[bytes]:
    """Build a filter that notifies these calls; those with a condition only if the argument has one of the bits.

    Other architectures are refused by `seccomp`.
    """
    conditions = conditions or {}
    program = [_step(_LOAD, _CALL_OFFSET)]
    if notify_socket is not None:
        program += _if_sent_over(notify_socket, _ALLOW)
    for call in calls:
        steps = [_step(_RETURN, _ASK)]
        if call in conditions:
            argument, bits = conditions[call]
            steps = [
                _step(_LOAD, _FIRST_ARGUMENT_OFFSET + _ARGUMENT_BYTES * argument),
                _step(_ANY_BIT, bits, 0, 1),
                *steps,
                _step(_RETURN, _ALLOW),
            ]
        program += [_step(_EQUAL, call, 0, len(steps)), *steps]
    return [*program, _step(_RETURN, _ALLOW)]


def _closing(notify_socket: int) -> list[bytes]:
    """Refuse sendmsg on the descriptor."""
    return [_step(_LOAD, _CALL_OFFSET), *_if_sent_over(notify_socket, _FAIL | errno.EBADF), _step(_RETURN, _ALLOW)]


def _if_sent_over(descriptor: int, action: int) -> list[bytes]:
    """Take this action for sendmsg on the descriptor; the call number is loaded before and after."""
    return [
        _step(_EQUAL, pick(SENDMSG), 0, 4),
        _step(_LOAD, _FIRST_ARGUMENT_OFFSET),
        _step(_EQUAL, descriptor, 0, 1),
        _step(_RETURN, action),
        _step(_LOAD, _CALL_OFFSET),
    ]


def _step(code: int, operand: int, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("=HBBI", code, then, otherwise, operand)


def _set_filter(program: list[bytes], flags: int) -> int:
    import ctypes

    steps = ctypes.create_string_buffer(b"".join(program))
    header = struct.pack("@HP", len(program), ctypes.addressof(steps))
    return system.invoke("syscall", pick(_SECCOMP), _SET_MODE_FILTER, flags, header)


# Inspecting a process with a pending system call: its memory, and the paths it means.

_PATH_BYTES = 4096
_MAX_LINKS = 40
_STATUS_BYTES = 1024  # the name of the process precedes it, and is short
_CLOSED_TO_OTHERS = 0o077
_CURRENT_FOLDER = -100


class ProcessView:
    """Resolve the arguments of a waiting process; raises OSError or ValueError if they are invalid."""

    def __init__(self, process: int) -> None:
        self._home = f"/proc/{process}"

    def read(self, address: int, size: int) -> bytes:
        """Read up to `size` bytes of its memory."""
        memory = os.open(f"{self._home}/mem", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(memory, size, address)
        except OverflowError as problem:
            raise ValueError("the address lies outside of its memory") from problem
        finally:
            os.close(memory)

    def path(self, folder: int | None, address: int | None, *, follow: bool) -> str:
        """The path at the address, relative to a folder descriptor; an empty one means the descriptor itself.

        Links are resolved as the process would.
        """
        text = "" if address is None else self.text(address)
        if text.startswith("/"):
            return self._resolve("/", text, follow=follow)
        base = self.folder(_CURRENT_FOLDER if folder is None else folder)
        return self._resolve(base, text, follow=follow) if text and base.startswith("/") else base

    def text(self, address: int) -> str:
        """The null-terminated string at the address."""
        text, end, _ = self.read(address, _PATH_BYTES).partition(b"\0")
        if not end:
            raise ValueError("the path has no end")
        return os.fsdecode(text)

    def descriptor(self, number: int) -> int:
        """An O_PATH descriptor of ours for what the process has open."""
        return os.open(f"{self._home}/fd/{number & 0xFFFFFFFF}", os.O_PATH | os.O_CLOEXEC)

    def umask(self) -> int:
        """The umask of the process."""
        status = os.open(f"{self._home}/status", os.O_RDONLY | os.O_CLOEXEC)
        try:
            _, found, text = os.read(status, _STATUS_BYTES).partition(b"\nUmask:")
        finally:
            os.close(status)
        return int(text.split(maxsplit=1)[0], 8) if found else _CLOSED_TO_OTHERS

    def folder(self, descriptor: int) -> str:
        """The path of a folder descriptor, or of the current folder."""
        number = descriptor & 0xFFFFFFFF
        if number == _CURRENT_FOLDER & 0xFFFFFFFF:
            return _read_link(f"{self._home}/cwd")
        return _read_link(f"{self._home}/fd/{number}")

    def _resolve(self, base: str, path: str, *, follow: bool) -> str:
        """Resolve the path link by link. A link to something without a path, such as a pipe, is the result itself."""
        found, links = base, 0
        ahead = _parts(path)
        while ahead:
            part = ahead.pop()
            if part == "..":
                found = found.rpartition("/")[0] or "/"
                continue
            here = self._by_own_name(f"{found.rstrip('/')}/{part}")
            target = self._link(here) if ahead or follow else ""
            if not target:
                found = here
                continue
            links += 1
            if links > _MAX_LINKS:
                raise ValueError("the path has too many links")
            if target.startswith("/"):
                found = "/"
            elif here.startswith(self._home):
                return target
            ahead += _parts(target)
        return "/proc/self" + found.removeprefix(self._home) if _is_below(found, self._home) else found

    def _by_own_name(self, path: str) -> str:
        """Map /proc/self, /proc/thread-self and its own process ID in its namespace to one path."""
        folder, _, name = path.rpartition("/")
        if folder == "/proc" and (name in {"self", "thread-self"} or (name.isdecimal() and name == self._own_number())):
            return self._home
        return path

    def _own_number(self) -> str:
        with open(f"{self._home}/status", encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - see system
            for line in file:
                if line.startswith("NStgid:"):
                    return line.split()[-1]
        return ""

    def _link(self, path: str) -> str:
        """The target of a link as seen by the process; empty if it is not a link."""
        try:
            return _read_link(path if _is_below(path, self._home) else f"{self._home}/root{path}")
        except OSError:
            return ""


def _parts(path: str) -> list[str]:
    """The parts of a path, in reverse order."""
    return [part for part in reversed(path.split("/")) if part not in {"", "."}]


def _read_link(path: str) -> str:
    return os.readlink(path)  # noqa: PTH115 - see system


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")
