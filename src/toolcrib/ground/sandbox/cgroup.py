"""A control group for the launcher and all it starts, where one can be made: the kernel then counts processes, even of root.

One for all calls together, and not one for each: moving a process takes the kernel up to ten milliseconds. It is the last
line behind the measuring of each call, and keeps a bomb from outrunning whoever kills it.
"""

# ruff: noqa: PTH102, PTH106, PTH110, PTH123, PTH208 - pathlib would take a third of the start
from __future__ import annotations

import os

_ROOT = "/sys/fs/cgroup"
_PREFIX = "toolcrib-"
_MAX_TASKS = 4_096


def confine(process: int) -> None:
    """Put a process, with all that it will start, into a group of its own, if there is one to be had."""
    for parent in _parents():
        group = f"{parent}/{_PREFIX}{process}"
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
        if name != f"{_PREFIX}{os.getpid()}":
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
        process = name.removeprefix(_PREFIX)
        if name.startswith(_PREFIX) and process.isdecimal() and not os.path.exists(f"/proc/{process}"):
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
