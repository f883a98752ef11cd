"""What the launcher, the supervisors and the workers ask of the operating system."""

from __future__ import annotations

import functools
import os
import select
import signal
import struct
import sys

TYPE_CHECKING = False  # from our own hand: importing typing would take a fifth of the launcher's start
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

HAS_SUBREAPER = sys.platform == "linux"

PDEATHSIG = 1
DUMPABLE = 4
CHILD_SUBREAPER = 36
SECCOMP = 22
IS_IN_BOUNDING_SET = 23
DROP_FROM_BOUNDING_SET = 24
NO_NEW_PRIVS = 38
AMBIENT_CAPABILITIES = 47

# The kernel has no other name for it, and each kind of machine its own number.
_SET_SCHEDULING = {"x86_64": 314, "aarch64": 274}
_SCHEDULING = struct.Struct("=IIQiIQQQ")
_FOREMOST = -20
_SLICE_NANOSECONDS = 100_000

_HEARD = (signal.SIGCHLD, signal.SIGTERM)
_ALL_SIGNALS = signal.valid_signals()


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process; does nothing where the system knows no such attributes."""
    if HAS_SUBREAPER:
        invoke("prctl", option, value, 0, 0, 0)


def invoke(function: str, *arguments: int | bytes | None) -> int:
    """Call a function of the C library; OSError with its reason if it fails."""
    result = _function(function, tuple(map(type, arguments)))(*arguments)
    if result == -1:
        import ctypes

        number = ctypes.get_errno()
        raise OSError(number, f"{function}: {os.strerror(number)}")
    return result


def look_up() -> None:
    """Look up, in the launcher, the functions that every worker will call, so that none has to do it again."""
    number, text, nothing = int, bytes, type(None)
    for name, kinds in (
        ("prctl", (number, signal.Signals, number, number, number)),
        ("prctl", (number, number, text, number, number)),
        ("unshare", (number,)),
        ("mount", (nothing, text, nothing, number, nothing)),
        ("mount", (text, text, nothing, number, nothing)),
        ("mount", (text, text, text, number, text)),
        ("capset", (text, text)),
        ("inotify_init1", (number,)),
        ("inotify_add_watch", (number, text, number)),
        ("syscall", (number, number, number)),
        ("syscall", (number, number, text, number)),
        ("syscall", (number, text, number, number)),
        ("syscall", (number, number, number, text, number)),
        ("syscall", (number, number, text, number, text, number)),
    ):
        _function(name, kinds)


@functools.cache
def _function(name: str, kinds: tuple[type, ...]) -> Callable[..., int]:
    import ctypes

    # Each has a handle of its own, because the kinds of the arguments are kept there.
    function = ctypes.CDLL(None, use_errno=True)[name]
    function.argtypes = tuple(ctypes.c_long if issubclass(kind, int) else ctypes.c_char_p for kind in kinds)
    function.restype = ctypes.c_long if name == "syscall" else ctypes.c_int
    return function


def come_first() -> None:
    """Let this process, which has little to do, do it as soon as it can: before others, where it has the privilege.

    A short slice of time needs none; whoever wants one gets it sooner.
    """
    if os.sched_getscheduler(0) != os.SCHED_OTHER:
        return
    nice = _step_forward()
    number = _SET_SCHEDULING.get(os.uname().machine)
    if number is None:
        return
    wish = _SCHEDULING.pack(_SCHEDULING.size, os.SCHED_OTHER, 0, nice, 0, _SLICE_NANOSECONDS, 0, 0)
    try:
        invoke("syscall", number, 0, wish, 0)
    except OSError:
        return


def _step_forward() -> int:
    """Stand before others, if we may; how far in front that is."""
    try:
        os.setpriority(os.PRIO_PROCESS, 0, _FOREMOST)
    except OSError:
        return os.getpriority(os.PRIO_PROCESS, 0)
    return _FOREMOST


class Events:
    """Waits together for descriptors and for the signals that a child has ended or that this process should end."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        for number in _HEARD:
            signal.signal(number, _take_note)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    def wait(
        self, descriptors: Iterable[int], seconds: float | None, *, urgent: Iterable[int] = ()
    ) -> tuple[set[int], frozenset[int]]:
        """The descriptors that have something to say and the signals that came, once there is any or the time is up.

        Those that are `urgent` can be read at any time; they count when they have something urgent to say.
        """
        poll = select.poll()
        for descriptor in urgent:
            poll.register(descriptor, select.POLLPRI)
        for descriptor in (self._read, *descriptors):
            poll.register(descriptor, select.POLLIN)
        milliseconds = None if seconds is None else max(0, int(seconds * 1000) + 1)
        ready = {descriptor for descriptor, _ in poll.poll(milliseconds)}
        if self._read not in ready:
            return ready, frozenset()
        return ready - {self._read}, frozenset(os.read(self._read, 65536))

    def close(self) -> None:
        """Stop listening; signals do again what they do in a new process."""
        signal.set_wakeup_fd(-1)
        for number in _HEARD:
            signal.signal(number, signal.SIG_DFL)
        os.close(self._read)
        os.close(self._write)


