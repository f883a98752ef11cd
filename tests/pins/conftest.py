"""Golden files: what the product shows to its users today, compared with what it shows now."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"
# Set by regenerate.py: golden files are written instead of compared.
REGENERATE = "PINS_REGENERATE"


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    """Compare a text with the golden file of that name."""

    def compare(name: str, text: str) -> None:
        file = GOLDEN / name
        if os.environ.get(REGENERATE):
            file.write_text(text, encoding="utf-8")
            return
        before = file.read_text(encoding="utf-8") if file.exists() else ""
        if before != text:
            lines = difflib.unified_diff(before.splitlines(), text.splitlines(), f"golden/{name}", "now", lineterm="")
            cure = "if the change is meant, run: python tests/pins/regenerate.py"
            pytest.fail("\n".join([f"{name} differs from what is pinned; {cure}", *lines]), pytrace=False)

    return compare
