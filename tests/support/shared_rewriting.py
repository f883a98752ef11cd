"""Let the workers of a first run share the rewriting of assertions.

A pytest plugin, loaded by tests/conftest.py. pytest rewrites the assertions of every test file, and of every module of a package that
brings a plug-in as ours does, when it is first imported, and keeps the result beside the bytecode. In a fresh checkout each worker of
pytest-xdist would rewrite all thousand of them, which takes ten seconds of computing. Before they collect, each rewrites a part.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.assertion import rewrite

ROOT = Path(__file__).resolve().parents[2]


def pytest_sessionstart(session: pytest.Session) -> None:
    """In a worker, rewrite its part of what has never been rewritten; a stale file is rewritten when it is imported."""
    worker = getattr(session.config, "workerinput", None)
    if worker is None:
        return
    for path in sorted(files())[int(worker["workerid"].removeprefix("gw")) :: worker["workercount"]]:
        if not kept(path).exists():
            rewrite_file(path, session.config)


def files() -> Iterator[Path]:
    """What pytest rewrites when everything is collected."""
    yield from (ROOT / "src").rglob("*.py")
    for pattern in ("test_*.py", "conftest.py"):
        yield from (ROOT / "tests").rglob(pattern)


def kept(path: Path) -> Path:
    """Where pytest keeps the rewritten module."""
    return rewrite.get_cache_dir(path) / f"{path.stem}{rewrite.PYC_TAIL}"


def rewrite_file(path: Path, config: pytest.Config) -> None:
    """Rewrite a module as pytest does when it is imported, without running it."""
    try:
        source, code = rewrite._rewrite_test(path, config)
    except (OSError, SyntaxError, ValueError):
        return  # its import will fail and say why
    if rewrite.try_makedirs(kept(path).parent):
        rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, source, kept(path))