def _take_note(number: int, frame: object) -> None:
    """Signals reach `Events` as bytes; only a signal with a handler is written there."""


def fork() -> int:
    """Fork with signals held back, so that none meant for the child is told to the parent.

    The parent goes on as before; the child lets signals in again when it is ready for them.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ALL_SIGNALS)
    child = -1
    try:
        child = os.fork()
    finally:
        if child != 0:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return child


def forget_signals() -> None:
    """Treat every signal as a new Python process does, whatever this one inherited."""
    for number in _ALL_SIGNALS - {signal.SIGPIPE, signal.SIGXFSZ}:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def descendants() -> list[int]:
    """Every process that came of this one; those that have ended and are not yet buried among them."""
    try:
        found: list[int] = []
        generation = [os.getpid()]
        while generation:
            generation = [child for parent in generation for child in _children_of(parent)]
            found += generation
        return found
    except FileNotFoundError:  # not every kernel tells the children of a process
        return descendants_of([os.getpid()], children_by_parent())


def _children_of(process: int) -> list[int]:
    children: list[int] = []
    try:
        threads = os.listdir(f"/proc/{process}/task")  # noqa: PTH208 - see below
    except OSError:
        return children
    for thread in threads:
        try:
            with open(f"/proc/{process}/task/{thread}/children", "rb") as file:  # noqa: PTH123 - see below
                children += map(int, file.read().split())
        except OSError:
            if process == os.getpid():
                raise
    return children


def children_by_parent() -> Mapping[int, list[int]]:
    """Every running process of the machine under its parent."""
    families: dict[int, list[int]] = {}
    for entry in os.scandir("/proc"):
        if not entry.name.isdecimal():
            continue
        try:
            with open(f"{entry.path}/stat", "rb") as file:  # noqa: PTH123 - pathlib would take a third of the start
                # The second field is the program's name in brackets and may hold anything, brackets too.
                state, parent = file.read().rpartition(b")")[2].split()[:2]
        except (OSError, ValueError):
            continue
        if state not in (b"Z", b"X"):
            families.setdefault(int(parent), []).append(int(entry.name))
    return families


def descendants_of(ancestors: Iterable[int], families: Mapping[int, list[int]]) -> list[int]:
    """The children of these processes, their children, and so on."""
    found: list[int] = []
    generation = list(ancestors)
    while generation:
        generation = [child for parent in generation for child in families.get(parent, [])]
        found += generation
    return found


def send_signal(processes: Iterable[int], number: int) -> None:
    """Signal those that are still there."""
    for process in processes:
        try:
            os.kill(process, number)
        except (ProcessLookupError, PermissionError):
            continue
