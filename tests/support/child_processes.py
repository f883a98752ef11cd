"""Find child processes that outlive the test that started them, and name that test.

A pytest plugin, loaded by tests/conftest.py. Processes that belong to a fixture of a wider scope, such as the session's sandbox, may stay until
that fixture ends; at the end of the session nothing may be left. After a test that failed, what it started is killed, so that the next
test does not fail because of it.
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


class Children:
    """The children of this process, with the test that ran when each was first seen."""

    def __init__(self) -> None:
        self.first_seen: dict[int, str] = {}
        self.kept: set[int] = set()
        self.failed = False

    def look(self, test: str) -> set[int]:
        """Note the children there are; gives those that are new."""
        there = set(_own_children())
        for gone in self.first_seen.keys() - there:
            del self.first_seen[gone]
        new = there - self.first_seen.keys()
        self.first_seen |= dict.fromkeys(new, test)
        return new

    def of_the_test_alone(self, new: set[int]) -> set[int]:
        """Those that nothing after this test uses: neither a wider fixture nor the next start of a warm Python."""
        return new - self.kept - warm_python.pids()

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
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()[:200]
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
    told = [f"{test} left process {pid}: {_command(pid)}" for pid, test in left.items()]
    _kill(left)
    assert not told, "; ".join(told)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Note what a test left, and end that if the test failed; a hook, because a fixture costs every test more."""
    CHILDREN.failed = False
    try:
        return (yield)
    finally:
        new = CHILDREN.look(item.nodeid)
        if CHILDREN.failed:
            _kill(CHILDREN.of_the_test_alone(new))


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
