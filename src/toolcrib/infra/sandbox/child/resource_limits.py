"""How much a job may use: limits that the kernel keeps, and a supervisor that measures what it does not.

Not counted is what the kernel holds for a job beside its pages: what waits in its pipes and pairs of sockets, its page
tables, the names and nodes of its files. The numbers of descriptors and processes bound that, and nothing else does.
Neither are pages that were moved to a swap device; there each process has only its limit of data.
"""

# ruff: noqa: PTH102, PTH106, PTH110, PTH208 - pathlib would take a third of the start
# ruff: noqa: PTH123 - pathlib would take a third of the start
# ruff: noqa: PTH102, PTH106, PTH110, PTH123, PTH208 - pathlib would take a third of the start
from __future__ import annotations

import errno
import os
import resource
import stat
import time

from toolcrib.infra.sandbox.child import system

TYPE_CHECKING = False  # see system

if TYPE_CHECKING:
    from typing import Any


# A scratch folder on disk, for a worker that cannot have one in memory; its supervisor measures and removes it.

_PARENT = "/tmp"  # noqa: S108 - the name that is made there cannot be guessed, and is nobody's if it exists
_PREFIX = "toolcrib-scratch-"
_SMALLEST = 4096  # an entry takes room even if there is nothing in it


def name() -> str:
    """Where this process would have such a folder made."""
    return f"{_PARENT}/{_PREFIX}{os.getpid()}-{os.urandom(8).hex()}"


def make(path: str) -> None:
    """Make it; those that a supervisor could not remove any more go first."""
    for entry in os.listdir(_PARENT):
        if entry.startswith(_PREFIX) and not _is_in_use(entry):
            remove(f"{_PARENT}/{entry}")
    os.mkdir(path, 0o700)


def remove(path: str) -> None:
    """Remove it, if it was made, with all that is in it."""
    try:
        top = _open_folder(path)
        try:
            _empty(top)
        finally:
            os.close(top)
        os.rmdir(path)
    except OSError:
        return


def measure(path: str, limit: int) -> int:
    """The bytes that it takes on disk, counted until the limit is passed."""
    total = 0
    folders = [path]
    while folders and total <= limit:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    facts = entry.stat(follow_symlinks=False)
                    total += max(facts.st_blocks * 512, _SMALLEST)
                    if stat.S_ISDIR(facts.st_mode):
                        folders.append(entry.path)
        except OSError as problem:
            if problem.errno == errno.ENAMETOOLONG:  # what cannot be looked into counts as too much
                return limit + 1
    return total


def _is_in_use(entry: str) -> bool:
    process = entry.removeprefix(_PREFIX).partition("-")[0]
    return not process.isdecimal() or os.path.exists(f"/proc/{process}")


def _empty(top: int) -> None:
    """Go down and up again with one descriptor, so that nothing is too deep to be reached."""
    folder = os.dup(top)
    way: list[str] = []
    ahead = [_unlink_files(folder)]
    try:
        while ahead[-1] or way:
            if ahead[-1]:
                way.append(ahead[-1].pop())
                folder = _replace(folder, _open_folder(way[-1], folder))
                ahead.append(_unlink_files(folder))
            else:
                ahead.pop()
                folder = _replace(folder, _open_folder("..", folder))
                os.rmdir(way.pop(), dir_fd=folder)
    finally:
        os.close(folder)


def _unlink_files(folder: int) -> list[str]:
    """Leave only the folders of a folder; their names."""
    folders = []
    for entry in os.listdir(folder):
        if stat.S_ISDIR(os.stat(entry, dir_fd=folder, follow_symlinks=False).st_mode):
            folders.append(entry)
        else:
            os.unlink(entry, dir_fd=folder)
    return folders


def _replace(old: int, new: int) -> int:
    os.close(old)
    return new


def _open_folder(path: str, parent: int | None = None) -> int:
    os.chmod(path, 0o700, dir_fd=parent)
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)


MEMORY, PROCESSES, DISK = "mem", "pids", "disk"
WALLS = "walls"  # no limit, but ended for all the same: see mounts

# The kernel counts threads where we count processes; theirs is the last line, behind the measuring.
TASKS_PER_PROCESS = 8
_DATA_OF_PROGRAMS = 8
# Every pair of sockets can hold some hundred kilobytes that nobody measures.
_FILES, _MAX_FILES = 256, 1024
_FIRST_SECONDS, _LONGEST_SECONDS = 0.01, 0.05
_PAGE = resource.getpagesize()


