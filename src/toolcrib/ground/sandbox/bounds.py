"""How much a job may use: limits that the kernel keeps, and a supervisor that measures what it does not.

Not counted is what the kernel holds for a job beside its pages: what waits in its pipes and pairs of sockets, its page
tables, the names and nodes of its files. The numbers of descriptors and processes bound that, and nothing else does.
Neither are pages that were moved to a swap device; there each process has only its limit of data.
"""

# ruff: noqa: PTH123 - pathlib would take a third of the start
from __future__ import annotations

import resource
import time

from toolcrib.ground.sandbox import scratch, system

TYPE_CHECKING = False  # see system
if TYPE_CHECKING:
    from typing import Any

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
        if self._folder and scratch.measure(self._folder, limit_bytes) > limit_bytes:
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
