"""Print the command that repeats the tests that failed, with the seed of their order. A pytest plugin, loaded by tests/conftest.py."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest
from _pytest.terminal import TerminalReporter

SHOWN = 20


def pytest_terminal_summary(terminalreporter: TerminalReporter, config: pytest.Config) -> None:
    """One line for all of them."""
    stats = terminalreporter.stats
    failed = dict.fromkeys(report.nodeid for kind in ("failed", "error") for report in stats.get(kind, ()))
    if failed:
        python = Path(sys.executable)
        program = python.relative_to(Path.cwd()) if python.is_relative_to(Path.cwd()) else python
        seed = config.getoption("randomly_seed", None)
        order = [] if seed is None else ["-p", "randomly", f"--randomly-seed={seed}"]
        words = [str(program), "-m", "pytest", *order, *list(failed)[:SHOWN]]
        more = f" and {len(failed) - SHOWN} more" if len(failed) > SHOWN else ""
        terminalreporter.write_line(f"repeat: {shlex.join(words)}{more}")
