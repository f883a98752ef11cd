"""System calls, signals, cgroups, and the process tree of a call, for the host's side of the sandbox and for what runs in its children."""

# ruff: noqa: PTH102, PTH106, PTH110, PTH123, PTH208 - pathlib would take a third of the start
from __future__ import annotations

import errno
import functools
import os
import select
import signal
import struct
import sys
import time

TYPE_CHECKING = False  # defined here: importing typing would take a fifth of the launcher's start

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from typing import Protocol, Self

    class CallListener(Protocol):
        """Answers system calls that wait; see notifications.NotificationListener."""

        is_over: bool

        def fileno(self) -> int:
            """The descriptor to poll."""

        def serve(self) -> None:
            """Answer pending calls."""


HAS_SUBREAPER = sys.platform == "linux"

PDEATHSIG = 1
DUMPABLE = 4
CHILD_SUBREAPER = 36
SECCOMP = 22
IS_IN_BOUNDING_SET = 23
DROP_FROM_BOUNDING_SET = 24
NO_NEW_PRIVS = 38
AMBIENT_CAPABILITIES = 47

# The calls that arrange mounts, whose numbers are the same on every machine, and the current folder as they name it.
OPEN_TREE, MOUNT_SETATTR = 428, 442
HERE = -100
_NO_SUCH_FLAGS = 0x7FFFFFFF

# libc has no wrapper for it, and the number depends on the architecture.
_SET_SCHEDULING = {"x86_64": 314, "aarch64": 274}
_SCHEDULING = struct.Struct("=IIQiIQQQ")
_HIGHEST_PRIORITY = -20
_SLICE_NANOSECONDS = 100_000

# The kernel counts threads where we count processes; its limit is a fallback behind the measurements.
TASKS_PER_PROCESS = 8
_FORK_SECONDS, _FORK_PAUSE_SECONDS = 1.0, 0.005

_CAPABILITIES_VERSION = 0x20080522
_WORD = 0xFFFFFFFF

_SIGNALS = (signal.SIGCHLD, signal.SIGTERM)
_ALL_SIGNALS = signal.valid_signals()
# Blocked while forking. Real-time signals without a name never have a handler here, and reading a mask that holds them is slow:
# `signal` raises and catches an exception for each.
_NAMED_SIGNALS = frozenset(signal.Signals)


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process; a no-op on systems without prctl."""
    if HAS_SUBREAPER:
        invoke("prctl", option, value, 0, 0, 0)


def invoke(function: str, *arguments: int | bytes | None) -> int:
    """Call a function of the C library; raises OSError if it fails."""
    result = _function(function, tuple(map(type, arguments)))(*arguments)
    if result == -1:
        import ctypes

        number = ctypes.get_errno()
        raise OSError(number, f"{function}: {os.strerror(number)}")
    return result


def can_arrange_mounts() -> bool:
    """Whether the calls that arrange mounts get through to the kernel, which refuses flags that do not exist.

    A container engine may filter them though it allows namespaces; a job would then fail on the way.
    """
    try:
        invoke("syscall", OPEN_TREE, HERE, b"", _NO_SUCH_FLAGS)
    except OSError as problem:
        if problem.errno != errno.EINVAL:
            return False
    try:
        invoke("syscall", MOUNT_SETATTR, HERE, b"", _NO_SUCH_FLAGS, b"", 0)
    except OSError as problem:
        return problem.errno == errno.EINVAL
    return False


def set_capabilities(effective: int = 0, permitted: int = 0, inheritable: int = 0) -> None:
    """Set the capabilities of this process, each set as a mask of bits."""
    sets = (effective, permitted, inheritable)
    # The kernel expects the lower halves of the three sets first.
    halves = (*(each & _WORD for each in sets), *(each >> 32 for each in sets))
    invoke("capset", struct.pack("=Ii", _CAPABILITIES_VERSION, 0), struct.pack("=6I", *halves))


def look_up() -> None:
    """Resolve, in the launcher, the functions that every worker calls."""
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

    # One handle per signature, because argtypes are stored on the function object.
    function = ctypes.CDLL(None, use_errno=True)[name]
    function.argtypes = tuple(ctypes.c_long if issubclass(kind, int) else ctypes.c_char_p for kind in kinds)
    function.restype = ctypes.c_long if name == "syscall" else ctypes.c_int
    return function


def raise_priority() -> None:
    """Schedule this process, which does little work, before others if privileged.

    A short time slice needs no privilege and lowers the latency.
    """
    if os.sched_getscheduler(0) != os.SCHED_OTHER:
        return
    nice = _raise_nice()
    number = _SET_SCHEDULING.get(os.uname().machine)
    if number is None:
        return
    attributes = _SCHEDULING.pack(_SCHEDULING.size, os.SCHED_OTHER, 0, nice, 0, _SLICE_NANOSECONDS, 0, 0)
    try:
        invoke("syscall", number, 0, attributes, 0)
    except OSError:
        return


def _raise_nice() -> int:
    """Raise the priority if permitted; returns the resulting nice value."""
    try:
        os.setpriority(os.PRIO_PROCESS, 0, _HIGHEST_PRIORITY)
    except OSError:
        return os.getpriority(os.PRIO_PROCESS, 0)
    return _HIGHEST_PRIORITY


def _outrank() -> None:
    """Schedule this process before all that are not real-time, if privileged."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except OSError:
        return


