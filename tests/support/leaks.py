"""Fail a test that leaves a child process, a thread or a file descriptor, and say which.

A pytest plugin, loaded by tests/conftest.py. Before and after each test it lists the three; only where something is new it collects garbage,
waits a while, and fails the test. What a fixture of a wider scope opens, and what a test that uses one opens, may stay until that
fixture ends. What is handed from test to test may stay too: its owner names it in `HANDED_ON`. After a test that failed for another reason, what it started is killed, so
that the next test does not fail because of it. At the end of the session no process may be left, orphans included.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path

import pytest
import uvloop
from _pytest.unraisableexception import collect_unraisable

import warm_python

# A process inherits it, also as an orphan, unless it gets variables of its own.
MARK = "TESTS_OF_PROCESS"
SECONDS = 30
Thing = tuple[str, int]
OF_A_LOOP = ("[eventpoll]", "socket:[", ": asyncio_")
# What is open between tests on purpose.
HANDED_ON: list[Callable[[], set[Thing]]] = [warm_python.things]


class Leaks:
    """What was there before the test, and what may stay after it."""

    def __init__(self) -> None:
        self.before: set[Thing] = set()
        self.kept: set[Thing] = set()
        self.failed = False

        # What was opened in tests that use a fixture of a wider scope, which may own it.
        self.grown: dict[object, set[Thing]] = {}

    def new(self) -> set[Thing]:
        """What nothing after this test uses: neither a wider fixture nor the next test."""
        found = things() - self.before
        return found and found.difference(self.kept, *self.grown.values(), *(of() for of in HANDED_ON))

    def outlive(self) -> list[Thing]:
        """What of it is still there, without processes that only have to be reaped."""
        return sorted((kind, number) for kind, number in self.new() if kind != "process" or _is_alive(number))


LEAKS = Leaks()


def things() -> set[Thing]:
    """The children, threads and descriptors of this process; listed after every test, so without the detours of pathlib."""
    found: set[Thing] = {("thread", number) for number in threading._active}  # type: ignore[attr-defined]
    for task in os.listdir("/proc/self/task"):  # noqa: PTH208 - see above
        with contextlib.suppress(OSError), open(f"/proc/self/task/{task}/children", "rb", 0) as file:  # noqa: PTH123
            found.update(("process", int(pid)) for pid in file.read().split())
    found.update(("descriptor", int(number)) for number in os.listdir("/proc/self/fd"))  # noqa: PTH208
    # The list was read by a descriptor, whose number is that of the next one.
    own = os.open("/", os.O_PATH)
    os.close(own)
    found.discard(("descriptor", own))
    return found


def _threads_that_parse() -> set[Thing]:
    """Those of the pool that all servers of a process share."""
    module = sys.modules.get("toolcrib.toolkit.http")
    if module is None or not module._readers.cache_info().currsize:
        return set()
    return {("thread", thread.ident) for thread in module._readers()._threads}


HANDED_ON.append(_threads_that_parse)


def _describe(thing: Thing) -> str:
    kind, number = thing
    with contextlib.suppress(OSError):
        if kind == "process":
            return f"process {number}: {_command(number)[:200]}"
        if kind == "descriptor":
            return f"descriptor {number}: {os.readlink(f'/proc/self/fd/{number}')}"  # noqa: PTH115 - a pipe is no path
    thread = threading._active.get(number)  # type: ignore[attr-defined]
    frame = sys._current_frames().get(number)
    where = " < ".join(f"{Path(one.filename).name}:{one.lineno}" for one in traceback.extract_stack(frame)[::-1][:4])
    return f"{kind} {number}: {getattr(thread, 'name', 'gone')}, in {where}"


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
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()


@pytest.fixture(scope="session", autouse=True)
def _no_child_process_is_left() -> Iterator[None]:
    """Set up before all others, and so torn down after them."""
    os.environ[MARK] = str(os.getpid())
    yield
    deadline = time.monotonic() + SECONDS
    while (left := _left_processes()) and time.monotonic() < deadline:
        time.sleep(0.05)
    told = [_describe(("process", pid)) for pid in left]
    _kill(left)
    assert not told, "; ".join(told)


def _left_processes() -> set[int]:
    return {*_marked(), *(number for kind, number in things() if kind == "process" and _is_alive(number))}


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test that leaves something; a hook, because a fixture costs every test more."""
    result = yield
    if not (new := LEAKS.new()):
        return result
    if owners := _wider_fixtures(item):
        LEAKS.grown.setdefault(owners[-1], set()).update(new)
        return result
    if LEAKS.failed:
        # Its local variables are still referenced, and what they hold would be reported where it is collected.
        for name in ("last_type", "last_value", "last_traceback", "last_exc"):
            sys.__dict__.pop(name, None)
        with warnings.catch_warnings(action="ignore"):
            gc.collect()
        return result
    gc.collect()
    left = _wait(LEAKS.outlive)
    told = "; ".join(map(_describe, left))
    # What the garbage said when it was collected belongs to this test.
    collect_unraisable(item.config)
    assert not told, f"it left {told}"
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """End what a test that failed left."""
    LEAKS.failed = False
    try:
        return (yield)
    finally:
        if LEAKS.failed:
            _kill(number for kind, number in LEAKS.new() if kind == "process")
        LEAKS.before = things()
        LEAKS.kept &= LEAKS.before
        # The number of what is closed by now may be given to another thing.
        for grown in LEAKS.grown.values():
            grown.intersection_update(LEAKS.before)


def _wait(left: Callable[[], list[Thing]]) -> list[Thing]:
    deadline = time.monotonic() + SECONDS
    while (found := left()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return found


def _kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def pytest_collection_finish() -> None:
    """Begin with what is there before the first test, and with what the first loop of uvloop leaves for all."""
    uvloop.new_event_loop().close()
    LEAKS.before = things()


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object]) -> Iterator[None]:
    """What a fixture of a wider scope opens may stay."""
    if fixturedef.scope == "function":
        return (yield)
    before = things()
    try:
        return (yield)
    finally:
        LEAKS.kept |= things() - before


@pytest.hookimpl(trylast=True)
def pytest_fixture_post_finalizer(fixturedef: pytest.FixtureDef[object]) -> None:
    """When it ends, what tests opened in it is gone too."""
    if grown := LEAKS.grown.pop(fixturedef, None):
        gc.collect()
        # This runs within another test, whose event loop may have been given the numbers.
        grown = {thing for thing in grown if not any(word in _describe(thing) for word in OF_A_LOOP)}
        left = _wait(lambda: sorted(grown.intersection(things()).difference(*(of() for of in HANDED_ON))))
        assert not left, f"the tests that used {fixturedef.argname} left {'; '.join(map(_describe, left))}"


def _wider_fixtures(item: pytest.Item) -> list[pytest.FixtureDef[object]]:
    """Those that the test used and that outlive it; not those of all tests, which own nothing."""
    used = [found[-1] for found in getattr(item, "_fixtureinfo").name2fixturedefs.values()]  # noqa: B009 - of functions alone
    return [one for one in used if one.scope != "function" and one.cached_result and one.baseid not in {"", "tests"}]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note whether the test failed."""
    report = yield
    LEAKS.failed |= report.failed
    return report
