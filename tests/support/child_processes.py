"""Find child processes that outlive the test that started them, and name that test.

A pytest plugin, loaded by tests/conftest.py. A child process that a test leaves running fails that test. Processes that belong to a fixture
of a wider scope, such as the session's sandbox, may stay until that fixture ends; at the end of the session nothing may be left, orphans
included. After a test that failed, what it started is killed, so that the next test does not fail because of it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path

import pytest

import warm_python

# A process inherits it, also as an orphan, unless it gets variables of its own.
MARK = "TESTS_OF_PROCESS"
SECONDS = 30
# A sandbox of a wider scope starts its launcher with the first test that needs it; the end of the session looks for it.
LAUNCHER = "toolcrib.infra.sandbox.child.launcher"


class Children:
    """The children of this process, with the test that ran when each was first seen."""

    def __init__(self) -> None:
        self.first_seen: dict[int, str] = {}
        self.kept: set[int] = set()
        self.of_this_test: set[int] = set()
        self.failed = False

    def look(self, test: str) -> None:
        """Note the children there are, and which of them are new."""
        there = set(_own_children())
        for gone in self.first_seen.keys() - there:
            del self.first_seen[gone]
        new = there - self.first_seen.keys()
        self.of_this_test |= new
        self.first_seen |= dict.fromkeys(new, test)

    def of_the_test_alone(self) -> set[int]:
        """Those that nothing after this test uses: neither a wider fixture nor the next test."""
        import warm_launchers  # late: pytest loads it after this plugin, whose fixture has to end last

        return self.of_this_test - self.kept - warm_python.pids() - warm_launchers.pids()

    def outlive(self) -> set[int]:
        """Those of the test alone that are still running."""
        return {pid for pid in self.of_the_test_alone() if _is_alive(pid) and LAUNCHER not in _command(pid)}

    def leftovers(self) -> dict[int, str]:
        """What is still alive, with its test."""
        self.look("an unknown test")
        orphans = dict.fromkeys(_marked(), "an unknown test")
        return orphans | {pid: test for pid, test in self.first_seen.items() if _is_alive(pid)}


CHILDREN = Children()


def _own_children() -> list[int]:
    # After every test: without the detours of pathlib.
    found: list[int] = []
    for task in os.listdir("/proc/self/task"):  # noqa: PTH208 - see above
        with contextlib.suppress(OSError), open(f"/proc/self/task/{task}/children", "rb", 0) as file:  # noqa: PTH123
            found += map(int, file.read().split())
    return found


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _marked() -> Iterator[int]:
    wanted = f"{MARK}={os.getpid()}\0".encode()
    for place in Path("/proc").iterdir():
        if place.name.isdigit() and int(place.name) != os.getpid():
            with contextlib.suppress(OSError):
                if wanted in (place / "environ").read_bytes() and _is_alive(int(place.name)):
                    yield int(place.name)


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return "gone"


@pytest.fixture(scope="session", autouse=True)
def _no_child_process_is_left() -> Iterator[None]:
    """Set up before all others, and so torn down after them."""
    os.environ[MARK] = str(os.getpid())
    yield
    deadline = time.monotonic() + SECONDS
    while (left := CHILDREN.leftovers()) and time.monotonic() < deadline:
        time.sleep(0.05)
    told = [f"{test} left process {pid}: {_command(pid)[:200]}" for pid, test in left.items()]
    _kill(left)
    assert not told, "; ".join(told)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test that leaves a process running; a hook, because a fixture costs every test more."""
    result = yield
    CHILDREN.look(item.nodeid)
    if not CHILDREN.of_this_test or CHILDREN.failed:
        return result
    deadline = time.monotonic() + SECONDS
    while (left := CHILDREN.outlive()) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not left, "; ".join(f"it left process {pid}: {_command(pid)[:200]}" for pid in left)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """End what a test that failed left."""
    CHILDREN.failed = False
    CHILDREN.of_this_test.clear()
    try:
        return (yield)
    finally:
        CHILDREN.look(item.nodeid)
        if CHILDREN.failed:
            _kill(CHILDREN.of_the_test_alone())


def _kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object]) -> Iterator[None]:
    """What a fixture of a wider scope starts may stay."""
    if fixturedef.scope == "function":
        return (yield)
    before = set(_own_children())
    try:
        return (yield)
    finally:
        CHILDREN.kept |= set(_own_children()) - before


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note whether the test failed."""
    report = yield
    CHILDREN.failed |= report.failed
    return report
