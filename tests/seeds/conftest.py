"""The document's own examples, unchanged, and a way to run them as they stand."""

import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

from toolcrib.features.agent_classes.import_paths import document_imports

FIXTURES = Path(__file__).parent / "fixtures"

# One of the examples is itself a test file; it is run by a pytest of its own.
collect_ignore = ["fixtures"]


@pytest.fixture
def fixtures() -> Path:
    return FIXTURES


@pytest.fixture
def run_example() -> Callable[..., dict]:
    """Run an example file and give back its names; `known` are those that it takes for granted."""

    def run(name: str, **known) -> dict:
        with document_imports():
            return runpy.run_path(str(FIXTURES / name), init_globals=known, run_name=f"example_{Path(name).stem}")

    return run


@pytest.fixture
def my_tool(run_example):
    """The class of the document, with the function that it takes for granted."""
    return run_example("my_tool.py", do_something=lambda text: f"expected: {text}")["MyTool"]
