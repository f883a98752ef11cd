"""What the tests of searching share: rows that read like tools, and where the questions lie."""

import sys
from pathlib import Path

import pytest

from toolcrib.infra.search import Row


@pytest.fixture
def a_row():
    """Make a row of a slug and the given fields."""

    def make(slug, **facts) -> Row:
        usual = {
            "id": f"id-{slug}",
            "bundle": "b1",
            "slug": slug,
            "version": "1.0.0",
            "modified_at": "2026-03-01T10:00:00.000Z",
            "key": f"bundles/b1/{slug}@1.0.0.json",
        }
        return Row(**usual | facts)

    return make


@pytest.fixture
def benchmarks(monkeypatch):
    """The folder of the benchmarks on the path."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "benchmarks"))
    yield
    for name in ("questions", "made_up_tools"):
        sys.modules.pop(name, None)
