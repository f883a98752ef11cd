"""Let one test use the launcher of the sandbox that another one started.

A pytest plugin, loaded by tests/conftest.py. A Crib starts a launcher for its first call in a child process and ends it when it is
closed; that takes 36 ms of computing, about as much as three calls, and tests open hundreds of Cribs. A launcher knows nothing of the
Crib that started it and forks every call anew, so one without a running job is handed to the next Crib instead. Tests of the sandbox
itself use `cold_launchers` and get what users get.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import leaks
from toolcrib.infra.sandbox.host import LauncherHandle, LauncherProcess

WARM: dict[Path, LauncherProcess] = {}
START, CLOSE = LauncherHandle._start, LauncherHandle.close


def _start_or_take(handle: LauncherHandle) -> LauncherProcess:
    launcher = WARM.pop(handle._program, None)
    if launcher is None:
        return START(handle)
    if launcher.is_ours and launcher._process.poll() is None:
        return launcher
    launcher.close()
    return START(handle)


def _close_or_keep(handle: LauncherHandle) -> None:
    launcher = handle.launcher
    # One step looks and keeps: of two that threads give back at once, the second would replace the first, which nothing closes then.
    if (
        launcher is None
        or handle.users
        or not launcher.is_ours
        or WARM.setdefault(handle._program, launcher) is not launcher
    ):
        CLOSE(handle)
        return
    handle.launcher = None
    handle._starts.clear()


def _use(start: object, close: object) -> None:
    LauncherHandle._start = start  # type: ignore[method-assign,assignment]
    LauncherHandle.close = close  # type: ignore[method-assign,assignment]


def _waiting() -> set[leaks.Thing]:
    """The processes that wait for the next test, and their sockets."""
    launchers = WARM.values()
    processes = {("process", launcher.pid) for launcher in launchers}
    return processes | {("descriptor", launcher._control.fileno()) for launcher in launchers}


leaks.HANDED_ON.append(_waiting)


@pytest.fixture(scope="session", autouse=True)
def _warm_launchers() -> Iterator[None]:
    _use(_start_or_take, _close_or_keep)
    yield
    _use(START, CLOSE)
    while WARM:
        WARM.popitem()[1].close()


@pytest.fixture
def cold_launchers() -> Iterator[None]:
    """Start and end launchers as users do."""
    _use(START, CLOSE)
    yield
    _use(_start_or_take, _close_or_keep)
