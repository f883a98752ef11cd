"""`python -m toolcrib` in a folder that may be anybody's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# Modules of Python, of packages and of extras that the start or the command imports. What Python itself imports to find
# the module it runs, such as contextlib, nobody but Python can protect.
TAKEN = ("typing", "gc", "json", "asyncio", "click", "rich", "orjson", "jsonschema_rs", "logging", "tomllib")


def test_nothing_is_imported_from_the_current_folder(tmp_path: Path) -> None:
    for name in TAKEN:
        (tmp_path / f"{name}.py").write_text("raise SystemExit('stolen')\n")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "add.py").write_text('def add() -> int:\n    """Add."""\n    return 2\n')
    (tmp_path / "toolcrib.toml").touch()
    command = [sys.executable, "-m", "toolcrib", "call", "add"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (0, "2\n"), ended.stderr
