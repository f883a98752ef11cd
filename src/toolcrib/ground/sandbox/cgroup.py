"""A control group for a call, where this process may make one: the kernel then counts its processes, even those of root."""

# ruff: noqa: PTH102, PTH106, PTH110, PTH123, PTH208 - pathlib would take a third of the start
from __future__ import annotations

import os
import time

_ROOT = "/sys/fs/cgroup"
_PREFIX = "toolcrib-"
_REMOVE_SECONDS = 0.2
_ROUND_SECONDS = 0.002


def make(tasks: int) -> str:
    """A group that may have so many tasks, named after this process; empty if there is none to be had."""
    for parent in _parents():
        group = f"{parent}/{_PREFIX}{os.getpid()}"
        try:
            _remove_stale(parent)
            os.mkdir(group)
        except OSError:
            continue
        try:
            _write(f"{group}/pids.max", str(tasks))
        except OSError:
            os.rmdir(group)
            continue
        return group
    return ""


def join(group: str) -> None:
    """Become a member, with all that this process will start."""
    _write(f"{group}/cgroup.procs", "0")


def remove(group: str) -> None:
    """Remove the group once its last process has gone."""
    until = time.monotonic() + _REMOVE_SECONDS
    while time.monotonic() < until:
        try:
            os.rmdir(group)
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(_ROUND_SECONDS)
        else:
            return


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
    """Remove the groups of supervisors that could not do it any more."""
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
