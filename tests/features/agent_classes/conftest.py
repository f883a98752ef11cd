"""An interpreter of its own, because under pytest the plug-in offers the import paths all the time."""

import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def run_fresh(tmp_path: Path) -> Callable[..., str]:
    """Run a program in a fresh interpreter, in a folder with the given files, and give back what it printed.

    With `run_python` as `start` all of Toolcrib is imported already, for programs that are not about that.
    """

    def run(program: str, files: dict[str, str] | None = None, start: Callable[..., Any] = subprocess.run) -> str:
        for name, text in (files or {}).items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
        ended = start(
            [sys.executable, "-W", "error", "-c", textwrap.dedent(program)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        return str(ended.stdout)

    return run