class Events:
    """Wait for descriptors and for SIGCHLD and SIGTERM together."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        for number in _SIGNALS:
            signal.signal(number, _ignore)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    def wait(
        self, descriptors: Iterable[int], seconds: float | None, *, urgent: Iterable[int] = ()
    ) -> tuple[set[int], frozenset[int]]:
        """The ready descriptors and the received signals, once there are any or the time is up.

        `urgent` descriptors count only when they have priority data (POLLPRI).
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
        """Stop listening and restore the default signal actions."""
        signal.set_wakeup_fd(-1)
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        os.close(self._read)
        os.close(self._write)


def _ignore(number: int, frame: object) -> None:
    """Signals reach `Events` through the wakeup descriptor, which needs a Python handler."""


def fork() -> int:
    """Fork with signals blocked, so that a signal for the child does not reach the parent's handler.

    The parent restores its mask; the child unblocks signals when it is ready. Where a fork bomb of another call holds all
    processes of the cgroup, wait until it is killed.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _NAMED_SIGNALS)
    until = time.monotonic() + _FORK_SECONDS
    child = -1
    try:
        while child == -1:
            try:
                child = os.fork()
            except BlockingIOError:
                if time.monotonic() > until:
                    raise
                time.sleep(_FORK_PAUSE_SECONDS)
    finally:
        if child != 0:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return child


def forget_signals() -> None:
    """Reset inherited signal dispositions to those of a new Python process."""
    for number in _ALL_SIGNALS - {signal.SIGPIPE, signal.SIGXFSZ}:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def descendants(enough: int | None = None) -> list[int]:
    """Every descendant of this process, including zombies; no further ones after `enough` were found."""
    try:
        found: list[int] = []
        parents = [os.getpid()]
        while parents and (enough is None or len(found) <= enough):
            children = _children_of(parents.pop())
            parents += children
            found += children
        return found
    except FileNotFoundError:  # not every kernel lists the children of a process
        return descendants_of([os.getpid()], children_by_parent())


def _children_of(process: int) -> list[int]:
    children: list[int] = []
    try:
        threads = os.listdir(f"/proc/{process}/task")
    except OSError:
        return children
    for thread in threads:
        try:
            with open(f"/proc/{process}/task/{thread}/children", "rb") as file:
                children += map(int, file.read().split())
        except OSError:
            if process == os.getpid():
                raise
    return children


def kill_descendants(ancestor: int, killed: set[int], spared: Collection[int] = ()) -> bool:
    """Kill the descendants that are not in `killed` and add them; returns whether there were any.

    Each is killed before its children are listed: from then on it cannot fork, so the list is complete, and a fork bomb is
    killed faster than it grows. `spared` are children of the ancestor that are left alone.
    """
    found = False
    parents = [ancestor]
    while parents:
        for child in _children_of(parents.pop()):
            if child in killed or child in spared:
                continue
            send_signal([child], signal.SIGKILL)
            killed.add(child)
            parents.append(child)
            found = True
    return found


def children_by_parent() -> Mapping[int, list[int]]:
    """Every running process of the machine by its parent."""
    children: dict[int, list[int]] = {}
    for entry in os.scandir("/proc"):
        if not entry.name.isdecimal():
            continue
        try:
            with open(f"{entry.path}/stat", "rb") as file:
                # The second field is the program name in brackets and may contain anything, even brackets.
                state, parent = file.read().rpartition(b")")[2].split()[:2]
        except (OSError, ValueError):
            continue
        if state not in (b"Z", b"X"):
            children.setdefault(int(parent), []).append(int(entry.name))
    return children


def descendants_of(ancestors: Iterable[int], children: Mapping[int, list[int]]) -> list[int]:
    """The children of these processes, their children, and so on."""
    found: list[int] = []
    generation = list(ancestors)
    while generation:
        generation = [child for parent in generation for child in children.get(parent, [])]
        found += generation
    return found


def send_signal(processes: Iterable[int], number: int) -> None:
    """Signal the processes that still exist."""
    for process in processes:
        try:
            os.kill(process, number)
        except (ProcessLookupError, PermissionError):
            continue


# Files and paths.


def write_all(descriptor: int, data: bytes) -> None:
    """Write everything; stop if the reader has closed."""
    left = memoryview(data)
    try:
        while left:
            left = left[os.write(descriptor, left) :]
    except OSError:
        return


def write_text(path: str, text: str) -> None:
    """Write to an existing file, such as one of the kernel's."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def real_paths(paths: Iterable[str]) -> tuple[str, ...]:
    """The paths without links, each once."""
    return tuple(dict.fromkeys(map(os.path.realpath, paths)))