def limit(walls: dict[str, Any], *, is_program: bool, count_processes: bool) -> None:
    """Set what the kernel can limit for one process; `count_processes` in a namespace, where only its own are counted."""
    _set(resource.RLIMIT_CORE, 0, 0)
    _set(resource.RLIMIT_NOFILE, _FILES, _MAX_FILES)
    _set(resource.RLIMIT_FSIZE, walls["disk_bytes"], walls["disk_bytes"])
    # Data and not addresses: Node reserves far more addresses than it ever uses, and of data still half a gigabyte for
    # every thread with a heap. What a program really uses is measured.
    data = walls["memory_bytes"] * (_DATA_OF_PROGRAMS if is_program or walls["programs"] else 1)
    _set(resource.RLIMIT_DATA, data, data)
    if count_processes:
        tasks = walls["processes"] * TASKS_PER_PROCESS
        _set(resource.RLIMIT_NPROC, tasks, tasks)


def _set(kind: int, soft: int, hard: int) -> None:
    ceiling = resource.getrlimit(kind)[1]
    if ceiling != resource.RLIM_INFINITY:
        hard = min(hard, ceiling)
    resource.setrlimit(kind, (min(soft, hard), hard))


class Meter:
    """Measures the family of this process, first soon and then at longer intervals."""

    def __init__(self, walls: dict[str, Any], folder: str) -> None:
        self._walls = walls
        self._folder = folder
        self._pause = _FIRST_SECONDS
        self._next = time.monotonic() + _FIRST_SECONDS

    def seconds_left(self) -> float:
        """How long it is until the next time."""
        return max(self._next - time.monotonic(), 0)

    def is_due(self) -> bool:
        """Whether it is time again."""
        return time.monotonic() >= self._next

    def exceeded(self) -> str:
        """The limit that the family has passed, if any."""
        self._pause = min(2 * self._pause, _LONGEST_SECONDS)
        self._next = time.monotonic() + self._pause
        family = system.descendants()
        if len(family) > self._walls["processes"]:
            return PROCESSES
        if _is_larger(family, self._walls["memory_bytes"]):
            return MEMORY
        limit_bytes: int = self._walls["disk_bytes"]
        if self._folder and measure(self._folder, limit_bytes) > limit_bytes:
            return DISK
        return ""


def _is_larger(family: list[int], limit_bytes: int) -> bool:
    if sum(map(_resident_bytes, family)) <= limit_bytes:
        return False
    # What a fork shares with its parent was counted for both.
    return sum(map(_proportional_bytes, family)) > limit_bytes


def _resident_bytes(process: int) -> int:
    try:
        with open(f"/proc/{process}/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0


def _proportional_bytes(process: int) -> int:
    """Its fair share of what it uses; all of it if it does not let itself be looked into."""
    try:
        with open(f"/proc/{process}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return _resident_bytes(process)


# A control group for the launcher and all it starts, where one can be made: the kernel then counts processes, even of root.
#
# One for all calls together, and not one for each: moving a process takes the kernel up to ten milliseconds. It is the last
# line behind the measuring of each call, and keeps a bomb from outrunning whoever kills it.

_ROOT = "/sys/fs/cgroup"
_PREFIX_cgroup = "toolcrib-"
_MAX_TASKS = 4_096


def confine(process: int) -> None:
    """Put a process, with all that it will start, into a group of its own, if there is one to be had."""
    for parent in _parents():
        group = f"{parent}/{_PREFIX_cgroup}{process}"
        try:
            _remove_stale(parent)
            os.mkdir(group)
            _write(f"{group}/pids.max", str(_MAX_TASKS))
            _write(f"{group}/cgroup.procs", str(process))
        except OSError:
            continue
        return


def leave() -> None:
    """Go back to where this process came from, and remove the group that it leaves; it must be the last one there."""
    for parent in _parents():
        group, _, name = parent.rpartition("/")
        if name != f"{_PREFIX_cgroup}{os.getpid()}":
            continue
        try:
            _write(f"{group}/cgroup.procs", "0")
            os.rmdir(parent)
        except OSError:
            continue  # the next launcher removes it


def _parents() -> list[str]:
    """Where groups that count processes can be made: below our own, in the old tree or in the new one."""
    found = []
    try:
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            for line in file:
                _, controllers, path = line.rstrip("\n").split(":", 2)
                if "pids" in controllers.split(","):
                    found.append(f"{_ROOT}/{controllers}{path.rstrip('/')}")
                elif not controllers and _offers_pids(f"{_ROOT}{path.rstrip('/')}"):
                    found.append(f"{_ROOT}{path.rstrip('/')}")
    except (OSError, ValueError):
        return []
    return found


def _offers_pids(folder: str) -> bool:
    try:
        with open(f"{folder}/cgroup.subtree_control", encoding="ascii") as file:
            return "pids" in file.read().split()
    except OSError:
        return False


def _remove_stale(parent: str) -> None:
    """Remove the groups of launchers that could not do it any more."""
    for name in os.listdir(parent):
        process = name.removeprefix(_PREFIX_cgroup)
        if name.startswith(_PREFIX_cgroup) and process.isdecimal() and not os.path.exists(f"/proc/{process}"):
            try:
                os.rmdir(f"{parent}/{name}")
            except OSError:
                continue


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
