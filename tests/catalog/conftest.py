"""Tools and a folder of tool files."""

import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from toolcrib.catalog import Folder
from toolcrib.dialects.plain import PlainFile
from toolcrib.model.tool import Function, Tool


@pytest.fixture
def make_tool() -> Callable[..., Tool]:
    """Make a tool of the host program."""

    def make(name: str, bundle: str = "host", version: str = "1.0.0") -> Tool:
        run = Function(call=lambda: name, is_async=False)
        return Tool(name=name, description="x", parameters={"type": "object"}, run=run, bundle=bundle, version=version)

    return make


@pytest.fixture
def files(tmp_path: Path) -> "Files":
    (tmp_path / "tools").mkdir()
    return Files(tmp_path / "tools")


class Files:
    """A folder whose files can be written and aged."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def folder(self, bundle: str | None = None) -> Folder:
        return Folder(self.path, bundle or self.path.name, [PlainFile()])

    def write(self, name: str, answer: str = "1") -> Path:
        """Write a tool file that returns the answer."""
        path = self.path / name
        function = path.stem.replace("-", "_")
        path.write_text(f'def {function}() -> str:\n    """Return it."""\n    return {answer!r}\n')
        return path

    def write_text(self, name: str, text: str) -> Path:
        path = self.path / name
        path.write_text(textwrap.dedent(text))
        return path

    def settle(self, *paths: Path) -> None:
        """Wait until the files and the folder are so old that their stamps are believed; bounded."""
        from toolcrib.catalog.folder import RACY_NANOSECONDS

        newest = max(path.stat().st_ctime_ns for path in (self.path, *self.path.iterdir(), *paths))
        end = time.monotonic() + 5
        while time.time_ns() - newest <= RACY_NANOSECONDS:
            assert time.monotonic() < end
            time.sleep(0.005)
