"""What every test may use: a crib over a few tools, a project folder, and the command line."""

from __future__ import annotations

import gc
import itertools
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

import hypothesis
import pytest

import warm_python
from soaks import examples
from toolcrib import Crib
from toolcrib.__main__ import main
from toolcrib.infra.sandbox.jobs import SHARED_MEMORY

pytest_plugins = ["leaks", "repeat_command", "shared_rewriting", "short_reports", "warm_launchers"]

# A slow or busy machine is not a defect of the code: no property fails by the time that it took.
hypothesis.settings.register_profile(
    "suite",
    deadline=None,
    max_examples=examples(100),
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    print_blob=True,
)


def pytest_configure() -> None:
    """Make every run start in the same state."""
    if Path(tempfile.gettempdir()).resolve().is_relative_to(SHARED_MEMORY):
        raise pytest.UsageError(f"every job gets a {SHARED_MEMORY} of its own; set TMPDIR to a folder elsewhere")
    hypothesis.settings.load_profile("suite")
    # A shell ignores SIGINT in what it starts in the background, and children would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Without bytecode each of the many child processes compiles everything that it imports.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # Options of this run are not for those that tests start.
    os.environ.pop("PYTEST_ADDOPTS", None)
    sys.dont_write_bytecode = False
    # Thousands of items are made and none goes away: there is nothing to collect.
    gc.disable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two more than there are cores: two fifths of the time a test waits, for the disk or for a process to end."""
    return len(os.sched_getaffinity(0)) + 2


class Frozen:
    """What the garbage collector need not look at: all that was made before the first test.

    A server that a test runs in this process thaws it at its end. It is frozen again after that test and not after others, because
    garbage that is frozen is never collected, and with it the threads that it holds.
    """

    is_thawed = False
    unfreeze = staticmethod(gc.unfreeze)

    def thaw(self) -> None:
        """In place of `gc.unfreeze`."""
        self.is_thawed = True
        self.unfreeze()

    def freeze_again(self) -> None:
        """After a test."""
        if self.is_thawed:
            self.is_thawed = False
            gc.freeze()


FROZEN = Frozen()


def pytest_collection_finish() -> None:
    """Let the garbage collector look only at what tests make."""
    gc.freeze()
    gc.enable()
    gc.unfreeze = FROZEN.thaw


@dataclass(frozen=True)
class CompletedCommand:
    """How a command ended."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def empty_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home without tools in it."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="session", autouse=True)
def _warm_python_ends() -> Iterator[None]:
    yield
    warm_python.stop()


@pytest.fixture(scope="session", autouse=True)
def _no_settings_from_outside(empty_home: Path) -> Iterator[None]:
    """Once for all tests: one that sets a variable takes it back itself, with monkeypatch."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("HOME", str(empty_home))
        for name in [name for name in os.environ if name.startswith("TOOLCRIB_")]:
            monkeypatch.delenv(name)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Projects of tests come and go; their folders do not stay on the path.

    A hook instead of a fixture, because every test pays for it.
    """
    before = list(sys.path)
    try:
        return (yield)
    finally:
        sys.path[:] = before
        FROZEN.freeze_again()


@pytest.fixture
async def crib_of() -> AsyncIterator[Callable[..., Crib]]:
    """Make a crib over the given functions; it is closed at the end."""
    opened: list[Crib] = []

    def make(*tools, project=None, **settings) -> Crib:
        opened.append(Crib(project, tools=tools, **settings))
        return opened[-1]

    yield make
    for crib in opened:
        await crib.close()


@pytest.fixture(scope="session")
def _folder_numbers() -> Iterator[int]:
    return itertools.count()


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory, _folder_numbers: Iterator[int]) -> Path:
    """A folder for one test; pytest's own also moves a link to the latest one, which waits for the disk at every test."""
    return tmp_path_factory.mktemp(f"t{next(_folder_numbers)}", numbered=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """An empty project folder."""
    (tmp_path / "tools").mkdir()
    return tmp_path


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., CompletedCommand]:
    """Run a command where the test stands."""

    def run(*words: str) -> CompletedCommand:
        capsys.readouterr()
        code = main(words)
        return CompletedCommand(code, *capsys.readouterr())

    return run
