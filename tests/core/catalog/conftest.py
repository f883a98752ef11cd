"""Tools and a folder of tool files."""

import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sample_tools import file_run, host_tool
from toolcrib import Kind, Tool, ToolError
from toolcrib.core.file_source import FileSource
from toolcrib.features.python_files.format import PlainFile
from toolcrib.infra.files import RACY_NANOSECONDS
from toolcrib.model.tool import Origin


@pytest.fixture
def make_tool() -> Callable[..., Tool]:
    """Make a tool of the host program."""

    def make(name: str, bundle: str = "host", version: str = "1.0.0") -> Tool:
        return host_tool(name, description="x", bundle=bundle, version=version)

    return make


@pytest.fixture
def files(tmp_path: Path) -> "Files":
    (tmp_path / "tools").mkdir()
    return Files(tmp_path / "tools")


class Files:
    """A folder whose files can be written and aged."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def folder(self, bundle: str | None = None) -> FileSource:
        return FileSource(self.path, bundle or self.path.name, [PlainFile()])

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
        wait_until_settled([self.path, *self.path.iterdir(), *paths])


class Cards:
    """A dialect of our own: each line of a `.card` is a tool, `name version kind action…`; `#` makes the file a helper."""

    name = "card"

    def __init__(self) -> None:
        self.read_files: list[str] = []

    def reads(self, path: Path) -> bool:
        return path.suffix == ".card"

    def read(self, path: Path, code: bytes) -> list[Tool]:
        self.read_files.append(path.name)
        lines = code.decode().splitlines()
        if lines[:1] == ["broken"]:
            raise ToolError(Kind.VALIDATION, f"{path}:1: broken; correct the line")
        return [
            self._tool(path, number, *line.split()) for number, line in enumerate(lines, 1) if not line.startswith("#")
        ]

    def _tool(self, path, number, name, version="1.0.0", kind="script", action="", tag="") -> Tool:
        run = file_run(kind, folder=path.parent, action=action)
        return Tool(
            name=f"{name}-{action}" if action else name,
            description="A card.",
            parameters={"type": "object"},
            run=run,
            version=version,
            tags=tuple(filter(None, [tag])),
            origin=Origin(place=str(path), line=number),
        )


class Tree:
    """A folder of cards whose files can be written and aged."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.dialect = Cards()

    def folder(self, bundle: str) -> FileSource:
        return FileSource(self.path, bundle, [self.dialect], is_tree=True)

    def write(self, name: str, *lines: str) -> Path:
        """Write a card, which is one tool named like the file unless lines say otherwise."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines or (f"{path.stem} 1.0.0",)))
        return path

    def settle(self) -> None:
        """Wait until everything is so old that its stamp is believed; bounded."""
        wait_until_settled([self.path, *self.path.rglob("*")])

    def forget_reads(self) -> None:
        self.dialect.read_files.clear()


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    (tmp_path / "project").mkdir()
    return Tree(tmp_path / "project")


@pytest.fixture
def user_tree(tmp_path: Path) -> Tree:
    (tmp_path / "user").mkdir()
    return Tree(tmp_path / "user")


def wait_until_settled(paths: list[Path]) -> None:
    newest = max(path.lstat().st_ctime_ns for path in paths)
    end = time.monotonic() + 5
    while time.time_ns() - newest <= RACY_NANOSECONDS:
        assert time.monotonic() < end
        time.sleep(0.005)