def is_in(path: str, folders: Iterable[str]) -> bool:
    """Whether the path is one of the folders, or below one."""
    return any(path == folder or path.startswith(f"{folder.rstrip('/')}/") for folder in folders)


# The process tree of a call: everything that this process started, including daemons.

GRACE_SECONDS = 0.2
KILL_SECONDS = 1.5
_ROUND_SECONDS = 0.02
_OUTRUN_SECONDS = 0.1  # a tree that is not killed within it forks faster than it is found


class ProcessTree:
    """The descendants of this process.

    As their subreaper it becomes the parent of every orphan, so ECHILD proves that none is left, not even a daemon in
    its own session. Without a subreaper only the process group of a child is known. `notifications` answers pending
    system calls of processes that are ending.
    """

    def __init__(self, events: Events, notifications: CallListener | None = None) -> None:
        self._events = events
        self._notifications = notifications
        self.statuses: dict[int, int] = {}
        self.signalled: set[int] = set()

    def reap(self) -> bool:
        """Reap the children that have ended; returns whether none is left."""
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if process == 0:
                return False
            self.statuses[process] = status

    def wait(self, seconds: float) -> bool:
        """Wait for the children to end; returns whether none is left."""
        until = time.monotonic() + seconds
        while not self.reap():
            left = until - time.monotonic()
            if left <= 0:
                return False
            self._events.wait((), left)
        return True

    def end(self, child: int, *, at_once: bool = False) -> bool:
        """Terminate all processes, or kill them with `at_once`; returns whether all have ended."""
        if not HAS_SUBREAPER:
            return self._end_group(child)
        if at_once:
            self._kill_group(child)
        elif self._terminate_all(GRACE_SECONDS):
            return True
        return self.kill_all(KILL_SECONDS)

    def _terminate_all(self, seconds: float) -> bool:
        """Ask all processes to end, including new ones, until none is left; False if the time is up first."""
        until = time.monotonic() + seconds
        told: set[int] = set()
        while not self.reap():
            if time.monotonic() > until:
                return False
            everyone = descendants_of([os.getpid()], children_by_parent())
            # A second SIGTERM would disturb a process that is cleaning up.
            send_signal([process for process in everyone if process not in told], signal.SIGTERM)
            told.update(everyone)
            self.signalled.update(everyone)
            self._answer_for(_ROUND_SECONDS)
        return True

    def kill_all(self, seconds: float) -> bool:
        """Kill all processes, including new ones, until none is left; False if the time is up first."""
        began = time.monotonic()
        killed: set[int] = set()
        with StoppedForks() as forks:
            while True:
                # Reaped only after a round without new ones: until then the dead ones count, where a limit counts
                # processes, and leave no room for the rest of a fork bomb.
                if self._kill_new(killed):
                    self.signalled.update(killed)
                elif self.reap():
                    return True
                else:
                    killed.clear()  # a process ID may be reused
                    self._answer_for(_ROUND_SECONDS)
                passed = time.monotonic() - began
                if passed > seconds:
                    return self.reap()
                if passed > _OUTRUN_SECONDS:
                    forks.stop()

    def _kill_new(self, killed: set[int]) -> bool:
        try:
            return kill_descendants(os.getpid(), killed)
        except FileNotFoundError:  # not every kernel lists the children of a process
            everyone = set(descendants_of([os.getpid()], children_by_parent())) - killed
            send_signal(everyone, signal.SIGKILL)
            killed.update(everyone)
            return bool(everyone)

    def _answer_for(self, seconds: float) -> None:
        """Wait for an event or the end of the time, and answer system calls meanwhile."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            notifications = None if self._notifications is None or self._notifications.is_over else self._notifications
            ready, _ = self._events.wait(() if notifications is None else (notifications.fileno(),), left)
            if notifications is None or not ready:
                return
            notifications.serve()

    def kill_strays(self, supervisors: Collection[int]) -> bool:
        """Kill children of the launcher that lost their supervisor; returns whether there were any."""
        try:
            return kill_descendants(os.getpid(), set(), supervisors)
        except FileNotFoundError:  # not every kernel lists the children of a process
            children = children_by_parent()
            strays = [child for child in children.get(os.getpid(), []) if child not in supervisors]
            send_signal([*strays, *descendants_of(strays, children)], signal.SIGKILL)
            return bool(strays)

    def _kill_group(self, child: int) -> None:
        """Kill a child with its group, which the kernel does in one step."""
        if child not in self.statuses:  # or the process ID may have been reused
            send_signal([child, -child], signal.SIGKILL)
            self.signalled.add(child)

    def _end_group(self, child: int) -> bool:
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(child, number)
            except (ProcessLookupError, PermissionError):
                break
            self.signalled.add(child)
            self.wait(GRACE_SECONDS)
        return self.wait(KILL_SECONDS)


# A cgroup for the launcher and all its descendants, where one can be created: the kernel then limits processes of root
# too.
#
# There is one for all calls, because moving a process into a cgroup takes up to ten milliseconds. Its limit is what the
# running calls may have together, and is set anew when one begins or ends, which takes microseconds. It is the fallback
# behind the measurement of each call, and stops a fork bomb that outruns the kill.

_CGROUP_ROOT = "/sys/fs/cgroup"
_CGROUP_PREFIX = "toolcrib-"
_CGROUP_TASKS = 4_096
# The launcher, its spare processes, and the supervisors of calls.
_OWN_TASKS = 64


def enter_cgroup(process: int) -> str | None:
    """Move a process, with its future descendants, into a cgroup of its own; its path, if one can be created."""
    for parent in _cgroups():
        group = f"{parent}/{_CGROUP_PREFIX}{process}"
        try:
            _remove_stale_cgroups(parent)
            os.mkdir(group)
            limit_cgroup(group, _CGROUP_TASKS)
            write_text(f"{group}/cgroup.procs", str(process))
        except OSError:
            continue
        return group
    return None


def limit_cgroup(group: str, tasks: int) -> None:
    """Allow the running calls so many tasks in all."""
    write_text(f"{group}/pids.max", str(min(tasks + _OWN_TASKS, _CGROUP_TASKS)))


class StoppedForks:
    """Let nothing fork in the cgroup of this process from `stop` to the end of the block, as far as privileged.

    This is for the moment in which a fork bomb is killed; other calls could hardly fork beside it anyway.
    """

    def __init__(self) -> None:
        self._limits: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def stop(self) -> None:
        """Stop them, also if the host has raised the limit meanwhile, and schedule this process before all others."""
        _outrank()
        for group in _cgroups():
            path = f"{group}/pids.max"
            if f"/{_CGROUP_PREFIX}" not in group:
                continue
            try:
                with open(path, encoding="ascii") as file:
                    limit = file.read().strip()
                if limit != "0":
                    self._limits[path] = limit
                    write_text(path, "0")
            except OSError:
                continue

    def __exit__(self, *problem: object) -> None:
        for path, limit in self._limits.items():
            try:
                write_text(path, limit)
            except OSError:
                continue


def leave_cgroup() -> None:
    """Move back to the parent cgroup and remove this one; the process must be the last one in it.

    The kernel takes some ten milliseconds for the move, so this is for a launcher that no host waits for.
    """
    for parent in _cgroups():
        group, _, name = parent.rpartition("/")
        if name != f"{_CGROUP_PREFIX}{os.getpid()}":
            continue
        try:
            write_text(f"{group}/cgroup.procs", "0")
            os.rmdir(parent)
        except OSError:
            continue  # the next launcher removes it


def _cgroups() -> list[str]:
    """The cgroups with a pids controller that this process is in, of version 1 or 2."""
    found = []
    try:
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            for line in file:
                _, controllers, path = line.rstrip("\n").split(":", 2)
                if "pids" in controllers.split(","):
                    found.append(f"{_CGROUP_ROOT}/{controllers}{path.rstrip('/')}")
                elif not controllers and _offers_pids(f"{_CGROUP_ROOT}{path.rstrip('/')}"):
                    found.append(f"{_CGROUP_ROOT}{path.rstrip('/')}")
    except (OSError, ValueError):
        return []
    return found


def _offers_pids(folder: str) -> bool:
    try:
        with open(f"{folder}/cgroup.subtree_control", encoding="ascii") as file:
            return "pids" in file.read().split()
    except OSError:
        return False


def _remove_stale_cgroups(parent: str) -> None:
    """Remove the cgroups of launchers that were killed."""
    for name in os.listdir(parent):
        process = name.removeprefix(_CGROUP_PREFIX)
        if name.startswith(_CGROUP_PREFIX) and process.isdecimal() and not os.path.exists(f"/proc/{process}"):
            try:
                os.rmdir(f"{parent}/{name}")
            except OSError:
                continue
