"""Resource limits of a job: rlimits, a scratch folder, and measurements by the supervisor.

Kernel memory of a job is not counted: buffers of pipes and socket pairs, page tables, inodes and dentries. Only the
limits on descriptors and processes bound it. Swapped pages are not counted either; they are bounded per process by
RLIMIT_DATA.
"""

# ruff: noqa: PTH102, PTH106, PTH110, PTH123, PTH208 - pathlib would take a third of the start
from __future__ import annotations

import errno
import os
import resource
import stat
import time

from toolcrib.infra.sandbox import system

TYPE_CHECKING = False  # see system

if TYPE_CHECKING:
    from typing import Any


# A scratch folder on disk, for a worker that cannot mount one; its supervisor measures and removes it.

_PARENT = "/tmp"  # noqa: S108 - the name cannot be guessed, and creating it fails if it exists
_PREFIX = "toolcrib-scratch-"
_SMALLEST = 4096  # an empty entry takes space too


def name() -> str:
    """The path of a new scratch folder of this process."""
    return f"{_PARENT}/{_PREFIX}{os.getpid()}-{os.urandom(8).hex()}"


def make(path: str) -> None:
    """Create it, after removing those of supervisors that were killed."""
    for entry in os.listdir(_PARENT):
        if entry.startswith(_PREFIX) and not _is_in_use(entry):
            remove(f"{_PARENT}/{entry}")
    os.mkdir(path, 0o700)


def remove(path: str) -> None:
    """Remove it with its content, if it was created."""
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
    """The bytes that it takes on disk, counted until the limit is exceeded."""
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
            if problem.errno == errno.ENAMETOOLONG:  # a folder too deep to open counts as too much
                return limit + 1
    return total


def _is_in_use(entry: str) -> bool:
    process = entry.removeprefix(_PREFIX).partition("-")[0]
    return not process.isdecimal() or os.path.exists(f"/proc/{process}")


def _empty(top: int) -> None:
    """Descend and ascend with one descriptor, so that no depth is out of reach."""
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
    """Remove all but the subfolders; returns their names."""
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
ISOLATION = "isolation"  # not a limit, but reported like one: see protected_paths

_DATA_OF_PROGRAMS = 8
# Every socket pair can hold some hundred kilobytes that are not measured.
_FILES, _MAX_FILES = 256, 1024
_FIRST_SECONDS, _LONGEST_SECONDS = 0.01, 0.05
_PAGE = resource.getpagesize()


def limit(policy: dict[str, Any], *, is_program: bool, count_processes: bool) -> None:
    """Set the rlimits of one process; `count_processes` in a user namespace, where only its own are counted."""
    _set(resource.RLIMIT_CORE, 0, 0)
    _set(resource.RLIMIT_NOFILE, _FILES, _MAX_FILES)
    if not policy["only"]:
        _set(resource.RLIMIT_FSIZE, policy["disk_bytes"], policy["disk_bytes"])
    # RLIMIT_DATA instead of RLIMIT_AS: Node reserves far more addresses than it uses, and of data still half a gigabyte
    # for every thread with a heap. Actual use is measured.
    data = policy["memory_bytes"] * (_DATA_OF_PROGRAMS if is_program or policy["programs"] else 1)
    _set(resource.RLIMIT_DATA, data, data)
    if count_processes:
        tasks = policy["processes"] * system.TASKS_PER_PROCESS
        _set(resource.RLIMIT_NPROC, tasks, tasks)


def _set(kind: int, soft: int, hard: int) -> None:
    ceiling = resource.getrlimit(kind)[1]
    if ceiling != resource.RLIM_INFINITY:
        hard = min(hard, ceiling)
    resource.setrlimit(kind, (min(soft, hard), hard))


class Meter:
    """Measure the process tree, first soon and then at longer intervals."""

    def __init__(self, policy: dict[str, Any], folder: str) -> None:
        self._policy = policy
        self._folder = folder
        self._pause = _FIRST_SECONDS
        self._next = time.monotonic() + _FIRST_SECONDS

    def seconds_left(self) -> float:
        """The seconds until the next measurement."""
        return max(self._next - time.monotonic(), 0)

    def is_due(self) -> bool:
        """Whether the next measurement is due."""
        return time.monotonic() >= self._next

    def exceeded(self) -> str:
        """The limit that the process tree exceeds, if any."""
        self._pause = min(2 * self._pause, _LONGEST_SECONDS)
        self._next = time.monotonic() + self._pause
        processes: int = self._policy["processes"]
        # A bomb of processes grows as quickly as it is counted.
        tree = system.descendants(enough=processes)
        if len(tree) > processes:
            return PROCESSES
        if _is_larger(tree, self._policy["memory_bytes"]):
            return MEMORY
        limit_bytes: int = self._policy["disk_bytes"]
        if self._folder and measure(self._folder, limit_bytes) > limit_bytes:
            return DISK
        return ""


def _is_larger(tree: list[int], limit_bytes: int) -> bool:
    if sum(map(_resident_bytes, tree)) <= limit_bytes:
        return False
    # Pages shared after a fork were counted for both processes.
    return sum(map(_proportional_bytes, tree)) > limit_bytes


def _resident_bytes(process: int) -> int:
    try:
        with open(f"/proc/{process}/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0


def _proportional_bytes(process: int) -> int:
    """Its proportional set size; its resident size if that cannot be read."""
    try:
        with open(f"/proc/{process}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return _resident_bytes(process)
