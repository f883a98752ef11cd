"""The pages, read into their fenced blocks, and the generator of pages."""

from __future__ import annotations

import importlib.util
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
# A page that shows a document with fences of its own puts it between longer ones.
FENCE = re.compile(r"^(```+)(\w*)([^\n]*)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the words after it, and what is in it."""

    page: str
    line: int
    language: str
    words: tuple[str, ...]
    text: str

    @property
    def file(self) -> str | None:
        named = (word.removeprefix("file=") for word in self.words if word.startswith("file="))
        return next(named, None)

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def read_blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            page=page.relative_to(ROOT).as_posix(),
            line=text.count("\n", 0, found.start()) + 1,
            language=found[2],
            words=tuple(found[3].split()),
            text=found[4],
        )
        for found in FENCE.finditer(text)
    ]


BLOCKS = [block for page in PAGES for block in read_blocks(page)]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that asks for `console` is run for every page with such blocks, and gets them in their order."""
    if "console" not in metafunc.fixturenames:
        return
    consoles = [block for block in BLOCKS if block.language == "console"]
    names = dict.fromkeys(block.page for block in consoles)
    metafunc.parametrize("console", [[block for block in consoles if block.page == name] for name in names], ids=names)


@pytest.fixture
def root() -> Path:
    return ROOT


@pytest.fixture
def blocks() -> list[Block]:
    return BLOCKS


@pytest.fixture
def pages() -> list[Path]:
    return PAGES


@pytest.fixture(scope="session")
def generate() -> ModuleType:
    """docs/generate.py as a module."""
    spec = importlib.util.spec_from_file_location("toolcrib_docs_generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def generated(generate: ModuleType, marks: dict[str, list[str]]) -> dict[Path, str]:
    """What the generator writes now."""
    return generate.pages(marks)


@pytest.fixture(scope="session")
def marks(generate: ModuleType) -> dict[str, list[str]]:
    """The tests of each row of the specification."""
    return generate.find_marks(ROOT / "tests")
